//! Curves of a run: congestion window and bytes in flight of every flow over time, and their chart.

use charts::svg::{Chart, ChartAxis, ChartPanel, ChartPoint, ChartSeries, Draw};
use record::{Event, EventSource, Recorder, SenderState};
use runner::timelines::push;
use sim::Observer;
use sim::scenario::Scenario;
use units::{Bytes, Instant};

/// Decimals of windows in segments.
const MSS_DECIMALS: u32 = 3;

/// The time axis of all charts: nanoseconds shown as seconds.
pub const TIME: ChartAxis<'static> = ChartAxis { title: "time", unit: "s", decimals: 9 };

/// Congestion window and bytes in flight of a flow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FlowCurves {
    /// Congestion window over time: nanoseconds, thousandths of a segment.
    pub cwnd: Vec<ChartPoint>,
    /// Bytes in flight over time: nanoseconds, thousandths of a segment.
    pub flight: Vec<ChartPoint>,
}

/// Records the curves of all flows of a run; up to four points per instant and flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CurveRecorder {
    /// Index of the sending host of each flow.
    senders: Vec<usize>,
    names: Vec<String>,
    curves: Vec<FlowCurves>,
    /// First and last instant that is drawn, in nanoseconds.
    span: (i64, i64),
}

impl CurveRecorder {
    /// A recorder for the flows of `scenario`.
    pub fn new(scenario: &Scenario) -> Self {
        Self {
            senders: scenario.flows.iter().map(|flow| flow.from).collect(),
            names: scenario.flows.iter().map(|flow| flow.name.clone()).collect(),
            curves: vec![FlowCurves::default(); scenario.flows.len()],
            span: (0, i64::MAX),
        }
    }

    /// Draws from one instant to another only.
    #[must_use]
    pub fn between(mut self, from: Instant, until: Instant) -> Self {
        let nanos = |at: Instant| i64::try_from(at.as_nanos()).unwrap_or(i64::MAX);
        self.span = (nanos(from), nanos(until));
        self
    }

    /// The curves of each flow, in the order of the scenario.
    pub fn curves(&self) -> &[FlowCurves] {
        &self.curves
    }

    /// The chart of all flows as SVG: congestion windows above, bytes in flight below.
    pub fn to_svg(&self, title: &str, subtitle: &str) -> String {
        let series = |of: fn(&FlowCurves) -> &[ChartPoint]| -> Vec<ChartSeries<'_>> {
            let named = self.names.iter().zip(&self.curves).enumerate();
            named
                .map(|(number, (name, curve))| ChartSeries {
                    name,
                    look: number as u8,
                    draw: Draw::Step,
                    points: of(curve),
                })
                .collect()
        };
        let segments = |title| ChartAxis { title, unit: "MSS", decimals: MSS_DECIMALS };
        render(&Chart {
            title,
            subtitle,
            x: TIME,
            panels: vec![
                ChartPanel {
                    y: segments("congestion window"),
                    series: series(|curve| &curve.cwnd),
                    ..ChartPanel::default()
                },
                ChartPanel {
                    y: segments("flight"),
                    series: series(|curve| &curve.flight),
                    ..ChartPanel::default()
                },
            ],
            ..Chart::default()
        })
    }
}

/// A chart as text.
pub fn render(chart: &Chart<'_>) -> String {
    let mut out = Vec::new();
    // Writing to memory does not fail.
    let written = chart.write(&mut out);
    debug_assert!(written.is_ok());
    String::from_utf8_lossy(&out).into_owned()
}

fn in_segments(bytes: Bytes, mss: Bytes) -> i64 {
    let thousandths = u128::from(bytes.get()) * 1_000 / u128::from(mss.get().max(1));
    i64::try_from(thousandths).unwrap_or(i64::MAX)
}

impl Recorder for CurveRecorder {
    const ON: bool = true;

    fn record(&mut self, at: Instant, who: EventSource, _: Event, state: Option<&SenderState>) {
        let flow = who.flow.0 as usize;
        if self.senders.get(flow) != Some(&usize::from(who.host.0)) {
            return;
        }
        if let (Some(state), Some(curve)) = (state, self.curves.get_mut(flow)) {
            let x = i64::try_from(at.as_nanos()).unwrap_or(i64::MAX);
            let (from, until) = self.span;
            if x > until {
                return;
            }
            if x < from {
                // Of what was before, the values at the beginning.
                curve.cwnd.clear();
                curve.flight.clear();
            }
            let x = x.max(from);
            push(&mut curve.cwnd, x, in_segments(state.cwnd, state.mss));
            push(&mut curve.flight, x, in_segments(state.flight_size(), state.mss));
        }
    }
}

impl Observer for CurveRecorder {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_values_are_skipped_and_the_last_of_an_instant_counts() {
        let mut points = Vec::new();
        for (x, y) in [(0, 5), (1, 5), (2, 7), (2, 9), (3, 9), (4, 1)] {
            push(&mut points, x, y);
        }
        let expected = [(0, 5), (2, 9), (4, 1)].map(|(x, y)| ChartPoint { x, y });
        assert_eq!(points, expected);
    }

    #[test]
    fn segments_are_counted_to_the_thousandth() {
        assert_eq!(in_segments(Bytes(17_400), Bytes(1_448)), 12_016);
    }
}
