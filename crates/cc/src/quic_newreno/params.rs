//! What tells one QUIC NewReno from another.

/// Behaviour as data. Start from a version and change fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Params {
    /// How the window grows in congestion avoidance.
    pub avoidance: Avoidance,
    /// Percent of the window kept at a loss (`kLossReductionFactor`).
    pub beta: u32,
    /// Datagrams of the initial window, within the bounds of RFC 9002 section 7.2.
    pub initial_window: u32,
    /// Datagrams of the least window (`kMinimumWindow`).
    pub minimum_window: u32,
    /// Is a packet that left in the very moment in which the recovery began part of it?
    pub start_belongs_to_recovery: bool,
    /// May one packet leave on entering recovery, whatever is in flight?
    pub one_packet_on_entry: bool,
    /// Is the threshold raised to the least window too?
    pub threshold_has_floor: bool,
    /// What becomes of the counter of acknowledged bytes.
    pub counter: Counter,
}

/// How the window grows in congestion avoidance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Avoidance {
    /// `cwnd += max_datagram_size * acked / cwnd` in integers (RFC 9002 appendix B.5).
    Fraction {
        /// What a division leaves is carried to the next.
        carries: bool,
    },
    /// One datagram once so many bytes are counted; those counted beyond the *new* window stay
    /// (INET's `accurateIncrease`).
    Counted {
        /// When it is due.
        trigger: Trigger,
    },
    /// One datagram once a window of bytes is counted, which are taken off (RFC 3465 section 2.1).
    WindowOfBytes,
}

/// When a counted increase is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    /// More than the window less a datagram is counted.
    LastDatagram,
    /// The whole window is counted.
    WholeWindow,
}

/// What becomes of the counter of acknowledged bytes (`partialBytesAcked`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counter {
    /// Packets that belong to a recovery count too, once past slow start.
    pub counts_in_recovery: bool,
    /// A loss clears it.
    pub cleared_at_loss: bool,
    /// An empty flight clears it (the rule of RFC 4960 section 7.2.2).
    pub cleared_when_empty: bool,
}

impl Params {
    /// RFC 9002 appendix B.
    pub const RFC9002: Self = Self {
        avoidance: Avoidance::Fraction { carries: false },
        beta: 50,
        initial_window: 10,
        minimum_window: 2,
        start_belongs_to_recovery: true,
        one_packet_on_entry: true,
        threshold_has_floor: false,
        counter: Counter {
            counts_in_recovery: false,
            cleared_at_loss: true,
            cleared_when_empty: false,
        },
    };

    /// INET of 14 February 2025 (58f2b31929), `accurateIncrease` on.
    pub const INET_2025_02: Self = Self {
        avoidance: Avoidance::Counted { trigger: Trigger::LastDatagram },
        one_packet_on_entry: false,
        threshold_has_floor: true,
        counter: Counter {
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
        counter: Counter { counts_in_recovery: true, ..Self::INET_2025_02.counter },
        ..Self::INET_2025_02
    };
}
