//! How FreeBSD's RACK stack spreads bursts without pacing.
//!
//! Source: tcp_stacks/rack.c (rack_get_pacing_delay without rc_always_pace; `use_pacing` 0 is "only
//! the original burst mitigation"). A call that sent data is followed by a pause of whole
//! milliseconds: the time the data takes at a rate of the largest window per minimum RTT, less a
//! quarter. [`crate::hpts_rack`] enforces the pause.

use units::Duration;

/// The knobs of the burst mitigation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct BurstLimit {
    /// The pause is shortened by one part in this number; 0 for none, 1 for all
    /// (`rack_slot_reduction`).
    pub reduction: u32,
    /// Maximum number of segments per call (`rack_hptsi_segments`).
    pub segments: u32,
}

impl BurstLimit {
    /// The defaults of 14.3 and main.
    pub const DEFAULT: Self = Self { reduction: 4, segments: 40 };
}

/// The windows from which pauses are computed.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct BurstWindow {
    limit: BurstLimit,
    /// Window of the last call that could send (`cwnd_to_use`).
    window: u64,
    /// Largest such window at the time of an acknowledgment (`rc_rack_largest_cwnd`).
    largest: u64,
}

impl BurstWindow {
    /// The state before anything is sent.
    pub const fn new(limit: BurstLimit) -> Self {
        Self { limit, window: 0, largest: 0 }
    }

    /// A call may send with this window.
    pub const fn begin(&mut self, window: u64) {
        self.window = window;
    }

    /// Window of the last call (`cwnd_to_use`).
    pub const fn window(&self) -> u64 {
        self.window
    }

    /// Maximum bytes per call.
    pub fn most(&self, mss: u64) -> u64 {
        u64::from(self.limit.segments) * mss
    }

    /// An acknowledgment is processed (rack_ack_received).
    pub fn on_ack(&mut self) {
        self.largest = self.largest.max(self.window);
    }

    /// The pause after a call that sent `bytes`; `rtt_us` is the minimum RTT (`rc_rack_min_rtt`),
    /// else the smoothed one, in microseconds.
    pub fn pause(&self, bytes: u64, rtt_us: u64, mss: u64) -> Duration {
        let window = if self.largest > 0 { self.largest } else { self.window };
        let per_ms = match window * 1_000 / rtt_us.max(1) {
            0 => mss.max(1),
            bytes => bytes,
        };
        let ms = bytes / per_ms;
        let less = ms.checked_div(u64::from(self.limit.reduction)).unwrap_or(0);
        Duration::from_millis(ms - less)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pause(reduction: u32, bytes: u64) -> u64 {
        let mut burst = BurstWindow::new(BurstLimit { reduction, ..BurstLimit::DEFAULT });
        burst.begin(14_480);
        burst.pause(bytes, 45_000, 1_448).as_micros() / 1_000
    }

    #[test]
    fn ten_segments_of_ten_take_three_quarters_of_a_round_trip() {
        // 14,480,000 / 45,000 is 321 bytes a millisecond; 14,480 / 321 is 45, less 45 / 4.
        assert_eq!((pause(4, 14_480), pause(4, 2_896)), (34, 7));
        // Less data than one millisecond's worth causes no pause; a pause of one is not shortened.
        assert_eq!((pause(4, 320), pause(4, 321)), (0, 1));
        assert_eq!((pause(0, 2_896), pause(1, 2_896)), (9, 0));
    }

    #[test]
    fn the_largest_window_counts_after_an_acknowledgment() {
        let mut burst = BurstWindow::new(BurstLimit::DEFAULT);
        burst.begin(28_960);
        burst.on_ack();
        burst.begin(1_448);
        // 643 bytes a millisecond: 4, less 1.
        assert_eq!(burst.pause(2_896, 45_000, 1_448), Duration::from_millis(3));
    }
}
