//! The congestion window and round trips of senders over time, on the wire and in virtual time, and the
//! round trip that real hosts add.

use charts::svg::Point;
use record::{Cause, Event, Recorder, SenderState, SentKind, Who};
use sim::Observer;
use sim::scenario::{Element, Scenario};
use units::{Duration, Instant};

/// Round trips that are too few to say how long the path is.
const FEW: usize = 50;

/// What is known of one sender over time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Course {
    /// Congestion window: nanoseconds, thousandths of a packet.
    pub cwnd: Vec<Point>,
    /// Smoothed round trips, with when they were so.
    pub srtt: Vec<(Instant, Duration)>,
    /// How many of them were there before anything was sent again.
    clean: usize,
    /// Least round trip.
    pub min_rtt: Option<Duration>,
    /// Something was sent again.
    pub again: bool,
}

impl Course {
    /// A sender's state at a moment: its window in thousandths of a packet.
    pub fn note(&mut self, at: Instant, cwnd: i64, srtt: Option<Duration>) {
        push(&mut self.cwnd, i64::try_from(at.as_nanos()).unwrap_or(i64::MAX), cwnd);
        self.srtt.extend(srtt.map(|srtt| (at, srtt)));
        if !self.again {
            self.clean = self.srtt.len();
        }
    }

    /// The round trip as the sender met it: the tenth of ten of its smoothed ones before anything
    /// went wrong; the median of all where too little came before.
    fn effective_rtt(&self) -> Option<Duration> {
        let clean = self.srtt.get(..self.clean).unwrap_or_default();
        let (samples, place) = match clean.len() {
            0..FEW => (&self.srtt[..], self.srtt.len() / 2),
            many => (clean, many / 10),
        };
        let mut sorted: Vec<Duration> = samples.iter().map(|&(_, rtt)| rtt).collect();
        sorted.sort_unstable();
        sorted.get(place).copied()
    }

    /// The smoothed round trips and the least one; `None` where none was measured.
    pub fn round_trips(&self) -> Option<RoundTrips> {
        let (first, last) = (self.srtt.first()?, self.srtt.last()?);
        let held = |pair: &[(Instant, Duration)]| {
            u128::from(pair[0].1.as_nanos()) * u128::from(pair[1].0.since(pair[0].0).as_nanos())
        };
        let weighted: u128 = self.srtt.windows(2).map(held).sum();
        let span = u128::from(last.0.since(first.0).as_nanos());
        let mean = weighted.checked_div(span).unwrap_or_else(|| first.1.as_nanos().into());
        Some(RoundTrips {
            mean: Duration::from_nanos(u64::try_from(mean).unwrap_or(u64::MAX)),
            largest: self.srtt.iter().map(|&(_, srtt)| srtt).max()?,
            least: self.min_rtt?,
        })
    }

    /// By how much the round trip is longer here than there; zero if it is not. Where a queue makes
    /// round trips grow, only the least ones say something of the path.
    pub fn added_rtt(&self, there: &Self) -> Duration {
        let Some((here, model)) = self.effective_rtt().zip(there.effective_rtt()) else {
            return Duration::ZERO;
        };
        let Some((least, model_least)) = self.min_rtt.zip(there.min_rtt) else {
            return Duration::ZERO;
        };
        if model.as_nanos() * 8 > model_least.as_nanos() * 9 {
            return least.saturating_sub(model_least);
        }
        here.saturating_sub(model)
    }
}

/// Round trips of a sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoundTrips {
    /// Mean over time of the smoothed ones.
    pub mean: Duration,
    /// Largest of the smoothed ones.
    pub largest: Duration,
    /// Least of all.
    pub least: Duration,
}

impl RoundTrips {
    /// What queues added at most.
    pub const fn queue(&self) -> Duration {
        self.largest.saturating_sub(self.least)
    }
}

/// Listens to the senders of a run in virtual time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Courses {
    /// Sending host and course of each flow.
    flows: Vec<(usize, Course)>,
    /// States are noted no more often.
    every: Duration,
    next: Vec<Instant>,
}

impl Courses {
    /// For the flows of a scenario; round trips are noted every so often, as a real sender is asked.
    pub fn new(scenario: &Scenario, every: Duration) -> Self {
        let flows: Vec<_> =
            scenario.flows.iter().map(|flow| (flow.from, Course::default())).collect();
        let next = vec![Instant::ZERO; flows.len()];
        Self { flows, every, next }
    }

