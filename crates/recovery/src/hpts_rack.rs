//! The high-precision timer system (HPTS) that runs FreeBSD's RACK stack: one entry on a wheel of
//! 10 µs slots serves both the pause after a burst and the stack's one timer.
//!
//! Sources: tcp_hpts.c (tcp_hpts_insert), tcp_stacks/rack.c (rack_start_hpts_timer,
//! rack_timer_cancel, rack_process_timers and the beginning of rack_output). The wheel counts slots
//! from the current slot, so an entry is up to 10 µs early; a timer that is not due then is
//! inserted once more, its remaining microseconds taken as milliseconds (`HPTS_MS_TO_SLOTS(left)`).

use units::{Duration, Instant};

use crate::rack_freebsd::micros;

/// Microseconds per slot (`HPTS_TICKS_PER_SLOT`).
const SLOT: u64 = 10;

/// The timers, of which one is armed (`PACE_TMR_RACK`, `PACE_TMR_TLP`, `PACE_TMR_RXT`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub enum RackTimer {
    /// The oldest segment, passed by a later one, is lost when it expires.
    Reorder,
    /// Tail loss probe.
    Probe,
    /// Retransmission timeout.
    Retransmit,
}

/// The timer state that a call of the output routine finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HptsTimer {
    /// No timer is due.
    Nothing,
    /// The wheel was early: the timer is inserted once more, and the call ends.
    TooEarly,
    /// This timer has expired.
    Timer(RackTimer),
}

/// The wheel entry of one connection and its state; times in microseconds.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Deserialize, serde::Serialize)]
pub struct Hpts {
    /// When the wheel calls (`tcp_in_hpts`).
    entry: Option<Instant>,
    /// Output is paused (`PACE_PKT_OUTPUT`) until `output_to` (`rc_last_output_to`).
    paced: bool,
    output_to: u64,
    /// The armed timer and its expiry (`rc_timer_exp`).
    timer: Option<(RackTimer, u64)>,
    /// Time by which a call was early, added to the next pause (`rc_agg_early`).
    early: u64,
    /// Time by which calls were late, subtracted from the next pauses (`rc_agg_delayed`, `r_late`).
    delayed: u64,
    late: bool,
    /// Lateness of the current call.
    lag: u64,
    /// The next call may send during a pause (`r_timer_override`).
    overrides: bool,
    /// The wheel makes the next call (`inp_hpts_calls`).
    calls: bool,
}

impl Hpts {
    /// True if there is an entry on the wheel.
    #[inline]
    pub const fn is_entered(&self) -> bool {
        self.entry.is_some()
    }

    /// When the wheel calls, and the timer of the entry unless it is a pause.
    pub fn entry(&self) -> Option<(Instant, Option<RackTimer>)> {
        let at = self.entry?;
        let timer = self.timer.filter(|&(_, exp)| !self.paced || exp < self.output_to);
        Some((at, timer.map(|(timer, _)| timer)))
    }

    /// True while output is paused.
    pub const fn is_paced(&self) -> bool {
        self.paced
    }

    /// The armed timer.
    pub fn timer(&self) -> Option<RackTimer> {
        self.timer.map(|(timer, _)| timer)
    }

    /// The next call may send during a pause.
    pub const fn override_pause(&mut self) {
        self.overrides = true;
    }

    /// Clears the accumulated earliness and lateness.
    pub const fn forget_lag(&mut self) {
        self.forget_early();
        self.delayed = 0;
        self.late = false;
    }

    /// Clears the accumulated earliness.
    pub const fn forget_early(&mut self) {
        self.early = 0;
    }

    /// The RACK timer ends the pause (rack_timeout_rack).
    pub const fn end_pause(&mut self) {
        self.paced = false;
    }

    /// Removes pause and timer from the wheel, as after the first goodput measurement.
    pub const fn remove(&mut self) {
        self.entry = None;
        self.paced = false;
        self.timer = None;
        self.output_to = 0;
    }

    /// The wheel calls.
    pub const fn on_wheel(&mut self) {
        self.entry = None;
        self.calls = true;
    }

    /// rack_timer_cancel; `idle`: nothing is outstanding.
    pub fn cancel(&mut self, now: Instant, idle: bool) {
        if self.paced && (micros(now) >= self.output_to || idle) {
            self.entry = None;
            self.paced &= !idle;
        }
        if self.timer.take().is_some() && !self.paced {
            self.entry = None;
        }
    }

