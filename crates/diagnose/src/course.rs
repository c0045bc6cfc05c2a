//! The course of a transfer: which phase each round belongs to, who is to blame for what was
//! lost in it, and the time budget.
//!
//! A round's *lost time* is the part of it in which the path could have carried more: its length
//! less what its bytes take at the rate of the bottleneck. In a round whose queue never ran empty
//! nothing is lost. Where the bottleneck was never seen busy its rate is not known, and all of the
//! round counts: an upper bound.
//!
//! Blame goes to what held the sender back: slow start, the receiver's window, the application;
//! for recovery and for the climb after it, to the loss (or the false alarm) that began it.

use crate::Flow;
use crate::episodes::{Episode, Trigger};
use crate::path::{Path, busy, queue_noise};
use crate::place::CapturePoint;
use crate::rounds::{Before, Round, Spent};

/// What limited the transfer at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Limiter {
    /// The connection was being opened.
    Handshake,
    /// The window of slow start.
    SlowStart,
    /// The congestion window, outside slow start.
    Cwnd,
    /// The receiver's window.
    Rwnd,
    /// The application, or its send buffer.
    Application,
    /// Repair of losses.
    Recovery,
    /// Waiting for a timer.
    Timeout,
    /// Nothing: the bottleneck was busy.
    Path,
    /// Nothing was to be sent for longer than a timeout, or all was done.
    Idle,
    /// What nobody can tell who sees nothing come back.
    Unknown,
}

impl Limiter {
    /// All, in the order of a table.
    pub const ALL: [Self; 10] = [
        Self::Handshake,
        Self::SlowStart,
        Self::Cwnd,
        Self::Rwnd,
        Self::Application,
        Self::Recovery,
        Self::Timeout,
        Self::Path,
        Self::Idle,
        Self::Unknown,
    ];

    /// Its name in JSON.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Handshake => "handshake",
            Self::SlowStart => "slow_start",
            Self::Cwnd => "congestion_window",
            Self::Rwnd => "receive_window",
            Self::Application => "application",
            Self::Recovery => "recovery",
            Self::Timeout => "timeout",
            Self::Path => "path_saturated",
            Self::Idle => "idle",
            Self::Unknown => "unknown",
        }
    }

    /// Its name in text.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Handshake => "handshake",
            Self::SlowStart => "slow start",
            Self::Cwnd => "cwnd",
            Self::Rwnd => "rwnd",
            Self::Application => "application",
            Self::Recovery => "recovery",
            Self::Timeout => "timeout",
            Self::Path => "path busy",
            Self::Idle => "idle",
            Self::Unknown => "unknown",
        }
    }
}

/// Where the time went, in nanoseconds by [`Limiter`]; the sum is the whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Budget {
    ns: [u64; 10],
}

impl Budget {
    /// Nanoseconds that `limiter` held.
    pub const fn of(&self, limiter: Limiter) -> u64 {
        self.ns[limiter as usize]
    }

    /// All of it.
    pub fn whole(&self) -> u64 {
        self.ns.iter().sum()
    }

    /// Time in which the connection was at work: all but idling.
    pub fn active(&self) -> u64 {
        self.whole() - self.of(Limiter::Idle)
    }

    fn add(&mut self, limiter: Limiter, ns: u64) {
        self.ns[limiter as usize] += ns;
    }
}

/// What is to blame for lost time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Blame {
    /// Opening the connection.
    Opening,
    /// The first slow start.
    SlowStart,
    /// A first slow start that ran into a full queue, and the repair.
    Overshoot,
    /// Linear growth after a slow start that ended without a loss.
    EarlyExit,
    /// Slow start again after a rest.
    Restart,
    /// Losses with an empty queue.
    Random,
    /// Losses with a full queue.
    Overflow,
    /// Marks of a queue (ECN).
    Mark,
    /// Losses behind which nothing was sent that would have shown them.
    Tail,
    /// A timeout with the whole flight lost.
    Timeout,
    /// A fast recovery that nothing lost had called for.
    FalseRecovery,
    /// A timeout that nothing lost had called for.
    FalseTimeout,
    /// The receiver's window.
    Window,
    /// A receiver that reads late.
    Reader,
    /// The application.
    Application,
}

const BLAMES: usize = 15;

/// Less than this of a busy bottleneck is a share of it.
pub(crate) const SHARED: f64 = 0.8;

