//! HyStart++ of FreeBSD 14 and later (RFC 9406, from its draft 4).
//!
//! Sources: cc_newreno.c (newreno_ack_received, newreno_newround, newreno_rttsample) and the same
//! code again in cc_cubic.c. In the kernel only the RACK stack calls these hooks, and they act only
//! if
//! `net.inet.tcp.rack.features.hystartplusplus` (`rack_do_hystart`) is set, which is 0 by default.
//! The functions are compared with the kernel's (`NEWROUND` and `RTTSAMPLE` in golden/freebsd). The
//! algorithm of RFC 9438's sender is [`crate::hystart_rfc`].

use units::Duration;

use crate::contract::RttSample;

/// Samples required per round (`hystart_n_rttsamples`).
const N_RTTSAMPLES: u32 = 8;
/// Bounds of the RTT threshold, in microseconds (`hystart_minrtt_thresh`, `max`).
const RTT_THRESH_US: (u32, u32) = (4_000, 16_000);
/// Divisor of growth in conservative slow start (`hystart_css_growth_div`).
const CSS_GROWTH_DIV: u32 = 4;
/// Rounds of conservative slow start before the exit (`hystart_css_rounds`).
const CSS_ROUNDS: u32 = 5;

/// How HyStart++ may act (`CCF_HYSTART_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub enum HyStartMode {
    /// Compiled in, not enabled: the base stack, and RACK by default.
    NotAllowed,
    /// `ALLOWED`: the exit sets the threshold to the window.
    Plain,
    /// Also `CAN_SH_CWND`: reduces the window to the flight at the entry of conservative slow start
    /// and the threshold to the flight at the lowest RTT.
    ShrinkWindow,
    /// Also `CONS_SSTH`: the threshold is the mean of the two.
    ShrinkWindowMean,
}

/// State of HyStart++. RTTs in microseconds; `u32::MAX` if there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct HyStartFreeBsd {
    mode: HyStartMode,
    compiled_in: bool,
    /// True if it may still act in this slow start.
    pub enabled: bool,
    /// True in conservative slow start.
    pub in_css: bool,
    /// Lowest RTT of the round in which conservative slow start was entered.
    pub css_baseline_minrtt: u32,
    /// Lowest RTT of this round.
    pub css_current_round_minrtt: u32,
    /// Lowest RTT of the previous round.
    pub css_lastround_minrtt: u32,
    /// Samples in this round.
    pub css_rttsample_count: u32,
    /// Round in which conservative slow start was entered.
    pub css_entered_at_round: u32,
    /// Number of this round.
    pub css_current_round: u32,
    /// Flight in bytes when conservative slow start was entered.
    pub css_fas_at_css_entry: u32,
    /// Flight in bytes when the segment with the lowest RTT of this round was sent.
    pub css_lowrtt_fas: u32,
}

/// How slow start ends.
pub(crate) enum HyStartExit {
    /// The threshold becomes the window.
    ToAvoidance,
    /// Both are set; conservative slow start continues.
    ReduceWindow { cwnd: u32, ssthresh: u32 },
}

impl HyStartFreeBsd {
    /// The initial state; disabled for `None`, a version without HyStart++.
    pub(crate) fn new(mode: Option<HyStartMode>) -> Self {
        let compiled_in = mode.is_some();
        let unset = if compiled_in { u32::MAX } else { 0 };
        Self {
            mode: mode.unwrap_or(HyStartMode::NotAllowed),
            compiled_in,
            enabled: compiled_in,
            in_css: false,
            css_baseline_minrtt: unset,
            css_current_round_minrtt: unset,
            css_lastround_minrtt: unset,
            css_rttsample_count: 0,
            css_entered_at_round: 0,
            css_current_round: 0,
            css_fas_at_css_entry: 0,
            css_lowrtt_fas: 0,
        }
    }

    fn allowed(&self) -> bool {
        self.mode != HyStartMode::NotAllowed
    }

    /// Enters conservative slow start if the RTT has increased enough between two measured rounds.
    pub(crate) fn maybe_enter_css(&mut self) {
        let known = self.css_rttsample_count >= N_RTTSAMPLES
            && self.css_current_round_minrtt != u32::MAX
            && self.css_lastround_minrtt != u32::MAX;
        if !self.allowed() || !self.enabled || self.in_css || !known {
            return;
        }
        let thresh = (self.css_lastround_minrtt >> 3).clamp(RTT_THRESH_US.0, RTT_THRESH_US.1);
        if self.css_current_round_minrtt >= self.css_lastround_minrtt.saturating_add(thresh) {
            self.in_css = true;
            self.css_fas_at_css_entry = self.css_lowrtt_fas;
            self.css_baseline_minrtt = self.css_current_round_minrtt;
            self.css_entered_at_round = self.css_current_round;
        }
    }

    /// The slow-start increase, reduced in conservative slow start.
    pub(crate) fn scale_increase(&self, increase: u32) -> u32 {
        if self.in_css { increase / CSS_GROWTH_DIV } else { increase }
    }

    /// The window exceeded the threshold in conservative slow start.
    pub(crate) fn on_threshold_passed(&mut self) {
        if self.in_css {
            self.disable();
        }
    }

    /// Disables it until the connection has been idle: after a loss or an ECN echo.
    pub(crate) fn disable(&mut self) {
        if self.enabled {
            self.enabled = false;
            self.in_css = false;
        }
    }

    /// Enables it after idle.
    pub(crate) fn rearm(&mut self) {
        if self.compiled_in && !self.enabled {
            self.enabled = true;
            self.in_css = false;
        }
    }

    pub(crate) fn new_round(&mut self, round: u32) -> Option<HyStartExit> {
        if !self.allowed() {
            return None;
        }
        self.css_lastround_minrtt = self.css_current_round_minrtt;
        self.css_current_round_minrtt = u32::MAX;
        self.css_rttsample_count = 0;
        self.css_current_round = round;
        if !self.in_css || round.wrapping_sub(self.css_entered_at_round) < CSS_ROUNDS {
            return None;
        }
        let ssthresh = match self.mode {
            HyStartMode::ShrinkWindow => self.css_lowrtt_fas,
            HyStartMode::ShrinkWindowMean => {
                self.css_lowrtt_fas.wrapping_add(self.css_fas_at_css_entry) / 2
            }
            HyStartMode::Plain | HyStartMode::NotAllowed => {
                self.in_css = false;
                self.enabled = false;
                return Some(HyStartExit::ToAvoidance);
            }
        };
        self.css_entered_at_round = round;
        Some(HyStartExit::ReduceWindow { cwnd: self.css_fas_at_css_entry, ssthresh })
    }

    pub(crate) fn rtt_sample(&mut self, sample: &RttSample) {
        // A retransmitted segment gives no RTT sample (Karn).
        if !self.allowed() || sample.transmissions > 1 {
            return;
        }
        let rtt_us = micros(sample.rtt);
        self.css_rttsample_count += 1;
        if self.css_current_round_minrtt > rtt_us {
            self.css_current_round_minrtt = rtt_us;
            self.css_lowrtt_fas = u32::try_from(sample.flight).unwrap_or(u32::MAX);
        }
        // The RTT fell below the level at the entry: conservative slow start was entered in error.
        if self.css_rttsample_count >= N_RTTSAMPLES
            && self.css_current_round_minrtt < self.css_baseline_minrtt
            && self.css_lastround_minrtt != u32::MAX
        {
            self.in_css = false;
            self.css_baseline_minrtt = u32::MAX;
        }
    }
}

fn micros(span: Duration) -> u32 {
    u32::try_from(span.as_micros()).unwrap_or(u32::MAX)
}
