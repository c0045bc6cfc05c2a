//! When a receiver acknowledges in-order data.
//!
//! FreeBSD: DELAY_ACK of tcp_input.c. Linux: __tcp_ack_snd_check, tcp_event_data_recv,
//! tcp_send_delayed_ack and tcp_cleanup_rbuf, as measured in `reference/linux.md` 9.

use units::{Duration, Instant};

use crate::profile::AckRule;

/// What to do about a segment of in-order data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Acknowledge at once.
    Now,
    /// Acknowledge within this time.
    Within(Duration),
}

/// The rule with its state.
#[derive(Debug, Clone)]
pub(crate) struct AckPolicy {
    rule: AckRule,
    /// Linux: ACKs still to be sent at once.
    quick: u32,
    /// Linux: ACK timeout, doubled when the timer fires.
    ato: Duration,
    last_data: Option<Instant>,
}

/// What the policy is asked about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrival {
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
    /// The window just grew.
    pub(crate) window_grew: bool,
    /// The room in the buffer allows a window as large as the last one offered.
    pub(crate) window_holds: bool,
    /// Window last offered.
    pub(crate) rcv_wnd: u64,
    /// Smoothed round trip, if known.
    pub(crate) srtt: Option<Duration>,
}

impl AckPolicy {
    pub(crate) const fn new(rule: AckRule) -> Self {
        let ato = match rule {
            AckRule::FreeBsd { timeout, .. } | AckRule::Rfc { timeout } => timeout,
            AckRule::Linux { min, .. } => min,
        };
        Self { rule, quick: 0, ato, last_data: None }
    }

    /// In-order data arrived.
    pub(crate) fn on_data(&mut self, a: &Arrival) -> Decision {
        let first = self.last_data.is_none();
        self.last_data = Some(a.now);
        match self.rule {
            AckRule::FreeBsd { delayed, timeout } => {
                let delay = delayed && !a.pending && !a.window_was_zero && a.len <= a.maxseg;
                if delay { Decision::Within(timeout) } else { Decision::Now }
            }
            AckRule::Rfc { timeout } => {
                if a.unacked >= 2 * a.mss {
                    Decision::Now
                } else {
                    Decision::Within(timeout)
                }
            }
            AckRule::Linux { quick_acks, always_quick, min, max } => {
                if first {
                    // tcp_incr_quickack
                    let by_window = (a.rcv_wnd / (2 * a.mss)).max(2) as u32;
                    self.quick = by_window.min(quick_acks);
                }
                if a.window_grew {
                    self.quick |= 1;
                }
                if always_quick || self.quick > 0 || (a.unacked > a.mss && a.window_holds) {
                    return Decision::Now;
                }
                let by_rtt = a.srtt.map_or(max, |srtt| srtt.max(min));
                Decision::Within(self.ato.min(by_rtt).min(max))
            }
        }
    }

    /// The application has read all there was. Must the pending ACK go now? So in Linux if what
    /// was read came with PSH (tcp_cleanup_rbuf).
    pub(crate) const fn on_read(&self, pushed: bool, unacked: u64, mss: u64) -> bool {
        match self.rule {
            AckRule::FreeBsd { .. } | AckRule::Rfc { .. } => false,
            AckRule::Linux { .. } => pushed || unacked > mss,
        }
    }

    /// An ACK left, by whatever cause.
    pub(crate) fn on_ack_sent(&mut self) {
        self.quick = self.quick.saturating_sub(1);
    }

    /// The delayed-ACK timer fired.
    pub(crate) fn on_timer(&mut self) {
        if let AckRule::Linux { max, .. } = self.rule {
            self.ato = (self.ato + self.ato).min(max);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Profile;

    fn arrival(len: u64, unacked: u64) -> Arrival {
        Arrival {
            now: Instant::ZERO,
            len,
            unacked,
            maxseg: 1_460,
            mss: 1_448,
            pending: false,
            window_was_zero: false,
            window_grew: false,
            window_holds: true,
            rcv_wnd: 65_160,
            srtt: Some(Duration::from_millis(100)),
        }
    }

    #[test]
    fn freebsd_delays_a_first_small_segment_only() {
        let mut policy = AckPolicy::new(Profile::named("freebsd-13.2").unwrap().acks);
        let forty = Decision::Within(Duration::from_millis(40));
        assert_eq!(policy.on_data(&arrival(1_448, 1_448)), forty);
        let second = Arrival { pending: true, ..arrival(1_448, 2_896) };
        assert_eq!(policy.on_data(&second), Decision::Now);
        assert_eq!(policy.on_data(&arrival(2_896, 2_896)), Decision::Now, "an LRO aggregate");
        let reopened = Arrival { window_was_zero: true, ..arrival(1_448, 1_448) };
        assert_eq!(policy.on_data(&reopened), Decision::Now);
    }

    #[test]
    fn linux_acknowledges_the_first_segments_and_every_growth_at_once() {
        let mut policy = AckPolicy::new(Profile::named("linux-6.18").unwrap().acks);
        for n in 0..16 {
            assert_eq!(policy.on_data(&arrival(1_448, 1_448)), Decision::Now, "segment {n}");
            policy.on_ack_sent();
        }
        let delayed = Decision::Within(Duration::from_millis(40));
        assert_eq!(policy.on_data(&arrival(1_448, 1_448)), delayed);
        assert_eq!(policy.on_data(&arrival(1_448, 2_896)), Decision::Now, "the second one");
        policy.on_ack_sent();
        let grew = Arrival { window_grew: true, ..arrival(1_448, 1_448) };
        assert_eq!(policy.on_data(&grew), Decision::Now);
    }

    #[test]
    fn linux_waits_for_the_reader_where_the_window_would_shrink() {
        // golden/linux c3: at 2522.2 ms six packets arrive before the application runs; the window
        // stands at its limit, and one ACK follows the read.
        let mut policy = AckPolicy::new(Profile::named("linux-6.18").unwrap().acks);
        for _ in 0..16 {
            policy.on_data(&arrival(1_448, 1_448));
            policy.on_ack_sent();
        }
        let full = Arrival { window_holds: false, ..arrival(1_448, 6 * 1_448) };
        assert_ne!(policy.on_data(&full), Decision::Now);
        assert!(policy.on_read(false, 6 * 1_448, 1_448));
    }

    #[test]
    fn linux_answers_a_pushed_segment_once_it_is_read() {
        let policy = AckPolicy::new(Profile::named("linux-6.18").unwrap().acks);
        assert!(policy.on_read(true, 1_448, 1_448));
        assert!(!policy.on_read(false, 1_448, 1_448));
    }
}