/// Linear growth that ran until its window had doubled: slow start would have taken one round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Climb {
    /// Its begin and end, in ns.
    pub from: u64,
    /// See `from`.
    pub to: u64,
    /// Frame of its first packet.
    pub frame: u64,
    /// Bytes a round trip at its begin and at its end.
    pub windows: (u64, u64),
    /// Rounds.
    pub rounds: u64,
    /// Lost time, in ns.
    pub lost: u64,
    /// What had set the low threshold.
    pub blame: Blame,
}

/// One stretch of slow start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ramp {
    /// What came before it.
    pub before: Before,
    /// Indices of its rounds.
    pub rounds: (usize, usize),
    /// Its begin and end, in ns.
    pub from: u64,
    /// See `from`.
    pub to: u64,
    /// First frame.
    pub frame: u64,
    /// Window (bytes sent in a round) at its begin and at its end.
    pub windows: (u64, u64),
    /// Time spent on it while the path was not busy, and the lost part, in ns.
    pub time: u64,
    /// See `time`.
    pub lost: u64,
    /// Largest window before a rest that it followed.
    pub window_before: u64,
}

/// The course of a transfer.
#[derive(Debug, Clone, PartialEq)]
pub struct Course {
    /// The path.
    pub path: Path,
    /// The time budget.
    pub budget: Budget,
    lost: [u64; BLAMES],
    /// Stretches of slow start.
    pub ramps: Vec<Ramp>,
    /// Long climbs.
    pub climbs: Vec<Climb>,
    /// What each episode of the flow was.
    pub blames: Vec<Blame>,
    /// Longest stretch of rounds with the same window and nothing to explain it: rounds, lost ns,
    /// begin and end.
    pub plateau: (u64, u64, u64, u64),
    /// Rounds of growth after a first slow start that ended without a loss.
    pub after_exit: u64,
    /// The round trip that the first data take whatever the window is: it is no loss, and in none
    /// of those above.
    pub first_trip: u64,
    /// Time-weighted mean and largest wait in a queue that never ran empty, in ns.
    pub standing_queue: (u64, u64),
}

impl Course {
    /// Lost time by what is to blame for it, in ns.
    pub const fn lost(&self, blame: Blame) -> u64 {
        self.lost[blame as usize]
    }

    /// What these data had of a bottleneck that others used too, and its whole rate as bursts show
    /// it, in bytes per second: its queue never ran empty for a quarter of the time at work, and
    /// they had less than four fifths. The histogram of rates has steps of a sixteenth of an octave,
    /// and queues of a burst vary.
    pub fn shared(&self) -> Option<(f64, f64)> {
        let (share, all) = (self.path.share?, self.path.rate?);
        (self.is_busy() && share < SHARED * all).then_some((share, all))
    }

    /// Was the bottleneck busy for a quarter of the time at work?
    pub fn is_busy(&self) -> bool {
        let busy = self.budget.of(Limiter::Path) + self.budget.of(Limiter::Recovery);
        busy * 4 >= self.budget.active()
    }

    /// Of the data of one direction.
    pub fn of(flow: &Flow) -> Self {
        let path = Path::of(flow);
        let course = Self {
            path,
            budget: Budget::default(),
            lost: [0; BLAMES],
            ramps: Vec::new(),
            climbs: Vec::new(),
            blames: flow.episodes.iter().map(|e| blame(e, flow, &path)).collect(),
            plateau: (0, 0, 0, 0),
            after_exit: 0,
            first_trip: 0,
            standing_queue: (0, 0),
        };
        let mut walk = Walk {
            flow,
            base: path.base_rtt.unwrap_or(u64::MAX / 4),
            course,
            next_episode: 0,
            owner: Blame::EarlyExit,
            last_recovery: Blame::Random,
            in_ramp: false,
            since_ramp: 0,
            window_before: 0,
            last_sending: flow.rounds.iter().rposition(|round| round.sent > 0).unwrap_or(0),
            drains: false,
            before_sent: 0,
            peak: 0,
            climb: None,
            flat: (0, 0, 0, 0),
            queue_time: 0,
        };
        for (n, round) in flow.rounds.iter().enumerate() {
            walk.round(n, round);
        }
        walk.finish()
    }
}

