//! Any one of the controllers, chosen at run time.

use units::{Bytes, Duration, Instant, Offset};

use crate::bbr3::ProbeDraw;
use crate::contract::{
    AckEvent, AckSample, CongestionEvent, ConnectionStart, Control, Controller, ControllerInputs,
    DeclaredInputs, IdleEvent, LostSegment, RateController, RateSample, RecoveryEnd, RttSample,
    WindowChange, WindowController,
};
use crate::cubic::{FreeBsdCubic, LinuxCubic, RfcCubic};
use crate::external::{ControllerError, ExternalController};
use crate::kernel::{AckApplied, StackView};
use crate::{Bbr, Bbr3, BbrDraft, KernelController, LinuxReno, NewReno};

/// Any controller, with its current output cached: it is read several times between two changes.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct AnyController {
    which: AnyKind,
    control: Control,
    in_recovery: bool,
    inputs: ControllerInputs,
}

/// An enum, since a scenario chooses the controller and a trait object could not be cloned.
/// Variants larger than the smallest are boxed: a simulation has thousands of connections. BBR's versions are
/// [`RateController`]s, the others are [`WindowController`]s.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
enum AnyKind {
    /// FreeBSD's NewReno.
    NewReno(Box<NewReno>),
    /// Linux's reno.
    LinuxReno(LinuxReno),
    /// FreeBSD's CUBIC.
    FreeBsdCubic(Box<FreeBsdCubic>),
    /// Linux's CUBIC.
    LinuxCubic(Box<LinuxCubic>),
    /// RFC 9438's CUBIC.
    RfcCubic(Box<RfcCubic>),
    /// Linux's BBR.
    Bbr(Box<Bbr>),
    /// Linux's BBR version 3.
    Bbr3(Box<Bbr3>),
    /// BBR of the draft.
    BbrDraft(Box<BbrDraft>),
    /// A user-defined controller, whose state cannot be serialized.
    #[serde(skip)]
    Piloted(Box<ExternalController>),
    /// A controller in C with Linux's operations, whose state cannot be serialized.
    #[serde(skip)]
    Kernel(Box<KernelController>),
}

/// Defines the calls of the controller inside, from the one list of controllers: those driven by
/// acknowledgments (`window`), by delivery rates (`rate`), or by either (`kernel`).
///
/// - `query!` asks it.
/// - `notify!` passes an event, and caches its output.
/// - `notify_window!` and `notify_rate!` pass an event that the other kind does not have: `$none`.
macro_rules! controllers {
    ($d:tt window [$($window:ident)*] rate [$($rate:ident)*] kernel [$($kernel:ident)*]) => {
        macro_rules! query {
            ($d any:expr, $d cc:ident => $d call:expr) => {
                match &$d any.which {
                    $(AnyKind::$window($d cc) => $d call,)*
                    $(AnyKind::$rate($d cc) => $d call,)*
                    $(AnyKind::$kernel($d cc) => $d call,)*
                }
            };
        }

        macro_rules! notify {
            ($d any:expr, $d cc:ident => $d call:expr) => {{
                let (result, control, in_recovery) = match &mut $d any.which {
                    $(AnyKind::$window($d cc) => ($d call, $d cc.control(), $d cc.in_recovery()),)*
                    $(AnyKind::$rate($d cc) => ($d call, $d cc.control(), $d cc.in_recovery()),)*
                    $(AnyKind::$kernel($d cc) => ($d call, $d cc.control(), $d cc.in_recovery()),)*
                };
                $d any.control = control;
                $d any.in_recovery = in_recovery;
                result
            }};
        }

        macro_rules! notify_window {
            ($d any:expr, $d cc:ident => $d call:expr $d (, $d none:expr)?) => {{
                let (result, control, in_recovery) = match &mut $d any.which {
                    $(AnyKind::$window($d cc) => ($d call, $d cc.control(), $d cc.in_recovery()),)*
                    $(AnyKind::$kernel($d cc) => ($d call, $d cc.control(), $d cc.in_recovery()),)*
                    $(AnyKind::$rate(_))|* => return $d ($d none)?,
                };
                $d any.control = control;
                $d any.in_recovery = in_recovery;
                result
            }};
        }

        macro_rules! notify_rate {
            ($d any:expr, $d cc:ident => $d call:expr $d (, $d none:expr)?) => {{
                let (result, control, in_recovery) = match &mut $d any.which {
                    $(AnyKind::$rate($d cc) => ($d call, $d cc.control(), $d cc.in_recovery()),)*
                    $(AnyKind::$kernel($d cc) => ($d call, $d cc.control(), $d cc.in_recovery()),)*
                    $(AnyKind::$window(_))|* => return $d ($d none)?,
                };
                $d any.control = control;
                $d any.in_recovery = in_recovery;
                result
            }};
        }
    };
}

