//! A published figure beside the measured one.

use serde::Serialize;

/// What a row is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Must lie in its band; decides the exit status.
    Assert,
    /// An input was fitted to it; it proves nothing.
    Calibrated,
    /// Follows from inputs fitted elsewhere; printed with its deviation.
    Predicted,
    /// Published, but not derivable from what was published; never asserted.
    Info,
}

/// A number or a text.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Figure {
    /// In the unit of the row.
    Number(f64),
    /// Compared letter by letter.
    Text(String),
}

/// One figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// What is measured.
    pub name: String,
    /// Unit of the numbers; empty for a text.
    pub unit: &'static str,
    /// What the row is good for.
    pub kind: Kind,
    /// The figure of the document, if it gives one.
    pub published: Option<Figure>,
    /// Our figure; `None` if the run did not come to it.
    pub measured: Option<Figure>,
    /// Least value that holds.
    pub low: Option<f64>,
    /// Largest value that holds.
    pub high: Option<f64>,
    /// Does it hold? `None` where nothing is asserted.
    pub holds: Option<bool>,
    /// Where the published figure comes from, or why it cannot be met.
    pub note: String,
}

impl Row {
    fn new(name: impl Into<String>, unit: &'static str, kind: Kind) -> Self {
        Self {
            name: name.into(),
            unit,
            kind,
            published: None,
            measured: None,
            low: None,
            high: None,
            holds: None,
            note: String::new(),
        }
    }

    /// A number that must be met exactly.
    pub fn exact(
        name: impl Into<String>,
        unit: &'static str,
        published: f64,
        measured: Option<f64>,
    ) -> Self {
        Self::band(name, unit, published, measured, published, published)
    }

    /// A number that must lie in `[low, high]`.
    pub fn band(
        name: impl Into<String>,
        unit: &'static str,
        published: f64,
        measured: Option<f64>,
        low: f64,
        high: f64,
    ) -> Self {
        Self {
            published: Some(Figure::Number(published)),
            measured: measured.map(Figure::Number),
            low: Some(low),
            high: Some(high),
            holds: Some(measured.is_some_and(|value| (low..=high).contains(&value))),
            ..Self::new(name, unit, Kind::Assert)
        }
    }

    /// A number that must not be less than `bound`, where no figure was published.
    pub fn at_least(
        name: impl Into<String>,
        unit: &'static str,
        bound: f64,
        measured: Option<f64>,
    ) -> Self {
        Self {
            measured: measured.map(Figure::Number),
            low: Some(bound),
            holds: Some(measured.is_some_and(|value| value >= bound)),
            ..Self::new(name, unit, Kind::Assert)
        }
    }

    /// A number that must not exceed `bound`, where no figure was published.
    pub fn at_most(
        name: impl Into<String>,
        unit: &'static str,
        bound: f64,
        measured: Option<f64>,
    ) -> Self {
        Self {
            measured: measured.map(Figure::Number),
            high: Some(bound),
            holds: Some(measured.is_some_and(|value| value <= bound)),
            ..Self::new(name, unit, Kind::Assert)
        }
    }

    /// A text that must be met to the letter.
    pub fn text(name: impl Into<String>, published: &str, measured: Option<String>) -> Self {
        Self {
            published: Some(Figure::Text(published.into())),
            holds: Some(measured.as_deref() == Some(published)),
            measured: measured.map(Figure::Text),
            ..Self::new(name, "", Kind::Assert)
        }
    }

    /// A number that follows from the declared inputs; printed with its deviation.
    pub fn predicted(
        name: impl Into<String>,
        unit: &'static str,
        published: Option<f64>,
        measured: Option<f64>,
    ) -> Self {
        Self {
            published: published.map(Figure::Number),
            measured: measured.map(Figure::Number),
            ..Self::new(name, unit, Kind::Predicted)
        }
    }

    /// A text that follows from the declared inputs; no published one to compare with.
    pub fn predicted_text(name: impl Into<String>, measured: Option<String>) -> Self {
        Self { measured: measured.map(Figure::Text), ..Self::new(name, "", Kind::Predicted) }
    }

    /// A number that cannot be derived from what was published.
    pub fn info(
        name: impl Into<String>,
        unit: &'static str,
        published: f64,
        measured: Option<f64>,
    ) -> Self {
        let row = Self::predicted(name, unit, Some(published), measured);
        Self { kind: Kind::Info, ..row }
    }

    /// A number that an input was fitted to; it proves nothing.
    pub fn calibrated(
        name: impl Into<String>,
        unit: &'static str,
        published: f64,
        measured: Option<f64>,
    ) -> Self {
        let row = Self::predicted(name, unit, Some(published), measured);
        Self { kind: Kind::Calibrated, ..row }
    }

    /// The row with a note.
    #[must_use]
    pub fn note(self, note: impl Into<String>) -> Self {
        Self { note: note.into(), ..self }
    }

    /// Deviation of the measured from the published number, in percent of the published.
    pub fn deviation_percent(&self) -> Option<f64> {
        match (&self.published, &self.measured) {
            (Some(Figure::Number(published)), Some(Figure::Number(measured)))
                if *published != 0.0 =>
            {
                Some((measured - published) / published * 100.0)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_band_holds_up_to_its_ends_and_not_without_a_measurement() {
        let holds = |measured| Row::band("x", "s", 42.4, measured, 41.4, 43.4).holds;
        assert_eq!(holds(Some(41.4)), Some(true));
        assert_eq!(holds(Some(43.41)), Some(false));
        assert_eq!(holds(None), Some(false));
    }

    #[test]
    fn texts_are_compared_to_the_letter() {
        assert_eq!(Row::text("x", "P.", Some("P.".into())).holds, Some(true));
        assert_eq!(Row::text("x", "P.", Some(".".into())).holds, Some(false));
    }

    #[test]
    fn what_is_not_asserted_never_fails() {
        assert_eq!(Row::predicted("x", "s", Some(1.0), None).holds, None);
        assert_eq!(Row::info("x", "s", 1.0, Some(9.0)).holds, None);
        let deviation = Row::predicted("x", "s", Some(2.0), Some(2.1)).deviation_percent();
        assert!((deviation.unwrap() - 5.0).abs() < 1e-9);
    }

    #[test]
    fn json_has_the_agreed_shape() {
        let row = Row::band("x", "s", 2.0, Some(2.5), 1.0, 3.0).note("n");
        let json = serde_json::to_value(&row).unwrap();
        let expected = serde_json::json!({
            "name": "x", "unit": "s", "kind": "assert", "published": 2.0, "measured": 2.5,
            "low": 1.0, "high": 3.0, "holds": true, "note": "n"
        });
        assert_eq!(json, expected);
    }
}
