//! A qlog as text, JSON or CSV.

use std::io::BufRead;

use logs::qlog::{
    Container, FileInfo, Metrics, PacketHeader, QlogData, QlogEvent, QlogFrame, QlogItem,
    QlogPacket, QlogReader, QlogStats,
};
use serde_json::{Value, json};
use units::Duration;

use super::{DisplayOption, DisplaySeconds, LogFormat, LogStatus, LogWriter, ViewError};

pub(super) fn view(log: impl BufRead, show: &mut LogWriter<'_>) -> Result<LogStatus, ViewError> {
    let mut reader = QlogReader::new(log);
    let mut columns = show.form == LogFormat::Csv;
    let mut epoch = Duration::ZERO;
    for item in reader.by_ref() {
        match item.map_err(ViewError::Read)? {
            QlogItem::Header(header) => {
                epoch = header.trace.epoch.unwrap_or_default();
                match show.form {
                    LogFormat::Text => show.heading(heading(&header))?,
                    LogFormat::Json => show.heading(header_json(&header).to_string())?,
                    LogFormat::Csv => {}
                }
            }
            QlogItem::Event(event) => {
                let at = DisplaySeconds(Some(Duration::from_nanos(
                    epoch.as_nanos().saturating_add(event.at.as_nanos()),
                )));
                match show.form {
                    LogFormat::Text => show.line(&format!("{at} {}", text(&event)))?,
                    LogFormat::Json => show.line(&event_json(&at, &event).to_string())?,
                    LogFormat::Csv => {
                        if core::mem::take(&mut columns) {
                            show.line(&COLUMNS.join(","))?;
                        }
                        show.line(&cells(&at, &event).join(","))?;
                    }
                }
            }
            QlogItem::Problem(problem) => {
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
            LogFormat::Text => show.line(&summary(&loss))?,
            LogFormat::Json => show.line(&summary_json(&loss).to_string())?,
            LogFormat::Csv => {}
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
    let reported: String = parts
        .iter()
        .filter(|(_, text)| !text.is_empty())
        .map(|(what, text)| format!(", {what}{}", text.escape_debug()))
        .collect();
    format!("# qlog {} in {}, {vantage}{reported}", header.generation.name(), container(header))
}

fn text(event: &QlogEvent) -> String {
    let mut words = vec![event.name().escape_debug().to_string()];
    match &event.data {
        QlogData::PacketSent(packet) | QlogData::PacketReceived(packet) => {
            header_words(&mut words, &packet.header);
            words.extend(packet.length.map(|length| format!("length {length}")));
            words.extend(packet.frames.iter().map(frame));
            words.extend(packet.trigger.iter().map(|why| format!("({})", why.escape_debug())));
        }
        QlogData::PacketLost { header, trigger } => {
            header_words(&mut words, header);
            words.extend(trigger.iter().map(|why| format!("({})", why.escape_debug())));
        }
        QlogData::MetricsUpdated(metrics) => words.extend(metrics_words(metrics)),
        QlogData::CongestionStateUpdated { old, new, trigger } => {
            words.extend(old.iter().map(|old| format!("{} ->", old.escape_debug())));
            words.push(new.escape_debug().to_string());
            words.extend(trigger.iter().map(|why| format!("({})", why.escape_debug())));
        }
        _ => words.push(Value::from(event.fields()).to_string()),
    }
    let shown = !matches!(
        event.data,
        QlogData::PacketSent(_)
            | QlogData::PacketReceived(_)
            | QlogData::PacketLost { .. }
            | QlogData::MetricsUpdated(_)
            | QlogData::CongestionStateUpdated { .. }
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

fn frame(frame: &QlogFrame) -> String {
    match frame {
        QlogFrame::Stream { stream_id, offset, length, fin } => {
            let end = offset.saturating_add(*length);
            format!("stream {stream_id} {offset}:{end}{}", if *fin { " fin" } else { "" })
        }
        QlogFrame::Crypto { offset, length } => {
            format!("crypto {offset}:{}", offset.saturating_add(*length))
        }
        QlogFrame::Ack { ranges, .. } => format!("ack {}", acked(ranges)),
        QlogFrame::MaxData { maximum } => format!("max_data {maximum}"),
        QlogFrame::MaxStreamData { stream_id, maximum } => {
            format!("max_stream_data {stream_id} {maximum}")
        }
        QlogFrame::Other(map) => Value::from(map.clone()).to_string(),
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

fn summary(loss: &QlogStats) -> String {
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
        "epoch_s": trace.epoch.map(|epoch| DisplaySeconds(Some(epoch)).to_string()),
    }})
}

fn event_json(at: &DisplaySeconds, event: &QlogEvent) -> Value {
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

fn summary_json(loss: &QlogStats) -> Value {
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

/// The cells of all columns; fields without a column are in the last one, as JSON.
fn cells(at: &DisplaySeconds, event: &QlogEvent) -> Vec<String> {
    let mut header = &PacketHeader::default();
    let mut packet = &QlogPacket::default();
    let mut metrics = &Metrics::default();
    let (mut state, mut why) = (None, None);
    let mut other = event.more.clone();
    match &event.data {
        QlogData::PacketSent(one) | QlogData::PacketReceived(one) => {
            (header, packet, why) = (&one.header, one, one.trigger.as_deref());
        }
        QlogData::PacketLost { header: one, trigger } => (header, why) = (one, trigger.as_deref()),
        QlogData::MetricsUpdated(one) => metrics = one,
        QlogData::CongestionStateUpdated { new, trigger, .. } => {
            (state, why) = (Some(new.as_str()), trigger.as_deref());
        }
        _ => other = event.fields(),
    }
    let stream = packet.frames.iter().find_map(|frame| match frame {
        QlogFrame::Stream { stream_id, offset, length, .. } => Some((*stream_id, *offset, *length)),
        _ => None,
    });
    let acks = packet.frames.iter().find_map(|frame| match frame {
        QlogFrame::Ack { ranges, .. } => Some(acked(ranges)),
        _ => None,
    });
    // One STREAM and one ACK frame have columns; the frames of a packet with more are in the last
    // one.
    if packet.frames.len() > usize::from(stream.is_some()) + usize::from(acks.is_some()) {
        let frames = event.fields().remove("frames").unwrap_or_default();
        other.insert("frames".to_owned(), frames);
    }
    let number = |value: Option<u64>| DisplayOption(value).to_string();
    let micros =
        |value: Option<Duration>| DisplayOption(value.map(Duration::as_micros)).to_string();
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

/// Quotes a text of the log as a CSV cell (RFC 4180).
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
