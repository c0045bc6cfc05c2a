//! Events of a QUIC endpoint as the analysis takes them, independent of the log's format.

/// Largest UDP payload (RFC 768: 16 bits of length).
pub(super) const MAX_DATAGRAM: u64 = 65_535;
/// Largest span in ns and largest number of bytes that the analysis computes with: 36 years.
pub(super) const MAX_VALUE: u64 = 1 << 60;
/// Largest time of an event, in ns: 146 years.
pub(super) const MAX_TIME: u64 = 1 << 62;
/// Largest duration of a log, in ns: two years. Sixty-four times as much is still a time.
pub(super) const MAX_DURATION: u64 = 1 << 56;
/// Largest packet number and stream offset (RFC 9000 sections 12.3 and 16).
const MAX_NUMBER: u64 = (1 << 62) - 1;

/// Type of a QUIC packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum QuicPacketKind {
    /// Initial.
    Initial,
    /// 0-RTT.
    ZeroRtt,
    /// Handshake.
    Handshake,
    /// 1-RTT, and packets of unknown type.
    #[default]
    OneRtt,
    /// Retry.
    Retry,
    /// Version negotiation.
    VersionNegotiation,
    /// Stateless reset.
    StatelessReset,
}

impl QuicPacketKind {
    /// Index of its packet number space (RFC 9000 section 12.3); `None` without a packet number.
    pub const fn space(self) -> Option<usize> {
        match self {
            Self::Initial => Some(0),
            Self::Handshake => Some(1),
            Self::ZeroRtt | Self::OneRtt => Some(2),
            Self::Retry | Self::VersionNegotiation | Self::StatelessReset => None,
        }
    }

    /// The type with this name in any version of qlog.
    pub fn from_name(name: &str) -> Self {
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        if is("initial") {
            Self::Initial
        } else if is("handshake") {
            Self::Handshake
        } else if is("0RTT") || is("0-RTT") || is("zerortt") {
            Self::ZeroRtt
        } else if is("retry") {
            Self::Retry
        } else if is("version_negotiation") {
            Self::VersionNegotiation
        } else if is("stateless_reset") {
            Self::StatelessReset
        } else {
            Self::OneRtt
        }
    }
}

/// A frame other than ACK.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuicFrame {
    /// PADDING: in flight, but not ack-eliciting.
    Padding,
    /// STREAM.
    Stream {
        /// Stream ID.
        id: u64,
        /// First byte.
        offset: u64,
        /// Bytes.
        length: u64,
        /// Whether it ends the stream.
        fin: bool,
    },
    /// CRYPTO.
    Crypto {
        /// First byte.
        offset: u64,
        /// Bytes.
        length: u64,
    },
    /// MAX_DATA.
    MaxData(u64),
    /// MAX_STREAM_DATA.
    MaxStreamData {
        /// Stream ID.
        id: u64,
        /// Limit in bytes.
        limit: u64,
    },
    /// MAX_STREAMS.
    MaxStreams,
    /// DATA_BLOCKED.
    DataBlocked,
    /// STREAM_DATA_BLOCKED.
    StreamDataBlocked {
        /// Stream ID.
        id: u64,
    },
    /// STREAMS_BLOCKED.
    StreamsBlocked,
    /// PATH_CHALLENGE.
    PathChallenge,
    /// HANDSHAKE_DONE.
    HandshakeDone,
    /// CONNECTION_CLOSE: not ack-eliciting.
    ConnectionClose,
    /// Another frame, which is ack-eliciting.
    Other,
}

/// A CONNECTION_CLOSE frame (RFC 9000 section 19.19).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuicCloseFrame<'a> {
    /// Error code.
    pub code: u64,
    /// Whether the code is of the application.
    pub of_application: bool,
    /// Reason phrase.
    pub reason: &'a str,
}

