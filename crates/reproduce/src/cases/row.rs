//! A published figure with the measured one.

use serde::Serialize;

/// How a row is evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RowKind {
    /// Must be in its band; determines the exit status.
    Assert,
    /// An input was fitted to it, so it is no evidence.
    Calibrated,
    /// Follows from inputs fitted elsewhere; printed with its deviation.
    Predicted,
    /// Published, but not derivable from what was published; never asserted.
    Info,
}

/// A number or a text.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum CaseFigure {
    /// In the unit of the row.
    Number(f64),
    /// Compared letter by letter.
    Text(String),
}

/// One figure of a case.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CaseRow {
    /// Name of the measurement.
    pub name: String,
    /// Unit of the numbers; empty for a text.
    pub unit: &'static str,
    /// How the row is evaluated.
    pub kind: RowKind,
    /// The figure of the document, if it gives one.
    pub published: Option<CaseFigure>,
    /// The measured figure; `None` if the run did not reach it.
    pub measured: Option<CaseFigure>,
    /// Lower bound.
    pub low: Option<f64>,
    /// Upper bound.
    pub high: Option<f64>,
    /// True if the measured figure is in its band; `None` if nothing is asserted.
    pub holds: Option<bool>,
    /// The origin of the published figure, or the reason why it cannot be met.
    pub note: String,
    /// Profile of the sender that gave the measured figure; `None` for formulas and functions alone.
    pub stack: Option<&'static str>,
    /// True if the published figure is not that of the document but of a kernel's own stack, recorded
    /// on the path of the case.
    pub recorded: bool,
}

impl CaseRow {
    fn new(name: impl Into<String>, unit: &'static str, kind: RowKind) -> Self {
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
            stack: None,
            recorded: false,
        }
    }

    /// Names the profile of the sender, unless it is named already.
    pub fn by(mut self, stack: &'static str) -> Self {
        self.stack = self.stack.or(Some(stack));
        self
    }

    /// A number that must match exactly.
    pub fn exact(
        name: impl Into<String>,
        unit: &'static str,
        published: f64,
        measured: Option<f64>,
    ) -> Self {
        Self::band(name, unit, published, measured, published, published)
    }

    /// A number that must be in `[low, high]`.
    pub fn band(
        name: impl Into<String>,
        unit: &'static str,
        published: f64,
        measured: Option<f64>,
        low: f64,
        high: f64,
    ) -> Self {
        Self {
            published: Some(CaseFigure::Number(published)),
            measured: measured.map(CaseFigure::Number),
            low: Some(low),
            high: Some(high),
            holds: Some(measured.is_some_and(|value| (low..=high).contains(&value))),
            ..Self::new(name, unit, RowKind::Assert)
        }
    }

    /// A number that must be at least `bound`, without a published figure.
    pub fn at_least(
        name: impl Into<String>,
        unit: &'static str,
        bound: f64,
        measured: Option<f64>,
    ) -> Self {
        Self {
            measured: measured.map(CaseFigure::Number),
            low: Some(bound),
            holds: Some(measured.is_some_and(|value| value >= bound)),
            ..Self::new(name, unit, RowKind::Assert)
        }
    }

    /// A number that must be at most `bound`, without a published figure.
    pub fn at_most(
        name: impl Into<String>,
        unit: &'static str,
        bound: f64,
        measured: Option<f64>,
    ) -> Self {
        Self {
            measured: measured.map(CaseFigure::Number),
            high: Some(bound),
            holds: Some(measured.is_some_and(|value| value <= bound)),
            ..Self::new(name, unit, RowKind::Assert)
        }
    }

    /// A text that must match exactly.
    pub fn text(name: impl Into<String>, published: &str, measured: Option<String>) -> Self {
        Self {
            published: Some(CaseFigure::Text(published.into())),
            holds: Some(measured.as_deref() == Some(published)),
            measured: measured.map(CaseFigure::Text),
            ..Self::new(name, "", RowKind::Assert)
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
            published: published.map(CaseFigure::Number),
            measured: measured.map(CaseFigure::Number),
            ..Self::new(name, unit, RowKind::Predicted)
        }
    }

    /// A text that follows from the declared inputs, without a published one.
    pub fn predicted_text(name: impl Into<String>, measured: Option<String>) -> Self {
        Self { measured: measured.map(CaseFigure::Text), ..Self::new(name, "", RowKind::Predicted) }
    }

    /// A number that cannot be derived from the published information.
    pub fn info(
        name: impl Into<String>,
        unit: &'static str,
        published: f64,
        measured: Option<f64>,
    ) -> Self {
        let row = Self::predicted(name, unit, Some(published), measured);
        Self { kind: RowKind::Info, ..row }
    }

    /// A number that an input was fitted to, so it is no evidence.
    pub fn calibrated(
        name: impl Into<String>,
        unit: &'static str,
        published: f64,
        measured: Option<f64>,
    ) -> Self {
        let row = Self::predicted(name, unit, Some(published), measured);
        Self { kind: RowKind::Calibrated, ..row }
    }

    /// The row with a note.
    #[must_use]
    pub fn note(self, note: impl Into<String>) -> Self {
        Self { note: note.into(), ..self }
    }

    /// The row with a figure that a kernel's own stack gave.
    #[must_use]
    pub fn recorded(self) -> Self {
        Self { recorded: true, ..self }
    }

    /// Deviation of the measured from the published number, in percent of the published number.
    pub fn deviation_percent(&self) -> Option<f64> {
        match (&self.published, &self.measured) {
            (Some(CaseFigure::Number(published)), Some(CaseFigure::Number(measured)))
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
    fn a_band_includes_its_ends_and_requires_a_measurement() {
        let holds = |measured| CaseRow::band("x", "s", 42.4, measured, 41.4, 43.4).holds;
        assert_eq!(holds(Some(41.4)), Some(true));
        assert_eq!(holds(Some(43.41)), Some(false));
        assert_eq!(holds(None), Some(false));
    }

    #[test]
    fn texts_must_match_exactly() {
        assert_eq!(CaseRow::text("x", "P.", Some("P.".into())).holds, Some(true));
        assert_eq!(CaseRow::text("x", "P.", Some(".".into())).holds, Some(false));
    }

    #[test]
    fn unasserted_rows_never_fail() {
        assert_eq!(CaseRow::predicted("x", "s", Some(1.0), None).holds, None);
        assert_eq!(CaseRow::info("x", "s", 1.0, Some(9.0)).holds, None);
        let deviation = CaseRow::predicted("x", "s", Some(2.0), Some(2.1)).deviation_percent();
        assert!((deviation.unwrap() - 5.0).abs() < 1e-9);
    }

    #[test]
    fn json_has_the_agreed_shape() {
        let row = CaseRow::band("x", "s", 2.0, Some(2.5), 1.0, 3.0).note("n");
        let json = serde_json::to_value(&row).unwrap();
        let expected = serde_json::json!({
            "name": "x", "unit": "s", "kind": "assert", "published": 2.0, "measured": 2.5,
            "low": 1.0, "high": 3.0, "holds": true, "note": "n", "stack": null,
            "recorded": false
        });
        assert_eq!(json, expected);
    }
}
