//! Decodes events of any version from JSON.

use serde_json::{Map, Value};
use units::Duration;

use super::fields::{FieldReader, nanos, whole};
use super::header::{Context, TimeFormat};
use super::model::{
    Metrics, PacketHeader, QlogData, QlogEvent, QlogFrame, QlogPacket, QlogParameters,
    RecoveryParameters,
};
use super::problem::{QlogProblemKind, short};

/// Decodes an event; the error names what is missing.
pub(super) fn event(
    value: Value,
    context: &mut Context,
    problems: &mut Vec<QlogProblemKind>,
) -> Result<QlogEvent, &'static str> {
    let mut event = match value {
        Value::Object(map) => map,
        Value::Array(cells) => columns(cells, &context.columns),
        _ => return Err("any field"),
    };
    let at = time(&mut event, context, problems).ok_or("a time")?;
    let name = name(&mut event).ok_or("a name")?;
    let group_id = match event.remove("group_id") {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(text),
        Some(other) => Some(other.to_string()),
    };
    let mut data = match event.remove("data") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(map)) => map,
        Some(_) => return Err("data that is an object"),
    };
    if let Some(trigger) = event.remove("trigger")
        && !data.contains_key("trigger")
    {
        data.insert("trigger".to_owned(), trigger);
    }
    data.extend(event.into_iter().map(|(field, value)| (format!("event.{field}"), value)));
    let mut fields = FieldReader { map: data, problems, unit: context.unit };
    let data = body(name, &mut fields);
    Ok(QlogEvent { at, group_id, data, more: fields.map })
}

/// Converts an event that is a list to an object with the names of the columns.
fn columns(cells: Vec<Value>, names: &[String]) -> Map<String, Value> {
    let cells = cells.into_iter().enumerate();
    cells
        .map(|(index, cell)| match names.get(index) {
            Some(name) => (name.clone(), cell),
            None => (format!("column {index}"), cell),
        })
        .collect()
}

fn time(
    event: &mut Map<String, Value>,
    context: &mut Context,
    problems: &mut Vec<QlogProblemKind>,
) -> Option<Duration> {
    let own = event.remove("time_format");
    let mut format = own.and_then(|own| TimeFormat::named(own.as_str()?)).unwrap_or(context.time);
    let value = if let Some(delta) = event.remove("delta_time") {
        format = TimeFormat::Delta;
        delta
    } else {
        event.remove("time").or_else(|| event.remove("relative_time"))?
    };
    let Some(nanos) = nanos(&value, context.unit) else {
        let found = short(&value.to_string());
        problems.push(QlogProblemKind::Field { name: "time", found, expected: "a time" });
        return None;
    };
    let at = match format {
        TimeFormat::Relative => nanos,
        TimeFormat::Delta => context.last.saturating_add(nanos),
        TimeFormat::Absolute => match nanos.checked_sub(context.epoch.unwrap_or(0)) {
            Some(at) => at,
            None => {
                let found = short(&value.to_string());
                let expected = "a time after the reference time";
                problems.push(QlogProblemKind::Field { name: "time", found, expected });
                return None;
            }
        },
    };
    context.last = at;
    Some(Duration::from_nanos(at))
}

/// Name of the event: namespace and kind, separated by a colon.
fn name(event: &mut Map<String, Value>) -> Option<String> {
    let mut text = |field: &str| match event.remove(field) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    };
    if let Some(name) = text("name") {
        return Some(name);
    }
    let category = text("category")?;
    // `event` in most files of draft-00 and draft-01, `event_type` in those of picoquic, aioquic and
    // the converters, `type` in 0.3's candidates.
    let kind = text("event").or_else(|| text("event_type")).or_else(|| text("type"))?;
    Some(format!("{category}:{kind}").to_lowercase())
}

