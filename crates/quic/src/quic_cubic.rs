//! CUBIC of QUIC stacks, packet by packet: that of quinn-proto 0.11.19 (`congestion/cubic.rs`), which follows RFC
//! 8312, and that of RFC 9438 with the choices of other stacks.
//!
//! quinn's differs from RFC 9438 in that the window of a Reno flow is `W_max beta + 3 (1 - beta)/(1 + beta) t/RTT`
//! (RFC 8312 section 4.2) and that it grows by whole datagrams whose excess is dropped. All grow at most one
//! datagram for each packet acknowledged, and reduce the window again only for a packet sent after the recovery
//! began.

use cc::quic_newreno::{PacketAcked, PacketsLost};
use cc::{Control, Growth, WindowChange};
use units::{Bytes, Duration, Instant, maths};

use crate::prr::QuicRateReduction;

/// Share of the window kept at a loss.
const BETA: f64 = 0.7;
/// Scaling of the cubic function, in datagrams per second cubed.
const C: f64 = 0.4;
/// Growth of a Reno flow in datagrams per window acknowledged, before `W_max` is reached (RFC 9438 section 4.3).
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
/// The goal is at most this number of windows (RFC 9438 section 4.4).
const MOST: f64 = 1.5;

/// Choices of a stack within RFC 9438.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuicCubicParams {
    /// The time of the cubic function runs from the first packet acknowledged after a recovery (RFC 9438 section
    /// 4.2); else from the recovery's begin.
    pub epoch_at_first_ack: bool,
    /// The goal is that of a smallest round trip later; else of a smoothed one.
    pub ahead_by_min_rtt: bool,
    /// A reduction is undone with the first packet acknowledged after the recovery, or a later one, for which
    /// fewer packets were lost.
    pub rollback: Option<CubicRollback>,
    /// Slow start counts acknowledged bytes and grows by a datagram for each of it.
    pub grows_by_datagrams: bool,
    /// Acknowledgments in a recovery allow more than the window (RFC 6937).
    pub rate_reduction: bool,
    /// The acknowledgment of a packet declared lost undoes the last reduction.
    pub undoes_spurious: bool,
}

impl QuicCubicParams {
    /// The recommended choices.
    pub const RFC9438: Self = Self {
        epoch_at_first_ack: false,
        ahead_by_min_rtt: false,
        rollback: None,
        grows_by_datagrams: false,
        rate_reduction: false,
        undoes_spurious: false,
    };
}

/// How few losses count as none (quiche, `ROLLBACK_THRESHOLD_PERCENT`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CubicRollback {
    /// Percentage of the packets of the window at that time.
    pub percent: u64,
    /// Packets, if those are more.
    pub least: u64,
}

/// What an ACK frame says beside its packets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CubicAck {
    /// Round trips.
    pub(crate) smoothed: Duration,
    pub(crate) min: Duration,
    /// Bytes in flight before the packets are removed.
    pub(crate) flight: u64,
    /// By this the growth of slow start is divided.
    pub(crate) divisor: u64,
}

/// The window before a reduction.
#[derive(Debug, Clone, Copy)]
struct CubicCheckpoint {
    window: u64,
    ssthresh: Option<u64>,
    since: Option<Instant>,
    w_max: f64,
    k: f64,
    /// Packets lost since.
    lost: u64,
}

/// CUBIC of one connection.
#[derive(Debug, Clone)]
pub(crate) struct QuicCubic {
    /// `None`: quinn's law.
    params: Option<QuicCubicParams>,
    datagram: u64,
    /// Least window in bytes.
    least: u64,
    window: u64,
    ssthresh: Option<u64>,
    /// Begin of the recovery, or of congestion avoidance.
    since: Option<Instant>,
    /// Begin of the cubic function, if it is later.
    epoch: Option<Instant>,
    in_recovery: bool,
    /// Window before the last reduction, in bytes.
    w_max: f64,
    /// Time until `w_max` is regained, in seconds.
    k: f64,
    /// Bytes by which the window is to grow.
    increment: u64,
    /// Window of a Reno flow in bytes (RFC 9438 section 4.3).
    w_est: f64,
    checkpoint: Option<CubicCheckpoint>,
    /// Begin of the conservative slow start that was the last.
    conservative: Option<Instant>,
    /// Bytes counted towards the next growth of slow start.
    counted: u64,
    reduction: QuicRateReduction,
}

