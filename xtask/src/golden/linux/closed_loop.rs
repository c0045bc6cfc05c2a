//! Runs a recorded transfer in simulated time with our Linux TCP at both hosts, and compares it.

use std::fmt;
use std::path::Path;

use record::{Cause, Event, EventSource, Recorder, SenderState, SentKind};
use sim::Observer;
use units::{Duration, FlowId, HostId, Instant};

use super::recording::{KstateEvent, KstateRecording, KstateRow};
use super::replay;
use super::world::Truth;

/// Scenarios whose goodput differs by more than 5 % between recordings.
const DO_NOT_REPEAT: [&str; 5] = ["a2", "b3", "c5", "g1", "k1"];
/// Scenarios with the same lost packets in every run.
const SAME_LOSSES: [&str; 9] = ["c1", "c4", "c6", "d1", "e1", "f1", "f2", "g1", "g2"];

/// The compared figures.
#[derive(Debug, Default)]
struct Figures {
    goodput_bps: u64,
    /// Packets in flight at the first retransmission.
    flight: Option<u64>,
    retransmitted: u64,
    recoveries: u64,
    timeouts: u64,
    spurious: u64,
    /// 0 if HyStart did not end slow start.
    hystart_exit: u64,
    /// End of BBR's startup, in microseconds.
    startup_end: Option<i64>,
}

/// Window in packets over time in microseconds.
type WindowCurve = Vec<(i64, u64)>;

/// Comparison of a run with its recording.
#[derive(Debug)]
pub(in super::super) struct ClosedLoopComparison {
    name: String,
    rtt: Duration,
    recorded: Figures,
    simulated: Figures,
    /// Largest difference of the windows in packets, ours minus recorded, and its time.
    gap: (i64, i64),
    /// The first acknowledgment that differs.
    first: Option<AckDifference>,
}

/// An acknowledgment that advanced `snd_una`: its time in microseconds, the new `snd_una`, and the
/// window after it in packets.
#[derive(Debug, Clone, Copy)]
struct AckStep {
    at_us: i64,
    una: i64,
    cwnd: u64,
}

/// The first acknowledgment after which the two runs differ.
#[derive(Debug)]
struct AckDifference {
    /// Number of equal ones before it.
    same: usize,
    theirs: AckStep,
    ours: AckStep,
}

impl AckDifference {
    /// Compares step by step, up to the end of the shorter run.
    fn first(theirs: &[AckStep], ours: &[AckStep]) -> Option<Self> {
        let differs = |(theirs, ours): (&AckStep, &AckStep)| {
            (theirs.una, theirs.cwnd) != (ours.una, ours.cwnd)
        };
        let same = theirs.iter().zip(ours).position(differs)?;
        Some(Self { same, theirs: theirs[same], ours: ours[same] })
    }
}

impl fmt::Display for AckDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let one = |step: &AckStep| {
            format!("at {:.3} ms to {}, window {}", step.at_us as f64 / 1e3, step.una, step.cwnd)
        };
        let (theirs, ours) = (one(&self.theirs), one(&self.ours));
        write!(f, "after {} ACKs alike the next one came {theirs}; ours {ours}", self.same)
    }
}

impl ClosedLoopComparison {
    /// Returns the name of the scenario up to the first underscore.
    pub(in super::super) fn short(&self) -> &str {
        self.name.split('_').next().unwrap_or("")
    }

    /// Returns the relative difference of the goodput to the recorded one, in thousandths.
    pub(in super::super) fn goodput_permille(&self) -> i64 {
        let ours = i128::from(self.simulated.goodput_bps) * 1_000;
        (ours / i128::from(self.recorded.goodput_bps.max(1))) as i64 - 1_000
    }

    /// Returns whether the difference needs an explanation: more than 5 % goodput if recordings
    /// agree, or other recoveries and timeouts if the same packets are lost.
    pub(in super::super) fn misses(&self) -> bool {
        (self.repeats() && self.goodput_permille().abs() > 50) || self.same_events() == Some(false)
    }

    /// Describes the end of BBR's startup: ours, and the recorded one.
    pub(in super::super) fn startup(&self) -> Option<String> {
        let theirs = self.recorded.startup_end?;
        let ours = self.simulated.startup_end.map(|us| format!("{:.3} s", us as f64 / 1e6));
        let ours = ours.unwrap_or_else(|| "never".to_owned());
        Some(format!("startup ended at {ours} (recorded: {:.3} s)", theirs as f64 / 1e6))
    }

    /// Describes the first difference.
    pub(in super::super) fn first_difference(&self) -> String {
        self.first.as_ref().map_or("no ACK differs".to_owned(), ToString::to_string)
    }

