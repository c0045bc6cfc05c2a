//! A diagnosis in the OpenMetrics text format.

use report::openmetrics::{GaugeFamily, exposition};

use super::DiagnosisReport;
use super::verdicts::{ConnectionVerdict, verdicts};

impl DiagnosisReport {
    /// Formats the figures of all connections and the costs of their findings as OpenMetrics.
    pub fn openmetrics(&self) -> String {
        let gauge = GaugeFamily::new;
        let mut bytes = gauge(
            "ackclock_connection_payload_bytes",
            "bytes",
            "Payload of the direction with most data",
        );
        let mut duration = gauge(
            "ackclock_connection_duration_seconds",
            "seconds",
            "From the first to the last packet",
        );
        let mut goodput = gauge(
            "ackclock_connection_goodput_bits_per_second",
            "bits_per_second",
            "Payload delivered per second",
        );
        let mut round_trip =
            gauge("ackclock_connection_base_rtt_seconds", "seconds", "Smallest round trip");
        let mut limited = gauge(
            "ackclock_connection_limited_seconds",
            "seconds",
            "Time by what limited the sender",
        );
        let mut primary = gauge(
            "ackclock_connection_primary",
            "",
            "1 for the finding that limited the connection",
        );
        let mut cost =
            gauge("ackclock_finding_cost_seconds", "seconds", "Time that a finding costs");
        for one in verdicts(self, usize::MAX) {
            bytes.add(&labels(&one), one.bytes as f64);
            duration.add(&labels(&one), one.duration.as_secs_f64());
            goodput.add(&labels(&one), one.goodput * 8.0);
            if let Some(rtt) = one.round_trip {
                round_trip.add(&labels(&one), rtt.as_secs_f64());
            }
            for &(limiter, time) in &one.budget {
                limited.add(&with(&one, &[("limiter", limiter)]), time.as_secs_f64());
            }
            if let Some(code) = one.primary {
                primary.add(&with(&one, &[("code", code)]), 1.0);
            }
            for finding in &one.findings {
                let extra = [("code", finding.code), ("severity", finding.severity.name())];
                cost.add(&with(&one, &extra), finding.cost.as_secs_f64());
            }
        }
        exposition(&[bytes, duration, goodput, round_trip, limited, primary, cost])
    }
}

fn labels(one: &ConnectionVerdict<'_>) -> Vec<(&'static str, String)> {
    vec![
        ("file", one.file.to_owned()),
        ("protocol", if one.is_quic { "quic" } else { "tcp" }.to_owned()),
        ("connection", one.number.to_string()),
        ("transfer", one.transfer.clone()),
    ]
}

fn with(one: &ConnectionVerdict<'_>, more: &[(&'static str, &str)]) -> Vec<(&'static str, String)> {
    let mut all = labels(one);
    all.extend(more.iter().map(|(key, value)| (*key, (*value).to_owned())));
    all
}
