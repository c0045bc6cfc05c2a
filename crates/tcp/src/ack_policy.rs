//! When a receiver acknowledges in-order data.
//!
//! FreeBSD: DELAY_ACK of tcp_input.c. Linux: __tcp_ack_snd_check, tcp_event_data_recv,
//! tcp_send_delayed_ack and tcp_cleanup_rbuf, as measured on Linux 6.18 (golden/linux). What lies behind
//! a gap is the matter of `sack_compression`.

use units::{Duration, Instant};

use crate::profile::{AckRule, SharedProfile};

/// What to do about a segment of in-order data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Acknowledge at once.
    Now,
    /// Acknowledge within this time.
    Within(Duration),
    /// It lies behind a gap: Linux may put its ACK together with others.
    Compress,
}

/// The rule with its state.
#[derive(Debug, Clone, serde::Deserialize, serde::Serialize)]
pub(crate) struct AckPolicy {
    #[serde(skip, default = "SharedProfile::placeholder")]
    profile: SharedProfile,
    /// Linux: ACKs still to be sent at once.
    quick: u32,
    /// Linux: ACK timeout, doubled when the timer fires.
    ato: Duration,
    last_data: Option<Instant>,
}

/// What the policy is asked about data that arrived in order, where it is the simple one of FreeBSD or
/// the textbook.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlainArrival {
    pub(crate) now: Instant,
    /// Payload of the segment.
    pub(crate) len: u64,
    /// In-order payload not yet acknowledged, this segment included.
    pub(crate) unacked: u64,
    /// Payload of a full segment without options (`t_maxseg`).
    pub(crate) maxseg: u64,
    /// Payload of a full segment (`rcv_mss`).
    pub(crate) mss: u64,
    /// A delayed ACK is due already.
    pub(crate) pending: bool,
    /// The last window sent was zero.
    pub(crate) window_was_zero: bool,
    /// It filled a gap.
    pub(crate) filled: bool,
}

/// What Linux's policy is asked about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrival {
    pub(crate) now: Instant,
    /// In-order payload not yet acknowledged, this segment included.
    pub(crate) unacked: u64,
    /// Payload of a full segment (`rcv_mss`).
    pub(crate) mss: u64,
    /// The window just grew.
    pub(crate) window_grew: bool,
    /// The room in the buffer allows a window as large as the last one offered.
    pub(crate) window_holds: bool,
    /// Window last offered.
    pub(crate) rcv_wnd: u64,
    /// Smoothed round trip, if known.
    pub(crate) srtt: Option<Duration>,
    /// Retransmission timeout in force.
    pub(crate) rto: Duration,
    /// It lies behind a gap, or filled the first part of one: something still lies behind a gap.
    pub(crate) gap_left: bool,
    /// It filled one.
    pub(crate) filled: bool,
}

impl AckPolicy {
    pub(crate) fn new(profile: &SharedProfile) -> Self {
        let ato = match profile.acks {
            AckRule::FreeBsd { timeout, .. } | AckRule::Rfc { timeout } => timeout,
            AckRule::Linux { min, .. } => min,
        };
        Self { profile: profile.clone(), quick: 0, ato, last_data: None }
    }

    /// Reads that profile from now on, which says the same.
    pub(crate) fn share(&mut self, profile: &SharedProfile) {
        self.profile = profile.clone();
    }

    /// In-order data arrived; `None` if the policy is Linux's, which asks for more
    /// ([`AckPolicy::on_data`]).
    #[inline(always)]
    pub(crate) fn on_plain_data(&mut self, a: &PlainArrival) -> Option<Decision> {
        let within = match self.profile.acks {
            AckRule::Linux { .. } => return None,
            _ if a.filled => None,
            AckRule::FreeBsd { delayed, timeout } => {
                let delay = delayed && !a.pending && !a.window_was_zero && a.len <= a.maxseg;
                delay.then_some(timeout)
            }
            AckRule::Rfc { timeout } => (a.unacked < 2 * a.mss).then_some(timeout),
        };
        self.last_data = Some(a.now);
        Some(within.map_or(Decision::Now, Decision::Within))
    }

