//! Which BBR has the windows of a QUIC log: the draft's or that of a stack ([`cc::bbr_draft::DIALECTS`]).
//!
//! Each dialect processes the packets of the log and is never set to the recorded window. Before each acknowledgment its window
//! is compared with the one that the log has by then. What a sender draws at random when a cycle of ProbeBW begins is that
//! which matches best.
//!
//! Assumptions: the application waits where the log shows pauses, and there is no persistent congestion. Windows of Startup are
//! those of every slow start, so that no dialect is named before one of them has left it.

use cc::bbr_draft::{BbrDraftParams, BbrDraftPhase, DIALECTS};
use diagnose::quic::transfer::QuicTransfer;
use quic::replay::BbrReplay;
use units::{Duration, Instant};

/// Packets of a log that are processed; later ones are not.
const MOST_PACKETS: usize = 50_000;
/// Fewest windows after Startup.
const LEAST_WINDOWS: usize = 40;
/// Most misfit of the recorded sender. A log has each window itself, not the flight that it allowed.
const FITS: f64 = 0.02;
/// Dialects whose misfits differ by at most this are equally good.
const AS_GOOD: f64 = 0.005;
/// Datagrams of an initial window that the log does not have (RFC 9002 section 7.2).
const INITIAL: u64 = 10;
/// Waits of a cycle that are compared: the range in as many steps.
const WAITS: u64 = 10;
/// Cycles whose wait is looked for; later ones have a random one.
const MOST_CYCLES: u32 = 64;
/// Round trips after the next probe that are compared too.
const AFTER: u64 = 3;

/// A dialect, and how near its windows are to the recorded ones.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DialectGuess {
    /// Congestion control (`bbr-quiche`).
    pub cc: &'static str,
    /// Mean difference between its window and the recorded one after Startup, relative to the larger of both, with a
    /// tolerance of one datagram.
    pub misfit: f64,
    /// Windows compared.
    pub windows: usize,
}

impl DialectGuess {
    /// Returns whether it is close enough to be the recorded sender.
    pub fn fits(&self) -> bool {
        self.misfit <= FITS
    }

    /// Returns whether its windows do not distinguish it from `other`.
    pub fn equals(&self, other: &Self) -> bool {
        (self.misfit - other.misfit).abs() <= AS_GOOD
    }
}

/// Returns the dialects of BBR, best fit first; none if the log has too few windows after Startup.
pub fn dialects(transfer: &QuicTransfer) -> Vec<DialectGuess> {
    let steps = steps(transfer);
    let datagram = transfer.packets.iter().map(|packet| packet.bytes).max().unwrap_or(0);
    let first = transfer.delivered.iter().find_map(|progress| progress.window);
    let Some(first) = first.filter(|_| datagram > 0) else { return Vec::new() };
    // The first window is that before the first acknowledgment, unless that moved no data.
    let initial = first.max(INITIAL * u64::from(datagram)).min(first * 2);
    let mut guesses: Vec<_> = DIALECTS
        .iter()
        .filter_map(|dialect| Replay::new(dialect, datagram, initial, &steps).compared())
        .collect();
    guesses.sort_by(|a, b| a.misfit.total_cmp(&b.misfit));
    guesses
}

/// What happened at one time, in the order in which a sender processes it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum LogStep {
    Lost(Vec<u64>),
    /// Packets are acknowledged; the window that the log had before.
    Acked(Vec<u64>, Option<u64>),
    /// The application has nothing to send.
    Paused,
    /// Packets of these sizes are sent.
    Sent(Vec<(u64, u32)>),
}

/// The steps of a log in order of time.
fn steps(transfer: &QuicTransfer) -> Vec<(Instant, LogStep)> {
    let packets = &transfer.packets[..transfer.packets.len().min(MOST_PACKETS)];
    let end = packets.last().map_or(0, |packet| packet.at);
    // Time, order at that time, and packet number with its size.
    let mut events: Vec<(u64, u8, u64, u32)> = Vec::new();
    for packet in packets {
        let size = if packet.bytes > 0 { packet.bytes } else { packet.fresh };
        events.push((packet.at, 3, packet.number, size));
        events.extend(packet.lost_at.map(|at| (at, 0, packet.number, size)));
        events.extend(packet.acked_at.map(|at| (at, 1, packet.number, size)));
    }
    events.extend(transfer.pauses.iter().map(|&(from, _)| (from, 2, 0, 0)));
    events.retain(|event| event.0 <= end);
    events.sort_unstable();
    let window_at = |at: u64| {
        let place = transfer.delivered.binary_search_by_key(&at, |progress| progress.at).ok()?;
        transfer.delivered[place].window
    };
    let groups = events.chunk_by(|one, next| (one.0, one.1) == (next.0, next.1));
    let step = |group: &[(u64, u8, u64, u32)]| {
        let (at, order, ..) = group[0];
        let numbers = || group.iter().map(|event| event.2).collect();
        let step = match order {
            0 => LogStep::Lost(numbers()),
            1 => LogStep::Acked(numbers(), window_at(at)),
            2 => LogStep::Paused,
            _ => LogStep::Sent(group.iter().map(|event| (event.2, event.3)).collect()),
        };
        (Instant::from_nanos(at), step)
    };
    groups.map(step).collect()
}

