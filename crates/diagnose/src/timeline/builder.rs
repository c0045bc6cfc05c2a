//! Builds the [`Timeline`] from the rounds of a transfer.

use super::{LinearGrowth, SlowStartRamp, Timeline};
use crate::FlowAnalysis;
use crate::capture_point::CapturePoint;
use crate::lost_time::{LOST_TIME_CAUSES, LostTimeCause, blame};
use crate::path::{PathEstimate, busy};
use crate::rounds::{Round, RoundOrigin, TimeUse};
use crate::time_budget::{Limiter, TimeBudget};

/// Builds the timeline of the data of one direction.
pub(super) fn over(flow: &FlowAnalysis) -> Timeline {
    let path = PathEstimate::of(flow);
    let course = Timeline {
        path,
        budget: TimeBudget::default(),
        lost: [0; LOST_TIME_CAUSES],
        ramps: Vec::new(),
        linear_growths: Vec::new(),
        episode_causes: flow.episodes.iter().map(|e| blame(e, flow, &path)).collect(),
        plateau: (0, 0, 0, 0),
        rounds_after_exit: 0,
        first_rtt: 0,
        standing_queue: (0, 0),
    };
    let mut walk = TimelineBuilder {
        flow,
        base: path.base_rtt.unwrap_or(u64::MAX / 4),
        course,
        next_episode: 0,
        owner: LostTimeCause::EarlyExit,
        recovery_cause: LostTimeCause::Random,
        in_ramp: false,
        rounds_since_ramp: 0,
        window_before: 0,
        last_sending: flow.rounds.iter().rposition(|round| round.sent > 0).unwrap_or(0),
        all_data_sent: false,
        previous_sent: 0,
        peak: 0,
        linear_growth: None,
        flat: (0, 0, 0, 0),
        queue_time: 0,
    };
    for (n, round) in flow.rounds.iter().enumerate() {
        walk.round(n, round);
    }
    walk.finish()
}

struct TimelineBuilder<'a> {
    flow: &'a FlowAnalysis,
    base: u64,
    course: Timeline,
    next_episode: usize,
    /// Cause of the window size outside slow start.
    owner: LostTimeCause,
    recovery_cause: LostTimeCause,
    in_ramp: bool,
    /// Rounds since the last ramp ended.
    rounds_since_ramp: u32,
    /// Window before the last reduction, or at the end of slow start.
    window_before: u64,
    /// The round in which the last new byte was sent.
    last_sending: usize,
    /// All new data are sent.
    all_data_sent: bool,
    /// Bytes sent in the previous round.
    previous_sent: u64,
    /// Largest flight so far.
    peak: u64,
    linear_growth: Option<LinearGrowth>,
    flat: (u64, u64, u64, u64),
    queue_time: u64,
}