impl QuicCubic {
    /// A controller in slow start with this window in bytes.
    pub(crate) const fn new(params: Option<QuicCubicParams>, datagram: u32, window: u64) -> Self {
        Self {
            params,
            w_est: 0.0,
            checkpoint: None,
            conservative: None,
            counted: 0,
            reduction: QuicRateReduction::NONE,
            datagram: datagram as u64,
            least: 2 * datagram as u64,
            window,
            ssthresh: None,
            since: None,
            epoch: None,
            in_recovery: false,
            w_max: 0.0,
            k: 0.0,
            increment: 0,
        }
    }

    /// Full datagrams have this size from now on.
    pub(crate) fn set_datagram(&mut self, datagram: u64) {
        self.datagram = datagram;
        self.least = 2 * datagram;
        self.window = self.window.max(self.least);
    }

    fn belongs_to_recovery(&self, sent: Instant) -> bool {
        self.since.is_some_and(|since| sent <= since)
    }

    /// A packet in flight is sent.
    pub(crate) const fn on_sent(&mut self, size: u64) {
        self.reduction.on_sent(size);
    }

    /// Bytes that may be sent beside the room in the window.
    pub(crate) const fn beside_window(&self) -> u64 {
        self.reduction.allowed()
    }

    /// An acknowledged packet grows the window.
    pub(crate) fn on_packet_acked(
        &mut self,
        now: Instant,
        acked: &PacketAcked,
        ack: CubicAck,
    ) -> WindowChange {
        if self.belongs_to_recovery(acked.sent) {
            if self.params.is_some_and(|params| params.rate_reduction) {
                let ssthresh = self.ssthresh.unwrap_or(self.window);
                self.reduction.on_acked(acked.size, ack.flight, ssthresh, self.datagram);
            }
            return WindowChange::None;
        }
        if acked.underused {
            return WindowChange::None;
        }
        let recovered = core::mem::take(&mut self.in_recovery);
        let unchanged = if recovered { WindowChange::RecoveryEnded } else { WindowChange::None };
        // The fifth of a window grows with it, so that a reduction may be undone later (quiche, `on_packet_acked`).
        if self.since.is_some() && self.roll_back() {
            let later = WindowChange::Grew(Growth::Avoidance);
            return if recovered { WindowChange::RecoveryEnded } else { later };
        }
        if recovered && self.params.is_some_and(|params| params.epoch_at_first_ack) {
            self.epoch = Some(now);
        }
        if self.in_slow_start() {
            self.grow_in_slow_start(acked.size, ack.divisor);
            return WindowChange::Grew(Growth::SlowStart);
        }
        let since = self.conservative.or(self.since);
        if since.is_none() || self.conservative.is_some() && self.w_max == 0.0 {
            (self.w_max, self.k, self.w_est) = (self.window as f64, 0.0, self.window as f64);
        }
        let since = since.unwrap_or(now);
        if self.conservative.is_none() {
            self.since = Some(since);
        }
        let t = now.since(self.epoch.unwrap_or(since));
        let goal = match self.params {
            None => self.quinn_goal(t, ack.smoothed),
            Some(params) if params.ahead_by_min_rtt => self.goal(t, ack.min, acked.size),
            Some(_) => self.goal(t, ack.smoothed, acked.size),
        };
        self.increment = self.increment.saturating_add(goal - self.window);
        if self.increment < self.datagram {
            return unchanged;
        }
        self.window += self.datagram;
        self.increment = if self.params.is_some() { self.increment - self.datagram } else { 0 };
        WindowChange::Grew(Growth::Avoidance)
    }

    fn grow_in_slow_start(&mut self, size: u64, divisor: u64) {
        if !self.params.is_some_and(|params| params.grows_by_datagrams) {
            self.window += size / divisor;
            return;
        }
        self.counted += size;
        if self.counted >= self.datagram {
            self.counted -= self.datagram;
            self.window += self.datagram / divisor;
        }
    }

