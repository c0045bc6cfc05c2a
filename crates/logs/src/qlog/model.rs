//! Events and their trace, independent of the version.

use serde_json::{Map, Value};
use units::Duration;

use super::encode;
use super::write::QlogFormat;

/// Vantage point of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Vantage {
    /// The client.
    Client,
    /// The server.
    Server,
    /// A device between them.
    Network,
    /// Unknown.
    #[default]
    Unknown,
}

impl Vantage {
    /// Its name in qlog.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
            Self::Network => "network",
            Self::Unknown => "unknown",
        }
    }
}

/// Metadata of a trace.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Trace {
    /// Name of the trace.
    pub title: String,
    /// Description.
    pub description: String,
    /// Vantage point.
    pub vantage: Vantage,
    /// Name of the vantage point.
    pub vantage_name: String,
    /// Group of the events: the original destination connection ID of QUIC.
    pub group_id: String,
    /// `QUIC`, and protocols above or instead of it.
    pub protocols: Vec<String>,
    /// Reference time since 1970; `None` if unknown.
    pub epoch: Option<Duration>,
}

/// An event.
#[derive(Debug, Clone, PartialEq)]
pub struct QlogEvent {
    /// Time since [`Trace::epoch`].
    pub at: Duration,
    /// Group, if it differs between events.
    pub group_id: Option<String>,
    /// Data.
    pub data: QlogData,
    /// Fields of its data beyond the model, as read.
    pub more: Map<String, Value>,
}

impl QlogEvent {
    /// An event without fields beyond the model.
    pub fn new(at: Duration, data: QlogData) -> Self {
        Self { at, group_id: None, data, more: Map::new() }
    }

    /// Its name in the drafts, with its namespace.
    pub fn name(&self) -> &str {
        encode::names(&self.data).0
    }

    /// All its fields, as written in [`QlogFormat::Current`].
    pub fn fields(&self) -> Map<String, Value> {
        encode::data(&self.data, &self.more, QlogFormat::Current)
    }
}

/// Data of an event.
#[derive(Debug, Clone, PartialEq)]
pub enum QlogData {
    /// `packet_sent`.
    PacketSent(QlogPacket),
    /// `packet_received`.
    PacketReceived(QlogPacket),
    /// `packet_lost`: a packet is declared lost.
    PacketLost {
        /// The packet.
        header: PacketHeader,
        /// `reordering_threshold`, `time_threshold`, `pto_expired`.
        trigger: Option<String>,
    },
    /// `recovery_metrics_updated` (`recovery:metrics_updated`).
    MetricsUpdated(Metrics),
    /// `congestion_state_updated`.
    CongestionStateUpdated {
        /// Previous state.
        old: Option<String>,
        /// New state: `slow_start`, `congestion_avoidance`, `recovery`, ...
        new: String,
        /// Trigger.
        trigger: Option<String>,
    },
    /// `timer_updated` (`loss_timer_updated`).
    LossTimerUpdated {
        /// `ack` or `pto`.
        timer_type: Option<String>,
        /// `set`, `expired` or `cancelled`.
        event_type: String,
        /// Time until it fires.
        delta: Option<Duration>,
    },
    /// `parameters_set`: transport parameters of one endpoint.
    ParametersSet(QlogParameters),
    /// `recovery_parameters_set` (`recovery:parameters_set`).
    RecoveryParametersSet(RecoveryParameters),
    /// `simulation:scenario`.
    Scenario {
        /// Its name.
        name: String,
        /// Details.
        details: Map<String, Value>,
    },
    /// `simulation:marker`.
    Marker {
        /// Its kind.
        kind: Option<String>,
        /// Message.
        message: Option<String>,
    },
    /// An event beyond the model; its fields are in [`QlogEvent::more`].
    Other {
        /// Its name, with its namespace.
        name: String,
    },
}