controllers!($
    window [NewReno LinuxReno FreeBsdCubic LinuxCubic RfcCubic Piloted]
    rate [Bbr Bbr3 BbrDraft]
    kernel [Kernel]
);

/// Makes a controller of each kind.
macro_rules! convert {
    ($($kind:ident($type:ty) = $hold:expr;)*) => {
        $(impl From<$type> for AnyController {
            fn from(cc: $type) -> Self {
                Self::new(AnyKind::$kind($hold(cc)), <$type as DeclaredInputs>::INPUTS)
            }
        })*
    };
}

convert! {
    NewReno(NewReno) = Box::new;
    LinuxReno(LinuxReno) = core::convert::identity;
    FreeBsdCubic(FreeBsdCubic) = Box::new;
    LinuxCubic(LinuxCubic) = Box::new;
    RfcCubic(RfcCubic) = Box::new;
    Bbr(Bbr) = Box::new;
    Bbr3(Bbr3) = Box::new;
    BbrDraft(BbrDraft) = Box::new;
    Kernel(KernelController) = Box::new;
    Piloted(ExternalController) = Box::new;
}

impl AnyController {
    fn new(which: AnyKind, inputs: ControllerInputs) -> Self {
        let control = Control { window: Bytes::ZERO, ssthresh: None, pacing: None };
        let mut any = Self { which, control, in_recovery: false, inputs };
        any.control = query!(any, cc => cc.control());
        any.in_recovery = query!(any, cc => cc.in_recovery());
        any
    }

    /// True if it uses [`WindowController::on_ack_sample`].
    #[inline]
    pub const fn uses_ack_samples(&self) -> bool {
        self.inputs.ack_samples
    }

    /// Error of a user-defined controller, if it failed.
    pub fn failure(&self) -> Option<&ControllerError> {
        match &self.which {
            AnyKind::Piloted(cc) => cc.failure(),
            AnyKind::Kernel(cc) => cc.failure(),
            _ => None,
        }
    }

    /// True if it uses [`AckEvent::srtt`].
    #[inline]
    pub const fn uses_srtt(&self) -> bool {
        self.inputs.srtt
    }
}

impl Controller for AnyController {
    fn on_established(&mut self, event: &ConnectionStart) -> WindowChange {
        notify!(self, cc => cc.on_established(event))
    }

    fn on_acked(&mut self, event: &AckEvent) -> WindowChange {
        notify!(self, cc => cc.on_acked(event))
    }

    fn on_congested(&mut self, event: &CongestionEvent) -> WindowChange {
        notify!(self, cc => cc.on_congested(event))
    }

    fn on_recovered(&mut self, event: &RecoveryEnd) -> WindowChange {
        notify!(self, cc => cc.on_recovered(event))
    }

    fn on_idle(&mut self, event: &IdleEvent) -> WindowChange {
        notify!(self, cc => cc.on_idle(event))
    }

    fn on_mss(&mut self, mss: u32, maxseg: u32) {
        notify!(self, cc => cc.on_mss(mss, maxseg));
    }

    #[inline]
    fn control(&self) -> Control {
        self.control
    }

    fn set_window(&mut self, window: Bytes) {
        notify!(self, cc => cc.set_window(window));
    }

    fn leave_recovery(&mut self) {
        notify!(self, cc => cc.leave_recovery());
    }

    fn set_threshold(&mut self, ssthresh: Option<Bytes>) {
        notify!(self, cc => cc.set_threshold(ssthresh));
    }

    #[inline]
    fn in_recovery(&self) -> bool {
        self.in_recovery
    }

    fn in_slow_start(&self) -> bool {
        query!(self, cc => cc.in_slow_start())
    }

    fn recovery_point(&self) -> Offset {
        query!(self, cc => cc.recovery_point())
    }

    #[inline(always)]
    fn ignores_ack(&self, window_limited: bool, max_packets_out: u32) -> bool {
        query!(self, cc => cc.ignores_ack(window_limited, max_packets_out))
    }

    fn t_bytes_acked(&self) -> Option<u32> {
        query!(self, cc => cc.t_bytes_acked())
    }
}

impl WindowController for AnyController {
    fn on_window_used(&mut self, window: Bytes) {
        notify_window!(self, cc => cc.on_window_used(window));
    }