    /// A call of rack_output begins: returns the timer that is due (rack_process_timers).
    pub fn begin(&mut self, now: Instant, idle: bool) -> HptsTimer {
        if !self.paced && self.entry.is_some() {
            self.cancel(now, idle);
        }
        let cts = micros(now);
        self.lag = if self.paced { cts.saturating_sub(self.output_to) } else { 0 };
        let by_wheel = core::mem::take(&mut self.calls);
        let Some((timer, exp)) = self.timer else { return HptsTimer::Nothing };
        if cts >= exp {
            self.timer = None;
            return HptsTimer::Timer(timer);
        }
        if self.paced || !by_wheel {
            return HptsTimer::Nothing;
        }
        self.enter(now, (exp - cts) * 100 + 1);
        HptsTimer::TooEarly
    }

    /// True if the call may send, false during a pause.
    pub fn may_output(&mut self, now: Instant) -> bool {
        if self.overrides || self.lag > 0 {
            self.entry = None;
        } else if self.entry.is_some() {
            return false;
        }
        let cts = micros(now);
        if self.lag > 0 {
            self.delayed += self.lag;
            self.late = true;
        } else if self.paced && self.output_to > cts {
            self.early += self.output_to - cts;
        }
        self.paced = false;
        self.overrides = false;
        true
    }

    /// Takes the connection off the wheel after a segment arrived during a pause and its timer was
    /// stopped, so that the rest of the pause is inserted once more (rack_do_segment). False if a
    /// call is due instead.
    pub fn reenter(&mut self, now: Instant) -> bool {
        let mut late = false;
        if self.entry.take().is_some() && core::mem::replace(&mut self.paced, false) {
            let cts = micros(now);
            late = self.output_to <= cts;
            self.early += self.output_to.saturating_sub(cts);
        }
        !late
    }

    /// rack_start_hpts_timer: inserts a pause of `slot` and the given timer. Before there is a
    /// goodput estimate (`measured`) a pause is no longer than the time to a probe or timeout.
    pub fn start(
        &mut self,
        now: Instant,
        slot: Duration,
        timer: Option<(RackTimer, Duration)>,
        measured: bool,
    ) {
        debug_assert!(self.entry.is_none());
        let cts = micros(now);
        let early = core::mem::take(&mut self.early);
        let mut slot = self.with_lag(slot.as_micros() + early);
        self.paced = slot > 0;
        let timer = timer.map(|(timer, to)| (timer, to.as_micros()));
        self.timer = timer.map(|(timer, to)| (timer, cts + to));
        let to = timer.map(|(_, to)| to);
        if let Some((RackTimer::Probe | RackTimer::Retransmit, to)) = timer
            && !measured
        {
            slot = slot.min(to);
        }
        if slot > 0 {
            self.output_to = cts + slot;
            self.enter(now, to.map_or(slot, |to| to.min(slot)).div_ceil(SLOT));
        } else if let Some(to) = to {
            self.enter(now, to.div_ceil(SLOT));
        }
    }

    /// A pause, shortened by the lateness of earlier calls, but not below a slot.
    fn with_lag(&mut self, slot: u64) -> u64 {
        if !self.late {
            return slot;
        }
        if self.delayed >= slot {
            self.delayed = self.delayed + SLOT - slot;
            return SLOT;
        }
        let left = slot - self.delayed;
        self.delayed = SLOT.saturating_sub(left);
        self.late = self.delayed > 0;
        left.max(SLOT)
    }

