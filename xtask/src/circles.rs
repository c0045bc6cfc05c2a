//! Import circles: modules of one crate that need each other.
//!
//! `cargo xtask circles` lists those of every crate, the largest first. A path that begins with
//! `crate`, `self` or `super`, in a `use` or in the code, is an import of the module it leads to; the
//! tests of a module do not count.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};

/// Name of a module within its crate, one part for each level.
pub(crate) type ModuleName = Vec<String>;

/// The modules of a crate, each with those that it imports.
#[derive(Debug, Default)]
struct ModuleGraph(BTreeMap<ModuleName, BTreeSet<ModuleName>>);

/// The circles of the crate whose sources are in `sources`, the largest first.
///
/// # Errors
/// A source that cannot be read or parsed.
pub(crate) fn of(sources: &Path) -> Result<Vec<Vec<String>>, String> {
    let files = modules(sources)?;
    let names: BTreeSet<ModuleName> = files.keys().cloned().collect();
    let mut graph = ModuleGraph::default();
    for (name, file) in &files {
        let mut imports = Imports { here: name, names: &names, found: BTreeSet::new() };
        imports.visit_file(file);
        imports.found.remove(name);
        graph.0.insert(name.clone(), imports.found);
    }
    let mut circles: Vec<Vec<String>> = graph
        .circles()
        .into_iter()
        .map(|circle| circle.into_iter().map(|name| name.join("::")).collect())
        .collect();
    circles.sort_by_key(|circle| core::cmp::Reverse(circle.len()));
    Ok(circles)
}

/// Parses the modules of the crate whose sources are in `sources`, but its root and its tests.
///
/// # Errors
/// A source that cannot be read or parsed.
pub(crate) fn modules(sources: &Path) -> Result<BTreeMap<ModuleName, syn::File>, String> {
    let mut files = BTreeMap::new();
    collect(sources, &mut Vec::new(), &mut files)?;
    Ok(files)
}

/// Parses the sources below a folder; the root of a crate is no module of it, and tests are left out.
fn collect(
    folder: &Path,
    within: &mut ModuleName,
    files: &mut BTreeMap<ModuleName, syn::File>,
) -> Result<(), String> {
    let failed =
        |path: &Path, error: &dyn core::fmt::Display| format!("{}: {error}", path.display());
    let entries = fs::read_dir(folder).map_err(|error| failed(folder, &error))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default().to_owned();
        if stem == "tests" || (within.is_empty() && matches!(stem.as_str(), "lib" | "main")) {
            continue;
        }
        within.push(stem);
        if path.is_dir() {
            collect(&path, within, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).map_err(|error| failed(&path, &error))?;
            let file = syn::parse_file(&text).map_err(|error| failed(&path, &error))?;
            files.insert(within.clone(), file);
        }
        within.pop();
    }
    Ok(())
}

/// Is it compiled for tests only?
pub(crate) fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let test = |list: &syn::MetaList| list.tokens.to_string() == "test";
        attribute.path().is_ident("cfg") && attribute.meta.require_list().is_ok_and(test)
    })
}

/// Collects the modules that one module imports.
struct Imports<'a> {
    here: &'a ModuleName,
    names: &'a BTreeSet<ModuleName>,
    found: BTreeSet<ModuleName>,
}

impl Imports<'_> {
    /// Notes the module that a path leads to, if it is one of this crate.
    fn note(&mut self, path: &[String]) {
        let Some((first, mut rest)) = path.split_first() else { return };
        let mut place = match first.as_str() {
            "crate" => Vec::new(),
            "self" => self.here.clone(),
            "super" => self.here[..self.here.len().saturating_sub(1)].to_vec(),
            // A child module.
            name => [&self.here[..], &[name.to_owned()]].concat(),
        };
        let is_child = !matches!(first.as_str(), "crate" | "self" | "super");
        if is_child && !self.names.contains(&place) {
            return;
        }
        while let Some((next, others)) = rest.split_first().filter(|(next, _)| *next == "super") {
            let _ = next;
            place.pop();
            rest = others;
        }
        let mut reached = self.names.contains(&place).then(|| place.clone());
        for part in rest {
            place.push(part.clone());
            match self.names.contains(&place) {
                true => reached = Some(place.clone()),
                false => break,
            }
        }
        self.found.extend(reached);
    }

    fn follow(&mut self, tree: &syn::UseTree, path: &mut Vec<String>) {
        match tree {
            syn::UseTree::Path(step) => {
                path.push(step.ident.to_string());
                self.follow(&step.tree, path);
                path.pop();
            }
            syn::UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.follow(tree, path));
            }
            syn::UseTree::Name(syn::UseName { ident })
            | syn::UseTree::Rename(syn::UseRename { ident, .. }) => {
                path.push(ident.to_string());
                self.note(path);
                path.pop();
            }
            syn::UseTree::Glob(_) => self.note(path),
        }
    }
}