/// What an episode was.
fn blame(episode: &Episode, flow: &Flow, path: &Path) -> Blame {
    let timer = episode.timeouts > 0;
    if episode.trigger == Trigger::Mark {
        return Blame::Mark;
    }
    if episode.trigger == Trigger::Inferred {
        return if episode.tail { Blame::Tail } else { Blame::Timeout };
    }
    if episode.spurious > 0 && episode.spurious >= episode.retransmitted {
        return if timer { Blame::FalseTimeout } else { Blame::FalseRecovery };
    }
    // Losses at the end of what was to be sent: no packet came after them that would have made the
    // receiver report them. After the repair there was little new to send.
    let at_end = episode.sent_above * 2 < episode.window;
    if episode.trigger == Trigger::Probe || (timer && at_end) {
        return Blame::Tail;
    }
    if timer {
        return Blame::Timeout;
    }
    let base = path.base_rtt.unwrap_or(0);
    let waited = episode.rtt.saturating_sub(base);
    // A queue that overflows is as long as it ever gets.
    let longest = path.queue.max(waited);
    let lost = episode.retransmitted - episode.spurious;
    let first = flow.episodes.first().is_some_and(|e| e.begin == episode.begin);
    // Losing a sixteenth of a window at once by chance takes a loss rate of 6 %; then a queue half
    // as long as ever will do, for the first loss may have come before it was full.
    let window = episode.window.max(episode.flight);
    let many = lost * flow.mss * 16 >= window;
    let full = if many { waited * 2 >= longest } else { waited * 4 >= longest * 3 };
    if waited < queue_noise(base) || !full {
        return Blame::Random;
    }
    if first {
        // Slow start sends two packets for each that leaves the queue until the first loss is
        // reported a round trip later: it loses many, not one (RFC 9406 section 1). A sixteenth of
        // the window leaves room for pacing and for a late start of the overflow.
        if many { Blame::Overflow } else { Blame::Random }
    } else {
        Blame::Overflow
    }
}

struct Walk<'a> {
    flow: &'a Flow,
    base: u64,
    course: Course,
    next_episode: usize,
    /// To blame for the window outside slow start.
    owner: Blame,
    last_recovery: Blame,
    in_ramp: bool,
    /// Rounds since the last ramp ended.
    since_ramp: u32,
    /// Window before the last reduction, or at the end of slow start.
    window_before: u64,
    /// The round in which the last new byte was sent.
    last_sending: usize,
    /// All new bytes are sent.
    drains: bool,
    /// Bytes sent in the round before.
    before_sent: u64,
    /// Largest window so far.
    peak: u64,
    climb: Option<Climb>,
    flat: (u64, u64, u64, u64),
    queue_time: u64,
}

