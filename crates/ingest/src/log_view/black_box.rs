//! A Black Box Log as text, JSON or CSV.

use std::io::Read;

use serde_json::{Map, Value, json};
use trace::bblog::{
    BblogItem, BblogPacket, BblogReader, BblogRecord, BblogSection, BblogStats, Hz, StackData,
    TcpLogBuffer,
};
use trace::pcapng::PacketDirection;

use super::{DisplayOption, DisplaySeconds, LogFormat, LogStatus, LogWriter, ViewError};

/// TCP_MAXWIN << TCP_MAX_WINSHIFT: `snd_ssthresh` is not set (tcp_newtcpcb).
const UNSET: u32 = 65_535 << 14;

pub(super) fn view(log: impl Read, show: &mut LogWriter<'_>) -> Result<LogStatus, ViewError> {
    let mut reader = BblogReader::new(log);
    let mut section = BblogSection::default();
    let mut columns = show.form == LogFormat::Csv;
    for item in reader.by_ref() {
        match item.map_err(ViewError::Read)? {
            BblogItem::Section(found) => {
                section = found;
                match show.form {
                    LogFormat::Text => show.heading(heading(&section))?,
                    LogFormat::Json => show.heading(section_json(&section).to_string())?,
                    LogFormat::Csv => {}
                }
            }
            BblogItem::Record(record) => {
                if core::mem::take(&mut columns) {
                    show.line(&column_names())?;
                }
                show.line(&match show.form {
                    LogFormat::Text => text(&record, &section),
                    LogFormat::Json => record_json(&record).to_string(),
                    LogFormat::Csv => row(&record),
                })?;
            }
            BblogItem::Problem(problem) => {
                let place = json!({ "offset": problem.offset, "what": problem.kind.to_string() });
                show.problem(&problem, &place)?;
            }
        }
    }
    let (loss, hz) = (*reader.loss(), reader.hz());
    if loss.records > 0 {
        match show.form {
            LogFormat::Text => show.line(&summary(&loss, hz))?,
            LogFormat::Json => show.line(&summary_json(&loss, hz).to_string())?,
            LogFormat::Csv => {}
        }
    }
    let whole = loss.problems == 0;
    Ok(show.verdict("a Black Box Log", loss.records, whole))
}

fn heading(section: &BblogSection) -> String {
    let connection = section.connection.as_ref().map_or_else(
        || "unknown connection".to_owned(),
        |c| format!("{} > {}, id {:?}", c.local, c.remote, c.id),
    );
    let stacks: Vec<_> = section.stacks.iter().map(|(id, name)| format!("{id} {name}")).collect();
    format!("# {connection}, stack {}", stacks.join(", "))
}

/// Formats a record; sequence numbers are relative to the ISS, as in tcpdump.
fn text(record: &BblogRecord, section: &BblogSection) -> String {
    let info = &record.info;
    let from_iss = |number: u32| number.wrapping_sub(info.iss);
    let srtt = match section.srtt_in_micros(info.stack_id) {
        Some(true) => format!("{}us", info.srtt),
        Some(false) => format!("{}/32t", info.srtt),
        None => info.srtt.to_string(),
    };
    let threshold = match info.snd_ssthresh {
        UNSET.. => "-".to_owned(),
        set => set.to_string(),
    };
    let mut line = format!(
        "{} {:>6} {:<10} {:<12} una {} nxt {} max {} cwnd {} ssthresh {threshold} wnd {} srtt {srtt}",
        DisplaySeconds(record.at),
        info.serial,
        info.event(),
        info.state_name().unwrap_or("?"),
        from_iss(info.snd_una),
        from_iss(info.snd_nxt),
        from_iss(info.snd_max),
        info.snd_cwnd,
        info.snd_wnd,
    );
    if (info.flex1, info.flex2) != (0, 0) {
        line += &format!(" flex {} {}", info.flex1, info.flex2);
    }
    if let Some(BblogPacket { segment, .. }) = record.packet {
        line += &format!(
            " [{}] seq {} ack {} win {} length {}",
            segment.flags, segment.seq.0, segment.ack.0, segment.window, segment.payload
        );
    }
    match info.stack() {
        StackData::Nothing => {}
        StackData::Bbr(bbr) => {
            line += &format!(
                " inflight {} delivered {} lost {}",
                bbr.inflight, bbr.delivered, bbr.lost
            );
        }
        StackData::Unknown(_) => line += " stack data of an unknown layout",
    }
    line
}

