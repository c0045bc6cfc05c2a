//! Data of events as JSON. The drafts since 12 have lengths of frames in `raw`, `initiator` for
//! `owner`, and one event for all timers; the rest is as in 0.3.

use serde_json::{Map, Value, json};
use units::Duration;

use super::NANOS_PER_MS;
use super::model::{Data, Frame, Metrics, Packet, PacketHeader, Parameters, RecoveryParameters};
use super::write::Form;

/// What 0.3 has as triggers of `congestion_state_updated`.
const OLD_TRIGGERS: [&str; 2] = ["persistent_congestion", "ECN"];

/// Name of an event in the drafts and in version 0.3.
pub(super) fn names(data: &Data) -> (&str, &str) {
    match data {
        Data::PacketSent(_) => ("quic:packet_sent", "transport:packet_sent"),
        Data::PacketReceived(_) => ("quic:packet_received", "transport:packet_received"),
        Data::PacketLost { .. } => ("quic:packet_lost", "recovery:packet_lost"),
        Data::MetricsUpdated(_) => ("quic:recovery_metrics_updated", "recovery:metrics_updated"),
        Data::CongestionStateUpdated { .. } => {
            ("quic:congestion_state_updated", "recovery:congestion_state_updated")
        }
        Data::LossTimerUpdated { .. } => ("quic:timer_updated", "recovery:loss_timer_updated"),
        Data::ParametersSet(_) => ("quic:parameters_set", "transport:parameters_set"),
        Data::RecoveryParametersSet(_) => {
            ("quic:recovery_parameters_set", "recovery:parameters_set")
        }
        Data::Scenario { .. } => ("simulation:scenario", "simulation:scenario"),
        Data::Marker { .. } => ("simulation:marker", "simulation:marker"),
        Data::Other { name } => (name, name),
    }
}

/// The fields of an event, `more` among them.
pub(super) fn data(data: &Data, more: &Map<String, Value>, form: Form) -> Map<String, Value> {
    let mut map = more.clone();
    match data {
        Data::PacketSent(packet) | Data::PacketReceived(packet) => {
            put_packet(&mut map, packet, form);
        }
        Data::PacketLost { header, trigger } => {
            put_header(&mut map, header);
            put(&mut map, "trigger", trigger.as_deref());
        }
        Data::MetricsUpdated(metrics) => put_metrics(&mut map, metrics),
        Data::CongestionStateUpdated { old, new, trigger } => {
            put(&mut map, "old", old.as_deref());
            put(&mut map, "new", Some(new.as_str()));
            let listed = trigger.as_deref().is_none_or(|why| OLD_TRIGGERS.contains(&why));
            // 0.3 knows two; others go by a name of our own.
            let other = form == Form::Qvis && !listed && !map.contains_key("cause");
            put(&mut map, if other { "cause" } else { "trigger" }, trigger.as_deref());
        }
        Data::LossTimerUpdated { timer_type, event_type, delta } => {
            put(&mut map, "timer_type", timer_type.as_deref());
            put(&mut map, "event_type", Some(event_type.as_str()));
            put(&mut map, "delta", delta.map(ms));
        }
        Data::ParametersSet(parameters) => put_parameters(&mut map, parameters, form),
        Data::RecoveryParametersSet(parameters) => put_recovery(&mut map, parameters),
        Data::Scenario { name, details } => {
            put(&mut map, "name", Some(name.as_str()));
            put(&mut map, "details", Some(details.clone()));
        }
        Data::Marker { kind, message } => {
            put(&mut map, "type", kind.as_deref());
            put(&mut map, "message", message.as_deref());
        }
        Data::Other { .. } => {}
    }
    map
}

/// Milliseconds with the nanoseconds behind the point: exact below 26 days.
pub(super) fn ms(span: Duration) -> f64 {
    span.as_nanos() as f64 / NANOS_PER_MS
}

fn put(map: &mut Map<String, Value>, name: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        map.insert(name.to_owned(), value.into());
    }
}

/// Adds to an object that what is beyond the model may have left there.
fn put_within(map: &mut Map<String, Value>, outer: &str, name: &str, value: Option<Value>) {
    let Some(value) = value else { return };
    let object = map.entry(outer).or_insert_with(|| Value::Object(Map::new()));
    match object.as_object_mut() {
        Some(object) => drop(object.insert(name.to_owned(), value)),
        // What was there is no object, so it has no place for this.
        None => *object = json!({ name: value }),
    }
}

fn put_header(map: &mut Map<String, Value>, header: &PacketHeader) {
    let packet_type = header.packet_type.as_str();
    let packet_type = if packet_type.is_empty() { "unknown" } else { packet_type };
    put_within(map, "header", "packet_type", Some(packet_type.into()));
    put_within(map, "header", "packet_number", header.packet_number.map(Value::from));
}

fn put_packet(map: &mut Map<String, Value>, packet: &Packet, form: Form) {
    put_header(map, &packet.header);
    put_within(map, "raw", "length", packet.length.map(Value::from));
    if !packet.frames.is_empty() {
        let frames: Vec<Value> = packet.frames.iter().map(|one| frame(one, form)).collect();
        put(map, "frames", Some(frames));
    }
    put(map, "trigger", packet.trigger.as_deref());
}

fn frame(frame: &Frame, form: Form) -> Value {
    match frame {
        Frame::Stream { stream_id, offset, length, fin } => {
            let mut value =
                json!({ "frame_type": "stream", "stream_id": stream_id, "offset": offset });
            put_length(&mut value, *length, form);
            if *fin {
                // Only where it is true.
                value["fin"] = true.into();
            }
            value
        }
        Frame::Crypto { offset, length } => {
            let mut value = json!({ "frame_type": "crypto", "offset": offset });
            put_length(&mut value, *length, form);
            value
        }
        Frame::Ack { ranges, delay } => {
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
        Frame::MaxData { maximum } => json!({ "frame_type": "max_data", "maximum": maximum }),
        Frame::MaxStreamData { stream_id, maximum } => {
            json!({ "frame_type": "max_stream_data", "stream_id": stream_id, "maximum": maximum })
        }
        Frame::Other(map) => Value::Object(map.clone()),
    }
}

fn put_length(frame: &mut Value, length: u64, form: Form) {
    match form {
        Form::Current => frame["raw"] = json!({ "length": length }),
        Form::Qvis => frame["length"] = length.into(),
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

fn put_parameters(map: &mut Map<String, Value>, set: &Parameters, form: Form) {
    let old = form == Form::Qvis && !map.contains_key("owner");
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
