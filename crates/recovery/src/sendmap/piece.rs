//! A packet under way, and sums over packets.

use units::{Instant, Offset};

/// A packet that was sent and is not acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct Piece {
    pub(super) start: Offset,
    pub(super) sent_at: Instant,
    pub(super) len: u32,
    pub(super) transmissions: u8,
    /// Transmissions after the first one that were no probes.
    pub(super) again: u8,
    pub(super) marks: u8,
}

/// Half a cache line at most: a flight is tens of thousands of them.
const _: () = assert!(size_of::<Piece>() <= 32);

/// Reported to have arrived (`RACK_ACKED`, `TCPCB_SACKED_ACKED`).
pub(super) const SACKED: u8 = 1;
/// Taken for lost (`TCPCB_LOST`); stays while it is under way again.
pub(super) const LOST: u8 = 1 << 1;
/// Sent again and, as far as is known, under way (`TCPCB_SACKED_RETRANS`).
pub(super) const RESENT: u8 = 1 << 2;
/// Something sent later has arrived (`RACK_SACK_PASSED`).
pub(super) const PASSED: u8 = 1 << 3;
/// Was passed when it was sent again (`RACK_WAS_SACKPASS`).
pub(super) const WAS_PASSED: u8 = 1 << 4;
/// Sent again as a tail loss probe (`RACK_TLP`).
pub(super) const PROBE: u8 = 1 << 5;
/// Was passed, and its time is over (`RACK_WAS_LOST`); until it is sent again.
pub(super) const EXPIRED: u8 = 1 << 6;
/// What is counted beside [`Sums::all`].
pub(super) const COUNTED: u8 = SACKED | LOST | RESENT | EXPIRED;
/// Carries PSH whenever it is sent (`tcp_flags` of Linux's `tcp_skb_cb`).
pub(super) const PUSHED: u8 = 1 << 7;

impl Piece {
    /// First byte.
    pub const fn start(&self) -> Offset {
        self.start
    }

    /// Behind the last byte.
    pub fn end(&self) -> Offset {
        self.start + u64::from(self.len)
    }

    /// Bytes.
    pub const fn len(&self) -> u64 {
        self.len as u64
    }

    /// No piece is.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// When it left last.
    pub const fn sent_at(&self) -> Instant {
        self.sent_at
    }

    /// How often it was sent, at most 255.
    pub const fn transmissions(&self) -> u8 {
        self.transmissions
    }

    /// Was it reported to have arrived?
    pub const fn sacked(&self) -> bool {
        self.marks & SACKED != 0
    }

    /// Is it taken for lost? So it stays while it is under way again.
    pub const fn lost(&self) -> bool {
        self.marks & LOST != 0
    }

    /// Was it sent again, and is under way for all that is known?
    pub const fn resent(&self) -> bool {
        self.marks & RESENT != 0
    }

    /// Has something sent later arrived?
    pub const fn passed(&self) -> bool {
        self.marks & PASSED != 0
    }

    /// Was it passed when it was last sent again, and not since?
    pub const fn was_passed(&self) -> bool {
        self.marks & WAS_PASSED != 0
    }

    /// Was it last sent as a tail loss probe?
    pub const fn probe(&self) -> bool {
        self.marks & PROBE != 0
    }

    /// Does it carry PSH whenever it is sent?
    pub const fn pushed(&self) -> bool {
        self.marks & PUSHED != 0
    }

    /// Is it to be sent again?
    pub const fn waits(&self) -> bool {
        self.marks & (LOST | RESENT) == LOST
    }

    /// May it still be found lost?
    pub const fn under_way(&self) -> bool {
        self.marks & SACKED == 0 && !self.waits()
    }

    /// Sent once and under way.
    pub(super) const fn once(&self) -> bool {
        self.transmissions == 1 && self.marks & (SACKED | LOST) == 0
    }

    /// Lost after its first transmission, and to be sent again.
    pub(super) const fn fresh_lost(&self) -> bool {
        self.transmissions == 1 && self.waits()
    }

    /// RFC 8985 section 6.2 (RACK_sent_after), the other way round.
    pub(super) fn sent_before(&self, sent_at: Instant, end: Offset) -> bool {
        self.sent_at < sent_at || (self.sent_at == sent_at && self.end() < end)
    }
}

/// When a packet left, and where it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Departure {
    /// When it left.
    pub sent_at: Instant,
    /// Behind its last byte.
    pub end: Offset,
}

/// A row of packets that an acknowledgment took where nothing was missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// How many, at least one.
    pub packets: u64,
    /// The first of them.
    pub first: Departure,
    /// The last of them.
    pub last: Departure,
}

/// Packets and their bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize, serde::Serialize)]
pub struct Count {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

impl Count {
    pub(super) const fn add(&mut self, bytes: u64) {
        self.packets += 1;
        self.bytes += bytes;
    }

    pub(super) const fn take(&mut self, bytes: u64) {
        self.packets -= 1;
        self.bytes -= bytes;
    }
}

/// Sums over all that is not acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize, serde::Serialize)]
pub struct Sums {
    /// All of it (`packets_out`).
    pub all: Count,
    /// Reported (`sacked_out`).
    pub sacked: Count,
    /// Lost, sent again or not (`lost_out`).
    pub lost: Count,
    /// Under way again (`retrans_out`).
    pub resent: Count,
    /// Passed, out of time and not sent again (`rc_considered_lost` of RACK).
    pub expired: Count,
    /// Bytes sent again that were no probes, until they are acknowledged, reported or not
    /// (`rc_holes_rxt` of RACK).
    pub again_bytes: u64,
}

impl Sums {
    /// Over nothing.
    pub(super) const NONE: Self = {
        let none = Count { packets: 0, bytes: 0 };
        Self { all: none, sacked: none, lost: none, resent: none, expired: none, again_bytes: 0 }
    };

    /// Packets under way (tcp_packets_in_flight of Linux).
    #[inline(always)]
    pub const fn packets_in_flight(&self) -> u64 {
        self.all.packets + self.resent.packets - self.sacked.packets - self.lost.packets
    }

    /// Bytes under way (RFC 6675 section 4).
    #[inline(always)]
    pub const fn pipe(&self) -> u64 {
        self.all.bytes + self.resent.bytes - self.sacked.bytes - self.lost.bytes
    }

    /// Bytes under way as FreeBSD's RACK stack counts them (do_rack_compute_pipe): what went again
    /// counts twice, and stays counted when it is reported.
    pub const fn rack_pipe(&self) -> u64 {
        self.all.bytes + self.again_bytes - self.sacked.bytes - self.expired.bytes
    }

    /// Counts a piece by its marks, but for [`Sums::all`].
    pub(super) const fn count(&mut self, marks: u8, bytes: u64) {
        if marks & SACKED != 0 {
            self.sacked.add(bytes);
        }
        if marks & LOST != 0 {
            self.lost.add(bytes);
        }
        if marks & RESENT != 0 {
            self.resent.add(bytes);
        }
        if marks & EXPIRED != 0 {
            self.expired.add(bytes);
        }
    }

    /// The reverse of [`Sums::count`].
    pub(super) const fn discount(&mut self, marks: u8, bytes: u64) {
        if marks & SACKED != 0 {
            self.sacked.take(bytes);
        }
        if marks & LOST != 0 {
            self.lost.take(bytes);
        }
        if marks & RESENT != 0 {
            self.resent.take(bytes);
        }
        if marks & EXPIRED != 0 {
            self.expired.take(bytes);
        }
    }
}