    /// In-order data arrived at a Linux host; others answer at once.
    pub(crate) fn on_data(&mut self, a: &Arrival) -> Decision {
        let before = self.last_data.replace(a.now);
        match self.profile.acks {
            AckRule::Linux { min, max, .. } if !a.filled || a.gap_left => {
                self.follow(before.map(|before| a.now.since(before)), a);
                match self.at_once(a) {
                    true => Decision::Now,
                    false if a.gap_left => Decision::Compress,
                    false => {
                        let by_rtt = a.srtt.map_or(max, |srtt| srtt.max(min));
                        Decision::Within(self.ato.min(by_rtt).min(max))
                    }
                }
            }
            _ => Decision::Now,
        }
    }

    /// Data arrived behind a gap.
    pub(crate) fn on_gap(&mut self, a: &Arrival) -> Decision {
        let linux = matches!(self.profile.acks, AckRule::Linux { .. });
        if linux && !self.at_once(a) { Decision::Compress } else { Decision::Now }
    }

    /// Only what had arrived before: Linux acknowledges the next ones at once
    /// (tcp_enter_quickack_mode).
    pub(crate) fn on_old_data(&mut self, rcv_wnd: u64, mss: u64) {
        if let AckRule::Linux { min, .. } = self.profile.acks {
            self.hasten(rcv_wnd, mss);
            self.ato = min;
        }
    }

    /// tcp_event_data_recv: the first data, and data after a long pause, is acknowledged at once; a
    /// delay follows the time between arrivals.
    fn follow(&mut self, since: Option<Duration>, a: &Arrival) {
        let AckRule::Linux { min, .. } = self.profile.acks else { return };
        let half = |span: Duration| Duration::from_nanos(span.as_nanos() / 2);
        match since {
            None => self.hasten(a.rcv_wnd, a.mss),
            Some(since) if since <= half(min) => self.ato = half(self.ato) + half(min),
            Some(since) if since < self.ato => self.ato = (half(self.ato) + since).min(a.rto),
            Some(since) if since > a.rto => self.hasten(a.rcv_wnd, a.mss),
            Some(_) => {}
        }
    }

    /// tcp_incr_quickack.
    fn hasten(&mut self, rcv_wnd: u64, mss: u64) {
        if let AckRule::Linux { quick_acks, .. } = self.profile.acks {
            let by_window = (rcv_wnd / (2 * mss.max(1))).max(2) as u32;
            self.quick = self.quick.max(by_window.min(quick_acks));
        }
    }

    /// The first question of __tcp_ack_snd_check.
    fn at_once(&mut self, a: &Arrival) -> bool {
        let AckRule::Linux { always_quick, .. } = self.profile.acks else { return true };
        if a.window_grew {
            self.quick |= 1;
        }
        always_quick || self.quick > 0 || (a.unacked > a.mss && a.window_holds)
    }

    /// The application has read all there was. Must the pending ACK go now? So in Linux if what
    /// was read came with PSH (tcp_cleanup_rbuf).
    pub(crate) fn on_read(&self, pushed: bool, unacked: u64, mss: u64) -> bool {
        match self.profile.acks {
            AckRule::FreeBsd { .. } | AckRule::Rfc { .. } => false,
            AckRule::Linux { .. } => pushed || unacked > mss,
        }
    }

    /// An ACK left, by whatever cause.
    pub(crate) fn on_ack_sent(&mut self) {
        self.quick = self.quick.saturating_sub(1);
    }

    /// So many left.
    pub(crate) fn on_acks_sent(&mut self, n: u64) {
        self.quick = u64::from(self.quick).saturating_sub(n) as u32;
    }

