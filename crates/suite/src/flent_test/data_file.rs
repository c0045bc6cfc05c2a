//! The data file of a test of flent, and a table of its series.
//!
//! Format: flent's documentation, "The Data File Format", version 4.

use core::fmt::Write as _;

use runner::sharing::jain;
use serde_json::{Map, Value, json};

use super::recorder::{STEP, StreamRecorder, StreamSamples};
use super::{FlentRequest, StreamKind};

/// Version of the format.
const VERSION: u32 = 4;
/// The beginning of a run, as if it were 1970.
const BEGIN: &str = "1970-01-01T00:00:00.000000Z";
const STEP_S: f64 = STEP as f64 / 1e9;

/// A series: a value of each step, where there is one.
#[derive(Debug, Clone)]
struct FlentSeries {
    name: String,
    unit: &'static str,
    values: Vec<Option<f64>>,
}

/// The result of a test.
#[derive(Debug, Clone)]
pub struct FlentResult {
    request: FlentRequest,
    series: Vec<FlentSeries>,
    raw: Map<String, Value>,
}

/// Runner and name of the series over several streams.
#[derive(Debug, Clone, Copy)]
enum Over {
    Mean,
    Sum,
    Fairness,
}

impl FlentResult {
    pub(super) fn new(request: &FlentRequest, recorder: &StreamRecorder) -> Self {
        let mut series = Vec::new();
        let mut raw = Map::new();
        for (stream, samples) in request.streams().into_iter().zip(&recorder.streams) {
            let name = stream.name;
            raw.insert(name.clone(), raw_values(stream.kind, samples, request));
            series.push(match stream.kind {
                StreamKind::Ping => FlentSeries { name, unit: "ms", values: pings(samples) },
                _ => FlentSeries { name, unit: "Mbits/s", values: rates(samples, request) },
            });
        }
        let mut result = Self { request: request.clone(), series, raw };
        for prefix in ["TCP upload", "TCP download"] {
            result.add(prefix, &[(Over::Mean, " avg"), (Over::Sum, " sum")]);
            if request.test != super::FlentTest::Rrul {
                result.add(prefix, &[(Over::Fairness, " fairness")]);
            }
        }
        if request.test == super::FlentTest::Rrul {
            result.add("TCP", &[(Over::Sum, " totals")]);
        }
        if request.test != super::FlentTest::TcpNup {
            result.add("Ping (ms)", &[(Over::Mean, " avg")]);
        }
        result.series.sort_by(|a, b| a.name.cmp(&b.name));
        result
    }

    /// Adds series over all streams whose names begin so.
    fn add(&mut self, prefix: &str, series: &[(Over, &str)]) {
        let streams = self.request.streams();
        let is_of = |one: &&FlentSeries| {
            one.name.starts_with(prefix) && streams.iter().any(|stream| stream.name == one.name)
        };
        let parts: Vec<FlentSeries> = self.series.iter().filter(is_of).cloned().collect();
        if parts.is_empty() {
            return;
        }
        let steps = parts.iter().map(|part| part.values.len()).max().unwrap_or(0);
        for &(over, suffix) in series {
            let at = |step: usize| {
                let values: Vec<f64> = parts
                    .iter()
                    .filter_map(|part| part.values.get(step).copied().flatten())
                    .collect();
                let sum = values.iter().sum::<f64>();
                match over {
                    _ if values.is_empty() => None,
                    Over::Sum => Some(sum),
                    Over::Mean => Some(sum / values.len() as f64),
                    // Nothing is sent, so nothing is shared.
                    Over::Fairness if sum == 0.0 => None,
                    Over::Fairness => Some(jain(&values)),
                }
            };
            let unit = if matches!(over, Over::Fairness) { "Idx" } else { parts[0].unit };
            let name = format!("{prefix}{suffix}");
            self.series.push(FlentSeries { name, unit, values: (0..steps).map(at).collect() });
        }
    }

