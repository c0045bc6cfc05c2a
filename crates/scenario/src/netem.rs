//! `netem`: a random delay that reorders packets, with a rate and a limit, as in Linux's netem.

use sim::scenario::{Distribution, ElementSpec, NetemParams, NetemRate, NetemReorder};
use units::{Duration, Rate, Ratio};

use super::chance::FractionType;
use super::keys::{Key, ScenarioReader, TableFields};
use super::kinds::{DurationType, EnumType, IntegerType, RateType};
use super::source::SpannedError;
use super::table::table;

/// netem's `limit` without the option.
const DEFAULT_LIMIT: u64 = 1_000;
/// The longest jitter that netem computes with: 31 bits of nanoseconds.
const LONGEST_JITTER: Duration = Duration::from_nanos(i32::MAX as u64);

const MILLISECONDS: DurationType = DurationType { least: Duration::ZERO, default_unit: "ms" };
const OVERHEAD: IntegerType = IntegerType { least: 0, most: 65_535 };

static DELAY: Key<DurationType> = Key::optional("delay", MILLISECONDS, "0s", "mean delay");
static JITTER: Key<DurationType> = Key::optional(
    "jitter",
    MILLISECONDS,
    "0s",
    "random part of the delay: half the width of the uniform distribution, or the scale of another; \
     without a `rate`, packets leave in the order of their delays",
);
static CORRELATION: Key<FractionType> = Key::optional(
    "correlation",
    FractionType,
    "0%",
    "with `jitter`: weight of the previous packet's random number; as in Linux, the delays hardly \
     depend on it",
);
/// Distributions of netem by their names in tc.
pub(super) const DISTRIBUTIONS: EnumType<Distribution> = EnumType {
    names: &[
        ("uniform", Distribution::Uniform),
        ("normal", Distribution::Normal),
        ("pareto", Distribution::Pareto),
        ("paretonormal", Distribution::ParetoNormal),
    ],
};
static DISTRIBUTION: Key<EnumType<Distribution>> = Key::optional(
    "distribution",
    DISTRIBUTIONS,
    "\"uniform\"",
    "with `jitter`: distribution of the delay, the tables of iproute2",
);
static REORDER: Key<FractionType> = Key::optional(
    "reorder",
    FractionType,
    "none",
    "fraction of packets that leave at once, ahead of those in the delay",
);
static REORDER_CORRELATION: Key<FractionType> = Key::optional(
    "reorder_correlation",
    FractionType,
    "0%",
    "with `reorder`: weight of the previous random number",
);
static GAP: Key<IntegerType> = Key::optional(
    "gap",
    IntegerType { least: 1, most: u32::MAX as u64 },
    "1",
    "with `reorder`: a packet can leave at once after `gap` - 1 delayed ones",
);
static RATE: Key<RateType> =
    Key::optional("rate", RateType, "none", "transmission rate after the delay; keeps the order");
static PACKET_OVERHEAD: Key<IntegerType> = Key::optional(
    "overhead",
    OVERHEAD,
    "0",
    "with `rate`: bytes added to each packet; 14 for the Ethernet header, which tc counts",
);
static CELL: Key<IntegerType> = Key::optional(
    "cell",
    IntegerType { least: 1, most: 65_535 },
    "none",
    "with `rate`: bytes of a cell, into which packets are divided",
);
static CELL_OVERHEAD: Key<IntegerType> =
    Key::optional("cell_overhead", OVERHEAD, "0", "with `cell`: bytes added to each cell");
static LIMIT: Key<IntegerType> = Key::optional(
    "limit",
    IntegerType { least: 1, most: 1_000_000_000 },
    "1000",
    "maximum number of packets held, those in the delay included; others are lost",
);

table! {
    /// netem's queue by time.
    pub NetemTable: SECTION = "`netem`" {
        delay: Duration = DELAY,
        jitter: Duration = JITTER,
        correlation: Ratio = CORRELATION,
        distribution: Distribution = DISTRIBUTION,
        reorder: Ratio = REORDER,
        reorder_correlation: Ratio = REORDER_CORRELATION,
        gap: u64 = GAP,
        rate: Rate = RATE,
        overhead: u64 = PACKET_OVERHEAD,
        cell: u64 = CELL,
        cell_overhead: u64 = CELL_OVERHEAD,
        limit: u64 = LIMIT,
    }
    elsewhere: |key| match key {
        "loss" | "duplicate" | "corrupt" | "slot" => {
            Some("this is an element of its own: { loss = \"1%\" }, { netem = { ... } }")
        }
        "seed" => Some("the seed of all random numbers is the scenario's: seed = 1"),
        "buffer" => Some("the maximum number of packets is called `limit`"),
        "latency" => Some("the mean delay is called `delay`"),
        _ => None,
    },
    check: |fields, reader| {
        goes_with(fields, &CORRELATION, &JITTER, reader);
        goes_with(fields, &DISTRIBUTION, &JITTER, reader);
        goes_with(fields, &REORDER_CORRELATION, &REORDER, reader);
        goes_with(fields, &GAP, &REORDER, reader);
        goes_with(fields, &PACKET_OVERHEAD, &RATE, reader);
        goes_with(fields, &CELL, &RATE, reader);
        goes_with(fields, &CELL_OVERHEAD, &CELL, reader);
        goes_with(fields, &REORDER, &DELAY, reader);
    },
}

/// Reports a key without the one that it changes.
fn goes_with<T, U>(
    fields: &TableFields<'_>,
    key: &'static Key<T>,
    other: &'static Key<U>,
    reader: &mut ScenarioReader,
) {
    if let Some(node) = fields.node(key).filter(|_| !fields.has(other)) {
        let message = format!("`{}` goes with `{}`", key.name, other.name);
        reader.report(SpannedError::new(node.span, message));
    }
}

impl NetemTable {
    /// Converts to the simulator's element; reports a jitter that netem cannot have.
    pub(super) fn element(&self, reader: &mut ScenarioReader) -> Option<ElementSpec> {
        let fraction = |given: &Option<super::keys::Located<Ratio>>| {
            given.as_ref().map_or(Ratio::ZERO, |given| given.value)
        };
        let jitter = self.jitter.as_ref().map_or(Duration::ZERO, |jitter| jitter.value);
        if let Some(written) = self.jitter.as_ref().filter(|_| jitter > LONGEST_JITTER) {
            let fault = SpannedError::new(written.span, "netem has no jitter as long as this");
            reader.report(fault.expected(format!("at most {LONGEST_JITTER}")));
            return None;
        }
        let count = |given: &Option<super::keys::Located<u64>>, default: u64| {
            given.as_ref().map_or(default, |given| given.value)
        };
        let reorder = self.reorder.as_ref().map(|share| NetemReorder {
            share: share.value,
            correlation: fraction(&self.reorder_correlation),
            gap: count(&self.gap, 1) as u32,
        });
        let rate = self.rate.as_ref().map(|rate| NetemRate {
            rate: rate.value,
            overhead: count(&self.overhead, 0) as i32,
            cell: count(&self.cell, 0) as u32,
            cell_overhead: count(&self.cell_overhead, 0) as i32,
        });
        Some(ElementSpec::Netem(NetemParams {
            delay: self.delay.as_ref().map_or(Duration::ZERO, |delay| delay.value),
            jitter,
            distribution: self
                .distribution
                .as_ref()
                .map_or_else(Distribution::default, |d| d.value),
            correlation: fraction(&self.correlation),
            reorder,
            limit: count(&self.limit, DEFAULT_LIMIT) as u32,
            rate,
        }))
    }
}
