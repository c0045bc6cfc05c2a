//! The scenario of the case in all its variants, and the measurements of a run.

use packet::Segment;
use record::{Cause, Event, EventSource, PacketEvent, Recorder, SenderState, SentKind};
use units::{Bytes, Duration, Instant};

use super::SCENARIO;
use crate::cases::{CaseError, Workers, load, run};

/// The RTT of the path.
pub(super) const RTT: Duration = Duration::from_millis(45);
/// A group is complete if its next packet is later than this beyond the gap.
const SILENCE: Duration = Duration::from_micros(500);
/// Interrupt interval of the sink's NIC whose LRO reorders the packets.
const INTERRUPT: Duration = Duration::from_micros(125);

/// How packets are reordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// No reordering.
    Kept,
    /// The sink's LRO sorts by a field that counts down over four packets; the interrupt comes this
    /// long after the first packet.
    Sorted {
        /// `host.sink.delay`.
        interrupt: Duration,
    },
    /// Reversed on the path.
    Reversed {
        /// Packets per group.
        group: u32,
        /// Time from its first packet to its last.
        gap: Duration,
    },
}

impl Order {
    /// Reordering by LRO.
    pub(super) const LRO: Self = Self::Sorted { interrupt: INTERRUPT };

    /// Reversed groups of four.
    pub(super) const fn reversed(gap: Duration) -> Self {
        Self::Reversed { group: 4, gap }
    }

    /// The overrides of the scenario.
    fn set(self) -> Vec<String> {
        let path = |last: &str| {
            format!(
                "path.0.forward=[{{ link = {{ rate = \"1Gbit/s\", buffer = \"8MB\" }} }}, \
                 {{ delay = \"22.5ms\" }}{last}]"
            )
        };
        match self {
            Self::Kept => vec![path("")],
            Self::Sorted { interrupt } => vec![
                path(""),
                "host.sink.lro={ rss_hash = { decreasing = 4 } }".into(),
                format!("host.sink.delay={}ns", interrupt.as_nanos()),
            ],
            Self::Reversed { group, gap } => {
                let each = gap.as_nanos() / u64::from(group - 1);
                // The gap itself must not end a group: the ACKs of a group are spaced like its
                // packets, and so are the packets they release.
                let silence = each + SILENCE.as_nanos();
                let reverse =
                    format!("reverse = {group}, gap = \"{each}ns\", timeout = \"{silence}ns\"");
                vec![path(&format!(", {{ reorder = {{ {reverse} }}, only = \"data\" }}"))]
            }
        }
    }
}

/// Measurements of the sender.
#[derive(Debug, Clone, Default)]
pub(super) struct ReorderingRun {
    /// Fast recoveries, and ssthresh in segments when the first one began.
    pub(super) recoveries: u64,
    pub(super) first_ssthresh: Option<f64>,
    /// Recoveries that were undone.
    pub(super) undone: u64,
    /// Time in recovery.
    pub(super) recovering: Duration,
    /// Packets lost.
    pub(super) lost: u64,
    /// Threshold in bytes at the end; `None` while unset.
    pub(super) ssthresh: Option<Bytes>,
    /// Threshold in segments at the end.
    pub(super) ssthresh_segments: Option<f64>,
    /// Window in segments at the end.
    pub(super) cwnd: f64,
    /// Data passed to the sink's stack: sequence number, and packets per aggregate.
    pub(super) handed: Vec<(u32, u16)>,
    /// Bytes and duration of the transfer.
    pub(super) bytes: Bytes,
    pub(super) duration: Duration,
    pub(super) retransmission: u64,
    /// Time of the first data sent.
    first_data: Option<Instant>,
    /// Time at which the sink's application read the last data.
    last_read: Option<Instant>,
    since: Option<Instant>,
}

impl ReorderingRun {
    /// Goodput in Mbit/s.
    pub(super) fn goodput(&self) -> f64 {
        self.bytes.get() as f64 * 8.0 / self.duration.as_secs_f64() / 1e6
    }

    /// Time from the first data sent to the last read, as in the recordings of the complete stack.
    pub(super) fn duration_of_data(&self) -> Duration {
        let [first, last] = [self.first_data, self.last_read].map(|at| at.unwrap_or(Instant::ZERO));
        last.since(first)
    }

    /// Goodput in Mbit/s of that time.
    pub(super) fn goodput_of_data(&self) -> f64 {
        self.bytes.get() as f64 * 8.0 / self.duration_of_data().as_secs_f64() / 1e6
    }

    /// Round trips of `rtt` in `duration` per recovery.
    pub(super) fn round_trips_each(&self, duration: Duration, rtt: Duration) -> Option<f64> {
        let trips = duration.as_secs_f64() / rtt.as_secs_f64();
        (self.recoveries > 0).then(|| trips / self.recoveries as f64)
    }

    /// Percentage of the time spent in recovery.
    pub(super) fn share_recovering(&self) -> f64 {
        100.0 * self.recovering.as_secs_f64() / self.duration.as_secs_f64()
    }
}

impl Recorder for ReorderingRun {
    const ON: bool = true;
    const PACKETS: bool = true;

    fn record(
        &mut self,
        at: Instant,
        source: EventSource,
        event: Event,
        state: Option<&SenderState>,
    ) {
        if matches!(event, Event::AppRead { .. }) && source.host.0 == 1 {
            self.last_read = Some(at);
        }
        let Some(state) = state.filter(|_| source.host.0 == 0) else { return };
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

    fn record_packet(&mut self, _: Instant, movement: PacketEvent) {
        self.lost += u64::from(matches!(movement, PacketEvent::Dropped { .. }));
    }
}

impl sim::Observer for ReorderingRun {
    fn tap(&mut self, _: Instant, _: usize, outbound: bool, segment: &Segment) {
        if !outbound && segment.payload > 0 && self.handed.len() < 16 {
            self.handed.push((segment.seq.0, segment.nsegs));
        }
    }
}

/// Runs the scenario with that order of packets, and the further overrides `set`.
pub(super) fn run_order(
    order: Order,
    set: &[&str],
    workers: &Workers<'_>,
) -> Result<ReorderingRun, CaseError> {
    let own = order.set();
    let all: Vec<&str> = own.iter().map(String::as_str).chain(set.iter().copied()).collect();
    run_text(SCENARIO, "reordering.toml", &all, workers)
}

/// Runs a scenario of two hosts, the first of which sends one flow, with the overrides `set`.
pub(super) fn run_text(
    text: &str,
    name: &str,
    set: &[&str],
    workers: &Workers<'_>,
) -> Result<ReorderingRun, CaseError> {
    let loaded = load(text, name, set)?;
    let mut seen = ReorderingRun::default();
    let outcome = run(&loaded, &mut seen, workers)?;
    if let Some(since) = seen.since.take() {
        seen.recovering += outcome.ended.since(since);
    }
    if let Some(flow) = outcome.flows.first() {
        (seen.bytes, seen.duration) = (flow.bytes, flow.duration);
        seen.retransmission = flow.retransmitted_segments;
    }
    Ok(seen)
}
