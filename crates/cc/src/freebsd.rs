//! Common state of FreeBSD's controllers: the window, the threshold and the recovery flags, as the
//! stack maintains them around every controller.
//!
//! Sources: tcp_input.c (cc_conn_init, cc_ack_received, cc_cong_signal, cc_post_recovery), cc.c
//! (newreno_cc_*), tcp_timer.c (tcp_timer_rexmt, the undo state), tcp_subr.c
//! (tcp_compute_initwnd).

use units::{Bytes, Offset};

use crate::contract::{AckEvent, CongestionEvent, ConnectionStart, Control, Growth, WindowChange};
use crate::hystart::{HyStartExit, HyStartFreeBsd};
use crate::newreno::{AckCounting, NewRenoParams, SegmentUnit};

/// `TCP_MAXWIN`: the largest unscaled window.
const TCP_MAXWIN: u32 = 65_535;
/// `TCP_MAXWIN << TCP_MAX_WINSHIFT`: the threshold while unset.
pub(crate) const SSTHRESH_UNSET: u32 = TCP_MAXWIN << 14;

/// The fields of a connection's control block that controllers use.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub(crate) struct CcTcpcb {
    pub(crate) params: NewRenoParams,
    pub(crate) mss: u32,
    pub(crate) maxseg: u32,
    pub(crate) snd_scale: u8,
    pub(crate) snd_cwnd: u32,
    pub(crate) snd_ssthresh: u32,
    pub(crate) snd_recover: Offset,
    /// Bytes acknowledged in congestion avoidance and not yet turned into growth (`t_bytes_acked`).
    pub(crate) bytes_acked: u32,
    /// The window by which they are counted if it is not `snd_cwnd` (`cwnd_to_use`).
    pub(crate) window_used: Option<u32>,
    /// A window's worth of bytes was acknowledged (`CCF_ABC_SENTAWND`).
    pub(crate) sent_a_wnd: bool,
    pub(crate) in_fastrecovery: bool,
    pub(crate) in_congrecovery: bool,
    before_timeout: RtoUndo,
    pub(crate) hystart: HyStartFreeBsd,
}

/// State at the first timeout in a row, for its undo (`snd_cwnd_prev` and related fields).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize, serde::Serialize)]
struct RtoUndo {
    snd_cwnd: u32,
    snd_ssthresh: u32,
    snd_recover: Offset,
    in_fastrecovery: bool,
    in_congrecovery: bool,
}

impl CcTcpcb {
    pub(crate) fn new(params: NewRenoParams) -> Self {
        Self {
            params,
            mss: 0,
            maxseg: 0,
            snd_scale: 0,
            snd_cwnd: 0,
            snd_ssthresh: SSTHRESH_UNSET,
            snd_recover: Offset(0),
            bytes_acked: 0,
            window_used: None,
            sent_a_wnd: false,
            in_fastrecovery: false,
            in_congrecovery: false,
            before_timeout: RtoUndo::default(),
            hystart: HyStartFreeBsd::new(params.hystart),
        }
    }

    /// `cc_conn_init`.
    pub(crate) fn open(&mut self, event: &ConnectionStart) {
        *self = Self::new(self.params);
        self.mss = event.mss;
        self.maxseg = event.maxseg;
        self.snd_scale = event.snd_scale.min(14);
        self.snd_recover = event.una;
        if let Some(remembered) = event.ssthresh {
            let remembered = u32::try_from(remembered.get()).unwrap_or(SSTHRESH_UNSET);
            self.snd_ssthresh = remembered.max(self.mss.saturating_mul(2));
        }
        self.snd_cwnd = if event.syn_retransmitted { self.mss } else { self.initial_window() };
    }

    /// Segment size used for growth.
    pub(crate) fn growth_unit(&self) -> u32 {
        match self.params.growth_unit {
            SegmentUnit::MaxSeg => self.maxseg,
            SegmentUnit::Mss => self.mss,
        }
    }

    /// `percent` of `window`, in whole segments, at least two
    /// (newreno_cc_cwnd_on_multiplicative_decrease).
    pub(crate) fn fraction_of(&self, window: u32, percent: u32) -> u32 {
        let hundredths = 100 * u64::from(self.mss.max(1));
        let segments = (u64::from(window) * u64::from(percent) / hundredths).max(2);
        (segments as u32).wrapping_mul(self.mss)
    }

