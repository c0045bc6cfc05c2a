//! `[[path]]`: two one-way roads between a pair of hosts.

use serde_json::{Value as Json, json};
use sim::scenario::{Element, Path};
use units::Duration;

use super::element::{self, Draft, ELEMENT, not_on_a_path};
use super::hosts::Hosts;
use super::keys::{AnyKey as _, Fields, Key, Located, Reader, Section, Shape};
use super::kinds::{OneOf, Words};
use super::presets;
use super::shared::SharedElements;
use super::source::Fault;
use super::tree::Node;

/// Elements of a road are counted in 16 bits, and nobody needs that many.
const MAX_ELEMENTS: usize = 10_000;

static NAME: Key<Words> =
    Key::optional("name", Words, "none", "tells it from other paths between the same hosts");
static FROM: Key<Words> = Key::required("from", Words, "host where `forward` begins");
static TO: Key<Words> = Key::required("to", Words, "host where `forward` ends");
static PRESET: Key<OneOf> = Key::optional(
    "preset",
    OneOf { names: &presets::NAMES },
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

/// Two one-way roads.
pub(super) static SECTION: Section = Section {
    what: "a path",
    keys: &[&NAME, &FROM, &TO, &PRESET, &FORWARD, &RETURN],
    one_of: &["preset", "forward"],
    elsewhere: |key| match key {
        "reverse" | "back" | "backward" => Some("the way back is called `return`"),
        "rate" | "buffer" | "link" | "delay" => {
            Some("a road is a list of elements: forward = [ { link = { ... } }, { delay = ... } ]")
        }
        "shared" => Some("a road leads through it: forward = [ { shared = \"NAME\" } ]"),
        _ => not_on_a_path(key),
    },
};

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

/// A path whose ends may be right though its elements are not.
pub(super) struct PathRead {
    pub(super) name: Option<Located<String>>,
    /// Hosts at its ends.
    pub(super) ends: Option<(usize, usize)>,
    /// The whole, if nothing is wrong.
    pub(super) path: Option<Path>,
}

/// Reads a path.
pub(super) fn read(
    node: &Node,
    hosts: &Hosts,
    shared: &SharedElements,
    reader: &mut Reader,
) -> PathRead {
    let Some(fields) = Fields::open(&SECTION, node, reader) else {
        return PathRead { name: None, ends: None, path: None };
    };
    let name = fields.get(&NAME, reader);
    let ends = hosts.pair(&fields, &FROM, &TO, reader);
    let (forward, back) = roads(&fields, shared, reader);
    let delays =
        |road: &[Draft]| road.iter().fold(Duration::ZERO, |sum, draft| sum + draft.delay(shared));
    let roads = forward.zip(back).and_then(|(forward, back)| {
        let round_trip = delays(&forward) + delays(&back);
        let forward = resolve(forward, round_trip, reader);
        forward.zip(resolve(back, round_trip, reader))
    });
    let path =
        ends.zip(roads).map(|((from, to), (forward, reverse))| Path { from, to, forward, reverse });
    PathRead { name, ends, path }
}

type Drafts = Option<Vec<Draft>>;

/// Both roads, written out or of a preset.
fn roads(fields: &Fields<'_>, shared: &SharedElements, reader: &mut Reader) -> (Drafts, Drafts) {
    if let Some(key) = fields.node(&PRESET) {
        if let Some(node) = fields.node(&RETURN) {
            let message = "a path has either `preset` or roads of its own, not both";
            reader.report(Fault::new(node.place, message));
        }
        let Some(name) = fields.get(&PRESET, reader) else { return (None, None) };
        return match presets::roads(name.value, key) {
            Ok([forward, back]) => {
                (road(&FORWARD, &forward, shared, reader), road(&RETURN, &back, shared, reader))
            }
            Err(fault) => {
                reader.report(fault);
                (None, None)
            }
        };
    }
    if fields.has(&FORWARD) && !fields.has(&RETURN) && !fields.has_strangers() {
        let fault = Fault::new(fields.place, "a path needs `return`");
        reader.report(fault.hint(RETURN.help().to_owned()));
    }
    let forward = fields.node(&FORWARD).and_then(|node| road(&FORWARD, node, shared, reader));
    let back = fields.node(&RETURN).and_then(|node| road(&RETURN, node, shared, reader));
    (forward, back)
}

fn road(key: &Key<Road>, node: &Node, shared: &SharedElements, reader: &mut Reader) -> Drafts {
    let items = reader.list(key.name, node)?;
    if items.len() > MAX_ELEMENTS {
        let fault = Fault::new(node.place, "this road has too many elements");
        reader.report(fault.expected(format!("at most {MAX_ELEMENTS}")));
        return None;
    }
    let mut drafts: Vec<Option<Draft>> = Vec::with_capacity(items.len());
    for item in items {
        let draft = element::read(item, shared, reader);
        if let Some(Draft::Whole(Element::Shared(index))) = draft
            && drafts.iter().flatten().any(|before| before.is_shared(index))
        {
            let fault = Fault::new(item.place, "this road leads through it for a second time");
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
