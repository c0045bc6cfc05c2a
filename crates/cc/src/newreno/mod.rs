//! FreeBSD's default controller.
//!
//! Sources: cc_newreno.c (newreno_ack_received, newreno_cong_signal, newreno_post_recovery,
//! newreno_after_idle), cc.c (newreno_cc_*), and the bookkeeping around them in tcp_input.c
//! (cc_conn_init, cc_ack_received, cc_cong_signal, cc_post_recovery) and tcp_timer.c
//! (tcp_timer_rexmt, what an undo needs). Versions differ by [`Params`] alone.
//!
//! Where it departs from the RFCs it follows the kernel:
//! - Appropriate byte counting (RFC 3465) bounds slow start by `lro_nsegs * L * t_maxseg`, so ACKs
//!   that the host's LRO merged count as one.
//! - A window counts as in use whenever it is not larger than the peer's: a sender short of data
//!   still grows it.
//! - Beyond slow start a window's worth of acknowledged bytes adds one segment; bytes are counted
//!   in recovery too, so that the first ACK after it may add one at once.

mod hystart;
mod params;
#[cfg(test)]
mod tests;

use units::{Bytes, Offset};

pub use hystart::{HyStart, HyStartMode};
pub use params::{Params, TimeoutRule, Unit};

use crate::contract::{
    Acked, Change, Congested, Control, Controller, Established, Growth, Idle, Recovered, RttSample,
    Signal,
};

/// `TCP_MAXWIN`: the largest unscaled window.
const TCP_MAXWIN: u32 = 65_535;
/// `TCP_MAXWIN << TCP_MAX_WINSHIFT`: the threshold while unset.
const SSTHRESH_UNSET: u32 = TCP_MAXWIN << 14;

/// FreeBSD NewReno, one connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewReno {
    params: Params,
    mss: u32,
    maxseg: u32,
    snd_scale: u8,
    snd_cwnd: u32,
    snd_ssthresh: u32,
    snd_recover: Offset,
    /// Bytes acknowledged beyond slow start and not yet turned into growth (`t_bytes_acked`).
    bytes_acked: u32,
    /// A window's worth of bytes was acknowledged (`CCF_ABC_SENTAWND`).
    sent_a_wnd: bool,
    in_fastrecovery: bool,
    in_congrecovery: bool,
    before_timeout: BeforeTimeout,
    hystart: HyStart,
}

/// State at the first timeout in a row, for its undo (`snd_cwnd_prev` and its neighbours).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct BeforeTimeout {
    snd_cwnd: u32,
    snd_ssthresh: u32,
    snd_recover: Offset,
    in_fastrecovery: bool,
    in_congrecovery: bool,
}

impl NewReno {
    /// A controller that behaves as `params` say. It opens with
    /// [`on_established`](Controller::on_established).
    pub fn new(params: Params) -> Self {
        Self {
            params,
            mss: 0,
            maxseg: 0,
            snd_scale: 0,
            snd_cwnd: 0,
            snd_ssthresh: SSTHRESH_UNSET,
            snd_recover: Offset(0),
            bytes_acked: 0,
            sent_a_wnd: false,
            in_fastrecovery: false,
            in_congrecovery: false,
            before_timeout: BeforeTimeout::default(),
            hystart: HyStart::new(&params),
        }
    }

    /// Its parameters.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// `snd_cwnd` in bytes.
    pub fn snd_cwnd(&self) -> u32 {
        self.snd_cwnd
    }

    /// `snd_ssthresh` in bytes; 1,073,725,440 while unset.
    pub fn snd_ssthresh(&self) -> u32 {
        self.snd_ssthresh
    }

    /// `t_bytes_acked`: bytes on the way to the next segment of growth beyond slow start.
    pub fn bytes_acked(&self) -> u32 {
        self.bytes_acked
    }

    /// `CCF_ABC_SENTAWND`: is that next segment due?
    pub fn sent_a_wnd(&self) -> bool {
        self.sent_a_wnd
    }

    /// Does a fast recovery run (`TF_FASTRECOVERY`)?
    pub fn in_fastrecovery(&self) -> bool {
        self.in_fastrecovery
    }

    /// Has the window been lowered for congestion in the flight under way (`TF_CONGRECOVERY`)?
    pub fn in_congrecovery(&self) -> bool {
        self.in_congrecovery
    }

    /// State of HyStart++.
    pub fn hystart(&self) -> &HyStart {
        &self.hystart
    }

    /// Segment size that growth counts in.
    fn growth_unit(&self) -> u32 {
        match self.params.growth_unit {
            Unit::MaxSeg => self.maxseg,
            Unit::Mss => self.mss,
        }
    }

