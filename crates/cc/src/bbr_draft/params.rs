//! The parameters of BBR as the draft has them, and the dialects of QUIC stacks: one machine, other values and switches.
//!
//! Sources, from the public repositories: the draft (ietf-wg-ccwg/draft-ietf-ccwg-bbr
//! 4ce5e87d, after revision 06), picoquic (private-octopus/picoquic d199d45b, `picoquic/bbr.c`), quiche
//! (cloudflare/quiche e97798e1, `quiche/src/recovery/gcongestion/bbr2.rs` and `bbr2/`), s2n-quic (aws/s2n-quic a33d369b,
//! `quic/s2n-quic-core/src/recovery/bbr.rs` and `bbr/`). lsquic (litespeedtech/lsquic 19547405, release 4.9.3) has
//! version 1 only: `es_cc_algo` of `include/lsquic.h` (lines 736 to 743), and the eight gains of `src/liblsquic/lsquic_bbr.c`
//! (`kPacingGain`). The notes of its release 4.12.0 name a version 3 with the profiles regular, medium-loss and high-loss; no
//! public source read here has their values, so they are no dialects of this machine.

use serde::{Deserialize, Serialize};
use units::Duration;

/// 1 in units of gains and fractions, which are in thousandths.
pub(super) const UNIT: u64 = 1_000;

/// When ProbeBW_UP ends without excess loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum UpExit {
    /// The delivery rate has not grown for three rounds (section "Exit Conditions for Bandwidth Probing").
    FullPipe,
    /// After a minimum RTT, with more than 1.25 bandwidth-delay products in flight (draft-cardwell-iccrg-bbr-02).
    Inflight,
    /// The flight has not fallen below 1.25 bandwidth-delay products for this number of rounds.
    Queue {
        /// Rounds.
        rounds: u32,
    },
}

/// What CE marks mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum MarkRule {
    /// The same as losses: the draft leaves the response open and demands one.
    AsLosses,
    /// A probe has gone too far above this share of marked data, in thousandths; else they are ignored.
    Share(u64),
    /// They are ignored.
    Ignored,
}

/// Parameters of BBR. Gains and fractions are in thousandths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct BbrDraftParams {
    /// The name of the dialect, as a congestion control.
    pub name: &'static str,
    /// `BBR.StartupPacingGain`.
    pub startup_pacing_gain: u64,
    /// `BBR.DrainPacingGain`.
    pub drain_pacing_gain: u64,
    /// `BBR.DefaultCwndGain`.
    pub cwnd_gain: u64,
    /// Pacing gain of ProbeBW_UP.
    pub up_pacing_gain: u64,
    /// Window gain of ProbeBW_UP.
    pub up_cwnd_gain: u64,
    /// Pacing gain of ProbeBW_DOWN.
    pub down_pacing_gain: u64,
    /// `BBR.ProbeRTTCwndGain`.
    pub probe_rtt_cwnd_gain: u64,
    /// `BBR.PacingMarginPercent`.
    pub pacing_margin_percent: u64,
    /// `BBR.LossThresh`.
    pub loss_thresh: u64,
    /// `BBR.Beta`: what is left by a reduction.
    pub beta: u64,
    /// `BBR.Headroom`.
    pub headroom: u64,
    /// `BBR.MinPipeCwnd`, in segments.
    pub min_pipe: u64,
    /// Losses of a round that end Startup (`BBRStartupFullLossCnt`).
    pub startup_full_losses: u32,
    /// Startup ends by losses only after a round in recovery.
    pub startup_in_recovery: bool,
    /// Losses of a round before a probe has gone too far.
    pub probe_full_losses: u32,
    /// Growth by which the pipe is not yet full.
    pub full_bw_growth: u64,
    /// Rounds without it after which it is full.
    pub full_bw_rounds: u32,
    /// The growth is that of `BBR.max_bw`, not that of the sample.
    pub full_bw_of_max: bool,
    /// Rounds after which Drain ends in any case.
    pub drain_rounds: Option<u64>,
    /// When ProbeBW_UP ends without excess loss.
    pub up_exit: UpExit,
    /// ProbeBW_DOWN ends after a minimum RTT at the latest.
    pub down_for_min_rtt: bool,
    /// Precautionary bandwidth probing after a probe that went too far.
    pub precautionary: bool,
    /// A spurious recovery is undone.
    pub undo: bool,
    /// What CE marks mean.
    pub marks: MarkRule,
    /// `BBR.MinRTTFilterLen`.
    pub min_rtt_filter: Duration,
    /// `BBR.ProbeRTTInterval`.
    pub probe_rtt_interval: Duration,
    /// `BBR.ProbeRTTDuration`.
    pub probe_rtt_duration: Duration,
    /// ProbeRTT begins only at the end of ProbeBW_DOWN.
    pub probe_rtt_after_down: bool,
    /// Least time between two bandwidth probes, and the random part of it.
    pub probe_wait: [Duration; 2],
    /// From this minimum RTT on they are eight and up to four minimum RTTs.
    pub long_rtt: Option<Duration>,
    /// Most rounds between two probes.
    pub reno_rounds: u64,
    /// `BBR.ExtraAckedFilterLen`, in rounds.
    pub extra_acked_rounds: u64,
}