    /// The course of each flow, in the order of the scenario.
    pub fn into_courses(self) -> Vec<Course> {
        self.flows.into_iter().map(|(_, course)| course).collect()
    }
}

impl Recorder for Courses {
    const ON: bool = true;

    fn record(&mut self, at: Instant, who: Who, event: Event, state: Option<&SenderState>) {
        let index = who.flow.0 as usize;
        let Some((sender, course)) = self.flows.get_mut(index) else { return };
        if *sender != usize::from(who.host.0) {
            return;
        }
        if let Event::RttSample { rtt } = event {
            course.min_rtt = Some(course.min_rtt.map_or(rtt, |least| least.min(rtt)));
        }
        let probe = SentKind::Again(Cause::LossProbe);
        if let Event::Sent { kind: kind @ SentKind::Again(_), .. } = event
            && kind != probe
        {
            course.again = true;
        }
        let Some(state) = state else { return };
        let cwnd = u128::from(state.cwnd.get()) * 1_000 / u128::from(state.mss.get().max(1));
        let due = at >= self.next[index];
        if due {
            self.next[index] = at + self.every;
        }
        let srtt = state.srtt.filter(|_| due);
        course.note(at, i64::try_from(cwnd).unwrap_or(i64::MAX), srtt);
    }
}

impl Observer for Courses {}

/// The scenario with a longer round trip on all its paths, half of it each way.
pub fn with_longer_rtt(scenario: &Scenario, added: Duration) -> Scenario {
    let mut scenario = scenario.clone();
    let half = Duration::from_nanos(added.as_nanos() / 2);
    for path in &mut scenario.paths {
        path.forward.push(Element::Delay(half));
        path.reverse.push(Element::Delay(half));
    }
    scenario
}

/// A flow's name with its course on the wire and in virtual time.
pub type Pair<'a> = (&'a str, &'a Course, &'a Course);

/// Appends a value that holds from `x` on, unless it already does.
pub fn push(points: &mut Vec<Point>, x: i64, y: i64) {
    match points.last_mut() {
        Some(last) if last.y == y => {}
        Some(last) if last.x == x => last.y = y,
        _ => points.push(Point { x, y }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn course(ms: &[u64], clean: usize, least: u64) -> Course {
        Course {
            srtt: ms.iter().map(|&ms| (Instant::ZERO, Duration::from_millis(ms))).collect(),
            clean,
            min_rtt: Some(Duration::from_millis(least)),
            ..Course::default()
        }
    }

    #[test]
    fn the_added_round_trip_is_that_of_an_empty_path() {
        let model = course(&[40; 100], 100, 40);
        assert_eq!(course(&[42; 100], 100, 41).added_rtt(&model), Duration::from_millis(2));
        assert_eq!(course(&[39; 100], 100, 39).added_rtt(&model), Duration::ZERO);
        assert_eq!(Course::default().added_rtt(&model), Duration::ZERO);
        // Loss from the beginning: the median of all that came.
        let mut rough = vec![41; 3];
        rough.extend([45; 97]);
        assert_eq!(course(&rough, 3, 41).added_rtt(&model), Duration::from_millis(5));
        assert_eq!(course(&rough, 80, 41).added_rtt(&model), Duration::from_millis(5));
        // A queue grows: only the least round trips say something of the path.
        let grown: Vec<u64> = (60..160).collect();
        let queue = course(&grown, 100, 40);
        assert_eq!(course(&grown, 100, 41).added_rtt(&queue), Duration::from_millis(1));
    }

    #[test]
    fn a_run_in_virtual_time_has_its_courses() {
        let text = crate::wire_report::clean_path(
            "linux-6.18",
            Some("reno"),
            units::Bytes(1_000_000),
            false,
            true,
        );
        let loaded = scenario::load(&text, "clean", &Default::default()).unwrap();
        let scenario = with_longer_rtt(&loaded.scenario, Duration::from_millis(20));
        let mut courses = Courses::new(&scenario, Duration::from_millis(1));
        sim::run(&scenario, &mut courses).unwrap();
        let courses = courses.into_courses();
        assert_eq!(courses[0].cwnd[0].y, 10_000, "ten packets to begin with");
        assert_eq!(courses[0].min_rtt, Some(Duration::from_millis(20)));
        assert!(!courses[0].again && courses[0].srtt.len() > 3);
        assert_eq!(courses[0].clean, courses[0].srtt.len());
    }
}
