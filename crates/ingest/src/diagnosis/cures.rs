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
    pub fn text(&self) -> String {
        let Self { what, recorded_s, duration_s, prediction, .. } = self;
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

    /// Its place, name and gain in a clause: `cure at the receiver (net.ipv4.tcp_rmem): 3.27 s to 740 ms`.
    pub(super) fn short_text(&self) -> String {
        let Self { what, recorded_s, duration_s, prediction, .. } = self;
        let place = match what.split_once(": ") {
            // A setting by its name, without its values.
            Some((place, change)) => {
                let change = change.split_once('=').map_or(change, |(name, _)| name);
                let at = match place {
                    "path" => "on the",
                    "both hosts" => "at",
                    _ => "at the",
                };
                format!(" {at} {place} ({change})")
            }
            None => String::new(),
        };
        let after = match prediction.validity {
            Validity::Range => {
                format!("between {} and {}", seconds(prediction.low_s), seconds(prediction.high_s))
            }
            Validity::Figure | Validity::None => seconds(*duration_s),
        };
        format!("cure{place}: {} to {after}", seconds(*recorded_s))
    }

    /// Whether the transfer is certainly shorter with it.
    fn is_gain(&self) -> bool {
        let time = match self.prediction.validity {
            Validity::Figure => self.duration_s,
            Validity::Range => self.prediction.high_s,
            Validity::None => return false,
        };
        time < self.recorded_s * LEAST_GAIN
    }
}

/// Largest time of a cure, relative to the recorded one: less is within the error of a figure.
const LEAST_GAIN: f64 = 0.95;

/// The cure of the finding `code` that shortens the transfer most, a figure before a range; `None` if none does.
pub(super) fn best_cure<'a>(cures: &'a [TriedCure], code: Option<&str>) -> Option<&'a TriedCure> {
    let is_range = |cure: &TriedCure| cure.prediction.validity != Validity::Figure;
    cures
        .iter()
        .filter(|cure| Some(cure.finding) == code && cure.is_gain())
        .min_by(|a, b| is_range(a).cmp(&is_range(b)).then(a.duration_s.total_cmp(&b.duration_s)))
}

fn seconds(s: f64) -> String {
    time(Duration::from_nanos((s * 1e9) as u64))
}

/// A tried cure for programs. Times that cannot be predicted are absent.
#[derive(Debug, Serialize)]
pub(super) struct CureJson {
    finding: &'static str,
    set: String,
    what: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    recorded_s: Option<f64>,
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
            what: cure.what.clone(),
            recorded_s: (cure.recorded_s > 0.0).then_some(cure.recorded_s),
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
    fn the_best_cure_is_the_shortest_certain_one() {
        let [slower, figure, range] =
            [Validity::Figure, Validity::Figure, Validity::Range].map(cure);
        let slower = TriedCure { duration_s: 3.2, ..slower };
        let range = TriedCure { duration_s: 0.1, ..range };
        let place = "cure at the receiver (tcp_rmem)";
        let short = |cures: &[TriedCure]| {
            best_cure(cures, Some(cures[0].finding)).map(TriedCure::short_text)
        };
        let all = [slower.clone(), range.clone(), figure];
        assert_eq!(short(&all), Some(format!("{place}: 3.27 s to 740 ms")));
        let between = format!("{place}: 3.27 s to between 700 ms and 800 ms");
        assert_eq!(short(&[slower.clone(), range.clone()]), Some(between));
        // Neither a gain within the error, nor a range that may be none.
        let wide = Prediction { high_s: 3.2, ..range.prediction.clone() };
        let uncertain = TriedCure { prediction: wide, ..range };
        assert_eq!(short(&[slower, uncertain, cure(Validity::None)]), None);
        let unnamed = TriedCure { what: "the transfer".to_owned(), ..cure(Validity::Figure) };
        assert_eq!(unnamed.short_text(), "cure: 3.27 s to 740 ms");
        let set = "receiver: tcp_rmem=\"4096 131072 6291456\"".to_owned();
        let named = TriedCure { what: set, ..cure(Validity::Figure) };
        assert_eq!(named.short_text(), format!("{place}: 3.27 s to 740 ms"));
    }

    #[test]
    fn times_that_cannot_be_predicted_are_no_numbers() {
        let json = |validity| serde_json::to_value(CureJson::of(&cure(validity))).unwrap();
        assert_eq!(json(Validity::Figure)["duration_s"], 0.74);
        assert_eq!(json(Validity::None).get("duration_s"), None);
        assert_eq!(json(Validity::None)["recorded_s"], 3.27);
        assert_eq!(json(Validity::None)["validity"], "none");
    }
}
