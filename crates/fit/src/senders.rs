//! Identifies the sender: replays the acknowledgments of the capture through the congestion
//! controllers of all systems.
//!
//! The replay is open-loop: every candidate processes the recorded acknowledgments, whatever it
//! would have sent. For each round trip in which only the congestion window limited the sender, the
//! maximum flight is compared with the candidate's window at that time. Candidates run freely from
//! the first byte; they are never set to recorded values.
//!
//! The flight of a controller that paces (BBR) is limited by its rate in the recorded round trip,
//! if that is less than its window. BBR version 3 probes at random times, and version 1 begins ProbeBW in a
//! random phase: those that match best (`probe_cycles`); lost is what is retransmitted.
//!
//! Assumptions: recoveries and timeouts start and end as in the capture; the candidate only sets
//! the window. The window within a FreeBSD recovery is not modelled, so that a timeout within one,
//! which derives ssthresh from it, ends the comparison; so does an ECN mark. Windows do not
//! distinguish two stacks with the same controller.

use core::cmp::Ordering;

use cc::{
    AckEvent, AckSample, AnyController, CongestionEvent, CongestionSignal, ConnectionStart,
    Controller, IdleEvent, RecoveryEnd, SmoothedRtt, WindowController,
};
use diagnose::capture_point::CapturePoint;
use diagnose::sender_events::{SenderEvent, SenderEventKind};
use diagnose::{Analysis, FlowAnalysis};
use packet::Dir;
use tcp::profile::{Family, TcpProfile};
use units::{Duration, Instant, Offset, RandomStream};

mod probe_cycles;

use probe_cycles::ProbeCycles;

use crate::PeerSystem;
use crate::peaks::{ROUNDS, peaks};
use crate::rates::ReplayRates;

/// Maximum sender events that [`guesses`] uses, and that an analysis needs to keep.
pub const MAX_EVENTS: usize = 50_000;

/// Maximum misfit of the recorded sender.
const FITS: f64 = 0.05;

/// Senders whose misfits differ by at most this are equally good.
const AS_GOOD: f64 = 0.005;

/// Candidates: profile and congestion control.
const CANDIDATES: [(&str, &str); 11] = [
    ("linux-6.18", "cubic"),
    ("linux-6.18", "reno"),
    ("linux-6.18", "bbr"),
    ("linux-6.18", "bbr3"),
    ("freebsd-14.3", "cubic"),
    ("freebsd-14.3", "newreno"),
    ("freebsd-13.2", "cubic"),
    ("freebsd-13.2", "newreno"),
    ("freebsd-rack-main", "cubic"),
    ("freebsd-rack-main", "newreno"),
    ("rfc", "newreno"),
];

/// A candidate for the recorded sender.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Guess {
    /// Profile.
    pub profile: &'static str,
    /// Congestion control.
    pub cc: &'static str,
    /// Mean difference between its window and the recorded flight over all rounds, relative to the
    /// larger of both, with a tolerance of one segment.
    pub misfit: f64,
    /// Rounds compared.
    pub rounds: usize,
    /// It was in slow start in all rounds, where many controllers agree.
    pub slow_start_only: bool,
}

impl Guess {
    /// Returns whether it is close enough to be the recorded sender.
    pub fn fits(&self) -> bool {
        self.misfit <= FITS
    }

    /// Returns whether its windows do not distinguish it from `other`.
    pub fn equals(&self, other: &Self) -> bool {
        (self.misfit - other.misfit).abs() <= AS_GOOD
    }
}