    /// The window of RFC 9438 section 4 after a packet of `size` bytes, at least the present one.
    fn goal(&mut self, t: Duration, ahead: Duration, size: u64) -> u64 {
        let (datagram, window) = (self.datagram as f64, self.window as f64);
        let alpha = if self.w_est >= self.w_max { 1.0 } else { ALPHA };
        self.w_est += alpha * size as f64 / window * datagram;
        let cubic = |t: Duration| {
            let after = t.as_secs_f64() - self.k;
            C * (after * after * after) * datagram + self.w_max
        };
        if cubic(t) < self.w_est {
            return self.window.max(self.w_est as u64);
        }
        let target = cubic(t + ahead).clamp(window, MOST * window);
        self.window + ((target - window) / window * datagram) as u64
    }

    /// Undoes the last reduction, if so few packets were lost that the stack takes it for chance.
    fn roll_back(&mut self) -> bool {
        let rule = self.params.and_then(|params| params.rollback);
        let (Some(rule), Some(before)) = (rule, self.checkpoint) else { return false };
        let few = (self.window / self.datagram * rule.percent / 100).max(rule.least);
        before.lost < few && self.restore()
    }

    /// A packet declared lost is acknowledged.
    pub(crate) fn on_spurious_loss(&mut self) -> WindowChange {
        if self.params.is_some_and(|params| params.undoes_spurious) && self.restore() {
            return WindowChange::Grew(Growth::Avoidance);
        }
        WindowChange::None
    }

    /// Restores the state before the last reduction, but neither slow start nor a smaller window.
    fn restore(&mut self) -> bool {
        let Some(before) = self.checkpoint else { return false };
        let in_slow_start = before.ssthresh.is_none_or(|ssthresh| before.window < ssthresh);
        if in_slow_start || self.window >= before.window {
            return false;
        }
        (self.window, self.ssthresh, self.since) = (before.window, before.ssthresh, before.since);
        (self.w_max, self.k) = (before.w_max, before.k);
        true
    }

    /// Is the window below the threshold?
    pub(crate) fn in_slow_start(&self) -> bool {
        self.ssthresh.is_none_or(|ssthresh| self.window < ssthresh)
    }

    /// Ends slow start with the present window. Of a sender that grows by datagrams (quiche) the time of the cubic
    /// function then runs from the begin of `conservative` slow start.
    pub(crate) const fn leave_slow_start(&mut self, conservative: Option<Instant>) {
        self.ssthresh = Some(self.window);
        if let Some(QuicCubicParams { grows_by_datagrams: true, .. }) = self.params {
            self.conservative = conservative;
        }
    }

    /// quinn's window after this packet, `t` after the recovery began; at least the present one.
    fn quinn_goal(&self, t: Duration, smoothed: Duration) -> u64 {
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

    /// Losses reduce the window once for a recovery; `flight` are the bytes in flight with those lost.
    pub(crate) fn on_packets_lost(&mut self, lost: &PacketsLost, flight: u64) -> WindowChange {
        if self.belongs_to_recovery(lost.sent) {
            if let Some(before) = &mut self.checkpoint {
                before.lost += lost.packets;
            }
            return WindowChange::None;
        }
        self.checkpoint = Some(CubicCheckpoint {
            window: self.window,
            ssthresh: self.ssthresh,
            since: self.since,
            w_max: self.w_max,
            k: self.k,
            lost: lost.packets,
        });
        self.reduction.begin(flight);
        self.conservative = None;
        self.epoch = None;
        self.since = Some(lost.now);
        self.in_recovery = true;
        let window = self.window as f64;
        // Fast convergence.
        self.w_max = if window < self.w_max { window * (1.0 + BETA) / 2.0 } else { window };
        self.window = ((window * BETA) as u64).max(self.least);
        self.ssthresh = Some(self.window);
        self.w_est = self.window as f64;
        self.k = match self.params {
            None => maths::cbrt(self.w_max / self.datagram as f64 * (1.0 - BETA) / C),
            Some(_) => {
                let missing = (self.w_max - self.window as f64).max(0.0);
                maths::cbrt(missing / self.datagram as f64 / C)
            }
        };
        self.increment = (self.increment as f64 * BETA) as u64;
        if !lost.persistent {
            return WindowChange::RecoveryBegan;
        }
        self.since = None;
        self.checkpoint = None;
        self.in_recovery = false;
        self.w_max = self.window as f64;
        self.ssthresh = Some(((self.window as f64 * BETA) as u64).max(self.least));
        self.increment = 0;
        self.window = self.least;
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
            order: sent,
            size: 1_200,
            flight_is_empty: false,
            underused: false,
            prior_flight: 0,
        }
    }

