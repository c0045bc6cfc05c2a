//! Writes a log event by event.

use std::io::{self, Write};

use serde_json::{Map, Value, json};
use units::Duration;

use super::encode;
use super::model::{QlogEvent, Trace};

/// Output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QlogFormat {
    /// A JSON text sequence of the drafts: `urn:ietf:params:qlog:file:sequential`.
    Current,
    /// Version 0.3 as one JSON document, which qvis reads; one event per line.
    Qvis,
}

/// URNs of the event schemas; those of drafts have the draft's number.
const SCHEMAS: [&str; 2] =
    ["urn:ietf:params:qlog:events:quic-12", "urn:ietf:params:qlog:events:simulation"];

/// Writes a log with one trace.
#[derive(Debug)]
pub struct QlogWriter<W> {
    out: W,
    form: QlogFormat,
    events: u64,
}

impl<W: Write> QlogWriter<W> {
    /// Writes the header of `trace` to `out`.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn new(mut out: W, trace: &Trace, form: QlogFormat) -> io::Result<Self> {
        match form {
            QlogFormat::Current => {
                // Schema and format are first, where readers look for them.
                write!(
                    out,
                    "\x1e{{\"file_schema\":\"urn:ietf:params:qlog:file:sequential\",\
                     \"serialization_format\":\"application/qlog+json-seq\",\"title\":{},\
                     \"description\":{},\"trace\":",
                    Value::from(trace.title.as_str()),
                    Value::from(trace.description.as_str()),
                )?;
                let header = json!({
                    "common_fields": current_fields(trace),
                    "vantage_point": vantage(trace),
                    "event_schemas": SCHEMAS,
                });
                serde_json::to_writer(&mut out, &header)?;
                out.write_all(b"}\n")?;
            }
            QlogFormat::Qvis => {
                // Version and format are first, where readers look for them.
                write!(
                    out,
                    "{{\"qlog_version\":\"0.3\",\"qlog_format\":\"JSON\",\"title\":{},\
                     \"description\":{},\"traces\":[{{\"common_fields\":{},\
                     \"vantage_point\":{},\"events\":[",
                    Value::from(trace.title.as_str()),
                    Value::from(trace.description.as_str()),
                    old_fields(trace),
                    vantage(trace),
                )?;
            }
        }
        Ok(Self { out, form, events: 0 })
    }

    /// Writes an event. Times must not decrease.
    ///
    /// # Errors
    /// Those of the output.
    pub fn event(&mut self, event: &QlogEvent) -> io::Result<()> {
        let (current, old) = encode::names(&event.data);
        let name = match self.form {
            QlogFormat::Current => current,
            QlogFormat::Qvis => old,
        };
        match self.form {
            QlogFormat::Current => self.out.write_all(b"\x1e")?,
            QlogFormat::Qvis if self.events > 0 => self.out.write_all(b",\n")?,
            QlogFormat::Qvis => self.out.write_all(b"\n")?,
        }
        // The time is first, so that the beginning of an event can be recognized after damage.
        write!(self.out, "{{\"time\":{},", number(encode::ms(event.at)))?;
        if let Some(group) = &event.group_id {
            write!(self.out, "\"group_id\":{},", Value::from(group.as_str()))?;
        }
        write!(self.out, "\"name\":{},\"data\":", Value::from(name))?;
        serde_json::to_writer(&mut self.out, &encode::data(&event.data, &event.more, self.form))?;
        let end: &[u8] = if self.form == QlogFormat::Current { b"}\n" } else { b"}" };
        self.out.write_all(end)?;
        self.events += 1;
        Ok(())
    }

    /// Closes the log, flushes and returns the output.
    ///
    /// # Errors
    /// Those of the output.
    pub fn finish(mut self) -> io::Result<W> {
        if self.form == QlogFormat::Qvis {
            self.out.write_all(b"\n]}]}\n")?;
        }
        self.out.flush()?;
        Ok(self.out)
    }
}

/// A number without a fraction if it is an integer.
fn number(ms: f64) -> Value {
    let whole = ms as u64;
    if whole as f64 >= ms { whole.into() } else { ms.into() }
}

fn vantage(trace: &Trace) -> Value {
    let kind = trace.vantage.name();
    match trace.vantage_name.as_str() {
        "" => json!({ "type": kind }),
        name => json!({ "name": name, "type": kind }),
    }
}

fn current_fields(trace: &Trace) -> Value {
    let mut fields = group(trace, "protocol_types");
    let clock = match trace.epoch {
        Some(epoch) => json!({ "clock_type": "system", "epoch": rfc3339(epoch) }),
        None => json!({ "clock_type": "monotonic", "epoch": "unknown" }),
    };
    fields.insert("time_format".to_owned(), "relative_to_epoch".into());
    fields.insert("reference_time".to_owned(), clock);
    fields.into()
}

fn old_fields(trace: &Trace) -> Value {
    let mut fields = group(trace, "protocol_type");
    fields.insert("time_format".to_owned(), "relative".into());
    if let Some(epoch) = trace.epoch {
        fields.insert("reference_time".to_owned(), number(encode::ms(epoch)));
    }
    fields.into()
}

fn group(trace: &Trace, protocols: &str) -> Map<String, Value> {
    let mut fields = Map::new();
    if !trace.protocols.is_empty() {
        fields.insert(protocols.to_owned(), trace.protocols.clone().into());
    }
    if !trace.group_id.is_empty() {
        fields.insert("group_id".to_owned(), trace.group_id.as_str().into());
    }
    fields
}

/// Formats a time since 1970 in RFC 3339, to the millisecond.
fn rfc3339(epoch: Duration) -> String {
    let (seconds, ms) = (epoch.as_millis() / 1_000, epoch.as_millis() % 1_000);
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = super::header::date(days);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}
