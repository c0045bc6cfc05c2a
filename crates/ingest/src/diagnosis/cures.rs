//! Cures that were tried in a simulation of the recorded transfer.

use diagnose::rules::time;
use serde::Serialize;
use units::Duration;

/// What a predicted time is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Validity {
    /// The time is a figure.
    Figure,
    /// The time is within a range.
    Range,
    /// The time cannot be predicted.
    None,
}

/// The worth of a predicted time, with its reason.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Prediction {
    /// A figure, a range or none.
    pub validity: Validity,
    /// Shortest and longest time that the recording allows, in seconds.
    pub low_s: f64,
    /// See `low_s`.
    pub high_s: f64,
    /// Why it is not worth more.
    pub why: String,
}

/// A cure of a finding, tried in a simulation of the recorded transfer.
#[derive(Debug, Clone, PartialEq)]
pub struct TriedCure {
    /// Code of the finding.
    pub finding: &'static str,
    /// What is changed, as an argument of `ackclock whatif --set`.
    pub set: String,
    /// Where it is changed, and how, in words.
    pub what: String,
    /// Time of the recorded transfer, in seconds.
    pub recorded_s: f64,
    /// Its time with the change, in seconds.
    pub duration_s: f64,
    /// The worth of that time.
    pub prediction: Prediction,
}

impl TriedCure {
    /// The cure with its gain: `receiver: ...: 3.27 s -> 0.74 s`.
    pub(super) fn text(&self) -> String {
        let Self { what, recorded_s, duration_s, prediction, .. } = self;
        let seconds = |s: f64| time(Duration::from_nanos((s * 1e9) as u64));
        let gain = match prediction.validity {
            Validity::Figure => format!("{} -> {}", seconds(*recorded_s), seconds(*duration_s)),
            Validity::Range => format!(
                "{} -> {} to {}; {}",
                seconds(*recorded_s),
                seconds(prediction.low_s),
                seconds(prediction.high_s),
                prediction.why
            ),
            Validity::None => format!("cannot be predicted: {}", prediction.why),
        };
        format!("{what}: {gain}")
    }
}

/// A tried cure for programs. Times that cannot be predicted are absent.
#[derive(Debug, Serialize)]
pub(super) struct CureJson {
    finding: &'static str,
    set: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    low_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    high_s: Option<f64>,
    validity: Validity,
    why: String,
}

impl CureJson {
    pub(super) fn of(cure: &TriedCure) -> Self {
        let Prediction { validity, low_s, high_s, why } = cure.prediction.clone();
        let known = |time: f64| (validity != Validity::None).then_some(time);
        Self {
            finding: cure.finding,
            set: cure.set.clone(),
            duration_s: known(cure.duration_s),
            low_s: known(low_s),
            high_s: known(high_s),
            validity,
            why,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cure(validity: Validity) -> TriedCure {
        TriedCure {
            finding: "CC401",
            set: "tcp_rmem=\"4096 131072 6291456\"".to_owned(),
            what: "receiver: tcp_rmem".to_owned(),
            recorded_s: 3.27,
            duration_s: 0.74,
            prediction: Prediction { validity, low_s: 0.7, high_s: 0.8, why: "so".to_owned() },
        }
    }

    #[test]
    fn a_gain_is_a_figure_a_range_or_a_reason() {
        let text = |validity| cure(validity).text();
        assert_eq!(text(Validity::Figure), "receiver: tcp_rmem: 3.27 s -> 740 ms");
        assert_eq!(text(Validity::Range), "receiver: tcp_rmem: 3.27 s -> 700 ms to 800 ms; so");
        assert_eq!(text(Validity::None), "receiver: tcp_rmem: cannot be predicted: so");
    }

    #[test]
    fn times_that_cannot_be_predicted_are_no_numbers() {
        let json = |validity| serde_json::to_value(CureJson::of(&cure(validity))).unwrap();
        assert_eq!(json(Validity::Figure)["duration_s"], 0.74);
        assert_eq!(json(Validity::None).get("duration_s"), None);
        assert_eq!(json(Validity::None)["validity"], "none");
    }
}
