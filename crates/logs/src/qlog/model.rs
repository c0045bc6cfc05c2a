//! Events and the trace they belong to, whatever generation they are written in.

use serde_json::{Map, Value};
use units::Duration;

use super::encode;
use super::write::Form;

/// Whose log it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Vantage {
    /// The end that opened the connection.
    Client,
    /// The end that accepted it.
    Server,
    /// Somebody between.
    Network,
    /// Not told.
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

/// What holds for all events of a trace.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Trace {
    /// Name of the trace.
    pub title: String,
    /// What it shows.
    pub description: String,
    /// Who logs.
    pub vantage: Vantage,
    /// Its name.
    pub vantage_name: String,
    /// What the events belong to: the original destination connection id of QUIC.
    pub group_id: String,
    /// `QUIC`, and what lies above or stands in for it.
    pub protocols: Vec<String>,
    /// The moment since 1970 from which times count; `None` if it is not told.
    pub epoch: Option<Duration>,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// When, since [`Trace::epoch`].
    pub at: Duration,
    /// What it belongs to, where that differs from event to event.
    pub group_id: Option<String>,
    /// What.
    pub data: Data,
    /// Fields of its data that the model here does not have, as they were.
    pub more: Map<String, Value>,
}

impl Event {
    /// An event with nothing beyond the model.
    pub fn new(at: Duration, data: Data) -> Self {
        Self { at, group_id: None, data, more: Map::new() }
    }

    /// Its name in the drafts, with its namespace.
    pub fn name(&self) -> &str {
        encode::names(&self.data).0
    }

    /// All its fields, as they are written in [`Form::Current`].
    pub fn fields(&self) -> Map<String, Value> {
        encode::data(&self.data, &self.more, Form::Current)
    }
}

/// What happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Data {
    /// `packet_sent`.
    PacketSent(Packet),
    /// `packet_received`.
    PacketReceived(Packet),
    /// `packet_lost`: a packet is given up.
    PacketLost {
        /// Which.
        header: PacketHeader,
        /// `reordering_threshold`, `time_threshold`, `pto_expired`.
        trigger: Option<String>,
    },
    /// `recovery_metrics_updated` (`recovery:metrics_updated`).
    MetricsUpdated(Metrics),
    /// `congestion_state_updated`.
    CongestionStateUpdated {
        /// Where it comes from.
        old: Option<String>,
        /// Where it goes: `slow_start`, `congestion_avoidance`, `recovery`, ...
        new: String,
        /// Why.
        trigger: Option<String>,
    },
    /// `timer_updated` (`loss_timer_updated`).
    LossTimerUpdated {
        /// `ack` or `pto`.
        timer_type: Option<String>,
        /// `set`, `expired` or `cancelled`.
        event_type: String,
        /// Until it fires.
        delta: Option<Duration>,
    },
    /// `parameters_set`: transport parameters of one end.
    ParametersSet(Parameters),
    /// `recovery_parameters_set` (`recovery:parameters_set`).
    RecoveryParametersSet(RecoveryParameters),
    /// `simulation:scenario`.
    Scenario {
        /// Its name.
        name: String,
        /// Its particulars.
        details: Map<String, Value>,
    },
    /// `simulation:marker`.
    Marker {
        /// Its kind.
        kind: Option<String>,
        /// What it says.
        message: Option<String>,
    },
    /// An event the model does not have; its fields stand in [`Event::more`].
    Other {
        /// Its name, with its namespace.
        name: String,
    },
}

/// What identifies a packet.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PacketHeader {
    /// `initial`, `handshake`, `0RTT`, `1RTT`, ...; empty if it is not told.
    pub packet_type: String,
    /// Its number.
    pub packet_number: Option<u64>,
}

/// A packet sent or received.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Packet {
    /// What identifies it.
    pub header: PacketHeader,
    /// Its bytes, headers included.
    pub length: Option<u64>,
    /// What is in it.
    pub frames: Vec<Frame>,
    /// Why it went.
    pub trigger: Option<String>,
}

/// Part of a packet.
#[derive(Debug, Clone, PartialEq)]
pub enum Frame {
    /// Data of a stream.
    Stream {
        /// Which stream.
        stream_id: u64,
        /// First byte.
        offset: u64,
        /// Bytes.
        length: u64,
        /// Is it the end?
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
        /// Packets from and to, the last one included.
        ranges: Vec<(u64, u64)>,
        /// How long it was held.
        delay: Option<Duration>,
    },
    /// How much may be sent on the connection.
    MaxData {
        /// First byte that may not.
        maximum: u64,
    },
    /// How much may be sent on a stream.
    MaxStreamData {
        /// Which stream.
        stream_id: u64,
        /// First byte that may not.
        maximum: u64,
    },
    /// Anything else, as it was.
    Other(Map<String, Value>),
}

/// What a sender knows; only what changed need be there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Metrics {
    /// Least round trip.
    pub min_rtt: Option<Duration>,
    /// Smoothed round trip.
    pub smoothed_rtt: Option<Duration>,
    /// The last one measured.
    pub latest_rtt: Option<Duration>,
    /// Its variation.
    pub rtt_variance: Option<Duration>,
    /// Timeouts in a row.
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
pub struct Parameters {
    /// Whose they are: `local` or `remote` (`initiator`, in 0.3 `owner`).
    pub owner: Option<String>,
    /// How much may be sent on the connection at first.
    pub initial_max_data: Option<u64>,
    /// How much on a stream that this end opened.
    pub initial_max_stream_data_bidi_local: Option<u64>,
    /// How much on a stream that the peer opened.
    pub initial_max_stream_data_bidi_remote: Option<u64>,
    /// How much on a one-way stream.
    pub initial_max_stream_data_uni: Option<u64>,
    /// Longest delay of an ACK, in milliseconds.
    pub max_ack_delay: Option<u64>,
    /// Unit of ACK delays, as a power of two.
    pub ack_delay_exponent: Option<u64>,
    /// Largest datagram taken.
    pub max_udp_payload_size: Option<u64>,
}

/// Parameters of loss detection and congestion control that do not change.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecoveryParameters {
    /// Packets by which one may be late.
    pub reordering_threshold: Option<u64>,
    /// Resolution of timers, in milliseconds.
    pub timer_granularity: Option<u64>,
    /// Round trip supposed at first.
    pub initial_rtt: Option<Duration>,
    /// Largest datagram.
    pub max_datagram_size: Option<u64>,
    /// Initial congestion window in bytes.
    pub initial_congestion_window: Option<u64>,
    /// Least congestion window in bytes.
    pub minimum_congestion_window: Option<u64>,
}