    fn trip(ms: u64) -> CubicAck {
        let rtt = Duration::from_millis(ms);
        CubicAck { smoothed: rtt, min: rtt, flight: 0, divisor: 1 }
    }

    const RFC: QuicCubicParams =
        QuicCubicParams { ahead_by_min_rtt: true, ..QuicCubicParams::RFC9438 };

    /// Acknowledges a window after the other until `end` ms, each packet a datagram.
    fn grow(cubic: &mut QuicCubic, from: u64, end: u64) {
        let mut now = from * MS;
        while now < end * MS {
            now += 100 * MS / (cubic.window / 1_200);
            let _ = cubic.on_packet_acked(Instant::from_nanos(now), &acked(now), trip(100));
        }
    }

    #[test]
    fn the_window_of_rfc_9438_is_regained_after_k() {
        let mut cubic = QuicCubic::new(Some(RFC), 1_200, 120_000);
        let _ = cubic.on_packets_lost(&lost(0, false), 0);
        // K = cbrt((100 - 70) / 0.4) s, one round trip ahead.
        assert!((cubic.k - 4.217).abs() < 0.001, "{}", cubic.k);
        grow(&mut cubic, 0, 4_217);
        assert!((117_000..=121_200).contains(&cubic.window), "{}", cubic.window);
        // Reno's is larger by then: 30 datagrams in 57 round trips, and one in each of the 15 after them.
        grow(&mut cubic, 4_217, 7_217);
        assert!((137_400..=139_800).contains(&cubic.window), "{}", cubic.window);
    }

    #[test]
    fn a_reno_flow_is_the_least_of_a_short_path() {
        // With a round trip of 10 ms a window of 20 datagrams is Reno's: 0.53 datagrams a round trip.
        let mut cubic = QuicCubic::new(Some(RFC), 1_200, 24_000);
        let _ = cubic.on_packets_lost(&lost(0, false), 0);
        let mut now = 0;
        while now < 100 * MS {
            now += 10 * MS / (cubic.window / 1_200);
            let _ = cubic.on_packet_acked(Instant::from_nanos(now), &acked(now), trip(10));
        }
        let grown = (cubic.window - 16_800) / 1_200;
        assert!((4..=6).contains(&grown), "{grown}");
    }

    #[test]
    fn few_losses_are_rolled_back_when_the_recovery_ends() {
        let rule = Some(CubicRollback { percent: 20, least: 2 });
        let params = QuicCubicParams { rollback: rule, ..RFC };
        for (packets, kept) in [(13, 120_000), (14, 84_000)] {
            let mut cubic = QuicCubic::new(Some(params), 1_200, 120_000);
            cubic.leave_slow_start(None);
            // 84,000 bytes are 70 datagrams, a fifth of them 14.
            let _ = cubic.on_packets_lost(&PacketsLost { packets, ..lost(MS, false) }, 0);
            assert_eq!(cubic.window, 84_000);
            let change =
                cubic.on_packet_acked(Instant::from_nanos(3 * MS), &acked(2 * MS), trip(1));
            assert_eq!(change, WindowChange::RecoveryEnded, "{packets}");
            assert_eq!(cubic.window, kept, "{packets}");
        }
        // Later, once 14 are less than a fifth of the window: of 75 datagrams.
        let mut cubic = QuicCubic::new(Some(params), 1_200, 120_000);
        cubic.leave_slow_start(None);
        let _ = cubic.on_packets_lost(&PacketsLost { packets: 14, ..lost(MS, false) }, 0);
        let mut now = 2 * MS;
        while cubic.window < 120_000 {
            let before = cubic.window;
            now += MS;
            let _ = cubic.on_packet_acked(Instant::from_nanos(now), &acked(now), trip(1));
            let undone = cubic.window == 120_000;
            assert_eq!(undone, before == 90_000, "{before}");
        }
        // Not what ended slow start.
        let mut cubic = QuicCubic::new(Some(params), 1_200, 120_000);
        let _ = cubic.on_packets_lost(&lost(MS, false), 0);
        let _ = cubic.on_packet_acked(Instant::from_nanos(3 * MS), &acked(2 * MS), trip(1));
        assert_eq!(cubic.window, 84_000);
    }

