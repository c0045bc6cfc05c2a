//! The timers of a kernel in User-Mode Linux with virtual time: one event device for all high-resolution timers of the
//! machine, programmed by a clock that is coarser than the device.
//!
//! Source: Linux 6.12, arch/um/kernel/time.c (timer_read, itimer_next_event), kernel/time/clockevents.c
//! (clockevents_program_event), kernel/time/hrtimer.c (hrtimer_interrupt, hrtimer_reprogram, hrtimer_force_reprogram),
//! kernel/time/tick-sched.c (tick_nohz_stop_tick, tick_nohz_restart), kernel/sched/idle.c (do_idle).
//!
//! The device fires late by what the clock did not show when it was programmed, and by one nanosecond; if the clock does not
//! show the time yet, it is programmed again for at least 500 ns. Whatever programs it anew changes how late the next timer
//! is: the tick, which a process restarts when it runs and which stops again after it has fired once in the idle loop; the
//! earliest timer of the wheel, for which the stopped tick waits; and a process of the recorder that reads the state of the
//! connections at a fixed interval.

use serde::{Deserialize, Serialize};

/// Least time in nanoseconds after which the device fires (`TIMER_MIN_DELTA`).
const LEAST: u64 = 500;
const NEVER: u64 = u64::MAX;
/// Interrupts that are calculated in advance to find one that concerns the connection.
const MOST_AHEAD: u32 = 1 << 16;
/// Interrupts, and nanoseconds, after which a timer of the wheel mixes their times into the pool of random numbers
/// (add_interrupt_randomness).
const MIXED: u32 = 1_024;
const MIXED_NS: u64 = 1_000_000_000;

/// A timer of the machine (`cpu_base->next_timer`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
enum MachineTimer {
    Tick,
    Sampler,
    Pacing,
}

/// What an interrupt of the device has found expired.
#[derive(Debug, Clone, Copy, Default)]
struct Expired {
    pacing: bool,
    wheel: bool,
}

/// The machine's timers, and the device.
#[derive(Debug, Clone, Deserialize, Serialize)]
pub(crate) struct GuestTimer {
    /// Resolution of the clock, length of a tick, and interval of the recorder's process (0: none), in nanoseconds.
    step: u64,
    tick: u64,
    every: u64,
    /// Time of the last event of the connection.
    now: u64,
    /// When the device fires, the deadline that it was programmed for (`expires_next`), and its timer.
    fires: u64,
    target: u64,
    next: MachineTimer,
    /// `sched_timer`; the tick is stopped, and what the stopped tick waits for (`next_tick`).
    sched: u64,
    stopped: bool,
    waits_for: u64,
    /// The tick has fired in the idle loop (`got_idle_tick`).
    got_tick: bool,
    /// When the recorder's process wakes.
    sample: u64,
    /// Deadline of the pacing timer while it runs, or of that of compressed ACKs.
    pacing: u64,
    /// Deadline of the timer of compressed ACKs, where the connection has set it; until then the last event.
    compressed: Option<u64>,
    /// When a process of the application, which reads the clock, gets to its output.
    call: u64,
    /// Interrupts since their times were last mixed, when that was, and when it is due.
    interrupts: u32,
    mixed: Option<u64>,
    mixes: u64,
    /// The card has sent at this instant, for which it will interrupt.
    sent: bool,
    /// Since the last event: a pacing timer was started, a process was woken, an interrupt came.
    started: u64,
    woke: bool,
    interrupted: bool,
    /// What has expired and is not handled yet.
    due_pacing: bool,
    due_wheel: bool,
}

impl GuestTimer {
    /// A machine on which a process began the run `late` nanoseconds after time 0.
    pub(crate) const fn new(step: u32, tick: u64, every: u64, late: u32) -> Self {
        let late = late as u64;
        let mut machine = Self {
            step: step as u64,
            tick,
            every,
            now: late,
            fires: NEVER,
            target: NEVER,
            next: MachineTimer::Tick,
            sched: tick,
            stopped: false,
            waits_for: 0,
            got_tick: false,
            sample: if every == 0 { NEVER } else { every },
            pacing: NEVER,
            compressed: None,
            call: NEVER,
            interrupts: 0,
            mixed: None,
            mixes: NEVER,
            sent: false,
            started: NEVER,
            woke: false,
            interrupted: false,
            due_pacing: false,
            due_wheel: false,
        };
        machine.program(late, tick);
        if every > 0 {
            machine.count(late);
        }
        machine
    }

