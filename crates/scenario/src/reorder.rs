//! `reorder` of a road: groups turned around, or single packets that others overtake.

use core::num::NonZeroU32;

use sim::scenario::{Element, Only, Rule, reverse};
use units::Duration;

use super::chance::Share;
use super::keys::{Fields, Key, Reader, Section};
use super::kinds::{Span, Whole};
use super::source::Fault;
use super::tree::Node;

/// Most packets of a group, and most places.
const MAX_PLACES: u64 = 1_000_000;
const SILENCE: Duration = Duration::from_micros(500);
const PATIENCE: Duration = Duration::from_millis(100);

static REVERSE: Key<Whole> = Key::optional(
    "reverse",
    Whole { least: 2, most: MAX_PLACES },
    "",
    "packets come in groups of so many, each group last first",
);
static GAP: Key<Span> = Key::optional(
    "gap",
    Span { least: Duration::ZERO, usual: "us" },
    "0s",
    "with `reverse`: from one packet of a group to the next; groups do not wait for each other",
);
static DISPLACE: Key<Whole> = Key::optional(
    "displace",
    Whole { least: 1, most: MAX_PLACES },
    "",
    "a packet is overtaken by so many, one packet at a time",
);
static SWAP: Key<Share> = Key::optional(
    "swap",
    Share,
    "",
    "this share of packets changes places with the next: `displace = 1`",
);
static BY: Key<Span> = Key::optional(
    "by",
    Span { least: Duration::from_nanos(1), usual: "ms" },
    "",
    "a packet comes this much late",
);
static FRACTION: Key<Share> =
    Key::optional("fraction", Share, "", "with `displace` or `by`: share of packets concerned");
static EVERY: Key<Whole> = Key::optional(
    "every",
    Whole { least: 1, most: 1_000_000_000_000 },
    "",
    "with `displace` or `by`: every n-th packet is concerned",
);
static TIMEOUT: Key<Span> = Key::optional(
    "timeout",
    Span { least: Duration::from_nanos(1), usual: "us" },
    "500us with `reverse`, else 100ms",
    "with `reverse`: a group that gets no further packet for so long is complete; with `displace` \
     or `swap`: a packet is held no longer, even if not enough others come",
);

/// Changes of order.
pub(super) static SECTION: Section = Section {
    what: "`reorder`",
    keys: &[&REVERSE, &GAP, &DISPLACE, &SWAP, &BY, &FRACTION, &EVERY, &TIMEOUT],
    one_of: &["reverse", "displace", "swap", "by"],
    elsewhere: |key| match key {
        "only" => Some("`only` stands beside it: { reorder = { ... }, only = \"data\" }"),
        "delay" => Some("what makes a packet late is called `by`"),
        "share" | "probability" => Some("the share of packets concerned is called `fraction`"),
        _ => None,
    },
};

/// Reads a change of order.
pub(super) fn read(node: &Node, only: Only, reader: &mut Reader) -> Option<Element> {
    let fields = Fields::open(&SECTION, node, reader)?;
    let reverse = fields.get(&REVERSE, reader).and_then(|group| narrow(group.value));
    let displace = fields.get(&DISPLACE, reader).and_then(|places| narrow(places.value));
    let swap = fields.get(&SWAP, reader).map(|share| Rule::Share(share.value));
    let by = fields.get(&BY, reader).map(|by| by.value);
    let gap = fields.get(&GAP, reader).map(|gap| gap.value);
    let timeout = fields.get(&TIMEOUT, reader).map(|timeout| timeout.value);
    let rule = rule(&fields, reader);
    check_companions(&fields, reader);
    let patience = timeout.unwrap_or(PATIENCE);
    Some(match (reverse, displace, swap, by) {
        (Some(group), ..) => Element::Reverse(reverse::Params {
            group,
            gap: gap.unwrap_or(Duration::ZERO),
            timeout: timeout.unwrap_or(SILENCE),
            only,
        }),
        (_, Some(places), ..) => Element::Displace { rule: rule?, places, timeout: patience, only },
        (.., Some(rule), _) => {
            Element::Displace { rule, places: NonZeroU32::MIN, timeout: patience, only }
        }
        (.., Some(by)) => Element::Late { rule: rule?, by, only },
        _ => return None,
    })
}

fn narrow(n: u64) -> Option<NonZeroU32> {
    u32::try_from(n).ok().and_then(NonZeroU32::new)
}

/// Which packets are concerned, where that is a question.
fn rule(fields: &Fields<'_>, reader: &mut Reader) -> Option<Rule> {
    let fraction = fields.get(&FRACTION, reader).map(|share| Rule::Share(share.value));
    let every = fields.get(&EVERY, reader).and_then(|n| core::num::NonZeroU64::new(n.value));
    if let (Some(_), Some(node)) = (fields.node(&FRACTION), fields.node(&EVERY)) {
        let message = "`reorder` has either `fraction` or `every`, not both";
        reader.report(Fault::new(node.place, message));
    }
    fraction.or(every.map(Rule::Every))
}

/// Keys that need others, or do not go with them.
fn check_companions(fields: &Fields<'_>, reader: &mut Reader) {
    let picks = fields.has(&FRACTION) || fields.has(&EVERY);
    for (form, place) in [("displace", fields.node(&DISPLACE)), ("by", fields.node(&BY))] {
        if let Some(node) = place.filter(|_| !picks) {
            let fault = Fault::new(node.place, format!("`{form}` needs `fraction` or `every`"));
            reader.report(fault.hint("which packets? fraction = \"1%\" or every = 100".to_owned()));
        }
    }
    let form = match () {
        () if fields.has(&REVERSE) => "reverse",
        () if fields.has(&DISPLACE) => "displace",
        () if fields.has(&SWAP) => "swap",
        () if fields.has(&BY) => "by",
        () => return,
    };
    let companions = [
        ("gap", fields.node(&GAP), &["reverse"][..]),
        ("timeout", fields.node(&TIMEOUT), &["reverse", "displace", "swap"]),
        ("fraction", fields.node(&FRACTION), &["displace", "by"]),
        ("every", fields.node(&EVERY), &["displace", "by"]),
    ];
    for (name, node, forms) in companions {
        if let Some(node) = node.filter(|_| !forms.contains(&form)) {
            let message = format!("`{name}` does not go with `{form}`");
            reader.report(Fault::new(node.place, message));
        }
    }
}
