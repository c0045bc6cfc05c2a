//! A siftr log as text, JSON or CSV.

use std::io::BufRead;

use logs::siftr::{SiftrFooter, SiftrHeader, SiftrItem, SiftrReader, SiftrRow, SiftrStats};
use serde_json::{Value, json};
use trace::pcapng::PacketDirection;
use units::Duration;

use super::{DisplayOption, DisplaySeconds, LogFormat, LogStatus, LogWriter, ViewError};

pub(super) fn view(log: impl BufRead, show: &mut LogWriter<'_>) -> Result<LogStatus, ViewError> {
    let mut reader = SiftrReader::new(log);
    let mut columns = show.form == LogFormat::Csv;
    for item in reader.by_ref() {
        match item.map_err(ViewError::Read)? {
            SiftrItem::Header(header) => match show.form {
                LogFormat::Text => show.heading(format!(
                    "# siftr {} on {} {}",
                    header.version, header.sysname, header.sysver
                ))?,
                LogFormat::Json => show.heading(header_json(&header).to_string())?,
                LogFormat::Csv => {}
            },
            SiftrItem::Row(row) => {
                let cells = cells(&row);
                if core::mem::take(&mut columns) {
                    let names: Vec<&str> = cells.iter().map(|(name, _)| *name).collect();
                    show.line(&names.join(","))?;
                }
                show.line(&match show.form {
                    LogFormat::Text => text(&row),
                    LogFormat::Json => {
                        let object = cells.into_iter().map(|(name, value)| (name.into(), value));
                        json!({ "row": Value::Object(object.collect()) }).to_string()
                    }
                    LogFormat::Csv => {
                        cells.iter().map(|(_, value)| plain(value)).collect::<Vec<_>>().join(",")
                    }
                })?;
            }
            SiftrItem::Footer(footer) => {
                if show.form == LogFormat::Json {
                    show.heading(footer_json(&footer).to_string())?;
                }
            }
            SiftrItem::Problem(problem) => {
                let place = json!({
                    "line": problem.line,
                    "column": problem.column,
                    "offset": problem.offset,
                    "what": problem.kind.to_string(),
                });
                show.problem(&problem, &place)?;
            }
        }
    }
    let loss = *reader.loss();
    if loss.rows > 0 {
        match show.form {
            LogFormat::Text => show.line(&summary(&loss))?,
            LogFormat::Json => show.line(&summary_json(&loss).to_string())?,
            LogFormat::Csv => {}
        }
    }
    Ok(show.verdict("a siftr log", loss.rows, loss.problems == 0))
}

fn text(row: &SiftrRow) -> String {
    let way = if row.way == PacketDirection::Out { "out" } else { "in" };
    let flow = match (row.local, row.remote) {
        (Some(local), Some(remote)) => format!("{local} > {remote}"),
        _ => format!("flow {:08x}", row.flow_id.unwrap_or(0)),
    };
    let micros = |span: Option<Duration>| {
        span.map_or_else(|| "-".to_owned(), |span| format!("{}us", span.as_micros()))
    };
    format!(
        "{} {way:<3} {flow} cwnd {} ssthresh {} wnd {} flight {} buffered {} srtt {} rto {}",
        DisplaySeconds(Some(row.at)),
        row.cwnd,
        row.ssthresh,
        row.snd_wnd,
        row.in_flight,
        row.snd_cc,
        micros(row.srtt),
        micros(row.rto),
    )
}

fn summary(loss: &SiftrStats) -> String {
    format!(
        "# {} rows, {} lines that are none, {} bytes skipped, {} packets without a row, {}",
        loss.rows,
        loss.bad_lines,
        loss.skipped_bytes,
        loss.lost_packets,
        if loss.ended { "footer there" } else { "no footer" }
    )
}

/// All fields with their names; null if the version of siftr lacks the field.
fn cells(row: &SiftrRow) -> Vec<(&'static str, Value)> {
    let micros = |span: Option<Duration>| json!(span.map(Duration::as_micros));
    vec![
        ("time_s", json!(DisplaySeconds(Some(row.at)).to_string())),
        ("out", json!(u8::from(row.way == PacketDirection::Out))),
        ("local", json!(row.local.map(|end| end.to_string()))),
        ("remote", json!(row.remote.map(|end| end.to_string()))),
        ("flow_id", json!(row.flow_id)),
        ("flow_type", json!(row.flow_type)),
        ("hash", json!(row.hash)),
        ("ssthresh_bytes", json!(row.ssthresh)),
        ("cwnd_bytes", json!(row.cwnd)),
        ("bwnd_bytes", json!(row.bwnd)),
        ("snd_wnd_bytes", json!(row.snd_wnd)),
        ("rcv_wnd_bytes", json!(row.rcv_wnd)),
        ("snd_scale", json!(row.snd_scale)),
        ("rcv_scale", json!(row.rcv_scale)),
        ("state", json!(row.state)),
        ("mss_bytes", json!(row.mss)),
        ("srtt_us", micros(row.srtt)),
        ("sack", json!(row.sack.map(u8::from))),
        ("t_flags", json!(row.t_flags)),
        ("t_flags2", json!(row.t_flags2)),
        ("rto_us", micros(row.rto)),
        ("snd_hiwat_bytes", json!(row.snd_hiwat)),
        ("snd_cc_bytes", json!(row.snd_cc)),
        ("rcv_hiwat_bytes", json!(row.rcv_hiwat)),
        ("rcv_cc_bytes", json!(row.rcv_cc)),
        ("in_flight_bytes", json!(row.in_flight)),
        ("segqlen", json!(row.segqlen)),
        ("payload_bytes", json!(row.payload)),
    ]
}

/// A cell of CSV: no field has a comma or a quote in it.
fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => DisplayOption(Some(other)).to_string(),
    }
}

fn header_json(header: &SiftrHeader) -> Value {
    json!({ "header": {
        "version": header.version,
        "enabled_us": header.enabled.as_micros(),
        "hz": header.hz,
        "sysname": header.sysname,
        "sysver": header.sysver,
        "binary": header.binary,
    }})
}

fn footer_json(footer: &SiftrFooter) -> Value {
    let flows: Vec<Value> = footer
        .flows
        .iter()
        .map(|flow| {
            json!({
                "id": flow.id,
                "local": flow.local.to_string(),
                "remote": flow.remote.to_string(),
                "rest": flow.rest,
            })
        })
        .collect();
    json!({ "footer": { "disabled_us": footer.disabled.as_micros(), "flows": flows } })
}

fn summary_json(loss: &SiftrStats) -> Value {
    json!({ "summary": {
        "rows": loss.rows,
        "bad_lines": loss.bad_lines,
        "skipped_bytes": loss.skipped_bytes,
        "packets_without_row": loss.lost_packets,
        "footer": loss.ended,
        "problems": loss.problems,
    }})
}
