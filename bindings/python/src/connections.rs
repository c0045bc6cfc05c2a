//! The diagnoses of many captures as a table.

use std::sync::Arc;

use arrow_array::builder::{Float64Builder, StringBuilder, UInt64Builder};
use diagnose::Limiter;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::Value;

use crate::columns::{ArrowColumn, batch};
use crate::ran::broken;
use crate::table::Table;

/// Text columns: key in the report, description.
const TEXTS: [(&str, &str); 5] = [
    ("client", "address of the host that opened the connection"),
    ("server", "address of the other host"),
    ("sender", "which of them sent the data: client or server"),
    ("captured_at", "capture point, if it could be determined"),
    ("primary", "code of the primary finding; null if there is none"),
];
/// Integer columns.
const COUNTS: [(&str, &str); 5] = [
    ("bytes", "payload delivered"),
    ("packets", "data packets sent, retransmissions included"),
    ("retransmitted_packets", "data packets retransmitted"),
    ("spurious_packets", "spurious retransmissions"),
    ("mss_bytes", "payload of a full segment"),
];
/// Float columns.
const MEASURES: [(&str, &str); 3] = [
    ("duration_s", "from the first packet to the last, in seconds"),
    ("goodput_bps", "payload delivered per second, in bit/s"),
    ("base_rtt_s", "round-trip time of the empty path, in seconds; null if unknown"),
];
/// Diagnoses as a table: a row per connection, and one per file without any. `files` are names with
/// either the report of `ackclock diagnose --json` or the error.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)]
pub(crate) fn connections_table(
    files: Vec<(String, Option<String>, Option<String>)>,
) -> PyResult<Table> {
    let (mut file, mut error) = (StringBuilder::new(), StringBuilder::new());
    let mut flow = UInt64Builder::new();
    let mut texts = TEXTS.map(|_| StringBuilder::new());
    let mut counts = COUNTS.map(|_| UInt64Builder::new());
    let mut measures = MEASURES.map(|_| Float64Builder::new());
    let mut cost = Float64Builder::new();
    let mut budget = Limiter::ALL.map(|_| Float64Builder::new());
    for (name, report, why) in &files {
        let report: Value = match report {
            None => Value::Null,
            Some(text) => serde_json::from_str(text)
                .map_err(|error| PyValueError::new_err(format!("{name}: no report: {error}")))?,
        };
        let found = report["connections"].as_array().map_or(&[][..], Vec::as_slice);
        // Lookups in null give null.
        let nothing = [Value::Null];
        for one in if found.is_empty() { &nothing[..] } else { found } {
            file.append_value(name);
            error.append_option(why.as_deref());
            flow.append_option(one["id"].as_u64());
            for (builder, (key, _)) in texts.iter_mut().zip(TEXTS) {
                builder.append_option(one[key].as_str());
            }
            for (builder, (key, _)) in counts.iter_mut().zip(COUNTS) {
                builder.append_option(one[key].as_u64());
            }
            for (builder, (key, _)) in measures.iter_mut().zip(MEASURES) {
                builder.append_option(one[key].as_f64());
            }
            cost.append_option(costliest(one));
            for (builder, limiter) in budget.iter_mut().zip(Limiter::ALL) {
                builder.append_option(one["time_budget"][&column(limiter)].as_f64());
            }
        }
    }
    let mut columns = vec![
        ArrowColumn::new("file", "name of the capture", Arc::new(file.finish())),
        ArrowColumn::new(
            "error",
            "why it could not be diagnosed; else null",
            Arc::new(error.finish()),
        ),
        ArrowColumn::new(
            "flow",
            "number of the connection, as in Wireshark",
            Arc::new(flow.finish()),
        ),
    ];
    for ((key, says), mut values) in TEXTS.into_iter().zip(texts) {
        columns.push(ArrowColumn::new(key, says, Arc::new(values.finish())));
    }
    for ((key, says), mut values) in COUNTS.into_iter().zip(counts) {
        columns.push(ArrowColumn::new(key, says, Arc::new(values.finish())));
    }
    for ((key, says), mut values) in MEASURES.into_iter().zip(measures) {
        columns.push(ArrowColumn::new(key, says, Arc::new(values.finish())));
    }
    let says = "cost of the costliest finding, in seconds";
    columns.push(ArrowColumn::new("cost_s", says, Arc::new(cost.finish())));
    for (limiter, mut values) in Limiter::ALL.into_iter().zip(budget) {
        let says = format!("time spent on: {}, in seconds", limiter.name());
        columns.push(ArrowColumn::new(column(limiter), says, Arc::new(values.finish())));
    }
    batch(columns).map(Table::from).map_err(|error| broken(&error))
}

/// Column name of a limiter's time, as in reports.
fn column(limiter: Limiter) -> String {
    format!("{}_s", limiter.key())
}

/// Cost of the costliest finding of a connection; 0 without findings.
fn costliest(connection: &Value) -> Option<f64> {
    let findings = connection["findings"].as_array()?;
    Some(findings.iter().filter_map(|found| found["cost_s"].as_f64()).fold(0.0, f64::max))
}
