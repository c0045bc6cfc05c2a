//! Builds the [`Timeline`] from the rounds of a transfer.

use units::{Duration, Instant};

use super::{LinearGrowth, SlowStartRamp, Timeline, WindowPlateau};
use crate::FlowAnalysis;
use crate::capture_point::CapturePoint;
use crate::episodes::RecoveryEpisode;
use crate::lost_time::{LOST_TIME_CAUSES, LostTimeCause, blame, fraction};
use crate::path::{PathEstimate, busy};
use crate::rounds::{Round, RoundOrigin, TimeUse};
use crate::time_budget::{Limiter, TimeBudget};

/// Builds the timeline of the data of one direction, on this path.
pub(super) fn over(flow: &FlowAnalysis, path: PathEstimate) -> Timeline {
    let course = Timeline {
        path,
        budget: TimeBudget::default(),
        lost: [Duration::ZERO; LOST_TIME_CAUSES],
        ramps: Vec::new(),
        linear_growths: Vec::new(),
        episode_causes: flow.episodes.iter().map(|e| blame(e, flow, &path)).collect(),
        plateau: None,
        rounds_after_exit: 0,
        first_rtt: Duration::ZERO,
        standing_queue: (Duration::ZERO, Duration::ZERO),
    };
    let mut walk = TimelineBuilder {
        flow,
        base: path.base_rtt.unwrap_or(Duration::MAX / 4),
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
        grown: Vec::new(),
        flat: None,
        queue: QueueMeter::default(),
    };
    for (n, round) in flow.rounds.iter().enumerate() {
        walk.round(n, round);
    }
    walk.finish()
}

struct TimelineBuilder<'a> {
    flow: &'a FlowAnalysis,
    base: Duration,
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
    /// Bytes sent in each round of the linear growth.
    grown: Vec<u64>,
    /// The run of rounds with the same window up to now.
    flat: Option<FlatRun>,
    queue: QueueMeter,
}

/// Rounds with the same window.
#[derive(Debug, Clone, Copy)]
struct FlatRun {
    rounds: u64,
    lost: Duration,
    from: Instant,
    window: u64,
}

/// Delay of a queue that never ran empty.
#[derive(Debug, Clone, Copy, Default)]
struct QueueMeter {
    /// Time with such a queue.
    time: Duration,
    /// Its delay times that time, in us squared.
    area: u64,
    longest: Duration,
}

impl QueueMeter {
    /// Adds a round of this length, through which the queue delayed packets by `delay`.
    fn add(&mut self, length: Duration, delay: Duration) {
        self.time += length;
        // Clocks that jump could overflow it.
        let area = delay.as_micros().saturating_mul(length.as_micros());
        self.area = self.area.saturating_add(area);
        self.longest = self.longest.max(delay);
    }

    /// Mean and longest delay.
    fn finish(self) -> (Duration, Duration) {
        let mean = Duration::from_micros(self.area / self.time.as_micros().max(1));
        (mean, self.longest)
    }
}

/// Whether a quarter of the window or more was lost at once, but not nearly all of it, as in an outage.
fn loses_much(episode: &RecoveryEpisode, mss: u64) -> bool {
    let lost = episode.retransmitted.saturating_sub(episode.spurious);
    let window = episode.window.max(episode.flight);
    lost >= 3 && lost * mss * 4 >= window && lost * mss * 4 <= window * 3
}

/// Whether these windows climb: those of the last third are half as large again as those of the first. A climb to twice
/// the window has 5/3; windows that swing about a mean, as those of BBR, have 1.
fn climbs(mut windows: Vec<u64>) -> bool {
    let third = windows.len().div_ceil(3);
    let median = |part: &mut [u64]| {
        part.sort_unstable();
        part.get(part.len() / 2).copied().unwrap_or_default()
    };
    let first = median(&mut windows[..third]);
    windows.reverse();
    let last = median(&mut windows[..third]);
    last * 2 >= first * 3
}

/// Whether nothing was in flight when the round began: of a path in use, what the round before sent is delivered in it.
fn begins_empty(round: &Round) -> bool {
    round.before == RoundOrigin::Round && round.delivered * 4 < round.sent
}

