//! Decodes the header of a file and its trace, in every version.

use serde_json::{Map, Value};
use units::Duration;

use super::NANOS_PER_MS;
use super::fields::{FieldReader, nanos};
use super::item::QlogGeneration;
use super::model::{Trace, Vantage};
use super::problem::{QlogProblemKind, short};

/// Format of the times of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum TimeFormat {
    /// Since the reference time.
    #[default]
    Relative,
    /// Since 1970.
    Absolute,
    /// Since the previous event.
    Delta,
}

impl TimeFormat {
    pub(super) fn named(name: &str) -> Option<Self> {
        match name {
            "relative" | "relative_to_epoch" => Some(Self::Relative),
            "absolute" => Some(Self::Absolute),
            "delta" | "relative_to_previous_event" => Some(Self::Delta),
            _ => None,
        }
    }
}

/// State needed to decode the events of a trace.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Context {
    pub(super) time: TimeFormat,
    /// Nanoseconds per unit of time.
    pub(super) unit: f64,
    /// Reference time since 1970.
    pub(super) epoch: Option<u64>,
    /// Names of the columns, if events are lists.
    pub(super) columns: Vec<String>,
    /// Time of the last event.
    pub(super) last: u64,
}

impl Default for Context {
    fn default() -> Self {
        let columns = ["relative_time", "category", "event", "data"];
        Self {
            time: TimeFormat::Relative,
            unit: NANOS_PER_MS,
            epoch: None,
            columns: columns.map(str::to_owned).to_vec(),
            last: 0,
        }
    }
}

