//! Token buckets: policers and shapers.

use sim::scenario::Framing;
use units::{Bytes, Rate};

use super::keys::Key;
use super::kinds::{BufferSizeType, IntegerType, RateType, SizeType};
use super::table::table;
use crate::units_text::{BufferSize, MAX_SIZE};

static BUCKET_RATE: Key<RateType> =
    Key::required("rate", RateType, "token rate, in bytes of IP packets");
static BURST: Key<SizeType> = Key::required(
    "burst",
    SizeType { least: Bytes(1), most: MAX_SIZE },
    "bucket size; the bucket starts full, and a larger packet never passes",
);
static SHAPER_BUFFER: Key<BufferSizeType> = Key::required(
    "buffer",
    BufferSizeType,
    "queue capacity; `1bdp` is the rate times the sum of the delays in both directions",
);

const FRAME: IntegerType = IntegerType { least: 0, most: 65_535 };
static HEADER: Key<IntegerType> = Key::optional(
    "header",
    FRAME,
    "0",
    "bytes added to each packet: 14 of Ethernet, which tc counts",
);
static OVERHEAD: Key<IntegerType> = Key::optional(
    "overhead",
    FRAME,
    "0",
    "further bytes, which the bucket counts and `buffer` does not",
);
static MPU: Key<IntegerType> =
    Key::optional("mpu", FRAME, "0", "least bytes of a packet in the bucket");
static CELL: Key<IntegerType> = Key::optional(
    "cell",
    IntegerType { least: 1, most: 65_535 },
    "none",
    "the bucket counts whole cells of this payload: 48 of ATM",
);
static CELL_OVERHEAD: Key<IntegerType> =
    Key::optional("cell_overhead", FRAME, "0", "bytes added to each cell: 5 of ATM");

table! {
    /// A token bucket without a queue.
    pub PolicerTable: POLICER_SECTION = "a policer" {
        rate: Rate = BUCKET_RATE,
        burst: Bytes = BURST,
    }
    elsewhere: |key| match key {
        "buffer" | "limit" | "queue" => Some("a bucket with a queue is a `shaper`"),
        _ => None,
    },
}

table! {
    /// A token bucket with a queue.
    pub ShaperTable: SHAPER_SECTION = "a shaper" {
        rate: Rate = BUCKET_RATE,
        burst: Bytes = BURST,
        buffer: BufferSize = SHAPER_BUFFER,
        header: u64 = HEADER,
        overhead: u64 = OVERHEAD,
        mpu: u64 = MPU,
        cell: u64 = CELL,
        cell_overhead: u64 = CELL_OVERHEAD,
    }
    elsewhere: |key| match key {
        "limit" | "queue" => Some("the queue capacity is called `buffer`"),
        _ => None,
    },
}

impl ShaperTable {
    /// What its line carries beside IP packets.
    pub(super) fn framing(&self) -> Framing {
        let of = |given: Option<u64>| given.unwrap_or(0) as u32;
        Framing {
            header: of(self.header.as_ref().map(|given| given.value)),
            overhead: of(self.overhead.as_ref().map(|given| given.value)) as i32,
            least: of(self.mpu.as_ref().map(|given| given.value)),
            cell: of(self.cell.as_ref().map(|given| given.value)),
            cell_overhead: of(self.cell_overhead.as_ref().map(|given| given.value)),
        }
    }
}
