//! Delayed acknowledgments of in-order data.
//!
//! FreeBSD: DELAY_ACK of tcp_input.c. Linux: __tcp_ack_snd_check, tcp_event_data_recv,
//! tcp_event_data_sent, tcp_fin, tcp_send_delayed_ack and tcp_cleanup_rbuf, as measured on Linux
//! 6.18 (golden/linux). ACKs for data after a gap are in `sack_compression`.

use units::{Duration, Instant, unlikely};

use crate::clock::KernelClock;
use crate::ecn::EcnArrival;
use crate::profile::{DelayedAckRule, SharedProfile};

/// Least retransmission timeout (`TCP_RTO_MIN`).
pub(crate) const RTO_MIN: Duration = Duration::from_millis(200);

/// Quick ACKs after an ECN mark.
const ECN_QUICK_ACKS: u32 = 2;

/// When to acknowledge a data segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AckDecision {
    /// Acknowledge at once.
    Now,
    /// Acknowledge within this time.
    Within(Duration),
    /// The segment is after a gap: Linux may compress its ACK.
    Compress,
}

/// The rule and its state.
#[derive(Debug, Clone, serde::Deserialize, serde::Serialize)]
pub(crate) struct DelayedAckPolicy {
    #[serde(skip, default = "SharedProfile::placeholder")]
    profile: SharedProfile,
    /// Linux: remaining quick ACKs.
    quick: u32,
    /// Linux: something received since the last ACK asks for one (`ICSK_ACK_SCHED`).
    scheduled: bool,
    /// Linux: ACK timeout in ticks, doubled when the timer fires; zero before the first data
    /// (`icsk_ack.ato`).
    ato: u16,
    /// Linux: data was sent in reply to data, or the peer has closed: the next segment of ours is
    /// expected to carry the ACK (`icsk_ack.pingpong`).
    pingpong: bool,
    /// Linux: segments since the last ACK that end a write of the peer, at most two
    /// (`ICSK_ACK_PUSHED`, `ICSK_ACK_PUSHED2`).
    pushed: u8,
    last_data: Option<Instant>,
    /// Linux: tick of the last data in order (`icsk_ack.lrcvtime`).
    last_tick: u32,
    /// Those of the profile.
    #[serde(skip)]
    limits: DelayLimits,
}

/// Limits of Linux's delay, in ticks.
#[derive(Debug, Clone, Copy, Default)]
struct DelayLimits {
    /// `TCP_ATO_MIN`.
    min: u16,
    /// `TCP_DELACK_MAX`.
    max: u16,
    /// Below the least retransmission timeout (tcp_delack_max), since 6.7.
    below_rto: u16,
    /// Most of the estimate (tcp_event_data_recv), since 6.7.
    max_ato: u16,
}

impl DelayLimits {
    fn new(profile: &SharedProfile) -> Self {
        let clock = KernelClock::new(profile.hz, Duration::ZERO, 0);
        let ticks = |span| narrow(clock.ticks(span));
        let (min, max, below) = match profile.acks {
            DelayedAckRule::Linux { min, max, below_rto_min, .. } => {
                (ticks(min), ticks(max), below_rto_min)
            }
            DelayedAckRule::FreeBsd { .. } | DelayedAckRule::Rfc { .. } => (0, 0, true),
        };
        let (below_rto, max_ato) =
            if below { (ticks(RTO_MIN).max(2) - 1, max) } else { (u16::MAX, u16::MAX) };
        Self { min, max, below_rto, max_ato }
    }
}

fn narrow(ticks: u64) -> u16 {
    u16::try_from(ticks).unwrap_or(u16::MAX)
}

/// In-order data, as the policies of FreeBSD and of the RFCs see it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InOrderArrival {
    pub(crate) now: Instant,
    /// Payload of the segment.
    pub(crate) len: u64,
    /// In-order payload not yet acknowledged, this segment included.
    pub(crate) unacked: u64,
    /// Payload of a full segment without options (`t_maxseg`).
    pub(crate) maxseg: u64,
    /// Payload of a full segment (`rcv_mss`).
    pub(crate) mss: u64,
    /// A delayed ACK is already pending.
    pub(crate) pending: bool,
    /// The last window sent was zero.
    pub(crate) window_was_zero: bool,
    /// It filled a gap.
    pub(crate) filled: bool,
}

