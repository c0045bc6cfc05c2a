//! The size of a type: its methods, and the files that they are in.
//!
//! A type that everything is a method of is no smaller for being spread over files, so `cargo xtask
//! parts` counts both: inherent methods and those of traits of the same crate, without tests. The
//! types in [`EXCEPTIONS`] are larger than allowed; each has to shrink to its numbers and may not
//! grow beyond them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use syn::visit::{self, Visit};

use crate::circles;

/// The crates whose types are counted.
const CRATES: [&str; 4] = ["cc", "net", "recovery", "tcp"];
/// Methods that a type may have.
const MOST_METHODS: usize = 90;
/// Files that its methods may be in.
const MOST_FILES: usize = 12;

/// Types that are larger: the crate, the type, its methods, its files.
const EXCEPTIONS: &[(&str, &str, usize, usize)] = &[
    ("cc", "Bbr3", 108, 12),
    ("cc", "BbrDraft", 98, 10),
    ("tcp", "SendSide", 103, 26),
    ("tcp", "Sender", 144, 29),
    ("tcp", "TcpEndpoint", 119, 19),
];

/// The methods of a type.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct TypeSize {
    methods: usize,
    files: usize,
}

/// Complaints about types below `crates` that are too large, or smaller than their exception.
///
/// # Errors
/// A source that cannot be read or parsed.
pub(crate) fn complaints(crates: &Path) -> Result<Vec<String>, String> {
    let mut complaints = Vec::new();
    for name in CRATES {
        let files = circles::modules(&crates.join(name).join("src"))?;
        let sizes = sizes(files.values());
        complaints.extend(complaints_of(name, &sizes, EXCEPTIONS));
    }
    Ok(complaints)
}

fn complaints_of(
    name: &str,
    sizes: &BTreeMap<String, TypeSize>,
    exceptions: &[(&str, &str, usize, usize)],
) -> Vec<String> {
    let mut complaints = Vec::new();
    let limit = |kind: &str| {
        let own = exceptions.iter().find(|(krate, known, ..)| (*krate, *known) == (name, kind));
        own.map(|&(_, _, methods, files)| TypeSize { methods, files })
    };
    for (kind, size) in sizes {
        let allowed = limit(kind).unwrap_or(TypeSize { methods: MOST_METHODS, files: MOST_FILES });
        let TypeSize { methods, files } = *size;
        if methods > allowed.methods {
            complaints.push(format!(
                "{name}: {kind} has {methods} methods, more than {}",
                allowed.methods
            ));
        }
        if files > allowed.files {
            complaints.push(format!(
                "{name}: the methods of {kind} are in {files} files, more than {}",
                allowed.files
            ));
        }
    }
    for &(_, kind, methods, files) in exceptions.iter().filter(|exception| exception.0 == name) {
        let size = sizes.get(kind).copied().unwrap_or_default();
        if size.methods < methods || size.files < files {
            complaints.push(format!(
                "{name}: {kind} has {} methods in {} files: lower its exception",
                size.methods, size.files
            ));
        }
    }
    complaints
}

fn sizes<'a>(files: impl Iterator<Item = &'a syn::File> + Clone) -> BTreeMap<String, TypeSize> {
    let mut traits = TraitNames::default();
    files.clone().for_each(|file| traits.visit_file(file));
    let mut sizes: BTreeMap<String, TypeSize> = BTreeMap::new();
    for file in files {
        let mut methods = Methods { traits: &traits.0, counts: BTreeMap::new() };
        methods.visit_file(file);
        for (kind, count) in methods.counts {
            let size = sizes.entry(kind).or_default();
            size.methods += count;
            size.files += 1;
        }
    }
    sizes
}

/// The traits that are defined.
#[derive(Debug, Default)]
struct TraitNames(BTreeSet<String>);

impl<'ast> Visit<'ast> for TraitNames {
    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.0.insert(item.ident.to_string());
    }
}

/// Counts the methods in one file, by type.
struct Methods<'a> {
    traits: &'a BTreeSet<String>,
    counts: BTreeMap<String, usize>,
}

impl<'ast> Visit<'ast> for Methods<'_> {
    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let of_trait = item.trait_.as_ref().and_then(|(_, path, _)| path.segments.last());
        let counts = of_trait.is_none_or(|name| self.traits.contains(&name.ident.to_string()));
        if circles::is_test(&item.attrs) || !counts {
            return;
        }
        if let syn::Type::Path(path) = &*item.self_ty
            && let Some(last) = path.path.segments.last()
        {
            let is_method = |item: &&syn::ImplItem| matches!(item, syn::ImplItem::Fn(function) if !circles::is_test(&function.attrs));
            let methods = item.items.iter().filter(is_method).count();
            *self.counts.entry(last.ident.to_string()).or_default() += methods;
        }
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !circles::is_test(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_type_has_too_many_methods_or_files() {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
        let complaints = complaints(&crates).unwrap();
        assert!(complaints.is_empty(), "{complaints:#?}");
    }

    #[test]
    fn methods_of_all_files_and_of_own_traits_count() {
        let file = |text: &str| syn::parse_file(text).unwrap();
        let files = [
            file("trait Own { fn f(&self); } impl Big<'_> { fn a() {} fn b() {} }"),
            file(
                "impl Own for Big<'_> { fn f(&self) {} } impl Clone for Big<'_> { fn clone(&self) {} }
                #[cfg(test)] impl Big<'_> { fn t() {} }
                #[cfg(test)] mod tests { impl Big<'_> { fn t() {} } }",
            ),
        ];
        let sizes = sizes(files.iter());
        assert_eq!(sizes["Big"], TypeSize { methods: 3, files: 2 });
        let found = |limit: (usize, usize)| {
            complaints_of("tcp", &sizes, &[("tcp", "Big", limit.0, limit.1)])
        };
        assert_eq!(found((3, 2)), Vec::<String>::new());
        assert_eq!(found((2, 2)), ["tcp: Big has 3 methods, more than 2"]);
        assert_eq!(found((3, 1)), ["tcp: the methods of Big are in 2 files, more than 1"]);
        assert_eq!(found((4, 2)), ["tcp: Big has 3 methods in 2 files: lower its exception"]);
    }
}
