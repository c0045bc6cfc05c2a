//! `[[path]]`: two one-way roads between a pair of hosts.

use serde_json::{Value as Json, json};
use sim::scenario::{Element, Path};
use units::Duration;

use super::element::{self, Draft, ELEMENT, ElementTable, not_on_a_path};
use super::hosts::Hosts;
use super::keys::{AnyKey as _, Fields, Key, Kind, Located, Reader, Shape};
use super::kinds::{OneOf, Tables, Words, themselves};
use super::presets;
use super::shared::SharedElements;
use super::source::Fault;
use super::table::table;
use super::tree::Node;

/// Elements of a road are counted in 16 bits, and nobody needs that many.
const MAX_ELEMENTS: usize = 10_000;

static NAME: Key<Words> =
    Key::optional("name", Words, "none", "tells it from other paths between the same hosts");
static FROM: Key<Words> = Key::required("from", Words, "host where `forward` begins");
static TO: Key<Words> = Key::required("to", Words, "host where `forward` ends");
static PRESET: Key<OneOf> = Key::optional(
    "preset",
    OneOf { names: &themselves(presets::NAMES) },
    "",
    "both roads are those of a path that comes with the program, `scenarios/presets/NAME.toml`",
);
static FORWARD: Key<Road> = Key::optional(
    "forward",
    Road,
    "",
    "elements from `from` to `to`, in the order packets meet them",
);
static RETURN: Key<Road> = Key::optional(
    "return",
    Road,
    "needed with `forward`",
    "elements on the way back, in the order packets meet them",
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
        "reverse" | "back" | "backward" => Some("the way back is called `return`"),
        "rate" | "buffer" | "link" | "delay" => {
            Some("a road is a list of elements: forward = [ { link = { ... } }, { delay = ... } ]")
        }
        "shared" => Some("a road leads through it: forward = [ { shared = \"NAME\" } ]"),
        _ => not_on_a_path(key),
    },
    check: check_directions,
}

fn check_directions(fields: &Fields<'_>, reader: &mut Reader) {
    if let Some(node) = fields.node(&RETURN).filter(|_| fields.has(&PRESET)) {
        let message = "a path has either `preset` or roads of its own, not both";
        reader.report(Fault::new(node.place, message));
    }
    let alone = fields.has(&FORWARD) && !fields.has(&RETURN) && !fields.has(&PRESET);
    if alone && !fields.has_strangers() {
        let fault = Fault::new(fields.place, "a path needs `return`");
        reader.report(fault.hint(RETURN.help().to_owned()));
    }
}

/// A list of elements.
pub(super) struct Road;

impl Shape for Road {
    fn schema(&self) -> Json {
        json!({ "type": "array", "items": ELEMENT.schema() })
    }

    fn takes(&self) -> String {
        "list of elements".into()
    }
}

impl Kind for Road {
    type Value = Vec<Located<ElementTable>>;

    fn read(&self, key: &str, node: &Node, reader: &mut Reader) -> Option<Self::Value> {
        let items = reader.list(key, node)?;
        if items.len() > MAX_ELEMENTS {
            let fault = Fault::new(node.place, "this road has too many elements");
            reader.report(fault.expected(format!("at most {MAX_ELEMENTS}")));
            return None;
        }
        ELEMENTS.read(key, node, reader)
    }

    fn write(&self, value: &Self::Value) -> toml_edit::Value {
        ELEMENTS.write(value)
    }
}

const ELEMENTS: Tables<ElementTable> = Tables::any(&ELEMENT);

/// A path whose ends may be right though its elements are not.
pub(super) struct PathRead {
    pub(super) name: Option<Located<String>>,
    /// Hosts at its ends.
    pub(super) ends: Option<(usize, usize)>,
    /// The whole, if nothing is wrong.
    pub(super) path: Option<Path>,
}

/// The path of a table, with its hosts.
pub(super) fn path(
    table: &Located<PathTable>,
    hosts: &Hosts,
    shared: &SharedElements,
    reader: &mut Reader,
) -> PathRead {
    let PathTable { name, from, to, .. } = &table.value;
    let ends = hosts.pair("a path", table.place, [from, to], reader);
    let (forward, back) = directions(&table.value, shared, reader);
    let delays =
        |road: &[Draft]| road.iter().fold(Duration::ZERO, |sum, draft| sum + draft.delay(shared));
    let roads = forward.zip(back).and_then(|(forward, back)| {
        let round_trip = delays(&forward) + delays(&back);
        let forward = resolve(forward, round_trip, reader);
        forward.zip(resolve(back, round_trip, reader))
    });
    let path =
        ends.zip(roads).map(|((from, to), (forward, reverse))| Path { from, to, forward, reverse });
    PathRead { name: name.clone(), ends, path }
}

type Drafts = Option<Vec<Draft>>;

/// Both directions, written out or of a preset.
fn directions(table: &PathTable, shared: &SharedElements, reader: &mut Reader) -> (Drafts, Drafts) {
    if let Some(name) = &table.preset {
        return match presets::roads(name) {
            Ok([forward, back]) => {
                let mut elements = |key: &Key<Road>, node| {
                    let elements = Road.read(key.name, node, reader)?;
                    drafts(&elements, shared, reader)
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
        drafts(&elements.as_ref()?.value, shared, reader)
    };
    (elements(&table.forward), elements(&table.return_))
}

fn drafts(
    elements: &[Located<ElementTable>],
    shared: &SharedElements,
    reader: &mut Reader,
) -> Drafts {
    let mut drafts: Vec<Option<Draft>> = Vec::with_capacity(elements.len());
    for table in elements {
        let draft = element::draft(&table.value, Some(shared), reader);
        if let Some(Draft::Whole(Element::Shared(index))) = draft
            && drafts.iter().flatten().any(|before| before.is_shared(index))
        {
            let fault = Fault::new(table.place, "this road leads through it for a second time");
            reader.report(fault);
        }
        drafts.push(draft);
    }
    drafts.into_iter().collect()
}

fn resolve(road: Vec<Draft>, round_trip: Duration, reader: &mut Reader) -> Option<Vec<Element>> {
    let elements: Vec<Option<Element>> =
        road.into_iter().map(|draft| draft.resolve(Some(round_trip), reader)).collect();
    elements.into_iter().collect()
}