/// Names of the transport's codes (RFC 9000 section 20.1).
const TRANSPORT: [&str; 17] = [
    "NO_ERROR",
    "INTERNAL_ERROR",
    "CONNECTION_REFUSED",
    "FLOW_CONTROL_ERROR",
    "STREAM_LIMIT_ERROR",
    "STREAM_STATE_ERROR",
    "FINAL_SIZE_ERROR",
    "FRAME_ENCODING_ERROR",
    "TRANSPORT_PARAMETER_ERROR",
    "CONNECTION_ID_LIMIT_ERROR",
    "PROTOCOL_VIOLATION",
    "INVALID_TOKEN",
    "APPLICATION_ERROR",
    "CRYPTO_BUFFER_EXCEEDED",
    "KEY_UPDATE_ERROR",
    "AEAD_LIMIT_REACHED",
    "NO_VIABLE_PATH",
];

impl QuicCloseFrame<'_> {
    /// The transport's code of this name, in upper or lower case.
    pub fn transport_code(name: &str) -> Option<u64> {
        let code = TRANSPORT.iter().position(|known| known.eq_ignore_ascii_case(name))?;
        u64::try_from(code).ok()
    }

    /// Whether it closes for an error: NO_ERROR is 0, that of HTTP/3 0x100 (RFC 9114 section 8.1).
    pub const fn is_error(&self) -> bool {
        self.code != 0 && !(self.of_application && self.code == 0x100)
    }

    /// The code with its name, if it is of the transport (RFC 9000 section 20.1) or a TLS alert (RFC 8446
    /// section 6).
    pub fn code_text(&self) -> String {
        if self.of_application {
            return format!("0x{:x} of the application", self.code);
        }
        let alert = match self.code {
            0x128 => "handshake_failure",
            0x12a => "bad_certificate",
            0x12b => "unsupported_certificate",
            0x12c => "certificate_revoked",
            0x12d => "certificate_expired",
            0x12e => "certificate_unknown",
            0x12f => "illegal_parameter",
            0x130 => "unknown_ca",
            0x131 => "access_denied",
            0x146 => "protocol_version",
            0x150 => "internal_error",
            0x16d => "missing_extension",
            0x170 => "unrecognized_name",
            0x174 => "certificate_required",
            0x178 => "no_application_protocol",
            code => {
                let name = usize::try_from(code).ok().and_then(|code| TRANSPORT.get(code));
                return match (name, code) {
                    (Some(name), _) => (*name).to_owned(),
                    (None, 0x100..=0x1ff) => format!("0x{code:x} (TLS alert {})", code & 0xff),
                    (None, _) => format!("0x{code:x}"),
                };
            }
        };
        format!("0x{:x} (TLS alert {alert})", self.code)
    }
}

/// A packet sent or received.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QuicPacketRecord<'a> {
    /// Type.
    pub kind: QuicPacketKind,
    /// Packet number.
    pub number: Option<u64>,
    /// Length in bytes, headers included; `None` if the log lacks it.
    pub bytes: Option<u64>,
    /// Frames other than ACK.
    pub frames: &'a [QuicFrame],
    /// Whether it has an ACK frame.
    pub has_ack: bool,
    /// Inclusive ranges of its ACK frames.
    pub acked: &'a [(u64, u64)],
    /// ACK delay in ns.
    pub ack_delay: Option<u64>,
    /// Packets counted as CE by its ACK frame.
    pub ce: Option<u64>,
    /// Its CONNECTION_CLOSE frame, if the log has the code.
    pub close: Option<QuicCloseFrame<'a>>,
}

impl QuicPacketRecord<'_> {
    /// With values that a packet can have.
    pub(super) fn bounded(self) -> Self {
        Self {
            number: self.number.filter(|&number| number <= MAX_NUMBER),
            bytes: self.bytes.map(|bytes| bytes.min(MAX_DATAGRAM)),
            ack_delay: self.ack_delay.map(|delay| delay.min(MAX_VALUE)),
            ..self
        }
    }

    /// Whether the peer must acknowledge it (RFC 9000 section 13.2): not if it has ACK, PADDING and
    /// CONNECTION_CLOSE frames only. A packet without any frame comes from a log without frames and
    /// counts as ack-eliciting.
    pub fn is_ack_eliciting(&self) -> bool {
        let passive =
            |frame: &QuicFrame| matches!(frame, QuicFrame::Padding | QuicFrame::ConnectionClose);
        match self.frames {
            [] => !self.has_ack,
            frames => !frames.iter().all(passive),
        }
    }
}