    fn enter(&mut self, now: Instant, slots: u64) {
        let slot = micros(now) / SLOT + slots;
        self.entry = Some(Instant::ZERO + Duration::from_micros(slot * SLOT));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(us: u64) -> Duration {
        Duration::from_micros(us)
    }

    fn at(us: u64) -> Instant {
        Instant::from_nanos(us * 1_000)
    }

    const PROBE: RackTimer = RackTimer::Probe;

    #[test]
    fn the_wheel_counts_from_the_current_slot_and_lengthens_the_next_pause() {
        // golden/freebsd-rack-closed, lost-rtx-0: 90.257 and 14 ms give 104.25, then 104.25 and 45
        // ms 149.257.
        let mut hpts = Hpts::default();
        hpts.start(at(90_257), us(14_000), Some((PROBE, us(90_496))), false);
        assert_eq!(hpts.entry(), Some((at(104_250), None)));
        hpts.on_wheel();
        assert_eq!(hpts.begin(at(104_250), false), HptsTimer::Nothing);
        assert!(hpts.may_output(at(104_250)));
        hpts.start(at(104_250), us(45_000), Some((PROBE, us(90_774))), false);
        assert_eq!((hpts.entry(), hpts.output_to), (Some((at(149_260), None)), 149_257));
    }

    #[test]
    fn a_call_within_a_pause_is_held_back_unless_a_loss_overrides_it() {
        let mut hpts = Hpts::default();
        hpts.start(at(1_000), us(5_000), Some((PROBE, us(90_000))), true);
        assert_eq!(hpts.begin(at(2_000), false), HptsTimer::Nothing);
        assert!(!hpts.may_output(at(2_000)));
        // The acknowledgment stopped the timer: the rest of the pause is inserted once more.
        hpts.cancel(at(2_000), false);
        assert!(hpts.is_entered() && hpts.timer().is_none());
        assert!(hpts.reenter(at(2_000)));
        hpts.start(at(2_000), us(0), Some((PROBE, us(90_000))), true);
        assert_eq!((hpts.entry(), hpts.output_to), (Some((at(6_000), None)), 6_000));
        hpts.override_pause();
        assert_eq!(hpts.begin(at(3_000), false), HptsTimer::Nothing);
        assert!(hpts.may_output(at(3_000)));
        // Three milliseconds early: the next pause is longer.
        hpts.start(at(3_000), us(1_000), None, true);
        assert_eq!(hpts.output_to, 7_000);
    }

    #[test]
    fn the_rest_of_an_early_timer_is_a_hundred_times_as_long() {
        // iw-tail-loss: due at 65.462 ms, called at 65.46, and once more 201 slots later.
        let mut hpts = Hpts::default();
        hpts.start(at(49_779), us(0), Some((PROBE, us(15_683))), false);
        assert_eq!(hpts.entry(), Some((at(65_460), Some(PROBE))));
        hpts.on_wheel();
        assert_eq!(hpts.begin(at(65_460), false), HptsTimer::TooEarly);
        assert_eq!(hpts.entry(), Some((at(67_470), Some(PROBE))));
        hpts.on_wheel();
        assert_eq!(hpts.begin(at(67_470), false), HptsTimer::Timer(PROBE));
    }

    #[test]
    fn any_other_call_ends_a_timer_without_a_pause() {
        let mut hpts = Hpts::default();
        hpts.start(at(0), us(0), Some((PROBE, us(90_000))), true);
        assert_eq!(hpts.begin(at(10), false), HptsTimer::Nothing);
        assert!(!hpts.is_entered() && hpts.may_output(at(10)));
    }

    #[test]
    fn nothing_outstanding_ends_a_pause() {
        let mut hpts = Hpts::default();
        hpts.start(at(0), us(9_000), None, true);
        hpts.cancel(at(10), true);
        assert!(!hpts.is_entered() && !hpts.is_paced());
    }

    #[test]
    fn a_timer_may_come_within_a_pause_and_a_first_pause_is_no_longer_than_a_probe() {
        let mut hpts = Hpts::default();
        hpts.start(at(0), us(9_000), Some((RackTimer::Reorder, us(2_000))), false);
        assert_eq!(hpts.entry(), Some((at(2_000), Some(RackTimer::Reorder))));
        let mut hpts = Hpts::default();
        hpts.start(at(0), us(9_000), Some((PROBE, us(2_000))), false);
        assert_eq!((hpts.entry(), hpts.output_to), (Some((at(2_000), None)), 2_000));
        let mut hpts = Hpts::default();
        hpts.start(at(0), us(9_000), Some((PROBE, us(2_000))), true);
        assert_eq!((hpts.entry(), hpts.output_to), (Some((at(2_000), Some(PROBE))), 9_000));
    }

    #[test]
    fn lateness_of_a_call_shortens_the_next_pauses() {
        let mut hpts = Hpts::default();
        hpts.start(at(0), us(1_000), None, true);
        hpts.on_wheel();
        hpts.begin(at(1_250), false);
        assert!(hpts.may_output(at(1_250)));
        hpts.start(at(1_250), us(1_000), None, true);
        assert_eq!((hpts.output_to, hpts.late), (2_000, false));
        hpts.on_wheel();
        hpts.begin(at(5_000), false);
        assert!(hpts.may_output(at(5_000)));
        hpts.start(at(5_000), us(1_000), None, true);
        assert_eq!((hpts.output_to, hpts.delayed), (5_010, 2_010));
    }
}
