//! `slot`: delivery in bursts, as netem's `slot`.

use sim::scenario::{Distribution, SlotParams, SlotSpread};
use units::{Bytes, Duration};

use super::keys::{Key, ScenarioReader};
use super::kinds::{DurationType, EnumType, IntegerType, SizeType};
use super::netem::DISTRIBUTIONS;
use super::source::SpannedError;
use super::table::table;
use crate::units_text::MAX_SIZE;

const MILLISECONDS: DurationType = DurationType { least: Duration::ZERO, default_unit: "ms" };

static MIN: Key<DurationType> =
    Key::optional("min", MILLISECONDS, "", "shortest time to the next burst");
static MAX: Key<DurationType> = Key::optional(
    "max",
    MILLISECONDS,
    "`min`",
    "longest time to the next burst; each is uniform between the two",
);
static DELAY: Key<DurationType> =
    Key::optional("delay", MILLISECONDS, "", "mean time to the next burst");
static JITTER: Key<DurationType> =
    Key::optional("jitter", MILLISECONDS, "0s", "with `delay`: its random part, as of `netem`");
static DISTRIBUTION: Key<EnumType<Distribution>> =
    Key::optional("distribution", DISTRIBUTIONS, "\"uniform\"", "with `jitter`, as of `netem`");
static PACKETS: Key<IntegerType> = Key::optional(
    "packets",
    IntegerType { least: 1, most: u32::MAX as u64 },
    "unlimited",
    "maximum packets of a burst",
);
static BYTES: Key<SizeType> = Key::optional(
    "bytes",
    SizeType { least: Bytes(1), most: MAX_SIZE },
    "unlimited",
    "bytes of IP packets that end a burst; the packet that reaches them still passes",
);

table! {
    /// Delivery in bursts.
    pub SlotTable: SECTION = "`slot`" {
        min: Duration = MIN,
        max: Duration = MAX,
        delay: Duration = DELAY,
        jitter: Duration = JITTER,
        distribution: Distribution = DISTRIBUTION,
        packets: u64 = PACKETS,
        bytes: Bytes = BYTES,
    }
    one_of: &["min", "delay"],
    elsewhere: |key| match key {
        "interval" | "every" => Some("the time between two bursts is `min`, or `min` to `max`"),
        _ => None,
    },
}

impl SlotTable {
    /// Converts to the simulator's parameters; reports an empty range.
    pub(super) fn params(&self, reader: &mut ScenarioReader) -> Option<SlotParams> {
        let packets = self.packets.as_ref().map(|packets| packets.value as u32);
        let bytes = self.bytes.as_ref().map(|bytes| bytes.value);
        if let Some(delay) = &self.delay {
            if let Some(written) = &self.max {
                reader.report(SpannedError::new(written.span, "`max` goes with `min`"));
                return None;
            }
            let jitter = self.jitter.as_ref().map_or(Duration::ZERO, |jitter| jitter.value);
            let distribution = self.distribution.as_ref().map(|one| one.value).unwrap_or_default();
            let spread = Some(SlotSpread { delay: delay.value, jitter, distribution });
            let (min, max) = (Duration::ZERO, Duration::ZERO);
            return Some(SlotParams { min, max, spread, packets, bytes });
        }
        let spans = [
            self.jitter.as_ref().map(|one| one.span),
            self.distribution.as_ref().map(|one| one.span),
        ];
        if let Some(span) = spans.into_iter().flatten().next() {
            let fault = SpannedError::new(span, "`jitter` and `distribution` go with `delay`");
            reader.report(fault.hint("slot = { delay = \"1ms\", jitter = \"100us\" }".to_owned()));
            return None;
        }
        let min = self.min.as_ref()?.value;
        let max = self.max.as_ref().map_or(min, |max| max.value);
        if let Some(written) = self.max.as_ref().filter(|_| max < min) {
            let fault = SpannedError::new(written.span, "`max` is less than `min`");
            reader.report(fault.expected(format!("at least {min}")));
            return None;
        }
        Some(SlotParams { min, max, spread: None, packets, bytes })
    }
}
