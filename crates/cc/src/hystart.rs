//! HyStart++ as FreeBSD 14 and later has it (RFC 9406, from its draft 4).
//!
//! Sources: cc_newreno.c (newreno_ack_received, newreno_newround, newreno_rttsample) and the same
//! code once more in cc_cubic.c. In the kernel only the RACK stack calls these hooks, and only if
//! `rack_do_hystart` is set, which is 0 by default; our RACK stack does not call them, so no scenario
//! reaches this code. The recorded rows of the kernel's functions do (`NEWROUND` and `RTTSAMPLE` in
//! golden/freebsd). The algorithm of RFC 9438's sender is [`crate::hystart_rfc`].

use units::Duration;

use crate::contract::RttSample;

/// Samples a round needs before it is judged (`hystart_n_rttsamples`).
const N_RTTSAMPLES: u32 = 8;
/// Bounds of the growth of delay that counts, in microseconds (`hystart_minrtt_thresh`, `max`).
const RTT_THRESH_US: (u32, u32) = (4_000, 16_000);
/// Growth in conservative slow start is divided by this (`hystart_css_growth_div`).
const CSS_GROWTH_DIV: u32 = 4;
/// Rounds of conservative slow start before the exit (`hystart_css_rounds`).
const CSS_ROUNDS: u32 = 5;

/// How the stack lets HyStart++ act (`CCF_HYSTART_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub enum HyStartMode {
    /// Compiled in, not used: the base stack, and RACK by default.
    NotAllowed,
    /// `ALLOWED`: the exit sets the threshold to the window.
    Plain,
    /// and `CAN_SH_CWND`: it lowers the window to the flight at the entry of conservative slow
    /// start and the threshold to the flight at the lowest round trip.
    ShrinkWindow,
    /// and `CONS_SSTH`: the threshold is the mean of the two.
    ShrinkWindowMean,
}

/// State of HyStart++. Round trips in microseconds; `u32::MAX` where there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct HyStart {
    mode: HyStartMode,
    compiled_in: bool,
    /// May it still act in this slow start?
    pub enabled: bool,
    /// Is it in conservative slow start?
    pub in_css: bool,
    /// Lowest round trip of the round in which conservative slow start was entered.
    pub css_baseline_minrtt: u32,
    /// Lowest round trip of this round.
    pub css_current_round_minrtt: u32,
    /// Lowest round trip of the round before.
    pub css_lastround_minrtt: u32,
    /// Samples taken in this round.
    pub css_rttsample_count: u32,
    /// Round in which conservative slow start was entered.
    pub css_entered_at_round: u32,
    /// Number of this round.
    pub css_current_round: u32,
    /// Flight in bytes when conservative slow start was entered.
    pub css_fas_at_css_entry: u32,
    /// Flight in bytes when the segment with the lowest round trip of this round was sent.
    pub css_lowrtt_fas: u32,
}

/// How slow start ends.
pub(crate) enum Exit {
    /// The threshold becomes the window.
    ToAvoidance,
    /// Both are set; conservative slow start goes on.
    Brake { cwnd: u32, ssthresh: u32 },
}

impl HyStart {
    /// Unused so far; `None` where the version has none.
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

    /// Enters conservative slow start once delay has grown enough between two known rounds.
    pub(crate) fn consider_css(&mut self) {
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

    /// Growth in slow start as it is to be.
    pub(crate) fn soften(&self, increase: u32) -> u32 {
        if self.in_css { increase / CSS_GROWTH_DIV } else { increase }
    }

    /// The window passed the threshold while in conservative slow start.
    pub(crate) fn slipped_into_avoidance(&mut self) {
        if self.in_css {
            self.disable();
        }
    }

    /// Off until the connection has idled: a loss or an ECN echo came.
    pub(crate) fn disable(&mut self) {
        if self.enabled {
            self.enabled = false;
            self.in_css = false;
        }
    }

    /// On again, after idling.
    pub(crate) fn rearm(&mut self) {
        if self.compiled_in && !self.enabled {
            self.enabled = true;
            self.in_css = false;
        }
    }

    pub(crate) fn new_round(&mut self, round: u32) -> Option<Exit> {
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
                return Some(Exit::ToAvoidance);
            }
        };
        self.css_entered_at_round = round;
        Some(Exit::Brake { cwnd: self.css_fas_at_css_entry, ssthresh })
    }

    pub(crate) fn rtt_sample(&mut self, sample: &RttSample) {
        // A segment sent twice has no certain round trip (Karn).
        if !self.allowed() || sample.transmissions > 1 {
            return;
        }
        let rtt_us = micros(sample.rtt);
        self.css_rttsample_count += 1;
        if self.css_current_round_minrtt > rtt_us {
            self.css_current_round_minrtt = rtt_us;
            self.css_lowrtt_fas = u32::try_from(sample.flight).unwrap_or(u32::MAX);
        }
        // Delay fell below the level at the entry: it was entered in error.
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
