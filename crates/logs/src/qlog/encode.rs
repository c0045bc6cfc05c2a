//! Encodes the data of events as JSON. The drafts since 12 have lengths of frames in `raw`,
//! `initiator` for `owner`, and one event for all timers; the rest is as in 0.3.

use serde_json::{Map, Value, json};
use units::Duration;

use super::NANOS_PER_MS;
use super::model::{
    Metrics, PacketHeader, QlogData, QlogFrame, QlogPacket, QlogParameters, RecoveryParameters,
};
use super::write::QlogFormat;

/// Triggers of `congestion_state_updated` in 0.3.
const V0_3_TRIGGERS: [&str; 2] = ["persistent_congestion", "ECN"];

/// Name of an event in the drafts and in version 0.3.
pub(super) fn names(data: &QlogData) -> (&str, &str) {
    match data {
        QlogData::PacketSent(_) => ("quic:packet_sent", "transport:packet_sent"),
        QlogData::PacketReceived(_) => ("quic:packet_received", "transport:packet_received"),
        QlogData::PacketLost { .. } => ("quic:packet_lost", "recovery:packet_lost"),
        QlogData::MetricsUpdated(_) => {
            ("quic:recovery_metrics_updated", "recovery:metrics_updated")
        }
        QlogData::CongestionStateUpdated { .. } => {
            ("quic:congestion_state_updated", "recovery:congestion_state_updated")
        }
        QlogData::LossTimerUpdated { .. } => ("quic:timer_updated", "recovery:loss_timer_updated"),
        QlogData::ParametersSet(_) => ("quic:parameters_set", "transport:parameters_set"),
        QlogData::RecoveryParametersSet(_) => {
            ("quic:recovery_parameters_set", "recovery:parameters_set")
        }
        QlogData::Scenario { .. } => ("simulation:scenario", "simulation:scenario"),
        QlogData::Marker { .. } => ("simulation:marker", "simulation:marker"),
        QlogData::Other { name } => (name, name),
    }
}

/// The fields of an event, including `more`.
pub(super) fn data(
    data: &QlogData,
    more: &Map<String, Value>,
    form: QlogFormat,
) -> Map<String, Value> {
    let mut map = more.clone();
    match data {
        QlogData::PacketSent(packet) | QlogData::PacketReceived(packet) => {
            put_packet(&mut map, packet, form);
        }
        QlogData::PacketLost { header, trigger } => {
            put_header(&mut map, header);
            put(&mut map, "trigger", trigger.as_deref());
        }
        QlogData::MetricsUpdated(metrics) => put_metrics(&mut map, metrics),
        QlogData::CongestionStateUpdated { old, new, trigger } => {
            put(&mut map, "old", old.as_deref());
            put(&mut map, "new", Some(new.as_str()));
            let listed = trigger.as_deref().is_none_or(|why| V0_3_TRIGGERS.contains(&why));
            // 0.3 has two triggers; others are written as `cause`.
            let other = form == QlogFormat::Qvis && !listed && !map.contains_key("cause");
            put(&mut map, if other { "cause" } else { "trigger" }, trigger.as_deref());
        }
        QlogData::LossTimerUpdated { timer_type, event_type, delta } => {
            put(&mut map, "timer_type", timer_type.as_deref());
            put(&mut map, "event_type", Some(event_type.as_str()));
            put(&mut map, "delta", delta.map(ms));
        }
        QlogData::ParametersSet(parameters) => put_parameters(&mut map, parameters, form),
        QlogData::RecoveryParametersSet(parameters) => put_recovery(&mut map, parameters),
        QlogData::Scenario { name, details } => {
            put(&mut map, "name", Some(name.as_str()));
            put(&mut map, "details", Some(details.clone()));
        }
        QlogData::Marker { kind, message } => {
            put(&mut map, "type", kind.as_deref());
            put(&mut map, "message", message.as_deref());
        }
        QlogData::Other { .. } => {}
    }
    map
}

/// Milliseconds with nanoseconds as decimals: exact below 26 days.
pub(super) fn ms(span: Duration) -> f64 {
    span.as_nanos() as f64 / NANOS_PER_MS
}

fn put(map: &mut Map<String, Value>, name: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        map.insert(name.to_owned(), value.into());
    }
}

/// Adds a field to a nested object, which fields beyond the model may have created.
fn put_within(map: &mut Map<String, Value>, outer: &str, name: &str, value: Option<Value>) {
    let Some(value) = value else { return };
    let object = map.entry(outer).or_insert_with(|| Value::Object(Map::new()));
    match object.as_object_mut() {
        Some(object) => drop(object.insert(name.to_owned(), value)),
        // The existing value is not an object: replace it.
        None => *object = json!({ name: value }),
    }
}

