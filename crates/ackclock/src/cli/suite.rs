//! Arguments of `suite`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

pub(crate) const SUITE_EXAMPLES: &str = "\
Examples:
  ackclock suite rfc9743 --cc bbr                    the verdicts on Linux's BBR version 1
  ackclock suite rfc9743 --cc freebsd-main/cubic --full
  ackclock suite rfc9743 --cc bbr --criterion 5.1.3 --full
  ackclock suite rfc9743 --cc bbr --report bbr.html  every figure, with the scenario files
  ackclock suite rfc9743 --cc cubic --json > now.json
  ackclock suite rfc9743 --cc cubic --baseline now.json --junit suite.xml --sarif suite.sarif

Exit status: 0 every criterion passes, and nothing is worse than the baseline; 1 a criterion fails
or something is worse; 2 an error in arguments or files.";

/// The suites.
#[derive(Debug, Subcommand)]
pub(crate) enum SuiteCommand {
    /// The criteria of RFC 9743 (BCP 133) for a new congestion controller
    #[command(after_help = SUITE_EXAMPLES)]
    Rfc9743(SuiteArgs),
}

/// Arguments of a suite.
#[derive(Debug, Args)]
pub(crate) struct SuiteArgs {
    /// The sender under test: PROFILE/CC, or reno, cubic, bbr (Linux), newreno (FreeBSD)
    #[arg(long, value_name = "SENDER")]
    pub(crate) cc: String,
    /// The reference senders, of which the worst sets each limit
    #[arg(long, value_name = "SENDER", value_delimiter = ',', default_value = "reno,cubic")]
    pub(crate) against: Vec<String>,
    /// Only these criteria, by their section
    #[arg(long, value_name = "SECTION", value_delimiter = ',')]
    pub(crate) criterion: Vec<String>,
    /// Drawn start phases of each world with several flows
    #[arg(long, value_name = "COUNT", default_value_t = 4, value_parser = clap::value_parser!(u32).range(2..=1_000))]
    pub(crate) phases: u32,
    /// Threads [default: as many as processors]
    #[arg(long, value_name = "N")]
    pub(crate) jobs: Option<usize>,
    /// Print every figure with its limit, not only those beyond it
    #[arg(long)]
    pub(crate) full: bool,
    /// Print the report as JSON
    #[arg(long, conflicts_with_all = ["markdown", "full"])]
    pub(crate) json: bool,
    /// Print the report as a Markdown table
    #[arg(long, conflicts_with = "full")]
    pub(crate) markdown: bool,
    /// Write the report as JUnit XML
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// Write failed figures and regressions as SARIF 2.1.0
    #[arg(long, value_name = "FILE")]
    pub(crate) sarif: Option<PathBuf>,
    /// Write a self-contained HTML page of verdicts, figures and scenario files
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Write the scenario files of the worlds with the sender under test into this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) worlds: Option<PathBuf>,
    /// Compare with a former report (the output of --json) and fail if something is worse
    #[arg(long, value_name = "FILE")]
    pub(crate) baseline: Option<PathBuf>,
}