    /// `percent` of `window`, in whole segments, at least two.
    fn share_of(&self, window: u32, percent: u32) -> u32 {
        let hundredths = 100 * u64::from(self.mss.max(1));
        let segments = (u64::from(window) * u64::from(percent) / hundredths).max(2);
        (segments as u32).wrapping_mul(self.mss)
    }

    /// `tcp_compute_initwnd`: some segments, fewer of large ones (RFC 6928, else RFC 3390).
    fn initial_window(&self) -> u32 {
        let (segments, bytes) = match self.params.initcwnd_segments {
            0 => (4, 4_380),
            n => (n, n.saturating_mul(1_460)),
        };
        segments.saturating_mul(self.mss).min(self.mss.saturating_mul(2).max(bytes))
    }

    /// Growth in slow start (newreno_ack_received).
    fn slow_start_increase(&mut self, event: &Acked, bytes: u32) -> u32 {
        let unit = self.growth_unit();
        if !self.params.rfc3465 {
            return unit;
        }
        self.hystart.consider_css();
        let limit = if event.resending {
            // L > 1 is not allowed after a timeout (RFC 3465 section 2.3).
            unit
        } else {
            event.nsegs.max(1).wrapping_mul(self.params.abc_l_var).wrapping_mul(unit)
        };
        self.hystart.soften(bytes.min(limit))
    }

    /// Growth in congestion avoidance (newreno_ack_received).
    fn avoidance_increase(&mut self) -> u32 {
        let unit = self.growth_unit();
        self.hystart.slipped_into_avoidance();
        if self.params.rfc3465 {
            if core::mem::take(&mut self.sent_a_wnd) { unit } else { 0 }
        } else {
            (unit.wrapping_mul(unit) / self.snd_cwnd.max(1)).max(1)
        }
    }