    fn on_duplicate(&mut self, event: &AckEvent) {
        notify_window!(self, cc => cc.on_duplicate(event));
    }

    fn on_round(&mut self, round: u32) -> WindowChange {
        notify_window!(self, cc => cc.on_round(round), WindowChange::None)
    }

    fn on_rtt_sample(&mut self, sample: &RttSample) -> WindowChange {
        notify_window!(self, cc => cc.on_rtt_sample(sample), WindowChange::None)
    }

    fn on_ack_sample(&mut self, sample: &AckSample) -> WindowChange {
        notify_window!(self, cc => cc.on_ack_sample(sample), WindowChange::None)
    }

    fn on_tx_start(&mut self, ticks: u64, last_sent: u64) {
        notify_window!(self, cc => cc.on_tx_start(ticks, last_sent));
    }
}

/// Passes an event to the controller in C inside, and caches its output. Others do not have the event: `$none`.
macro_rules! notify_kernel {
    ($any:expr, $cc:ident => $call:expr $(, $none:expr)?) => {{
        let AnyKind::Kernel($cc) = &mut $any.which else { return $($none)? };
        let (result, control, in_recovery) = ($call, $cc.control(), $cc.in_recovery());
        $any.control = control;
        $any.in_recovery = in_recovery;
        result
    }};
}

/// What concerns rate-based controllers.
impl AnyController {
    /// The controller, if it is rate-based.
    #[inline]
    pub fn rate_based(&self) -> Option<RateBased<'_>> {
        match &self.which {
            AnyKind::Bbr(cc) => Some(RateBased::Bbr(cc)),
            AnyKind::Bbr3(cc) => Some(RateBased::Bbr3(cc)),
            AnyKind::BbrDraft(cc) => Some(RateBased::BbrDraft(cc)),
            AnyKind::Kernel(cc) if cc.sets_rate() => Some(RateBased::Kernel(cc)),
            _ => None,
        }
    }

    /// Replaces what BBR version 3 drew for its current cycle, which has just begun; nothing with another controller.
    pub fn redraw(&mut self, draw: ProbeDraw) {
        if let AnyKind::Bbr3(cc) = &mut self.which {
            cc.redraw(draw);
        }
    }

    /// Replaces the phase in which ProbeBW of BBR version 1 has just begun; nothing with another controller.
    pub fn set_probe_phase(&mut self, phase: usize) {
        if let AnyKind::Bbr(cc) = &mut self.which {
            cc.set_probe_phase(phase);
        }
    }

    /// BBR version 1, if it is that.
    pub fn bbr1(&self) -> Option<&Bbr> {
        if let AnyKind::Bbr(cc) = &self.which { Some(cc) } else { None }
    }

    /// Replaces what BBR of the draft drew for its current cycle, which has just begun; nothing with another controller.
    pub fn redraw_draft(&mut self, rounds: u64, wait: Duration) {
        if let AnyKind::BbrDraft(cc) = &mut self.which {
            cc.redraw(rounds, wait);
        }
    }

    /// BBR version 3, if it is that.
    pub fn bbr3(&self) -> Option<&Bbr3> {
        if let AnyKind::Bbr3(cc) = &self.which { Some(cc) } else { None }
    }

    /// BBR of the draft, if it is that.
    pub fn bbr_draft(&self) -> Option<&BbrDraft> {
        if let AnyKind::BbrDraft(cc) = &self.which { Some(cc) } else { None }
    }

    /// Sets the window by a rule of the stack; rate-based controllers keep theirs.
    pub fn override_window(&mut self, window: Bytes) {
        if self.rate_based().is_none() {
            self.set_window(window);
        }
    }

    /// [`RateController::on_rate_sample`].
    pub fn on_rate_sample(&mut self, sample: &RateSample) -> WindowChange {
        notify_rate!(self, cc => cc.on_rate_sample(sample), WindowChange::None)
    }

    /// [`RateController::on_restart`].
    pub fn on_restart(&mut self, now: Instant, ticks: u64, app_limited: bool) {
        notify_rate!(self, cc => cc.on_restart(now, ticks, app_limited));
    }

    /// [`RateController::on_segment_lost`].
    pub fn on_segment_lost(&mut self, lost: &LostSegment) {
        notify_rate!(self, cc => cc.on_segment_lost(lost));
    }

    /// [`RateController::on_probe_repaired`].
    pub fn on_probe_repaired(&mut self, now: Instant, delivered: u64, app_limited: bool) {
        notify_rate!(self, cc => cc.on_probe_repaired(now, delivered, app_limited));
    }
}

