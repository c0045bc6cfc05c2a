//! The timers of a kernel in User-Mode Linux with virtual time: one event device for all high-resolution timers of the
//! machine, programmed by a clock that is coarser than the device.
//!
//! Source: Linux 6.12, arch/um/kernel/time.c (timer_read, itimer_next_event), kernel/time/clockevents.c
//! (clockevents_program_event), kernel/time/hrtimer.c (hrtimer_interrupt, hrtimer_reprogram, hrtimer_force_reprogram),
//! kernel/time/tick-sched.c (tick_nohz_stop_tick, tick_nohz_restart), kernel/sched/idle.c (do_idle).
//!
//! The device fires late by what the clock did not show when it was programmed, and by one nanosecond; if the clock does not
//! show the time yet, it is programmed again for at least 500 ns. Whatever programs it anew changes how late the next timer
//! is: the tick, which a process restarts when it runs, and which stops in the turn of the idle loop after it has fired; the
//! earliest timer of the wheel, for which the stopped tick waits; a process of the recorder that reads the state of the
//! connections at a fixed interval; and timers of the kernel itself (the pool of random numbers, work every 5 s, the
//! `server` of the scheduler's fair class).

use serde::{Deserialize, Serialize};

use super::fair_server::FairServer;

/// Least time in nanoseconds after which the device fires (`TIMER_MIN_DELTA`).
const LEAST: u64 = 500;
const NEVER: u64 = u64::MAX;
/// How often connect(2) reads the clock before the SYN leaves (secure_tcp_seq, tcp_connect).
const READINGS_OF_OPEN: u64 = 2;
/// Interrupts that are calculated in advance to find one that concerns the connection.
const MOST_AHEAD: u32 = 1 << 16;
/// When work of the kernel that no idle machine wakes for is due first, and how often (deferrable delayed work, every 5 s in
/// the steps of the wheel).
const FIRST_WORK: u64 = 2_048_000_000;
const WORK_EVERY: u64 = 5_120_000_000;
/// Interrupts, and nanoseconds, after which a timer of the wheel mixes their times into the pool of random numbers
/// (add_interrupt_randomness).
const MIXED: u32 = 1_024;
const MIXED_NS: u64 = 1_000_000_000;

/// A timer of the machine (`cpu_base->next_timer`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
enum MachineTimer {
    Tick,
    Sampler,
    Server,
    Inactivity,
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
    /// What the clock showed when the machine's first event came, and the time of the last event of the connection.
    began: Option<u64>,
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
    /// The scheduler's server, and whether it may run and has nothing to.
    server: FairServer,
    served: bool,
    /// No packet has arrived or was sent yet.
    fresh: bool,
    /// When the kernel's own work is due, which waits for a tick.
    work: u64,
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
    /// A machine before its first event.
    pub(crate) const fn new(step: u32, tick: u64, every: u64) -> Self {
        Self {
            step: step as u64,
            tick,
            every,
            began: None,
            now: 0,
            fires: NEVER,
            target: NEVER,
            next: MachineTimer::Tick,
            sched: NEVER,
            stopped: true,
            waits_for: NEVER,
            got_tick: false,
            sample: NEVER,
            server: FairServer::new(),
            served: false,
            fresh: true,
            work: FIRST_WORK,
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
        }
    }