    fn lost(at: u64, persistent: bool) -> PacketsLost {
        let at = Instant::from_nanos(at);
        PacketsLost { now: at, sent: at, order: 0, latest: 0, persistent, packets: 1 }
    }

    #[test]
    fn what_a_recovery_delivers_may_be_sent_beside_the_window_and_a_spurious_loss_undoes_it() {
        let params = QuicCubicParams { rate_reduction: true, undoes_spurious: true, ..RFC };
        let mut cubic = QuicCubic::new(Some(params), 1_200, 120_000);
        cubic.leave_slow_start(None);
        let _ = cubic.on_packets_lost(&lost(2 * MS, false), 120_000);
        assert_eq!(cubic.beside_window(), 0);
        // In proportion: 1,200 of 120,000 delivered, times 84,000.
        let _ = cubic.on_packet_acked(
            Instant::from_nanos(3 * MS),
            &acked(MS),
            CubicAck { flight: 118_800, ..trip(1) },
        );
        assert_eq!((cubic.beside_window(), cubic.window), (840, 84_000));
        cubic.on_sent(800);
        assert_eq!(cubic.beside_window(), 40);
        assert_eq!(cubic.on_spurious_loss(), WindowChange::Grew(Growth::Avoidance));
        assert_eq!(cubic.window, 120_000);
        assert_eq!(cubic.on_spurious_loss(), WindowChange::None);
    }

    #[test]
    fn slow_start_grows_by_datagrams_where_it_counts_bytes() {
        let params = QuicCubicParams { grows_by_datagrams: true, ..RFC };
        let mut cubic = QuicCubic::new(Some(params), 1_200, 12_000);
        let small = PacketAcked { size: 700, ..acked(MS) };
        let windows = [12_000, 13_200, 13_200, 14_400];
        for window in windows {
            let _ = cubic.on_packet_acked(Instant::from_nanos(2 * MS), &small, trip(1));
            assert_eq!(cubic.window, window);
        }
        // Conservative slow start: a quarter of a datagram for each.
        let slow = CubicAck { divisor: 4, ..trip(1) };
        for window in [14_400, 14_700, 15_000, 15_000] {
            let _ = cubic.on_packet_acked(Instant::from_nanos(2 * MS), &small, slow);
            assert_eq!(cubic.window, window);
        }
    }

    #[test]
    fn a_loss_keeps_seven_tenths_and_fast_convergence_lowers_the_goal() {
        let mut cubic = QuicCubic::new(None, 1_200, 12_000);
        for number in 0..90 {
            let _ = cubic.on_packet_acked(Instant::from_nanos(MS), &acked(number), trip(0));
        }
        // 12,000 bytes and 90 packets.
        assert_eq!(cubic.window, 120_000);
        assert_eq!(cubic.on_packets_lost(&lost(2 * MS, false), 0), WindowChange::RecoveryBegan);
        assert_eq!((cubic.window, cubic.w_max), (84_000, 120_000.0));
        // K = cbrt(100 * 0.3 / 0.4).
        assert!((cubic.k - 4.217).abs() < 0.001, "{}", cubic.k);
        // Packets of the same flight do not reduce it again.
        assert_eq!(cubic.on_packets_lost(&lost(MS, false), 0), WindowChange::None);
        let _ = cubic.on_packets_lost(&lost(3 * MS, false), 0);
        // 84,000 times the double nearest to 0.7 is a little below 58,800.
        assert_eq!((cubic.window, cubic.w_max), (58_799, 71_400.0));
        assert_eq!(cubic.on_packets_lost(&lost(4 * MS, true), 0), WindowChange::Collapsed);
        assert_eq!(cubic.window, 2_400);
    }

    #[test]
    fn the_window_is_regained_after_k() {
        let mut cubic = QuicCubic::new(None, 1_200, 12_000);
        cubic.window = 120_000;
        let _ = cubic.on_packets_lost(&lost(0, false), 0);
        // Acknowledged as fast as the window allows, at 100 ms.
        let rtt = Duration::from_millis(100);
        let mut now = 0;
        while now < 4_217 * MS {
            now += rtt.as_nanos() / (cubic.window / 1_200);
            let _ = cubic.on_packet_acked(Instant::from_nanos(now), &acked(now), trip(100));
        }
        assert!((114_000..=122_000).contains(&cubic.window), "{}", cubic.window);
    }
}
