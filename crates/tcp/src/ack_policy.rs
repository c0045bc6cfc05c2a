//! Delayed acknowledgments of in-order data.
//!
//! FreeBSD: DELAY_ACK of tcp_input.c. Linux: __tcp_ack_snd_check, tcp_event_data_recv,
//! tcp_event_data_sent, tcp_fin, tcp_send_delayed_ack and tcp_cleanup_rbuf, as measured on Linux
//! 6.18 (golden/linux). ACKs for data after a gap are in `sack_compression`.

use units::{Duration, Instant};

use crate::profile::{DelayedAckRule, SharedProfile};

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
    /// Linux: ACK timeout, doubled when the timer fires.
    ato: Duration,
    /// Linux: data was sent in reply to data, or the peer has closed: the next segment of ours is
    /// expected to carry the ACK (`icsk_ack.pingpong`).
    pingpong: bool,
    /// Linux: segments since the last ACK that end a write of the peer, at most two
    /// (`ICSK_ACK_PUSHED`, `ICSK_ACK_PUSHED2`).
    pushed: u8,
    last_data: Option<Instant>,
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
    /// Window last advertised.
    pub(crate) rcv_wnd: u64,
    /// Smoothed round trip, if known.
    pub(crate) srtt: Option<Duration>,
    /// Retransmission timeout in force.
    pub(crate) rto: Duration,
    /// Out-of-order data remains: the segment is after a gap or did not fill all of it.
    pub(crate) gap_left: bool,
    /// It filled a gap or a part of one.
    pub(crate) filled: bool,
    /// It ends a write of the peer.
    pub(crate) push: PushKind,
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
        let ato = match profile.acks {
            DelayedAckRule::FreeBsd { timeout, .. } | DelayedAckRule::Rfc { timeout } => timeout,
            DelayedAckRule::Linux { min, .. } => min,
        };
        let profile = profile.clone();
        let (quick, scheduled, pingpong, pushed) = (0, false, false, 0);
        Self { profile, quick, scheduled, ato, pingpong, pushed, last_data: None }
    }

    /// When data was last received.
    pub(crate) const fn last_data(&self) -> Option<Instant> {
        self.last_data
    }

    /// Replaces the profile with a shared equal one.
    pub(crate) fn share(&mut self, profile: &SharedProfile) {
        self.profile = profile.clone();
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
    pub(crate) fn on_write_pending(&mut self, now: Instant) {
        if let DelayedAckRule::Linux { quick_acks, .. } = self.profile.acks {
            self.last_data = Some(now);
            self.quick = quick_acks;
        }
    }

    /// Decides about in-order data on Linux; other systems acknowledge at once.
    pub(crate) fn on_data(&mut self, a: &LinuxArrival) -> AckDecision {
        self.scheduled = true;
        self.note_push(a.push);
        let before = self.last_data.replace(a.now);
        match self.profile.acks {
            DelayedAckRule::Linux { .. } if !a.filled || a.gap_left => {
                self.follow(before.map(|before| a.now.since(before)), a);
                match self.at_once(a) {
                    true => AckDecision::Now,
                    false if a.gap_left => AckDecision::Compress,
                    false => AckDecision::Within(self.delay(a.srtt)),
                }
            }
            _ => AckDecision::Now,
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
        // Without data before it `icsk_ack.ato` is still zero.
        let delay = if self.last_data.is_some() { self.delay(a.srtt) } else { Duration::ZERO };
        Some(AckDecision::Within(delay))
    }

    /// tcp_event_data_sent: data sent soon after data was received is a reply.
    #[inline(always)]
    pub(crate) fn on_data_sent(&mut self, now: Instant) {
        if let Some(last) = self.last_data {
            self.note_reply(now.since(last));
        }
    }

    #[inline(never)]
    fn note_reply(&mut self, since: Duration) {
        let linux = matches!(self.profile.acks, DelayedAckRule::Linux { .. });
        self.pingpong |= linux && since < self.ato;
    }

    /// tcp_send_delayed_ack: the smoothed round trip limits the delay.
    fn delay(&self, srtt: Option<Duration>) -> Duration {
        let DelayedAckRule::Linux { min, max, .. } = self.profile.acks else { return self.ato };
        let by_rtt = srtt.map_or(max, |srtt| srtt.max(min));
        self.ato.min(by_rtt).min(max)
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

    /// Decides about data after a gap.
    pub(crate) fn on_gap(&mut self, a: &LinuxArrival) -> AckDecision {
        self.scheduled = true;
        self.note_push(a.push);
        let linux = matches!(self.profile.acks, DelayedAckRule::Linux { .. });
        if linux && !self.at_once(a) { AckDecision::Compress } else { AckDecision::Now }
    }

    /// Handles entirely old data: Linux acknowledges the next segments at once
    /// (tcp_enter_quickack_mode). Its own ACK uses one of these up only if it is `scheduled`, which
    /// tcp_data_queue does, and tcp_send_dupack does not.
    pub(crate) fn on_old_data(&mut self, rcv_wnd: u64, mss: u64, scheduled: bool) {
        if let DelayedAckRule::Linux { min, .. } = self.profile.acks {
            self.scheduled |= scheduled;
            self.incr_quickack(rcv_wnd, mss);
            self.pingpong = false;
            self.ato = min;
        }
    }

    /// tcp_event_data_recv: acknowledges the first data, and data after a long pause, at once;
    /// otherwise adapts the delay to the time between arrivals.
    fn follow(&mut self, since: Option<Duration>, a: &LinuxArrival) {
        let DelayedAckRule::Linux { min, max, .. } = self.profile.acks else { return };
        let half = |span: Duration| Duration::from_nanos(span.as_nanos() / 2);
        match since {
            None => self.incr_quickack(a.rcv_wnd, a.mss),
            Some(since) if since <= half(min) => self.ato = half(self.ato) + half(min),
            Some(since) if since < self.ato => {
                self.ato = (half(self.ato) + since).min(a.rto).min(max);
            }
            Some(since) if since > a.rto => self.incr_quickack(a.rcv_wnd, a.mss),
            Some(_) => {}
        }
    }

    /// tcp_incr_quickack.
    fn incr_quickack(&mut self, rcv_wnd: u64, mss: u64) {
        if let DelayedAckRule::Linux { quick_acks, .. } = self.profile.acks {
            let cwnd_limited_time = (rcv_wnd / (2 * mss.max(1))).max(2) as u32;
            self.quick = self.quick.max(cwnd_limited_time.min(quick_acks));
        }
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
        always_quick || (self.quick > 0 && !self.pingpong)
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
        if let (0, DelayedAckRule::Linux { min, .. }) = (self.quick, self.profile.acks) {
            self.ato = min;
        }
    }

    /// Handles the delayed-ACK timer; `rto`: the retransmission timeout.
    pub(crate) fn on_timer(&mut self, rto: Duration) {
        let DelayedAckRule::Linux { min, max, .. } = self.profile.acks else { return };
        self.ato = if self.pingpong { min } else { (self.ato + self.ato).min(rto).min(max) };
        self.pingpong = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::TcpProfile;

    fn plain(len: u64, unacked: u64) -> InOrderArrival {
        InOrderArrival {
            now: Instant::ZERO,
            len,
            unacked,
            maxseg: 1_460,
            mss: 1_448,
            pending: false,
            window_was_zero: false,
            filled: false,
        }
    }

    fn arrival(unacked: u64) -> LinuxArrival {
        LinuxArrival {
            now: Instant::ZERO,
            unacked,
            mss: 1_448,
            window_grew: false,
            window_holds: true,
            tight: false,
            rcv_wnd: 65_160,
            srtt: Some(Duration::from_millis(100)),
            rto: Duration::from_millis(300),
            gap_left: false,
            filled: false,
            push: PushKind::None,
        }
    }

    fn after_quick_acks() -> DelayedAckPolicy {
        let mut policy = DelayedAckPolicy::new(&TcpProfile::named("linux-6.18").unwrap().into());
        for _ in 0..16 {
            policy.on_data(&arrival(1_448));
            policy.on_ack_sent();
        }
        policy
    }

    #[test]
    fn linux_acknowledges_at_once_after_a_pause_and_after_duplicate_data() {
        let later =
            |ms: u64| LinuxArrival { now: Instant::from_nanos(ms * 1_000_000), ..arrival(1_448) };
        let mut policy = after_quick_acks();
        assert_ne!(policy.on_data(&later(299)), AckDecision::Now);
        // 301 ms later, longer than the timeout.
        assert_eq!(policy.on_data(&later(600)), AckDecision::Now);
        let mut policy = after_quick_acks();
        policy.on_old_data(65_160, 1_448, true);
        assert_eq!(policy.on_data(&later(1)), AckDecision::Now);
    }

    #[test]
    fn linux_compresses_acks_unless_one_is_due() {
        let gap = LinuxArrival { gap_left: true, ..arrival(0) };
        let mut policy = after_quick_acks();
        assert_eq!(policy.on_gap(&gap), AckDecision::Compress);
        assert_eq!(policy.on_gap(&LinuxArrival { unacked: 2_896, ..gap }), AckDecision::Now);
        // A part of the gap is filled, then all of it.
        let filled = LinuxArrival { filled: true, ..gap };
        assert_eq!(
            policy.on_data(&LinuxArrival { unacked: 1_448, ..filled }),
            AckDecision::Compress
        );
        assert_eq!(policy.on_data(&LinuxArrival { gap_left: false, ..filled }), AckDecision::Now);
        assert_eq!(policy.on_gap(&LinuxArrival { window_grew: true, ..gap }), AckDecision::Now);
        let mut other = DelayedAckPolicy::new(&TcpProfile::named("freebsd-14.3").unwrap().into());
        let plain = InOrderArrival { filled: true, ..plain(1_448, 1_448) };
        assert_eq!(other.on_gap(&gap), AckDecision::Now);
        assert_eq!(other.on_in_order_data(&plain), Some(AckDecision::Now));
    }

    #[test]
    fn freebsd_delays_a_first_small_segment_only() {
        let mut policy = DelayedAckPolicy::new(&TcpProfile::named("freebsd-13.2").unwrap().into());
        let mut decide = |arrival| policy.on_in_order_data(&arrival).unwrap();
        let forty = AckDecision::Within(Duration::from_millis(40));
        assert_eq!(decide(plain(1_448, 1_448)), forty);
        assert_eq!(
            decide(InOrderArrival { pending: true, ..plain(1_448, 2_896) }),
            AckDecision::Now
        );
        assert_eq!(decide(plain(2_896, 2_896)), AckDecision::Now, "an LRO aggregate");
        let reopened = InOrderArrival { window_was_zero: true, ..plain(1_448, 1_448) };
        assert_eq!(decide(reopened), AckDecision::Now);
    }

    #[test]
    fn linux_acknowledges_the_first_segments_and_every_growth_at_once() {
        let mut policy = DelayedAckPolicy::new(&TcpProfile::named("linux-6.18").unwrap().into());
        for n in 0..16 {
            assert_eq!(policy.on_data(&arrival(1_448)), AckDecision::Now, "segment {n}");
            policy.on_ack_sent();
        }
        let delayed = AckDecision::Within(Duration::from_millis(40));
        assert_eq!(policy.on_data(&arrival(1_448)), delayed);
        assert_eq!(policy.on_data(&arrival(2_896)), AckDecision::Now, "the second one");
        policy.on_ack_sent();
        let grew = LinuxArrival { window_grew: true, ..arrival(1_448) };
        assert_eq!(policy.on_data(&grew), AckDecision::Now);
    }

    #[test]
    fn linux_waits_for_the_reader_where_the_window_would_shrink() {
        // golden/linux c3: at 2522.2 ms six packets arrive before the application runs; the window
        // is at its limit, and one ACK follows the read.
        let mut policy = after_quick_acks();
        let full = LinuxArrival { window_holds: false, ..arrival(6 * 1_448) };
        assert_ne!(policy.on_data(&full), AckDecision::Now);
        assert!(policy.on_read(true, 6 * 1_448, 1_448));
    }

    #[test]
    fn linux_answers_a_pushed_segment_once_it_is_read() {
        // tcp_cleanup_rbuf: in ping-pong mode only a second small segment is answered.
        for (pushes, pingpong, answers) in [
            (&[PushKind::None][..], false, false),
            (&[PushKind::Full], false, true),
            (&[PushKind::Small], false, true),
            (&[PushKind::Small], true, false),
            (&[PushKind::Full, PushKind::Full], true, false),
            (&[PushKind::Full, PushKind::Small], true, true),
        ] {
            let mut policy = after_quick_acks();
            for &push in pushes {
                policy.on_data(&LinuxArrival { push, ..arrival(100) });
            }
            if pingpong {
                policy.on_data_sent(Instant::ZERO);
            }
            assert_eq!(policy.on_read(true, 200, 1_448), answers, "{pushes:?} {pingpong}");
            assert!(!policy.on_read(false, 200, 1_448), "more is unread");
            policy.on_ack_sent();
            assert!(!policy.on_read(true, 200, 1_448), "it is acknowledged");
        }
    }

    #[test]
    fn linux_delays_acks_in_ping_pong_mode() {
        let forty = AckDecision::Within(Duration::from_millis(40));
        let ms = |ms: u64| Instant::from_nanos(ms * 1_000_000);
        let mut policy = DelayedAckPolicy::new(&TcpProfile::named("linux-6.18").unwrap().into());
        assert_eq!(policy.on_data(&arrival(1_448)), AckDecision::Now);
        // A reply within the timeout; the quick ACKs are not used up.
        policy.on_data_sent(ms(39));
        assert_eq!(policy.on_data(&arrival(1_448)), forty);
        // tcp_delack_timer_handler: the reply did not come.
        policy.on_timer(Duration::from_millis(300));
        assert_eq!(policy.on_data(&arrival(1_448)), AckDecision::Now);
        policy.on_data_sent(ms(41));
        assert_eq!(policy.on_data(&arrival(1_448)), AckDecision::Now, "the data was no reply");
        // tcp_fin.
        assert_eq!(policy.on_fin(&arrival(1)), Some(forty));
        assert_eq!(policy.on_fin(&arrival(1_449)), Some(AckDecision::Now));
        policy.on_old_data(65_160, 1_448, true);
        assert_eq!(policy.on_data(&arrival(1_448)), AckDecision::Now);
        let mut policy = DelayedAckPolicy::new(&TcpProfile::named("linux-6.18").unwrap().into());
        assert_eq!(policy.on_fin(&arrival(1)), Some(AckDecision::Within(Duration::ZERO)));
    }
}
