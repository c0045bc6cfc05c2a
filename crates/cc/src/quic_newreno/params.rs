//! The differences between implementations of QUIC's NewReno.

/// Behaviour as data. Start from a version and change fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuicNewRenoParams {
    /// How the window grows in congestion avoidance.
    pub avoidance: QuicAvoidance,
    /// Percentage of the window kept at a loss (`kLossReductionFactor`).
    pub beta: u32,
    /// Datagrams of the initial window.
    pub initial_window: u32,
    /// Most bytes of the initial window, unless two datagrams are more.
    pub initial_limit: u64,
    /// Datagrams of the minimum window (`kMinimumWindow`).
    pub minimum_window: u32,
    /// True if a packet sent at the very start of the recovery belongs to it.
    pub start_belongs_to_recovery: bool,
    /// The order in which packets are sent, not their times, decides which belong to a recovery, and it ends with the
    /// largest one acknowledged (quic-go, `InRecovery`).
    pub recovery_by_order: bool,
    /// True if one packet may be sent on entering recovery, independent of the bytes in flight.
    pub one_packet_on_entry: bool,
    /// True if the minimum window also applies to the threshold.
    pub threshold_has_floor: bool,
    /// Rules of the counter of acknowledged bytes.
    pub counter: ByteCounterRule,
    /// When the window may grow.
    pub growth: QuicGrowthRule,
    /// True if a reduction is undone once all packets whose loss caused it are acknowledged.
    pub undoes: bool,
}

/// When an acknowledged packet may grow the window (RFC 9002 section 7.8).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuicGrowthRule {
    /// While neither the application nor flow control limits the sender.
    Limited,
    /// While the bytes in flight before the ACK leave no more than these datagrams of the window, or exceed half of it in
    /// slow start (quic-go, `isCwndLimited`).
    InFlight {
        /// Datagrams.
        datagrams: u64,
    },
}

/// How the window grows in congestion avoidance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuicAvoidance {
    /// `cwnd += max_datagram_size * acked / cwnd` in integers (RFC 9002 appendix B.5).
    Fraction {
        /// True if the remainder of a division is carried to the next.
        carries: bool,
    },
    /// One datagram per counted window; bytes counted beyond the *new* window are kept (INET's
    /// `accurateIncrease`).
    Counted {
        /// When the increase is due.
        trigger: IncreaseTrigger,
    },
    /// One datagram per counted window of bytes, which is subtracted (RFC 3465 section 2.1).
    WindowOfBytes,
    /// One datagram per window of packets, whatever their size, after which the count begins anew; in slow start a
    /// datagram for each packet (quic-go, `maybeIncreaseCwnd`).
    WindowOfPackets,
}

/// When a counted increase is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IncreaseTrigger {
    /// More than the window less a datagram is counted.
    LastDatagram,
    /// The whole window is counted.
    WholeWindow,
}

/// Rules of the counter of acknowledged bytes (`partialBytesAcked`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteCounterRule {
    /// Packets of a recovery count too, except in slow start.
    pub counts_in_recovery: bool,
    /// A loss clears it.
    pub cleared_at_loss: bool,
    /// It is cleared when nothing is in flight (the rule of RFC 4960 section 7.2.2).
    pub cleared_when_empty: bool,
}

impl QuicNewRenoParams {
    /// The initial window in bytes, for datagrams of `datagram` bytes (RFC 9002 section 7.2).
    pub const fn initial_window(&self, datagram: u32) -> u64 {
        let datagram = datagram as u64;
        let limit =
            if self.initial_limit < 2 * datagram { 2 * datagram } else { self.initial_limit };
        let window = self.initial_window as u64 * datagram;
        if window < limit { window } else { limit }
    }

    /// RFC 9002 appendix B.
    pub const RFC9002: Self = Self {
        avoidance: QuicAvoidance::Fraction { carries: false },
        beta: 50,
        initial_window: 10,
        initial_limit: 14_720,
        minimum_window: 2,
        start_belongs_to_recovery: true,
        recovery_by_order: false,
        one_packet_on_entry: true,
        threshold_has_floor: false,
        counter: ByteCounterRule {
            counts_in_recovery: false,
            cleared_at_loss: true,
            cleared_when_empty: false,
        },
        growth: QuicGrowthRule::Limited,
        undoes: false,
    };

    /// quinn-proto 0.11.19 (`congestion/new_reno.rs`): no packet on entering recovery; in congestion
    /// avoidance acknowledged bytes are counted up to a window, and the count is kept at a loss.
    pub const QUINN_0_11: Self = Self {
        avoidance: QuicAvoidance::WindowOfBytes,
        // `14720.clamp(2 * 1200, 10 * 1200)`, for any datagram.
        initial_limit: 12_000,
        one_packet_on_entry: false,
        counter: ByteCounterRule { cleared_at_loss: false, ..Self::RFC9002.counter },
        ..Self::RFC9002
    };

    /// quic-go v0.61.0 (`internal/congestion/cubic_sender.go`, with `reno`): 32 datagrams of 1,280 bytes at first, of
    /// which a loss keeps seven tenths. Its count of acknowledged packets is one of bytes here.
    pub const QUIC_GO_0_61: Self = Self {
        avoidance: QuicAvoidance::WindowOfBytes,
        beta: 70,
        initial_window: 32,
        initial_limit: 40_960,
        one_packet_on_entry: false,
        threshold_has_floor: true,
        recovery_by_order: true,
        ..Self::RFC9002
    };

    /// quic-go v0.65.0 (`internal/congestion/cubic_sender.go`, with `reno`): packets are counted, a window that is not
    /// used does not grow, and a reduction by losses that were none is undone (`renoUndoState`).
    pub const QUIC_GO_0_65: Self = Self {
        avoidance: QuicAvoidance::WindowOfPackets,
        growth: QuicGrowthRule::InFlight { datagrams: 3 },
        undoes: true,
        ..Self::QUIC_GO_0_61
    };

    /// picoquic of August 2026 (d199d45be, `newreno.c`): ten packets of 1,536 bytes, whatever the datagram;
    /// acknowledgments count in recovery too. The minimum window is two of those packets, here of datagrams.
    pub const PICOQUIC_1_1: Self = Self {
        initial_window: 11,
        initial_limit: 15_360,
        one_packet_on_entry: false,
        threshold_has_floor: true,
        counter: ByteCounterRule { counts_in_recovery: true, ..Self::RFC9002.counter },
        ..Self::RFC9002
    };

    /// INET of 14 February 2025 (58f2b31929), `accurateIncrease` on.
    pub const INET_2025_02: Self = Self {
        avoidance: QuicAvoidance::Counted { trigger: IncreaseTrigger::LastDatagram },
        one_packet_on_entry: false,
        threshold_has_floor: true,
        counter: ByteCounterRule {
            counts_in_recovery: false,
            cleared_at_loss: true,
            cleared_when_empty: true,
        },
        ..Self::RFC9002
    };

    /// INET of 13 March 2025 (6cf5aaa910), `accurateIncrease` on.
    pub const INET_2025_03: Self = Self {
        start_belongs_to_recovery: false,
        one_packet_on_entry: true,
        threshold_has_floor: false,
        counter: ByteCounterRule { counts_in_recovery: true, ..Self::INET_2025_02.counter },
        ..Self::INET_2025_02
    };
}