/// Recovery metrics; unchanged ones may be absent. Times are in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QuicMetrics {
    /// Minimum RTT.
    pub min_rtt: Option<u64>,
    /// Smoothed RTT.
    pub smoothed_rtt: Option<u64>,
    /// Latest RTT sample.
    pub latest_rtt: Option<u64>,
    /// RTT variation.
    pub rtt_variance: Option<u64>,
    /// Consecutive probe timeouts.
    pub pto_count: Option<u64>,
    /// Congestion window in bytes.
    pub congestion_window: Option<u64>,
    /// Bytes in flight.
    pub bytes_in_flight: Option<u64>,
    /// Slow-start threshold in bytes.
    pub ssthresh: Option<u64>,
    /// Pacing rate in bit/s.
    pub pacing_rate: Option<u64>,
}

impl QuicMetrics {
    /// With values that can be computed with.
    pub(super) fn bounded(self) -> Self {
        let bound = |value: Option<u64>| value.map(|value| value.min(MAX_VALUE));
        Self {
            min_rtt: bound(self.min_rtt),
            smoothed_rtt: bound(self.smoothed_rtt),
            latest_rtt: bound(self.latest_rtt),
            rtt_variance: bound(self.rtt_variance),
            pto_count: self.pto_count,
            // Senders without a window log the largest number.
            congestion_window: self.congestion_window.filter(|&bytes| bytes < MAX_VALUE),
            bytes_in_flight: bound(self.bytes_in_flight),
            ssthresh: self.ssthresh,
            pacing_rate: bound(self.pacing_rate),
        }
    }
}

/// Flow control limits of transport parameters, and values that timers need.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QuicLimits {
    /// `initial_max_data`.
    pub max_data: Option<u64>,
    /// `initial_max_stream_data_bidi_local`.
    pub bidi_local: Option<u64>,
    /// `initial_max_stream_data_bidi_remote`.
    pub bidi_remote: Option<u64>,
    /// `initial_max_stream_data_uni`.
    pub uni: Option<u64>,
    /// `max_ack_delay` in ns.
    pub max_ack_delay: Option<u64>,
}

/// Why a packet was declared lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum QuicLossTrigger {
    /// The packet threshold (`reordering_threshold`).
    Packets,
    /// The time threshold (`time_threshold`).
    Time,
    /// A probe timeout (`pto_expired`).
    Timeout,
    /// The log names none that is known.
    Unknown,
}

/// An event of the endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuicRecord<'a> {
    /// A packet was sent.
    Sent(QuicPacketRecord<'a>),
    /// A packet was received.
    Received(QuicPacketRecord<'a>),
    /// A packet was declared lost.
    Lost {
        /// Its type.
        kind: QuicPacketKind,
        /// Its number.
        number: Option<u64>,
        /// Why.
        trigger: QuicLossTrigger,
    },
    /// Recovery metrics.
    Metrics(QuicMetrics),
    /// State of the congestion controller.
    State {
        /// Name of the new state.
        new: &'a str,
        /// Trigger of the change.
        trigger: Option<&'a str>,
    },
    /// A probe timeout expired.
    TimeoutExpired,
    /// Transport parameters.
    Parameters {
        /// Whether they are the peer's.
        remote: bool,
        /// Their values.
        limits: QuicLimits,
    },
    /// Constants of recovery.
    Constants {
        /// Largest datagram in bytes.
        max_datagram_size: Option<u64>,
        /// Reordering threshold in packets.
        reordering_threshold: Option<u64>,
    },
    /// State of ECN validation.
    Ecn {
        /// Name of the new state.
        new: &'a str,
    },
    /// Path MTU in bytes.
    Mtu(u64),
    /// The handshake is complete.
    HandshakeComplete,
    /// The endpoint found that a lost packet arrived.
    SpuriousLoss,
    /// The connection was closed.
    Closed {
        /// Who closed it, if known: true for the peer.
        by_peer: Option<bool>,
        /// Error code or name; empty if none.
        code: &'a str,
        /// Reason phrase.
        reason: &'a str,
        /// Whether it ended by the idle timeout.
        idle_timeout: bool,
        /// Whether the code is an error.
        is_error: bool,
    },
    /// Another event.
    Other,
}
