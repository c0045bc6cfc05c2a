//! `[sweep]`: runs a scenario over a parameter grid; `-m` is the same as an argument.
//!
//! Reading order: [`Study`] here, `axis` (keys and their values), `range` (values between two
//! limits), `only` (conditions on points), `grid` (points and their order), `series` (time series
//! of each run).
//!
//! The runs are numbered from 0: the first axis changes slowest, repetitions fastest. Repetition
//! `r` of every point has the seed of the scenario plus `r`, so that points are compared with the
//! same random streams.

mod axis;
mod grid;
mod only;
mod range;
pub(super) mod series;
#[cfg(test)]
mod tests;

use sha2::{Digest, Sha256};
use sim::scenario::Scenario;
use units::Duration;

use super::keys::{Key, Located, ScenarioReader};
use super::kinds::{IntegerType, TableType, TextType};
use super::overrides::Override;
use super::setting::RawValues;
use super::source::{ReportedErrors, Sources, SpannedError};
use super::table::table;
use super::tree::{TomlNode, TomlValue};
use super::{Overrides, ScenarioError, compose, hex, noise, tree, world};
pub(super) use axis::AxesType;
use axis::SweepAxis;
use grid::SweepGrid;
use only::Condition;

pub use series::{SeriesPlan, SeriesTable};

/// Maximum repetitions of a point.
const MAX_REPEAT: u64 = 1_000_000;

static AXES: Key<AxesType> = Key::optional(
    "axes",
    AxesType,
    "none",
    "keys of the scenario as for `--set`, each with a list of values or a range; several keys \
     separated by commas vary together, each value a list",
);
static REPEAT: Key<IntegerType> = Key::optional(
    "repeat",
    IntegerType { least: 1, most: MAX_REPEAT },
    "1",
    "runs per point, with the seeds `seed`, `seed` + 1 and so on",
);
static ONLY: Key<TextType> = Key::optional(
    "only",
    TextType,
    "all points",
    "condition over the axes that points must meet: `\"host.a.cc != cubic or duration >= 10s\"`",
);

static SERIES: Key<TableType<SeriesTable>> = Key::optional(
    "series",
    TableType::of(&series::SECTION),
    "none",
    "time series recorded from each run, in `series/N.csv` of the result",
);

table! {
    /// A grid of runs.
    pub SweepTable: SECTION = "a sweep" {
        axes: RawValues = AXES,
        repeat: u64 = REPEAT,
        only: String = ONLY,
        series: Box<SeriesTable> = SERIES,
    }
    elsewhere: |key| match key {
        "repetitions" | "runs" | "seeds" => Some("runs of each point are called `repeat`"),
        "where" | "when" | "if" => Some("a condition is called `only`"),
        "columns" | "every" | "points" => Some("they belong in a table of their own: `series`"),
        "host" | "path" | "flow" => Some("axes belong in a table of their own: [sweep.axes]"),
        _ => None,
    },
}

/// A parsed sweep whose keys are resolved in its scenario.
#[derive(Default)]
pub(super) struct Sweep {
    axes: Vec<SweepAxis>,
    repeat: Option<u64>,
    only: Option<Located<String>>,
    series: Option<SeriesPlan>,
}

/// Reads the sweep of the scenario `root`.
pub(super) fn sweep(table: &SweepTable, root: &TomlNode, reader: &mut ScenarioReader) -> Sweep {
    let axes = table.axes.as_ref();
    Sweep {
        axes: axes.map(|axes| axis::axes(&axes.value, root, reader)).unwrap_or_default(),
        repeat: table.repeat.map(|repeat| repeat.value),
        only: table.only.clone(),
        series: table.series.as_ref().and_then(|series| series.value.plan()),
    }
}

const SWEEP: TableType<SweepTable> = TableType::of(&SECTION);

/// Changes to a study that its file does not contain.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StudyOverrides {
    /// Changes to every run.
    pub scenario: Overrides,
    /// Axes, `KEY=VALUE,VALUE` or `KEY=RANGE`; they replace those of the file over the same keys.
    pub axes: Vec<String>,
    /// Runs of each point.
    pub repeat: Option<u64>,
    /// Condition that points must meet, in addition to that of the file.
    pub only: Option<String>,
}

/// A scenario and its parameter grid.
pub struct Study<'t> {
    sources: Sources<'t>,
    root: TomlNode,
    text: String,
    axes: Vec<SweepAxis>,
    grid: SweepGrid,
    repeat: u64,
    seed: u64,
    /// The noise that repeated runs get, because nothing else in them is drawn.
    noise: Option<Duration>,
    only: Vec<String>,
    series: Option<SeriesPlan>,
    /// Files and controllers that the scenario may name.
    known: Overrides,
}

impl core::fmt::Debug for Study<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Study").field("axes", &self.axes()).field("runs", &self.runs()).finish()
    }
}