    fn on_timeout(&mut self, event: &Congested, shift: u32) -> Change {
        if shift == 1 {
            self.before_timeout = BeforeTimeout {
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
        let snd_wnd = u32::try_from(event.snd_wnd).unwrap_or(u32::MAX);
        match self.params.timeout_rule {
            TimeoutRule::HalfWindowEachTime => {
                let segments = snd_wnd.min(self.snd_cwnd) / 2 / self.mss.max(1);
                self.snd_ssthresh = segments.max(2).wrapping_mul(self.mss);
            }
            TimeoutRule::SharePipeOnce => {
                if shift == 1 {
                    let pipe = u32::try_from(event.pipe).unwrap_or(u32::MAX);
                    self.snd_ssthresh = self.share_of(snd_wnd.min(pipe), self.params.beta);
                }
            }
        }
        self.snd_cwnd = self.mss;
        Change::Collapsed
    }

    /// `CC_RTO_ERR`: the echoed timestamp is older than the retransmission.
    fn undo_timeout(&mut self) -> Change {
        let before = self.before_timeout;
        self.snd_cwnd = before.snd_cwnd;
        self.snd_ssthresh = before.snd_ssthresh;
        self.snd_recover = before.snd_recover;
        self.in_fastrecovery |= before.in_fastrecovery;
        self.in_congrecovery |= before.in_congrecovery;
        Change::Undone
    }

    fn on_loss(&mut self, event: &Congested) -> Change {
        self.hystart.disable();
        if self.in_fastrecovery {
            return Change::None;
        }
        self.snd_recover = event.snd_max;
        // The kernel's ABE branch for loss in an ECN episode cannot be reached: its flag test
        // is misplaced inside the parenthesis.
        if !self.in_congrecovery {
            self.snd_ssthresh = self.share_of(self.snd_cwnd, self.params.beta);
        }
        self.in_fastrecovery = true;
        self.in_congrecovery = true;
        // The window is left to the stack's PRR.
        Change::RecoveryBegan
    }

    fn on_ecn(&mut self, event: &Congested) -> Change {
        if !self.in_congrecovery || event.th_ack >= self.snd_recover {
            self.in_congrecovery = false;
            self.snd_recover = event.snd_max + 1;
        }
        self.hystart.disable();
        if self.in_congrecovery {
            return Change::None;
        }
        let share = self.share_of(self.snd_cwnd, self.params.beta_ecn.unwrap_or(self.params.beta));
        self.snd_ssthresh = share;
        self.snd_cwnd = share;
        self.in_congrecovery = true;
        Change::RecoveryBegan
    }
}

impl Controller for NewReno {
    fn on_established(&mut self, event: &Established) -> Change {
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
        Change::None
    }

    fn on_acked(&mut self, event: &Acked) -> Change {
        let bytes = u32::try_from(event.bytes).unwrap_or(u32::MAX);
        let cwnd_limited = u64::from(self.snd_cwnd) <= event.snd_wnd;
        if self.snd_cwnd > self.snd_ssthresh {
            self.bytes_acked = self.bytes_acked.wrapping_add(bytes);
            if self.bytes_acked >= self.snd_cwnd {
                self.bytes_acked -= self.snd_cwnd;
                self.sent_a_wnd = true;
            }
        } else {
            self.sent_a_wnd = false;
            self.bytes_acked = 0;
        }
        if self.in_fastrecovery || self.in_congrecovery || !cwnd_limited {
            return Change::None;
        }
        let (increase, growth) = if self.snd_cwnd > self.snd_ssthresh {
            (self.avoidance_increase(), Growth::Avoidance)
        } else {
            (self.slow_start_increase(event, bytes), Growth::SlowStart)
        };
        if increase == 0 {
            return Change::None;
        }
        let before = self.snd_cwnd;
        self.snd_cwnd = before.wrapping_add(increase).min(TCP_MAXWIN << self.snd_scale);
        if self.snd_cwnd == before { Change::None } else { Change::Grew(growth) }
    }

    fn on_congested(&mut self, event: &Congested) -> Change {
        match event.signal {
            Signal::Loss => self.on_loss(event),
            Signal::Ecn => self.on_ecn(event),
            Signal::Timeout { shift } => self.on_timeout(event, shift),
            Signal::SpuriousTimeout => self.undo_timeout(),
            Signal::SpuriousRecovery => Change::None,
        }
    }

    fn on_recovered(&mut self, event: &Recovered) -> Change {
        let began = self.in_fastrecovery;
        if began {
            let pipe = u32::try_from(event.pipe).unwrap_or(u32::MAX);
            self.snd_cwnd = if pipe < self.snd_ssthresh {
                let unit = self.growth_unit();
                pipe.max(unit).wrapping_add(unit)
            } else {
                self.snd_ssthresh
            };
        }
        self.in_fastrecovery = false;
        self.in_congrecovery = false;
        self.bytes_acked = 0;
        Change::RecoveryEnded
    }

    fn on_idle(&mut self, _event: &Idle) -> Change {
        let three_quarters = (self.snd_cwnd >> 1) + (self.snd_cwnd >> 2);
        self.snd_ssthresh = self.snd_ssthresh.max(three_quarters);
        let before = self.snd_cwnd;
        self.snd_cwnd = before.min(self.initial_window());
        self.hystart.rearm();
        if self.snd_cwnd < before { Change::Shrank } else { Change::None }
    }

    fn on_mss(&mut self, mss: u32, maxseg: u32) {
        self.mss = mss;
        self.maxseg = maxseg;
    }

    fn on_round(&mut self, round: u32) -> Change {
        match self.hystart.new_round(round) {
            None => Change::None,
            Some(hystart::Exit::ToAvoidance) => {
                self.snd_ssthresh = self.snd_cwnd;
                Change::SlowStartEnded
            }
            Some(hystart::Exit::Brake { cwnd, ssthresh }) => {
                self.snd_cwnd = cwnd;
                self.snd_ssthresh = ssthresh;
                Change::SlowStartEnded
            }
        }
    }

    fn on_rtt_sample(&mut self, sample: &RttSample) -> Change {
        self.hystart.rtt_sample(sample);
        Change::None
    }

    fn control(&self) -> Control {
        Control {
            window: Bytes(u64::from(self.snd_cwnd)),
            ssthresh: (self.snd_ssthresh != SSTHRESH_UNSET)
                .then_some(Bytes(u64::from(self.snd_ssthresh))),
            pacing: None,
        }
    }

    fn set_window(&mut self, window: Bytes) {
        self.snd_cwnd = u32::try_from(window.get()).unwrap_or(u32::MAX);
    }

    fn leave_recovery(&mut self) {
        self.in_fastrecovery = false;
        self.in_congrecovery = false;
    }

    fn set_threshold(&mut self, ssthresh: Option<Bytes>) {
        let bytes = ssthresh.map(|bytes| u32::try_from(bytes.get()).unwrap_or(SSTHRESH_UNSET));
        self.snd_ssthresh = bytes.unwrap_or(SSTHRESH_UNSET);
    }

    fn in_recovery(&self) -> bool {
        self.in_fastrecovery
    }

    fn in_slow_start(&self) -> bool {
        self.snd_cwnd <= self.snd_ssthresh
    }

    fn recovery_point(&self) -> Offset {
        self.snd_recover
    }
}