/// The lost fraction `share` of a round without the part that the ACKs waited on their way back.
fn without_way_back(round: &Round, share: f64) -> f64 {
    let waited = round.wait_on_way_back;
    let trip = round.max_rtt.max(round.length()).max(waited);
    let part = waited.as_nanos() as f64 / trip.as_nanos().max(1) as f64;
    share * (1.0 - part)
}

impl TimelineBuilder<'_> {
    fn round(&mut self, n: usize, round: &Round) {
        let length = round.length();
        let end = round.start + length;
        let busy = busy(round, self.course.path.data_rtt.unwrap_or(self.base), self.flow.mss);
        if matches!(round.before, RoundOrigin::Opening | RoundOrigin::Idle | RoundOrigin::Timeout) {
            self.begin_ramp(n, round);
        }
        if self.flow.episodes.get(self.next_episode).is_some_and(|e| e.begin <= end) {
            self.end_linear_growth();
        }
        self.all_data_sent = n >= self.last_sending;
        let hurt = self.enter_episodes(end);
        if hurt {
            self.flat = None;
        }
        self.rounds_since_ramp += u32::from(!self.in_ramp);
        let ended = n < self.last_sending && !self.grows_exponentially(round);
        if self.in_ramp && (hurt && round.before != RoundOrigin::Timeout || ended) {
            self.in_ramp = false;
            self.rounds_since_ramp = 0;
            if !hurt {
                // After a timeout slow start ends at the threshold that the loss has set.
                let is_repair = self
                    .course
                    .ramps
                    .last()
                    .is_some_and(|ramp| ramp.before == RoundOrigin::Timeout);
                self.owner = if is_repair { self.recovery_cause } else { LostTimeCause::EarlyExit };
                self.window_before = self.course.ramps.last().map_or(0, |ramp| ramp.windows.1);
            }
        }
        let share = self.lost_fraction(round, busy);
        self.spend(n, round, busy, share);
        if busy {
            self.queue.add(length, round.min_rtt - self.base);
        }
        self.track_growth(round, busy, without_way_back(round, share), end);
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
            time: Duration::ZERO,
            lost: Duration::ZERO,
            waits: 0,
            window_before: self.peak,
        });
        self.peak = 0;
    }

    /// Attributes the following rounds to the episodes that begin before `end`.
    fn enter_episodes(&mut self, end: Instant) -> bool {
        let mut hurt = false;
        while let Some(episode) = self.flow.episodes.get(self.next_episode) {
            if episode.begin > end {
                break;
            }
            let mut blame = self.course.episode_causes[self.next_episode];
            // Losses are reported up to one RTT, queue included, after the window stopped growing.
            let of_ramp = self.in_ramp || self.rounds_since_ramp <= 3;
            let is_first = of_ramp && self.next_episode == 0;
            // Half of what slow start sends beyond the path is lost, be the queue ever so short.
            let is_doubling = blame == LostTimeCause::Random && loses_much(episode, self.flow.mss);
            if (blame == LostTimeCause::QueueOverflow || is_doubling) && is_first {
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
    fn cwnd_limited_time(&self, round: &Round) -> Duration {
        if self.fills_window(round) { round.of(TimeUse::Window) } else { Duration::ZERO }
    }

    fn lost_fraction(&self, round: &Round, busy: bool) -> f64 {
        if busy && round.of(TimeUse::Timeout).is_zero() {
            return 0.0;
        }
        let Some(rate) = self.course.path.rate else { return 1.0 };
        let at_work = round.length() - round.of(TimeUse::Idle);
        if at_work.is_zero() {
            return 0.0;
        }
        let needed = round.delivered as f64 * 1e9 / rate;
        (1.0 - needed / at_work.as_nanos() as f64).clamp(0.0, 1.0)
    }

    /// Cause of the time that this round waited for a timer, which belongs to the episode that the timer
    /// begins.
    fn timeout_cause(&self, round: &Round) -> LostTimeCause {
        let end = round.start + round.length() + self.base * 2;
        let causes = &self.course.episode_causes;
        let is_timer = |n: &usize| {
            matches!(
                causes[*n],
                LostTimeCause::TailLoss | LostTimeCause::Timeout | LostTimeCause::SpuriousRto
            )
        };
        let is_near = |n: &usize| self.flow.episodes[*n].begin <= end;
        let begun = self.flow.episodes[..self.next_episode]
            .iter()
            .rev()
            .take_while(|episode| episode.begin >= round.start)
            .count();
        let mut near = (self.next_episode - begun..self.flow.episodes.len()).take_while(is_near);
        match near.find(is_timer) {
            Some(of_timer) => causes[of_timer],
            None if self.next_episode < causes.len() && is_near(&self.next_episode) => {
                causes[self.next_episode]
            }
            None => self.recovery_cause,
        }
    }

    /// Adds `time` to the budget, and its fraction `share` to the time lost to a cause.
    fn charge(&mut self, limiter: Limiter, cause: LostTimeCause, time: Duration, share: f64) {
        self.course.budget.add(limiter, time);
        self.course.lost[cause as usize] += fraction(time, share);
    }

    /// Attributes the time of a round to limiters and causes.
    fn spend(&mut self, n: usize, round: &Round, busy: bool, share: f64) {
        let (of_rwnd, of_reader) = (round.of(TimeUse::ReceiveWindow), round.of(TimeUse::Reader));
        let timeout_cause = self.timeout_cause(round);
        self.course.budget.add(Limiter::Idle, round.of(TimeUse::Idle));
        self.charge(Limiter::Handshake, LostTimeCause::Opening, round.of(TimeUse::Opening), share);
        let recovery = round.of(TimeUse::Recovery);
        self.charge(Limiter::Recovery, self.recovery_cause, recovery, share);
        self.charge(Limiter::Timeout, timeout_cause, round.of(TimeUse::Timeout), share);
        let back = round.wait_on_way_back.min(round.length());
        self.course.lost[LostTimeCause::WayBack as usize] += fraction(back, share);
        let share_of_window = without_way_back(round, share);
        self.course.budget.add(Limiter::Rwnd, of_rwnd);
        let lost = fraction(of_rwnd, share_of_window);
        // The first flight after a pause waits a round trip for its ACK, with any window.
        let first_trip = if begins_empty(round) { self.base } else { Duration::ZERO };
        self.course.lost[LostTimeCause::Window as usize] += lost.saturating_sub(first_trip);
        self.charge(Limiter::Rwnd, LostTimeCause::Reader, of_reader, share);
        let (waited, fills) = (self.cwnd_limited_time(round), self.fills_window(round));
        let mut window = waited;
        let mut pauses = round.of(TimeUse::Application) + round.of(TimeUse::Window) - window;
        // In a round limited by something else, the short waits between ACKs belong to that limit.
        if (of_rwnd + of_reader) * 2 > round.length() {
            let is_late = of_reader > of_rwnd;
            let cause = if is_late { LostTimeCause::Reader } else { LostTimeCause::Window };
            self.charge(Limiter::Rwnd, cause, core::mem::take(&mut window), share);
        } else if pauses * 2 > round.length() {
            pauses += core::mem::take(&mut window);
        }
        // A round of a window lasts a round trip; in a longer one the sender was waited for.
        let trip = round.max_rtt.max(self.base);
        let doubles = self.previous_sent > 0
            && round.sent * 2 >= self.previous_sent * 3
            && round.length() <= trip * 2;
        if self.in_ramp && doubles && fills {
            // The pauses are pacing of a doubling window (RFC 9002 section 7.7).
            window += core::mem::take(&mut pauses);
        }
        self.charge(Limiter::Application, LostTimeCause::Application, pauses, share_of_window);
        if busy {
            self.course.budget.add(Limiter::Path, window);
        } else if self.in_ramp {
            self.spend_in_ramp(n, round, window, share_of_window);
        } else {
            self.charge(Limiter::Cwnd, self.owner, window, share_of_window);
        }
    }

    /// Attributes the time of a round of slow start in which the window limited the sender.
    fn spend_in_ramp(&mut self, n: usize, round: &Round, window: Duration, share: f64) {
        self.course.budget.add(Limiter::SlowStart, window);
        // At the sender the first round contains the RTT of the first data; at the receiver it
        // begins with their arrival.
        let first = n == 0 && self.flow.point != CapturePoint::Receiver;
        let mut trip = if first { self.base.min(window) } else { Duration::ZERO };
        self.course.first_rtt += fraction(trip, share);
        let cause = match self.course.ramps.last().map(|ramp| ramp.before) {
            Some(RoundOrigin::Idle) => LostTimeCause::IdleRestart,
            Some(RoundOrigin::Timeout) => self.recovery_cause,
            _ => LostTimeCause::SlowStart,
        };
        // So it is after a rest: the first flight waits a round trip for its ACKs, with any window.
        if round.before == RoundOrigin::Idle {
            trip = trip.max(self.base.min(window));
        }
        // After the last data the sender waits for their ACK, with any window.
        if cause != LostTimeCause::SpuriousRto || !self.all_data_sent {
            self.course.lost[cause as usize] += fraction(window - trip, share);
        }
        if let Some(ramp) = self.course.ramps.last_mut() {
            ramp.waits += u64::from(round.waits);
            ramp.time += window;
            let is_restart = ramp.before == RoundOrigin::Idle;
            ramp.lost += fraction(if is_restart { window - trip } else { window }, share);
        }
    }

    /// Tracks long linear growth and windows that stay constant.
    fn track_growth(&mut self, round: &Round, busy: bool, share: f64, end: Instant) {
        let waited = self.cwnd_limited_time(round);
        if self.in_ramp || waited * 2 < round.length() {
            self.flat = None;
            return;
        }
        let lost = fraction(waited, share);
        let owner = self.owner;
        self.course.rounds_after_exit += u64::from(owner == LostTimeCause::EarlyExit && !busy);
        let linear_growth = self.linear_growth.get_or_insert(LinearGrowth {
            from: round.start,
            to: round.start,
            frame: round.frame,
            windows: (round.sent, round.sent),
            rounds: 0,
            lost: Duration::ZERO,
            blame: owner,
        });
        self.grown.push(round.sent);
        linear_growth.to = end;
        linear_growth.rounds += u64::from(self.flow.rounds_per_entry);
        linear_growth.lost += lost;
        linear_growth.windows.1 = linear_growth.windows.1.max(round.sent);
        let mss = self.flow.mss;
        match &mut self.flat {
            Some(flat) if !busy && round.sent.abs_diff(flat.window) <= mss => {
                flat.rounds += 1;
                flat.lost += lost;
                let FlatRun { rounds, lost, from, .. } = *flat;
                if self.course.plateau.is_none_or(|longest| rounds > longest.rounds) {
                    self.course.plateau = Some(WindowPlateau { rounds, lost, from, to: end });
                }
            }
            flat => {
                let (from, window) = (round.start, round.sent);
                *flat = Some(FlatRun { rounds: 1, lost, from, window });
            }
        }
    }

    fn end_linear_growth(&mut self) {
        let grown = core::mem::take(&mut self.grown);
        if let Some(linear_growth) = self.linear_growth.take()
            && linear_growth.rounds >= 16
            && linear_growth.windows.1 >= linear_growth.windows.0.max(self.window_before) * 2
            && climbs(grown)
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
            course = Timeline {
                budget,
                lost: [Duration::ZERO; LOST_TIME_CAUSES],
                ramps: Vec::new(),
                ..course
            };
        }
        // With repeated losses, linear growth is part of their sawtooth.
        let random =
            course.episode_causes.iter().filter(|blame| **blame == LostTimeCause::Random).count();
        if random as u64 >= crate::rules::ENOUGH_LOSSES {
            course.linear_growths.clear();
        }
        // The growth after a loss is the loss's; another has no finding of its own that could hold it.
        for linear_growth in course.linear_growths.iter().filter(|growth| !growth.is_of_loss()) {
            let lost = &mut course.lost[linear_growth.blame as usize];
            *lost = lost.saturating_sub(linear_growth.lost);
        }
        course.standing_queue = self.queue.finish();
        course
    }
}

#[cfg(test)]
mod tests {
    use super::climbs;

    #[test]
    fn windows_that_swing_do_not_climb() {
        assert!(climbs((10..40).collect()));
        assert!(climbs((0..60).map(|n| 20 + n / 3).collect()));
        // A mean of 8 with probes each eighth round, and one round of 3.
        let swings = (0..80).map(|n| if n % 8 == 0 { 10 } else { 8 });
        assert!(!climbs([3].into_iter().chain(swings).collect()));
        assert!(!climbs(vec![7]));
    }
}
