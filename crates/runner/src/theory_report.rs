//! Throughput formulas as text and JSON: their results for a path, the assumptions that the path
//! violates, and a simulation for comparison.
//!
//! [`evaluate`] computes the formulas of the crate `theory`; [`measure`] simulates a matching
//! scenario.

mod epoch;
mod measured;
mod text;

pub use epoch::EpochRow;
pub use measured::{Pattern, Trial, TrialResult, measure, measure_until};

use serde::Serialize;
use theory::aimd::{self, Aimd};
use theory::cubic::{self, CubicEpoch};
use theory::mathis::{self, Constant};
use theory::pftk::{self, PftkParams};
use theory::sawtooth::{self, ExtraRtts};
use theory::{Path, TheoryError, TheoryEstimate};
use units::Duration;

/// Version of the JSON format; a new field does not change it, a changed or missing one does.
pub const FORMAT: u32 = 1;

/// The formulas, with their parameters besides the path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Model {
    /// The square-root formula with its four constants, and the sawtooth with the round trips that
    /// a loss costs.
    Mathis {
        /// These round trips; `None` omits the sawtooth.
        extra: Option<ExtraRtts>,
    },
    /// Additive increase, multiplicative decrease.
    Aimd(Aimd),
    /// The formula with timeouts: approximate and full.
    Pftk {
        /// Packets acknowledged per ACK.
        packets_per_ack: u32,
        /// Initial retransmission timeout; `None`: four round trips, as in RFC 5348.
        timeout: Option<Duration>,
    },
    /// CUBIC and one epoch of it.
    Cubic {
        /// The window at the loss, in segments; `None`: that of the formula.
        w_max: Option<f64>,
    },
}

/// The results of the formulas.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TheoryReport {
    /// [`FORMAT`].
    pub format: u32,
    /// Version of Ackclock.
    pub ackclock: &'static str,
    /// `mathis`, `aimd`, `pftk` or `cubic`.
    pub model: &'static str,
    /// The path.
    pub path: PathRow,
    /// The estimates, one per formula.
    pub estimates: Vec<EstimateRow>,
    /// Index of the estimate that the text's doubts and the simulation refer to.
    pub asked: usize,
    /// CUBIC's two regions; omitted for other models.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cubic: Option<CubicRow>,
    /// The simulation of a matching scenario, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<TrialResult>,
}

/// A path.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PathRow {
    /// Bytes of a segment.
    pub mss_bytes: u64,
    /// Round-trip time.
    pub rtt_s: f64,
    /// Loss rate, 0 to 1.
    pub loss: f64,
    /// Link rate, if given.
    pub rate_bps: Option<u64>,
    /// Receive window, if given.
    pub window_bytes: Option<u64>,
}

/// The estimate of one formula.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EstimateRow {
    /// The formula with its parameters.
    pub formula: String,
    /// Segment rate, in bit/s of payload.
    pub rate_bps: f64,
    /// Average number of segments in flight.
    pub window_segments: f64,
    /// The largest window of a cycle.
    pub peak_segments: Option<f64>,
    /// Round trips from one loss to the next.
    pub cycle_rtts: Option<f64>,
    /// Its assumptions.
    pub assumes: Vec<&'static str>,
    /// The assumptions that the path violates or strains.
    pub doubts: Vec<String>,
}

/// CUBIC's regions and one epoch.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CubicRow {
    /// Average window of the cubic curve.
    pub cubic_segments: f64,
    /// Average Reno-friendly window.
    pub friendly_segments: f64,
    /// Does the Reno-friendly window apply?
    pub reno_friendly: bool,
    /// Round-trip time below which it applies, at this loss rate.
    pub friendly_below_rtt_s: f64,
    /// Loss rate above which it applies, at this round-trip time.
    pub friendly_above_loss: f64,
    /// Window at the loss that starts the epoch.
    pub w_max_segments: f64,
    /// Time until the cubic curve reaches it again (K).
    pub k_s: f64,
    /// The epoch.
    pub epoch: Vec<EpochRow>,
}

