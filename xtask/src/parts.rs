//! The parts of a TCP connection: what a step may change.
//!
//! `cargo xtask parts` counts the methods that may change the whole endpoint, file by file, and rejects
//! those outside of [`ORCHESTRATION`], functions that change more than two parts, and parts with more
//! than twenty fields. It also rejects types with too many methods or files ([`crate::types`]). The
//! tests of a module do not count.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use syn::visit::{self, Visit};

use crate::circles::{self, ModuleName};

/// The structure that owns all parts.
const ENDPOINT: &str = "TcpEndpoint";
/// The structures whose fields are parts, besides those of the endpoint.
const OWNERS: [&str; 5] = [ENDPOINT, "SendSide", "Sender", "ReceiveSide", "Stack"];
/// Structures that borrow the state of a stack and its sender for one step; each is a part.
const VIEWS: [&str; 2] = ["FreeBsd", "FreeBsdRack"];
/// Functions that change three parts, and why they need to.
const THREE_PARTS: &[(&str, &str, &str)] = &[(
    "stacks/freebsd/tcp_output.rs",
    "tcp_output",
    "a segment has data of the sending side and the ACK of the receiving side",
)];
/// Types of fields that are values or containers.
const VALUES: [&str; 13] = [
    "Box",
    "Bytes",
    "Duration",
    "Instant",
    "LazyBox",
    "Offset",
    "Option",
    "Segment",
    "SeqNum",
    "TcpEndpoint",
    "TcpTotals",
    "Vec",
    "VecDeque",
];

/// Files with methods that may change all parts, and why they need to.
const ORCHESTRATION: &[(&str, &str)] = &[
    ("acks.rs", "an acknowledgment, with output calls in the middle of it and the end of a close"),
    ("application.rs", "calls of the application: open, write, read, close, reset"),
    ("endpoint.rs", "the interface of an endpoint, which has all parts"),
    ("fast_open.rs", "the handshake creates the state of both sides"),
    ("handshake.rs", "the handshake creates the state of both sides"),
    ("icmp.rs", "a message ends the connection or changes the segment size of both sides"),
    ("input.rs", "an arriving segment: its acknowledgment, its payload and its FIN"),
    ("input/closing.rs", "the end of the connection"),
    ("input/payload.rs", "payload is for the receiving side, its ACK for the output call"),
    (
        "input/unexpected.rs",
        "segments that are answered with an ACK or a RST, or end the connection",
    ),
    (
        "output.rs",
        "a pass sends data or, without, the ACK that is due; an RST and a SYN come first",
    ),
    ("output/build.rs", "a segment has data of the sending side and the ACK of the receiving side"),
    ("socket_options.rs", "options that the application sets"),
    ("stacks/dispatch.rs", "an acknowledgment or a pass of output, by the stack"),
    ("timeout.rs", "an expired timer may end the connection or send an ACK"),
];

/// Fields that a structure may have.
const MOST_FIELDS: usize = 20;
/// Parts that a function may change.
const MOST_PARTS: usize = 2;

/// What the sources of the endpoint show.
#[derive(Debug, Default)]
pub(crate) struct Survey {
    /// Methods that may change the whole endpoint, by file.
    pub(crate) methods: BTreeMap<String, Vec<String>>,
    /// Names of the parts.
    pub(crate) parts: BTreeSet<String>,
    pub(crate) complaints: Vec<String>,
}

/// Examines the endpoint whose sources are in `sources`.
///
/// # Errors
/// A source that cannot be read or parsed.
pub(crate) fn survey(sources: &Path) -> Result<Survey, String> {
    let files = circles::modules(sources)?;
    Ok(examine(&files, ORCHESTRATION))
}

/// Lines that list the methods by file, and their number.
pub(crate) fn describe(survey: &Survey) -> Vec<String> {
    let reason = |file: &str| ORCHESTRATION.iter().find(|(name, _)| *name == file);
    let mut lines: Vec<String> = survey
        .methods
        .iter()
        .map(|(file, methods)| {
            let reason = reason(file).map_or("", |(_, reason)| reason);
            format!("{:>3}  {file:<22} {reason}", methods.len()).trim_end().to_owned()
        })
        .collect();
    let total: usize = survey.methods.values().map(Vec::len).sum();
    let parts = survey.parts.len();
    lines.push(format!(
        "{total:>3}  methods may change the whole endpoint, which has {parts} parts"
    ));
    lines
}