impl TimelineBuilder<'_> {
    fn round(&mut self, n: usize, round: &Round) {
        let length = round.length();
        let end = round.start + length;
        let busy = busy(round, self.base, self.flow.mss);
        if matches!(round.before, RoundOrigin::Opening | RoundOrigin::Idle | RoundOrigin::Timeout) {
            self.begin_ramp(n, round);
        }
        if self.flow.episodes.get(self.next_episode).is_some_and(|e| e.begin <= end) {
            self.end_linear_growth();
        }
        self.all_data_sent = n >= self.last_sending;
        let hurt = self.enter_episodes(end);
        if hurt {
            self.flat = (0, 0, 0, 0);
        }
        self.rounds_since_ramp += u32::from(!self.in_ramp);
        let ended = n < self.last_sending && !self.grows_exponentially(round);
        if self.in_ramp && (hurt && round.before != RoundOrigin::Timeout || ended) {
            self.in_ramp = false;
            self.rounds_since_ramp = 0;
            if !hurt {
                self.owner = LostTimeCause::EarlyExit;
                self.window_before = self.course.ramps.last().map_or(0, |ramp| ramp.windows.1);
            }
        }
        let share = self.lost_fraction(round, busy);
        self.spend(n, round, busy, share);
        if busy {
            let waited = round.min_rtt - self.base;
            self.queue_time += length;
            // In us squared; clocks that jump could overflow it.
            let area = (waited / 1_000).saturating_mul(length / 1_000);
            self.course.standing_queue.0 = self.course.standing_queue.0.saturating_add(area);
            self.course.standing_queue.1 = self.course.standing_queue.1.max(waited);
        }
        self.track_growth(round, busy, share, end);
        let (waited, has_segment) = (self.cwnd_limited_time(round), round.flight >= self.flow.mss);
        if let Some(ramp) = self.course.ramps.last_mut()
            && self.in_ramp
            && (waited * 2 >= length || has_segment && round.sent > ramp.windows.1)
        {
            ramp.rounds.1 = n;
            ramp.to = end;
            ramp.windows.1 = ramp.windows.1.max(round.sent).max(round.delivered);
        }
        self.previous_sent = round.sent;
        self.peak = self.peak.max(round.flight);
    }

    fn begin_ramp(&mut self, n: usize, round: &Round) {
        self.in_ramp = true;
        self.previous_sent = 0;
        self.end_linear_growth();
        self.course.ramps.push(SlowStartRamp {
            before: round.before,
            rounds: (n, n),
            from: round.start,
            to: round.start,
            frame: round.frame,
            windows: (round.sent, round.sent),
            time: 0,
            lost: 0,
            waits: 0,
            window_before: self.peak,
        });
        self.peak = 0;
    }

    /// Attributes the following rounds to the episodes that begin before `end`.
    fn enter_episodes(&mut self, end: u64) -> bool {
        let mut hurt = false;
        while let Some(episode) = self.flow.episodes.get(self.next_episode) {
            if episode.begin > end {
                break;
            }
            let mut blame = self.course.episode_causes[self.next_episode];
            // Losses are reported up to one RTT, queue included, after the window stopped growing.
            let of_ramp = self.in_ramp || self.rounds_since_ramp <= 3;
            if blame == LostTimeCause::QueueOverflow && of_ramp && self.next_episode == 0 {
                blame = LostTimeCause::Overshoot;
                self.course.episode_causes[self.next_episode] = blame;
            }
            self.next_episode += 1;
            if blame == LostTimeCause::SpuriousFastRecovery && self.all_data_sent {
                // There was no more data to send: the smaller window limited nothing, and the data
                // in flight arrived as they would have.
                self.recovery_cause = self.owner;
                continue;
            }
            self.window_before = episode.window;
            self.owner = blame;
            self.recovery_cause = blame;
            hurt = true;
        }
        hurt
    }

    /// Whether the window grows as in slow start: by at least three quarters of a segment per ACK
    /// (RFC 5681 section 3.1: up to one per ACK; RFC 3465: up to two), or by a quarter of the
    /// window per round. Congestion avoidance adds one segment a round. A round limited by
    /// something else does not decide.
    fn grows_exponentially(&self, round: &Round) -> bool {
        if self.previous_sent == 0 || round.of(TimeUse::Window) * 2 < round.length() {
            return true;
        }
        let growth = round.sent.saturating_sub(self.previous_sent);
        let mss = self.flow.mss;
        growth * 4 >= self.previous_sent
            || (growth * 2 >= mss * 3 && growth * 4 >= mss * 3 * u64::from(round.acks))
    }

    /// Whether the window can limit the sender in this round. Every window holds a segment (RFC
    /// 5681 section 3.1): with less in flight, the application has no more to send, unless these
    /// are the last bytes of a larger flight.
    fn fills_window(&self, round: &Round) -> bool {
        let mss = self.flow.mss;
        let is_rest = self.all_data_sent && self.peak >= mss;
        round.flight >= mss || is_rest || round.before == RoundOrigin::Timeout
    }

    /// Time in which the congestion window limited the sender.
    fn cwnd_limited_time(&self, round: &Round) -> u64 {
        if self.fills_window(round) { round.of(TimeUse::Window) } else { 0 }
    }

    fn lost_fraction(&self, round: &Round, busy: bool) -> f64 {
        if busy && round.of(TimeUse::Timeout) == 0 {
            return 0.0;
        }
        let Some(rate) = self.course.path.rate else { return 1.0 };
        let at_work = round.length() - round.of(TimeUse::Idle);
        if at_work == 0 {
            return 0.0;
        }
        let needed = round.delivered as f64 * 1e9 / rate;
        (1.0 - needed / at_work as f64).clamp(0.0, 1.0)
    }

    fn spend(&mut self, n: usize, round: &Round, busy: bool, share: f64) {
        let lost = |ns: u64| (ns as f64 * share) as u64;
        // Waiting for a timer belongs to the episode that the timer begins.
        let end = round.start + round.length() + 2 * self.base;
        let timer = |n: &usize| {
            matches!(
                self.course.episode_causes[*n],
                LostTimeCause::TailLoss | LostTimeCause::Timeout | LostTimeCause::SpuriousRto
            )
        };
        let near = |n: &usize| self.flow.episodes[*n].begin <= end;
        let begun = self.flow.episodes[..self.next_episode]
            .iter()
            .rev()
            .take_while(|episode| episode.begin >= round.start)
            .count();
        let first = self.next_episode - begun;
        let of_timer = (first..self.flow.episodes.len()).take_while(near).find(timer);
        let waited_for = match self.flow.episodes.get(self.next_episode) {
            _ if of_timer.is_some() => self.course.episode_causes[of_timer.unwrap_or(first)],
            Some(next) if next.begin <= end => self.course.episode_causes[self.next_episode],
            _ => self.recovery_cause,
        };
        let (waited, fills) = (self.cwnd_limited_time(round), self.fills_window(round));
        let budget = &mut self.course.budget;
        let episode_causes = &mut self.course.lost;
        let mut blamed = |blame: LostTimeCause, ns: u64| episode_causes[blame as usize] += lost(ns);
        budget.add(Limiter::Handshake, round.of(TimeUse::Opening));
        blamed(LostTimeCause::Opening, round.of(TimeUse::Opening));
        budget.add(Limiter::Idle, round.of(TimeUse::Idle));
        budget.add(Limiter::Recovery, round.of(TimeUse::Recovery));
        blamed(self.recovery_cause, round.of(TimeUse::Recovery));
        budget.add(Limiter::Timeout, round.of(TimeUse::Timeout));
        blamed(waited_for, round.of(TimeUse::Timeout));
        budget.add(Limiter::Rwnd, round.of(TimeUse::ReceiveWindow) + round.of(TimeUse::Reader));
        blamed(LostTimeCause::Window, round.of(TimeUse::ReceiveWindow));
        blamed(LostTimeCause::Reader, round.of(TimeUse::Reader));
        let mut window = waited;
        let mut pauses = round.of(TimeUse::Application) + round.of(TimeUse::Window) - window;
        let held = round.of(TimeUse::ReceiveWindow) + round.of(TimeUse::Reader);
        // In a round limited by something else, the short waits between ACKs belong to that limit.
        if held * 2 > round.length() {
            budget.add(Limiter::Rwnd, window);
            let late = round.of(TimeUse::Reader) > round.of(TimeUse::ReceiveWindow);
            blamed(
                if late { LostTimeCause::Reader } else { LostTimeCause::Window },
                core::mem::take(&mut window),
            );
        } else if pauses * 2 > round.length() {
            pauses += core::mem::take(&mut window);
        }
        // A round of a window lasts a round trip; in a longer one the sender was waited for.
        let trip = round.max_rtt.max(self.base);
        let doubles = self.previous_sent > 0
            && round.sent * 2 >= self.previous_sent * 3
            && round.length() <= trip.saturating_mul(2);
        if self.in_ramp && doubles && fills {
            // The pauses are pacing of a doubling window (RFC 9002 section 7.7).
            window += core::mem::take(&mut pauses);
        }
        budget.add(Limiter::Application, pauses);
        blamed(LostTimeCause::Application, pauses);
        if busy {
            budget.add(Limiter::Path, window);
        } else if self.in_ramp {
            budget.add(Limiter::SlowStart, window);
            let ramp = self.course.ramps.last_mut();
            // At the sender the first round contains the RTT of the first data; at the receiver it
            // begins with their arrival.
            let first = n == 0 && self.flow.point != CapturePoint::Receiver;
            let mut trip = if first { self.base.min(window) } else { 0 };
            self.course.first_rtt += lost(trip);
            let blame = match &ramp {
                Some(ramp) if ramp.before == RoundOrigin::Idle => LostTimeCause::IdleRestart,
                Some(ramp) if ramp.before == RoundOrigin::Timeout => self.recovery_cause,
                _ => LostTimeCause::SlowStart,
            };
            if blame == LostTimeCause::IdleRestart {
                trip = trip.max(round.final_wait.min(window));
            }
            // After the last data the sender waits for their ACK, with any window.
            if blame != LostTimeCause::SpuriousRto || !self.all_data_sent {
                blamed(blame, window - trip);
            }
            if let Some(ramp) = ramp {
                ramp.waits += u64::from(round.waits);
                ramp.time += window;
                ramp.lost += if ramp.before == RoundOrigin::Idle {
                    lost(window - trip)
                } else {
                    lost(window)
                };
            }
        } else {
            budget.add(Limiter::Cwnd, window);
            blamed(self.owner, window);
        }
    }

    /// Tracks long linear growth and windows that stay constant.
    fn track_growth(&mut self, round: &Round, busy: bool, share: f64, end: u64) {
        let waited = self.cwnd_limited_time(round);
        if self.in_ramp || waited * 2 < round.length() {
            self.flat = (0, 0, 0, 0);
            return;
        }
        let lost = (waited as f64 * share) as u64;
        let owner = self.owner;
        self.course.rounds_after_exit += u64::from(owner == LostTimeCause::EarlyExit && !busy);
        let linear_growth = self.linear_growth.get_or_insert(LinearGrowth {
            from: round.start,
            to: round.start,
            frame: round.frame,
            windows: (round.sent, round.sent),
            rounds: 0,
            lost: 0,
            blame: owner,
        });
        linear_growth.to = end;
        linear_growth.rounds += u64::from(self.flow.rounds_per_entry);
        linear_growth.lost += lost;
        linear_growth.windows.1 = linear_growth.windows.1.max(round.sent);
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

    fn end_linear_growth(&mut self) {
        if let Some(linear_growth) = self.linear_growth.take()
            && linear_growth.rounds >= 16
            && linear_growth.windows.1 >= linear_growth.windows.0.max(self.window_before) * 2
        {
            self.course.linear_growths.push(linear_growth);
        }
    }

    fn finish(mut self) -> Timeline {
        self.end_linear_growth();
        let mut course = self.course;
        if !self.flow.receiver_captured {
            let mut budget = TimeBudget::default();
            budget.add(Limiter::Unknown, course.budget.whole());
            course = Timeline { budget, lost: [0; LOST_TIME_CAUSES], ramps: Vec::new(), ..course };
        }
        // With repeated losses, linear growth is part of their sawtooth.
        let random =
            course.episode_causes.iter().filter(|blame| **blame == LostTimeCause::Random).count();
        if random as u64 >= crate::rules::ENOUGH_LOSSES {
            course.linear_growths.clear();
        }
        for linear_growth in &course.linear_growths {
            let lost = &mut course.lost[linear_growth.blame as usize];
            *lost = lost.saturating_sub(linear_growth.lost);
        }
        if self.queue_time > 0 {
            course.standing_queue.0 =
                course.standing_queue.0 / (self.queue_time / 1_000).max(1) * 1_000;
        }
        course
    }
}
