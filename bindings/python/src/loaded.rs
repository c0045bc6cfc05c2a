//! A validated scenario.

use core::ops::ControlFlow;
use std::fs;
use std::io::{self, Read as _};
use std::path::Path;

use packet::Segment;
use pages::run_page::RunPageRecorder;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use record::{Event, EventSource, PacketEvent, Recorder, SenderState};
use runner::sharing::Sharing;
use scenario::{Files, Loaded, Overrides};
use sim::{Observer, ObserverPair, RunOutcome};
use units::Instant;

use crate::columns::{EventTable, StateTable};
use crate::controller::outside;
use crate::errors::{RunError, wrong_scenario};
use crate::ran::{Run, RunData, broken};
use crate::watch::{LongCall, watch};

/// A valid scenario: hosts, paths, flows.
#[pyclass(frozen, module = "ackclock")]
pub(crate) struct Scenario {
    pub(crate) loaded: Loaded,
    pub(crate) name: String,
}

/// Parses the text of a scenario file with overrides `KEY=VALUE` and, if given, another seed.
#[pyfunction]
#[pyo3(signature = (text, name, set, seed=None, controllers=None))]
pub(crate) fn load(
    py: Python<'_>,
    text: &str,
    name: &str,
    set: Vec<String>,
    seed: Option<u64>,
    controllers: Option<&Bound<'_, PyDict>>,
) -> PyResult<Scenario> {
    let controllers = controllers.map(outside).transpose()?.unwrap_or_default();
    let overrides =
        Overrides { set, seed, controllers, files: files_beside(name), ..Overrides::default() };
    let loaded =
        scenario::load(text, name, &overrides).map_err(|mistakes| wrong_scenario(py, &mistakes))?;
    Ok(Scenario { loaded, name: name.to_owned() })
}

#[pymethods]
impl Scenario {
    /// The text of the scenario with all overrides applied.
    #[getter]
    fn text(&self) -> &str {
        &self.loaded.text
    }

    /// Name of the file it came from.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// SHA-256 of `text`.
    #[getter]
    fn sha256(&self) -> &str {
        &self.loaded.sha256
    }

    /// Title.
    #[getter]
    fn title(&self) -> &str {
        &self.loaded.scenario.title
    }

    /// Seed of every random stream.
    #[getter]
    fn seed(&self) -> u64 {
        self.loaded.scenario.seed
    }

    /// Names of the hosts.
    #[getter]
    fn hosts(&self) -> Vec<&str> {
        self.loaded.scenario.hosts.iter().map(|host| host.name.as_str()).collect()
    }

    /// Names of the flows.
    #[getter]
    fn flows(&self) -> Vec<&str> {
        self.loaded.scenario.flows.iter().map(|flow| flow.name.as_str()).collect()
    }

    /// Maximum virtual time of a run, in seconds.
    #[getter]
    fn duration_s(&self) -> f64 {
        self.loaded.scenario.duration.as_secs_f64()
    }

    fn __repr__(&self) -> String {
        let scenario = &self.loaded.scenario;
        format!(
            "<ackclock.Scenario {:?}: {} hosts, {} flows, seed {}>",
            if scenario.title.is_empty() { &self.name } else { &scenario.title },
            scenario.hosts.len(),
            scenario.flows.len(),
            scenario.seed
        )
    }