fn examine(files: &BTreeMap<ModuleName, syn::File>, orchestration: &[(&str, &str)]) -> Survey {
    let mut structures = Structures::default();
    files.values().for_each(|file| structures.visit_file(file));
    let mut parts = structures.parts();
    parts.extend(
        VIEWS.map(str::to_owned).into_iter().filter(|name| structures.0.contains_key(name)),
    );
    let mut survey = Survey { parts, ..Survey::default() };
    for name in OWNERS.iter().copied().chain(survey.parts.iter().map(String::as_str)) {
        let fields = structures.0.get(name).map_or(0, |structure| structure.fields);
        if fields > MOST_FIELDS {
            survey.complaints.push(format!("{name} has {fields} fields, more than {MOST_FIELDS}"));
        }
    }
    survey.complaints.sort();
    survey.complaints.dedup();
    for (name, file) in files {
        let file_name = format!("{}.rs", name.join("/"));
        let mut functions = Functions { survey: &mut survey, file: file_name, owner: None };
        functions.visit_file(file);
    }
    for (file, methods) in &survey.methods {
        if !orchestration.iter().any(|(name, _)| name == file) {
            survey.complaints.extend(methods.iter().map(|method| {
                format!("{file}: {method} may change the whole endpoint; take the parts it changes")
            }));
        }
    }
    for (file, _) in orchestration {
        if !survey.methods.contains_key(*file) {
            survey
                .complaints
                .push(format!("{file}: no method changes the whole endpoint; unlist it"));
        }
    }
    survey
}

/// A structure: its number of fields, and the types named in them.
#[derive(Debug, Default)]
struct Structure {
    fields: usize,
    types: BTreeSet<String>,
}

#[derive(Debug, Default)]
struct Structures(BTreeMap<String, Structure>);

impl Structures {
    /// The types of the owners' fields that are no plain values.
    fn parts(&self) -> BTreeSet<String> {
        let owned = OWNERS.iter().filter_map(|owner| self.0.get(*owner));
        let types = owned.flat_map(|structure| structure.types.iter());
        let is_part = |name: &&String| {
            let is_value = VALUES.contains(&name.as_str());
            let is_type = name.starts_with(char::is_uppercase);
            is_type && !is_value
        };
        types.filter(is_part).cloned().collect()
    }
}

impl<'ast> Visit<'ast> for Structures {
    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        let mut types = TypeNames::default();
        item.fields.iter().for_each(|field| types.visit_type(&field.ty));
        let structure = Structure { fields: item.fields.len(), types: types.0 };
        self.0.insert(item.ident.to_string(), structure);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        let mut types = TypeNames::default();
        let fields = item.variants.iter().flat_map(|variant| variant.fields.iter());
        fields.for_each(|field| types.visit_type(&field.ty));
        self.0.insert(item.ident.to_string(), Structure { fields: 0, types: types.0 });
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        // A module within a file is that of its tests.
        let _ = item;
    }
}

/// The last parts of all paths of a type.
#[derive(Debug, Default)]
struct TypeNames(BTreeSet<String>);

impl<'ast> Visit<'ast> for TypeNames {
    fn visit_path_segment(&mut self, segment: &'ast syn::PathSegment) {
        self.0.insert(segment.ident.to_string());
        visit::visit_path_segment(self, segment);
    }
}

/// Collects what the functions of a file may change.
struct Functions<'a> {
    survey: &'a mut Survey,
    file: String,
    /// The type whose methods are visited.
    owner: Option<String>,
}

impl Functions<'_> {
    fn note(&mut self, signature: &syn::Signature) {
        let mut changed = Changed { owner: self.owner.as_deref(), names: Vec::new() };
        signature.inputs.iter().for_each(|input| changed.visit_fn_arg(input));
        let names = changed.names;
        let method = signature.ident.to_string();
        if names.iter().any(|name| name == ENDPOINT) {
            self.survey.methods.entry(self.file.clone()).or_default().push(method.clone());
        }
        let is_part = |name: &&String| **name == ENDPOINT || self.survey.parts.contains(*name);
        let parts: Vec<&str> = names.iter().filter(is_part).map(String::as_str).collect();
        let file = self.file.as_str();
        let listed = THREE_PARTS.iter().any(|(f, name, _)| (*f, *name) == (file, method.as_str()));
        if parts.len() > MOST_PARTS + usize::from(listed) {
            let parts = parts.join(", ");
            self.survey.complaints.push(format!("{file}: {method} may change {parts}"));
        }
    }
}

impl<'ast> Visit<'ast> for Functions<'_> {
    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        if circles::is_test(&item.attrs) {
            return;
        }
        let mut names = TypeNames::default();
        if let syn::Type::Path(path) = &*item.self_ty
            && let Some(last) = path.path.segments.last()
        {
            names.0.insert(last.ident.to_string());
        }
        self.owner = names.0.pop_first();
        visit::visit_item_impl(self, item);
        self.owner = None;
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if !circles::is_test(&item.attrs) {
            self.note(&item.sig);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if !circles::is_test(&item.attrs) {
            self.note(&item.sig);
        }
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        let _ = item;
    }
}

/// Collects the types that parameters may change.
struct Changed<'a> {
    owner: Option<&'a str>,
    names: Vec<String>,
}