impl<'ast> Visit<'ast> for Imports<'_> {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.follow(&item.tree, &mut Vec::new());
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let parts: Vec<String> = path.segments.iter().map(|part| part.ident.to_string()).collect();
        if parts.len() > 1 && matches!(parts[0].as_str(), "crate" | "self" | "super") {
            self.note(&parts);
        }
        visit::visit_path(self, path);
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        // A module within a file is that of its tests.
        let _ = item;
    }
}

impl ModuleGraph {
    /// The groups of modules each of which needs all others, itself not counted.
    fn circles(&self) -> Vec<Vec<&ModuleName>> {
        let reached: BTreeMap<&ModuleName, BTreeSet<&ModuleName>> =
            self.0.keys().map(|name| (name, self.reach(name))).collect();
        let mut done = BTreeSet::new();
        let mut circles = Vec::new();
        for name in self.0.keys() {
            let circle: Vec<&ModuleName> = reached[name]
                .iter()
                .copied()
                .filter(|other| reached[other].contains(name))
                .collect();
            if circle.len() > 1 && done.insert(circle.clone()) {
                circles.push(circle);
            }
        }
        circles
    }

    /// Everything that a module imports, directly or not.
    fn reach<'a>(&'a self, from: &'a ModuleName) -> BTreeSet<&'a ModuleName> {
        let mut reached = BTreeSet::new();
        let mut open = vec![from];
        while let Some(name) = open.pop() {
            let imports = self.0.get(name).into_iter().flatten();
            open.extend(imports.filter(|import| reached.insert(*import)));
        }
        reached
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The largest circle that a crate may have: with a larger one no part can be changed alone.
    const MOST: usize = 6;

    /// Crates with a larger one, which may not grow and has to shrink to its number.
    const EXCEPTIONS: &[(&str, usize)] = &[
        ("ackclock", 17),
        ("charts", 7),
        ("diagnose", 24),
        ("export", 10),
        ("ingest", 16),
        ("logs", 9),
        ("packet", 8),
        ("quic", 8),
        ("runner", 7),
        ("scenario", 12),
        ("script", 7),
        ("trace", 8),
    ];

    #[test]
    fn no_crate_has_a_large_import_circle() {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
        let mut names: Vec<_> = fs::read_dir(&crates).unwrap().flatten().collect();
        names.sort_by_key(fs::DirEntry::file_name);
        for entry in names {
            let name = entry.file_name().to_string_lossy().into_owned();
            let circles = of(&entry.path().join("src")).unwrap();
            let largest = circles.first().map_or(0, Vec::len);
            let exception = EXCEPTIONS.iter().find(|(known, _)| *known == name);
            let most = exception.map_or(MOST, |&(_, most)| most);
            assert!(largest <= most, "{name}: {:?}", circles[0]);
            let lower = "lower its exception";
            assert!(exception.is_none() || largest == most, "{name}: {largest}: {lower}");
        }
    }

    #[test]
    fn a_circle_of_two_is_found_and_a_chain_is_none() {
        let folder = std::env::temp_dir().join(format!("circles-{}", std::process::id()));
        fs::create_dir_all(folder.join("a")).unwrap();
        let write = |name: &str, text: &str| fs::write(folder.join(name), text).unwrap();
        write("lib.rs", "mod a; mod b; mod c;");
        write("a.rs", "mod inner; use crate::b::B; fn f() { crate::c::g() }");
        write("a/inner.rs", "use super::super::c;");
        write("b.rs", "pub struct B; impl B { fn a() -> super::a::A { todo!() } }");
        write("c.rs", "use std::fmt; #[cfg(test)] mod tests { use crate::a; }");
        let circles = of(&folder);
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(circles.unwrap(), [["a", "b"]]);
    }
}
