//! Arguments of `interop`.

use std::path::PathBuf;

use clap::Args;

const INTEROP_EXAMPLES: &str = "\
Examples:
  ackclock interop path.toml --stacks quinn-0.11,quiche-0.29,quic-go-0.61
  ackclock interop path.toml --stacks quinn-0.11/newreno,linux-6.18/cubic --phases 16
  ackclock interop path.toml --stacks quinn-proto-0.11,quinn-0.11 --report pairs.html
  ackclock interop path.toml --stacks stack:quic-go-0.65,stack:quinn-0.11
  ackclock interop path.toml --stacks neqo-0.30,msquic-2.6 --set path.rate=50Mbit/s --json";

/// Arguments of `interop`.
#[derive(Debug, Args)]
#[command(
    after_help = INTEROP_EXAMPLES,
    override_usage = "ackclock interop [OPTIONS] --stacks <STACKS> <FILE>"
)]
pub(crate) struct InteropArgs {
    /// Scenario whose first flow has the path, and its overrides; its hosts and flows are replaced
    #[command(flatten)]
    pub(crate) scenario: super::ScenarioArgs,
    /// The stacks, PROFILE or PROFILE/CC, separated by commas; stack:NAME is a real QUIC stack of `ackclock stack list`
    #[arg(long, value_name = "STACKS", value_delimiter = ',', required = true)]
    pub(crate) stacks: Vec<String>,
    /// Seeds of each transfer, and drawn start phases of each pair
    #[arg(long, value_name = "COUNT", default_value_t = 8, value_parser = clap::value_parser!(u32).range(2..=1_000))]
    pub(crate) phases: u32,
    /// Seconds of virtual time of each run; the last two thirds are measured
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u32).range(3..=3_600))]
    pub(crate) length: u32,
    /// Threads [default: as many as processors]
    #[arg(short = 'j', long, value_name = "N")]
    pub(crate) jobs: Option<usize>,
    /// Print the report as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Write a self-contained HTML page of the matrices
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
}