fn body(name: String, fields: &mut FieldReader<'_>) -> QlogData {
    let (space, kind) = name.split_once(':').unwrap_or(("", &name));
    match (space, kind) {
        ("quic" | "transport", "packet_sent") => QlogData::PacketSent(packet(fields)),
        ("quic" | "transport", "packet_received") => QlogData::PacketReceived(packet(fields)),
        ("quic" | "recovery", "packet_lost") => {
            QlogData::PacketLost { header: header(fields), trigger: fields.text("trigger") }
        }
        ("quic", "recovery_metrics_updated")
        | ("recovery", "metrics_updated" | "metric_update") => {
            QlogData::MetricsUpdated(metrics(fields))
        }
        ("quic" | "recovery", "congestion_state_updated") => QlogData::CongestionStateUpdated {
            old: fields.text("old"),
            new: fields.text("new").unwrap_or_default(),
            trigger: fields.text("trigger").or_else(|| cause(fields)),
        },
        ("quic" | "recovery", "loss_timer_updated") | ("quic", "timer_updated") => {
            QlogData::LossTimerUpdated {
                timer_type: fields.text("timer_type"),
                event_type: fields.text("event_type").unwrap_or_default(),
                delta: fields.span("delta"),
            }
        }
        ("quic" | "transport", "parameters_set") => QlogData::ParametersSet(parameters(fields)),
        ("quic", "recovery_parameters_set") | ("recovery", "parameters_set") => {
            QlogData::RecoveryParametersSet(recovery(fields))
        }
        ("simulation" | "sim", "scenario") => QlogData::Scenario {
            name: fields.text("name").unwrap_or_default(),
            details: fields.object("details").unwrap_or_default(),
        },
        ("simulation" | "sim", "marker") => {
            QlogData::Marker { kind: fields.text("type"), message: fields.text("message") }
        }
        _ => QlogData::Other { name },
    }
}

/// The field `cause` of this writer, for triggers that 0.3 lacks.
fn cause(fields: &mut FieldReader<'_>) -> Option<String> {
    fields.map.get("cause")?.as_str()?;
    fields.text("cause")
}

fn header(fields: &mut FieldReader<'_>) -> PacketHeader {
    let mut header = PacketHeader::default();
    fields.within("header", |fields| {
        header.packet_type = fields.text("packet_type").unwrap_or_default();
        header.packet_number = fields.number("packet_number");
    });
    // Before draft-02 the type of a packet is beside its header, in a lost packet its number too.
    if header.packet_type.is_empty() {
        header.packet_type =
            fields.text("packet_type").filter(|kind| !kind.is_empty()).unwrap_or_default();
    }
    header.packet_number = header.packet_number.or_else(|| fields.number("packet_number"));
    if header.packet_type.is_empty() {
        "unknown".clone_into(&mut header.packet_type);
    }
    header
}

fn packet(fields: &mut FieldReader<'_>) -> QlogPacket {
    let mut packet = QlogPacket { header: header(fields), ..QlogPacket::default() };
    packet.length = fields.within("raw", |fields| fields.number("length")).flatten();
    if packet.length.is_none() {
        packet.length = fields.within("header", |fields| fields.number("packet_size")).flatten();
    }
    packet.length = packet.length.or_else(|| fields.number("packet_size"));
    if packet.length.is_none() {
        // quinn-proto 0.11 writes the length of the packet there.
        packet.length = fields.within("header", |fields| fields.number("length")).flatten();
    }
    if packet.length.is_none() {
        // Without the header and the tag; better than nothing.
        packet.length = fields.within("raw", |fields| fields.number("payload_length")).flatten();
    }
    packet.trigger = fields.text("trigger");
    for value in fields.list("frames").unwrap_or_default() {
        match value {
            Value::Object(map) => packet.frames.push(frame(map, fields)),
            other => fields.problems.push(QlogProblemKind::Field {
                name: "frames",
                found: short(&other.to_string()),
                expected: "frames",
            }),
        }
    }
    packet
}

/// Decodes a frame that has exactly the fields of the model; others are kept as they are.
fn frame(map: Map<String, Value>, outer: &mut FieldReader<'_>) -> QlogFrame {
    let kind = map.get("frame_type").and_then(Value::as_str).unwrap_or_default().to_lowercase();
    let whole_map = map.clone();
    let mut unread = Vec::new();
    let mut fields = FieldReader { map, problems: &mut unread, unit: outer.unit };
    fields.map.remove("frame_type");
    let known = match kind.as_str() {
        "stream" => stream(&mut fields),
        "crypto" => crypto(&mut fields),
        "ack" => ack(&mut fields),
        "max_data" => fields.number("maximum").map(|maximum| QlogFrame::MaxData { maximum }),
        "max_stream_data" => fields
            .number("stream_id")
            .zip(fields.number("maximum"))
            .map(|(stream_id, maximum)| QlogFrame::MaxStreamData { stream_id, maximum }),
        _ => None,
    };
    let nothing_left = fields.map.is_empty();
    known.filter(|_| nothing_left && unread.is_empty()).unwrap_or(QlogFrame::Other(whole_map))
}

