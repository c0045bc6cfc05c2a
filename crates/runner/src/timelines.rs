//! Congestion windows and round trips of senders over time, on the wire and in virtual time, and
//! the round-trip time that real hosts add.

use charts::svg::ChartPoint;
use record::{Cause, Event, EventSource, Recorder, SenderState, SentKind};
use sim::Observer;
use sim::scenario::{ElementSpec, Scenario};
use units::{Duration, Instant};

/// Minimum number of round-trip samples to estimate the path's round trip.
const FEW: usize = 50;

/// The states of one sender over time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SenderTimeline {
    /// Congestion window: nanoseconds, thousandths of a packet.
    pub cwnd: Vec<ChartPoint>,
    /// Smoothed round-trip times with their instants.
    pub srtt: Vec<(Instant, Duration)>,
    /// Number of these before the first retransmission.
    before_retransmission: usize,
    /// Minimum round-trip time.
    pub min_rtt: Option<Duration>,
    /// A retransmission has occurred.
    pub retransmitted: bool,
}

impl SenderTimeline {
    /// Adds a sender's state: its window in thousandths of a packet.
    pub fn sample(&mut self, at: Instant, cwnd: i64, srtt: Option<Duration>) {
        push(&mut self.cwnd, i64::try_from(at.as_nanos()).unwrap_or(i64::MAX), cwnd);
        self.srtt.extend(srtt.map(|srtt| (at, srtt)));
        if !self.retransmitted {
            self.before_retransmission = self.srtt.len();
        }
    }

    /// The effective round-trip time: the first decile of the smoothed values before the first
    /// retransmission, or the median of all values if these are too few.
    fn effective_rtt(&self) -> Option<Duration> {
        let clean = self.srtt.get(..self.before_retransmission).unwrap_or_default();
        let (samples, place) = match clean.len() {
            0..FEW => (&self.srtt[..], self.srtt.len() / 2),
            many => (clean, many / 10),
        };
        let mut sorted: Vec<Duration> = samples.iter().map(|&(_, rtt)| rtt).collect();
        sorted.sort_unstable();
        sorted.get(place).copied()
    }

    /// The round-trip statistics; `None` without a sample.
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
            p95: self.srtt_percentile(95)?,
            least: self.min_rtt?,
        })
    }

    /// The smoothed round trip that `percent` of the time was not exceeded.
    fn srtt_percentile(&self, percent: u64) -> Option<Duration> {
        let mut held: Vec<(Duration, u64)> = self
            .srtt
            .windows(2)
            .map(|pair| (pair[0].1, pair[1].0.since(pair[0].0).as_nanos()))
            .collect();
        held.sort_unstable();
        let span: u128 = held.iter().map(|&(_, nanos)| u128::from(nanos)).sum();
        let mut passed = 0;
        let place = held.iter().find(|&&(_, nanos)| {
            passed += u128::from(nanos);
            passed * 100 >= span * u128::from(percent)
        });
        place.map(|&(srtt, _)| srtt).or_else(|| self.srtt.first().map(|&(_, srtt)| srtt))
    }

    /// The excess of this round-trip time over that of `there`, or zero. If a queue makes round
    /// trips grow, only the minima describe the path.
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

/// Round-trip statistics of a sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoundTrips {
    /// Mean over time of the smoothed values.
    pub mean: Duration,
    /// Largest smoothed value.
    pub largest: Duration,
    /// What 95 % of the time the smoothed values did not exceed.
    pub p95: Duration,
    /// Minimum.
    pub least: Duration,
}

impl RoundTrips {
    /// Largest queueing delay.
    pub const fn queue(&self) -> Duration {
        self.largest.saturating_sub(self.least)
    }

    /// Queueing delay that was not exceeded 95 % of the time.
    pub const fn queue_p95(&self) -> Duration {
        self.p95.saturating_sub(self.least)
    }
}

/// Records the senders of a run in virtual time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimelineRecorder {
    /// Sending host and timeline of each flow.
    flows: Vec<(usize, SenderTimeline)>,
    /// Minimum interval between recorded states.
    every: Duration,
    next: Vec<Instant>,
}

impl TimelineRecorder {
    /// A recorder for the flows of a scenario; round trips are sampled at intervals of `every`, as
    /// a real sender is polled.
    pub fn new(scenario: &Scenario, every: Duration) -> Self {
        let flows: Vec<_> =
            scenario.flows.iter().map(|flow| (flow.from, SenderTimeline::default())).collect();
        let next = vec![Instant::ZERO; flows.len()];
        Self { flows, every, next }
    }