    /// The data file, with a final line break.
    pub fn to_json(&self) -> String {
        let request = &self.request;
        let hosts: Vec<String> = request.hosts().into_iter().map(|host| host.name).collect();
        let steps = self.series.iter().map(|one| one.values.len()).max().unwrap_or(0);
        let results: Map<String, Value> =
            self.series.iter().map(|one| (one.name.clone(), json!(one.values))).collect();
        let units: Map<String, Value> = self
            .series
            .iter()
            .map(|one| (one.name.clone(), json!({ "UNITS": one.unit })))
            .collect();
        let parameters = match request.test {
            super::FlentTest::TcpNup => json!({ "upload_streams": request.streams.to_string() }),
            _ => json!({}),
        };
        let note = format!(
            "simulated by Ackclock {}: {}, up {}, down {}, queues of {} ({}), seed {}",
            env!("CARGO_PKG_VERSION"),
            request.sender,
            request.up,
            request.down,
            request.buffer,
            request.queue,
            request.seed
        );
        let file = json!({
            "version": VERSION,
            "x_values": (0..steps).map(|step| step as f64 * STEP_S).collect::<Vec<_>>(),
            "results": results,
            "raw_values": self.raw,
            "metadata": {
                "NAME": request.test.name(),
                "TITLE": request.sender.to_string(),
                "NOTE": note,
                "DATA_FILENAME": Value::Null,
                "HOST": hosts.first(),
                "HOSTS": hosts,
                "LOCAL_HOST": "client",
                "LENGTH": request.length_s,
                "TOTAL_LENGTH": request.total_s(),
                "STEP_SIZE": STEP_S,
                "TIME": BEGIN,
                "T0": BEGIN,
                "TEST_PARAMETERS": parameters,
                "SERIES_META": units,
            },
        });
        format!("{file:#}\n")
    }

    /// Mean, median and 95th percentile of each series, for a terminal. Rates are those during the
    /// load, without its first and last second.
    pub fn to_text(&self) -> String {
        let request = &self.request;
        let mut text = format!(
            "{} ({}): {}\nup {}, down {}, round trip {} ms, queues of {} ({}), {} s of load\n\n{:<34} \
             {:>10} {:>10} {:>10}\n",
            request.test.name(),
            request.test.description(),
            request.sender,
            request.up,
            request.down,
            request.rtt_ms,
            request.buffer,
            request.queue,
            request.length_s,
            "series",
            "mean",
            "median",
            "p95"
        );
        let from = ((super::DELAY_S as f64 + 1.0) / STEP_S) as usize;
        let until = ((super::DELAY_S as f64 + f64::from(request.length_s) - 1.0) / STEP_S) as usize;
        for one in &self.series {
            let range = from.min(one.values.len())..until.min(one.values.len()).max(from);
            let mut values: Vec<f64> =
                one.values.get(range).unwrap_or_default().iter().copied().flatten().collect();
            if values.is_empty() {
                continue;
            }
            values.sort_by(f64::total_cmp);
            let at = |percent: usize| values[(values.len() - 1) * percent / 100];
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            let _ = writeln!(
                text,
                "{:<34} {mean:>10.2} {:>10.2} {:>10.2} {}",
                one.name,
                at(50),
                at(95),
                one.unit
            );
        }
        text
    }
}

/// Rates of each step of the load; none before and after it.
fn rates(samples: &StreamSamples, request: &FlentRequest) -> Vec<Option<f64>> {
    let load = super::DELAY_S..super::DELAY_S + u64::from(request.length_s);
    let rate = |(step, &bytes): (usize, &u64)| {
        let second = step as u64 * STEP / 1_000_000_000;
        (load.contains(&second)).then(|| bytes as f64 * 8.0 / STEP_S / 1e6)
    };
    samples.bytes.iter().enumerate().map(rate).collect()
}

/// The mean of the pings that were answered in each step.
fn pings(samples: &StreamSamples) -> Vec<Option<f64>> {
    let mut sums = vec![(0.0, 0_u32); samples.bytes.len()];
    for &(at, took) in &samples.pings {
        if let Some((sum, count)) = sums.get_mut((at / STEP) as usize) {
            *sum += took as f64 / 1e6;
            *count += 1;
        }
    }
    sums.into_iter().map(|(sum, count)| (count > 0).then(|| sum / f64::from(count))).collect()
}

fn raw_values(kind: StreamKind, samples: &StreamSamples, request: &FlentRequest) -> Value {
    if kind == StreamKind::Ping {
        let ping = |(number, &(at, took)): (usize, &(u64, u64))| json!({ "t": at as f64 / 1e9, "val": took as f64 / 1e6, "seq": number });
        return samples.pings.iter().enumerate().map(ping).collect();
    }
    let rates = rates(samples, request);
    let step = |(step, &bytes): (usize, &u64)| {
        let val = bytes as f64 * 8.0 / STEP_S / 1e6;
        json!({ "t": step as f64 * STEP_S, "dur": STEP_S, "val": val })
    };
    // Before and after the load nothing is measured.
    let is_load = |(step, _): &(usize, &u64)| rates.get(*step).copied().flatten().is_some();
    samples.bytes.iter().enumerate().filter(is_load).map(step).collect()
}
