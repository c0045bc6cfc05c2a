//! The parameters of BBR version 3, in the kernel's units and under the kernel's names.

use serde::{Deserialize, Serialize};

/// 1 in units of gain (`BBR_UNIT`).
pub(super) const UNIT: u32 = 256;

/// Parameters of BBR version 3. Gains and fractions are in 256ths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub struct Bbr3Params {
    /// Window of the minimum RTT, in seconds (`bbr_min_rtt_win_sec`).
    pub min_rtt_win_sec: u64,
    /// Least time in ProbeRTT, in milliseconds (`bbr_probe_rtt_mode_ms`).
    pub probe_rtt_mode_ms: u64,
    /// Usual interval between two ProbeRTT, in milliseconds (`bbr_probe_rtt_win_ms`).
    pub probe_rtt_win_ms: u64,
    /// Window in ProbeRTT, as a fraction of the bandwidth-delay product (`bbr_probe_rtt_cwnd_gain`).
    pub probe_rtt_cwnd_gain: u32,
    /// The burst for the round trip halves with each 2^n microseconds of it (`bbr_tso_rtt_shift`).
    pub tso_rtt_shift: u32,
    /// The rate is this percentage below the bandwidth (`bbr_pacing_margin_percent`).
    pub pacing_margin_percent: u64,
    /// Pacing gain of Startup (`bbr_startup_pacing_gain`).
    pub startup_pacing_gain: u32,
    /// Window gain of Startup and Drain (`bbr_startup_cwnd_gain`).
    pub startup_cwnd_gain: u32,
    /// Pacing gain of Drain (`bbr_drain_gain`).
    pub drain_gain: u32,
    /// Window gain of ProbeBW (`bbr_cwnd_gain`).
    pub cwnd_gain: u32,
    /// Pacing gains of ProbeBW: up, down, cruise, refill (`bbr_pacing_gain`).
    pub pacing_gain: [u32; 4],
    /// What ProbeUp adds to the window gain, in quarters (`bbr_bw_probe_cwnd_gain`).
    pub bw_probe_cwnd_gain: u32,
    /// Least window in packets (`bbr_cwnd_min_target`).
    pub cwnd_min_target: u32,
    /// Growth of the bandwidth by which the pipe is not yet full (`bbr_full_bw_thresh`).
    pub full_bw_thresh: u32,
    /// Rounds without it after which the pipe is full (`bbr_full_bw_cnt`).
    pub full_bw_cnt: u32,
    /// Rounds of each window of the ACK aggregation (`bbr_extra_acked_win_rtts`).
    pub extra_acked_win_rtts: u32,
    /// Longest aggregation in microseconds of bandwidth (`bbr_extra_acked_max_us`).
    pub extra_acked_max_us: u64,
    /// Longest RTT at which CE marks count, in microseconds; 0: any (`bbr_ecn_max_rtt_us`).
    pub ecn_max_rtt_us: u32,
    /// Reduction of the short-term bounds on loss (`bbr_beta`).
    pub beta: u32,
    /// Weight of a sample of the share of marks (`bbr_ecn_alpha_gain`).
    pub ecn_alpha_gain: u32,
    /// Reduction of the short-term bound on marks, times their share (`bbr_ecn_factor`).
    pub ecn_factor: u32,
    /// Share of marks above which a probe has gone too far (`bbr_ecn_thresh`).
    pub ecn_thresh: u32,
    /// First increase after marks have ended (`bbr_ecn_reprobe_gain`).
    pub ecn_reprobe_gain: u32,
    /// Share of losses above which a probe has gone too far (`bbr_loss_thresh`).
    pub loss_thresh: u32,
    /// Losses of a round that end Startup (`bbr_full_loss_cnt`).
    pub full_loss_cnt: u32,
    /// Rounds with many marks that end Startup (`bbr_full_ecn_cnt`).
    pub full_ecn_cnt: u32,
    /// What is left free of the long-term bound (`bbr_inflight_headroom`).
    pub inflight_headroom: u32,
    /// Most rounds between two probes (`bbr_bw_probe_max_rounds`).
    pub bw_probe_max_rounds: u32,
    /// Number of values of the random part of it (`bbr_bw_probe_rand_rounds`).
    pub bw_probe_rand_rounds: u32,
    /// Least time between two probes, in microseconds (`bbr_bw_probe_base_us`).
    pub bw_probe_base_us: u32,
    /// Number of values of the random part of it (`bbr_bw_probe_rand_us`).
    pub bw_probe_rand_us: u32,
}

impl Bbr3Params {
    /// The kernel's.
    pub const KERNEL: Self = Self {
        min_rtt_win_sec: 10,
        probe_rtt_mode_ms: 200,
        probe_rtt_win_ms: 5_000,
        probe_rtt_cwnd_gain: UNIT / 2,
        tso_rtt_shift: 9,
        pacing_margin_percent: 1,
        startup_pacing_gain: UNIT * 277 / 100 + 1,
        startup_cwnd_gain: UNIT * 2,
        drain_gain: UNIT * 1_000 / 2_885,
        cwnd_gain: UNIT * 2,
        pacing_gain: [UNIT * 5 / 4, UNIT * 91 / 100, UNIT, UNIT],
        bw_probe_cwnd_gain: 1,
        cwnd_min_target: 4,
        full_bw_thresh: UNIT * 5 / 4,
        full_bw_cnt: 3,
        extra_acked_win_rtts: 5,
        extra_acked_max_us: 100_000,
        ecn_max_rtt_us: 5_000,
        beta: UNIT * 30 / 100,
        ecn_alpha_gain: UNIT / 16,
        ecn_factor: UNIT / 3,
        ecn_thresh: UNIT / 2,
        ecn_reprobe_gain: UNIT / 2,
        loss_thresh: UNIT * 2 / 100,
        full_loss_cnt: 6,
        full_ecn_cnt: 2,
        inflight_headroom: UNIT * 15 / 100,
        bw_probe_max_rounds: 63,
        bw_probe_rand_rounds: 2,
        bw_probe_base_us: 2_000_000,
        bw_probe_rand_us: 1_000_000,
    };
}