    /// The timeline of each flow, in the order of the scenario.
    pub fn into_timelines(self) -> Vec<SenderTimeline> {
        self.flows.into_iter().map(|(_, timeline)| timeline).collect()
    }
}

impl Recorder for TimelineRecorder {
    const ON: bool = true;

    fn record(&mut self, at: Instant, who: EventSource, event: Event, state: Option<&SenderState>) {
        let index = who.flow.0 as usize;
        let Some((sender, timeline)) = self.flows.get_mut(index) else { return };
        if *sender != usize::from(who.host.0) {
            return;
        }
        if let Event::RttSample { rtt } = event {
            timeline.min_rtt = Some(timeline.min_rtt.map_or(rtt, |least| least.min(rtt)));
        }
        let probe = SentKind::Retransmission(Cause::LossProbe);
        if let Event::Sent { kind: kind @ SentKind::Retransmission(_), .. } = event
            && kind != probe
        {
            timeline.retransmitted = true;
        }
        let Some(state) = state else { return };
        let cwnd = u128::from(state.cwnd.get()) * 1_000 / u128::from(state.mss.get().max(1));
        let due = at >= self.next[index];
        if due {
            self.next[index] = at + self.every;
        }
        let srtt = state.srtt.filter(|_| due);
        timeline.sample(at, i64::try_from(cwnd).unwrap_or(i64::MAX), srtt);
    }
}

impl Observer for TimelineRecorder {}

/// The scenario with a longer round trip on all its paths, half of it in each direction.
pub fn with_longer_rtt(scenario: &Scenario, added: Duration) -> Scenario {
    let mut scenario = scenario.clone();
    let half = Duration::from_nanos(added.as_nanos() / 2);
    for path in &mut scenario.paths {
        path.forward.push(ElementSpec::Delay(half));
        path.reverse.push(ElementSpec::Delay(half));
    }
    scenario
}

/// A flow's name with its timelines on the wire and in virtual time.
pub type TimelinePair<'a> = (&'a str, &'a SenderTimeline, &'a SenderTimeline);

/// Appends a value that holds from `x` on, unless it is unchanged.
pub fn push(points: &mut Vec<ChartPoint>, x: i64, y: i64) {
    match points.last_mut() {
        Some(last) if last.y == y => {}
        Some(last) if last.x == x => last.y = y,
        _ => points.push(ChartPoint { x, y }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timeline(ms: &[u64], clean: usize, least: u64) -> SenderTimeline {
        SenderTimeline {
            srtt: ms.iter().map(|&ms| (Instant::ZERO, Duration::from_millis(ms))).collect(),
            before_retransmission: clean,
            min_rtt: Some(Duration::from_millis(least)),
            ..SenderTimeline::default()
        }
    }

    #[test]
    fn the_added_round_trip_is_that_of_an_empty_path() {
        let model = timeline(&[40; 100], 100, 40);
        assert_eq!(timeline(&[42; 100], 100, 41).added_rtt(&model), Duration::from_millis(2));
        assert_eq!(timeline(&[39; 100], 100, 39).added_rtt(&model), Duration::ZERO);
        assert_eq!(SenderTimeline::default().added_rtt(&model), Duration::ZERO);
        // Loss from the beginning: the median of all values.
        let mut rough = vec![41; 3];
        rough.extend([45; 97]);
        assert_eq!(timeline(&rough, 3, 41).added_rtt(&model), Duration::from_millis(5));
        assert_eq!(timeline(&rough, 80, 41).added_rtt(&model), Duration::from_millis(5));
        // A queue grows: only the minima describe the path.
        let grown: Vec<u64> = (60..160).collect();
        let queue = timeline(&grown, 100, 40);
        assert_eq!(timeline(&grown, 100, 41).added_rtt(&queue), Duration::from_millis(1));
    }

    #[test]
    fn a_run_in_virtual_time_has_its_timelines() {
        let text = crate::wire_report::clean_path(
            "linux-6.18",
            Some("reno"),
            units::Bytes(1_000_000),
            false,
            true,
        );
        let loaded = scenario::load(&text, "clean", &Default::default()).unwrap();
        let scenario = with_longer_rtt(&loaded.scenario, Duration::from_millis(20));
        let mut timelines = TimelineRecorder::new(&scenario, Duration::from_millis(1));
        sim::run(&scenario, &mut timelines).unwrap();
        let timelines = timelines.into_timelines();
        assert_eq!(timelines[0].cwnd[0].y, 10_000, "ten packets to begin with");
        assert_eq!(timelines[0].min_rtt, Some(Duration::from_millis(20)));
        assert!(!timelines[0].retransmitted && timelines[0].srtt.len() > 3);
        assert_eq!(timelines[0].before_retransmission, timelines[0].srtt.len());
    }
}