    /// The delayed-ACK timer fired.
    pub(crate) fn on_timer(&mut self) {
        if let AckRule::Linux { max, .. } = self.profile.acks {
            self.ato = (self.ato + self.ato).min(max);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Profile;

    fn plain(len: u64, unacked: u64) -> PlainArrival {
        PlainArrival {
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

    fn arrival(unacked: u64) -> Arrival {
        Arrival {
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

    fn after_quick_acks() -> AckPolicy {
        let mut policy = AckPolicy::new(&Profile::named("linux-6.18").unwrap().into());
        for _ in 0..16 {
            policy.on_data(&arrival(1_448));
            policy.on_ack_sent();
        }
        policy
    }

    #[test]
    fn linux_acknowledges_at_once_again_after_a_pause_and_after_what_came_twice() {
        let later =
            |ms: u64| Arrival { now: Instant::from_nanos(ms * 1_000_000), ..arrival(1_448) };
        let mut policy = after_quick_acks();
        assert_ne!(policy.on_data(&later(299)), Decision::Now);
        // 301 ms later, longer than the timeout.
        assert_eq!(policy.on_data(&later(600)), Decision::Now);
        let mut policy = after_quick_acks();
        policy.on_old_data(65_160, 1_448);
        assert_eq!(policy.on_data(&later(1)), Decision::Now);
    }

    #[test]
    fn linux_puts_reports_together_unless_an_ack_is_due() {
        let gap = Arrival { gap_left: true, ..arrival(0) };
        let mut policy = after_quick_acks();
        assert_eq!(policy.on_gap(&gap), Decision::Compress);
        assert_eq!(policy.on_gap(&Arrival { unacked: 2_896, ..gap }), Decision::Now);
        // Part of a gap is filled; all of it is.
        let filled = Arrival { filled: true, ..gap };
        assert_eq!(policy.on_data(&Arrival { unacked: 1_448, ..filled }), Decision::Compress);
        assert_eq!(policy.on_data(&Arrival { gap_left: false, ..filled }), Decision::Now);
        assert_eq!(policy.on_gap(&Arrival { window_grew: true, ..gap }), Decision::Now);
        let mut other = AckPolicy::new(&Profile::named("freebsd-14.3").unwrap().into());
        let plain = PlainArrival { filled: true, ..plain(1_448, 1_448) };
        assert_eq!(other.on_gap(&gap), Decision::Now);
        assert_eq!(other.on_plain_data(&plain), Some(Decision::Now));
    }

    #[test]
    fn freebsd_delays_a_first_small_segment_only() {
        let mut policy = AckPolicy::new(&Profile::named("freebsd-13.2").unwrap().into());
        let mut decide = |arrival| policy.on_plain_data(&arrival).unwrap();
        let forty = Decision::Within(Duration::from_millis(40));
        assert_eq!(decide(plain(1_448, 1_448)), forty);
        assert_eq!(decide(PlainArrival { pending: true, ..plain(1_448, 2_896) }), Decision::Now);
        assert_eq!(decide(plain(2_896, 2_896)), Decision::Now, "an LRO aggregate");
        let reopened = PlainArrival { window_was_zero: true, ..plain(1_448, 1_448) };
        assert_eq!(decide(reopened), Decision::Now);
    }

    #[test]
    fn linux_acknowledges_the_first_segments_and_every_growth_at_once() {
        let mut policy = AckPolicy::new(&Profile::named("linux-6.18").unwrap().into());
        for n in 0..16 {
            assert_eq!(policy.on_data(&arrival(1_448)), Decision::Now, "segment {n}");
            policy.on_ack_sent();
        }
        let delayed = Decision::Within(Duration::from_millis(40));
        assert_eq!(policy.on_data(&arrival(1_448)), delayed);
        assert_eq!(policy.on_data(&arrival(2_896)), Decision::Now, "the second one");
        policy.on_ack_sent();
        let grew = Arrival { window_grew: true, ..arrival(1_448) };
        assert_eq!(policy.on_data(&grew), Decision::Now);
    }

    #[test]
    fn linux_waits_for_the_reader_where_the_window_would_shrink() {
        // golden/linux c3: at 2522.2 ms six packets arrive before the application runs; the window
        // stands at its limit, and one ACK follows the read.
        let mut policy = after_quick_acks();
        let full = Arrival { window_holds: false, ..arrival(6 * 1_448) };
        assert_ne!(policy.on_data(&full), Decision::Now);
        assert!(policy.on_read(false, 6 * 1_448, 1_448));
    }

    #[test]
    fn linux_answers_a_pushed_segment_once_it_is_read() {
        let policy = AckPolicy::new(&Profile::named("linux-6.18").unwrap().into());
        assert!(policy.on_read(true, 1_448, 1_448));
        assert!(!policy.on_read(false, 1_448, 1_448));
    }
}
