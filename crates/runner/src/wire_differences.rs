//! Comparison of a transfer on the wire with the same one in virtual time: the goodput of a
//! saturated path cannot differ, so window, retransmissions and round trips are compared too.

use serde::Serialize;
use units::Duration;

use crate::run_report::FlowReport;
use crate::timelines::SenderTimeline;

/// Figures that differ by at most this percentage count as equal.
pub const SAME_PERCENT: f64 = 5.0;

/// The compared figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WireFigure {
    /// Payload read per second, in bit/s.
    GoodputBps,
    /// Largest congestion window.
    MaxCwndBytes,
    /// Data packets retransmitted.
    RetransmittedSegments,
    /// Mean over time of the smoothed round-trip time, in seconds.
    MeanSrttS,
    /// Smoothed round-trip time that was not exceeded 95 % of the time, minus the minimum, in seconds.
    QueueP95S,
    /// Largest smoothed minus minimum round-trip time, in seconds.
    LongestQueueS,
}

impl WireFigure {
    /// Display name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::GoodputBps => "goodput",
            Self::MaxCwndBytes => "max cwnd",
            Self::RetransmittedSegments => "retransmissions",
            Self::MeanSrttS => "mean round trip",
            Self::QueueP95S => "queue p95",
            Self::LongestQueueS => "longest queue",
        }
    }
}

/// One figure of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct FigureReport {
    /// The figure.
    pub figure: WireFigure,
    /// On the wire.
    pub wire: f64,
    /// In virtual time.
    pub model: f64,
    /// Relative difference of the wire to the model in percent; `None` if the model has no value.
    pub percent: Option<f64>,
    /// Do they differ by at most [`SAME_PERCENT`]? The queueing delay is compared relative to the
    /// largest round-trip time.
    pub same: bool,
}

/// The figures of a flow.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FlowDifferences {
    /// Name of the flow.
    pub flow: String,
    /// The figures in order.
    pub figures: Vec<FigureReport>,
}

impl FigureReport {
    fn new(figure: WireFigure, wire: f64, model: f64, scale: f64) -> Self {
        let percent = (model > 0.0).then(|| (wire / model - 1.0) * 100.0);
        let same = (wire - model).abs() * 100.0 <= SAME_PERCENT * scale;
        Self { figure, wire, model, percent, same }
    }

    /// As text, without the name.
    pub fn text(&self) -> String {
        let percent = self.percent.map(|percent| format!("{percent:+.1} %"));
        match (self.figure, percent) {
            (WireFigure::RetransmittedSegments, Some(percent)) => {
                format!("{percent} ({} and {})", self.wire, self.model)
            }
            (_, Some(percent)) => percent,
            (_, None) => format!("{} and {}", self.wire, self.model),
        }
    }
}

impl FlowDifferences {
    /// Compares a flow; round trips only if both senders have them.
    pub fn new(
        wire: &FlowReport,
        model: &FlowReport,
        timelines: Option<(&SenderTimeline, &SenderTimeline)>,
    ) -> Self {
        let counts = |figure, wire: u64, model: u64| {
            FigureReport::new(figure, wire as f64, model as f64, model as f64)
        };
        let mut figures = vec![
            FigureReport::new(
                WireFigure::GoodputBps,
                wire.goodput_bps,
                model.goodput_bps,
                model.goodput_bps,
            ),
            counts(WireFigure::MaxCwndBytes, wire.max_cwnd_bytes, model.max_cwnd_bytes),
            counts(
                WireFigure::RetransmittedSegments,
                wire.retransmitted_segments,
                model.retransmitted_segments,
            ),
        ];
        let trips = timelines.and_then(|(wire, model)| wire.round_trips().zip(model.round_trips()));
        if let Some((wire, model)) = trips {
            let seconds = Duration::as_secs_f64;
            let (mean, largest) = (seconds(model.mean), seconds(model.largest));
            figures.push(FigureReport::new(WireFigure::MeanSrttS, seconds(wire.mean), mean, mean));
            let (p95, model_p95) = (seconds(wire.queue_p95()), seconds(model.queue_p95()));
            figures.push(FigureReport::new(WireFigure::QueueP95S, p95, model_p95, largest));
            let (wire, model) = (seconds(wire.queue()), seconds(model.queue()));
            figures.push(FigureReport::new(WireFigure::LongestQueueS, wire, model, largest));
        }
        Self { flow: wire.name.clone(), figures }
    }

    /// A line of all figures, and one of those that differ.
    pub fn text(&self) -> String {
        let name = &self.flow;
        let each: Vec<_> = self
            .figures
            .iter()
            .map(|figure| format!("{} {}", figure.figure.name(), figure.text()))
            .collect();
        let mut text = format!("{name}: wire compared with virtual time: {}\n", each.join(", "));
        let differ: Vec<_> =
            self.figures.iter().filter(|figure| !figure.same).map(|f| f.figure.name()).collect();
        if !differ.is_empty() {
            text +=
                &format!("{name}: differs by more than {SAME_PERCENT} %: {}\n", differ.join(", "));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use units::Instant;

    use super::*;

    /// A sender whose smoothed round trip is 20 ms for a second, then `millis`.
    fn timeline(millis: u64) -> SenderTimeline {
        let mut timeline = SenderTimeline::default();
        let trip = |millis| Some(Duration::from_millis(millis));
        for (at, millis) in [(0, 20), (1_000, millis), (2_000, millis)] {
            timeline.sample(Instant::ZERO + Duration::from_millis(at), 10_000, trip(millis));
        }
        timeline.min_rtt = trip(19);
        timeline
    }

    #[test]
    fn round_trips_are_weighted_by_duration() {
        let trips = timeline(60).round_trips().unwrap();
        assert_eq!(trips.mean, Duration::from_millis(40));
        assert_eq!(
            (trips.largest, trips.queue()),
            (Duration::from_millis(60), Duration::from_millis(41))
        );
        assert!(SenderTimeline::default().round_trips().is_none());
    }

    #[test]
    fn the_95th_percentile_is_one_of_time() {
        let mut timeline = SenderTimeline::default();
        let trip = |millis| Some(Duration::from_millis(millis));
        // 940 ms at 20 ms, 50 ms at 30 ms, 10 ms at 90 ms.
        for (at, millis) in [(0, 20), (940, 30), (990, 90), (1_000, 90)] {
            timeline.sample(Instant::ZERO + Duration::from_millis(at), 10_000, trip(millis));
        }
        timeline.min_rtt = trip(19);
        let trips = timeline.round_trips().unwrap();
        assert_eq!((trips.p95, trips.queue_p95()), (trip(30).unwrap(), trip(11).unwrap()));
    }

    #[test]
    fn queueing_delay_is_compared_relative_to_the_round_trip() {
        let queue = |wire: u64, model: f64| {
            let largest = model + 0.019;
            FigureReport::new(WireFigure::LongestQueueS, wire as f64 / 1e3, model, largest).same
        };
        assert!(queue(1, 0.000_1) && queue(44, 0.041));
        assert!(!queue(45, 0.041));
    }
}
