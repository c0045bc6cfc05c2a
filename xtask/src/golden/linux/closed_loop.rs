//! A recorded transfer run again in virtual time, our Linux at both ends, beside the recording.

use std::fmt;
use std::path::Path;

use record::{Cause, Event, Recorder, SenderState, SentKind, Who};
use sim::Observer;
use units::{Duration, FlowId, HostId, Instant};

use super::recording::{Kind, Recording, Sample};
use super::replay;
use super::world::Truth;

/// Scenarios of which two recordings differ by more than 5 %.
const DO_NOT_REPEAT: [&str; 5] = ["a2", "b3", "c5", "g1", "k1"];
/// Scenarios in which the same packets are lost in every run.
const SAME_LOSSES: [&str; 9] = ["c1", "c4", "c6", "d1", "e1", "f1", "f2", "g1", "g2"];

/// What is compared.
#[derive(Debug, Default)]
struct Figures {
    goodput_bps: u64,
    /// Packets out when the first one left again.
    flight: Option<u64>,
    retransmitted: u64,
    recoveries: u64,
    timeouts: u64,
    spurious: u64,
    /// 0 if HyStart did not end slow start.
    hystart_exit: u64,
    /// When BBR's startup ended, in microseconds.
    startup_end: Option<i64>,
}

/// A window in packets from a time in microseconds on.
type Curve = Vec<(i64, u64)>;

/// A run beside its recording.
#[derive(Debug)]
pub(in super::super) struct Comparison {
    name: String,
    rtt: Duration,
    recorded: Figures,
    simulated: Figures,
    /// Largest gap between the two windows in packets: ours less the recorded one, and when.
    gap: (i64, i64),
    /// The first acknowledgment that differs.
    first: Option<Difference>,
}

/// An acknowledgment that moved `snd_una`: when in microseconds, where to, and the window after it
/// in packets.
#[derive(Debug, Clone, Copy)]
struct Step {
    at_us: i64,
    una: i64,
    cwnd: u64,
}

/// The first acknowledgment of which the two runs make something else.
#[derive(Debug)]
struct Difference {
    /// How many were the same before it.
    same: usize,
    theirs: Step,
    ours: Step,
}

impl Difference {
    /// Compares step by step; where a run ends nothing differs any more.
    fn first(theirs: &[Step], ours: &[Step]) -> Option<Self> {
        let differs =
            |(theirs, ours): (&Step, &Step)| (theirs.una, theirs.cwnd) != (ours.una, ours.cwnd);
        let same = theirs.iter().zip(ours).position(differs)?;
        Some(Self { same, theirs: theirs[same], ours: ours[same] })
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let one = |step: &Step| {
            format!("at {:.3} ms to {}, window {}", step.at_us as f64 / 1e3, step.una, step.cwnd)
        };
        let (theirs, ours) = (one(&self.theirs), one(&self.ours));
        write!(f, "after {} ACKs alike the next one came {theirs}; ours {ours}", self.same)
    }
}

impl Comparison {
    /// Name of the scenario up to the first underline.
    pub(in super::super) fn short(&self) -> &str {
        self.name.split('_').next().unwrap_or("")
    }

    /// Goodput against the recorded one, in thousandths.
    pub(in super::super) fn goodput_permille(&self) -> i64 {
        let ours = i128::from(self.simulated.goodput_bps) * 1_000;
        (ours / i128::from(self.recorded.goodput_bps.max(1))) as i64 - 1_000
    }

    /// Is it off by so much that it is to be explained: by more than a twentieth in goodput where two
    /// recordings agree, or in recoveries and timeouts where the same packets are lost?
    pub(in super::super) fn misses(&self) -> bool {
        (self.repeats() && self.goodput_permille().abs() > 50) || self.same_events() == Some(false)
    }

    /// When BBR's startup ended, for people: ours, and the recorded one.
    pub(in super::super) fn startup(&self) -> Option<String> {
        let theirs = self.recorded.startup_end?;
        let ours = self.simulated.startup_end.map(|us| format!("{:.3} s", us as f64 / 1e6));
        let ours = ours.unwrap_or_else(|| "never".to_owned());
        Some(format!("startup ended at {ours} (recorded: {:.3} s)", theirs as f64 / 1e6))
    }

    /// What the first difference is, for people.
    pub(in super::super) fn first_difference(&self) -> String {
        self.first.as_ref().map_or("no ACK differs".to_owned(), ToString::to_string)
    }

    /// Do two recordings of it agree?
    pub(in super::super) fn repeats(&self) -> bool {
        !DO_NOT_REPEAT.contains(&self.short())
    }

    /// As many recoveries and timeouts as recorded, where the same packets are lost?
    pub(in super::super) fn same_events(&self) -> Option<bool> {
        let (ours, theirs) = (&self.simulated, &self.recorded);
        SAME_LOSSES
            .contains(&self.short())
            .then_some((ours.recoveries, ours.timeouts) == (theirs.recoveries, theirs.timeouts))
    }
}