/// Returns the candidates that match the recorded SYN, best fit first. The result is empty if the
/// capture has too few rounds limited by the congestion window, lacks the handshake, or was not
/// taken at the sender, where HyStart's ACK arrival times are visible.
pub fn guesses(analysis: &Analysis) -> Vec<Guess> {
    let whole = |flow: &&FlowAnalysis| {
        flow.mss > 0 && flow.point == CapturePoint::Sender && analysis.opened
    };
    let Some(flow) = analysis.main().filter(whole) else { return Vec::new() };
    let peaks = peaks(flow);
    if peaks.len() < ROUNDS {
        return Vec::new();
    }
    let family = match PeerSystem::of(analysis, flow.dir) {
        PeerSystem::Linux => Some(Family::Linux),
        PeerSystem::FreeBsd => Some(Family::FreeBsd),
        PeerSystem::Unknown => None,
    };
    let mut guesses: Vec<Guess> = CANDIDATES
        .iter()
        .filter_map(|&(name, cc)| {
            let profile = TcpProfile::named(name)?;
            if family.is_some_and(|family| family != profile.family) {
                return None;
            }
            let algorithm = profile.algorithm(cc).ok()?;
            let controller =
                profile.build(algorithm, &RandomStream::named(1, "replay", "controller"));
            let replay = SenderReplay::new(&profile, controller, flow, analysis);
            replay.compare(&peaks, Guess { profile: name, cc, ..Guess::default() })
        })
        .collect();
    guesses.sort_by(|a, b| a.misfit.partial_cmp(&b.misfit).unwrap_or(Ordering::Equal));
    guesses
}

/// A candidate that processes the recorded events.
#[derive(Clone)]
struct SenderReplay<'a> {
    cc: AnyController,
    flow: &'a FlowAnalysis,
    family: Family,
    hz: u64,
    /// Smoothed round-trip time, and its number of samples.
    srtt: Duration,
    samples: u32,
    /// Data marked lost by a timeout is being retransmitted.
    retransmitting: bool,
    /// The window cannot be followed any further.
    diverged: bool,
    /// Consecutive timeouts.
    timeouts: u32,
    /// Reordering seen, in packets (Linux `tp->reordering`).
    reordering: u64,
    /// Maximum packets in flight in the current window, and its end (Linux `max_packets_out`).
    most: u64,
    usage_end: Offset,
    last_tick: u64,
    /// Window before the current or last recovery.
    before_recovery: u64,
    /// Delivery rates, for a rate-based controller.
    rates: Option<ReplayRates>,
}

impl<'a> SenderReplay<'a> {
    fn new(
        profile: &TcpProfile,
        mut cc: AnyController,
        flow: &'a FlowAnalysis,
        analysis: &Analysis,
    ) -> Self {
        let hz = u64::from(profile.hz);
        let start = flow.turns.first().map_or(Instant::ZERO, |turn| turn.at);
        let peer = analysis.observed_syns[flow.dir.reversed() as usize];
        let mss = flow.mss as u32;
        let _ = cc.on_established(&ConnectionStart {
            now: start,
            ticks: ticks_at(start, hz),
            created_ticks: ticks_at(start, hz),
            una: Offset(1),
            mss,
            maxseg: mss + 12 * u32::from(flow.stamps),
            snd_scale: peer.and_then(|syn| syn.options.window_scale).unwrap_or(0).min(14),
            syn_retransmitted: analysis.syns > 2 && flow.dir == Dir::Forward,
            rtt: None,
            ssthresh: None,
        });
        let rates = cc.rate_based().is_some().then(|| ReplayRates::new(start, flow.mss));
        Self {
            cc,
            flow,
            family: profile.family,
            hz,
            srtt: Duration::ZERO,
            samples: 0,
            retransmitting: false,
            diverged: false,
            timeouts: 0,
            reordering: 3,
            most: 0,
            usage_end: Offset(0),
            last_tick: 0,
            before_recovery: 0,
            rates,
        }
    }

    /// Replays all events and compares at `peaks`; `None` if too few can be compared.
    fn compare(mut self, peaks: &[usize], mut guess: Guess) -> Option<Guess> {
        let mut next = peaks.iter().peekable();
        guess.slow_start_only = true;
        let mut cycles = ProbeCycles::default();
        for (n, turn) in self.flow.turns.iter().enumerate() {
            self.hear(turn);
            cycles.follow(&mut self, n, peaks);
            if next.next_if(|&&peak| peak == n).is_some() {
                guess.misfit += self.off(turn);
                guess.rounds += 1;
                guess.slow_start_only &= self.cc.in_slow_start();
            }
            if next.peek().is_none() || self.diverged {
                break;
            }
        }
        guess.misfit /= guess.rounds.max(1) as f64;
        (guess.rounds >= ROUNDS).then_some(guess)
    }

