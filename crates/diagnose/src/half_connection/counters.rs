//! Counts of the data of one direction.

use units::{Duration, Instant, Offset};

use crate::coverage::Coverage;
use crate::dispersion::Dispersion;
use crate::ip_ids::IpIdCounter;
use crate::ranges::StreamRanges;
use crate::reordering::ReorderingStats;
use crate::transmissions::Transmissions;

/// Most ranges of acknowledged bytes that are remembered because they may be captured yet.
const MAX_UNSEEN_RANGES: usize = 64;

/// Transmissions and their ACKs.
#[derive(Debug, Clone, Default)]
pub(crate) struct TransferCounters {
    pub(crate) sent: Transmissions,
    pub(crate) reordering: ReorderingStats,
    pub(crate) coverage: Coverage,
}

/// The size of a full segment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SegmentSize {
    /// In bytes.
    pub(crate) mss: u64,
    /// The handshake has it.
    is_known: bool,
    /// Largest payload that served as an estimate; 0 without one.
    largest: u32,
    /// Where the first full segment begins.
    first_full: Option<Offset>,
}

impl SegmentSize {
    pub(super) fn new(mss: Option<u32>) -> Self {
        Self {
            mss: u64::from(mss.unwrap_or(1_448)),
            is_known: mss.is_some(),
            largest: 0,
            first_full: None,
        }
    }

    /// Estimates the size of a segment from data. Without the handshake the largest packet is the best
    /// estimate. A capture above TSO shows longer ones, so sizes beyond an Ethernet frame do not count
    /// if a smaller one was seen.
    pub(super) fn update(&mut self, payload: u32) {
        let is_larger = payload > self.largest && payload <= 9_000;
        if !self.is_known && is_larger && (payload <= 1_460 || self.largest == 0) {
            self.largest = payload;
            self.mss = u64::from(if payload <= 1_460 { payload } else { 1_448 });
        }
    }

    /// Records where the first full segment of the stream begins.
    pub(super) fn on_data(&mut self, start: Offset, payload: u32) {
        if u64::from(payload) * 10 >= self.mss * 9 && self.first_full.is_none() {
            self.first_full = Some(start);
        }
    }

    /// Whether of all full segments not even the first was acknowledged.
    pub(crate) fn only_smaller_passed(&self, una: Offset) -> bool {
        self.first_full.is_some_and(|start| una <= start)
    }

    /// Number of segments of `bytes`, at least one.
    pub(super) fn packets(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.mss).max(1)
    }
}

/// Bytes that reached the receiver.
#[derive(Debug, Clone)]
pub(crate) struct Deliveries {
    bytes: u64,
    pub(crate) dispersion: Dispersion,
    /// Time of the last one that an ACK showed.
    pub(crate) last_at: Instant,
}

impl Default for Deliveries {
    fn default() -> Self {
        Self { bytes: 0, dispersion: Dispersion::default(), last_at: Instant::ZERO }
    }
}

impl Deliveries {
    pub(super) fn add(&mut self, at: Instant, bytes: u64, mss: u64, rtt: Duration) {
        self.bytes += bytes;
        self.dispersion.delivered(at, bytes, self.bytes, mss, rtt);
        self.last_at = at;
    }
}

/// Bytes of the stream that were captured, and those acknowledged that the capture does not have.
#[derive(Debug, Clone)]
pub(crate) struct CapturedBytes {
    /// Distinct bytes captured.
    pub(crate) captured: u64,
    /// Bytes acknowledged and not captured.
    pub(crate) unseen: u64,
    /// The latest ranges of them.
    ranges: StreamRanges,
    /// Time of the last ACK that covered some.
    unseen_at: Instant,
}

impl Default for CapturedBytes {
    fn default() -> Self {
        let ranges = StreamRanges::default();
        Self { captured: 0, unseen: 0, ranges, unseen_at: Instant::ZERO }
    }
}

impl CapturedBytes {
    /// Bytes of the stream that were captured or acknowledged.
    pub(crate) const fn all(&self) -> u64 {
        self.captured + self.unseen
    }

    /// Counts bytes that were acknowledged and have not been captured.
    pub(super) fn add_unseen(&mut self, (start, end): (Offset, Offset), at: Instant) {
        self.unseen += end - start;
        self.unseen_at = at;
        self.ranges.add(start, end, |_, _| {});
        self.ranges.limit(MAX_UNSEEN_RANGES);
    }

    /// Moves bytes that were acknowledged before they were captured from the unseen to the captured
    /// ones. True if these data are no retransmission: all of them are new here, and an ACK passed so
    /// shortly before that only the capture can have put it first, as it does with packets of several
    /// NIC queues.
    pub(super) fn capture_after_ack(
        &mut self,
        (start, end): (Offset, Offset),
        at: Instant,
        reaction: Duration,
    ) -> bool {
        let found = self.ranges.remove(start, end);
        self.captured += found;
        self.unseen -= found;
        found == end - start && at.since(self.unseen_at) <= reaction
    }
}

/// Explicit congestion notification.
#[derive(Debug, Clone)]
pub(crate) struct EcnEchoes {
    /// Segments with ECE.
    pub(crate) echoes: u64,
    /// Packets of data that were marked.
    pub(crate) marked: u64,
    response: EcnResponse,
    /// The data in flight at the last ECE that began a round end at this offset.
    recover: Offset,
}

/// Whether the sender has answered ECE with CWR.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum EcnResponse {
    #[default]
    Done,
    Due,
}

impl EcnEchoes {
    pub(super) const fn new(recover: Offset) -> Self {
        Self { echoes: 0, marked: 0, response: EcnResponse::Done, recover }
    }

    /// The sender receives ECE.
    pub(super) const fn on_echo(&mut self) {
        self.response = EcnResponse::Due;
    }

    /// Whether ECE begins a round: all data in flight at the last one are acknowledged.
    pub(super) fn begins_round(&mut self, una: Offset, nxt: Offset) -> bool {
        let begins = una >= self.recover;
        if begins {
            self.recover = nxt;
        }
        begins
    }

    /// The sender sends CWR; true if it answers an ECE.
    pub(super) fn on_cwr(&mut self) -> bool {
        core::mem::take(&mut self.response) == EcnResponse::Due
    }
}

/// Packets of the sender that are missing before the current one.
#[derive(Debug, Clone, Default)]
pub(crate) struct MissingBefore {
    /// IPv4 identifications of the sender.
    ids: IpIdCounter,
    /// Packets that they show to be missing.
    packets: Option<u16>,
    /// The current data leave a gap below them.
    pub(super) in_stream: bool,
}

impl MissingBefore {
    /// Records the identification of the next packet.
    pub(super) fn next(&mut self, id: u16) {
        self.packets = self.ids.next(id);
    }

    /// Records whether new data leave a gap below them. What should have come first is missing,
    /// whatever the counter of packets says.
    pub(super) fn on_new_data(&mut self, leaves_gap: bool) {
        self.in_stream = leaves_gap;
        if leaves_gap {
            self.packets = Some(self.packets.unwrap_or(0).max(1));
        }
    }

    /// Whether the host numbers its packets, so that missing ones show.
    pub(super) fn is_counted(&self) -> bool {
        self.packets.is_some()
    }

    /// Packets that this host sent before the last one and that the capture does not have, if it
    /// numbers its packets.
    pub(super) fn has_packets(&self) -> bool {
        self.packets.is_some_and(|packets| packets > 0)
    }
}
