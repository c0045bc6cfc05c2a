//! What the named state of the sender did: a sample whenever one of its discrete parts changed.

use record::{Event, EventSource, Recorder, Sender, SenderState};
use sim::Observer;
use units::{Duration, Instant};

/// Names of `BBR.state`, by its number.
pub const PHASES: [&str; 7] = [
    "startup",
    "drain",
    "probe_bw_down",
    "probe_bw_cruise",
    "probe_bw_refill",
    "probe_bw_up",
    "probe_rtt",
];

pub(super) const STARTUP: u64 = 0;
pub(super) const DRAIN: u64 = 1;
pub(super) const DOWN: u64 = 2;
pub(super) const CRUISE: u64 = 3;
pub(super) const REFILL: u64 = 4;
pub(super) const UP: u64 = 5;
pub(super) const PROBE_RTT: u64 = 6;

/// A change of one of these makes a sample.
const DISCRETE: [&str; 14] = [
    "state",
    "ack_phase",
    "round_count",
    "full_bw_count",
    "full_bw_now",
    "full_bw_reached",
    "prev_probe_too_high",
    "prev_probe_precautionary",
    "idle_restart",
    "undo_state",
    "undone",
    "bw_shortterm",
    "inflight_shortterm",
    "min_rtt",
];

/// The named state at one time.
#[derive(Debug, Clone)]
pub struct BbrSample {
    /// Time of the run.
    pub at: Duration,
    /// Bytes read by the receiver.
    pub read: u64,
    /// Packets sent with data, and declared lost.
    pub sent: u64,
    /// See `sent`.
    pub lost: u64,
    /// The values, in the order of [`BbrCourse::names`].
    pub values: Vec<Option<u64>>,
}

/// The named state over time.
#[derive(Debug, Clone, Default)]
pub struct BbrCourse {
    /// Names of the values.
    pub names: Vec<&'static str>,
    /// Samples in their order.
    pub samples: Vec<BbrSample>,
}

impl BbrCourse {
    /// A value at sample `at`; `None`: infinite, unset, or no such name.
    pub fn get(&self, at: usize, name: &str) -> Option<u64> {
        let index = self.names.iter().position(|known| *known == name)?;
        *self.samples.get(at)?.values.get(index)?
    }

    /// A value, 0 where it is unset.
    pub(super) fn number(&self, at: usize, name: &str) -> u64 {
        self.get(at, name).unwrap_or(0)
    }

    /// The samples at which a state began.
    pub(super) fn entries(&self, state: u64) -> Vec<usize> {
        let is = |at: usize| self.get(at, "state") == Some(state);
        (0..self.samples.len()).filter(|&at| is(at) && (at == 0 || !is(at - 1))).collect()
    }

    /// The first sample from `from` on at which a condition holds.
    pub(super) fn find(&self, from: usize, holds: impl Fn(usize) -> bool) -> Option<usize> {
        (from..self.samples.len()).find(|&at| holds(at))
    }

    /// The sample at which the state that holds at `from` ends.
    pub(super) fn exit(&self, from: usize) -> Option<usize> {
        let state = self.get(from, "state");
        self.find(from, |at| self.get(at, "state") != state)
    }

    /// Time of a sample.
    pub(super) fn at(&self, at: usize) -> Duration {
        self.samples.get(at).map_or(Duration::ZERO, |sample| sample.at)
    }

    /// The last sample not after a time.
    pub(super) fn index_at(&self, time: Duration) -> usize {
        self.samples.partition_point(|sample| sample.at <= time).saturating_sub(1)
    }

    /// Bytes per second that the receiver read between two samples.
    pub(super) fn goodput(&self, from: usize, to: usize) -> f64 {
        let (Some(first), Some(last)) = (self.samples.get(from), self.samples.get(to)) else {
            return 0.0;
        };
        let span = last.at.saturating_sub(first.at).as_secs_f64();
        if span > 0.0 { (last.read - first.read) as f64 / span } else { 0.0 }
    }
}

/// Records the course of the sender, host 0.
#[derive(Debug, Default)]
pub(super) struct CourseRecorder {
    pub(super) course: BbrCourse,
    discrete: Vec<usize>,
    now: Vec<Option<u64>>,
    last: Vec<Option<u64>>,
    read: u64,
    sent: u64,
    lost: u64,
    at: Duration,
}

impl CourseRecorder {
    fn count(&mut self, who: EventSource, event: &Event, mss: u64) {
        match *event {
            Event::AppRead { bytes, .. } if who.host.0 == 1 => self.read += u64::from(bytes),
            Event::Sent { len, .. } if who.host.0 == 0 => {
                self.sent += u64::from(len).div_ceil(mss.max(1));
            }
            Event::Lost { packets } if who.host.0 == 0 => self.lost += u64::from(packets),
            _ => {}
        }
    }

    fn sample(&self) -> BbrSample {
        BbrSample {
            at: self.at,
            read: self.read,
            sent: self.sent,
            lost: self.lost,
            values: self.now.clone(),
        }
    }

    /// The course.
    pub(super) fn finish(self) -> BbrCourse {
        self.course
    }
}

impl Recorder for CourseRecorder {
    const ON: bool = true;
    const STATES: bool = false;

    fn record(&mut self, _: Instant, who: EventSource, event: Event, _: Option<&SenderState>) {
        self.count(who, &event, 1_500);
    }

    fn record_sender(
        &mut self,
        at: Instant,
        who: EventSource,
        event: impl FnOnce() -> Event,
        sender: &impl Sender,
    ) {
        self.count(who, &event(), sender.mss().get());
        if who.host.0 != 0 {
            return;
        }
        self.at = at.since(Instant::ZERO);
        let (now, names) = (&mut self.now, &mut self.course.names);
        let is_first = names.is_empty();
        now.clear();
        sender.visit_controller(&mut |name, value| {
            if is_first {
                names.push(name);
            }
            now.push(value);
        });
        if is_first {
            let known = |name: &&str| DISCRETE.contains(name);
            let indices = names.iter().enumerate().filter(|(_, name)| known(name));
            self.discrete = indices.map(|(index, _)| index).collect();
        }
        let changed = self.discrete.iter().any(|&index| self.last.get(index) != now.get(index));
        if changed {
            self.last.clone_from(&self.now);
            let sample = self.sample();
            self.course.samples.push(sample);
        }
    }
}

impl Observer for CourseRecorder {}
