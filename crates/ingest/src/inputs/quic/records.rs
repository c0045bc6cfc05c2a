//! Events of qlog as the records of the analysis.
//!
//! Beyond the events of the drafts: `recovery:spurious_loss` and `recovery:ecn_state_updated` of
//! quic-go, `recovery:congestion_metric_update` of mvfst, `connectivity` and `transport` names of
//! the versions before 0.4.

use diagnose::quic::record::{
    QuicCloseFrame, QuicFrame, QuicLimits, QuicLossTrigger, QuicMetrics, QuicPacketKind,
    QuicPacketRecord, QuicRecord,
};
use logs::qlog::{QlogData, QlogEvent, QlogFrame, QlogPacket, QlogParameters};
use serde_json::{Map, Value};
use units::Duration;

use super::close_code::CloseCode;

const NANOS_PER_MS: u64 = 1_000_000;
/// Names of CONNECTION_CLOSE frames; some stacks name that of the application by itself.
const CLOSE_FRAMES: [&str; 2] = ["connection_close", "application_close"];

/// Buffers for the lists of a record.
#[derive(Debug, Default)]
pub(super) struct RecordBuffer {
    frames: Vec<QuicFrame>,
    acked: Vec<(u64, u64)>,
    code: String,
    reason: String,
}

impl RecordBuffer {
    /// Converts an event.
    pub(super) fn record<'a>(&'a mut self, event: &'a QlogEvent) -> QuicRecord<'a> {
        match &event.data {
            QlogData::PacketSent(packet) => QuicRecord::Sent(self.packet(packet)),
            QlogData::PacketReceived(packet) => QuicRecord::Received(self.packet(packet)),
            QlogData::PacketLost { header, trigger } => QuicRecord::Lost {
                kind: QuicPacketKind::from_name(&header.packet_type),
                number: header.packet_number,
                trigger: loss_trigger(trigger.as_deref()),
            },
            QlogData::MetricsUpdated(metrics) => {
                let ns = |span: Option<Duration>| span.map(Duration::as_nanos);
                QuicRecord::Metrics(QuicMetrics {
                    min_rtt: ns(metrics.min_rtt),
                    smoothed_rtt: ns(metrics.smoothed_rtt),
                    latest_rtt: ns(metrics.latest_rtt),
                    rtt_variance: ns(metrics.rtt_variance),
                    pto_count: metrics.pto_count,
                    congestion_window: metrics.congestion_window,
                    bytes_in_flight: metrics.bytes_in_flight,
                    ssthresh: metrics.ssthresh,
                    pacing_rate: metrics.pacing_rate,
                })
            }
            QlogData::CongestionStateUpdated { new, trigger, .. } => {
                QuicRecord::State { new, trigger: trigger.as_deref() }
            }
            QlogData::LossTimerUpdated { timer_type, event_type, .. } => {
                let is_pto = timer_type.as_deref().is_some_and(|kind| kind == "pto");
                if is_pto && event_type == "expired" {
                    QuicRecord::TimeoutExpired
                } else {
                    QuicRecord::Other
                }
            }
            QlogData::ParametersSet(parameters) => parameters_set(parameters),
            QlogData::RecoveryParametersSet(constants) => QuicRecord::Constants {
                max_datagram_size: constants.max_datagram_size,
                reordering_threshold: constants.reordering_threshold,
            },
            QlogData::Other { name } => self.other(name, &event.more),
            QlogData::Scenario { .. } | QlogData::Marker { .. } => QuicRecord::Other,
        }
    }