/// A dialect that processes a log.
#[derive(Clone)]
struct Replay<'a> {
    sender: BbrReplay,
    datagram: u64,
    steps: &'a [(Instant, LogStep)],
    /// Beginning of the current cycle.
    cycle: Option<Instant>,
}

impl<'a> Replay<'a> {
    fn new(
        dialect: &'static BbrDraftParams,
        datagram: u32,
        initial: u64,
        steps: &'a [(Instant, LogStep)],
    ) -> Self {
        let sender = BbrReplay::new(dialect, datagram, initial);
        Self { sender, datagram: u64::from(datagram), steps, cycle: None }
    }

    /// Processes everything; `None` if too few windows can be compared.
    fn compared(mut self) -> Option<DialectGuess> {
        let (mut misfit, mut windows, mut sought) = (0.0, 0, 0);
        for n in 0..self.steps.len() {
            if let Some(off) = self.follow(n) {
                misfit += off;
                windows += 1;
            }
            if self.begins_cycle() && sought < MOST_CYCLES {
                sought += 1;
                self.choose_wait(n + 1);
            }
        }
        let cc = self.sender.controller()?.params().name;
        let misfit = misfit / windows.max(1) as f64;
        (windows >= LEAST_WINDOWS).then_some(DialectGuess { cc, misfit, windows })
    }

    /// Processes a step; returns how far the windows were apart before it, relative to the larger.
    fn follow(&mut self, n: usize) -> Option<f64> {
        let (at, step) = &self.steps[n];
        let mut off = None;
        match step {
            LogStep::Lost(numbers) => self.sender.lost(*at, numbers),
            LogStep::Acked(numbers, recorded) => {
                let after = self.state().is_some_and(|state| state != BbrDraftPhase::Startup);
                off = recorded.filter(|_| after).map(|recorded| self.off(recorded));
                self.sender.acked(*at, numbers);
            }
            LogStep::Paused => self.sender.app_limited(),
            LogStep::Sent(packets) => {
                packets.iter().for_each(|&(number, size)| self.sender.sent(*at, number, size));
            }
        }
        off
    }

    fn state(&self) -> Option<BbrDraftPhase> {
        self.sender.controller().map(|cc| cc.model().state)
    }

    fn off(&self, recorded: u64) -> f64 {
        let window = self.sender.window();
        let off = window.abs_diff(recorded).saturating_sub(self.datagram);
        off as f64 / window.max(recorded).max(1) as f64
    }

    /// Whether a cycle of ProbeBW has begun since the last call.
    fn begins_cycle(&mut self) -> bool {
        let began = self.sender.controller().and_then(cc::BbrDraft::cycle_began);
        let begins = began.is_some() && began != self.cycle;
        self.cycle = began.or(self.cycle);
        begins
    }

    /// Gives the cycle that has begun the draw that matches best from step `from` on.
    fn choose_wait(&mut self, from: usize) {
        let Some([least, more]) = self.sender.controller().map(cc::BbrDraft::probe_waits) else {
            return;
        };
        let latest = (0, least + more);
        let (end, misfit) = self.tried(from, latest, None);
        let mut best = (misfit, latest);
        let steps = if more.is_zero() { 0 } else { WAITS };
        let sooner = (0..steps).map(|step| (0, least + more * (2 * step + 1) / (2 * WAITS)));
        // Another round counts as passed: on paths of few packets a probe follows after a number of rounds.
        for draw in sooner.chain([(1, latest.1)]) {
            let (_, misfit) = self.tried(from, draw, Some(end));
            if misfit < best.0 {
                best = (misfit, draw);
            }
        }
        self.sender.redraw(best.1.0, best.1.1);
    }

    /// Follows a draw from a step on until step `end`, or until shortly after the next cycle begins; returns where it ended,
    /// and the sum of the misfits.
    fn tried(&self, from: usize, draw: (u64, Duration), end: Option<usize>) -> (usize, f64) {
        let mut one = self.clone();
        one.sender.redraw(draw.0, draw.1);
        let mut until = end.unwrap_or(self.steps.len());
        let mut is_open = end.is_none();
        let mut misfit = 0.0;
        let mut n = from;
        while n < until {
            misfit += one.follow(n).unwrap_or(0.0);
            if is_open && one.begins_cycle() {
                is_open = false;
                let rtt = one.sender.controller().and_then(|cc| cc.model().min_rtt);
                let last = one.steps[n].0 + rtt.unwrap_or_default() * AFTER;
                until = one.steps.partition_point(|step| step.0 < last).max(n + 1);
            }
            n += 1;
        }
        (until, misfit)
    }
}