impl<'t> Study<'t> {
    /// Reads a scenario and its sweep.
    ///
    /// # Errors
    /// All independent errors; each value of each axis is checked with the first values of the
    /// others.
    pub fn load(
        text: &'t str,
        file_name: &'t str,
        overrides: &'t StudyOverrides,
    ) -> Result<Self, Vec<ScenarioError>> {
        let (mut sources, file) = Sources::new(file_name, text);
        let mut root = tree::parse(text, file).map_err(|faults| sources.errors(faults))?;
        let mut reader = ScenarioReader::with_overrides(&overrides.scenario);
        let changes = super::changes(&overrides.scenario, &root, &mut sources, &mut reader);
        for change in &changes {
            if let Err(fault) = change.apply(&mut root) {
                reader.report(fault);
            }
        }
        let sweep = match root.take("sweep") {
            Some(node) => SWEEP
                .table(&node, &mut reader)
                .map(|table| sweep(&table, &root, &mut reader))
                .unwrap_or_default(),
            None => Sweep::default(),
        };
        let mut axes = sweep.axes;
        for argument in &overrides.axes {
            let source = sources.add("-m", argument);
            match axis::parse(argument, source, &root, &mut reader) {
                Some(axis) => axis::put(&mut axes, axis),
                None => debug_assert!(!reader.errors.is_empty(), "{argument}"),
            }
        }
        axis::check(&axes, &sources, &mut reader);
        let mut conditions = Vec::new();
        if let Some(only) = &sweep.only {
            conditions.push((only.value.as_str(), only.span));
        }
        if let Some(only) = &overrides.only {
            conditions.push((only, sources.add("--only", only).span(0..only.len())));
        }
        let only: Vec<Condition> = conditions
            .iter()
            .filter_map(|&(text, place)| {
                Condition::parse(text, place, &axes).map_err(|fault| reader.report(fault)).ok()
            })
            .collect();
        let composed = compose(text, &changes).map_err(|error| {
            sources.errors(vec![SpannedError::new(file.span(0..0), error.message())])
        })?;
        let grid = match SweepGrid::new(&axes, &only) {
            Ok(grid) => grid,
            Err(message) => {
                // The argument comes last; this error requires a condition.
                let place = conditions.last().map_or(file.span(0..0), |&(_, place)| place);
                reader.report(SpannedError::new(place, message));
                SweepGrid::default()
            }
        };
        if !reader.errors.is_empty() {
            return Err(sources.errors(reader.errors));
        }
        let repeat = overrides.repeat.or(sweep.repeat).unwrap_or(1);
        let only = conditions.iter().map(|(text, _)| (*text).to_owned()).collect();
        let known = overrides.scenario.clone();
        let series = sweep.series;
        let study = Self {
            sources,
            root,
            text: composed,
            axes,
            grid,
            repeat,
            seed: 0,
            noise: None,
            only,
            series,
            known,
        };
        let (seed, lacking) = study.try_values()?;
        let is_given =
            study.root.has("noise") || study.axes.iter().any(|axis| axis.key("noise").is_some());
        let noise = lacking.filter(|_| study.repeat > 1 && !is_given);
        Ok(Self { seed, noise, ..study })
    }

    /// Reads the scenario with each value of each axis once; returns seed and missing noise of the first.
    fn try_values(&self) -> Result<(u64, Option<Duration>), Vec<ScenarioError>> {
        let first = vec![0; self.axes.len()];
        let mut faults = ReportedErrors::default();
        let seed = match self.scenario_at(&first) {
            Ok(scenario) => (scenario.seed, noise::missing_noise(&scenario)),
            Err(wrong) => return Err(self.sources.errors(wrong)),
        };
        for (number, axis) in self.axes.iter().enumerate() {
            for value in 1..axis.len() {
                let mut point = first.clone();
                point[number] = value;
                if let Err(wrong) = self.scenario_at(&point) {
                    faults.merge(wrong);
                }
            }
        }
        if faults.is_empty() { Ok(seed) } else { Err(self.sources.errors(faults)) }
    }

    fn scenario_at(&self, point: &[usize]) -> Result<Scenario, ReportedErrors> {
        self.scenario_with(point, &[])
    }

    fn scenario_with(
        &self,
        point: &[usize],
        changes: &[Override],
    ) -> Result<Scenario, ReportedErrors> {
        let mut root = self.root.clone();
        let mut reader = ScenarioReader::with_overrides(&self.known);
        for (axis, &value) in self.axes.iter().zip(point) {
            for (key, node) in axis.settings(value) {
                if let Err(fault) = Override::apply_at(&mut root, key, node) {
                    reader.report(fault);
                }
            }
        }
        for change in changes {
            if let Err(fault) = change.apply(&mut root) {
                reader.report(fault);
            }
        }
        let scenario = world::read(&root, &self.sources, &mut reader);
        scenario.filter(|_| reader.errors.is_empty()).ok_or(reader.errors)
    }

