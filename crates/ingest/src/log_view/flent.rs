//! A data file of flent as a summary: its series, and what they say about the limit.

use std::io::Read;

use logs::flent::{FlentData, FlentSeries, read};
use serde_json::json;

use super::{LogFormat, LogStatus, LogWriter, ViewError};

/// A queue stands if the median of a round-trip time exceeds the least by this factor...
const STANDING_FACTOR: f64 = 2.0;
/// ... and by this time, in milliseconds.
const STANDING_MS: f64 = 5.0;
/// Most bytes of an unpacked file.
const MOST_BYTES: u64 = 1 << 30;

pub(super) fn view(log: impl Read, show: &mut LogWriter<'_>) -> Result<LogStatus, ViewError> {
    let data = match read(log.take(MOST_BYTES)) {
        Ok(data) => data,
        Err(error) => {
            return Ok(LogStatus::NoLog {
                taken_for: "a data file of flent",
                problem: Some(error),
            });
        }
    };
    let limit = limit(&data);
    match show.form {
        LogFormat::Text => text(&data, &limit).lines().try_for_each(|line| show.line(line))?,
        LogFormat::Json => {
            show.line(
                &json!({ "flent": {
                    "version": data.version, "test": data.test, "title": data.title,
                    "time": data.time, "host": data.host, "span_s": data.span_s,
                } })
                .to_string(),
            )?;
            for series in &data.series {
                show.line(&json!({ "series": figures(series) }).to_string())?;
            }
            show.line(&json!({ "limit": { "code": limit.code, "text": limit.text } }).to_string())?;
        }
        LogFormat::Csv => {
            show.line("series,unit,values,mean,least,median,p95,most")?;
            for series in &data.series {
                let name = series.name.replace('"', "\"\"");
                let unit = unit(series);
                let [mean, least, median, p95, most] = statistics(series)
                    .map(|value| value.map_or_else(String::new, |value| format!("{value}")));
                let count = series.values.len();
                show.line(&format!(
                    "\"{name}\",{unit},{count},{mean},{least},{median},{p95},{most}"
                ))?;
            }
        }
    }
    Ok(show.verdict("a data file of flent", data.series.len() as u64, true))
}

/// Mean, least value, median, 95th percentile, largest value.
fn statistics(series: &FlentSeries) -> [Option<f64>; 5] {
    let at = |q| series.quantile(q);
    [series.mean(), at(0.0), at(0.5), at(0.95), at(1.0)]
}

fn figures(series: &FlentSeries) -> serde_json::Value {
    let [mean, least, median, p95, most] = statistics(series);
    json!({
        "name": series.name, "unit": unit(series), "values": series.values.len(),
        "mean": mean, "least": least, "median": median, "p95": p95, "most": most,
    })
}

/// Unit of a series: that of the file, else the one that flent gives such series; may be empty.
fn unit(series: &FlentSeries) -> &str {
    let name = series.name.as_str();
    if name.ends_with("::tcp_rtt") || name.ends_with("::tcp_rtt_var") {
        return "ms";
    }
    if name.ends_with("::tcp_cwnd") {
        return "segments";
    }
    match series.unit.as_deref() {
        Some("Mbits/s") => "Mbit/s",
        Some(unit) => unit,
        None if name.contains("(ms)") => "ms",
        None if is_rate(name) => "Mbit/s",
        None => "",
    }
}

fn is_rate(name: &str) -> bool {
    name.starts_with("TCP ") && !name.contains("::tcp_")
}

/// What the series say about the limit of the test.
struct FlentLimit {
    /// For scripts: `queue`, `no_queue` or `unknown`.
    code: &'static str,
    text: String,
}

fn limit(data: &FlentData) -> FlentLimit {
    let is_round_trip =
        |one: &&FlentSeries| one.name.starts_with("Ping (ms)") || one.name.ends_with("::tcp_rtt");
    let medians = data.series.iter().filter(is_round_trip).filter_map(|one| {
        let (least, median) = (one.quantile(0.0)?, one.quantile(0.5)?);
        Some((one.name.as_str(), least, median))
    });
    let added = |one: &(&str, f64, f64)| one.2 - one.1;
    let Some((name, least, median)) = medians.max_by(|a, b| added(a).total_cmp(&added(b))) else {
        return FlentLimit {
            code: "unknown",
            text: "unknown, as the file has no round-trip times".to_owned(),
        };
    };
    let more = median - least;
    let times = format!("`{name}`: least {least:.1} ms, median {median:.1} ms");
    if more >= STANDING_MS && median >= STANDING_FACTOR * least {
        let text = format!(
            "the rate of a link, with a standing queue of {more:.1} ms before it ({times}); a smaller \
             buffer, CoDel or pacing removes the delay, not the limit"
        );
        return FlentLimit { code: "queue", text };
    }
    let text = format!(
        "no queue that stands (it adds {more:.1} ms; {times}): a window, losses, the application or \
         the other direction; a capture shows which: ackclock diagnose FILE"
    );
    FlentLimit { code: "no_queue", text }
}

fn text(data: &FlentData, limit: &FlentLimit) -> String {
    let test = if data.test.is_empty() { "test without a name" } else { &data.test };
    let mut out = format!("# {test}");
    let parts = [("", &data.title), ("against ", &data.host), ("at ", &data.time)];
    for (before, part) in parts.into_iter().filter(|(_, part)| !part.is_empty()) {
        out += &format!(", {before}{part}");
    }
    out += &format!(", {:.1} s\n", data.span_s);
    let width = data.series.iter().map(|one| one.name.chars().count()).max().unwrap_or(0).max(6);
    out += &format!(
        "{:<width$}  {:>10} {:>10} {:>10} {:>10}\n",
        "series", "mean", "least", "median", "95 %"
    );
    for one in &data.series {
        let [mean, least, median, p95, _] = statistics(one)
            .map(|value| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.2}")));
        let row = format!(
            "{:<width$}  {mean:>10} {least:>10} {median:>10} {p95:>10} {}",
            one.name,
            unit(one)
        );
        out += row.trim_end();
        out.push('\n');
    }
    out + &format!("# limit: {}\n", limit.text)
}