    fn packet(&mut self, packet: &QlogPacket) -> QuicPacketRecord<'_> {
        self.frames.clear();
        self.acked.clear();
        let mut close = None;
        let mut record = QuicPacketRecord {
            kind: QuicPacketKind::from_name(&packet.header.packet_type),
            number: packet.header.packet_number,
            bytes: packet.length,
            ..QuicPacketRecord::default()
        };
        for frame in &packet.frames {
            match frame {
                QlogFrame::Stream { stream_id, offset, length, fin } => {
                    self.frames.push(QuicFrame::Stream {
                        id: *stream_id,
                        offset: *offset,
                        length: *length,
                        fin: *fin,
                    });
                }
                QlogFrame::Crypto { offset, length } => {
                    self.frames.push(QuicFrame::Crypto { offset: *offset, length: *length });
                }
                QlogFrame::Ack { ranges, delay } => {
                    record.has_ack = true;
                    record.ack_delay = delay.map(Duration::as_nanos).or(record.ack_delay);
                    self.acked.extend(ranges);
                }
                QlogFrame::MaxData { maximum } => self.frames.push(QuicFrame::MaxData(*maximum)),
                QlogFrame::MaxStreamData { stream_id, maximum } => {
                    self.frames.push(QuicFrame::MaxStreamData { id: *stream_id, limit: *maximum });
                }
                QlogFrame::Other(fields) => {
                    self.frame(fields, &mut record);
                    close = close.or_else(|| self.close_code(fields));
                }
            }
        }
        record.frames = &self.frames;
        record.acked = &self.acked;
        record.close = close.map(|(code, of_application)| QuicCloseFrame {
            code,
            of_application,
            reason: &self.reason,
        });
        record
    }

    /// Code of a CONNECTION_CLOSE frame, and whether it is of the application; keeps its reason.
    fn close_code(&mut self, fields: &Map<String, Value>) -> Option<(u64, bool)> {
        let text = |name: &str| fields.get(name).and_then(Value::as_str);
        let kind = text("frame_type").unwrap_or_default();
        if !CLOSE_FRAMES.iter().any(|name| kind.eq_ignore_ascii_case(name)) {
            return None;
        }
        let code = CloseCode::of(fields);
        let number = code.number()?;
        self.reason.clear();
        self.reason.push_str(text("reason").or_else(|| text("reason_phrase")).unwrap_or_default());
        Some((number, code.is_of_application()))
    }

    /// Converts a frame with fields beyond the model of the reader.
    fn frame(&mut self, fields: &Map<String, Value>, record: &mut QuicPacketRecord<'_>) {
        let kind = fields.get("frame_type").and_then(Value::as_str).unwrap_or_default();
        let number = |name: &str| fields.get(name).and_then(whole);
        let within_raw = |name| fields.get("raw").and_then(|raw| raw.get(name)).and_then(whole);
        let length = || {
            let of_data = number("length").or_else(|| within_raw("payload_length"));
            of_data.or_else(|| within_raw("length")).unwrap_or(0)
        };
        let id = number("stream_id").or_else(|| number("id"));
        let frame = match kind.to_ascii_lowercase().as_str() {
            "padding" => QuicFrame::Padding,
            "ack" => {
                record.has_ack = true;
                record.ce = number("ce").or(record.ce);
                // Milliseconds in all but the oldest versions.
                let delay = fields.get("ack_delay").and_then(Value::as_f64);
                let delay = delay.filter(|delay| (0.0..1e12).contains(delay));
                record.ack_delay =
                    delay.map(|ms| (ms * NANOS_PER_MS as f64) as u64).or(record.ack_delay);
                let ranges = fields.get("acked_ranges").and_then(Value::as_array);
                self.acked.extend(ranges.into_iter().flatten().filter_map(range));
                return;
            }
            "stream" => QuicFrame::Stream {
                id: id.unwrap_or(0),
                offset: number("offset").unwrap_or(0),
                length: length(),
                fin: fields.get("fin").and_then(Value::as_bool).unwrap_or(false),
            },
            "crypto" => {
                QuicFrame::Crypto { offset: number("offset").unwrap_or(0), length: length() }
            }
            "max_data" => match number("maximum") {
                Some(limit) => QuicFrame::MaxData(limit),
                None => QuicFrame::Other,
            },
            "max_stream_data" => match id.zip(number("maximum")) {
                Some((id, limit)) => QuicFrame::MaxStreamData { id, limit },
                None => QuicFrame::Other,
            },
            "max_streams" => QuicFrame::MaxStreams,
            "data_blocked" => QuicFrame::DataBlocked,
            "stream_data_blocked" => match id {
                Some(id) => QuicFrame::StreamDataBlocked { id },
                None => QuicFrame::Other,
            },
            "streams_blocked" => QuicFrame::StreamsBlocked,
            "path_challenge" => QuicFrame::PathChallenge,
            "handshake_done" => QuicFrame::HandshakeDone,
            kind if CLOSE_FRAMES.contains(&kind) => QuicFrame::ConnectionClose,
            _ => QuicFrame::Other,
        };
        self.frames.push(frame);
    }

    fn other<'a>(&'a mut self, name: &str, fields: &'a Map<String, Value>) -> QuicRecord<'a> {
        let text = |name: &str| fields.get(name).and_then(Value::as_str);
        let number = |name: &str| fields.get(name).and_then(whole);
        let kind = name.rsplit(':').next().unwrap_or(name);
        match kind {
            "spurious_loss" | "spurious_loss_detected" => QuicRecord::SpuriousLoss,
            "ecn_state_updated" => QuicRecord::Ecn { new: text("new").unwrap_or_default() },
            "mtu_updated" => number("new").map_or(QuicRecord::Other, QuicRecord::Mtu),
            "connection_state_updated" => {
                let new = text("new").unwrap_or_default();
                let complete = ["handshake_complete", "handshake_completed", "handshake_confirmed"];
                if complete.contains(&new) {
                    QuicRecord::HandshakeComplete
                } else {
                    QuicRecord::Other
                }
            }
            "congestion_metric_update" => QuicRecord::Metrics(QuicMetrics {
                congestion_window: number("current_cwnd"),
                bytes_in_flight: number("bytes_in_flight"),
                ..QuicMetrics::default()
            }),
            "connection_closed" | "connection_close" => self.closed(fields),
            _ => QuicRecord::Other,
        }
    }

    fn closed<'a>(&'a mut self, fields: &'a Map<String, Value>) -> QuicRecord<'a> {
        let text = |name: &str| fields.get(name).and_then(Value::as_str);
        let trigger = text("trigger").unwrap_or_default();
        let code = CloseCode::of(fields);
        self.code = code.text();
        let idle_timeout = trigger == "idle_timeout" || text("reason") == Some("idle_timeout");
        let by_peer = match text("owner").or_else(|| text("initiator")) {
            Some("remote") => Some(true),
            Some("local") => Some(false),
            _ => None,
        };
        QuicRecord::Closed {
            by_peer,
            code: &self.code,
            reason: text("reason").unwrap_or_default(),
            idle_timeout,
            is_error: code.is_error() && !idle_timeout,
        }
    }
}

fn parameters_set(parameters: &QlogParameters) -> QuicRecord<'static> {
    QuicRecord::Parameters {
        remote: parameters.owner.as_deref() == Some("remote"),
        limits: QuicLimits {
            max_data: parameters.initial_max_data,
            bidi_local: parameters.initial_max_stream_data_bidi_local,
            bidi_remote: parameters.initial_max_stream_data_bidi_remote,
            uni: parameters.initial_max_stream_data_uni,
            max_ack_delay: parameters.max_ack_delay.and_then(|ms| ms.checked_mul(NANOS_PER_MS)),
        },
    }
}

fn loss_trigger(name: Option<&str>) -> QuicLossTrigger {
    match name {
        Some("reordering_threshold" | "repeat") => QuicLossTrigger::Packets,
        Some("time_threshold") => QuicLossTrigger::Time,
        Some("pto_expired" | "timer") => QuicLossTrigger::Timeout,
        _ => QuicLossTrigger::Unknown,
    }
}

pub(super) fn whole(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

fn range(value: &Value) -> Option<(u64, u64)> {
    match value.as_array()?.as_slice() {
        [one] => whole(one).map(|one| (one, one)),
        [from, to, ..] => whole(from).zip(whole(to)),
        [] => None,
    }
}
