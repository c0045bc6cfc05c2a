//! What an output call leaves for its next pass, and for the pacing rate.

use units::Offset;
use units::ratio::scaled;

use crate::send_buffer::DeviceLimits;

/// Number of full packets of new data that may follow the last one; the lowest bit is set if they
/// fill the congestion window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub(crate) struct PacketBatch(u64);

impl PacketBatch {
    /// No packet: the next pass decides anew.
    pub(crate) const NONE: Self = Self(0);

    /// A batch of `packets`.
    pub(super) const fn new(packets: u64, fills_window: bool) -> Self {
        Self(packets << 1 | fills_window as u64)
    }

    #[inline(always)]
    pub(super) const fn packets(self) -> u64 {
        self.0 >> 1
    }

    #[inline(always)]
    pub(super) const fn fills_window(self) -> bool {
        self.0 & 1 != 0
    }

    #[inline(always)]
    pub(super) const fn take_one(&mut self) {
        self.0 -= 2;
    }
}

/// Inputs of `sk_pacing_rate`, recorded with every acknowledgment; the rate itself is computed on
/// demand.
#[derive(Debug, Clone, Copy, Default, serde::Deserialize, serde::Serialize)]
pub(crate) struct Pacing {
    /// Eight times the smoothed round trip; 0 before the first sample.
    pub(super) srtt_us: u32,
    pub(super) mss: u32,
    pub(super) cwnd: u64,
    pub(super) ssthresh: u64,
    pub(super) packets_out: u64,
}

impl Pacing {
    /// Bytes per second; 0 before the first round-trip sample.
    pub(crate) fn rate(&self) -> u64 {
        if self.srtt_us == 0 {
            return 0;
        }
        let mss = u64::from(self.mss);
        let cwnd = self.cwnd / mss;
        let percent = if cwnd < self.ssthresh / mss / 2 { 200 } else { 120 };
        scaled(cwnd.max(self.packets_out) * mss * percent, 80_000, u64::from(self.srtt_us))
    }
}

/// The output call of a write.
#[derive(Debug, Clone, Copy, serde::Deserialize, serde::Serialize)]
pub(crate) struct WriteCall {
    /// Length of the packet at the end of the write queue; 0 if it is full.
    pub(super) tail: u64,
    /// The device before the write, if it holds packets.
    pub(super) device: Option<DeviceLimits>,
    /// End of what is sent while the write goes on, without deferral (tcp_push_one).
    pub(super) pushed: Offset,
    /// `MSG_MORE`: tcp_push with TCP_NAGLE_CORK.
    pub(super) more: bool,
}

impl WriteCall {
    /// End of what tcp_push_one sends while the write goes on.
    pub(crate) const fn pushed(&self) -> Offset {
        self.pushed
    }
}
