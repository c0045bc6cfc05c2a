//! The vocabulary of events.

use serde::{Deserialize, Serialize};
use units::{Duration, Offset};

/// Something that happened. Offsets count from 0 at the first payload byte of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Event {
    /// The connection is established on this side.
    Connected,
    /// This side has closed and the peer has confirmed it.
    Closed,
    /// The connection was given up.
    Aborted,
    /// A segment left the stack.
    Sent {
        /// First payload byte.
        at: Offset,
        /// Payload bytes.
        len: u32,
        /// What it was.
        kind: SentKind,
    },
    /// An acknowledgment moved `snd_una`.
    Acked {
        /// New `snd_una`.
        una: Offset,
        /// Bytes newly acknowledged.
        bytes: u32,
        /// ACKs the host's LRO made one of, where it counts them; at least 1.
        nsegs: u16,
    },
    /// An acknowledgment that moved nothing, the `count`-th in a row.
    DupAck {
        /// Duplicates seen in a row.
        count: u32,
    },
    /// The stack takes packets for lost: by the time they were sent (RACK), or since they are the
    /// last of a recovery that has nothing else left (RFC 6675's rescue).
    Lost {
        /// How many, for the first time since they last left.
        packets: u32,
    },
    /// The congestion window or the slow-start threshold changed.
    Window {
        /// Congestion window in bytes.
        cwnd: u32,
        /// Slow-start threshold in bytes; `u32::MAX` while unset.
        ssthresh: u32,
        /// Why.
        cause: Cause,
    },
    /// A timer fired.
    Timer(Purpose),
    /// The stack has data or room but sends nothing more for now.
    Waiting(Waiting),
    /// The application handed bytes to the stack.
    Wrote {
        /// Bytes taken.
        bytes: u32,
    },
    /// The application took bytes from the stack.
    Read {
        /// Bytes taken.
        bytes: u32,
        /// All bytes taken so far.
        upto: Offset,
    },
    /// The send buffer was enlarged.
    SendBuffer {
        /// New size in bytes.
        size: u32,
    },
    /// The receive buffer was enlarged.
    ReceiveBuffer {
        /// New size in bytes.
        size: u32,
    },
    /// A receive offload handed one aggregate to the stack.
    Merged {
        /// Packets in it.
        packets: u16,
        /// Payload bytes in it.
        bytes: u32,
    },
    /// A queue had no room.
    Dropped {
        /// Number of the element on its path, from 0.
        element: u16,
        /// IP bytes lost.
        bytes: u32,
    },
    /// A round-trip time was measured.
    RttSample {
        /// The sample, in the granularity of the stack that took it.
        rtt: Duration,
    },
    /// An acknowledgment covered bytes of a QUIC stream beyond `snd_una`: they have arrived, others
    /// before them have not been acknowledged.
    Covered {
        /// The first of them.
        at: Offset,
        /// How many.
        len: u32,
    },
    /// An acknowledgment settled packets of a QUIC connection, in order or not.
    PacketsAcked {
        /// Packets newly acknowledged that count in flight.
        packets: u32,
        /// Their bytes, QUIC headers included.
        bytes: u32,
    },
    /// A packet of a QUIC connection is taken for lost; [`Event::Lost`] says how many were at once.
    PacketLost {
        /// Its number.
        number: u64,
        /// Its packet number space: 0 Initial, 1 Handshake, 2 application data (RFC 9000 section
        /// 12.3).
        space: u8,
        /// By what it was found.
        by: Evidence,
    },
}

const _: () = assert!(size_of::<Event>() <= 32);

/// What a sent segment was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SentKind {
    /// Part of the handshake or a bare FIN.
    Control,
    /// A bare acknowledgment.
    Ack,
    /// Bytes never sent before.
    New,
    /// Bytes sent before, for the reason given.
    Again(Cause),
    /// A probe of a closed window or of a silent peer.
    Probe,
    /// A reset.
    Reset,
}

impl SentKind {
    /// Its name in tables and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Control => "control",
            Self::Ack => "ack",
            Self::New => "new",
            Self::Again(_) => "again",
            Self::Probe => "probe",
            Self::Reset => "reset",
        }
    }
}

/// Why a window changed or something was sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, Serialize)]
pub enum Cause {
    /// The connection began.
    Start,
    /// Growth in slow start.
    SlowStart,
    /// Growth in congestion avoidance.
    Avoidance,
    /// Slow start ended by its own rule (HyStart++).
    SlowStartExit,
    /// Loss taken from duplicate acknowledgments.
    FastRetransmit,
    /// A retransmission was lost too: another recovery begins.
    LostRetransmission,
    /// No acknowledgment came for two round trips (a tail loss probe).
    LossProbe,
    /// A partial acknowledgment during recovery.
    PartialAck,
    /// Recovery runs (window inflated or deflated).
    Recovering,
    /// Recovery ended.
    Recovered,
    /// The retransmission timer fired.
    Timeout,
    /// The timeout proved spurious and was undone.
    Undone,
    /// The connection had been idle.
    Idle,
    /// An ECN echo arrived.
    Ecn,
    /// The path takes smaller segments.
    PathMtu,
    /// A byte had been sent to probe a closed window.
    WindowProbe,
}

impl Cause {
    /// Its name in tables and messages: `slow_start`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::SlowStart => "slow_start",
            Self::Avoidance => "avoidance",
            Self::SlowStartExit => "slow_start_exit",
            Self::FastRetransmit => "fast_retransmit",
            Self::LostRetransmission => "lost_retransmission",
            Self::LossProbe => "loss_probe",
            Self::PartialAck => "partial_ack",
            Self::Recovering => "recovering",
            Self::Recovered => "recovered",
            Self::Timeout => "timeout",
            Self::Undone => "undone",
            Self::Idle => "idle",
            Self::Ecn => "ecn",
            Self::PathMtu => "path_mtu",
            Self::WindowProbe => "window_probe",
        }
    }
}

/// What a deadline is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Purpose {
    /// Retransmission.
    Retransmit,
    /// Delayed acknowledgment.
    DelayedAck,
    /// What was passed by later packets has had its time (RACK).
    Reorder,
    /// A tail loss probe.
    LossProbe,
    /// Probe of a closed window.
    Persist,
    /// Probe of a peer that has long been silent.
    Keepalive,
    /// The last state of a connection runs out.
    TimeWait,
    /// Pacing lets the next packet go.
    Pacing,
}

impl Purpose {
    /// Its name in tables and messages: `delayed_ack`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Retransmit => "retransmit",
            Self::DelayedAck => "delayed_ack",
            Self::Reorder => "reorder",
            Self::LossProbe => "loss_probe",
            Self::Persist => "persist",
            Self::Keepalive => "keepalive",
            Self::TimeWait => "time_wait",
            Self::Pacing => "pacing",
        }
    }
}

/// What tells a QUIC sender that a packet is lost (RFC 9002 section 6.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Evidence {
    /// So many packets behind it one was acknowledged (kPacketThreshold).
    Order,
    /// It was passed, and its time is over (kTimeThreshold).
    Time,
}

/// Why nothing more is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
pub enum Waiting {
    /// The congestion window is full.
    CongestionWindow,
    /// The peer's window is full.
    PeerWindow,
    /// The application has given no more bytes.
    Application,
    /// A partial segment waits for more (Nagle, silly-window avoidance).
    SmallSegment,
    /// The handshake runs.
    Handshake,
    /// All is sent and closed.
    Done,
    /// Pacing: the next packet has its time.
    Pacing,
}