impl Walk<'_> {
    fn round(&mut self, n: usize, round: &Round) {
        let length = round.length();
        let end = round.start + length;
        let busy = busy(round, self.base);
        if matches!(round.before, Before::Opening | Before::Idle | Before::Timeout) {
            self.begin_ramp(n, round);
        }
        if self.flow.episodes.get(self.next_episode).is_some_and(|e| e.begin <= end) {
            self.end_climb();
        }
        self.drains = n >= self.last_sending;
        let hurt = self.enter_episodes(end);
        if hurt {
            self.flat = (0, 0, 0, 0);
        }
        self.since_ramp += u32::from(!self.in_ramp);
        let ended = n < self.last_sending && !self.grows(round);
        if self.in_ramp && (hurt && round.before != Before::Timeout || ended) {
            self.in_ramp = false;
            self.since_ramp = 0;
            if !hurt {
                self.owner = Blame::EarlyExit;
                self.window_before = self.course.ramps.last().map_or(0, |ramp| ramp.windows.1);
            }
        }
        let share = self.lost_share(round, busy);
        self.spend(n, round, busy, share);
        if busy {
            let waited = round.min_rtt - self.base;
            self.queue_time += length;
            // Microseconds times microseconds, which clocks that jump make too many.
            let area = (waited / 1_000).saturating_mul(length / 1_000);
            self.course.standing_queue.0 = self.course.standing_queue.0.saturating_add(area);
            self.course.standing_queue.1 = self.course.standing_queue.1.max(waited);
        }
        self.follow(round, busy, share, end);
        if let Some(ramp) = self.course.ramps.last_mut()
            && self.in_ramp
            && (round.of(Spent::Window) * 2 >= length || round.sent > ramp.windows.1)
        {
            ramp.rounds.1 = n;
            ramp.to = end;
            ramp.windows.1 = ramp.windows.1.max(round.sent).max(round.delivered);
        }
        self.before_sent = round.sent;
        self.peak = self.peak.max(round.flight);
    }

    fn begin_ramp(&mut self, n: usize, round: &Round) {
        self.in_ramp = true;
        self.before_sent = 0;
        self.end_climb();
        self.course.ramps.push(Ramp {
            before: round.before,
            rounds: (n, n),
            from: round.start,
            to: round.start,
            frame: round.frame,
            windows: (round.sent, round.sent),
            time: 0,
            lost: 0,
            window_before: self.peak,
        });
        self.peak = 0;
    }

    /// Episodes that begin before `end` become the owners of what follows.
    fn enter_episodes(&mut self, end: u64) -> bool {
        let mut hurt = false;
        while let Some(episode) = self.flow.episodes.get(self.next_episode) {
            if episode.begin > end {
                break;
            }
            let mut blame = self.course.blames[self.next_episode];
            // Losses are reported up to a round trip, queue included, after the window stopped
            // growing.
            let of_ramp = self.in_ramp || self.since_ramp <= 3;
            if blame == Blame::Overflow && of_ramp && self.next_episode == 0 {
                blame = Blame::Overshoot;
                self.course.blames[self.next_episode] = blame;
            }
            self.next_episode += 1;
            if blame == Blame::FalseRecovery && self.drains {
                // There was nothing more to send: a smaller window held nothing back, and what was
                // under way came as it would have.
                self.last_recovery = self.owner;
                continue;
            }
            self.window_before = episode.window;
            self.owner = blame;
            self.last_recovery = blame;
            hurt = true;
        }
        hurt
    }

    /// Does the window grow as in slow start? By ACKs that each let at least three quarters of a
    /// segment more go (RFC 5681 section 3.1: up to one per ACK; RFC 3465: up to two), or by a
    /// quarter of the window a round. Congestion avoidance adds one segment a round. A round that
    /// something else held back says nothing.
    fn grows(&self, round: &Round) -> bool {
        if self.before_sent == 0 || round.of(Spent::Window) * 2 < round.length() {
            return true;
        }
        let growth = round.sent.saturating_sub(self.before_sent);
        let mss = self.flow.mss;
        growth * 4 >= self.before_sent
            || (growth * 2 >= mss * 3 && growth * 4 >= mss * 3 * u64::from(round.acks))
    }

    fn lost_share(&self, round: &Round, busy: bool) -> f64 {
        if busy && round.of(Spent::Timeout) == 0 {
            return 0.0;
        }
        let Some(rate) = self.course.path.rate else { return 1.0 };
        let at_work = round.length() - round.of(Spent::Idle);
        if at_work == 0 {
            return 0.0;
        }
        let needed = round.delivered as f64 * 1e9 / rate;
        (1.0 - needed / at_work as f64).clamp(0.0, 1.0)
    }

    fn spend(&mut self, n: usize, round: &Round, busy: bool, share: f64) {
        let lost = |ns: u64| (ns as f64 * share) as u64;
        // A wait for a timer belongs to the episode that the timer begins.
        let end = round.start + round.length() + 2 * self.base;
        let waited_for = match self.flow.episodes.get(self.next_episode) {
            Some(next) if next.begin <= end => self.course.blames[self.next_episode],
            _ => self.last_recovery,
        };
        let budget = &mut self.course.budget;
        let blames = &mut self.course.lost;
        let mut blamed = |blame: Blame, ns: u64| blames[blame as usize] += lost(ns);
        budget.add(Limiter::Handshake, round.of(Spent::Opening));
        blamed(Blame::Opening, round.of(Spent::Opening));
        budget.add(Limiter::Idle, round.of(Spent::Idle));
        budget.add(Limiter::Recovery, round.of(Spent::Recovery));
        blamed(self.last_recovery, round.of(Spent::Recovery));
        budget.add(Limiter::Timeout, round.of(Spent::Timeout));
        blamed(waited_for, round.of(Spent::Timeout));
        budget.add(Limiter::Rwnd, round.of(Spent::ReceiveWindow) + round.of(Spent::Reader));
        blamed(Blame::Window, round.of(Spent::ReceiveWindow));
        blamed(Blame::Reader, round.of(Spent::Reader));
        let mut window = round.of(Spent::Window);
        let mut pauses = round.of(Spent::Application);
        let held = round.of(Spent::ReceiveWindow) + round.of(Spent::Reader);
        // In a round that something else holds back, the short waits between ACKs are its too.
        if held * 2 > round.length() {
            budget.add(Limiter::Rwnd, window);
            let late = round.of(Spent::Reader) > round.of(Spent::ReceiveWindow);
            blamed(if late { Blame::Reader } else { Blame::Window }, core::mem::take(&mut window));
        } else if pauses * 2 > round.length() {
            pauses += core::mem::take(&mut window);
        }
        if self.in_ramp && self.before_sent > 0 && round.sent * 2 >= self.before_sent * 3 {
            // A window that doubles is paced, not waited for (RFC 9002 section 7.7).
            window += core::mem::take(&mut pauses);
        }
        budget.add(Limiter::Application, pauses);
        blamed(Blame::Application, pauses);
        if busy {
            budget.add(Limiter::Path, window);
        } else if self.in_ramp {
            budget.add(Limiter::SlowStart, window);
            let ramp = self.course.ramps.last_mut();
            // A capture at the sender has the way there and back of the first data in its first
            // round; one at the receiver begins with them.
            let first = n == 0 && self.flow.point != CapturePoint::Receiver;
            let trip = if first { self.base.min(window) } else { 0 };
            self.course.first_trip += lost(trip);
            let blame = match &ramp {
                Some(ramp) if ramp.before == Before::Idle => Blame::Restart,
                Some(ramp) if ramp.before == Before::Timeout => self.last_recovery,
                _ => Blame::SlowStart,
            };
            blamed(blame, window - trip);
            if let Some(ramp) = ramp {
                ramp.time += window;
                ramp.lost += lost(window);
            }
        } else {
            budget.add(Limiter::Cwnd, window);
            blamed(self.owner, window);
        }
    }

    /// Long climbs, and windows that do not move.
    fn follow(&mut self, round: &Round, busy: bool, share: f64, end: u64) {
        let by_window = round.of(Spent::Window) * 2 >= round.length();
        if self.in_ramp || !by_window {
            self.flat = (0, 0, 0, 0);
            return;
        }
        let lost = (round.of(Spent::Window) as f64 * share) as u64;
        let owner = self.owner;
        self.course.after_exit += u64::from(owner == Blame::EarlyExit && !busy);
        let climb = self.climb.get_or_insert(Climb {
            from: round.start,
            to: round.start,
            frame: round.frame,
            windows: (round.sent, round.sent),
            rounds: 0,
            lost: 0,
            blame: owner,
        });
        climb.to = end;
        climb.rounds += u64::from(self.flow.rounds_each);
        climb.lost += lost;
        climb.windows.1 = climb.windows.1.max(round.sent);
        let mss = self.flow.mss;
        let (count, flat_lost, from, window) = self.flat;
        if !busy && count > 0 && round.sent.abs_diff(window) <= mss {
            self.flat = (count + 1, flat_lost + lost, from, window);
            if count + 1 > self.course.plateau.0 {
                self.course.plateau = (count + 1, flat_lost + lost, from, end);
            }
        } else {
            self.flat = (1, lost, round.start, round.sent);
        }
    }

    fn end_climb(&mut self) {
        if let Some(climb) = self.climb.take()
            && climb.rounds >= 16
            && climb.windows.1 >= climb.windows.0.max(self.window_before) * 2
        {
            self.course.climbs.push(climb);
        }
    }

    fn finish(mut self) -> Course {
        self.end_climb();
        let mut course = self.course;
        if !self.flow.answered {
            let mut budget = Budget::default();
            budget.add(Limiter::Unknown, course.budget.whole());
            course = Course { budget, lost: [0; BLAMES], ramps: Vec::new(), ..course };
        }
        // Where losses keep coming, a climb is a part of their sawtooth.
        let random = course.blames.iter().filter(|blame| **blame == Blame::Random).count();
        if random as u64 >= crate::rules::ENOUGH_LOSSES {
            course.climbs.clear();
        }
        for climb in &course.climbs {
            let lost = &mut course.lost[climb.blame as usize];
            *lost = lost.saturating_sub(climb.lost);
        }
        if self.queue_time > 0 {
            course.standing_queue.0 =
                course.standing_queue.0 / (self.queue_time / 1_000).max(1) * 1_000;
        }
        course
    }
}