    /// The process that opens the connection has been woken, with that of the recorder, and has read the clock until it
    /// sends at `now`.
    fn open(&mut self, now: u64) {
        let at = now.saturating_sub(READINGS_OF_OPEN * self.step);
        let began = self.shown(at);
        (self.began, self.now) = (Some(began), at);
        self.fresh = false;
        self.count(at);
        self.run_process(at);
        self.now = now;
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
        if self.server.timer() < first.0 {
            first = (self.server.timer(), MachineTimer::Server);
        }
        if self.server.inactive() < first.0 {
            first = (self.server.inactive(), MachineTimer::Inactivity);
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
            self.sched = if self.stopped { NEVER } else { shown - shown % self.tick + self.tick };
            self.got_tick = true;
            if self.work <= shown {
                self.work += WORK_EVERY;
                self.woke = true;
            }
        }
        if self.server.timer() <= shown {
            self.served |= self.server.expire(shown, shown - shown % self.tick);
        }
        if self.server.inactive() <= shown {
            self.server.end_activity();
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
        if core::mem::take(&mut self.served) {
            let shown = self.shown(now);
            self.server.stop(shown, shown - shown % self.tick);
            self.reprogram(now, MachineTimer::Inactivity, self.server.inactive());
        }
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
        let shown = self.shown(now);
        let jiffy = shown - shown % self.tick;
        self.server.wake(shown, jiffy);
        if self.next == MachineTimer::Inactivity && self.server.inactive() == NEVER {
            self.force(now);
        }
        self.reprogram(now, MachineTimer::Server, self.server.timer());
        self.got_tick = false;
        if self.stopped {
            self.stopped = false;
            self.sched = NEVER;
            if self.next == MachineTimer::Tick {
                self.force(now);
            }
            self.sched = jiffy + self.tick;
            self.waits_for = 0;
            self.reprogram(now, MachineTimer::Tick, self.sched);
        }
        if self.every > 0 && self.sample == NEVER {
            self.sample = (now / self.every + 1) * self.every;
            self.reprogram(now, MachineTimer::Sampler, self.sample_expires());
        }
        self.server.sleep(shown, jiffy);
        self.reprogram(now, MachineTimer::Inactivity, self.server.inactive());
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
        if self.began.is_none() {
            (self.began, self.now) = (Some(self.shown(now)), now);
        }
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

    /// A packet arrives. For the first of all a worker prepares the secrets of sequence numbers (net_get_random_once).
    pub(crate) const fn arrive(&mut self) {
        self.count(self.now);
        self.interrupted = true;
        self.woke |= core::mem::replace(&mut self.fresh, false);
    }

    /// A packet is sent at `now`.
    pub(crate) fn send(&mut self, now: u64) {
        if self.began.is_none() {
            self.open(now);
        }
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
            if ahead.sample == NEVER {
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

    /// Time of the last event.
    pub(crate) const fn now(&self) -> u64 {
        self.now
    }

    /// The time that the clock shows now.
    pub(crate) const fn shown_now(&self) -> u64 {
        self.shown(self.now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kernel of 250 Hz in User-Mode Linux, whose recorder reads every 10 ms; times are those that it printed.
    fn machine() -> GuestTimer {
        let mut machine = GuestTimer::new(256, 4_000_000, 10_000_000);
        machine.send(744);
        machine
    }

    #[test]
    fn the_device_is_late_by_what_the_clock_did_not_show() {
        let timeout = 1_024_000_000;
        let mut machine = machine();
        assert_eq!(machine.recorded_at(timeout), Some(10_000_235));
        machine.begin(15_000_000, timeout);
        assert_eq!(machine.recorded_at(timeout), Some(20_000_110));
    }

    #[test]
    fn a_timer_that_the_clock_does_not_show_yet_is_programmed_again() {
        let timeout = 1_024_000_000;
        let mut machine = machine();
        machine.begin(60_089_481, timeout);
        machine.arrive();
        machine.wake_process();
        machine.begin(60_090_505, timeout);
        assert_eq!(machine.start_pacing(61_553_751), 61_553_751);
        // Programmed for 61,553,889, when the clock shows 61,553,664.
        assert_eq!(machine.next_for_connection(timeout), 61_554_390);
        machine.begin(61_554_390, timeout);
        machine.fire(timeout);
        assert!(machine.take_pacing());
    }

    #[test]
    fn a_timer_that_is_started_while_another_is_first_waits_for_its_interrupt() {
        let timeout = 1_024_000_000;
        let mut machine = machine();
        machine.begin(81_307_621, timeout);
        machine.arrive();
        machine.start_pacing(82_770_307);
        assert_eq!(machine.next_for_connection(timeout), 82_770_537);
        machine.begin(82_770_537, timeout);
        machine.fire(timeout);
        assert!(machine.take_pacing());
        machine.start_pacing(84_233_690);
        // The tick at 84 ms comes first, 106 ns late, and programs the device for the rest.
        assert_eq!(machine.next_for_connection(timeout), 84_233_797);
    }
}