    /// What a run changes beside its point: its seed, and its noise.
    fn draws(&self, run: u64) -> Vec<Override> {
        let mut sources = Sources::new("", "").0;
        let mut changes = vec![Override::seed(self.seed(run), &mut sources)];
        changes.extend(self.noise.map(|most| Override::noise(most, &mut sources)));
        changes
    }

    /// The noise that repeated runs get, because several flows share a path and nothing in them is drawn;
    /// `None` if they get none.
    pub fn noise(&self) -> Option<Duration> {
        self.noise
    }

    /// Returns the number of runs.
    pub fn runs(&self) -> u64 {
        self.grid.points().saturating_mul(self.repeat)
    }

    /// Runs of each point.
    pub fn repeat(&self) -> u64 {
        self.repeat
    }

    /// Returns the number of points of the grid without conditions; saturates at `u64::MAX`.
    pub fn size(&self) -> u64 {
        self.grid.size()
    }

    /// Returns the keys of each axis.
    pub fn axes(&self) -> Vec<Vec<String>> {
        self.axes.iter().map(|axis| axis.names().collect()).collect()
    }

    /// Returns the time series to record from each run.
    pub fn series(&self) -> Option<&SeriesPlan> {
        self.series.as_ref()
    }

    /// Returns the seed of `run`.
    pub fn seed(&self, run: u64) -> u64 {
        self.seed.wrapping_add(run % self.repeat) & i64::MAX as u64
    }

    /// Returns the settings of `run`: each key with the text of its value.
    pub fn settings(&self, run: u64) -> Vec<(String, String)> {
        let point = self.grid.point(run / self.repeat);
        let axes = self.axes.iter().zip(point);
        axes.flat_map(|(axis, value)| axis.names().zip(axis.labels(value)).collect::<Vec<_>>())
            .collect()
    }

    /// Builds the scenario of `run`, which is below [`Study::runs`].
    ///
    /// # Errors
    /// The combination of values is invalid, though each value is valid by itself.
    pub fn scenario(&self, run: u64) -> Result<Scenario, Vec<ScenarioError>> {
        let point = self.grid.point(run / self.repeat);
        let scenario = match self.noise {
            // Start times are drawn while the scenario is read.
            Some(_) => self.scenario_with(&point, &self.draws(run)),
            None => self.scenario_at(&point).map(|mut scenario| {
                scenario.set_seed(self.seed(run));
                scenario
            }),
        };
        scenario.map_err(|faults| self.sources.errors(faults))
    }

    /// Returns the text of the scenario of `run`.
    ///
    /// # Errors
    /// As [`Study::scenario`].
    pub fn text_of(&self, run: u64) -> Result<String, Vec<ScenarioError>> {
        self.scenario(run)?;
        let point = self.grid.point(run / self.repeat);
        let mut changes: Vec<Override> = Vec::new();
        for (axis, &value) in self.axes.iter().zip(&point) {
            changes.extend(axis.settings(value).map(|(key, node)| Override::of(key, node)));
        }
        changes.extend(self.draws(run));
        let mut text: toml_edit::DocumentMut = self.text.parse().unwrap_or_default();
        text.remove("sweep");
        changes.iter().for_each(|change| change.compose(&mut text));
        Ok(text.to_string())
    }

    /// Returns the scenario's text with the changes to every run applied.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the inputs of the runs as JSON: the text, axes, repetitions, conditions and the
    /// SHA-256 of the files that they name.
    pub fn definition(&self) -> serde_json::Value {
        let axes: Vec<_> = self
            .axes
            .iter()
            .map(|axis| {
                let values: Vec<Vec<String>> = (0..axis.len()).map(|v| axis.labels(v)).collect();
                serde_json::json!({ "keys": axis.names().collect::<Vec<_>>(), "values": values })
            })
            .collect();
        let mut definition = serde_json::json!({
            "scenario": self.text,
            "axes": axes,
            "repeat": self.repeat,
            "only": self.only,
        });
        if let Some(most) = self.noise {
            definition["noise"] = most.to_string().into();
        }
        let files: serde_json::Map<String, serde_json::Value> = self
            .known
            .files
            .digests()
            .into_iter()
            .map(|(name, sha256)| (name, sha256.into()))
            .collect();
        if !files.is_empty() {
            definition["files"] = files.into();
        }
        definition
    }

    /// Returns the SHA-256 of [`Study::definition`] in lower-case hexadecimal.
    pub fn sha256(&self) -> String {
        hex(&Sha256::digest(self.definition().to_string()))
    }
}

impl TomlNode {
    /// True if it is a table with this entry.
    fn has(&self, key: &str) -> bool {
        matches!(&self.value, TomlValue::Table(entries) if entries.iter().any(|one| one.key == key))
    }

    /// Removes the entry `key` from a table.
    fn take(&mut self, key: &str) -> Option<Self> {
        let TomlValue::Table(entries) = &mut self.value else { return None };
        let at = entries.iter().position(|entry| entry.key == key)?;
        Some(entries.remove(at).node)
    }
}
