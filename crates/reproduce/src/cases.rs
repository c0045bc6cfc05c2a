//! Published cases: every figure of a document with the figure that Ackclock measures.
//!
//! Reading order: [`row`] (a figure, its kind, its band), [`slow_start_lro`] (the first case),
//! [`reordering`], [`mathis`], [`cubic_hz`], [`cubic_tables`] and [`prr`] (the others); [`summary`], [`text`],
//! [`ledger`] and [`CaseReport`] (output of the results).

pub mod cubic_hz;
pub mod cubic_tables;
pub mod ledger;
pub mod mathis;
pub mod prr;
pub mod reordering;
pub mod row;
pub mod slow_start_lro;
pub mod summary;
pub mod text;

use core::sync::atomic::{AtomicUsize, Ordering};

use serde::Serialize;

use runner::stop;
use scenario::{self, Loaded, Overrides};

pub use row::{CaseFigure, CaseRow, RowKind};
pub use runner::workers::Workers;

/// A case that can be run.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    /// Name on the command line.
    pub id: &'static str,
    /// Title.
    pub title: &'static str,
    /// Where the figures were published.
    pub source: &'static str,
    run: fn(&Workers<'_>) -> Result<Measured, CaseError>,
}

/// All cases, in the order they are run.
pub const CASES: &[Case] = &[
    Case {
        id: "slow-start-lro",
        title: "FreeBSD's slow start starved by LRO",
        source: "Chen Shuo, freebsd-net, 2 May 2023: Cwnd grows slowly during slow-start due to \
                 LRO of the receiver side",
        run: slow_start_lro::measure,
    },
    Case {
        id: "reordering",
        title: "Groups of packets in reverse order, and the reaction of FreeBSD's stacks",
        source: "R. Stewart, FreeBSD Journal: Improving TCP's Responses to Reordering",
        run: reordering::measure,
    },
    Case {
        id: "mathis",
        title: "QUIC NewReno on a lossy link, against the formula of Mathis",
        source: "Congestion Avoidance on a lossy link: the Mathis experiment in INET's QUIC model",
        run: mathis::measure,
    },
    Case {
        id: "cubic-hz",
        title: "CUBIC's TCP-friendly window and the kernel's tick",
        source: "Cheng Cui, FreeBSD review D46546, 5 September 2024: cc_cubic: use newreno to \
                 emulate AIMD in TCP-friendly region",
        run: cubic_hz::measure,
    },
    Case {
        id: "cubic-tables",
        title: "CUBIC's average window and the loss rate that it needs",
        source: "RFC 9438, August 2023, tables 1 to 3",
        run: cubic_tables::measure,
    },
    Case {
        id: "prr",
        title: "Proportional rate reduction, ACK by ACK",
        source: "RFC 6937, May 2013, section 3.1",
        run: prr::measure,
    },
];

/// The case with this name.
pub fn find(id: &str) -> Option<&'static Case> {
    CASES.iter().find(|case| case.id == id)
}

/// A declared input of a case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CaseInput {
    /// Name, as in the scenario.
    pub name: String,
    /// Value with its unit.
    pub value: String,
    /// The document or kernel source it comes from, or the observation it was inferred from.
    pub source: String,
}

impl CaseInput {
    pub(crate) fn new(name: &str, value: &str, source: &str) -> Self {
        Self { name: name.into(), value: value.into(), source: source.into() }
    }
}

/// The output of a case's own code.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// Inputs declared by the case.
    pub knobs: Vec<CaseInput>,
    /// Figures.
    pub rows: Vec<CaseRow>,
    /// Text to print below the table: traces side by side, an explanation.
    pub exhibit: String,
}

/// Results of a case.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CaseResult {
    /// Name on the command line.
    pub id: &'static str,
    /// Title.
    pub title: &'static str,
    /// Where the figures were published.
    pub source: &'static str,
    /// Inputs declared by the case.
    pub knobs: Vec<CaseInput>,
    /// Figures.
    pub rows: Vec<CaseRow>,
    /// Text to print below the table.
    #[serde(skip)]
    pub exhibit: String,
}

