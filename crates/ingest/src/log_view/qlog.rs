//! A qlog as text, JSON or CSV.

use std::io::BufRead;

use logs::qlog::{
    Container, Data, Event, FileInfo, Frame, Item, Loss, Metrics, Packet, PacketHeader, Reader,
};
use serde_json::{Value, json};
use units::Duration;

use super::{Form, Known, Seconds, Show, Verdict, ViewError};

pub(super) fn view(log: impl BufRead, show: &mut Show<'_>) -> Result<Verdict, ViewError> {
    let mut reader = Reader::new(log);
    let mut columns = show.form == Form::Csv;
    let mut epoch = Duration::ZERO;
    for item in reader.by_ref() {
        match item.map_err(ViewError::Read)? {
            Item::Header(header) => {
                epoch = header.trace.epoch.unwrap_or_default();
                match show.form {
                    Form::Text => show.heading(heading(&header))?,
                    Form::Json => show.heading(header_json(&header).to_string())?,
                    Form::Csv => {}
                }
            }
            Item::Event(event) => {
                let at = Seconds(Some(Duration::from_nanos(
                    epoch.as_nanos().saturating_add(event.at.as_nanos()),
                )));
                match show.form {
                    Form::Text => show.line(&format!("{at} {}", text(&event)))?,
                    Form::Json => show.line(&event_json(&at, &event).to_string())?,
                    Form::Csv => {
                        if core::mem::take(&mut columns) {
                            show.line(&COLUMNS.join(","))?;
                        }
                        show.line(&cells(&at, &event).join(","))?;
                    }
                }
            }
            Item::Problem(problem) => {
                let place = json!({
                    "line": problem.line,
                    "offset": problem.offset,
                    "what": problem.kind.to_string(),
                });
                show.problem(&problem, &place)?;
            }
        }
    }
    let loss = *reader.loss();
    if loss.events > 0 {
        match show.form {
            Form::Text => show.line(&summary(&loss))?,
            Form::Json => show.line(&summary_json(&loss).to_string())?,
            Form::Csv => {}
        }
    }
    Ok(show.verdict("a qlog", loss.events, loss.problems == 0))
}

const fn container(header: &FileInfo) -> &'static str {
    match header.container {
        Container::Document => "one document",
        Container::Lines => "lines",
        Container::Sequence => "a sequence",
    }
}

fn heading(header: &FileInfo) -> String {
    let trace = &header.trace;
    let vantage = trace.vantage.name();
    let parts = [
        ("", trace.vantage_name.as_str()),
        ("group ", &trace.group_id),
        ("", &trace.protocols.join("+")),
        ("", &header.title),
        ("", &trace.title),
    ];
    let told: String = parts
        .iter()
        .filter(|(_, text)| !text.is_empty())
        .map(|(what, text)| format!(", {what}{}", text.escape_debug()))
        .collect();
    format!("# qlog {} in {}, {vantage}{told}", header.generation.name(), container(header))
}

fn text(event: &Event) -> String {
    let mut words = vec![event.name().escape_debug().to_string()];
    match &event.data {
        Data::PacketSent(packet) | Data::PacketReceived(packet) => {
            header_words(&mut words, &packet.header);
            words.extend(packet.length.map(|length| format!("length {length}")));
            words.extend(packet.frames.iter().map(frame));
            words.extend(packet.trigger.iter().map(|why| format!("({})", why.escape_debug())));
        }
        Data::PacketLost { header, trigger } => {
            header_words(&mut words, header);
            words.extend(trigger.iter().map(|why| format!("({})", why.escape_debug())));
        }
        Data::MetricsUpdated(metrics) => words.extend(metrics_words(metrics)),
        Data::CongestionStateUpdated { old, new, trigger } => {
            words.extend(old.iter().map(|old| format!("{} ->", old.escape_debug())));
            words.push(new.escape_debug().to_string());
            words.extend(trigger.iter().map(|why| format!("({})", why.escape_debug())));
        }
        _ => words.push(Value::from(event.fields()).to_string()),
    }
    let shown = !matches!(
        event.data,
        Data::PacketSent(_)
            | Data::PacketReceived(_)
            | Data::PacketLost { .. }
            | Data::MetricsUpdated(_)
            | Data::CongestionStateUpdated { .. }
    );
    if !shown && !event.more.is_empty() {
        words.push(Value::from(event.more.clone()).to_string());
    }
    words.join(" ")
}

fn header_words(words: &mut Vec<String>, header: &PacketHeader) {
    words.push(header.packet_type.escape_debug().to_string());
    words.extend(header.packet_number.map(|number| number.to_string()));
}

fn frame(frame: &Frame) -> String {
    match frame {
        Frame::Stream { stream_id, offset, length, fin } => {
            let end = offset.saturating_add(*length);
            format!("stream {stream_id} {offset}:{end}{}", if *fin { " fin" } else { "" })
        }
        Frame::Crypto { offset, length } => {
            format!("crypto {offset}:{}", offset.saturating_add(*length))
        }
        Frame::Ack { ranges, .. } => format!("ack {}", acked(ranges)),
        Frame::MaxData { maximum } => format!("max_data {maximum}"),
        Frame::MaxStreamData { stream_id, maximum } => {
            format!("max_stream_data {stream_id} {maximum}")
        }
        Frame::Other(map) => Value::from(map.clone()).to_string(),
    }
}

