//! What stands beside the results of a sweep: which program did it, and of what.

use logs::series::Thinning;
use serde::{Deserialize, Serialize};

use super::FORMAT;
use scenario::Plan;
use scenario::{Study, title_of};

/// What a directory says of its sweep.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct About {
    /// [`FORMAT`].
    pub format: u32,
    /// Version of Ackclock.
    pub ackclock: String,
    /// SHA-256 of the definition in lower-case hexadecimal.
    pub sha256: String,
    /// Runs there are to be.
    pub runs: u64,
    /// Keys of each axis.
    pub axes: Vec<Vec<String>>,
    /// What the runs depend on besides the program.
    pub definition: serde_json::Value,
    /// What is kept of each run over time; left out without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<KeptSeries>,
}

/// Series of each run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptSeries {
    /// Names of the columns.
    pub columns: Vec<String>,
    /// How they are thinned, in words.
    pub thinning: String,
}

impl KeptSeries {
    fn new(plan: &Plan) -> Self {
        let thinning = match plan.thinning {
            Thinning::None => "none".to_owned(),
            Thinning::Every(every) => format!("every {every}"),
            Thinning::Points(points) => format!("about {points} rows of each flow"),
        };
        Self { columns: plan.columns.names().into_iter().map(str::to_owned).collect(), thinning }
    }
}

impl About {
    /// Of `study`.
    pub fn new(study: &Study<'_>) -> Self {
        Self {
            format: FORMAT,
            ackclock: env!("CARGO_PKG_VERSION").to_owned(),
            sha256: study.sha256(),
            runs: study.runs(),
            axes: study.axes(),
            definition: study.definition(),
            series: None,
        }
    }

    /// The same, with these series of each run.
    #[must_use]
    pub fn with_series(self, plan: Option<&Plan>) -> Self {
        Self { series: plan.map(KeptSeries::new), ..self }
    }

    /// Title of the scenario; empty without one.
    pub fn title(&self) -> String {
        title_of(self.definition["scenario"].as_str().unwrap_or_default())
    }

    /// As JSON, pretty-printed, with a newline at the end.
    pub fn to_json(&self) -> String {
        // No map with keys other than strings and no fallible serializer is in it.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// Reads what [`About::to_json`] wrote.
    ///
    /// # Errors
    /// Where it is no such JSON.
    pub fn from_json(text: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(text)
    }
}
