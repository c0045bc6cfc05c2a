//! Delayed acknowledgments of in-order data.
//!
//! FreeBSD: DELAY_ACK of tcp_input.c. Linux: __tcp_ack_snd_check, tcp_event_data_recv,
//! tcp_send_delayed_ack and tcp_cleanup_rbuf, as measured on Linux 6.18 (golden/linux). ACKs for
//! data after a gap are in `sack_compression`.

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
    /// Linux: ACK timeout, doubled when the timer fires.
    ato: Duration,
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
}

impl DelayedAckPolicy {
    pub(crate) fn new(profile: &SharedProfile) -> Self {
        let ato = match profile.acks {
            DelayedAckRule::FreeBsd { timeout, .. } | DelayedAckRule::Rfc { timeout } => timeout,
            DelayedAckRule::Linux { min, .. } => min,
        };
        Self { profile: profile.clone(), quick: 0, ato, last_data: None }
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

    /// Decides about in-order data on Linux; other systems acknowledge at once.
    pub(crate) fn on_data(&mut self, a: &LinuxArrival) -> AckDecision {
        let before = self.last_data.replace(a.now);
        match self.profile.acks {
            DelayedAckRule::Linux { min, max, .. } if !a.filled || a.gap_left => {
                self.follow(before.map(|before| a.now.since(before)), a);
                match self.at_once(a) {
                    true => AckDecision::Now,
                    false if a.gap_left => AckDecision::Compress,
                    false => {
                        let by_rtt = a.srtt.map_or(max, |srtt| srtt.max(min));
                        AckDecision::Within(self.ato.min(by_rtt).min(max))
                    }
                }
            }
            _ => AckDecision::Now,
        }
    }

    /// Decides about data after a gap.
    pub(crate) fn on_gap(&mut self, a: &LinuxArrival) -> AckDecision {
        let linux = matches!(self.profile.acks, DelayedAckRule::Linux { .. });
        if linux && !self.at_once(a) { AckDecision::Compress } else { AckDecision::Now }
    }

    /// Handles entirely old data: Linux acknowledges the next segments at once
    /// (tcp_enter_quickack_mode).
    pub(crate) fn on_old_data(&mut self, rcv_wnd: u64, mss: u64) {
        if let DelayedAckRule::Linux { min, .. } = self.profile.acks {
            self.incr_quickack(rcv_wnd, mss);
            self.ato = min;
        }
    }

    /// tcp_event_data_recv: acknowledges the first data, and data after a long pause, at once;
    /// otherwise adapts the delay to the time between arrivals.
    fn follow(&mut self, since: Option<Duration>, a: &LinuxArrival) {
        let DelayedAckRule::Linux { min, .. } = self.profile.acks else { return };
        let half = |span: Duration| Duration::from_nanos(span.as_nanos() / 2);
        match since {
            None => self.incr_quickack(a.rcv_wnd, a.mss),
            Some(since) if since <= half(min) => self.ato = half(self.ato) + half(min),
            Some(since) if since < self.ato => self.ato = (half(self.ato) + since).min(a.rto),
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
        always_quick || self.quick > 0 || (a.unacked > a.mss && a.window_holds)
    }

    /// Must the pending ACK be sent after the application has read? On Linux if the last data
    /// carried PSH (tcp_cleanup_rbuf).
    pub(crate) fn on_read(&self, pushed: bool, unacked: u64, mss: u64) -> bool {
        match self.profile.acks {
            DelayedAckRule::FreeBsd { .. } | DelayedAckRule::Rfc { .. } => false,
            DelayedAckRule::Linux { .. } => pushed || unacked > mss,
        }
    }

    /// Records an ACK sent, for whatever reason.
    pub(crate) fn on_ack_sent(&mut self) {
        self.quick = self.quick.saturating_sub(1);
    }

    /// Records `n` ACKs sent.
    pub(crate) fn on_acks_sent(&mut self, n: u64) {
        self.quick = u64::from(self.quick).saturating_sub(n) as u32;
    }

    /// Handles the delayed-ACK timer.
    pub(crate) fn on_timer(&mut self) {
        if let DelayedAckRule::Linux { max, .. } = self.profile.acks {
            self.ato = (self.ato + self.ato).min(max);
        }
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
            rcv_wnd: 65_160,
            srtt: Some(Duration::from_millis(100)),
            rto: Duration::from_millis(300),
            gap_left: false,
            filled: false,
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
        policy.on_old_data(65_160, 1_448);
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
        assert!(policy.on_read(false, 6 * 1_448, 1_448));
    }

    #[test]
    fn linux_answers_a_pushed_segment_once_it_is_read() {
        let policy = DelayedAckPolicy::new(&TcpProfile::named("linux-6.18").unwrap().into());
        assert!(policy.on_read(true, 1_448, 1_448));
        assert!(!policy.on_read(false, 1_448, 1_448));
    }
}