/// `0-4 6`.
fn acked(ranges: &[(u64, u64)]) -> String {
    let range = |&(from, to): &(u64, u64)| {
        if from == to { from.to_string() } else { format!("{from}-{to}") }
    };
    ranges.iter().map(range).collect::<Vec<_>>().join(" ")
}

fn metrics_words(metrics: &Metrics) -> Vec<String> {
    let count = |name: &str, value: Option<u64>| value.map(|value| format!("{name} {value}"));
    let span = |name: &str, value: Option<Duration>| {
        value.map(|value| format!("{name} {}us", value.as_micros()))
    };
    [
        count("cwnd", metrics.congestion_window),
        count("ssthresh", metrics.ssthresh),
        count("flight", metrics.bytes_in_flight),
        count("packets", metrics.packets_in_flight),
        span("srtt", metrics.smoothed_rtt),
        span("rtt", metrics.latest_rtt),
        span("min_rtt", metrics.min_rtt),
        span("rttvar", metrics.rtt_variance),
        count("pto", metrics.pto_count),
        count("pacing", metrics.pacing_rate),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn summary(loss: &Loss) -> String {
    format!(
        "# {} events, {} of them of unknown kinds, {} left out, {} bytes skipped",
        loss.events, loss.unknown_events, loss.bad_events, loss.skipped_bytes
    )
}

fn header_json(header: &FileInfo) -> Value {
    let trace = &header.trace;
    json!({ "header": {
        "generation": header.generation.name(),
        "container": container(header),
        "title": header.title,
        "trace": trace.title,
        "vantage_point": trace.vantage.name(),
        "name": trace.vantage_name,
        "group_id": trace.group_id,
        "protocols": trace.protocols,
        "epoch_s": trace.epoch.map(|epoch| Seconds(Some(epoch)).to_string()),
    }})
}

fn event_json(at: &Seconds, event: &Event) -> Value {
    let mut object = json!({
        "time_s": at.to_string(),
        "name": event.name(),
        "data": event.fields(),
    });
    if let Some(group) = &event.group_id {
        object["group_id"] = group.as_str().into();
    }
    json!({ "event": object })
}

fn summary_json(loss: &Loss) -> Value {
    json!({ "summary": {
        "events": loss.events,
        "unknown_events": loss.unknown_events,
        "bad_events": loss.bad_events,
        "skipped_bytes": loss.skipped_bytes,
        "problems": loss.problems,
    }})
}

const COLUMNS: [&str; 22] = [
    "time_s",
    "name",
    "packet_type",
    "packet_number",
    "length_bytes",
    "stream_id",
    "stream_offset",
    "stream_bytes",
    "acked",
    "cwnd_bytes",
    "ssthresh_bytes",
    "in_flight_bytes",
    "in_flight_packets",
    "srtt_us",
    "latest_rtt_us",
    "min_rtt_us",
    "rtt_variance_us",
    "pto_count",
    "pacing_rate_bps",
    "state",
    "trigger",
    "other",
];

/// Every column; what has none stands in the last, as JSON.
fn cells(at: &Seconds, event: &Event) -> Vec<String> {
    let mut header = &PacketHeader::default();
    let mut packet = &Packet::default();
    let mut metrics = &Metrics::default();
    let (mut state, mut why) = (None, None);
    let mut other = event.more.clone();
    match &event.data {
        Data::PacketSent(one) | Data::PacketReceived(one) => {
            (header, packet, why) = (&one.header, one, one.trigger.as_deref());
        }
        Data::PacketLost { header: one, trigger } => (header, why) = (one, trigger.as_deref()),
        Data::MetricsUpdated(one) => metrics = one,
        Data::CongestionStateUpdated { new, trigger, .. } => {
            (state, why) = (Some(new.as_str()), trigger.as_deref());
        }
        _ => other = event.fields(),
    }
    let stream = packet.frames.iter().find_map(|frame| match frame {
        Frame::Stream { stream_id, offset, length, .. } => Some((*stream_id, *offset, *length)),
        _ => None,
    });
    let acks = packet.frames.iter().find_map(|frame| match frame {
        Frame::Ack { ranges, .. } => Some(acked(ranges)),
        _ => None,
    });
    // One of each kind has a column; of a packet with more, all stand in the last.
    if packet.frames.len() > usize::from(stream.is_some()) + usize::from(acks.is_some()) {
        let frames = event.fields().remove("frames").unwrap_or_default();
        other.insert("frames".to_owned(), frames);
    }
    let number = |value: Option<u64>| Known(value).to_string();
    let micros = |value: Option<Duration>| Known(value.map(Duration::as_micros)).to_string();
    vec![
        at.to_string(),
        quoted(event.name()),
        quoted(&header.packet_type),
        number(header.packet_number),
        number(packet.length),
        number(stream.map(|(id, ..)| id)),
        number(stream.map(|(_, offset, _)| offset)),
        number(stream.map(|(.., length)| length)),
        acks.unwrap_or_default(),
        number(metrics.congestion_window),
        number(metrics.ssthresh),
        number(metrics.bytes_in_flight),
        number(metrics.packets_in_flight),
        micros(metrics.smoothed_rtt),
        micros(metrics.latest_rtt),
        micros(metrics.min_rtt),
        micros(metrics.rtt_variance),
        number(metrics.pto_count),
        number(metrics.pacing_rate),
        quoted(state.unwrap_or_default()),
        quoted(why.unwrap_or_default()),
        if other.is_empty() { String::new() } else { quoted(&Value::from(other).to_string()) },
    ]
}

/// A text of somebody else's as a cell (RFC 4180).
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
