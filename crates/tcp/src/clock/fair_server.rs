//! The server of the scheduler's fair class (`rq->fair_server`), whose timers program the event device of a machine.
//!
//! Source: Linux 6.12, kernel/sched/deadline.c (dl_server_start, dl_server_update_idle_time, update_dl_entity,
//! replenish_dl_entity, dl_server_timer, dl_server_stop, task_non_contending), kernel/sched/fair.c (enqueue_task_fair).
//!
//! The server has 50 ms of each second. It is deferred, and its timer waits for the latest time at which it can still have
//! them; idle time counts as used. The clock of the scheduler is that of the ticks.

use serde::{Deserialize, Serialize};

const NEVER: u64 = u64::MAX;
/// Runtime in each period (dl_server_start).
const RUNTIME: i64 = 50_000_000;
const PERIOD: i64 = 1_000_000_000;
/// The timer is not put off for less than this (`dl_server_min_res`).
const LEAST: i64 = 1_000_000;
/// `DL_SCALE`
const SCALE: u32 = 10;

/// The server of one processor, which is idle but for processes that end at once. Times in nanoseconds.
#[derive(Debug, Clone, Deserialize, Serialize)]
pub(super) struct FairServer {
    deadline: i64,
    runtime: i64,
    /// `dl_server_active`
    active: bool,
    /// Deferred until the timer expires (`dl_defer_armed`, `dl_throttled`).
    armed: bool,
    /// `dl_defer_running`
    running: bool,
    /// Until when idle time has been counted (`exec_start` of the idle task).
    idle_since: i64,
    /// When its timer expires (`dl_timer`).
    timer: u64,
    /// When its time of inactivity begins (`inactive_timer`).
    inactive: u64,
}

impl FairServer {
    /// A server whose last period ended long ago.
    pub(super) const fn new() -> Self {
        Self {
            deadline: -PERIOD,
            runtime: 0,
            active: false,
            armed: false,
            running: false,
            idle_since: 0,
            timer: NEVER,
            inactive: NEVER,
        }
    }

    pub(super) const fn timer(&self) -> u64 {
        self.timer
    }

    pub(super) const fn inactive(&self) -> u64 {
        self.inactive
    }

    /// A process wakes while the processor is idle; `shown`: what the clock shows, `jiffy`: the time of the last tick.
    pub(super) fn wake(&mut self, shown: u64, jiffy: u64) {
        let at = jiffy as i64;
        if at >= self.idle_since {
            // dl_server_update_idle_time
            self.runtime -= at - self.idle_since;
            self.running &= self.runtime >= 0;
            self.runtime = self.runtime.max(0);
            self.idle_since = at;
        }
        if self.active {
            return;
        }
        self.active = true;
        // task_contending
        self.inactive = NEVER;
        self.update(at);
        if self.armed {
            let act = self.deadline - self.runtime + (shown as i64 - at);
            if act < shown as i64 {
                self.armed = false;
            } else {
                self.timer = act as u64;
            }
        }
    }

    /// update_dl_entity
    fn update(&mut self, at: i64) {
        let is_past = self.deadline < at;
        if !is_past && !self.overflows(at) {
            self.armed |= !self.running;
        } else if self.running && !is_past {
            // update_dl_revised_wakeup
            let density = (RUNTIME << 20) / PERIOD;
            self.runtime = (density * (self.deadline - at)) >> 20;
        } else {
            self.running = false;
            self.begin_period(at);
            self.armed = true;
        }
    }

    const fn begin_period(&mut self, at: i64) {
        self.deadline = at + PERIOD;
        self.runtime = RUNTIME;
    }

    /// dl_entity_overflow
    const fn overflows(&self, at: i64) -> bool {
        let left = (PERIOD >> SCALE) * (self.runtime >> SCALE);
        let right = ((self.deadline - at) >> SCALE) * (RUNTIME >> SCALE);
        right < left
    }

    /// The last process sleeps.
    pub(super) fn sleep(&mut self, shown: u64, jiffy: u64) {
        if self.active && !self.armed {
            self.stop(shown, jiffy);
        }
        self.idle_since = jiffy as i64;
    }

    /// dl_server_stop: nothing is left to run. Starts the timer of inactivity, unless its time is past.
    pub(super) fn stop(&mut self, shown: u64, jiffy: u64) {
        let zero_lag = self.deadline - self.runtime * PERIOD / RUNTIME - jiffy as i64;
        if zero_lag >= 0 && self.inactive == NEVER {
            self.inactive = shown + zero_lag as u64;
        }
        self.timer = NEVER;
        self.active = false;
    }

    /// The timer expires (dl_server_timer); returns whether the server may run, and has nothing to.
    pub(super) fn expire(&mut self, shown: u64, jiffy: u64) -> bool {
        let (expired, at) = (self.timer, jiffy as i64);
        self.timer = NEVER;
        if !self.armed {
            return false;
        }
        if at < self.deadline - self.runtime - LEAST {
            // hrtimer_forward_now
            let step = (self.deadline - at - self.runtime) as u64;
            self.timer = expired + ((shown - expired) / step + 1) * step;
            return false;
        }
        self.running = true;
        if self.overflows(at) {
            self.begin_period(at);
        }
        while self.runtime <= 0 {
            self.deadline += PERIOD;
            self.runtime += RUNTIME;
        }
        if self.deadline < at {
            self.begin_period(at);
        }
        self.armed = false;
        true
    }

    /// The time of inactivity has begun.
    pub(super) const fn end_activity(&mut self) {
        self.inactive = NEVER;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: u64 = 4_000_000;

    const fn jiffy(at: u64) -> u64 {
        at - at % TICK
    }

    /// The timers that a 6.12 of 250 Hz printed, with a process at 4.336384 ms and others every few milliseconds.
    #[test]
    fn its_timers_are_those_that_a_kernel_printed() {
        let mut server = FairServer::new();
        let run = |server: &mut FairServer, at: u64| {
            server.wake(at, jiffy(at));
            server.sleep(at, jiffy(at));
        };
        run(&mut server, 4_336_384);
        assert_eq!(server.timer(), 954_336_384);
        (1..135).for_each(|n| run(&mut server, 4_336_384 + n * 7_000_000));
        run(&mut server, 950_753_536);
        run(&mut server, 952_092_928);
        assert!(!server.expire(954_336_512, 952_000_000));
        assert_eq!(server.timer(), 1_006_336_384);
        run(&mut server, 1_005_668_864);
        assert!(server.expire(1_006_336_512, 1_004_000_000));
        server.stop(1_006_336_512, 1_004_000_000);
        assert_eq!((server.timer(), server.inactive()), (NEVER, 1_006_336_512));
        server.end_activity();
        // In the same tick once more.
        run(&mut server, 1_007_008_512);
        assert_eq!(server.inactive(), 1_007_008_512);
        server.end_activity();
        run(&mut server, 1_008_347_904);
        assert!(server.inactive() > 1_050_000_000);
    }
}
