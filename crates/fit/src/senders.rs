//! Which sender this was: the controllers of all systems, told what the recorded sender heard.
//!
//! The replay is open: the acknowledgments are those of the capture whatever the candidate would
//! have sent, so each of them sees the same path. Compared is, for each round trip in which the
//! congestion window alone held the sender, the most it had under way with the window that the
//! candidate had just then. Candidates run freely from the first byte on; they are never set
//! to what was recorded.
//!
//! A controller that paces (BBR) has no more under way than its rate lets leave in the round trip that
//! was seen, if that is less than its window.
//!
//! What it rests on: recoveries and timeouts begin and end where the capture shows them, only what
//! they make of the window is the candidate's. The window within a FreeBSD recovery is not followed,
//! so that a timeout in one, which takes the threshold from it, ends the comparison; so does a mark
//! (ECN). Two stacks with
//! one controller cannot be told apart by their windows.

use core::cmp::Ordering;

use cc::{
    AckSample, Acked, AnyController, Congested, Controller, Established, Idle, Recovered, Signal,
    Smoothed,
};
use diagnose::place::CapturePoint;
use diagnose::turns::{Turn, What};
use diagnose::{Analysis, Flow};
use packet::Dir;
use tcp::profile::{Family, Profile};
use units::{Duration, Instant, Offset, Stream};

use crate::System;
use crate::peaks::{ROUNDS, peaks};
use crate::rates::Rates;

/// Turns of a sender that [`guesses`] looks at, at most: what to keep of a capture.
pub const TURNS: usize = 50_000;

/// A sender that is further off is not this one.
const FITS: f64 = 0.05;

/// Senders whose misfits differ by no more are equally good.
const AS_GOOD: f64 = 0.005;

/// Candidates: profile and congestion control.
const CANDIDATES: [(&str, &str); 10] = [
    ("linux-6.18", "cubic"),
    ("linux-6.18", "reno"),
    ("linux-6.18", "bbr"),
    ("freebsd-14.3", "cubic"),
    ("freebsd-14.3", "newreno"),
    ("freebsd-13.2", "cubic"),
    ("freebsd-13.2", "newreno"),
    ("freebsd-rack-main", "cubic"),
    ("freebsd-rack-main", "newreno"),
    ("rfc", "newreno"),
];

/// A sender that may have been the recorded one.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Guess {
    /// Profile.
    pub profile: &'static str,
    /// Congestion control.
    pub cc: &'static str,
    /// How far its window lies from the recorded flight: mean over the rounds of the difference as a
    /// share of the larger of both, a segment being free.
    pub misfit: f64,
    /// Rounds compared.
    pub rounds: usize,
    /// It was in slow start in all of them, where many controllers do the same.
    pub slow_start_only: bool,
}

impl Guess {
    /// Is it close enough to be the recorded one?
    pub fn fits(&self) -> bool {
        self.misfit <= FITS
    }

    /// Nobody could tell it from `other` by its windows.
    pub fn equals(&self, other: &Self) -> bool {
        (self.misfit - other.misfit).abs() <= AS_GOOD
    }
}

/// Senders that the SYN of the recorded one allows, the best fitting first; none if the capture
/// has too few rounds in which a congestion window shows, lacks the opening, or was not
/// taken at the sender: elsewhere nobody sees when it heard what, by which HyStart decides.
pub fn guesses(analysis: &Analysis) -> Vec<Guess> {
    let whole =
        |flow: &&Flow| flow.mss > 0 && flow.point == CapturePoint::Sender && analysis.opened;
    let Some(flow) = analysis.main().filter(whole) else { return Vec::new() };
    let peaks = peaks(flow);
    if peaks.len() < ROUNDS {
        return Vec::new();
    }
    let family = match System::of(analysis, flow.dir) {
        System::Linux => Some(Family::Linux),
        System::FreeBsd => Some(Family::FreeBsd),
        System::Unknown => None,
    };
    let mut guesses: Vec<Guess> = CANDIDATES
        .iter()
        .filter_map(|&(name, cc)| {
            let profile = Profile::named(name)?;
            if family.is_some_and(|family| family != profile.family) {
                return None;
            }
            let algorithm = profile.algorithm(cc).ok()?;
            let controller = profile.build(algorithm, &Stream::named(1, "replay", "controller"));
            let replay = Replay::new(&profile, controller, flow, analysis);
            replay.compare(&peaks, Guess { profile: name, cc, ..Guess::default() })
        })
        .collect();
    guesses.sort_by(|a, b| a.misfit.partial_cmp(&b.misfit).unwrap_or(Ordering::Equal));
    guesses
}

/// One candidate, told what the recorded sender heard.
struct Replay<'a> {
    cc: AnyController,
    flow: &'a Flow,
    family: Family,
    hz: u64,
    /// Smoothed round trip in ns, and samples in it.
    srtt: u64,
    samples: u32,
    /// What a timeout took for lost is being sent again.
    resending: bool,
    /// Its window can be followed no further.
    lost_track: bool,
    /// Timeouts in a row.
    timeouts: u32,
    /// Reordering that was seen, in packets (Linux `tp->reordering`).
    reordering: u64,
    /// Most packets under way in the window in progress, and where that ends.
    most: u64,
    usage_end: u64,
    last_tick: u64,
    /// Window before the recovery in progress, or the last one.
    before_recovery: u64,
    /// For a controller that sets its rate itself.
    rates: Option<Rates>,
}

