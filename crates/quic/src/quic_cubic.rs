//! CUBIC of quinn-proto 0.11.19 (`congestion/cubic.rs`), which follows RFC 8312.
//!
//! It differs from RFC 9438 in that the window of a Reno flow is `W_max beta + 3 (1 - beta)/(1 + beta) t/RTT`
//! (RFC 8312 section 4.2), grows by whole datagrams whose excess is dropped, at most one for each packet
//! acknowledged, and that a recovery restarts only with a packet sent after it began.

use cc::quic_newreno::{PacketAcked, PacketsLost};
use cc::{Control, Growth, WindowChange};
use units::{Bytes, Duration, Instant, maths};

/// Share of the window kept at a loss.
const BETA: f64 = 0.7;
/// Scaling of the cubic function, in datagrams per second cubed.
const C: f64 = 0.4;
/// Largest initial window in bytes, and for which datagram it is ten of them.
const INITIAL_WINDOW: u64 = 12_000;

/// CUBIC of one connection.
#[derive(Debug, Clone)]
pub(crate) struct QuinnCubic {
    datagram: u64,
    window: u64,
    ssthresh: Option<u64>,
    /// Begin of the recovery, or of congestion avoidance.
    since: Option<Instant>,
    in_recovery: bool,
    /// Window before the last reduction, in bytes.
    w_max: f64,
    /// Time until `w_max` is regained, in seconds.
    k: f64,
    /// Bytes by which the window is to grow.
    increment: u64,
}

impl QuinnCubic {
    pub(crate) const fn new(datagram: u32) -> Self {
        Self {
            datagram: datagram as u64,
            // `14720.clamp(2 * 1200, 10 * 1200)`, for any datagram.
            window: INITIAL_WINDOW,
            ssthresh: None,
            since: None,
            in_recovery: false,
            w_max: 0.0,
            k: 0.0,
            increment: 0,
        }
    }

    const fn minimum(&self) -> u64 {
        2 * self.datagram
    }

    fn belongs_to_recovery(&self, sent: Instant) -> bool {
        self.since.is_some_and(|since| sent <= since)
    }

    /// An acknowledged packet grows the window.
    pub(crate) fn on_packet_acked(
        &mut self,
        now: Instant,
        acked: &PacketAcked,
        smoothed: Duration,
    ) -> WindowChange {
        if acked.underused || self.belongs_to_recovery(acked.sent) {
            return WindowChange::None;
        }
        let recovered = core::mem::take(&mut self.in_recovery);
        let unchanged = if recovered { WindowChange::RecoveryEnded } else { WindowChange::None };
        if self.ssthresh.is_none_or(|ssthresh| self.window < ssthresh) {
            self.window += acked.size;
            return WindowChange::Grew(Growth::SlowStart);
        }
        let since = *self.since.get_or_insert_with(|| {
            (self.w_max, self.k) = (self.window as f64, 0.0);
            now
        });
        let goal = self.goal(now.since(since), smoothed);
        self.increment = self.increment.saturating_add(goal - self.window);
        if self.increment < self.datagram {
            return unchanged;
        }
        self.window += self.datagram;
        self.increment = 0;
        WindowChange::Grew(Growth::Avoidance)
    }

    /// The window after this packet, `t` after the recovery began; at least the present one.
    fn goal(&self, t: Duration, smoothed: Duration) -> u64 {
        let datagram = self.datagram as f64;
        let w_max = self.w_max / datagram;
        let after = (t + smoothed).as_secs_f64() - self.k;
        let (t, rtt) = (t.as_secs_f64(), smoothed.as_secs_f64());
        let cubic = (C * (after * after * after) + w_max) * datagram;
        let reno = (w_max * BETA + 3.0 * (1.0 - BETA) / (1.0 + BETA) * t / rtt) * datagram;
        let window = self.window as f64;
        if cubic < reno {
            return self.window.max(reno as u64);
        }
        if self.window < cubic as u64 {
            return self.window.saturating_add(((cubic - window) / window * datagram) as u64);
        }
        self.window
    }