/// The heading of the lines that [`Comparison`] prints.
pub(in super::super) const HEADING: &str = "\
scenario                 rtt/ms   goodput Mb/s (rec)      %  flight(rec)  rtx(rec)  recov(rec) \
RTO(rec) undone(rec) hystart(rec)  cwnd gap at s";

impl fmt::Display for Comparison {
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

/// Runs a transfer again.
///
/// # Errors
/// What of it cannot be read, or is not modelled.
pub(super) fn compare(transfer: &Path) -> Result<Comparison, String> {
    let truth = Truth::read(transfer)?;
    let recording = Recording::open(&transfer.join("kstate_f0.csv.gz"))
        .map_err(|error| format!("kstate_f0.csv.gz:{error}"))?;
    let rtt = effective_rtt(&truth, &recording.samples);
    let into_tick = (-replay::phase(&recording.samples)).rem_euclid(replay::JIFFY_US);
    let scenario = truth.scenario(rtt, Duration::from_micros(into_tick as u64))?;
    let mut watch = Watch { mss: 1_448, ..Watch::default() };
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
    let again = recording.samples.iter().find(|row| row.ev == Kind::Again);
    let recorded = Figures {
        goodput_bps: truth.flows.first().map_or(0, |flow| flow.goodput_bps),
        flight: again.map(|row| row.packets_out.into()),
        retransmitted: truth.flows.iter().map(|flow| flow.retransmitted_packets).sum(),
        recoveries: counters.recoveries,
        timeouts: counters.timeouts,
        spurious: counters.spurious(),
        hystart_exit: counters.hystart_exit(),
        startup_end: startup_end(&recording.samples),
    };
    let theirs: Curve = recording
        .samples
        .iter()
        .filter(|row| row.una >= 0)
        .map(|row| (row.t_us as i64, row.cwnd.into()))
        .collect();
    let name = transfer.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let gap = gap(&watch.curve, &theirs);
    let first = Difference::first(&steps(&recording.samples), &watch.steps);
    Ok(Comparison { name, rtt, recorded, simulated, gap, first })
}

/// When BBR left its first phase.
fn startup_end(samples: &[Sample]) -> Option<i64> {
    let later = |row: &&Sample| row.mode.as_deref().is_some_and(|mode| mode != "STARTUP");
    samples.iter().find(later).map(|row| row.t_us as i64)
}

/// What moved `snd_una` in a recording; the row behind an ACK has the state after it, unless it tells
/// of a state that is about to change.
fn steps(samples: &[Sample]) -> Vec<Step> {
    let whole: Vec<&Sample> = samples.iter().filter(|row| row.ev != Kind::State).collect();
    let moved = |pair: &&[&Sample]| pair[0].una >= 0 && pair[1].una > pair[0].una;
    let step = |pair: &[&Sample]| Step {
        at_us: pair[0].t_us as i64,
        una: pair[1].una,
        cwnd: pair[1].cwnd.into(),
    };
    whole.windows(2).filter(moved).map(step).collect()
}

/// The round trip that a packet really saw, the emulator's and the kernel's own time included: that
/// of the SYN, which met no queue; where there is none, the median of all.
fn effective_rtt(truth: &Truth, samples: &[Sample]) -> Duration {
    let mut all: Vec<u32> = samples
        .iter()
        .filter(|row| row.ev == Kind::Ack && row.rack_rtt_us > 0)
        .map(|row| row.rack_rtt_us)
        .collect();
    let syn = samples.iter().map(|row| row.rack_rtt_us).find(|&rtt| rtt > 0);
    all.sort_unstable();
    let rtt = if truth.queues() { syn } else { all.get(all.len() / 2).copied() };
    rtt.map_or(truth.base_rtt(), |rtt| Duration::from_micros(rtt.into()))
}

/// The largest gap between two curves, as ours less theirs, and where; up to the end of the shorter.
fn gap(ours: &Curve, theirs: &Curve) -> (i64, i64) {
    let value = |curve: &Curve, at: i64| {
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

/// Watches the first flow.
#[derive(Debug, Default)]
struct Watch {
    mss: u64,
    curve: Curve,
    steps: Vec<Step>,
    flight: Option<u64>,
    exit: u64,
    exit_at: Option<i64>,
    /// When the first and the last byte were read, and how many in all.
    first_read: Option<Instant>,
    last_read: Option<Instant>,
    read: u64,
}

impl Watch {
    /// Bits per second from the first byte read to the last.
    fn goodput(&self) -> u64 {
        let Some((first, last)) = self.first_read.zip(self.last_read) else { return 0 };
        let nanos = u128::from(last.since(first).as_nanos().max(1));
        (u128::from(self.read) * 8 * 1_000_000_000 / nanos) as u64
    }
}

impl Recorder for Watch {
    const ON: bool = true;

    fn record(&mut self, at: Instant, who: Who, event: Event, state: Option<&SenderState>) {
        if who.flow != FlowId(0) {
            return;
        }
        if who.host == HostId(1) {
            if let Event::Read { bytes, .. } = event {
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
                self.steps.push(Step { at_us: micros, una: una.0 as i64, cwnd });
            }
            if let Event::Sent { kind: SentKind::Again(_), .. } = event {
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

impl Observer for Watch {}
