//! `reorder` of a path: reversed groups, or single packets displaced or delayed.

use core::num::{NonZeroU32, NonZeroU64};

use sim::scenario::{ElementSpec, PacketClass, SelectionRule, reverse};
use units::{Duration, Ratio};

use super::chance::FractionType;
use super::keys::{Key, ScenarioReader, TableFields};
use super::kinds::{DurationType, IntegerType};
use super::source::SpannedError;
use super::table::table;

/// Maximum group size and displacement, in packets.
const MAX_DISPLACEMENT: u64 = 1_000_000;
const SILENCE: Duration = Duration::from_micros(500);
const DISPLACE_TIMEOUT: Duration = Duration::from_millis(100);

static REVERSE: Key<IntegerType> = Key::optional(
    "reverse",
    IntegerType { least: 2, most: MAX_DISPLACEMENT },
    "",
    "releases packets in groups of this size, each in reverse order",
);
static GAP: Key<DurationType> = Key::optional(
    "gap",
    DurationType { least: Duration::ZERO, default_unit: "us" },
    "0s",
    "with `reverse`: spacing of the packets of a group; groups do not wait for each other",
);
static DISPLACE: Key<IntegerType> = Key::optional(
    "displace",
    IntegerType { least: 1, most: MAX_DISPLACEMENT },
    "",
    "holds a packet until this many later ones have passed, one packet at a time",
);
static SWAP: Key<FractionType> = Key::optional(
    "swap",
    FractionType,
    "",
    "fraction of packets swapped with the next packet: `displace = 1`",
);
static BY: Key<DurationType> = Key::optional(
    "by",
    DurationType { least: Duration::from_nanos(1), default_unit: "ms" },
    "",
    "extra delay of the selected packets",
);
static FRACTION: Key<FractionType> = Key::optional(
    "fraction",
    FractionType,
    "",
    "with `displace` or `by`: fraction of packets selected",
);
static EVERY: Key<IntegerType> = Key::optional(
    "every",
    IntegerType { least: 1, most: 1_000_000_000_000 },
    "",
    "with `displace` or `by`: selects every n-th packet",
);
static TIMEOUT: Key<DurationType> = Key::optional(
    "timeout",
    DurationType { least: Duration::from_nanos(1), default_unit: "us" },
    "500us with `reverse`, else 100ms",
    "with `reverse`: releases a group that received no packet for this time; with `displace` or \
     `swap`: longest time a packet is held, even if too few others arrive",
);

table! {
    /// Packet reordering.
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
        "only" => Some("`only` belongs beside it: { reorder = { ... }, only = \"data\" }"),
        "delay" => Some("the extra delay is called `by`"),
        "share" | "probability" => Some("the fraction of packets selected is called `fraction`"),
        _ => None,
    },
    check: check_combinations,
}

/// Builds the element of a table; `None` if a key is missing.
pub(super) fn element(table: &ReorderTable, only: PacketClass) -> Option<ElementSpec> {
    let ReorderTable { reverse, gap, displace, swap, by, timeout, .. } = table;
    let timeout = timeout.as_ref().map(|timeout| timeout.value);
    let patience = timeout.unwrap_or(DISPLACE_TIMEOUT);
    if let Some(group) = reverse {
        return Some(ElementSpec::Reverse(reverse::ReverseParams {
            group: narrow(group.value)?,
            gap: gap.as_ref().map_or(Duration::ZERO, |gap| gap.value),
            timeout: timeout.unwrap_or(SILENCE),
            class: only,
        }));
    }
    if let Some(places) = displace {
        let (rule, places) = (rule(table)?, narrow(places.value)?);
        return Some(ElementSpec::Displace { rule, places, timeout: patience, only });
    }
    if let Some(share) = swap {
        let rule = SelectionRule::Share(share.value);
        return Some(ElementSpec::Displace {
            rule,
            places: NonZeroU32::MIN,
            timeout: patience,
            only,
        });
    }
    let by = by.as_ref()?.value;
    Some(ElementSpec::Late { rule: rule(table)?, by, only })
}

fn narrow(n: u64) -> Option<NonZeroU32> {
    u32::try_from(n).ok().and_then(NonZeroU32::new)
}

/// Returns the rule that selects packets, for the modes that need one.
fn rule(table: &ReorderTable) -> Option<SelectionRule> {
    let every = table.every.as_ref().and_then(|n| NonZeroU64::new(n.value));
    let fraction = table.fraction.as_ref().map(|share| SelectionRule::Share(share.value));
    fraction.or(every.map(SelectionRule::Every))
}

/// Reports keys that require or exclude others.
fn check_combinations(fields: &TableFields<'_>, reader: &mut ScenarioReader) {
    if let (Some(_), Some(node)) = (fields.node(&FRACTION), fields.node(&EVERY)) {
        let message = "`reorder` has either `fraction` or `every`, not both";
        reader.report(SpannedError::new(node.span, message));
    }
    let picks = fields.has(&FRACTION) || fields.has(&EVERY);
    for (form, place) in [("displace", fields.node(&DISPLACE)), ("by", fields.node(&BY))] {
        if let Some(node) = place.filter(|_| !picks) {
            let fault =
                SpannedError::new(node.span, format!("`{form}` needs `fraction` or `every`"));
            reader
                .report(fault.hint("select packets: fraction = \"1%\" or every = 100".to_owned()));
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
            reader.report(SpannedError::new(node.span, message));
        }
    }
}