impl<'a> Replay<'a> {
    fn new(profile: &Profile, mut cc: AnyController, flow: &'a Flow, analysis: &Analysis) -> Self {
        let hz = u64::from(profile.hz);
        let start = flow.turns.first().map_or(0, |turn| turn.at);
        let peer = analysis.openings[flow.dir.back() as usize];
        let mss = flow.mss as u32;
        let _ = cc.on_established(&Established {
            now: Instant::from_nanos(start),
            ticks: ticks(start, hz),
            una: Offset(1),
            mss,
            maxseg: mss + 12 * u32::from(flow.stamps),
            snd_scale: peer.and_then(|syn| syn.options.window_scale).unwrap_or(0).min(14),
            syn_retransmitted: analysis.syns > 2 && flow.dir == Dir::Forward,
            rtt: None,
            ssthresh: None,
        });
        let rates = cc.is_whole().then(|| Rates::new(start, flow.mss));
        Self {
            cc,
            flow,
            family: profile.family,
            hz,
            srtt: 0,
            samples: 0,
            resending: false,
            lost_track: false,
            timeouts: 0,
            reordering: 3,
            most: 0,
            usage_end: 0,
            last_tick: 0,
            before_recovery: 0,
            rates,
        }
    }

    /// Replays all turns and compares at those in `peaks`; `None` if too few can be compared.
    fn compare(mut self, peaks: &[usize], mut guess: Guess) -> Option<Guess> {
        let mut next = peaks.iter().peekable();
        guess.slow_start_only = true;
        for (n, turn) in self.flow.turns.iter().enumerate() {
            self.hear(turn);
            if next.next_if(|&&peak| peak == n).is_some() {
                guess.misfit += self.off(turn);
                guess.rounds += 1;
                guess.slow_start_only &= self.cc.in_slow_start();
            }
            if next.peek().is_none() || self.lost_track {
                break;
            }
        }
        guess.misfit /= guess.rounds.max(1) as f64;
        (guess.rounds >= ROUNDS).then_some(guess)
    }

    /// How far the flight after `turn` is from what this sender would have had under way.
    fn off(&self, turn: &Turn) -> f64 {
        let control = self.cc.control();
        let window = control.window.get();
        let (least, most) = match &self.rates {
            Some(rates) => {
                let paced = rates.paced_flight(turn).map_or(window, |paced| paced.min(window));
                (paced, paced)
            }
            // Within a recovery the window goes from what it was to the threshold.
            None if self.cc.in_recovery() => {
                let threshold = control.ssthresh.map_or(window, |bytes| bytes.get());
                (window.min(threshold), window.max(self.before_recovery))
            }
            None => (window, window),
        };
        let flight = turn.flight;
        let nearest = flight.clamp(least, most);
        // Linux counts whole packets, and FreeBSD sends none that is not full.
        let off = nearest.abs_diff(flight).saturating_sub(self.flow.mss);
        off as f64 / nearest.max(flight).max(1) as f64
    }

    fn hear(&mut self, turn: &Turn) {
        match turn.what {
            What::Begun => {}
            What::Acked => self.acked(turn, false),
            What::Recovered(episode) => {
                let ended = self.settle(turn, episode);
                self.acked(turn, ended);
            }
            What::Loss(episode) => {
                // A probe that nothing lost had called for changes nothing (RFC 8985 section 7.4).
                if !self.cc.in_recovery() && !self.false_probe(episode) {
                    self.before_recovery = self.cc.control().window.get();
                    let _ = self.cc.on_congested(&self.congested(turn, Signal::Loss));
                }
            }
            // What a sender makes of a mark is not followed.
            What::Marked => self.lost_track = true,
            What::Timeout(_) => {
                self.resending = true;
                self.lost_track |= self.family == Family::FreeBsd && self.cc.in_recovery();
                self.timeouts += 1;
                let signal = Signal::Timeout { shift: self.timeouts };
                let _ = self.cc.on_congested(&self.congested(turn, signal));
            }
            What::Rest(rest) => {
                let rto = Duration::from_nanos(self.srtt + 200_000_000);
                let idle = Duration::from_nanos(rest);
                if idle > rto {
                    let ticks = ticks(turn.at, self.hz);
                    let _ = self.cc.on_idle(&Idle { ticks, idle, rto });
                }
                self.cc.on_tx_start(ticks(turn.at, self.hz), self.last_tick);
                if let Some(rates) = &mut self.rates {
                    rates.restart(turn.at);
                    self.cc.on_restart(Instant::from_nanos(turn.at), ticks(turn.at, self.hz), true);
                }
            }
        }
        if let Some(rates) = &mut self.rates {
            let pacing = self.cc.control().pacing;
            rates.pace(turn, pacing.map_or(0, |rate| rate.bits_per_second() / 8));
        }
        self.last_tick = ticks(turn.at, self.hz);
        let packets = turn.flight.div_ceil(self.flow.mss.max(1));
        if turn.una >= self.usage_end || packets > self.most {
            self.most = packets;
            self.usage_end = turn.nxt;
        }
    }