/// Identification of a packet.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PacketHeader {
    /// `initial`, `handshake`, `0RTT`, `1RTT`, ...; empty if unknown.
    pub packet_type: String,
    /// Packet number.
    pub packet_number: Option<u64>,
}

/// A packet sent or received.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct QlogPacket {
    /// Identification.
    pub header: PacketHeader,
    /// Length in bytes, headers included.
    pub length: Option<u64>,
    /// Frames.
    pub frames: Vec<QlogFrame>,
    /// Trigger of the transmission.
    pub trigger: Option<String>,
}

/// A frame of a packet.
#[derive(Debug, Clone, PartialEq)]
pub enum QlogFrame {
    /// Data of a stream.
    Stream {
        /// Stream ID.
        stream_id: u64,
        /// First byte.
        offset: u64,
        /// Bytes.
        length: u64,
        /// Whether it ends the stream.
        fin: bool,
    },
    /// Part of the handshake.
    Crypto {
        /// First byte.
        offset: u64,
        /// Bytes.
        length: u64,
    },
    /// An acknowledgment.
    Ack {
        /// Ranges of packet numbers, inclusive.
        ranges: Vec<(u64, u64)>,
        /// ACK delay.
        delay: Option<Duration>,
    },
    /// Flow control limit of the connection.
    MaxData {
        /// First byte that may not be sent.
        maximum: u64,
    },
    /// Flow control limit of a stream.
    MaxStreamData {
        /// Stream ID.
        stream_id: u64,
        /// First byte that may not be sent.
        maximum: u64,
    },
    /// Another frame, as read.
    Other(Map<String, Value>),
}

/// Recovery metrics of a sender; unchanged ones may be absent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Metrics {
    /// Minimum RTT.
    pub min_rtt: Option<Duration>,
    /// Smoothed RTT.
    pub smoothed_rtt: Option<Duration>,
    /// Latest RTT sample.
    pub latest_rtt: Option<Duration>,
    /// RTT variation.
    pub rtt_variance: Option<Duration>,
    /// Consecutive probe timeouts.
    pub pto_count: Option<u64>,
    /// Congestion window in bytes.
    pub congestion_window: Option<u64>,
    /// Bytes in flight.
    pub bytes_in_flight: Option<u64>,
    /// Slow-start threshold in bytes.
    pub ssthresh: Option<u64>,
    /// Packets in flight.
    pub packets_in_flight: Option<u64>,
    /// Pacing rate in bit/s.
    pub pacing_rate: Option<u64>,
}

/// Transport parameters.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QlogParameters {
    /// Owner: `local` or `remote` (`initiator`, in 0.3 `owner`).
    pub owner: Option<String>,
    /// Initial flow control limit of the connection.
    pub initial_max_data: Option<u64>,
    /// Initial limit of a stream that this endpoint opened.
    pub initial_max_stream_data_bidi_local: Option<u64>,
    /// Initial limit of a stream that the peer opened.
    pub initial_max_stream_data_bidi_remote: Option<u64>,
    /// Initial limit of a unidirectional stream.
    pub initial_max_stream_data_uni: Option<u64>,
    /// Maximum ACK delay, in milliseconds.
    pub max_ack_delay: Option<u64>,
    /// Exponent of the unit of ACK delays.
    pub ack_delay_exponent: Option<u64>,
    /// Largest datagram accepted.
    pub max_udp_payload_size: Option<u64>,
}

/// Constant parameters of loss detection and congestion control.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecoveryParameters {
    /// Reordering threshold in packets.
    pub reordering_threshold: Option<u64>,
    /// Resolution of timers, in milliseconds.
    pub timer_granularity: Option<u64>,
    /// Initial RTT.
    pub initial_rtt: Option<Duration>,
    /// Largest datagram in bytes.
    pub max_datagram_size: Option<u64>,
    /// Initial congestion window in bytes.
    pub initial_congestion_window: Option<u64>,
    /// Minimum congestion window in bytes.
    pub minimum_congestion_window: Option<u64>,
}