/// What concerns controllers in C with Linux's operations.
impl AnyController {
    /// True if it is one, which needs [`AnyController::view`] before each event.
    #[inline]
    pub const fn uses_view(&self) -> bool {
        self.inputs.view
    }

    /// The controller, if it is one.
    pub fn kernel(&self) -> Option<&KernelController> {
        if let AnyKind::Kernel(cc) = &self.which { Some(cc) } else { None }
    }

    /// Sets what the stack owns.
    pub fn view(&mut self, view: &StackView) {
        notify_kernel!(self, cc => cc.view(view));
    }

    /// ECN was negotiated or not; before the connection is established.
    pub fn set_ecn(&mut self, agreed: bool) {
        notify_kernel!(self, cc => cc.set_ecn(agreed));
    }

    /// An acknowledgment was applied to the retransmission queue (the end of tcp_clean_rtx_queue).
    pub fn on_ack_applied(&mut self, ack: &AckApplied) -> WindowChange {
        notify_kernel!(self, cc => cc.on_ack_applied(ack), WindowChange::None)
    }

    /// The state Open or Disorder is to be found anew (tcp_try_keep_open).
    pub fn on_order(&mut self) {
        notify_kernel!(self, cc => cc.on_order());
    }

    /// It has reduced the window by itself since the last call (tcp_enter_cwr).
    pub fn take_cwr_request(&mut self) -> bool {
        if let AnyKind::Kernel(cc) = &mut self.which { cc.take_cwr_request() } else { false }
    }

    /// Minimum packets of a burst, where it sets them.
    #[inline]
    pub fn min_burst(&self) -> Option<u32> {
        match &self.which {
            AnyKind::Kernel(cc) => cc.min_tso_segs(),
            _ => self.rate_based().map(|cc| cc.min_burst()),
        }
    }

    /// Size of Linux's send buffer in windows, where it sets it.
    pub fn windows_buffered(&self) -> Option<u64> {
        match &self.which {
            AnyKind::Kernel(cc) => cc.sndbuf_expand(),
            _ => self.rate_based().map(|cc| cc.windows_buffered()),
        }
    }
}

/// A rate-based controller, for questions.
#[derive(Debug, Clone, Copy)]
pub enum RateBased<'c> {
    /// BBR version 1.
    Bbr(&'c Bbr),
    /// BBR version 3.
    Bbr3(&'c Bbr3),
    /// BBR of the draft.
    BbrDraft(&'c BbrDraft),
    /// A controller in C.
    Kernel(&'c KernelController),
}

impl RateBased<'_> {
    /// [`RateController::needs_tx_state`].
    pub fn needs_tx_state(&self) -> bool {
        match self {
            Self::Bbr(cc) => cc.needs_tx_state(),
            Self::Bbr3(cc) => cc.needs_tx_state(),
            Self::BbrDraft(cc) => cc.needs_tx_state(),
            Self::Kernel(cc) => cc.needs_tx_state(),
        }
    }

    /// [`RateController::burst`].
    pub fn burst(&self, gso_max_size: u64) -> Option<u32> {
        match self {
            Self::Bbr(cc) => cc.burst(gso_max_size),
            Self::Bbr3(cc) => cc.burst(gso_max_size),
            Self::BbrDraft(cc) => cc.burst(gso_max_size),
            Self::Kernel(cc) => cc.burst(gso_max_size),
        }
    }

    /// [`RateController::sends_little`].
    pub fn sends_little(&self) -> bool {
        match self {
            Self::Bbr(cc) => cc.sends_little(),
            Self::Bbr3(cc) => cc.sends_little(),
            Self::BbrDraft(cc) => cc.sends_little(),
            Self::Kernel(cc) => cc.sends_little(),
        }
    }

    /// [`RateController::min_burst`].
    pub fn min_burst(&self) -> u32 {
        match self {
            Self::Bbr(cc) => cc.min_burst(),
            Self::Bbr3(cc) => cc.min_burst(),
            Self::BbrDraft(cc) => cc.min_burst(),
            Self::Kernel(cc) => cc.min_burst(),
        }
    }

    /// [`RateController::windows_buffered`].
    pub fn windows_buffered(&self) -> u64 {
        match self {
            Self::Bbr(cc) => cc.windows_buffered(),
            Self::Bbr3(cc) => cc.windows_buffered(),
            Self::BbrDraft(cc) => cc.windows_buffered(),
            Self::Kernel(cc) => cc.windows_buffered(),
        }
    }
}