    /// Counts an interrupt (add_interrupt_randomness).
    const fn count(&mut self, now: u64) {
        self.interrupts += 1;
        let jiffy = self.shown(now) / self.tick;
        let old = match self.mixed {
            Some(last) => jiffy > last + MIXED_NS / self.tick,
            None => true,
        };
        if self.mixes == NEVER && (self.interrupts >= MIXED || old) {
            self.mixes = (jiffy + 1) * self.tick;
        }
    }

    const fn shown(&self, at: u64) -> u64 {
        at - at % self.step
    }

    /// The recorder's timer has a slack of a nanosecond.
    const fn sample_expires(&self) -> u64 {
        self.sample.saturating_add(1)
    }

    const fn program(&mut self, now: u64, target: u64) {
        self.target = target;
        if target == NEVER {
            self.fires = NEVER;
            return;
        }
        let span = target.saturating_sub(self.shown(now));
        self.fires = now.saturating_add(if span < LEAST { LEAST } else { span }).saturating_add(1);
    }

    /// The earliest timer (hrtimer_update_next_event).
    fn earliest(&self) -> (u64, MachineTimer) {
        let mut first = (self.sched, MachineTimer::Tick);
        if self.sample_expires() < first.0 {
            first = (self.sample_expires(), MachineTimer::Sampler);
        }
        if self.pacing < first.0 {
            first = (self.pacing, MachineTimer::Pacing);
        }
        first
    }

    /// hrtimer_force_reprogram.
    fn force(&mut self, now: u64) {
        let (target, next) = self.earliest();
        self.next = next;
        if target != self.target {
            self.program(now, target);
        }
    }

    /// hrtimer_reprogram.
    const fn reprogram(&mut self, now: u64, next: MachineTimer, expires: u64) {
        if expires < self.target {
            self.next = next;
            self.program(now, expires);
        }
    }

    /// hrtimer_interrupt: `wheel` is the earliest deadline of the connection's timers of the wheel.
    fn interrupt(&mut self, wheel: u64) -> Expired {
        let now = self.fires;
        let shown = self.shown(now);
        self.interrupted = true;
        self.count(now);
        let mut expired = Expired::default();
        if self.sched <= shown {
            expired.wheel = wheel <= shown;
            if self.mixes <= shown {
                (self.interrupts, self.mixed, self.mixes) = (0, Some(shown / self.tick), NEVER);
            }
            self.sched =
                if self.stopped { NEVER } else { shown - shown % self.tick + self.tick };
            self.got_tick = true;
        }
        if self.sample <= shown {
            self.sample = NEVER;
            self.woke = true;
        }
        if self.pacing <= shown {
            self.pacing = NEVER;
            self.compressed = None;
            expired.pacing = true;
        }
        let (target, next) = self.earliest();
        self.next = next;
        self.program(now, target);
        expired
    }

    /// Ends an event at `now`: timers that were started, the process that was woken, or the idle loop.
    fn finish(&mut self, now: u64, wheel: u64) {
        if core::mem::take(&mut self.sent) {
            self.count(now);
            self.interrupted = true;
        }
        if self.started != NEVER {
            self.pacing = self.started;
            self.started = NEVER;
            self.reprogram(now, MachineTimer::Pacing, self.pacing);
        }
        if let Some(at) = self.compressed
            && at != self.pacing
        {
            let first = self.next == MachineTimer::Pacing;
            self.pacing = at;
            if first {
                self.force(now);
            } else {
                self.reprogram(now, MachineTimer::Pacing, at);
            }
            self.compressed = Some(at).filter(|&at| at != NEVER);
        }
        if core::mem::take(&mut self.woke) {
            self.interrupted = false;
            self.run_process(now);
        } else if core::mem::take(&mut self.interrupted) {
            self.idle(now, wheel);
        }
    }

    /// The machine leaves the idle loop for a process (tick_nohz_idle_exit), which ends at once.
    fn run_process(&mut self, now: u64) {
        self.got_tick = false;
        if self.stopped {
            self.stopped = false;
            self.sched = NEVER;
            if self.next == MachineTimer::Tick {
                self.force(now);
            }
            let shown = self.shown(now);
            self.sched = shown - shown % self.tick + self.tick;
            self.waits_for = 0;
            self.reprogram(now, MachineTimer::Tick, self.sched);
        }
        if self.every > 0 && self.sample == NEVER {
            self.sample = (now / self.every + 1) * self.every;
            self.reprogram(now, MachineTimer::Sampler, self.sample_expires());
        }
    }

