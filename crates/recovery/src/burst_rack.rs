//! How FreeBSD's RACK stack spreads bursts though it does not pace.
//!
//! Source: tcp_stacks/rack.c (rack_get_pacing_delay without rc_always_pace, rack_start_hpts_timer,
//! rack_output, rack_fast_rsm_output; `use_pacing` 0 is "only the original burst mitigation"). A call
//! that has sent is followed by a wait of whole milliseconds: what it sent takes so long at the largest
//! window a least round trip, less a quarter. Meanwhile no call sends anything, acknowledgments
//! included, unless a loss was found, a timer fired or all is acknowledged.

use units::{Duration, Instant};

/// The knobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct BurstLimit {
    /// The wait is shortened by this share of it; 0 is none, 1 all (`rack_slot_reduction`).
    pub reduction: u32,
    /// Segments one call sends at most (`rack_hptsi_segments`).
    pub segments: u32,
}

impl BurstLimit {
    /// The defaults of 14.3 and main.
    pub const DEFAULT: Self = Self { reduction: 4, segments: 40 };
}

/// What a wait depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Road {
    /// Least round trip (`rc_rack_min_rtt`), else the smoothed one; in microseconds.
    pub rtt_us: u64,
    /// Payload of a full segment.
    pub mss: u64,
    /// The wait after a retransmission (`rc_min_to`).
    pub least_wait: Duration,
}

/// One connection.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct Burst {
    limit: BurstLimit,
    /// The window of the last call that was let through (`cwnd_to_use`).
    window: u64,
    /// The largest of these when an acknowledgment came (`rc_rack_largest_cwnd`).
    largest: u64,
    /// Bytes the call has sent (`tot_len_this_send`), and is any of it a retransmission?
    sent: u64,
    resent: bool,
    /// No call before this sends anything (`rc_last_output_to`).
    until: Option<Instant>,
    /// What was left of a wait that was cut short (`rc_agg_early`): the next one is so much longer.
    early: Duration,
}

impl Burst {
    /// Nothing was sent yet.
    pub const fn new(limit: BurstLimit) -> Self {
        let (until, early) = (None, Duration::ZERO);
        Self { limit, window: 0, largest: 0, sent: 0, resent: false, until, early }
    }

    /// When calls are let through again, if they are held back.
    pub const fn held_until(&self) -> Option<Instant> {
        self.until
    }

    /// A call is let through, with this window.
    pub const fn begin(&mut self, window: u64) {
        self.window = window;
        self.until = None;
    }

    /// Bytes the call may still send.
    pub fn room(&self, mss: u64) -> u64 {
        (u64::from(self.limit.segments) * mss).saturating_sub(self.sent)
    }

    /// The call has sent so much, `again` or for the first time.
    pub const fn on_sent(&mut self, bytes: u64, again: bool) {
        self.sent += bytes;
        self.resent |= again;
    }

    /// An acknowledgment is worked off (rack_ack_received).
    pub fn on_ack(&mut self) {
        self.largest = self.largest.max(self.window);
    }

    /// The call ends: tells until when the next one waits.
    pub fn end(&mut self, now: Instant, road: &Road) -> Option<Instant> {
        let early = core::mem::replace(&mut self.early, Duration::ZERO);
        if self.sent == 0 {
            return None;
        }
        let wait = early + if self.resent { road.least_wait } else { self.wait(road) };
        (self.sent, self.resent) = (0, false);
        self.until = (!wait.is_zero()).then(|| now + wait);
        self.until
    }

    fn wait(&self, road: &Road) -> Duration {
        let window = if self.largest > 0 { self.largest } else { self.window };
        let per_ms = match window * 1_000 / road.rtt_us.max(1) {
            0 => road.mss.max(1),
            bytes => bytes,
        };
        let ms = self.sent / per_ms;
        let less = ms.checked_div(u64::from(self.limit.reduction)).unwrap_or(0);
        Duration::from_millis(ms - less)
    }

    /// A loss begins a recovery, or a probe or a timeout is due: the call goes through
    /// (`r_timer_override`).
    pub fn cut_short(&mut self, now: Instant) {
        if let Some(until) = self.until.take() {
            self.early += until.since(now);
        }
    }

    /// The reordering timer found a loss, or nothing is under way: the wait is over
    /// (rack_timeout_rack, rack_timer_cancel clear PACE_PKT_OUTPUT).
    pub const fn drop_wait(&mut self) {
        self.until = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROAD: Road = Road { rtt_us: 45_000, mss: 1_448, least_wait: Duration::from_millis(1) };

    fn ms(at: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(at)
    }

    fn burst(reduction: u32) -> Burst {
        let mut burst = Burst::new(BurstLimit { reduction, ..BurstLimit::DEFAULT });
        burst.begin(14_480);
        burst
    }

    #[test]
    fn ten_segments_of_ten_take_three_quarters_of_a_round_trip() {
        // 14,480,000 / 45,000 is 321 bytes a millisecond; 14,480 / 321 is 45, less 45 / 4.
        let wait = |reduction, bytes| {
            let mut burst = burst(reduction);
            burst.on_sent(bytes, false);
            burst.end(ms(100), &ROAD).map(|at| at.since(ms(100)).as_micros() / 1_000)
        };
        assert_eq!(wait(4, 14_480), Some(34));
        assert_eq!(wait(4, 2_896), Some(7));
        // Less than a millisecond's worth goes at once; nothing to be taken off a wait of one.
        assert_eq!((wait(4, 320), wait(4, 321)), (None, Some(1)));
        assert_eq!((wait(0, 2_896), wait(1, 2_896)), (Some(9), None));
    }

    #[test]
    fn the_largest_window_counts_once_an_acknowledgment_came() {
        let mut burst = burst(4);
        burst.begin(28_960);
        burst.on_ack();
        burst.begin(1_448);
        burst.on_sent(2_896, false);
        // 643 bytes a millisecond: 4, less 1.
        assert_eq!(burst.end(ms(0), &ROAD), Some(ms(3)));
    }

    #[test]
    fn a_retransmission_waits_a_millisecond_and_what_was_cut_short() {
        let mut burst = burst(4);
        burst.on_sent(2_896, false);
        assert_eq!(burst.end(ms(0), &ROAD), Some(ms(7)));
        burst.cut_short(ms(3));
        assert_eq!(burst.held_until(), None);
        burst.begin(14_480);
        burst.on_sent(1_448, true);
        assert_eq!(burst.end(ms(3), &ROAD), Some(ms(8)));
        burst.drop_wait();
        burst.begin(14_480);
        burst.on_sent(1_448, true);
        assert_eq!(burst.end(ms(9), &ROAD), Some(ms(10)));
    }

    #[test]
    fn a_call_sends_forty_segments_at_most() {
        let mut burst = burst(4);
        burst.on_sent(39 * 1_448, false);
        assert_eq!(burst.room(1_448), 1_448);
    }
}