impl<'ast> Visit<'ast> for Changed<'_> {
    fn visit_receiver(&mut self, receiver: &'ast syn::Receiver) {
        if receiver.reference.is_some() && receiver.mutability.is_some() {
            self.names.extend(self.owner.map(str::to_owned));
        }
    }

    fn visit_type_reference(&mut self, reference: &'ast syn::TypeReference) {
        if reference.mutability.is_some() {
            let mut types = TypeNames::default();
            types.visit_type(&reference.elem);
            let owner = |name: String| match (name.as_str(), self.owner) {
                ("Self", Some(owner)) => owner.to_owned(),
                _ => name,
            };
            self.names.extend(types.0.into_iter().map(owner));
        }
    }

    fn visit_parenthesized_generic_arguments(
        &mut self,
        arguments: &'ast syn::ParenthesizedGenericArguments,
    ) {
        // Those of a closure, which changes no more than the function that calls it.
        let _ = arguments;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_of_tcp_change_two_parts_at_most() {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/tcp/src");
        let survey = survey(&sources).unwrap();
        assert!(survey.complaints.is_empty(), "{:#?}", survey.complaints);
        for part in
            ["Connection", "Timers", "SendSide", "Sender", "ReceiveSide", "SendMap", "FreeBsd"]
        {
            assert!(survey.parts.contains(part), "{part} is no part: {:?}", survey.parts);
        }
    }

    fn complaints(text: &str) -> Vec<String> {
        let parts = "struct TcpEndpoint { snd: SendSide, rcv: ReceiveSide, timers: Timers }
            struct SendSide { una: Offset, map: Option<Box<SendMap>>, stack: Stack }
            enum Stack { Rack(Box<RackState>), NewReno }
            impl TcpEndpoint { fn pass(&mut self) {} fn peek(&self, timers: &mut Timers) {} }";
        let file = |text: &str| syn::parse_file(text).unwrap();
        let files = [
            (vec!["output".to_owned()], file(parts)),
            (vec!["loss".to_owned(), "base".to_owned()], file(text)),
        ];
        examine(&files.into_iter().collect(), &[("output.rs", "a reason")]).complaints
    }

    #[test]
    fn a_step_of_the_whole_endpoint_is_rejected() {
        let expected =
            "loss/base.rs: step may change the whole endpoint; take the parts it changes";
        assert_eq!(complaints("impl TcpEndpoint { fn step(&mut self) {} }"), [expected]);
        assert_eq!(complaints("fn step(endpoint: &mut TcpEndpoint) {}"), [expected]);
        let allowed = "#[cfg(test)] impl TcpEndpoint { fn step(&mut self) {} }
            impl TcpEndpoint { fn read(&self) {} }
            mod tests { fn step(endpoint: &mut TcpEndpoint) {} }";
        assert!(complaints(allowed).is_empty());
    }

    #[test]
    fn a_function_that_changes_three_parts_is_rejected() {
        let one = |text| assert_eq!(complaints(text).len(), 1, "{text}");
        one("impl SendSide { fn step(&mut self, rcv: &mut ReceiveSide, timers: &mut Timers) {} }");
        one("fn step(map: &mut SendMap, (loss, rcv): (&mut RackState, &mut ReceiveSide)) {}");
        one(
            "impl RackState { fn step(&mut self, map: Option<&mut Box<SendMap>>, t: &mut Timers) {} }",
        );
        let allowed = "impl SendSide { fn step(&mut self, rcv: &ReceiveSide, timers: &mut Timers) {} }
            impl SendSide { fn with(&mut self, step: impl Fn(&mut RackState, &mut SendMap)) {} }
            impl SendSide { fn next(&self, at: &mut Offset, map: &mut SendMap, t: &mut Timers) {} }";
        assert!(complaints(allowed).is_empty());
    }

    #[test]
    fn a_part_with_too_many_fields_is_rejected() {
        let fields = |count: usize| (0..count).map(|i| format!("f{i}: u8,")).collect::<String>();
        let structure = |name: &str, count| format!("struct {name} {{ {} }}", fields(count));
        assert!(complaints(&structure("RackState", MOST_FIELDS)).is_empty());
        assert!(complaints(&structure("Other", MOST_FIELDS + 1)).is_empty());
        let expected = format!("RackState has 21 fields, more than {MOST_FIELDS}");
        assert_eq!(complaints(&structure("RackState", MOST_FIELDS + 1)), [expected]);
    }

    #[test]
    fn an_unused_entry_of_the_list_is_rejected() {
        let files = BTreeMap::new();
        let survey = examine(&files, &[("output.rs", "a reason")]);
        assert_eq!(
            survey.complaints,
            ["output.rs: no method changes the whole endpoint; unlist it"]
        );
    }
}