    /// Returns whether recordings of it agree.
    pub(in super::super) fn repeats(&self) -> bool {
        !DO_NOT_REPEAT.contains(&self.short())
    }

    /// Returns whether recoveries and timeouts match, if the same packets are lost.
    pub(in super::super) fn same_events(&self) -> Option<bool> {
        let (ours, theirs) = (&self.simulated, &self.recorded);
        SAME_LOSSES
            .contains(&self.short())
            .then_some((ours.recoveries, ours.timeouts) == (theirs.recoveries, theirs.timeouts))
    }
}

/// The heading of the lines that [`ClosedLoopComparison`] prints.
pub(in super::super) const HEADING: &str = "\
scenario                 rtt/ms   goodput Mb/s (rec)      %  flight(rec)  rtx(rec)  recov(rec) \
RTO(rec) undone(rec) hystart(rec)  cwnd gap at s";

impl fmt::Display for ClosedLoopComparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (ours, theirs) = (&self.simulated, &self.recorded);
        let flight = |figures: &Figures| figures.flight.map_or("-".into(), |n| n.to_string());
        let permille = self.goodput_permille();
        write!(
            f,
            "{:24} {:7.3} {:9.2} ({:6.2}) {:+6.1}  {:>5}({:>5}) {:>4}({:>4}) {:>4}({:>4}) \
             {:>2}({:>2}) {:>3}({:>3}) {:>6}({:>4}) {:>+7} {:7.3}",
            self.name,
            self.rtt.as_micros() as f64 / 1e3,
            ours.goodput_bps as f64 / 1e6,
            theirs.goodput_bps as f64 / 1e6,
            permille as f64 / 10.0,
            flight(ours),
            flight(theirs),
            ours.retransmitted,
            theirs.retransmitted,
            ours.recoveries,
            theirs.recoveries,
            ours.timeouts,
            theirs.timeouts,
            ours.spurious,
            theirs.spurious,
            ours.hystart_exit,
            theirs.hystart_exit,
            self.gap.0,
            self.gap.1 as f64 / 1e6,
        )
    }
}

/// Runs a transfer and compares it with its recording.
///
/// # Errors
/// The transfer cannot be read or is not modelled.
pub(super) fn compare(transfer: &Path) -> Result<ClosedLoopComparison, String> {
    let truth = Truth::read(transfer)?;
    let recording = KstateRecording::open(&transfer.join("kstate_f0.csv.gz"))
        .map_err(|error| format!("kstate_f0.csv.gz:{error}"))?;
    let rtt = effective_rtt(&truth, &recording.samples);
    let into_tick = (-replay::phase(&recording.samples)).rem_euclid(replay::JIFFY_US);
    let scenario = truth.scenario(rtt, Duration::from_micros(into_tick as u64))?;
    let mut watch = FlowWatcher { mss: 1_448, ..FlowWatcher::default() };
    let outcome = sim::run(&scenario, &mut watch).map_err(|error| error.to_string())?;
    let mut simulated = Figures {
        flight: watch.flight,
        hystart_exit: watch.exit,
        startup_end: watch.exit_at,
        goodput_bps: watch.goodput(),
        ..Figures::default()
    };
    for flow in &outcome.flows {
        simulated.retransmitted += flow.retransmitted_segments;
        simulated.recoveries += flow.fast_recoveries;
        simulated.timeouts += flow.rtos;
        simulated.spurious += flow.spurious_recoveries;
    }
    if recording.samples.iter().any(|row| row.mode.is_some()) {
        // The end of BBR's startup.
        simulated.hystart_exit = 0;
    }
    let counters = &truth.kernel_counters_sender;
    let repeated = recording.samples.iter().find(|row| row.ev == KstateEvent::Repeated);
    let recorded = Figures {
        goodput_bps: truth.flows.first().map_or(0, |flow| flow.goodput_bps),
        flight: repeated.map(|row| row.packets_out.into()),
        retransmitted: truth.flows.iter().map(|flow| flow.retransmitted_packets).sum(),
        recoveries: counters.recoveries,
        timeouts: counters.timeouts,
        spurious: counters.spurious(),
        hystart_exit: counters.hystart_exit(),
        startup_end: startup_end(&recording.samples),
    };
    let theirs: WindowCurve = recording
        .samples
        .iter()
        .filter(|row| row.una >= 0)
        .map(|row| (row.t_us as i64, row.cwnd.into()))
        .collect();
    let name = transfer.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let gap = gap(&watch.curve, &theirs);
    let first = AckDifference::first(&steps(&recording.samples), &watch.steps);
    Ok(ClosedLoopComparison { name, rtt, recorded, simulated, gap, first })
}