    /// `tcp_compute_initwnd`: a number of segments, fewer if they are large (RFC 6928, else RFC
    /// 3390).
    fn initial_window(&self) -> u32 {
        let (segments, bytes) = match self.params.initcwnd_segments {
            0 => (4, 4_380),
            n => (n, n.saturating_mul(1_460)),
        };
        segments.saturating_mul(self.mss).min(self.mss.saturating_mul(2).max(bytes))
    }

    /// `cc_ack_received`, `rack_ack_received`: counts bytes in congestion avoidance, in recovery
    /// too.
    pub(crate) fn count(&mut self, bytes: u32, nsegs: u32) {
        if self.snd_cwnd > self.snd_ssthresh {
            let counted = match self.params.counting {
                AckCounting::All => bytes,
                AckCounting::Limited => {
                    let segments = nsegs.max(1).wrapping_mul(self.params.abc_l_var);
                    bytes.min(segments.wrapping_mul(self.mss))
                }
            };
            self.bytes_acked = self.bytes_acked.wrapping_add(counted);
            let window = self.window_used.unwrap_or(self.snd_cwnd);
            if self.bytes_acked >= window {
                self.bytes_acked -= window;
                self.sent_a_wnd = true;
            }
        } else {
            self.sent_a_wnd = false;
            self.bytes_acked = 0;
        }
    }

    /// `CCF_CWND_LIMITED` as implemented: a window larger than the peer's is not fully used.
    pub(crate) fn is_cwnd_limited(&self, event: &AckEvent) -> bool {
        u64::from(self.snd_cwnd) <= event.snd_wnd
    }

    /// `IN_RECOVERY`.
    pub(crate) fn in_recovery(&self) -> bool {
        self.in_fastrecovery || self.in_congrecovery
    }

    /// Slow-start increase with byte counting (RFC 3465) and HyStart++.
    pub(crate) fn slow_start_increase(&mut self, event: &AckEvent, bytes: u32) -> u32 {
        let unit = self.growth_unit();
        self.hystart.maybe_enter_css();
        let limit = if event.retransmitting {
            // L > 1 is not allowed after a timeout (RFC 3465 section 2.3).
            unit
        } else {
            event.nsegs.max(1).wrapping_mul(self.params.abc_l_var).wrapping_mul(unit)
        };
        self.hystart.scale_increase(bytes.min(limit))
    }

    /// Increase in congestion avoidance (newreno_cc_cwnd_in_cong_avoid).
    pub(crate) fn avoidance_increase(&mut self) -> u32 {
        let unit = self.growth_unit();
        if self.params.rfc3465 {
            if core::mem::take(&mut self.sent_a_wnd) { unit } else { 0 }
        } else {
            (unit.wrapping_mul(unit) / self.snd_cwnd.max(1)).max(1)
        }
    }

    /// The window plus `increase`, limited by the peer's window scale.
    pub(crate) fn enlarged(&self, increase: u32) -> u32 {
        self.snd_cwnd.saturating_add(increase).min(TCP_MAXWIN << self.snd_scale)
    }

    /// Sets the window; returns the growth if it is larger than before.
    pub(crate) fn grow_to(&mut self, window: u32, growth: Growth) -> WindowChange {
        let before = core::mem::replace(&mut self.snd_cwnd, window);
        if window > before { WindowChange::Grew(growth) } else { WindowChange::None }
    }

    /// A loss (`CC_NDUPACK`): enters recovery; `None` if already in recovery. Returns true if the
    /// threshold is still to be reduced, since an ECN reduction has not done so.
    pub(crate) fn enter_recovery(&mut self, event: &CongestionEvent) -> Option<bool> {
        self.hystart.disable();
        if self.in_fastrecovery {
            return None;
        }
        self.snd_recover = event.snd_max;
        let first = !self.in_congrecovery;
        self.in_fastrecovery = true;
        self.in_congrecovery = true;
        Some(first)
    }

    /// An ECN echo (`CC_ECN`): enters an ECN reduction; returns true if it is a new one.
    pub(crate) fn enter_ecn_recovery(&mut self, event: &CongestionEvent) -> bool {
        if !self.in_congrecovery || event.th_ack >= self.snd_recover {
            self.in_congrecovery = false;
            self.snd_recover = event.snd_max + 1;
        }
        self.hystart.disable();
        !core::mem::replace(&mut self.in_congrecovery, true)
    }