    /// Losses reduce the window once for a recovery.
    pub(crate) fn on_packets_lost(&mut self, lost: &PacketsLost) -> WindowChange {
        if self.belongs_to_recovery(lost.sent) {
            return WindowChange::None;
        }
        self.since = Some(lost.now);
        self.in_recovery = true;
        let window = self.window as f64;
        // Fast convergence.
        self.w_max = if window < self.w_max { window * (1.0 + BETA) / 2.0 } else { window };
        self.window = ((window * BETA) as u64).max(self.minimum());
        self.ssthresh = Some(self.window);
        self.k = maths::cbrt(self.w_max / self.datagram as f64 * (1.0 - BETA) / C);
        self.increment = (self.increment as f64 * BETA) as u64;
        if !lost.persistent {
            return WindowChange::RecoveryBegan;
        }
        self.since = None;
        self.in_recovery = false;
        self.w_max = self.window as f64;
        self.ssthresh = Some(((self.window as f64 * BETA) as u64).max(self.minimum()));
        self.increment = 0;
        self.window = self.minimum();
        WindowChange::Collapsed
    }

    pub(crate) fn control(&self) -> Control {
        Control { window: Bytes(self.window), ssthresh: self.ssthresh.map(Bytes), pacing: None }
    }

    pub(crate) const fn in_recovery(&self) -> bool {
        self.in_recovery
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn acked(sent: u64) -> PacketAcked {
        PacketAcked {
            sent: Instant::from_nanos(sent),
            size: 1_200,
            flight_is_empty: false,
            underused: false,
        }
    }

    fn lost(at: u64, persistent: bool) -> PacketsLost {
        let at = Instant::from_nanos(at);
        PacketsLost { now: at, sent: at, persistent }
    }

    #[test]
    fn a_loss_keeps_seven_tenths_and_fast_convergence_lowers_the_goal() {
        let mut cubic = QuinnCubic::new(1_200);
        for number in 0..90 {
            let _ = cubic.on_packet_acked(Instant::from_nanos(MS), &acked(number), Duration::ZERO);
        }
        // 12,000 bytes and 90 packets.
        assert_eq!(cubic.window, 120_000);
        assert_eq!(cubic.on_packets_lost(&lost(2 * MS, false)), WindowChange::RecoveryBegan);
        assert_eq!((cubic.window, cubic.w_max), (84_000, 120_000.0));
        // K = cbrt(100 * 0.3 / 0.4).
        assert!((cubic.k - 4.217).abs() < 0.001, "{}", cubic.k);
        // Packets of the same flight do not reduce it again.
        assert_eq!(cubic.on_packets_lost(&lost(MS, false)), WindowChange::None);
        let _ = cubic.on_packets_lost(&lost(3 * MS, false));
        // 84,000 times the double nearest to 0.7 is a little below 58,800.
        assert_eq!((cubic.window, cubic.w_max), (58_799, 71_400.0));
        assert_eq!(cubic.on_packets_lost(&lost(4 * MS, true)), WindowChange::Collapsed);
        assert_eq!(cubic.window, 2_400);
    }

    #[test]
    fn the_window_is_regained_after_k() {
        let mut cubic = QuinnCubic::new(1_200);
        cubic.window = 120_000;
        let _ = cubic.on_packets_lost(&lost(0, false));
        // Acknowledged as fast as the window allows, at 100 ms.
        let rtt = Duration::from_millis(100);
        let mut now = 0;
        while now < 4_217 * MS {
            now += rtt.as_nanos() / (cubic.window / 1_200);
            let _ = cubic.on_packet_acked(Instant::from_nanos(now), &acked(now), rtt);
        }
        assert!((114_000..=122_000).contains(&cubic.window), "{}", cubic.window);
    }
}
