//! The congestion windows of a real sender and of the model in one chart.

use charts::svg::{Chart, ChartAxis, ChartPanel, ChartPoint, ChartSeries, Draw};
use export::curves::{TIME, render};
use runner::timelines::TimelinePair;

/// Decimals of windows in packets.
const DECIMALS: u32 = 3;

/// The chart of both windows, one panel per flow.
pub fn overlay(title: &str, subtitle: &str, flows: &[TimelinePair<'_>]) -> String {
    let panel =
        |&(name, wire, model): &TimelinePair<'_>| -> (String, Vec<ChartPoint>, Vec<ChartPoint>) {
            (format!("congestion window of {name}"), wire.cwnd.clone(), model.cwnd.clone())
        };
    let panels: Vec<_> = flows.iter().map(panel).collect();
    let curve = |name, look, points| ChartSeries { name, look, draw: Draw::Step, points };
    render(&Chart {
        title,
        subtitle,
        x: TIME,
        panels: panels
            .iter()
            .map(|(title, wire, model)| ChartPanel {
                y: ChartAxis { title, unit: "packets", decimals: DECIMALS },
                series: vec![curve("kernel", 0, wire), curve("model", 1, model)],
                ..ChartPanel::default()
            })
            .collect(),
        ..Chart::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use runner::timelines::SenderTimeline;
    use units::Instant;

    #[test]
    fn the_chart_names_the_flow_and_both_senders() {
        let mut timeline = SenderTimeline::default();
        timeline.sample(Instant::ZERO, 10_000, None);
        let svg = overlay("t", "s", &[("up", &timeline, &timeline)]);
        assert!(svg.contains("congestion window of up") && svg.contains("model"));
    }
}
