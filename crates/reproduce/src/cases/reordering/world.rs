//! The scenario of the case in all its variants, and what is watched in a run.

use packet::Segment;
use record::{Cause, Event, Movement, Recorder, SenderState, SentKind, Who};
use units::{Bytes, Duration, Instant};

use super::SCENARIO;
use crate::cases::{CaseError, Stop, load, run};

/// The round trip of the path.
pub(super) const RTT: Duration = Duration::from_millis(45);
/// A group is complete as it is when its next packet comes so much later than the gap explains.
const SILENCE: Duration = Duration::from_micros(500);
/// Interrupts of the sink's card where its LRO turns the packets around.
const INTERRUPT: Duration = Duration::from_micros(125);

/// How the order of packets is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// Not at all.
    Kept,
    /// The sink's LRO sorts by a field that counts down over four packets; so long after the first
    /// packet comes the interrupt.
    Sorted {
        /// `host.sink.delay`.
        interrupt: Duration,
    },
    /// On the way.
    Reversed {
        /// Packets of a group.
        group: u32,
        /// From its first packet to its last.
        gap: Duration,
    },
}

impl Order {
    /// The cause itself.
    pub(super) const LRO: Self = Self::Sorted { interrupt: INTERRUPT };

    /// Groups of four.
    pub(super) const fn reversed(gap: Duration) -> Self {
        Self::Reversed { group: 4, gap }
    }

    /// What it changes in the scenario.
    fn set(self) -> Vec<String> {
        let road = |last: &str| {
            format!(
                "path.0.forward=[{{ link = {{ rate = \"1Gbit/s\", buffer = \"8MB\" }} }}, \
                 {{ delay = \"22.5ms\" }}{last}]"
            )
        };
        match self {
            Self::Kept => vec![road("")],
            Self::Sorted { interrupt } => vec![
                road(""),
                "host.sink.lro={ rss_hash = { decreasing = 4 } }".into(),
                format!("host.sink.delay={}ns", interrupt.as_nanos()),
            ],
            Self::Reversed { group, gap } => {
                let each = gap.as_nanos() / u64::from(group - 1);
                // What the gap itself spreads is no silence: the ACKs of a group come as far apart as its
                // members, and so does what they release.
                let silence = each + SILENCE.as_nanos();
                let reverse =
                    format!("reverse = {group}, gap = \"{each}ns\", timeout = \"{silence}ns\"");
                vec![road(&format!(", {{ reorder = {{ {reverse} }}, only = \"data\" }}"))]
            }
        }
    }
}

/// What was seen of the sender.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen {
    /// Fast recoveries, and the window threshold in segments when the first one began.
    pub(super) recoveries: u64,
    pub(super) first_ssthresh: Option<f64>,
    /// Recoveries that were taken back.
    pub(super) undone: u64,
    /// Time in recovery.
    pub(super) recovering: Duration,
    /// Packets that were lost.
    pub(super) lost: u64,
    /// Threshold in bytes at the end; `None` while unset.
    pub(super) ssthresh: Option<Bytes>,
    /// The same in segments.
    pub(super) ssthresh_segments: Option<f64>,
    /// Window in segments at the end.
    pub(super) cwnd: f64,
    /// Data the sink's stack was handed: sequence number, and packets in one.
    pub(super) handed: Vec<(u32, u16)>,
    /// The transfer.
    pub(super) bytes: Bytes,
    pub(super) duration: Duration,
    pub(super) resent: u64,
    /// When the sender sent its first data.
    first_data: Option<Instant>,
    /// When the sink's application read the last of it.
    last_read: Option<Instant>,
    since: Option<Instant>,
}

impl Seen {
    /// Goodput in Mbit/s.
    pub(super) fn goodput(&self) -> f64 {
        self.bytes.get() as f64 * 8.0 / self.duration.as_secs_f64() / 1e6
    }

    /// Goodput in Mbit/s from the first data sent to the last read, as the recordings of the complete stack
    /// count it.
    pub(super) fn goodput_of_data(&self) -> f64 {
        let [first, last] = [self.first_data, self.last_read].map(|at| at.unwrap_or(Instant::ZERO));
        self.bytes.get() as f64 * 8.0 / last.since(first).as_secs_f64() / 1e6
    }

    /// Round trips for each recovery.
    pub(super) fn round_trips_each(&self) -> Option<f64> {
        let trips = self.duration.as_secs_f64() / RTT.as_secs_f64();
        (self.recoveries > 0).then(|| trips / self.recoveries as f64)
    }

    /// Percentage of the time spent in recovery.
    pub(super) fn share_recovering(&self) -> f64 {
        100.0 * self.recovering.as_secs_f64() / self.duration.as_secs_f64()
    }
}

impl Recorder for Seen {
    const ON: bool = true;
    const PACKETS: bool = true;

    fn record(&mut self, at: Instant, who: Who, event: Event, state: Option<&SenderState>) {
        if matches!(event, Event::Read { .. }) && who.host.0 == 1 {
            self.last_read = Some(at);
        }
        let Some(state) = state.filter(|_| who.host.0 == 0) else { return };
        let segments = |bytes: Bytes| bytes.get() as f64 / state.mss.get() as f64;
        match (self.since, state.in_recovery) {
            (None, true) => {
                self.since = Some(at);
                self.recoveries += 1;
                self.first_ssthresh = self.first_ssthresh.or(state.ssthresh.map(segments));
            }
            (Some(since), false) => {
                self.since = None;
                self.recovering += at.since(since);
            }
            _ => {}
        }
        if matches!(event, Event::Sent { kind: SentKind::New, .. }) {
            self.first_data.get_or_insert(at);
        }
        if matches!(event, Event::Window { cause: Cause::Undone, .. }) {
            self.undone += 1;
        }
        self.ssthresh = state.ssthresh;
        self.ssthresh_segments = state.ssthresh.map(segments);
        self.cwnd = segments(state.cwnd);
    }

    fn moved(&mut self, _: Instant, movement: Movement) {
        self.lost += u64::from(matches!(movement, Movement::Dropped { .. }));
    }
}

impl sim::Observer for Seen {
    fn tap(&mut self, _: Instant, _: usize, outbound: bool, segment: &Segment) {
        if !outbound && segment.payload > 0 && self.handed.len() < 16 {
            self.handed.push((segment.seq.0, segment.nsegs));
        }
    }
}

/// Runs the scenario in that order of packets, changed further by `set`.
pub(super) fn see(order: Order, set: &[&str], stop: Stop<'_>) -> Result<Seen, CaseError> {
    let own = order.set();
    let all: Vec<&str> = own.iter().map(String::as_str).chain(set.iter().copied()).collect();
    let loaded = load(SCENARIO, "reordering.toml", &all)?;
    let mut seen = Seen::default();
    let outcome = run(&loaded, &mut seen, stop)?;
    if let Some(since) = seen.since.take() {
        seen.recovering += outcome.ended.since(since);
    }
    if let Some(flow) = outcome.flows.first() {
        (seen.bytes, seen.duration) = (flow.bytes, flow.duration);
        seen.resent = flow.retransmitted_segments;
    }
    Ok(seen)
}