/// Detects the version from the fields of a file.
pub(super) fn generation(
    top: &Map<String, Value>,
    problems: &mut Vec<QlogProblemKind>,
) -> QlogGeneration {
    // Some writers keep the old fields beside the new one.
    let field = if top.contains_key("file_schema") { "file_schema" } else { "qlog_version" };
    let found = match top.get(field) {
        None => "nothing".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    let (known, read_as, nearest) = if field == "file_schema" {
        let known = found.starts_with("urn:ietf:params:qlog:file:");
        (known.then_some(QlogGeneration::Current), "the drafts", QlogGeneration::Current)
    } else {
        (QlogGeneration::of_version(&found), "0.3", QlogGeneration::V0_3)
    };
    known.unwrap_or_else(|| {
        problems.push(QlogProblemKind::Generation { field, found: short(&found), read_as });
        nearest
    })
}

/// The version of the code that wrote a file, which is not in the drafts: quic-go has it beside the title.
pub(super) fn code_version(top: &Map<String, Value>, trace: &Map<String, Value>) -> String {
    let of = |map: &Map<String, Value>| map.get("code_version")?.as_str().map(str::to_owned);
    of(top).or_else(|| of(trace)).unwrap_or_default()
}

/// Decodes the metadata of a trace, and the context for its events.
pub(super) fn trace(
    map: Map<String, Value>,
    problems: &mut Vec<QlogProblemKind>,
) -> (Trace, Context) {
    let mut context = Context::default();
    let mut fields = FieldReader { map, problems, unit: NANOS_PER_MS };
    let mut trace = Trace {
        title: fields.text("title").unwrap_or_default(),
        description: fields.text("description").unwrap_or_default(),
        ..Trace::default()
    };
    fields.within("vantage_point", |fields| {
        trace.vantage_name = fields.text("name").unwrap_or_default();
        trace.vantage = match fields.text("type").unwrap_or_default().to_lowercase().as_str() {
            "client" => Vantage::Client,
            "server" => Vantage::Server,
            "network" => Vantage::Network,
            _ => Vantage::Unknown,
        };
    });
    fields.within("configuration", |fields| match fields.text("time_units").as_deref() {
        Some("us") => context.unit = 1e3,
        Some("ms") | None => {}
        Some(other) => fields.problems.push(QlogProblemKind::Field {
            name: "time_units",
            found: short(other),
            expected: "ms or us",
        }),
    });
    if let Some(columns) = fields.list("event_fields") {
        // The oldest version writes them in capitals.
        let name = |column: &Value| column.as_str().unwrap_or_default().to_lowercase();
        context.columns = columns.iter().map(name).collect();
    }
    fields.unit = context.unit;
    fields.within("common_fields", |fields| common(fields, &mut trace, &mut context));
    context.epoch = trace.epoch.map(Duration::as_nanos);
    (trace, context)
}

fn common(fields: &mut FieldReader<'_>, trace: &mut Trace, context: &mut Context) {
    let group = fields.map.remove("group_id").or_else(|| fields.map.get("ODCID").cloned());
    trace.group_id = match group {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text,
        Some(other) => other.to_string(),
    };
    for name in ["protocol_type", "protocol_types"] {
        match fields.map.remove(name) {
            Some(Value::String(text)) => trace.protocols.push(text),
            Some(Value::Array(list)) => {
                let texts = list.iter().filter_map(Value::as_str).map(str::to_owned);
                trace.protocols.extend(texts);
            }
            _ => {}
        }
    }
    if let Some(name) = fields.text("time_format") {
        context.time = TimeFormat::named(&name).unwrap_or_else(|| {
            fields.problems.push(QlogProblemKind::Field {
                name: "time_format",
                found: short(&name),
                expected: "relative, absolute or delta, or what the drafts call them",
            });
            TimeFormat::Relative
        });
    }
    if context.columns.first().is_some_and(|column| column == "delta_time") {
        context.time = TimeFormat::Delta;
    }
    trace.epoch = match fields.map.remove("reference_time") {
        None | Some(Value::Null) => None,
        Some(Value::Object(map)) => {
            let epoch = map.get("epoch").and_then(Value::as_str);
            let wall = map.get("wall_clock_time").and_then(Value::as_str);
            epoch.and_then(moment).or_else(|| wall.and_then(moment))
        }
        Some(value) => {
            let found = nanos(&value, context.unit).map(Duration::from_nanos);
            found.or_else(|| value.as_str().and_then(moment))
        }
    };
    if context.time == TimeFormat::Absolute && trace.epoch.is_none() {
        trace.epoch = Some(Duration::ZERO);
    }
}

/// Parses RFC 3339 in UTC to a time since 1970.
fn moment(text: &str) -> Option<Duration> {
    let number = |range: core::ops::Range<usize>| text.get(range)?.parse::<u64>().ok();
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
    let fraction = text.get(19..)?.strip_suffix('Z')?;
    let digits = fraction.strip_prefix('.').unwrap_or(fraction);
    if digits.len() > 9 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let nanos: u64 = format!("{digits:0<9}").parse().ok()?;
    let days = days(year, month, day)?;
    let seconds = days * 86_400 + hour * 3_600 + minute * 60 + second;
    Some(Duration::from_nanos(seconds.checked_mul(1_000_000_000)?.checked_add(nanos)?))
}

const fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

const fn month_days(year: u64, month: u64) -> u64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970 to a date; `None` before 1970 and for an invalid date.
fn days(year: u64, month: u64, day: u64) -> Option<u64> {
    let is_date = (1_970..=2_500).contains(&year)
        && (1..=12).contains(&month)
        && (1..=month_days(year, month)).contains(&day);
    let years: u64 = (1_970..year).map(|year| 365 + u64::from(is_leap(year))).sum();
    let months: u64 = (1..month).map(|month| month_days(year, month)).sum();
    is_date.then_some(years + months + day.saturating_sub(1))
}

/// Year, month and day of a number of days since 1 January 1970.
pub(super) fn date(mut days: u64) -> (u64, u64, u64) {
    let mut year = 1_970;
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let mut month = 1;
    while days >= month_days(year, month) {
        days -= month_days(year, month);
        month += 1;
    }
    (year, month, days + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_round_trip() {
        // 1,682,985,600 s: 2 May 2023 (date -u -d @1682985600).
        assert_eq!(date(1_682_985_600 / 86_400), (2_023, 5, 2));
        let expected = Some(Duration::from_millis(1_682_985_600_250));
        assert_eq!(moment("2023-05-02T00:00:00.250Z"), expected);
        assert_eq!(moment("1970-01-01T00:00:00Z"), Some(Duration::ZERO));
        for days_since in (0..60_000).step_by(37) {
            let (year, month, day) = date(days_since);
            assert_eq!(days(year, month, day), Some(days_since));
        }
        for text in ["unknown", "2023-02-29T00:00:00Z", "2023-05-02T00:00:00+02:00", ""] {
            assert_eq!(moment(text), None, "{text}");
        }
    }
}