impl CaseResult {
    /// True if every asserted figure holds.
    pub fn holds(&self) -> bool {
        self.rows.iter().all(|row| row.holds != Some(false))
    }
}

/// Results of a run of cases, as `ackclock reproduce --json` prints them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CaseReport {
    /// Version of Ackclock.
    pub version: &'static str,
    /// One per case, in the order of the run.
    pub cases: Vec<CaseResult>,
}

/// A case could not be run because of its own inputs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseError(
    /// Description of the error.
    pub String,
);

impl core::fmt::Display for CaseError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for CaseError {}

/// The rows, those without another stack by this sender.
pub(crate) fn by(stack: &'static str, rows: Vec<CaseRow>) -> Vec<CaseRow> {
    rows.into_iter().map(|row| row.by(stack)).collect()
}

/// Loads a scenario of a case with overrides.
pub(crate) fn load(text: &str, name: &str, set: &[&str]) -> Result<Loaded, CaseError> {
    let overrides =
        Overrides { set: set.iter().map(|s| (*s).to_owned()).collect(), ..Overrides::default() };
    scenario::load(text, name, &overrides).map_err(|errors| {
        let lines: Vec<_> = errors.iter().map(ToString::to_string).collect();
        CaseError(lines.join("\n"))
    })
}

/// A group of rows of a case.
pub(crate) type RowGroup = fn(&Workers<'_>) -> Result<Vec<CaseRow>, CaseError>;

/// The rows of the groups, in their order.
pub(crate) fn groups(
    groups: &[RowGroup],
    workers: &Workers<'_>,
) -> Result<Vec<CaseRow>, CaseError> {
    Ok(workers.map(groups, |rows| rows(workers))?.concat())
}

/// Runs a loaded scenario under an observer.
pub(crate) fn run(
    loaded: &Loaded,
    observer: &mut impl sim::Observer,
    workers: &Workers<'_>,
) -> Result<sim::RunOutcome, CaseError> {
    stop::run_shared(&loaded.scenario, observer, workers.stop())
        .map_err(|error| CaseError(format!("{error}")))
}

impl Case {
    /// Runs the case on the caller's thread.
    ///
    /// # Errors
    /// [`CaseError`] if its scenario or its published text cannot be read.
    pub fn run(&self) -> Result<CaseResult, CaseError> {
        self.on(&Workers::one())
    }

    /// Runs the case; its runs share the workers and end with them. The result is the same for any
    /// number of threads.
    ///
    /// # Errors
    /// As for [`Case::run`].
    pub fn on(&self, workers: &Workers<'_>) -> Result<CaseResult, CaseError> {
        let measured = (self.run)(workers)?;
        Ok(CaseResult {
            id: self.id,
            title: self.title,
            source: self.source,
            knobs: measured.knobs,
            rows: measured.rows,
            exhibit: measured.exhibit,
        })
    }
}

impl CaseReport {
    /// Runs cases; `finished` is called after each with the number of finished ones.
    ///
    /// # Errors
    /// The first case that cannot be run, with its error.
    pub fn of(
        cases: &[&'static Case],
        workers: &Workers<'_>,
        finished: &(impl Fn(usize) + Sync),
    ) -> Result<Self, (&'static Case, CaseError)> {
        let count = AtomicUsize::new(0);
        let results = workers.map(cases, |case| {
            let result = case.on(workers).map_err(|error| (*case, error));
            finished(count.fetch_add(1, Ordering::Relaxed) + 1);
            result
        })?;
        Ok(Self { cases: results, ..Self::new() })
    }

    /// A report without cases.
    pub const fn new() -> Self {
        Self { version: env!("CARGO_PKG_VERSION"), cases: Vec::new() }
    }

    /// The report as JSON, with a final line break.
    pub fn to_json(&self) -> String {
        text::pretty(self)
    }

    /// True if every asserted figure of every case holds.
    pub fn holds(&self) -> bool {
        self.cases.iter().all(CaseResult::holds)
    }
}

impl Default for CaseReport {
    fn default() -> Self {
        Self::new()
    }
}