    fn acked(&mut self, turn: &Turn, ends_recovery: bool) {
        let now = Instant::from_nanos(turn.at);
        let ticks = ticks(turn.at, self.hz);
        let rtt = self.sample(turn.rtt);
        if self.family == Family::Linux && turn.rtt > 0 {
            let window = self.cc.control().window.get();
            // tcp_update_pacing_rate: twice the window per round trip in slow start.
            let pacing_rate = 2_000_000_000 * window / self.srtt.max(1);
            let _ = self.cc.on_ack_sample(&AckSample {
                now,
                ticks,
                rtt: Duration::from_nanos(turn.rtt),
                una: Offset(turn.una),
                snd_nxt: Offset(turn.nxt),
                pacing_rate,
            });
        }
        if let Some(rates) = &mut self.rates
            && turn.delivered > 0
        {
            let sample = rates.sample(turn, self.srtt, ticks);
            let _ = self.cc.on_rate_sample(&sample);
        }
        let mss = self.flow.mss.max(1);
        // tcp_check_sack_reordering.
        self.reordering = self.reordering.max(turn.late.div_ceil(mss));
        let counts = match self.family {
            // PRR has the window in a recovery; tcp_may_raise_cwnd.
            Family::Linux => !self.cc.in_recovery() && (turn.acked > 0 || self.reordering > 3),
            Family::FreeBsd | Family::Rfc => turn.acked > 0,
        };
        if !counts {
            return;
        }
        let window = self.cc.control().window.get();
        let _ = self.cc.on_acked(&Acked {
            now,
            ticks,
            rtt,
            srtt: self.smoothed(),
            snd_nxt: Offset(turn.nxt),
            una: Offset(turn.una),
            bytes: turn.acked,
            packets: turn.delivered.div_ceil(mss) as u32,
            nsegs: 1,
            ends_recovery,
            resending: self.resending,
            snd_wnd: turn.window,
            window_limited: self.most * mss + mss >= window,
            max_packets_out: self.most as u32,
        });
    }

    /// Everything sent before a recovery or timeout has arrived. Was it a recovery?
    fn settle(&mut self, turn: &Turn, episode: u32) -> bool {
        let needless = self.needless(episode);
        self.timeouts = 0;
        if core::mem::take(&mut self.resending) && needless {
            let _ = self.cc.on_congested(&self.congested(turn, Signal::SpuriousTimeout));
        }
        if !self.cc.in_recovery() {
            return false;
        }
        if needless && self.family == Family::Linux {
            let _ = self.cc.on_congested(&self.congested(turn, Signal::SpuriousRecovery));
        } else {
            let pipe = turn.nxt - turn.una;
            let _ = self.cc.on_recovered(&Recovered { th_ack: Offset(turn.una), pipe });
        }
        true
    }

    fn needless(&self, episode: u32) -> bool {
        let episode = self.flow.episodes.get(episode as usize);
        episode.is_some_and(|one| one.spurious > 0 && one.spurious >= one.retransmitted)
    }

    fn false_probe(&self, episode: u32) -> bool {
        let probe = diagnose::episodes::Trigger::Probe;
        self.flow.episodes.get(episode as usize).is_some_and(|one| one.trigger == probe)
            && self.needless(episode)
    }

    fn congested(&self, turn: &Turn, signal: Signal) -> Congested {
        Congested {
            now: Instant::from_nanos(turn.at),
            ticks: ticks(turn.at, self.hz),
            signal,
            th_ack: Offset(turn.una),
            snd_max: Offset(turn.nxt),
            pipe: turn.flight,
            snd_wnd: turn.window,
        }
    }

    /// A round trip as the stack measures it: FreeBSD by timestamps, in whole milliseconds.
    fn sample(&mut self, rtt: u64) -> Option<Duration> {
        if rtt == 0 {
            return None;
        }
        let rtt = match self.family {
            Family::FreeBsd => rtt.div_ceil(1_000_000) * 1_000_000,
            Family::Linux | Family::Rfc => rtt,
        };
        self.srtt = if self.samples == 0 { rtt } else { self.srtt - self.srtt / 8 + rtt / 8 };
        self.samples += 1;
        Some(Duration::from_nanos(rtt))
    }

    fn smoothed(&self) -> Smoothed {
        Smoothed {
            ticks: ticks(self.srtt, self.hz) as u32,
            micros: (self.srtt / 1_000) as u32,
            samples: self.samples,
        }
    }
}

/// Nanoseconds in ticks of a kernel's clock, whose phase nobody knows.
fn ticks(ns: u64, hz: u64) -> u64 {
    (u128::from(ns) * u128::from(hz) / 1_000_000_000) as u64
}