/// Evaluates the formulas of `model` for `path`.
///
/// # Errors
/// The path is outside the domain of the formulas.
pub fn evaluate(path: &Path, model: Model) -> Result<TheoryReport, TheoryError> {
    let mut cubic_row = None;
    let (name, asked, estimates) = match model {
        Model::Mathis { extra } => {
            let rows = Constant::ALL.map(|constant| {
                let formula = format!("C = {:.2}, {}", constant.value(), losses(constant));
                row(formula, &mathis::estimate(path, constant))
            });
            let mut rows = Vec::from(rows);
            if let Some(extra) = extra {
                let formula = format!("b = {} extra round trips, periodic loss", extra.get());
                rows.push(row(formula, &sawtooth::estimate(path, extra)));
            }
            ("mathis", if extra.is_some() { Constant::ALL.len() } else { 0 }, rows)
        }
        Model::Aimd(measure) => {
            let (alpha, beta) = (measure.alpha(), measure.beta());
            let formula = format!("alpha = {alpha:.3}, beta = {beta:.3}");
            ("aimd", 0, vec![row(formula, &aimd::estimate(path, measure))])
        }
        Model::Pftk { packets_per_ack, timeout } => {
            let timeout = timeout.unwrap_or_else(|| PftkParams::rfc5348(path).timeout());
            let sender = PftkParams::new(packets_per_ack, timeout)?;
            let with = format!("{packets_per_ack} packets an ACK, timeout {timeout}");
            let short = row(format!("short, {with}"), &pftk::short(path, sender));
            ("pftk", 1, vec![short, row(format!("full, {with}"), &pftk::full(path, sender))])
        }
        Model::Cubic { w_max } => {
            let response = cubic::response(path);
            let formula = if response.is_friendly() {
                "CUBIC, Reno-friendly region"
            } else {
                "CUBIC, cubic region"
            };
            let peak = response.estimate.peak.unwrap_or(response.estimate.window);
            let epoch = CubicEpoch::new(w_max.unwrap_or(peak), path.rtt_s())?;
            let cycle_s = response.estimate.cycle_rtts.map(|rtts| rtts * path.rtt_s());
            cubic_row = Some(CubicRow {
                cubic_segments: response.cubic,
                friendly_segments: response.friendly,
                reno_friendly: response.is_friendly(),
                friendly_below_rtt_s: response.friendly_below_s,
                friendly_above_loss: response.friendly_above_p,
                w_max_segments: epoch.w_max(),
                k_s: epoch.k(),
                epoch: epoch::rows(&epoch, cycle_s.unwrap_or(epoch.k())),
            });
            ("cubic", 0, vec![row(formula.to_owned(), &response.estimate)])
        }
    };
    Ok(TheoryReport {
        format: FORMAT,
        ackclock: env!("CARGO_PKG_VERSION"),
        model: name,
        path: PathRow {
            mss_bytes: path.mss().get(),
            rtt_s: path.rtt_s(),
            loss: path.p(),
            rate_bps: path.rate().map(units::Rate::bits_per_second),
            window_bytes: path.window().map(units::Bytes::get),
        },
        estimates,
        asked,
        cubic: cubic_row,
        measured: None,
    })
}

impl TheoryReport {
    /// Adds the result of a simulation, and a doubt if the formula is of another kind of sender.
    #[must_use]
    pub fn with(mut self, measured: TrialResult) -> Self {
        let doubt = foreign_sender(self.model, &measured);
        if let Some((doubt, estimate)) = doubt.zip(self.estimates.get_mut(self.asked)) {
            estimate.doubts.insert(0, doubt);
        }
        Self { measured: Some(measured), ..self }
    }

    /// The selected estimate.
    pub fn estimate(&self) -> Option<&EstimateRow> {
        self.estimates.get(self.asked)
    }

    /// As JSON, pretty-printed, with a newline at the end.
    pub fn to_json(&self) -> String {
        // No map with keys other than strings and no fallible serializer is in it.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// As a table with assumptions and doubts.
    pub fn to_text(&self) -> String {
        text::text(self)
    }
}

/// Why a formula is not one of the simulated sender; `None` if it is.
fn foreign_sender(model: &str, measured: &TrialResult) -> Option<String> {
    let cc = &*measured.cc;
    let is_cubic = cc == "cubic";
    if cc.starts_with("bbr") {
        return Some(format!(
            "{cc} follows the rate and the round trip that it measures: the formula is of a sender whose window each loss \
             reduces"
        ));
    }
    match model {
        "cubic" if !is_cubic => Some(format!("the simulated sender is {cc}, the formula of CUBIC")),
        "mathis" | "aimd" | "pftk" if is_cubic => Some(
            "CUBIC keeps 0.7 of its window at a loss and grows it by time: its formula is that of `ackclock theory cubic`"
                .to_owned(),
        ),
        "pftk" if measured.is_quic => Some(
            "QUIC's probe timeout reduces no window (RFC 9002 section 6.2): the timeouts of the formula are Reno's"
                .to_owned(),
        ),
        _ => None,
    }
}

const fn losses(constant: Constant) -> &'static str {
    match constant {
        Constant::Periodic => "periodic loss",
        Constant::PeriodicDelayed => "periodic loss, delayed ACKs that are counted",
        Constant::Random => "random loss",
        Constant::RandomDelayed => "random loss, delayed ACKs that are counted",
    }
}

