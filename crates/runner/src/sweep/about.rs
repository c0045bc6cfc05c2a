//! The description of a sweep: program version and definition.

use logs::series::Downsampling;
use serde::{Deserialize, Serialize};

use super::FORMAT;
use scenario::SeriesPlan;
use scenario::{Study, title_of};

/// The contents of `sweep.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SweepDescription {
    /// [`FORMAT`].
    pub format: u32,
    /// Version of Ackclock.
    pub ackclock: String,
    /// [`crate::MODEL`]; empty in sweeps of versions without it.
    #[serde(default)]
    pub model: String,
    /// SHA-256 of the definition in lower-case hexadecimal.
    pub sha256: String,
    /// Number of runs.
    pub runs: u64,
    /// Keys of each axis.
    pub axes: Vec<Vec<String>>,
    /// The definition of the sweep: everything besides the program that the runs depend on.
    pub definition: serde_json::Value,
    /// The series of each run; omitted if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<SeriesDescription>,
}

/// The series of a sweep's runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeriesDescription {
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Their thinning as text.
    pub thinning: String,
    /// The queues of the links are recorded too.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub queues: bool,
}

impl SeriesDescription {
    fn new(plan: &SeriesPlan) -> Self {
        let thinning = match plan.thinning {
            Downsampling::None => "none".to_owned(),
            Downsampling::Every(every) => format!("every {every}"),
            Downsampling::Points(points) => format!("about {points} rows of each flow"),
        };
        let columns = plan.columns.names().into_iter().map(str::to_owned).collect();
        Self { columns, thinning, queues: plan.queues }
    }
}

impl SweepDescription {
    /// The description of `study`.
    pub fn new(study: &Study<'_>) -> Self {
        Self {
            format: FORMAT,
            ackclock: env!("CARGO_PKG_VERSION").to_owned(),
            model: crate::MODEL.to_owned(),
            sha256: study.sha256(),
            runs: study.runs(),
            axes: study.axes(),
            definition: study.definition(),
            series: None,
        }
    }

    /// Adds the series of each run.
    #[must_use]
    pub fn with_series(self, plan: Option<&SeriesPlan>) -> Self {
        Self { series: plan.map(SeriesDescription::new), ..self }
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

    /// Parses the output of [`SweepDescription::to_json`].
    ///
    /// # Errors
    /// The text is not valid JSON of this form.
    pub fn from_json(text: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(text)
    }
}