fn summary(loss: &BblogStats, hz: Option<Hz>) -> String {
    let hz = hz.map_or_else(|| "not known".to_owned(), |hz| hz.to_string());
    format!(
        "# {} records, {} missing ({} declared as lost), {} bytes skipped, {} of unknown events, \
         kern.hz {hz}",
        loss.records, loss.missing, loss.declared, loss.skipped_bytes, loss.unknown_events
    )
}

fn numbers(each: impl FnOnce(&mut dyn FnMut(&'static str, i128))) -> Map<String, Value> {
    let mut map = Map::new();
    each(&mut |name, number| {
        let value = i64::try_from(number).map_or(json!(number as u64), |number| json!(number));
        map.insert(name.to_owned(), value);
    });
    map
}

fn section_json(section: &BblogSection) -> Value {
    let connection = section.connection.as_ref().map(|c| {
        json!({
            "local": c.local.to_string(),
            "remote": c.remote.to_string(),
            "boot_us": c.boot_micros,
            "id": c.id,
            "reason": c.reason,
            "tag": c.tag,
        })
    });
    let stacks: Map<String, Value> =
        section.stacks.iter().map(|(id, name)| (id.to_string(), json!(name))).collect();
    json!({ "section": {
        "version": section.version,
        "connection": connection,
        "stacks": stacks,
        "application": section.application,
        "comment": section.comment,
    }})
}

fn record_json(record: &BblogRecord) -> Value {
    let info = &record.info;
    let mut map = numbers(|see| info.each(see));
    map.insert("offset".to_owned(), json!(record.offset));
    map.insert("at_us".to_owned(), json!(record.at.map(|at| at.as_micros())));
    map.insert("event".to_owned(), json!(info.event().name()));
    map.insert("state_name".to_owned(), json!(info.state_name()));
    let hex = |bytes: &[u8]| -> String { bytes.iter().map(|b| format!("{b:02x}")).collect() };
    match info.stack() {
        StackData::Nothing => {}
        StackData::Bbr(bbr) => {
            drop(map.insert("bbr".to_owned(), numbers(|see| bbr.each(see)).into()));
        }
        StackData::Unknown(bytes) => drop(map.insert("stack_bytes".to_owned(), json!(hex(&bytes)))),
    }
    if let Some(BblogPacket { way, between, segment }) = record.packet {
        let packet = json!({
            "out": way == PacketDirection::Out,
            "src": between.src.to_string(),
            "dst": between.dst.to_string(),
            "flags": segment.flags.to_string(),
            "seq": segment.seq.0,
            "ack": segment.ack.0,
            "window": segment.window,
            "payload": segment.payload,
        });
        map.insert("packet".to_owned(), packet);
    }
    json!({ "record": map })
}

fn summary_json(loss: &BblogStats, hz: Option<Hz>) -> Value {
    json!({ "summary": {
        "records": loss.records,
        "missing": loss.missing,
        "declared_lost": loss.declared,
        "skipped_bytes": loss.skipped_bytes,
        "unknown_events": loss.unknown_events,
        "foreign_blocks": loss.foreign_blocks,
        "problems": loss.problems,
        "hz": hz.and_then(|hz| hz.value),
    }})
}

fn column_names() -> String {
    let mut names = vec!["offset", "time_s", "event"];
    TcpLogBuffer::default().each(|name, _| names.push(name));
    names.extend(["packet_flags", "packet_seq", "packet_ack", "packet_window", "packet_payload"]);
    names.join(",")
}

fn row(record: &BblogRecord) -> String {
    let info = &record.info;
    let at = record.at.map(|at| DisplaySeconds(Some(at)));
    let mut cells =
        vec![record.offset.to_string(), DisplayOption(at).to_string(), info.event().to_string()];
    info.each(|_, number| cells.push(number.to_string()));
    let segment = record.packet.map(|packet| packet.segment);
    cells.extend([
        DisplayOption(segment.map(|s| s.flags)).to_string(),
        DisplayOption(segment.map(|s| s.seq.0)).to_string(),
        DisplayOption(segment.map(|s| s.ack.0)).to_string(),
        DisplayOption(segment.map(|s| s.window)).to_string(),
        DisplayOption(segment.map(|s| s.payload)).to_string(),
    ]);
    cells.join(",")
}
