//! What the diagnoses of many captures say, as a table.

use std::sync::Arc;

use arrow_array::builder::{Float64Builder, StringBuilder, UInt64Builder};
use diagnose::Limiter;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::Value;

use crate::columns::{Column, batch};
use crate::ran::broken;
use crate::table::Table;

/// Texts of a connection: key in the report, what it says.
const TEXTS: [(&str, &str); 5] = [
    ("client", "address of the end that opened the connection"),
    ("server", "address of the other end"),
    ("sender", "which of them sent the data: client or server"),
    ("captured_at", "where the capture was taken, as far as it can be told"),
    ("primary", "code of what limited it; null if nothing did"),
];
/// Counts of a connection.
const COUNTS: [(&str, &str); 5] = [
    ("bytes", "payload delivered"),
    ("packets", "data packets sent, those sent again included"),
    ("retransmitted_packets", "data packets sent again"),
    ("spurious_packets", "of these the needless ones"),
    ("mss_bytes", "payload of a full segment"),
];
/// Measures of a connection.
const MEASURES: [(&str, &str); 3] = [
    ("duration_s", "from the first packet to the last, in seconds"),
    ("goodput_bps", "payload delivered per second, in bit/s"),
    ("base_rtt_s", "round trip of the empty path, in seconds; null if unknown"),
];
/// Diagnoses as a table: a row for each connection, and one for each file that holds none.
/// `files` are names with either the report as `ackclock diagnose --json` prints it, or why there
/// is none.
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
        // What is looked for in null is null.
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
        Column::new("file", "name of the capture", Arc::new(file.finish())),
        Column::new("error", "why it could not be diagnosed; else null", Arc::new(error.finish())),
        Column::new("flow", "number of the connection, as in Wireshark", Arc::new(flow.finish())),
    ];
    for ((key, says), mut values) in TEXTS.into_iter().zip(texts) {
        columns.push(Column::new(key, says, Arc::new(values.finish())));
    }
    for ((key, says), mut values) in COUNTS.into_iter().zip(counts) {
        columns.push(Column::new(key, says, Arc::new(values.finish())));
    }
    for ((key, says), mut values) in MEASURES.into_iter().zip(measures) {
        columns.push(Column::new(key, says, Arc::new(values.finish())));
    }
    let says = "what the costliest finding cost, in seconds";
    columns.push(Column::new("cost_s", says, Arc::new(cost.finish())));
    for (limiter, mut values) in Limiter::ALL.into_iter().zip(budget) {
        let says = format!("time spent on: {}, in seconds", limiter.name());
        columns.push(Column::new(column(limiter), says, Arc::new(values.finish())));
    }
    batch(columns).map(Table::from).map_err(|error| broken(&error))
}

/// Name of what the time was spent on, in reports and here.
fn column(limiter: Limiter) -> String {
    format!("{}_s", limiter.key())
}

/// What the costliest finding of a connection cost; 0 where there is none.
fn costliest(connection: &Value) -> Option<f64> {
    let findings = connection["findings"].as_array()?;
    Some(findings.iter().filter_map(|found| found["cost_s"].as_f64()).fold(0.0, f64::max))
}