    /// Returns the relative difference between the flight after `turn` and this sender's flight.
    fn off(&self, turn: &SenderEvent) -> f64 {
        let control = self.cc.control();
        let window = control.window.get();
        let (least, most) = match &self.rates {
            Some(rates) => {
                let paced = rates.paced_flight(turn).map_or(window, |paced| paced.min(window));
                (paced, paced)
            }
            // Within a recovery the window falls from its previous value to ssthresh.
            None if self.cc.in_recovery() => {
                let threshold = control.ssthresh.map_or(window, |bytes| bytes.get());
                (window.min(threshold), window.max(self.before_recovery))
            }
            None => (window, window),
        };
        let flight = turn.flight;
        let nearest = flight.clamp(least, most);
        // Linux counts whole packets, and FreeBSD sends only full-sized segments.
        let off = nearest.abs_diff(flight).saturating_sub(self.flow.mss);
        off as f64 / nearest.max(flight).max(1) as f64
    }

    fn hear(&mut self, turn: &SenderEvent) {
        match turn.what {
            SenderEventKind::FirstData => {}
            SenderEventKind::Acked => self.acked(turn, false),
            SenderEventKind::Recovered(episode) => {
                let ended = self.settle(turn, episode);
                self.acked(turn, ended);
            }
            SenderEventKind::Loss(episode) => {
                // A probe that repaired no loss has no effect (RFC 8985 section 7.4).
                if !self.cc.in_recovery() && !self.is_spurious_probe(episode) {
                    self.before_recovery = self.cc.control().window.get();
                    let _ = self.cc.on_congested(&self.congested(turn, CongestionSignal::Loss));
                }
                self.mark_lost(turn);
            }
            // The response to an ECN mark is not modelled.
            SenderEventKind::Marked => self.diverged = true,
            SenderEventKind::Timeout(_) => {
                self.retransmitting = true;
                self.diverged |= self.family == Family::FreeBsd && self.cc.in_recovery();
                self.timeouts += 1;
                let signal = CongestionSignal::Timeout { shift: self.timeouts };
                let _ = self.cc.on_congested(&self.congested(turn, signal));
                self.mark_lost(turn);
            }
            SenderEventKind::Rest(idle) => {
                let rto = self.srtt + Duration::from_millis(200);
                if idle > rto {
                    let ticks = ticks_at(turn.at, self.hz);
                    let _ = self.cc.on_idle(&IdleEvent { ticks, idle, rto });
                }
                self.cc.on_tx_start(ticks_at(turn.at, self.hz), self.last_tick);
                if let Some(rates) = &mut self.rates {
                    rates.restart(turn.at);
                    self.cc.on_restart(turn.at, ticks_at(turn.at, self.hz), true);
                }
            }
        }
        if let Some(rates) = &mut self.rates {
            let pacing = self.cc.control().pacing;
            rates.pace(turn, pacing.map_or(0, |rate| rate.bits_per_second() / 8));
        }
        self.last_tick = ticks_at(turn.at, self.hz);
        let packets = turn.flight.div_ceil(self.flow.mss.max(1));
        if turn.una >= self.usage_end || packets > self.most {
            self.most = packets;
            self.usage_end = turn.nxt;
        }
    }

    /// What is retransmitted after an event was marked lost with it.
    fn mark_lost(&mut self, turn: &SenderEvent) {
        if let Some(rates) = &mut self.rates
            && let Some(lost) = rates.lose(turn)
        {
            self.cc.on_segment_lost(&lost);
        }
    }

