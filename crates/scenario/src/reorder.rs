//! `reorder` of a road: groups turned around, or single packets that others overtake.

use core::num::{NonZeroU32, NonZeroU64};

use sim::scenario::{Element, Only, Rule, reverse};
use units::{Duration, Ratio};

use super::chance::Share;
use super::keys::{Fields, Key, Reader};
use super::kinds::{Span, Whole};
use super::source::Fault;
use super::table::table;

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

table! {
    /// Changes of order.
    pub ReorderTable: SECTION = "`reorder`" {
        reverse: u64 = REVERSE,
        gap: Duration = GAP,
        displace: u64 = DISPLACE,
        swap: Ratio = SWAP,
        by: Duration = BY,
        fraction: Ratio = FRACTION,
        every: u64 = EVERY,
        timeout: Duration = TIMEOUT,
    }
    one_of: &["reverse", "displace", "swap", "by"],
    elsewhere: |key| match key {
        "only" => Some("`only` stands beside it: { reorder = { ... }, only = \"data\" }"),
        "delay" => Some("what makes a packet late is called `by`"),
        "share" | "probability" => Some("the share of packets concerned is called `fraction`"),
        _ => None,
    },
    check: check_companions,
}

/// The change of order of a table; `None` if a part is missing.
pub(super) fn element(table: &ReorderTable, only: Only) -> Option<Element> {
    let ReorderTable { reverse, gap, displace, swap, by, timeout, .. } = table;
    let timeout = timeout.as_ref().map(|timeout| timeout.value);
    let patience = timeout.unwrap_or(PATIENCE);
    if let Some(group) = reverse {
        return Some(Element::Reverse(reverse::Params {
            group: narrow(group.value)?,
            gap: gap.as_ref().map_or(Duration::ZERO, |gap| gap.value),
            timeout: timeout.unwrap_or(SILENCE),
            only,
        }));
    }
    if let Some(places) = displace {
        let (rule, places) = (rule(table)?, narrow(places.value)?);
        return Some(Element::Displace { rule, places, timeout: patience, only });
    }
    if let Some(share) = swap {
        let rule = Rule::Share(share.value);
        return Some(Element::Displace { rule, places: NonZeroU32::MIN, timeout: patience, only });
    }
    let by = by.as_ref()?.value;
    Some(Element::Late { rule: rule(table)?, by, only })
}

fn narrow(n: u64) -> Option<NonZeroU32> {
    u32::try_from(n).ok().and_then(NonZeroU32::new)
}

/// Which packets are concerned, for the forms that need it.
fn rule(table: &ReorderTable) -> Option<Rule> {
    let every = table.every.as_ref().and_then(|n| NonZeroU64::new(n.value));
    let fraction = table.fraction.as_ref().map(|share| Rule::Share(share.value));
    fraction.or(every.map(Rule::Every))
}

/// Keys that need others, or do not go with them.
fn check_companions(fields: &Fields<'_>, reader: &mut Reader) {
    if let (Some(_), Some(node)) = (fields.node(&FRACTION), fields.node(&EVERY)) {
        let message = "`reorder` has either `fraction` or `every`, not both";
        reader.report(Fault::new(node.place, message));
    }
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
