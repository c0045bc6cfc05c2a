//! Calls wait after a burst, where the system spreads them (FreeBSD's RACK stack).

use cc::Controller;
use record::Purpose;
use recovery::burst_rack::{Burst, Road};
use units::{Duration, Instant};

use crate::endpoint::Endpoint;
use crate::loss::Repair;

impl Endpoint {
    #[inline]
    fn burst(&mut self) -> Option<&mut Burst> {
        match &mut self.snd.repair {
            Repair::Timed(loss) => loss.judge.burst(),
            Repair::Holes(_) | Repair::Duplicates => None,
        }
    }

    /// Does a call have to wait? Then a timer brings the next one.
    #[inline]
    pub(crate) fn waits_after_burst(&mut self, now: Instant) -> bool {
        // Other systems ask this with every pass.
        self.burst().is_some() && self.is_held(now)
    }

    #[inline(never)]
    fn is_held(&mut self, now: Instant) -> bool {
        if self.snd.again.is_some() || self.snd.probe.is_some() || self.is_whole() {
            return false;
        }
        let until = self.burst().and_then(|burst| burst.held_until()).filter(|&until| until > now);
        if let Some(until) = until {
            self.timers.set(Purpose::Pacing, until);
        }
        until.is_some()
    }

    /// A call is let through.
    pub(crate) fn begin_burst(&mut self) {
        let window = self.cc.control().window.get();
        if let Some(burst) = self.burst() {
            burst.begin(window);
        }
    }

    /// Bytes the call may still send, where that is limited.
    #[inline]
    pub(crate) fn burst_room(&mut self) -> Option<u64> {
        let mss = self.mss();
        self.burst().map(|burst| burst.room(mss))
    }

    /// The call has sent `len` bytes, `again` or for the first time, and goes on if there is `more`.
    #[inline]
    pub(crate) fn burst_sent(&mut self, now: Instant, len: u64, again: bool, more: bool) {
        if self.burst().is_some() {
            self.count_burst(now, len, again, more);
        }
    }

    #[inline(never)]
    fn count_burst(&mut self, now: Instant, len: u64, again: bool, more: bool) {
        if let Some(burst) = self.burst() {
            burst.on_sent(len, again);
            if !more {
                self.end_burst(now);
            }
        }
    }

    /// The call ends.
    #[inline]
    pub(crate) fn end_burst(&mut self, now: Instant) {
        if self.burst().is_some() {
            self.plan_next_burst(now);
        }
    }

    #[inline(never)]
    fn plan_next_burst(&mut self, now: Instant) {
        let srtt = self.rtt.srtt().unwrap_or(Duration::ZERO);
        let mss = self.mss();
        let Repair::Timed(loss) = &mut self.snd.repair else { return };
        let Some((rtt, least_wait)) = loss.judge.road(srtt) else { return };
        let road = Road { rtt_us: rtt.as_micros(), mss, least_wait };
        if let Some(until) = loss.judge.burst().and_then(|burst| burst.end(now, &road)) {
            self.timers.set(Purpose::Pacing, until);
        }
    }
}
