//! The requests of the playground and their answers, both JSON.

use std::io::Read;

use diagnose::AnalysisSettings;
use ingest::diagnosis::{DiagnosisReport, TextStyle};
use ingest::inputs::{self, CapturedConnection, InputFile};
use runner::workers::Workers;
use scenario::{ReportStyle, ScenarioError};
use serde::Deserialize;
use serde_json::{Value, json};
use whatif::{WhatIf, WhatIfError, WhatIfRequest, scenario_of};

use crate::controls::{self, ControlName};
use crate::{moments, packets, runs};

/// Opens file number N of a request.
pub type OpenFile<'a> = dyn Fn(u32) -> Box<dyn Read> + 'a;

/// A request.
#[derive(Debug, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Diagnoses files: the findings as JSON and as text.
    Diagnose {
        /// Names of the files, in their order.
        files: Vec<String>,
        /// Most connections of a file in the answer.
        limit: usize,
        /// Whether the cures of the worst connections are tried.
        #[serde(default)]
        cures: bool,
    },
    /// The page of the last diagnosis.
    DiagnosisPage {},
    /// Simulates a connection of a capture with other senders.
    WhatIf {
        /// Name of the capture.
        file: String,
        /// Number of the connection; the largest by default.
        flow: Option<u32>,
        /// Other senders.
        compare: Vec<String>,
        /// Changes of the fitted scenario.
        set: Vec<String>,
    },
    /// The scenario fitted to a connection of a capture.
    ScenarioOf {
        /// Name of the capture.
        file: String,
        /// Number of the connection; the largest by default.
        flow: Option<u32>,
    },
    /// Checks a scenario: its errors with their positions, and the values of its first path's controls.
    Check {
        /// The text.
        text: String,
    },
    /// The JSON schema of scenario files.
    Schema {},
    /// Runs a scenario: its result and its series.
    Run {
        /// The text.
        text: String,
        /// Changes by controls.
        #[serde(default)]
        controls: Vec<(ControlName, String)>,
        /// Index of the path whose controls these are.
        #[serde(default)]
        path: usize,
        /// Most rows of a series.
        points: usize,
    },
    /// The page of a run.
    RunPage {
        /// The text.
        text: String,
    },
    /// The packets of a run on their way, from an instant on.
    Packets {
        /// The text.
        text: String,
        /// First instant, in ns.
        from_ns: u64,
        /// Most packets.
        limit: usize,
    },
    /// The findings about a run.
    Findings {
        /// The text.
        text: String,
    },
    /// The result of a run as `ackclock run --json` prints it, and the digest of its events.
    RunReport {
        /// The text.
        text: String,
    },
    /// The digests of fixed runs: see [`simtest::digests`].
    Digests {},
    /// A panic, for tests of its treatment.
    Panic {},
}

/// Why a request has no answer.
pub enum Failure {
    /// A message.
    Message(String),
    /// Errors in a scenario.
    Scenario(Vec<ScenarioError>),
}

impl<T: core::fmt::Display> From<T> for Failure {
    fn from(error: T) -> Self {
        Self::Message(error.to_string())
    }
}

/// Answers requests; keeps the last diagnosis for its page.
#[derive(Debug, Default)]
pub struct Engine {
    last: Option<DiagnosisReport>,
}

impl Engine {
    /// An engine without a diagnosis.
    pub const fn new() -> Self {
        Self { last: None }
    }

    /// The answer to a request: an object with `ok`, `error` or `errors`.
    pub fn answer(&mut self, request: &[u8], open: &OpenFile<'_>) -> String {
        let request = match serde_json::from_slice(request) {
            Ok(request) => request,
            Err(error) => return json!({ "error": format!("not a request: {error}") }).to_string(),
        };
        match self.handle(request, open) {
            Ok(ok) => json!({ "ok": ok }).to_string(),
            Err(Failure::Message(error)) => json!({ "error": error }).to_string(),
            Err(Failure::Scenario(errors)) => json!({ "errors": errors }).to_string(),
        }
    }

    fn handle(&mut self, request: Request, open: &OpenFile<'_>) -> Result<Value, Failure> {
        match request {
            Request::Diagnose { files, limit, cures } => self.diagnose(files, limit, cures, open),
            Request::DiagnosisPage {} => {
                let report = self.last.as_ref().ok_or("there is no diagnosis yet")?;
                Ok(json!({ "html": html(&pages::diagnosis_page::page(report))? }))
            }
            Request::WhatIf { file, flow, compare, set } => {
                let (stream, others) = stream(file, flow, open)?;
                let others: Vec<_> = others.iter().collect();
                let question = WhatIfRequest { compare, set, sender: None };
                let answer =
                    WhatIf::beside(&stream, &others, &question).map_err(|error| match error {
                        WhatIfError::Scenario(errors) => Failure::Scenario(errors),
                        other => Failure::from(other),
                    })?;
                Ok(json!({ "json": answer.to_json(), "text": answer.to_text() }))
            }
            Request::ScenarioOf { file, flow } => {
                Ok(json!({ "text": scenario_of(&stream(file, flow, open)?.0)? }))
            }
            Request::Check { text } => {
                let loaded = runs::loaded(&text)?;
                Ok(json!({
                    "sha256": loaded.sha256,
                    "title": loaded.scenario.title,
                    "controls": controls::of(&text, 0),
                }))
            }
            Request::Schema {} => Ok(json!({ "schema": scenario::schema() })),
            Request::Run { text, controls, path, points } => {
                let text = controls::apply(&text, path, &controls)?;
                runs::run(&text, path, points)
            }
            Request::RunPage { text } => Ok(json!({ "html": html(&runs::page(&text)?)? })),
            Request::Packets { text, from_ns, limit } => packets::of(&text, from_ns, limit),
            Request::Findings { text } => moments::findings(&text),
            Request::RunReport { text } => runs::report(&text),
            Request::Digests {} => Ok(json!({ "lines": simtest::digests::lines()? })),
            Request::Panic {} => panic!("this panic was asked for"),
        }
    }

    fn diagnose(
        &mut self,
        files: Vec<String>,
        limit: usize,
        cures: bool,
        open: &OpenFile<'_>,
    ) -> Result<Value, Failure> {
        // Two large reports need not be in memory at once.
        self.last = None;
        let sources = files.into_iter().zip(0..);
        let sources = sources.map(|(name, number)| InputFile { name, bytes: open(number) });
        let mut report = DiagnosisReport::read(sources.collect(), true)?;
        if cures {
            whatif::try_worst(&mut report, &Workers::one());
        }
        let json = report.json(limit);
        let text = report.text(TextStyle { limit: limit.min(10), look: ReportStyle::Plain });
        self.last = Some(report);
        Ok(json!({ "json": json, "text": text }))
    }
}

/// A page as text.
fn html(page: &::report::page::Page) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    page.write(&mut bytes)?;
    Ok(String::from_utf8(bytes)?)
}

/// A connection with all its packets.
fn stream(
    name: String,
    flow: Option<u32>,
    open: &OpenFile<'_>,
) -> Result<(CapturedConnection, Vec<CapturedConnection>), Failure> {
    let settings = AnalysisSettings { packets: usize::MAX, turns: whatif::MAX_EVENTS };
    let reading = inputs::read(vec![InputFile { name, bytes: open(0) }], settings)?;
    let found = whatif::selected(reading.streams, flow);
    found.ok_or_else(|| Failure::from("the capture has no such TCP connection"))
}