fn stream(fields: &mut FieldReader<'_>) -> Option<QlogFrame> {
    Some(QlogFrame::Stream {
        // draft-00 calls it `id`.
        stream_id: fields.number("stream_id").or_else(|| fields.number("id"))?,
        offset: fields.number("offset")?,
        length: length(fields)?,
        fin: fields.switch("fin").unwrap_or(false),
    })
}

fn crypto(fields: &mut FieldReader<'_>) -> Option<QlogFrame> {
    Some(QlogFrame::Crypto { offset: fields.number("offset")?, length: length(fields)? })
}

/// Length of the data of a frame: beside its other fields, or in `raw` since draft 12. There
/// `payload_length` is without the header of the frame (quiche); some writers have it in `length`.
fn length(fields: &mut FieldReader<'_>) -> Option<u64> {
    let within_raw =
        |raw: &mut FieldReader<'_>| raw.number("payload_length").or_else(|| raw.number("length"));
    match fields.number("length") {
        Some(length) => Some(length),
        None => fields.within("raw", within_raw)?,
    }
}

fn ack(fields: &mut FieldReader<'_>) -> Option<QlogFrame> {
    let ranges = fields.list("acked_ranges").unwrap_or_default();
    let ranges = ranges.iter().map(range).collect::<Option<Vec<_>>>()?;
    Some(QlogFrame::Ack { ranges, delay: fields.span("ack_delay") })
}

/// `[from, to]` or `[one]`.
fn range(value: &Value) -> Option<(u64, u64)> {
    match value.as_array()?.as_slice() {
        [one] => whole(one).map(|one| (one, one)),
        [from, to] => whole(from).zip(whole(to)).filter(|(from, to)| from <= to),
        _ => None,
    }
}

fn metrics(fields: &mut FieldReader<'_>) -> Metrics {
    Metrics {
        min_rtt: fields.span("min_rtt"),
        smoothed_rtt: fields.span("smoothed_rtt"),
        latest_rtt: fields.span("latest_rtt"),
        rtt_variance: fields.span("rtt_variance"),
        pto_count: fields.number("pto_count"),
        congestion_window: fields.number("congestion_window").or_else(|| fields.number("cwnd")),
        bytes_in_flight: fields.number("bytes_in_flight"),
        ssthresh: fields.number("ssthresh"),
        packets_in_flight: fields.number("packets_in_flight"),
        pacing_rate: fields.number("pacing_rate"),
    }
}

fn parameters(fields: &mut FieldReader<'_>) -> QlogParameters {
    QlogParameters {
        // `owner` in 0.3 and the drafts before 12.
        owner: fields.text("initiator").or_else(|| fields.text("owner")),
        initial_max_data: fields.number("initial_max_data"),
        initial_max_stream_data_bidi_local: fields.number("initial_max_stream_data_bidi_local"),
        initial_max_stream_data_bidi_remote: fields.number("initial_max_stream_data_bidi_remote"),
        initial_max_stream_data_uni: fields.number("initial_max_stream_data_uni"),
        max_ack_delay: fields.number("max_ack_delay"),
        ack_delay_exponent: fields.number("ack_delay_exponent"),
        max_udp_payload_size: fields.number("max_udp_payload_size"),
    }
}

fn recovery(fields: &mut FieldReader<'_>) -> RecoveryParameters {
    RecoveryParameters {
        // quic-go disables it once packets were reordered.
        reordering_threshold: fields.number_unless("reordering_threshold", "disabled"),
        timer_granularity: fields.number("timer_granularity"),
        initial_rtt: fields.span("initial_rtt"),
        max_datagram_size: fields.number("max_datagram_size"),
        initial_congestion_window: fields.number("initial_congestion_window"),
        minimum_congestion_window: fields.number("minimum_congestion_window"),
    }
}
