//! Data files of flent, read: results of network tests, JSON that is usually packed with gzip
//! (`.flent.gz`).
//!
//! Format: flent's documentation, "The Data File Format", and `flent/resultset.py`, versions 1 to 4.
//! All series share the time axis `x_values`; a missing value is null. The raw values are not read.

use std::collections::BTreeMap;
use std::io::Read;

use serde::Deserialize;
use serde_json::Value;

/// Newest version of the format.
pub const VERSION: u64 = 4;

/// A data file.
#[derive(Debug, Clone, PartialEq)]
pub struct FlentData {
    /// Version of the format.
    pub version: u64,
    /// Name of the test, as `rrul`.
    pub test: String,
    /// Title that the user gave; may be empty.
    pub title: String,
    /// When the test began, as written.
    pub time: String,
    /// The host that the test ran against.
    pub host: String,
    /// Seconds from the first sample to the last.
    pub span_s: f64,
    /// The series, by name.
    pub series: Vec<FlentSeries>,
}

/// A series of a data file.
#[derive(Debug, Clone, PartialEq)]
pub struct FlentSeries {
    /// Its name, as `Ping (ms) ICMP`.
    pub name: String,
    /// Its unit, as written; `None` if the file has none.
    pub unit: Option<String>,
    /// The values that are not missing, in order of time.
    pub values: Vec<f64>,
}

#[derive(Deserialize)]
struct FlentFile {
    #[serde(default)]
    version: Option<u64>,
    metadata: serde_json::Map<String, Value>,
    x_values: Vec<Option<f64>>,
    results: BTreeMap<String, Vec<Option<f64>>>,
}

/// Does the text of a file begin like a data file of flent, whose keys are sorted?
pub fn is_flent(begin: &[u8]) -> bool {
    let begin = begin.trim_ascii_start();
    begin
        .strip_prefix(b"{")
        .is_some_and(|rest| rest.trim_ascii_start().starts_with(b"\"metadata\""))
}

/// Reads a data file, which is unpacked.
///
/// # Errors
/// The text is not JSON of this form; the message has line and column, or the name of the series.
pub fn read(input: impl Read) -> Result<FlentData, String> {
    let file: FlentFile = serde_json::from_reader(input).map_err(|error| error.to_string())?;
    let version = file.version.unwrap_or(1);
    if version > VERSION {
        return Err(format!("version {version} of the format; known are 1 to {VERSION}"));
    }
    let text = |key: &str| match file.metadata.get(key) {
        Some(Value::String(text)) => text.clone(),
        _ => String::new(),
    };
    let unit = |name: &str| {
        let units = file.metadata.get("SERIES_META")?.get(name)?.get("UNITS")?;
        units.as_str().map(str::to_owned)
    };
    let mut series = Vec::new();
    for (name, values) in &file.results {
        if values.len() != file.x_values.len() {
            let (has, times) = (values.len(), file.x_values.len());
            return Err(format!("series `{name}` has {has} values at {times} times"));
        }
        series.push(FlentSeries {
            name: name.clone(),
            unit: unit(name),
            values: values.iter().copied().flatten().collect(),
        });
    }
    let mut times = file.x_values.iter().copied().flatten();
    let first = times.next().unwrap_or(0.0);
    Ok(FlentData {
        version,
        test: text("NAME"),
        title: text("TITLE"),
        time: text("TIME"),
        host: text("HOST"),
        span_s: times.next_back().unwrap_or(first) - first,
        series,
    })
}

impl FlentSeries {
    /// The value that a fraction `q` of the values does not exceed; `None` without values.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        let mut sorted = self.values.clone();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len().checked_sub(1)?;
        sorted.get((q * last as f64) as usize).copied()
    }

    /// The mean; `None` without values.
    pub fn mean(&self) -> Option<f64> {
        let count = self.values.len();
        (count > 0).then(|| self.values.iter().sum::<f64>() / count as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = r#"{"metadata": {"NAME": "tcp_1up", "HOST": "h", "SERIES_META":
        {"Ping (ms) ICMP": {"UNITS": "ms"}}}, "version": 4, "raw_values": {},
        "x_values": [0.0, 0.2, 0.4], "results": {"Ping (ms) ICMP": [10.0, null, 30.0]}}"#;

    #[test]
    fn a_small_file_is_read() {
        assert!(is_flent(SMALL.as_bytes()) && !is_flent(b"{\"qlog_version\": \"0.3\"}"));
        let data = read(SMALL.as_bytes()).unwrap();
        assert_eq!((data.test.as_str(), data.version, data.span_s), ("tcp_1up", 4, 0.4));
        let ping = &data.series[0];
        assert_eq!((ping.unit.as_deref(), &ping.values[..]), (Some("ms"), &[10.0, 30.0][..]));
        assert_eq!(
            (ping.quantile(0.0), ping.quantile(1.0), ping.mean()),
            (Some(10.0), Some(30.0), Some(20.0))
        );
    }

    #[test]
    fn faults_are_named() {
        let error = |from: &str, to: &str| read(SMALL.replace(from, to).as_bytes()).unwrap_err();
        assert!(error("\"version\": 4", "\"version\": 5").starts_with("version 5"));
        assert!(error("0.2, 0.4]", "0.2]").contains("`Ping (ms) ICMP` has 3 values at 2 times"));
        assert!(error("\"x_values\"", "\"y\"").contains("x_values"));
        assert!(error("30.0]}}", "30.0").contains("line 3 column"));
    }
}
