//! The congestion window of a real sender and that of the model over each other.

use charts::svg::{Axis, Chart, Draw, Panel, Point, Series};
use export::curves::{TIME, render};
use runner::courses::Pair;

/// Windows are drawn in thousandths of a packet.
const DECIMALS: u32 = 3;

/// The chart of both windows, a panel for each flow.
pub fn overlay(title: &str, subtitle: &str, flows: &[Pair<'_>]) -> String {
    let panel = |&(name, wire, model): &Pair<'_>| -> (String, Vec<Point>, Vec<Point>) {
        (format!("congestion window of {name}"), wire.cwnd.clone(), model.cwnd.clone())
    };
    let panels: Vec<_> = flows.iter().map(panel).collect();
    let curve = |name, look, points| Series { name, look, draw: Draw::Step, points };
    render(&Chart {
        title,
        subtitle,
        x: TIME,
        panels: panels
            .iter()
            .map(|(title, wire, model)| Panel {
                y: Axis { title, unit: "packets", decimals: DECIMALS },
                series: vec![curve("kernel", 0, wire), curve("model", 1, model)],
                ..Panel::default()
            })
            .collect(),
        ..Chart::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use runner::courses::Course;
    use units::Instant;

    #[test]
    fn the_chart_names_the_flow_and_both_senders() {
        let mut course = Course::default();
        course.note(Instant::ZERO, 10_000, None);
        let svg = overlay("t", "s", &[("up", &course, &course)]);
        assert!(svg.contains("congestion window of up") && svg.contains("model"));
    }
}