    /// Runs the scenario. `series` records the senders' states and a page of plots, `events` all
    /// events.
    #[pyo3(signature = (series, events, progress=None))]
    fn run(
        &self,
        py: Python<'_>,
        series: bool,
        events: bool,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Run> {
        let mut scenario = self.loaded.scenario.clone();
        // As `ackclock run --json` and `--report`; only a single flow without series is not measured.
        let measured = series || Sharing::concerns(&scenario);
        let sharing = measured.then(|| Sharing::detailed(&scenario));
        let mut listeners = RunObservers {
            sharing,
            series: series.then(|| StateTable::new(&scenario)),
            events: events.then(|| EventTable::new(&scenario)),
            story: series.then(|| RunPageRecorder::new(&mut scenario, POINTS)),
        };
        let total = scenario.duration.as_nanos();
        let outcome = watch(py, total, progress, |watched| {
            let mut quiet = ProgressObserver(watched);
            if listeners.is_none() {
                sim::run(&scenario, &mut quiet)
            } else {
                sim::run(&scenario, &mut ObserverPair(&mut listeners, quiet))
            }
        })?
        .map_err(|error| unfit(&error))?;
        Ok(Run::new(&self.loaded, &outcome, listeners.finish(&self.loaded, &outcome, &self.name)?))
    }
}

fn unfit(error: &sim::RunError) -> PyErr {
    RunError::new_err(match error {
        sim::RunError::Setup(_) | sim::RunError::Duplicates(_) | sim::RunError::InFlight(_) => {
            format!("the scenario cannot be run: {error}")
        }
        sim::RunError::Controller(_) | sim::RunError::Stack(_) | sim::RunError::Stopped => {
            error.to_string()
        }
    })
}

/// Files that a scenario names are relative to its file; a text or a dictionary has none.
pub(crate) fn files_beside(name: &str) -> Files {
    if name.starts_with('<') {
        return Files::default();
    }
    let dir = Path::new(name).parent().unwrap_or(Path::new("")).to_owned();
    let folder = dir.clone();
    let files = Files::new(move |file| {
        let path = dir.join(file);
        regular(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))
    });
    files.with_controllers(move |name| foreign_cc::named::controller_with_bytes(name, &folder))
}

/// Size limit of a file that a scenario names.
const MOST: u64 = 64 << 20;

/// Reads a regular file; a pipe may have no writer and a device no end.
fn regular(path: &Path) -> io::Result<Vec<u8>> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(MOST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST {
        return Err(io::Error::other(format!("it is larger than {} MiB", MOST >> 20)));
    }
    Ok(bytes)
}

/// Limit of the values in all series of a page in a notebook.
const POINTS: usize = 50_000;

/// The observers of a run.
struct RunObservers {
    sharing: Option<Sharing>,
    series: Option<StateTable>,
    events: Option<EventTable>,
    story: Option<RunPageRecorder>,
}

impl RunObservers {
    fn is_none(&self) -> bool {
        let Self { sharing, series, events, story } = self;
        sharing.is_none() && series.is_none() && events.is_none() && story.is_none()
    }

    fn finish(self, loaded: &Loaded, outcome: &RunOutcome, name: &str) -> PyResult<RunData> {
        let file = Path::new(name).file_name().map(|file| file.to_string_lossy());
        let file = file.as_deref().unwrap_or(name);
        Ok(RunData {
            series: self.series.map(StateTable::finish).transpose().map_err(|e| broken(&e))?,
            events: self.events.map(EventTable::finish).transpose().map_err(|e| broken(&e))?,
            page: self.story.map(|story| story.page(loaded, outcome, file, self.sharing.as_ref())),
            sharing: self.sharing,
        })
    }
}

impl Recorder for &mut RunObservers {
    const ON: bool = true;
    const PACKETS: bool = true;

    fn record(&mut self, at: Instant, who: EventSource, event: Event, state: Option<&SenderState>) {
        if let Some(sharing) = &mut self.sharing {
            sharing.record(at, who, event, state);
        }
        if let Some(series) = &mut self.series {
            series.record(at, who, event, state);
        }
        if let Some(events) = &mut self.events {
            events.record(at, who, event, state);
        }
        if let Some(story) = &mut self.story {
            story.record(at, who, event, state);
        }
    }

    fn record_packet(&mut self, at: Instant, movement: PacketEvent) {
        if let Some(sharing) = &mut self.sharing {
            sharing.record_packet(at, movement);
        }
        if let Some(story) = &mut self.story {
            story.record_packet(at, movement);
        }
    }
}

impl Observer for &mut RunObservers {
    fn tap(&mut self, at: Instant, tap: usize, outbound: bool, segment: &Segment) {
        if let Some(story) = &mut self.story {
            story.tap(at, tap, outbound, segment);
        }
    }
}

/// Observes only the progress.
struct ProgressObserver<'w>(&'w LongCall);

impl Recorder for ProgressObserver<'_> {
    const ON: bool = false;

    fn record(&mut self, _: Instant, _: EventSource, _: Event, _: Option<&SenderState>) {}
}

impl Observer for ProgressObserver<'_> {
    fn progress(&mut self, now: Instant) -> ControlFlow<()> {
        self.0.reached(now.as_nanos())
    }
}