/// Returns the time at which BBR left its startup.
fn startup_end(samples: &[KstateRow]) -> Option<i64> {
    let later = |row: &&KstateRow| row.mode.as_deref().is_some_and(|mode| mode != "STARTUP");
    samples.iter().find(later).map(|row| row.t_us as i64)
}

/// Returns the advances of `snd_una` in a recording; the row after an ACK has the state after it,
/// except rows of congestion-state changes.
fn steps(samples: &[KstateRow]) -> Vec<AckStep> {
    let whole: Vec<&KstateRow> =
        samples.iter().filter(|row| row.ev != KstateEvent::State).collect();
    let moved = |pair: &&[&KstateRow]| pair[0].una >= 0 && pair[1].una > pair[0].una;
    let step = |pair: &[&KstateRow]| AckStep {
        at_us: pair[0].t_us as i64,
        una: pair[1].una,
        cwnd: pair[1].cwnd.into(),
    };
    whole.windows(2).filter(moved).map(step).collect()
}

/// Returns the effective round-trip time, including the delays of emulator and kernel: that of the
/// SYN, which saw no queue, or without a queue the median of all.
fn effective_rtt(truth: &Truth, samples: &[KstateRow]) -> Duration {
    let mut all: Vec<u32> = samples
        .iter()
        .filter(|row| row.ev == KstateEvent::Ack && row.rack_rtt_us > 0)
        .map(|row| row.rack_rtt_us)
        .collect();
    let syn = samples.iter().map(|row| row.rack_rtt_us).find(|&rtt| rtt > 0);
    all.sort_unstable();
    let rtt = if truth.queues() { syn } else { all.get(all.len() / 2).copied() };
    rtt.map_or(truth.base_rtt(), |rtt| Duration::from_micros(rtt.into()))
}

/// Returns the largest difference of two curves (ours minus theirs) and its time.
fn gap(ours: &WindowCurve, theirs: &WindowCurve) -> (i64, i64) {
    let value = |curve: &WindowCurve, at: i64| {
        let next = curve.partition_point(|&(from, _)| from <= at);
        next.checked_sub(1).map(|last| curve[last].1 as i64)
    };
    let end = match (ours.last(), theirs.last()) {
        (Some(a), Some(b)) => a.0.min(b.0),
        _ => return (0, 0),
    };
    let places = ours.iter().chain(theirs).map(|&(at, _)| at).filter(|&at| at <= end);
    let gaps = places.filter_map(|at| Some((value(ours, at)? - value(theirs, at)?, at)));
    gaps.max_by_key(|&(gap, at)| (gap.abs(), -at)).unwrap_or((0, 0))
}

/// Records the first flow.
#[derive(Debug, Default)]
struct FlowWatcher {
    mss: u64,
    curve: WindowCurve,
    steps: Vec<AckStep>,
    flight: Option<u64>,
    exit: u64,
    exit_at: Option<i64>,
    /// Times of the first and the last read, and the total bytes read.
    first_read: Option<Instant>,
    last_read: Option<Instant>,
    read: u64,
}

impl FlowWatcher {
    /// Returns the goodput in bit/s from the first byte read to the last.
    fn goodput(&self) -> u64 {
        let Some((first, last)) = self.first_read.zip(self.last_read) else { return 0 };
        let nanos = u128::from(last.since(first).as_nanos().max(1));
        (u128::from(self.read) * 8 * 1_000_000_000 / nanos) as u64
    }
}

impl Recorder for FlowWatcher {
    const ON: bool = true;

    fn record(&mut self, at: Instant, who: EventSource, event: Event, state: Option<&SenderState>) {
        if who.flow != FlowId(0) {
            return;
        }
        if who.host == HostId(1) {
            if let Event::AppRead { bytes, .. } = event {
                self.first_read.get_or_insert(at);
                self.last_read = Some(at);
                self.read += u64::from(bytes);
            }
            return;
        }
        if let Some(state) = state {
            let micros = (at.as_nanos() / 1_000) as i64;
            self.curve.push((micros, state.cwnd.get() / self.mss));
            if let Event::Acked { una, .. } = event {
                let cwnd = state.cwnd.get() / self.mss;
                self.steps.push(AckStep { at_us: micros, una: una.0 as i64, cwnd });
            }
            if let Event::Sent { kind: SentKind::Retransmission(_), .. } = event {
                let out = (state.snd_max - state.snd_una).div_ceil(self.mss);
                self.flight.get_or_insert(out);
            }
        }
        if let Event::Window { cwnd, cause: Cause::SlowStartExit, .. } = event {
            self.exit = u64::from(cwnd) / self.mss;
            self.exit_at = Some((at.as_nanos() / 1_000) as i64);
        }
    }
}

impl Observer for FlowWatcher {}