fn row(formula: String, estimate: &TheoryEstimate) -> EstimateRow {
    EstimateRow {
        formula,
        rate_bps: estimate.rate_bps,
        window_segments: estimate.window,
        peak_segments: estimate.peak,
        cycle_rtts: estimate.cycle_rtts,
        assumes: estimate.validity.assumes.to_vec(),
        doubts: estimate.validity.doubts.iter().map(ToString::to_string).collect(),
    }
}

#[cfg(test)]
mod tests {
    use units::{Bytes, Ratio};

    use super::*;

    fn path(percent: u64) -> Path {
        let loss = Ratio::new(percent, 100).unwrap();
        Path::new(Bytes(1_252), Duration::from_millis(2), loss).unwrap()
    }

    #[test]
    fn the_sawtooth_is_selected_if_present() {
        let extra = ExtraRtts::EVERY_PACKET;
        let answer = evaluate(&path(2), Model::Mathis { extra: Some(extra) }).unwrap();
        let said = answer.estimate().unwrap();
        assert!((said.rate_bps / 1e6 - 36.50).abs() < 0.005, "{}", said.rate_bps);
        assert!(answer.to_text().contains("36.50 Mbit/s"), "{}", answer.to_text());
        let json: serde_json::Value = serde_json::from_str(&answer.to_json()).unwrap();
        assert_eq!(json["estimates"][4]["rate_bps"], said.rate_bps);
        assert_eq!(json["model"], "mathis");
    }

    #[test]
    fn the_text_has_the_doubts() {
        let text = evaluate(&path(20), Model::Mathis { extra: None }).unwrap().to_text();
        assert!(text.contains("too few for three duplicate ACKs"), "{text}");
        let text = evaluate(&path(2), Model::Cubic { w_max: None }).unwrap().to_text();
        assert!(text.contains("CUBIC follows the larger, the latter"), "{text}");
    }

    #[test]
    fn a_formula_doubts_a_sender_of_another_kind() {
        let doubt = |model, profile: &str, cc: &str| {
            let path = path(1);
            let trial = Trial {
                profile: profile.to_owned(),
                cc: Some(cc.to_owned()),
                pattern: Pattern::Periodic,
                ack_delay: None,
                seed: 1,
            };
            let measured = measure(&path, 5e7, &trial).unwrap();
            let answer = evaluate(&path, model).unwrap().with(measured);
            answer.estimate().unwrap().doubts.first().cloned().unwrap_or_default()
        };
        let mathis = || Model::Mathis { extra: None };
        let pftk = Model::Pftk { packets_per_ack: 1, timeout: None };
        assert!(doubt(mathis(), "linux-6.18", "bbr").contains("bbr follows the rate"));
        assert!(doubt(mathis(), "linux-6.18", "cubic").contains("theory cubic"));
        assert!(!doubt(mathis(), "linux-6.18", "reno").contains("formula is"));
        let cubic = Model::Cubic { w_max: None };
        assert!(doubt(cubic, "linux-6.18", "reno").contains("the simulated sender is reno"));
        assert!(doubt(pftk, "quic-rfc9002", "newreno").contains("reduces no window"));
    }

    #[test]
    fn paths_outside_the_domain_are_refused() {
        let model = Model::Pftk { packets_per_ack: 0, timeout: None };
        assert_eq!(evaluate(&path(2), model), Err(TheoryError::PacketsPerAck));
        let model = Model::Cubic { w_max: Some(0.0) };
        assert_eq!(evaluate(&path(2), model), Err(TheoryError::NoWindow));
    }
}
