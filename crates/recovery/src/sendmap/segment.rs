//! An outstanding segment, and counters over segments.

use units::{Instant, Offset};

/// A segment that was sent and is not acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct SentSegment {
    pub(super) start: Offset,
    pub(super) sent_at: Instant,
    pub(super) len: u32,
    pub(super) transmissions: u8,
    /// Retransmissions other than probes.
    pub(super) retransmissions: u8,
    pub(super) flags: u16,
}

/// At most half a cache line: a flight has tens of thousands of them.
const _: () = assert!(size_of::<SentSegment>() <= 32);

/// SACKed (`RACK_ACKED`, `TCPCB_SACKED_ACKED`).
pub(super) const SACKED: u16 = 1;
/// Marked lost (`TCPCB_LOST`); kept while the retransmission is in flight.
pub(super) const LOST: u16 = 1 << 1;
/// Retransmitted and believed in flight (`TCPCB_SACKED_RETRANS`).
pub(super) const RETRANS: u16 = 1 << 2;
/// A segment sent later has arrived (`RACK_SACK_PASSED`).
pub(super) const PASSED: u16 = 1 << 3;
/// Was passed when it was retransmitted (`RACK_WAS_SACKPASS`).
pub(super) const WAS_PASSED: u16 = 1 << 4;
/// Retransmitted as a tail loss probe (`RACK_TLP`).
pub(super) const PROBE: u16 = 1 << 5;
/// Was passed and has expired (`RACK_WAS_LOST`); until retransmitted.
pub(super) const EXPIRED: u16 = 1 << 6;
/// Flags that are counted besides [`SendMapCounters::all`].
pub(super) const COUNTED_FLAGS: u16 = SACKED | LOST | RETRANS | EXPIRED;
/// Carries PSH in every transmission (`tcp_flags` of Linux's `tcp_skb_cb`).
pub(super) const PUSH: u16 = 1 << 7;
/// Detected lost by its transmission time, and not retransmitted since: no longer in the order of transmission
/// (`tcp_tsorted_anchor`).
pub(super) const UNLISTED: u16 = 1 << 8;

impl SentSegment {
    /// First byte.
    pub const fn start(&self) -> Offset {
        self.start
    }

    /// The byte following the last.
    pub fn end(&self) -> Offset {
        self.start + u64::from(self.len)
    }

    /// Length in bytes.
    pub const fn len(&self) -> u64 {
        self.len as u64
    }

    /// False, since no segment is empty.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Time of the last transmission.
    pub const fn sent_at(&self) -> Instant {
        self.sent_at
    }

    /// Number of transmissions, at most 255.
    pub const fn transmissions(&self) -> u8 {
        self.transmissions
    }

    /// True if it was SACKed.
    pub const fn sacked(&self) -> bool {
        self.flags & SACKED != 0
    }

    /// True if it is marked lost; stays true while its retransmission is in flight.
    pub const fn lost(&self) -> bool {
        self.flags & LOST != 0
    }

    /// True if it was retransmitted and is believed in flight.
    pub const fn retrans_in_flight(&self) -> bool {
        self.flags & RETRANS != 0
    }

    /// True if a segment sent later has arrived.
    pub const fn passed(&self) -> bool {
        self.flags & PASSED != 0
    }

    /// True if it had been passed when it was last retransmitted, and not since.
    pub const fn was_passed(&self) -> bool {
        self.flags & WAS_PASSED != 0
    }

    /// True if its last transmission was a tail loss probe.
    pub const fn probe(&self) -> bool {
        self.flags & PROBE != 0
    }

    /// True if it carries PSH in every transmission.
    pub const fn pushed(&self) -> bool {
        self.flags & PUSH != 0
    }

    /// True if it awaits retransmission.
    pub const fn waits(&self) -> bool {
        self.flags & (LOST | RETRANS) == LOST
    }

    /// True if it is in flight, so that it may still be marked lost.
    pub const fn in_flight(&self) -> bool {
        self.flags & SACKED == 0 && !self.waits()
    }

    /// True if it was sent once and is in flight.
    pub(super) const fn in_flight_first_tx(&self) -> bool {
        self.transmissions == 1 && self.flags & (SACKED | LOST | UNLISTED) == 0
    }

