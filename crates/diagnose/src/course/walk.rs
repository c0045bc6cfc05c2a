//! The walk over a transfer's rounds that makes its [`Course`].

use super::{Climb, Course, Ramp};
use crate::Flow;
use crate::blame::{BLAMES, Blame, blame};
use crate::budget::{Budget, Limiter};
use crate::path::{Path, busy};
use crate::place::CapturePoint;
use crate::rounds::{Before, Round, Spent};

/// The course of the data of one direction.
pub(super) fn over(flow: &Flow) -> Course {
    let path = Path::of(flow);
    let course = Course {
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
        let (waited, has_segment) = (self.by_window(round), round.flight >= self.flow.mss);
        if let Some(ramp) = self.course.ramps.last_mut()
            && self.in_ramp
            && (waited * 2 >= length || has_segment && round.sent > ramp.windows.1)
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

    /// Can the window hold the sender in this round? Every window holds a segment (RFC 5681 section
    /// 3.1): with less than that in flight, the application has no more to send, unless these are the
    /// last bytes of a flight that was larger.
    fn fills_window(&self, round: &Round) -> bool {
        let mss = self.flow.mss;
        let is_rest = self.drains && self.peak >= mss;
        round.flight >= mss || is_rest || round.before == Before::Timeout
    }

    /// Time in which the window held the sender.
    fn by_window(&self, round: &Round) -> u64 {
        if self.fills_window(round) { round.of(Spent::Window) } else { 0 }
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
        let (waited, fills) = (self.by_window(round), self.fills_window(round));
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
        let mut window = waited;
        let mut pauses = round.of(Spent::Application) + round.of(Spent::Window) - window;
        let held = round.of(Spent::ReceiveWindow) + round.of(Spent::Reader);
        // In a round that something else holds back, the short waits between ACKs are its too.
        if held * 2 > round.length() {
            budget.add(Limiter::Rwnd, window);
            let late = round.of(Spent::Reader) > round.of(Spent::ReceiveWindow);
            blamed(if late { Blame::Reader } else { Blame::Window }, core::mem::take(&mut window));
        } else if pauses * 2 > round.length() {
            pauses += core::mem::take(&mut window);
        }
        let doubles = self.before_sent > 0 && round.sent * 2 >= self.before_sent * 3;
        if self.in_ramp && doubles && fills {
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
        let waited = self.by_window(round);
        if self.in_ramp || waited * 2 < round.length() {
            self.flat = (0, 0, 0, 0);
            return;
        }
        let lost = (waited as f64 * share) as u64;
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
