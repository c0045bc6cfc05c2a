//! `[[path]]`: two one-way paths between a pair of hosts.

use serde_json::{Value as Json, json};
use sim::scenario::{ElementSpec, PathSpec};
use units::Duration;

use super::element::{self, ELEMENT, ElementTable, not_on_a_path};
use super::hosts::Hosts;
use super::keys::{AnyKey as _, Key, KeyCodec, KeyType, Located, ScenarioReader, TableFields};
use super::kinds::{EnumType, TableListType, TextType, self_named};
use super::presets;
use super::shared::SharedElements;
use super::source::SpannedError;
use super::table::table;
use super::tree::TomlNode;
use super::unresolved::UnresolvedElement;

/// Maximum elements of a direction; the simulator counts them in 16 bits.
const MAX_ELEMENTS: usize = 10_000;

static NAME: Key<TextType> =
    Key::optional("name", TextType, "none", "distinguishes paths between the same hosts");
static FROM: Key<TextType> = Key::required("from", TextType, "host where `forward` starts");
static TO: Key<TextType> = Key::required("to", TextType, "host where `forward` ends");
static PRESET: Key<EnumType> = Key::optional(
    "preset",
    EnumType { names: &self_named(presets::NAMES) },
    "",
    "both directions of a built-in path, `scenarios/presets/NAME.toml`",
);
static FORWARD: Key<ElementListType> = Key::optional(
    "forward",
    ElementListType,
    "",
    "elements from `from` to `to`, in the order packets traverse them",
);
static RETURN: Key<ElementListType> = Key::optional(
    "return",
    ElementListType,
    "required with `forward`",
    "elements from `to` to `from`, in the order packets traverse them",
);

table! {
    /// Two one-way paths between a pair of hosts.
    pub PathTable: SECTION = "a path" {
        name: String = NAME,
        from: String = FROM,
        to: String = TO,
        preset: &'static str = PRESET,
        forward: Vec<Located<ElementTable>> = FORWARD,
        return_: Vec<Located<ElementTable>> = RETURN,
    }
    one_of: &["preset", "forward"],
    elsewhere: |key| match key {
        "reverse" | "back" | "backward" => Some("the reverse direction is called `return`"),
        "rate" | "buffer" | "link" | "delay" => {
            Some("a direction is a list: forward = [ { link = { ... } }, { delay = ... } ]")
        }
        "shared" => Some("a shared element is listed: forward = [ { shared = \"NAME\" } ]"),
        _ => not_on_a_path(key),
    },
    check: check_directions,
}

fn check_directions(fields: &TableFields<'_>, reader: &mut ScenarioReader) {
    if let Some(node) = fields.node(&RETURN).filter(|_| fields.has(&PRESET)) {
        let message = "a path has either `preset` or its own directions, not both";
        reader.report(SpannedError::new(node.span, message));
    }
    let single_packet = fields.has(&FORWARD) && !fields.has(&RETURN) && !fields.has(&PRESET);
    if single_packet && !fields.has_unknown_keys() {
        let fault = SpannedError::new(fields.span, "a path needs `return`");
        reader.report(fault.hint(RETURN.help().to_owned()));
    }
}

/// A list of elements: one direction of a path.
pub(super) struct ElementListType;

impl KeyType for ElementListType {
    fn schema(&self) -> Json {
        json!({ "type": "array", "items": ELEMENT.schema() })
    }

    fn type_name(&self) -> String {
        "list of elements".into()
    }
}

impl KeyCodec for ElementListType {
    type Value = Vec<Located<ElementTable>>;

    fn read(&self, key: &str, node: &TomlNode, reader: &mut ScenarioReader) -> Option<Self::Value> {
        let items = reader.list(key, node)?;
        if items.len() > MAX_ELEMENTS {
            let fault = SpannedError::new(node.span, "this direction has too many elements");
            reader.report(fault.expected(format!("at most {MAX_ELEMENTS}")));
            return None;
        }
        ELEMENTS.read(key, node, reader)
    }

    fn write(&self, value: &Self::Value) -> toml_edit::Value {
        ELEMENTS.write(value)
    }
}

const ELEMENTS: TableListType<ElementTable> = TableListType::any(&ELEMENT);

/// A parsed path; its hosts may be valid though its elements are not.
pub(super) struct ParsedPath {
    pub(super) name: Option<Located<String>>,
    /// Hosts at its endpoints.
    pub(super) ends: Option<(usize, usize)>,
    /// The path, if it has no error.
    pub(super) path: Option<PathSpec>,
}

/// Reads a path and resolves its hosts.
pub(super) fn path(
    table: &Located<PathTable>,
    hosts: &Hosts,
    shared: &SharedElements,
    reader: &mut ScenarioReader,
) -> ParsedPath {
    let PathTable { name, from, to, .. } = &table.value;
    let ends = hosts.pair("a path", table.span, [from, to], reader);
    let (forward, back) = directions(&table.value, shared, reader);
    let delays = |route: &[UnresolvedElement]| {
        route.iter().fold(Duration::ZERO, |sum, draft| sum + draft.delay(shared))
    };
    let routes = forward.zip(back).and_then(|(forward, back)| {
        let round_trip = delays(&forward) + delays(&back);
        let forward = resolve(forward, round_trip, reader);
        forward.zip(resolve(back, round_trip, reader))
    });
    let path = ends.zip(routes).map(|((from, to), (forward, reverse))| PathSpec {
        from,
        to,
        forward,
        reverse,
    });
    ParsedPath { name: name.clone(), ends, path }
}

type UnresolvedElements = Option<Vec<UnresolvedElement>>;

/// Reads both directions, from the file or a preset.
fn directions(
    table: &PathTable,
    shared: &SharedElements,
    reader: &mut ScenarioReader,
) -> (UnresolvedElements, UnresolvedElements) {
    if let Some(name) = &table.preset {
        return match presets::preset_directions(name) {
            Ok([forward, back]) => {
                let mut elements = |key: &Key<ElementListType>, node| {
                    let elements = ElementListType.read(key.name, node, reader)?;
                    parse_elements(&elements, shared, reader)
                };
                (elements(&FORWARD, &forward), elements(&RETURN, &back))
            }
            Err(fault) => {
                reader.report(fault);
                (None, None)
            }
        };
    }
    let mut elements = |elements: &Option<Located<Vec<Located<ElementTable>>>>| {
        parse_elements(&elements.as_ref()?.value, shared, reader)
    };
    (elements(&table.forward), elements(&table.return_))
}

fn parse_elements(
    elements: &[Located<ElementTable>],
    shared: &SharedElements,
    reader: &mut ScenarioReader,
) -> UnresolvedElements {
    let mut drafts: Vec<Option<UnresolvedElement>> = Vec::with_capacity(elements.len());
    for table in elements {
        let draft = element::parse_element(&table.value, Some(shared), reader);
        if let Some(UnresolvedElement::Resolved(ElementSpec::Shared(index))) = draft
            && drafts.iter().flatten().any(|before| before.is_shared(index))
        {
            let fault =
                SpannedError::new(table.span, "this direction includes the shared element twice");
            reader.report(fault);
        }
        drafts.push(draft);
    }
    drafts.into_iter().collect()
}

fn resolve(
    route: Vec<UnresolvedElement>,
    round_trip: Duration,
    reader: &mut ScenarioReader,
) -> Option<Vec<ElementSpec>> {
    let elements: Vec<Option<ElementSpec>> =
        route.into_iter().map(|draft| draft.resolve(Some(round_trip), reader)).collect();
    elements.into_iter().collect()
}