    /// True if it was lost after its first transmission and awaits retransmission.
    pub(super) const fn first_tx_lost(&self) -> bool {
        self.transmissions == 1 && self.waits()
    }

    /// The converse of RACK_sent_after (RFC 8985 section 6.2).
    pub(super) fn sent_before(&self, sent_at: Instant, end: Offset) -> bool {
        self.sent_at < sent_at || (self.sent_at == sent_at && self.end() < end)
    }
}

/// Send time and sequence end of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TxStamp {
    /// Time of transmission.
    pub sent_at: Instant,
    /// The byte following its last.
    pub end: Offset,
}

/// A run of packets acknowledged while nothing was missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeliveredRun {
    /// Number of packets, at least one.
    pub packets: u64,
    /// The first packet.
    pub first: TxStamp,
    /// The last packet.
    pub last: TxStamp,
}

/// A number of packets and their bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize, serde::Serialize)]
pub struct SegmentCount {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

impl SegmentCount {
    pub(super) const fn add(&mut self, bytes: u64) {
        self.packets += 1;
        self.bytes += bytes;
    }

    pub(super) const fn take(&mut self, bytes: u64) {
        self.packets -= 1;
        self.bytes -= bytes;
    }
}

/// Counters over the outstanding segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize, serde::Serialize)]
pub struct SendMapCounters {
    /// All outstanding (`packets_out`).
    pub all: SegmentCount,
    /// SACKed (`sacked_out`).
    pub sacked: SegmentCount,
    /// Lost, retransmitted or not (`lost_out`).
    pub lost: SegmentCount,
    /// Retransmitted and in flight (`retrans_out`).
    pub retransmission: SegmentCount,
    /// Passed, expired and not retransmitted (`rc_considered_lost` of RACK).
    pub expired: SegmentCount,
    /// Bytes retransmitted other than by probes, until acknowledged, SACKed or not (`rc_holes_rxt`
    /// of RACK).
    pub holes_rxt_bytes: u64,
}

impl SendMapCounters {
    /// All zero.
    pub(super) const NONE: Self = {
        let none = SegmentCount { packets: 0, bytes: 0 };
        Self {
            all: none,
            sacked: none,
            lost: none,
            retransmission: none,
            expired: none,
            holes_rxt_bytes: 0,
        }
    };

    /// Packets in flight (tcp_packets_in_flight of Linux).
    #[inline(always)]
    pub const fn packets_in_flight(&self) -> u64 {
        // Without SACK those that have arrived are an estimate.
        let left = self.sacked.packets + self.lost.packets;
        (self.all.packets + self.retransmission.packets).saturating_sub(left)
    }

    /// Bytes in flight (RFC 6675 section 4).
    #[inline(always)]
    pub const fn pipe(&self) -> u64 {
        let arrived = self.sacked.bytes + self.lost.bytes;
        (self.all.bytes + self.retransmission.bytes).saturating_sub(arrived)
    }

    /// Bytes in flight as FreeBSD's RACK stack counts them (do_rack_compute_pipe): retransmitted
    /// bytes count twice, and stay counted when SACKed.
    pub const fn rack_pipe(&self) -> u64 {
        self.all.bytes + self.holes_rxt_bytes - self.sacked.bytes - self.expired.bytes
    }

    /// Adds a segment by its flags, except to [`SendMapCounters::all`].
    pub(super) const fn count(&mut self, flags: u16, bytes: u64) {
        if flags & SACKED != 0 {
            self.sacked.add(bytes);
        }
        if flags & LOST != 0 {
            self.lost.add(bytes);
        }
        if flags & RETRANS != 0 {
            self.retransmission.add(bytes);
        }
        if flags & EXPIRED != 0 {
            self.expired.add(bytes);
        }
    }

    /// Subtracts a segment, the reverse of [`SendMapCounters::count`].
    pub(super) const fn discount(&mut self, flags: u16, bytes: u64) {
        if flags & SACKED != 0 {
            self.sacked.take(bytes);
        }
        if flags & LOST != 0 {
            self.lost.take(bytes);
        }
        if flags & RETRANS != 0 {
            self.retransmission.take(bytes);
        }
        if flags & EXPIRED != 0 {
            self.expired.take(bytes);
        }
    }
}