/// A data segment, as Linux's policy sees it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LinuxArrival {
    pub(crate) now: Instant,
    /// Ticks counted at `now`.
    pub(crate) tick: u64,
    /// In-order payload not yet acknowledged, this segment included.
    pub(crate) unacked: u64,
    /// Payload of a full segment (`rcv_mss`).
    pub(crate) mss: u64,
    /// The window just grew.
    pub(crate) window_grew: bool,
    /// The space in the buffer allows a window as large as the last one advertised.
    pub(crate) window_holds: bool,
    /// The buffer is more than half full.
    pub(crate) tight: bool,
    /// Window last advertised (`rcv_wnd`).
    pub(crate) rcv_wnd: u64,
    /// Smoothed round trip, if known, in ticks.
    pub(crate) srtt: Option<u64>,
    /// Retransmission timeout in force, in ticks.
    pub(crate) rto: u64,
    /// Out-of-order data remains: the segment is after a gap or did not fill all of it.
    pub(crate) gap_left: bool,
    /// It filled a gap or a part of one.
    pub(crate) filled: bool,
    /// It ends a write of the peer.
    pub(crate) push: PushKind,
    /// ECN marks.
    pub(crate) ecn: EcnArrival,
}

/// Does a segment end a write of the peer, as tcp_measure_rcv_mss sees it?
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub(crate) enum PushKind {
    /// A full segment without PSH, or a small one that is the new size of segments.
    None,
    /// A full segment with PSH.
    Full,
    /// A small segment.
    Small,
}

impl DelayedAckPolicy {
    pub(crate) fn new(profile: &SharedProfile) -> Self {
        let limits = DelayLimits::new(profile);
        let profile = profile.clone();
        let (quick, scheduled, ato, pingpong, pushed) = (0, false, 0, false, 0);
        let (last_data, last_tick) = (None, 0);
        Self { profile, quick, scheduled, ato, pingpong, pushed, last_data, last_tick, limits }
    }

    /// When data was last received.
    pub(crate) const fn last_data(&self) -> Option<Instant> {
        self.last_data
    }

    /// The estimate of `tcp_info` in ticks: `icsk_ack.ato`, limited by tcp_delack_max.
    pub(crate) fn ato(&self) -> u64 {
        let DelayLimits { max, below_rto, .. } = self.limits;
        u64::from(self.ato.min(max).min(below_rto))
    }

    /// Replaces the profile with a shared equal one.
    pub(crate) fn share(&mut self, profile: &SharedProfile) {
        self.profile = profile.clone();
        self.limits = DelayLimits::new(profile);
    }

    /// Decides about in-order data; `None` on Linux, which needs more input
    /// ([`DelayedAckPolicy::on_data`]).
    #[inline(always)]
    pub(crate) fn on_in_order_data(&mut self, a: &InOrderArrival) -> Option<AckDecision> {
        let within = match self.profile.acks {
            DelayedAckRule::Linux { .. } => return None,
            _ if a.filled => None,
            DelayedAckRule::FreeBsd { delayed, timeout } => {
                let delay = delayed && !a.pending && !a.window_was_zero && a.len <= a.maxseg;
                delay.then_some(timeout)
            }
            DelayedAckRule::Rfc { timeout } => (a.unacked < 2 * a.mss).then_some(timeout),
        };
        self.last_data = Some(a.now);
        Some(within.map_or(AckDecision::Now, AckDecision::Within))
    }

    /// A SYN-ACK whose ACK waits for a pending write (tcp_rcv_synsent_state_process): that write
    /// is the answer.
    pub(crate) fn on_write_pending(&mut self, now: Instant, tick: u64) {
        if let DelayedAckRule::Linux { quick_acks, .. } = self.profile.acks {
            (self.last_data, self.last_tick) = (Some(now), tick as u32);
            self.ato = self.limits.min;
            self.quick = quick_acks;
        }
    }

    /// The connection is established: pauses are counted from here (`lrcvtime`).
    pub(crate) const fn on_established(&mut self, tick: u64) {
        self.last_tick = tick as u32;
    }