    /// A turn of the idle loop (tick_nohz_idle_stop_tick).
    fn idle(&mut self, now: u64, wheel: u64) {
        let wheel = wheel.min(self.mixes);
        let got_tick = core::mem::take(&mut self.got_tick);
        if !(got_tick || self.stopped) {
            return;
        }
        let shown = self.shown(now);
        let base = shown - shown % self.tick;
        if !self.stopped && wheel <= base + self.tick {
            return;
        }
        if self.stopped && wheel == self.waits_for {
            return;
        }
        self.stopped = true;
        self.waits_for = wheel;
        let first = self.next == MachineTimer::Tick;
        self.sched = wheel;
        if first {
            self.force(now);
        } else {
            self.reprogram(now, MachineTimer::Tick, wheel);
        }
    }

    /// An event of the connection begins at `now`; `wheel` is the earliest deadline of its timers of the wheel, as the last
    /// event left them.
    pub(crate) fn begin(&mut self, now: u64, wheel: u64) {
        if now <= self.now {
            return;
        }
        self.finish(self.now, wheel);
        while self.fires < now {
            let at = self.fires;
            let expired = self.interrupt(wheel);
            self.due_pacing |= expired.pacing;
            self.due_wheel |= expired.wheel;
            self.finish(at, wheel);
        }
        self.now = now;
    }

    /// A packet arrives.
    pub(crate) const fn arrive(&mut self) {
        self.count(self.now);
        self.interrupted = true;
    }

    /// A packet is sent.
    pub(crate) const fn send(&mut self) {
        self.sent = true;
    }

    /// The device may fire.
    pub(crate) fn fire(&mut self, wheel: u64) {
        if self.fires == self.now {
            let expired = self.interrupt(wheel);
            self.due_pacing |= expired.pacing;
            self.due_wheel |= expired.wheel;
        }
    }

    /// A process of the application runs.
    pub(crate) fn wake_process(&mut self) {
        self.woke = true;
    }

    /// Starts the pacing timer, unless it runs; returns its deadline.
    pub(crate) fn start_pacing(&mut self, at: u64) -> u64 {
        if self.pacing != NEVER {
            return self.pacing;
        }
        if self.started == NEVER {
            self.started = at;
        }
        self.started
    }

    /// When the device next fires for the connection.
    pub(crate) fn next_for_connection(&self, wheel: u64) -> u64 {
        let mut ahead = self.clone();
        ahead.finish(self.now, wheel);
        for _ in 0..MOST_AHEAD {
            if ahead.fires == NEVER || (ahead.pacing == NEVER && wheel == NEVER) {
                break;
            }
            let at = ahead.fires;
            let expired = ahead.interrupt(wheel);
            if expired.pacing || expired.wheel {
                return at;
            }
            ahead.finish(at, wheel);
        }
        NEVER
    }

    /// When the recorder's process next runs.
    pub(crate) fn recorded_at(&self, wheel: u64) -> Option<u64> {
        let mut ahead = self.clone();
        ahead.finish(self.now, wheel);
        for _ in 0..MOST_AHEAD {
            if ahead.fires == NEVER || ahead.every == 0 {
                break;
            }
            let at = ahead.fires;
            ahead.interrupt(wheel);
            if ahead.woke {
                return Some(at);
            }
            ahead.finish(at, wheel);
        }
        None
    }

    /// The timer of compressed ACKs is to run until then; `NEVER`: it is stopped.
    pub(crate) const fn compress(&mut self, at: u64) {
        self.compressed = Some(at);
    }

    /// Does the timer of compressed ACKs run?
    pub(crate) const fn compresses(&self) -> bool {
        self.compressed.is_some()
    }

    /// A process of the application gets to its output then.
    pub(crate) const fn reach_output(&mut self, at: u64) {
        self.call = at;
    }

    pub(crate) const fn output_at(&self) -> u64 {
        self.call
    }

    /// Takes note that the expired timers of the wheel are handled; returns whether there may be some.
    pub(crate) const fn wheel_is_due(&self) -> bool {
        self.due_wheel
    }

    pub(crate) const fn wheel_is_done(&mut self) {
        self.due_wheel = false;
    }

    /// The pacing timer has expired and is handled now.
    pub(crate) fn take_pacing(&mut self) -> bool {
        core::mem::take(&mut self.due_pacing)
    }

    /// Does the pacing timer run, or is it about to be handled?
    pub(crate) const fn paces(&self) -> bool {
        self.pacing != NEVER || self.started != NEVER || self.due_pacing
    }

    /// The time that the clock shows now.
    pub(crate) const fn shown_now(&self) -> u64 {
        self.shown(self.now)
    }
}