fn put_header(map: &mut Map<String, Value>, header: &PacketHeader) {
    let packet_type = header.packet_type.as_str();
    let packet_type = if packet_type.is_empty() { "unknown" } else { packet_type };
    put_within(map, "header", "packet_type", Some(packet_type.into()));
    put_within(map, "header", "packet_number", header.packet_number.map(Value::from));
}

fn put_packet(map: &mut Map<String, Value>, packet: &QlogPacket, form: QlogFormat) {
    put_header(map, &packet.header);
    put_within(map, "raw", "length", packet.length.map(Value::from));
    if !packet.frames.is_empty() {
        let frames: Vec<Value> = packet.frames.iter().map(|one| frame(one, form)).collect();
        put(map, "frames", Some(frames));
    }
    put(map, "trigger", packet.trigger.as_deref());
}

fn frame(frame: &QlogFrame, form: QlogFormat) -> Value {
    match frame {
        QlogFrame::Stream { stream_id, offset, length, fin } => {
            let mut value =
                json!({ "frame_type": "stream", "stream_id": stream_id, "offset": offset });
            put_length(&mut value, *length, form);
            if *fin {
                // Written only if true.
                value["fin"] = true.into();
            }
            value
        }
        QlogFrame::Crypto { offset, length } => {
            let mut value = json!({ "frame_type": "crypto", "offset": offset });
            put_length(&mut value, *length, form);
            value
        }
        QlogFrame::Ack { ranges, delay } => {
            let mut value = json!({ "frame_type": "ack" });
            if !ranges.is_empty() {
                let range = |&(from, to): &(u64, u64)| {
                    if from == to { json!([from]) } else { json!([from, to]) }
                };
                value["acked_ranges"] = ranges.iter().map(range).collect();
            }
            if let Some(delay) = delay {
                value["ack_delay"] = ms(*delay).into();
            }
            value
        }
        QlogFrame::MaxData { maximum } => json!({ "frame_type": "max_data", "maximum": maximum }),
        QlogFrame::MaxStreamData { stream_id, maximum } => {
            json!({ "frame_type": "max_stream_data", "stream_id": stream_id, "maximum": maximum })
        }
        QlogFrame::Other(map) => Value::Object(map.clone()),
    }
}

fn put_length(frame: &mut Value, length: u64, form: QlogFormat) {
    match form {
        QlogFormat::Current => frame["raw"] = json!({ "length": length }),
        QlogFormat::Qvis => frame["length"] = length.into(),
    }
}

fn put_metrics(map: &mut Map<String, Value>, metrics: &Metrics) {
    put(map, "min_rtt", metrics.min_rtt.map(ms));
    put(map, "smoothed_rtt", metrics.smoothed_rtt.map(ms));
    put(map, "latest_rtt", metrics.latest_rtt.map(ms));
    put(map, "rtt_variance", metrics.rtt_variance.map(ms));
    put(map, "pto_count", metrics.pto_count);
    put(map, "congestion_window", metrics.congestion_window);
    put(map, "bytes_in_flight", metrics.bytes_in_flight);
    put(map, "ssthresh", metrics.ssthresh);
    put(map, "packets_in_flight", metrics.packets_in_flight);
    put(map, "pacing_rate", metrics.pacing_rate);
}

fn put_parameters(map: &mut Map<String, Value>, set: &QlogParameters, form: QlogFormat) {
    let old = form == QlogFormat::Qvis && !map.contains_key("owner");
    put(map, if old { "owner" } else { "initiator" }, set.owner.as_deref());
    put(map, "initial_max_data", set.initial_max_data);
    put(map, "initial_max_stream_data_bidi_local", set.initial_max_stream_data_bidi_local);
    put(map, "initial_max_stream_data_bidi_remote", set.initial_max_stream_data_bidi_remote);
    put(map, "initial_max_stream_data_uni", set.initial_max_stream_data_uni);
    put(map, "max_ack_delay", set.max_ack_delay);
    put(map, "ack_delay_exponent", set.ack_delay_exponent);
    put(map, "max_udp_payload_size", set.max_udp_payload_size);
}

fn put_recovery(map: &mut Map<String, Value>, set: &RecoveryParameters) {
    put(map, "reordering_threshold", set.reordering_threshold);
    put(map, "timer_granularity", set.timer_granularity);
    put(map, "initial_rtt", set.initial_rtt.map(ms));
    put(map, "max_datagram_size", set.max_datagram_size);
    put(map, "initial_congestion_window", set.initial_congestion_window);
    put(map, "minimum_congestion_window", set.minimum_congestion_window);
}