    /// Decides about in-order data on Linux; other systems acknowledge at once.
    pub(crate) fn on_data(&mut self, a: &LinuxArrival) -> AckDecision {
        self.scheduled = true;
        self.note_push(a.push);
        self.last_data = Some(a.now);
        // `lrcvtime` is a 32-bit number.
        let before = core::mem::replace(&mut self.last_tick, a.tick as u32);
        if !matches!(self.profile.acks, DelayedAckRule::Linux { .. }) {
            return AckDecision::Now;
        }
        self.follow(u64::from((a.tick as u32).wrapping_sub(before)), a);
        self.note_marks(a);
        let at_once = self.at_once(a);
        match a.gap_left {
            // tcp_data_queue: `ICSK_ACK_NOW` once the gap is filled.
            _ if at_once || (a.filled && !a.gap_left) => AckDecision::Now,
            true => AckDecision::Compress,
            false => AckDecision::Within(self.delay(a.srtt)),
        }
    }

    /// Decides about the FIN that ends an established connection's data on Linux; `None` on other
    /// systems (tcp_fin, then __tcp_ack_snd_check).
    pub(crate) fn on_fin(&mut self, a: &LinuxArrival) -> Option<AckDecision> {
        let DelayedAckRule::Linux { .. } = self.profile.acks else { return None };
        self.scheduled = true;
        self.pingpong = true;
        if self.at_once(a) {
            return Some(AckDecision::Now);
        }
        Some(AckDecision::Within(self.delay(a.srtt)))
    }

    /// tcp_event_data_sent: data sent soon after data was received is a reply.
    #[inline(always)]
    pub(crate) fn on_data_sent(&mut self, tick: impl FnOnce() -> u64) {
        if self.ato > 0 && !self.pingpong {
            self.pingpong = (tick() as u32).wrapping_sub(self.last_tick) < u32::from(self.ato);
        }
    }

    /// tcp_send_delayed_ack: the smoothed round trip limits the delay, and the least
    /// retransmission timeout (tcp_delack_max).
    fn delay(&self, srtt: Option<u64>) -> Duration {
        let DelayLimits { min, max, below_rto, .. } = self.limits;
        let by_rtt = srtt.map_or(max, |srtt| narrow(srtt).max(min));
        let ticks = self.ato.min(by_rtt).min(max).min(below_rto);
        KernelClock::new(self.profile.hz, Duration::ZERO, 0).span(ticks.into())
    }

    /// tcp_measure_rcv_mss.
    const fn note_push(&mut self, push: PushKind) {
        match push {
            PushKind::None => {}
            PushKind::Full if self.pushed > 0 => {}
            PushKind::Full => self.pushed = 1,
            PushKind::Small => self.pushed = if self.pushed > 0 { 2 } else { 1 },
        }
    }

    /// inet_csk_schedule_ack
    pub(crate) fn schedule(&mut self) {
        self.scheduled = true;
    }

    /// Decides about data after a gap.
    pub(crate) fn on_gap(&mut self, a: &LinuxArrival) -> AckDecision {
        self.scheduled = true;
        self.note_push(a.push);
        self.note_marks(a);
        let linux = matches!(self.profile.acks, DelayedAckRule::Linux { .. });
        if linux && !self.at_once(a) { AckDecision::Compress } else { AckDecision::Now }
    }

    /// Handles entirely old data: Linux acknowledges the next segments at once
    /// (tcp_enter_quickack_mode). Its own ACK uses one of these up only if it is `scheduled`, which
    /// tcp_data_queue does, and tcp_send_dupack does not.
    pub(crate) fn on_old_data(&mut self, rcv_wnd: u64, mss: u64, scheduled: bool) {
        if let DelayedAckRule::Linux { quick_acks, .. } = self.profile.acks {
            self.scheduled |= scheduled;
            self.enter_quickack_mode(rcv_wnd, mss, quick_acks);
        }
    }

    /// __tcp_ecn_check_ce.
    fn note_marks(&mut self, a: &LinuxArrival) {
        if unlikely(a.ecn.quickens) {
            self.enter_quickack_mode(a.rcv_wnd, a.mss, ECN_QUICK_ACKS);
        }
    }

