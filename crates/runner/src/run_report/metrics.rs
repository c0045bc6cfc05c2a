//! The result of a run in the OpenMetrics text format.

use report::openmetrics::{GaugeFamily, exposition};

use super::{FlowReport, RunReport};

/// A figure of a flow: name, unit, help, value.
type FlowGauge = (&'static str, &'static str, &'static str, fn(&FlowReport) -> Option<f64>);

const GAUGES: [FlowGauge; 10] = [
    ("ackclock_flow_payload_bytes", "bytes", "Payload read by the receiving application", |flow| {
        Some(flow.bytes as f64)
    }),
    ("ackclock_flow_finished", "", "1 if the transfer has completed", |flow| {
        Some(f64::from(u8::from(flow.finished)))
    }),
    (
        "ackclock_flow_duration_seconds",
        "seconds",
        "From the first SYN to the last byte read, or to the end of the run",
        |flow| Some(flow.duration_s),
    ),
    (
        "ackclock_flow_goodput_bits_per_second",
        "bits_per_second",
        "Payload read per second",
        |flow| Some(flow.goodput_bps),
    ),
    ("ackclock_flow_retransmitted_segments", "segments", "Data packets retransmitted", |flow| {
        Some(flow.retransmitted_segments as f64)
    }),
    ("ackclock_flow_fast_recoveries", "", "Fast recoveries entered", |flow| {
        Some(flow.fast_recoveries as f64)
    }),
    ("ackclock_flow_timeouts", "", "Retransmission timeouts", |flow| Some(flow.rtos as f64)),
    (
        "ackclock_flow_spurious_recoveries",
        "",
        "Recoveries and timeouts that proved spurious and were undone",
        |flow| Some(flow.spurious_recoveries as f64),
    ),
    ("ackclock_flow_max_cwnd_bytes", "bytes", "Largest congestion window", |flow| {
        Some(flow.max_cwnd_bytes as f64)
    }),
    ("ackclock_flow_min_rtt_seconds", "seconds", "Smallest round-trip sample", |flow| {
        flow.min_rtt_s
    }),
];

/// The figures of all flows, with scenario, seed and sender as labels.
pub fn openmetrics(report: &RunReport) -> String {
    let families: Vec<GaugeFamily> = GAUGES
        .iter()
        .map(|(name, unit, help, value)| {
            let mut family = GaugeFamily::new(name, unit, help);
            for flow in &report.flows {
                family.add(&labels(report, flow), value(flow).unwrap_or(f64::NAN));
            }
            family
        })
        .collect();
    exposition(&families)
}

fn labels(report: &RunReport, flow: &FlowReport) -> [(&'static str, String); 5] {
    [
        ("scenario", report.title.clone()),
        ("seed", report.seed.to_string()),
        ("flow", flow.name.clone()),
        ("profile", flow.profile.to_string()),
        ("cc", flow.cc.to_string()),
    ]
}