    /// A timeout (`CC_RTO`), except for the threshold: saves the undo state at the first in a row
    /// and leaves recovery.
    pub(crate) fn enter_timeout(&mut self, event: &CongestionEvent, shift: u32) {
        if shift == 1 {
            self.before_timeout = RtoUndo {
                snd_cwnd: self.snd_cwnd,
                snd_ssthresh: self.snd_ssthresh,
                snd_recover: self.snd_recover,
                in_fastrecovery: self.in_fastrecovery,
                in_congrecovery: self.in_congrecovery,
            };
        }
        self.snd_recover = event.snd_max;
        self.bytes_acked = 0;
        self.in_fastrecovery = false;
        self.in_congrecovery = false;
    }

    /// `CC_RTO_ERR`: the echoed timestamp is older than the retransmission.
    pub(crate) fn undo_timeout(&mut self) {
        let before = self.before_timeout;
        self.snd_cwnd = before.snd_cwnd;
        self.snd_ssthresh = before.snd_ssthresh;
        self.snd_recover = before.snd_recover;
        self.in_fastrecovery |= before.in_fastrecovery;
        self.in_congrecovery |= before.in_congrecovery;
    }

    /// The window after a fast recovery with few bytes in flight: these plus a segment, to avoid a
    /// burst (RFC 6582); `None` where the controller's own rule applies.
    pub(crate) fn window_after_drain(&self, pipe: u64) -> Option<u32> {
        let pipe = clamped(pipe);
        let unit = self.growth_unit();
        (pipe < self.snd_ssthresh).then(|| pipe.max(unit).saturating_add(unit))
    }

    /// `EXIT_RECOVERY` of cc_post_recovery and rack_post_recovery.
    pub(crate) fn end_recovery(&mut self) {
        self.leave_recovery();
        if self.params.counting == AckCounting::All {
            self.bytes_acked = 0;
        }
    }

    /// `newreno_cc_after_idle`: three quarters of the window are kept as threshold.
    pub(crate) fn after_idle(&mut self) -> WindowChange {
        let three_quarters = self.snd_cwnd - (self.snd_cwnd >> 2);
        self.snd_ssthresh = self.snd_ssthresh.max(three_quarters);
        let before = self.snd_cwnd;
        self.snd_cwnd = before.min(self.initial_window());
        self.hystart.rearm();
        if self.snd_cwnd < before { WindowChange::Shrank } else { WindowChange::None }
    }

    /// A HyStart++ round began.
    pub(crate) fn on_round(&mut self, round: u32) -> WindowChange {
        match self.hystart.new_round(round) {
            None => WindowChange::None,
            Some(HyStartExit::ToAvoidance) => {
                self.snd_ssthresh = self.snd_cwnd;
                WindowChange::SlowStartEnded
            }
            Some(HyStartExit::ReduceWindow { cwnd, ssthresh }) => {
                self.snd_cwnd = cwnd;
                self.snd_ssthresh = ssthresh;
                WindowChange::SlowStartEnded
            }
        }
    }

    pub(crate) fn control(&self) -> Control {
        Control {
            window: Bytes(u64::from(self.snd_cwnd)),
            ssthresh: (self.snd_ssthresh != SSTHRESH_UNSET)
                .then_some(Bytes(u64::from(self.snd_ssthresh))),
            pacing: None,
        }
    }

    pub(crate) fn set_window(&mut self, window: Bytes) {
        self.snd_cwnd = clamped(window.get());
    }

    pub(crate) fn leave_recovery(&mut self) {
        self.in_fastrecovery = false;
        self.in_congrecovery = false;
    }

    pub(crate) fn set_threshold(&mut self, ssthresh: Option<Bytes>) {
        let bytes = ssthresh.map(|bytes| u32::try_from(bytes.get()).unwrap_or(SSTHRESH_UNSET));
        self.snd_ssthresh = bytes.unwrap_or(SSTHRESH_UNSET);
    }

    pub(crate) fn in_slow_start(&self) -> bool {
        self.snd_cwnd <= self.snd_ssthresh
    }
}

/// Clamps to the kernel's 32 bits.
pub(crate) fn clamped(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}
