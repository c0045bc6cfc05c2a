//! A transfer on the wire against the same one in virtual time, figure by figure: the goodput of a path that is
//! full cannot differ, so window, retransmissions and round trips are judged beside it.

use serde::Serialize;
use units::Duration;

use crate::courses::Course;
use crate::run_report::FlowReport;

/// Figures that differ by no more, in percent, count as the same.
pub const SAME_PERCENT: f64 = 5.0;

/// What a figure is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Figure {
    /// Payload read per second, in bit/s.
    GoodputBps,
    /// Largest congestion window.
    MaxCwndBytes,
    /// Data packets retransmitted.
    RetransmittedSegments,
    /// Mean over time of the smoothed round trip, in seconds.
    MeanSrttS,
    /// Largest smoothed round trip less the least round trip, in seconds.
    LongestQueueS,
}

impl Figure {
    /// For people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::GoodputBps => "goodput",
            Self::MaxCwndBytes => "max cwnd",
            Self::RetransmittedSegments => "retransmissions",
            Self::MeanSrttS => "mean round trip",
            Self::LongestQueueS => "longest queue",
        }
    }
}

/// One figure of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct FigureReport {
    /// Which one.
    pub figure: Figure,
    /// On the wire.
    pub wire: f64,
    /// In virtual time.
    pub model: f64,
    /// The wire's against the model's; `None` where that has none.
    pub percent: Option<f64>,
    /// Do they differ by no more than [`SAME_PERCENT`]? The queue by no more than that share of the largest round
    /// trip.
    pub same: bool,
}

/// The figures of a flow.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Differences {
    /// Name of the flow.
    pub flow: String,
    /// One after the other.
    pub figures: Vec<FigureReport>,
}

impl FigureReport {
    fn new(figure: Figure, wire: f64, model: f64, scale: f64) -> Self {
        let percent = (model > 0.0).then(|| (wire / model - 1.0) * 100.0);
        let same = (wire - model).abs() * 100.0 <= SAME_PERCENT * scale;
        Self { figure, wire, model, percent, same }
    }

    /// For people, without the name.
    pub fn text(&self) -> String {
        let percent = self.percent.map(|percent| format!("{percent:+.1} %"));
        match (self.figure, percent) {
            (Figure::RetransmittedSegments, Some(percent)) => {
                format!("{percent} ({} and {})", self.wire, self.model)
            }
            (_, Some(percent)) => percent,
            (_, None) => format!("{} and {}", self.wire, self.model),
        }
    }
}

impl Differences {
    /// Compares a flow; round trips where both senders told theirs.
    pub fn new(wire: &FlowReport, model: &FlowReport, courses: Option<(&Course, &Course)>) -> Self {
        let counts = |figure, wire: u64, model: u64| {
            FigureReport::new(figure, wire as f64, model as f64, model as f64)
        };
        let mut figures = vec![
            FigureReport::new(
                Figure::GoodputBps,
                wire.goodput_bps,
                model.goodput_bps,
                model.goodput_bps,
            ),
            counts(Figure::MaxCwndBytes, wire.max_cwnd_bytes, model.max_cwnd_bytes),
            counts(
                Figure::RetransmittedSegments,
                wire.retransmitted_segments,
                model.retransmitted_segments,
            ),
        ];
        let trips = courses.and_then(|(wire, model)| wire.round_trips().zip(model.round_trips()));
        if let Some((wire, model)) = trips {
            let seconds = Duration::as_secs_f64;
            let (mean, largest) = (seconds(model.mean), seconds(model.largest));
            figures.push(FigureReport::new(Figure::MeanSrttS, seconds(wire.mean), mean, mean));
            let (wire, model) = (seconds(wire.queue()), seconds(model.queue()));
            figures.push(FigureReport::new(Figure::LongestQueueS, wire, model, largest));
        }
        Self { flow: wire.name.clone(), figures }
    }

    /// A line of all, and one of those that differ.
    pub fn text(&self) -> String {
        let name = &self.flow;
        let each: Vec<_> = self
            .figures
            .iter()
            .map(|figure| format!("{} {}", figure.figure.name(), figure.text()))
            .collect();
        let mut text = format!("{name}: wire against virtual time: {}\n", each.join(", "));
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

    /// A sender whose smoothed round trip is 20 ms for a second, then as long as this.
    fn course(millis: u64) -> Course {
        let mut course = Course::default();
        let trip = |millis| Some(Duration::from_millis(millis));
        for (at, millis) in [(0, 20), (1_000, millis), (2_000, millis)] {
            course.note(Instant::ZERO + Duration::from_millis(at), 10_000, trip(millis));
        }
        course.min_rtt = trip(19);
        course
    }

    #[test]
    fn round_trips_are_weighed_by_the_time_they_last() {
        let trips = course(60).round_trips().unwrap();
        assert_eq!(trips.mean, Duration::from_millis(40));
        assert_eq!(
            (trips.largest, trips.queue()),
            (Duration::from_millis(60), Duration::from_millis(41))
        );
        assert!(Course::default().round_trips().is_none());
    }

    #[test]
    fn a_queue_may_differ_by_a_share_of_the_round_trip() {
        let queue = |wire: u64, model: f64| {
            let largest = model + 0.019;
            FigureReport::new(Figure::LongestQueueS, wire as f64 / 1e3, model, largest).same
        };
        assert!(queue(1, 0.000_1) && queue(44, 0.041));
        assert!(!queue(45, 0.041));
    }
}