    fn acked(&mut self, turn: &SenderEvent, ends_recovery: bool) {
        let now = turn.at;
        let ticks = ticks_at(turn.at, self.hz);
        let rtt = self.sample(turn.rtt);
        if self.family == Family::Linux && !turn.rtt.is_zero() {
            let window = self.cc.control().window.get();
            // tcp_update_pacing_rate: twice the window per round trip in slow start.
            let pacing_rate = 2_000_000_000 * window / self.srtt.as_nanos().max(1);
            let _ = self.cc.on_ack_sample(&AckSample {
                now,
                ticks,
                rtt: turn.rtt,
                una: turn.una,
                snd_nxt: turn.nxt,
                pacing_rate,
            });
        }
        let mss = self.flow.mss.max(1);
        self.mark_lost(turn);
        if let Some(rates) = &mut self.rates
            && turn.delivered > 0
        {
            let limited = self.most * mss + mss >= self.cc.control().window.get();
            let sample = rates.sample(turn, self.srtt, ticks, limited);
            let _ = self.cc.on_rate_sample(&sample);
        }
        // tcp_check_sack_reordering.
        self.reordering = self.reordering.max(turn.late.div_ceil(mss));
        let counts = match self.family {
            // PRR sets the window in a recovery; tcp_may_raise_cwnd.
            Family::Linux => !self.cc.in_recovery() && (turn.acked > 0 || self.reordering > 3),
            Family::FreeBsd | Family::Rfc => turn.acked > 0,
        };
        if !counts {
            return;
        }
        let window = self.cc.control().window.get();
        let _ = self.cc.on_acked(&AckEvent {
            now,
            ticks,
            rtt,
            srtt: self.smoothed(),
            snd_nxt: turn.nxt,
            una: turn.una,
            bytes: turn.acked,
            packets: turn.delivered.div_ceil(mss) as u32,
            nsegs: 1,
            ends_recovery,
            retransmitting: self.retransmitting,
            snd_wnd: turn.window,
            window_limited: self.most * mss + mss >= window,
            max_packets_out: self.most as u32,
        });
    }

    /// Ends a recovery or timeout, whose data is acknowledged; returns whether it was a recovery.
    fn settle(&mut self, turn: &SenderEvent, episode: u32) -> bool {
        let is_spurious = self.is_spurious(episode);
        self.timeouts = 0;
        if core::mem::take(&mut self.retransmitting) && is_spurious {
            let _ = self.cc.on_congested(&self.congested(turn, CongestionSignal::SpuriousTimeout));
        }
        if !self.cc.in_recovery() {
            return false;
        }
        if is_spurious && self.family == Family::Linux {
            let _ = self.cc.on_congested(&self.congested(turn, CongestionSignal::SpuriousRecovery));
        } else {
            let pipe = turn.nxt - turn.una;
            let _ = self.cc.on_recovered(&RecoveryEnd { th_ack: turn.una, pipe });
        }
        true
    }

    fn is_spurious(&self, episode: u32) -> bool {
        let episode = self.flow.episodes.get(episode as usize);
        episode.is_some_and(|one| one.spurious > 0 && one.spurious >= one.retransmitted)
    }

    fn is_spurious_probe(&self, episode: u32) -> bool {
        let probe = diagnose::episodes::RecoveryTrigger::Probe;
        self.flow.episodes.get(episode as usize).is_some_and(|one| one.trigger == probe)
            && self.is_spurious(episode)
    }

    fn congested(&self, turn: &SenderEvent, signal: CongestionSignal) -> CongestionEvent {
        CongestionEvent {
            now: turn.at,
            ticks: ticks_at(turn.at, self.hz),
            signal,
            th_ack: turn.una,
            snd_max: turn.nxt,
            pipe: turn.flight,
            snd_wnd: turn.window,
            lost: 0,
        }
    }

    /// Returns a round trip as the stack measures it: FreeBSD by timestamps, in whole milliseconds.
    fn sample(&mut self, rtt: Duration) -> Option<Duration> {
        if rtt.is_zero() {
            return None;
        }
        let rtt = match self.family {
            Family::FreeBsd => Duration::from_millis(rtt.as_nanos().div_ceil(1_000_000)),
            Family::Linux | Family::Rfc => rtt,
        };
        self.srtt = if self.samples == 0 { rtt } else { self.srtt - self.srtt / 8 + rtt / 8 };
        self.samples += 1;
        Some(rtt)
    }

    fn smoothed(&self) -> SmoothedRtt {
        SmoothedRtt {
            ticks: ticks(self.srtt, self.hz) as u32,
            micros: self.srtt.as_micros() as u32,
            samples: self.samples,
        }
    }
}

/// A time in ticks of a kernel clock with unknown phase.
fn ticks(time: Duration, hz: u64) -> u64 {
    (u128::from(time.as_nanos()) * u128::from(hz) / 1_000_000_000) as u64
}

/// The ticks of such a clock at `at`.
fn ticks_at(at: Instant, hz: u64) -> u64 {
    ticks(at.since(Instant::ZERO), hz)
}