/// The draft (sections 2 and 5).
pub const DRAFT: BbrDraftParams = BbrDraftParams {
    name: "bbr-draft",
    startup_pacing_gain: 2_770,
    drain_pacing_gain: 500,
    cwnd_gain: 2_000,
    up_pacing_gain: 1_250,
    up_cwnd_gain: 2_250,
    down_pacing_gain: 900,
    probe_rtt_cwnd_gain: 500,
    pacing_margin_percent: 1,
    loss_thresh: 20,
    beta: 700,
    headroom: 150,
    min_pipe: 4,
    startup_full_losses: 6,
    startup_in_recovery: true,
    probe_full_losses: 1,
    full_bw_growth: 1_250,
    full_bw_rounds: 3,
    full_bw_of_max: false,
    drain_rounds: Some(3),
    up_exit: UpExit::FullPipe,
    down_for_min_rtt: false,
    precautionary: true,
    undo: true,
    marks: MarkRule::AsLosses,
    min_rtt_filter: Duration::from_secs(10),
    probe_rtt_interval: Duration::from_secs(5),
    probe_rtt_duration: Duration::from_millis(200),
    probe_rtt_after_down: false,
    probe_wait: [Duration::from_secs(2), Duration::from_secs(1)],
    long_rtt: None,
    reno_rounds: 63,
    extra_acked_rounds: 10,
};

/// picoquic's `bbr`. Its constants at the top of `bbr.c`; `BBRCheckStartupHighLoss`, `BBRCheckDrain`, `BBRPickProbeWait`,
/// `BBRUpdateProbeBWCyclePhase` (the end of ProbeBW_UP), `BBRExcessiveEcnCE`. Not modelled: HyStart in place of Startup
/// from 250 ms on, careful resume, the end of Startup by delay, the return to Startup after a PTO, probes soon after
/// growth (`probe_probe_bw_quickly`), the RTT jitter buffer.
pub const PICOQUIC: BbrDraftParams = BbrDraftParams {
    name: "bbr-picoquic",
    startup_in_recovery: false,
    drain_rounds: None,
    up_exit: UpExit::Inflight,
    precautionary: false,
    undo: false,
    marks: MarkRule::Share(200),
    long_rtt: Some(Duration::from_millis(250)),
    ..DRAFT
};

/// quiche's BBR v2 (`DEFAULT_PARAMS` of `bbr2.rs`; `network_model.rs`, `probe_bw.rs`, `startup.rs`). Its wait has no random part;
/// its fraction 0.3 is what a reduction takes. Assumed: no reaction to CE marks, no undo (neither was found). Not modelled: the
/// bandwidth sampler's own choice of intervals, a slower Startup at the end of rounds
/// (`decrease_startup_pacing_at_end_of_round`).
pub const QUICHE: BbrDraftParams = BbrDraftParams {
    name: "bbr-quiche",
    startup_pacing_gain: 2_773,
    drain_pacing_gain: 347,
    loss_thresh: 15,
    startup_full_losses: 8,
    startup_in_recovery: false,
    probe_full_losses: 2,
    full_bw_of_max: true,
    drain_rounds: None,
    up_exit: UpExit::Queue { rounds: 2 },
    down_for_min_rtt: true,
    undo: false,
    marks: MarkRule::Ignored,
    probe_rtt_interval: Duration::from_secs(10),
    probe_rtt_after_down: true,
    probe_wait: [Duration::from_micros(2_000_500), Duration::ZERO],
    ..DRAFT
};

/// s2n-quic's BBR v2, after draft-cardwell-iccrg-bbr-02 (`bbr.rs`, `full_pipe.rs`, `drain.rs`, `probe_bw.rs`, `probe_rtt.rs`,
/// `windowed_filter.rs`; `ecn.rs`: `ECN_THRESH`). Assumed: no undo (none was found). Not modelled: the moving average of marks
/// (`ECN_FACTOR`).
pub const S2N_QUIC: BbrDraftParams = BbrDraftParams {
    name: "bbr-s2n",
    up_cwnd_gain: 2_000,
    startup_full_losses: 8,
    startup_in_recovery: false,
    probe_full_losses: 2,
    full_bw_of_max: true,
    drain_rounds: None,
    up_exit: UpExit::Inflight,
    precautionary: false,
    undo: false,
    marks: MarkRule::Share(500),
    ..DRAFT
};

/// Every dialect, the draft first.
pub const DIALECTS: [&BbrDraftParams; 4] = [&DRAFT, &PICOQUIC, &QUICHE, &S2N_QUIC];
