//! `slot`: delivery in bursts, as netem's `slot`.

use sim::scenario::SlotParams;
use units::{Bytes, Duration};

use super::keys::{Key, ScenarioReader};
use super::kinds::{DurationType, IntegerType, SizeType};
use super::source::SpannedError;
use super::table::table;
use crate::units_text::MAX_SIZE;

const MILLISECONDS: DurationType = DurationType { least: Duration::ZERO, default_unit: "ms" };

static MIN: Key<DurationType> =
    Key::required("min", MILLISECONDS, "shortest time to the next burst");
static MAX: Key<DurationType> = Key::optional(
    "max",
    MILLISECONDS,
    "`min`",
    "longest time to the next burst; each is uniform between the two",
);
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
        packets: u64 = PACKETS,
        bytes: Bytes = BYTES,
    }
    elsewhere: |key| match key {
        "delay" | "interval" | "every" => Some("the time between two bursts is `min`, or `min` to `max`"),
        _ => None,
    },
}

impl SlotTable {
    /// Converts to the simulator's parameters; reports an empty range.
    pub(super) fn params(&self, reader: &mut ScenarioReader) -> Option<SlotParams> {
        let min = self.min.as_ref()?.value;
        let max = self.max.as_ref().map_or(min, |max| max.value);
        if let Some(written) = self.max.as_ref().filter(|_| max < min) {
            let fault = SpannedError::new(written.span, "`max` is less than `min`");
            reader.report(fault.expected(format!("at least {min}")));
            return None;
        }
        let packets = self.packets.as_ref().map(|packets| packets.value as u32);
        Some(SlotParams { min, max, packets, bytes: self.bytes.as_ref().map(|bytes| bytes.value) })
    }
}
