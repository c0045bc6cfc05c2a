//! The events of a run.

use serde::{Deserialize, Serialize};
use units::{Duration, Offset};

/// An event. Offsets count from 0 at the first payload byte of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Event {
    /// The connection is established on this side.
    Connected,
    /// This side has closed and the peer has acknowledged it.
    Closed,
    /// The connection was aborted.
    Aborted,
    /// A segment left the stack.
    Sent {
        /// First payload byte.
        at: Offset,
        /// Payload bytes.
        len: u32,
        /// Contents of the segment.
        kind: SentKind,
    },
    /// An acknowledgment moved `snd_una`.
    Acked {
        /// New `snd_una`.
        una: Offset,
        /// Bytes newly acknowledged.
        bytes: u32,
        /// ACKs that the host's LRO merged into this one, where it counts them; at least 1.
        nsegs: u16,
    },
    /// A duplicate ACK, the `count`-th in a row.
    DupAck {
        /// Duplicate ACKs in a row.
        count: u32,
    },
    /// The stack marked packets lost: by time (RACK), or as the last ones of a recovery that has
    /// nothing else to send (the rescue retransmission of RFC 6675).
    Lost {
        /// Packets marked lost, each once per transmission.
        packets: u32,
    },
    /// The congestion window or the slow-start threshold changed.
    Window {
        /// Congestion window in bytes.
        cwnd: u32,
        /// Slow-start threshold in bytes; `u32::MAX` while unset.
        ssthresh: u32,
        /// Cause of the change.
        cause: Cause,
    },
    /// A timer fired.
    Timer(Purpose),
    /// The stack has data or window left but sends nothing more for now.
    SendLimited(SendLimit),
    /// The application wrote to the send buffer.
    AppWrote {
        /// Bytes accepted.
        bytes: u32,
    },
    /// The application read from the receive buffer.
    AppRead {
        /// Bytes read.
        bytes: u32,
        /// Bytes read so far.
        total: Offset,
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
    Aggregated {
        /// Packets in it.
        packets: u16,
        /// Payload bytes in it.
        bytes: u32,
    },
    /// A queue dropped a packet because it was full.
    Dropped {
        /// Index of the element on its path, from 0.
        element: u16,
        /// IP bytes dropped.
        bytes: u32,
    },
    /// A round-trip time was measured.
    RttSample {
        /// The sample, in the granularity of the stack.
        rtt: Duration,
    },
    /// An acknowledgment covered bytes of a QUIC stream beyond `snd_una`: earlier bytes are still
    /// unacknowledged.
    StreamAcked {
        /// First byte covered.
        at: Offset,
        /// Bytes covered.
        len: u32,
    },
    /// An acknowledgment covered packets of a QUIC connection, in order or not.
    QuicPacketsAcked {
        /// In-flight packets newly acknowledged.
        packets: u32,
        /// Their bytes, QUIC headers included.
        bytes: u32,
    },
    /// A packet of a QUIC connection was declared lost; [`Event::Lost`] has the number of packets.
    QuicPacketLost {
        /// Packet number.
        number: u64,
        /// Packet number space: 0 Initial, 1 Handshake, 2 application data (RFC 9000 section 12.3).
        space: u8,
        /// Trigger of the loss.
        trigger: LossTrigger,
    },
    /// The kernel of a host was asked for its `tcp_info`: the sender's state is what it says, and these are
    /// counts of packets.
    TcpInfo {
        /// SACKed (`tcpi_sacked`).
        sacked: u32,
        /// Marked lost (`tcpi_lost`).
        lost: u32,
        /// Retransmitted and in flight (`tcpi_retrans`).
        retrans: u32,
        /// Retransmitted so far (`tcpi_total_retrans`).
        total_retrans: u32,
        /// Delivered so far (`tcpi_delivered`).
        delivered: u32,
    },
}

const _: () = assert!(size_of::<Event>() <= 32);

/// The contents of a sent segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SentKind {
    /// Part of the handshake or a bare FIN.
    Control,
    /// A pure acknowledgment.
    Ack,
    /// New data.
    New,
    /// Retransmitted data, for the given cause.
    Retransmission(Cause),
    /// A window probe or a keep-alive.
    Probe,
    /// A reset.
    Reset,
}

impl SentKind {
    /// Name in tables and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Control => "control",
            Self::Ack => "ack",
            Self::New => "new",
            Self::Retransmission(_) => "again",
            Self::Probe => "probe",
            Self::Reset => "reset",
        }
    }
}

/// Why a window changed or data was retransmitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, Serialize)]
pub enum Cause {
    /// The connection started.
    Start,
    /// Growth in slow start.
    SlowStart,
    /// Growth in congestion avoidance.
    Avoidance,
    /// Slow start ended by its own criterion (HyStart++).
    SlowStartExit,
    /// Loss detected by duplicate acknowledgments.
    FastRetransmit,
    /// A retransmission was lost: another recovery begins.
    LostRetransmission,
    /// No acknowledgment for two round trips (a tail loss probe).
    LossProbe,
    /// A partial acknowledgment during recovery.
    PartialAck,
    /// During recovery (window inflated or deflated).
    Recovering,
    /// Recovery ended.
    Recovered,
    /// The retransmission timer fired.
    Timeout,
    /// The timeout was spurious and was undone.
    Undone,
    /// The connection was idle.
    Idle,
    /// An ECN echo was received.
    Ecn,
    /// The path MTU shrank.
    PathMtu,
    /// After a zero-window probe.
    WindowProbe,
}

impl Cause {
    /// Name in tables and messages: `slow_start`.
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

/// The purpose of a timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Purpose {
    /// Retransmission.
    Retransmit,
    /// Delayed acknowledgment.
    DelayedAck,
    /// The RACK reordering timer.
    Reorder,
    /// A tail loss probe.
    LossProbe,
    /// Zero-window probe.
    Persist,
    /// Keep-alive probe of an idle peer.
    Keepalive,
    /// End of TIME-WAIT.
    TimeWait,
    /// Pacing releases the next packet.
    Pacing,
}

impl Purpose {
    /// Name in tables and messages: `delayed_ack`.
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

/// The trigger of a packet loss in QUIC (RFC 9002 section 6.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LossTrigger {
    /// A packet sent kPacketThreshold packets later was acknowledged.
    PacketThreshold,
    /// A later packet was acknowledged and kTimeThreshold has elapsed.
    TimeThreshold,
}

/// Why the sender sends nothing more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
pub enum SendLimit {
    /// The congestion window is full.
    CongestionWindow,
    /// The peer's receive window is full.
    PeerWindow,
    /// The application has written no more data.
    Application,
    /// A partial segment is held back (Nagle, silly-window avoidance).
    SmallSegment,
    /// The handshake is in progress.
    Handshake,
    /// All data is sent and the connection is closed.
    Done,
    /// Pacing: the next packet is not due yet.
    Pacing,
}