    /// tcp_enter_quickack_mode.
    fn enter_quickack_mode(&mut self, rcv_wnd: u64, mss: u64, most: u32) {
        self.incr_quickack(rcv_wnd, mss, most);
        self.pingpong = false;
        self.ato = self.limits.min;
    }

    /// tcp_event_data_recv: acknowledges the first data, and data after a long pause, at once;
    /// otherwise adapts the delay to the ticks `since` the last arrival.
    fn follow(&mut self, since: u64, a: &LinuxArrival) {
        let DelayedAckRule::Linux { quick_acks, .. } = self.profile.acks else { return };
        let DelayLimits { min, max_ato, .. } = self.limits;
        if self.ato == 0 {
            self.incr_quickack(a.rcv_wnd, a.mss, quick_acks);
            self.ato = min;
        } else if since <= u64::from(min / 2) {
            self.ato = self.ato / 2 + min / 2;
        } else if since < u64::from(self.ato) {
            self.ato = narrow((u64::from(self.ato / 2) + since).min(a.rto)).min(max_ato);
        } else if since > a.rto {
            self.incr_quickack(a.rcv_wnd, a.mss, quick_acks);
        }
    }

    /// tcp_incr_quickack.
    fn incr_quickack(&mut self, rcv_wnd: u64, mss: u64, most: u32) {
        let half = match rcv_wnd / (2 * mss.max(1)) {
            0 => 2,
            half => half.min(u64::from(most)) as u32,
        };
        self.quick = self.quick.max(half.min(most));
    }

    /// The first condition of __tcp_ack_snd_check.
    fn at_once(&mut self, a: &LinuxArrival) -> bool {
        let DelayedAckRule::Linux { always_quick, .. } = self.profile.acks else { return true };
        if a.window_grew {
            self.quick |= 1;
        }
        if a.unacked > a.mss {
            if a.window_holds {
                return true;
            }
            self.on_window_selected(a.tight);
        }
        always_quick || a.ecn.reduced || (self.quick > 0 && !self.pingpong)
    }

    /// __tcp_select_window: while the buffer is `tight`, no more quick ACKs.
    pub(crate) const fn on_window_selected(&mut self, tight: bool) {
        if tight {
            self.quick = 0;
        }
    }

    /// Are there quick ACKs left?
    #[inline(always)]
    pub(crate) const fn is_quick(&self) -> bool {
        self.quick > 0
    }

    /// Must the pending ACK be sent after the application has read? On Linux if more than a segment
    /// is not acknowledged, or if the buffer is now `emptied` of a write of the peer
    /// (tcp_cleanup_rbuf).
    pub(crate) fn on_read(&self, emptied: bool, unacked: u64, mss: u64) -> bool {
        match self.profile.acks {
            DelayedAckRule::FreeBsd { .. } | DelayedAckRule::Rfc { .. } => false,
            DelayedAckRule::Linux { .. } => {
                let pushed = self.pushed > 1 || (self.pushed == 1 && !self.pingpong);
                unacked > mss || (emptied && pushed)
            }
        }
    }

    /// Records an ACK sent, for whatever reason (tcp_event_ack_sent, tcp_dec_quickack_mode).
    #[inline(always)]
    pub(crate) fn on_ack_sent(&mut self) {
        if core::mem::take(&mut self.scheduled) {
            self.use_quick_ack();
        }
    }

    fn use_quick_ack(&mut self) {
        self.pushed = 0;
        if self.quick == 0 {
            return;
        }
        self.quick -= 1;
        if self.quick == 0 {
            self.ato = self.limits.min;
        }
    }

    /// Handles the delayed-ACK timer; `rto`: the retransmission timeout in ticks.
    pub(crate) fn on_timer(&mut self, rto: u64) {
        let DelayedAckRule::Linux { .. } = self.profile.acks else { return };
        let DelayLimits { min, max_ato, .. } = self.limits;
        self.ato = if self.pingpong {
            min
        } else {
            narrow((2 * u64::from(self.ato)).min(rto)).min(max_ato)
        };
        self.pingpong = false;
    }
}

#[cfg(test)]
mod tests;
