//! Arguments of `compare`.

use std::path::PathBuf;

use clap::Args;
use scenario::units_text;
use units::Duration;

use super::ScenarioArgs;
use super::theory::words;

const EXAMPLES: &str = "\
Examples:
  ackclock compare my.toml --model --kernel
  ackclock compare my.toml --model --kernel --wire --tolerance 5ms
  ackclock compare my.toml --report compare.html
  ackclock compare my.toml --kernel --junit out.xml
  ackclock compare quic.toml --set host.a.stack=quic-go-0.65 --set host.b.stack=quic-go-0.65
  ackclock compare my.toml --kernel my-patch --json | jq '.comparisons[0].flows[0].first'

A scenario has three grades: models (fast), kernels in virtual time (true), the wire (real). Two or three are
compared, each with the first of them; without a choice models and kernels. All hosts with a profile of
Linux are kernels in the second grade, unless the scenario names kernels itself; then those are. On the wire all
hosts are this machine's kernel. Packets are compared at the card of the host that opens the connection: sequence and
acknowledgment numbers, lengths, flags except PSH, and SACK blocks, each direction by itself.
A scenario whose hosts have `stack` is run with models of QUIC and with the stacks; packets with stream data are
compared by size and time.

Exit status: 0 the packets are the same, and their times within --tolerance; 1 they differ; 2 a mistake.";

/// Arguments of `compare`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, override_usage = "ackclock compare [OPTIONS] <FILE>")]
pub(crate) struct GradesArgs {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArgs,
    /// Run it with modelled hosts: the first grade, with which the others are compared
    #[arg(long)]
    pub(crate) model: bool,
    /// Run it with kernels in virtual time: all Linux hosts with this one [default: those of the scenario, else
    /// the first of `kernel list`]
    #[arg(long, value_name = "NAME", num_args = 0..=1)]
    pub(crate) kernel: Option<Option<String>>,
    /// Run it with this machine's kernel in real time (see: ackclock wire)
    #[arg(long)]
    pub(crate) wire: bool,
    /// Write a self-contained HTML page: sequence numbers and windows of all grades, first differences
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Write the result as JUnit XML: a test case for each flow, which fails if its packets differ
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// Write the differences as SARIF 2.1.0
    #[arg(long, value_name = "FILE")]
    pub(crate) sarif: Option<PathBuf>,
    /// Write the result as Markdown
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,
    /// Let times differ by as much
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = span)]
    pub(crate) tolerance: Duration,
    /// Run the programs that the scenario names as kernels of its hosts: they are foreign code
    #[arg(long)]
    pub(crate) allow_exec: bool,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

fn span(text: &str) -> Result<Duration, String> {
    units_text::duration(text).map_err(words)
}
