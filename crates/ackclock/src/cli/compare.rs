//! Arguments of `compare`.

use clap::Args;
use scenario::units_text;
use units::Duration;

use super::ScenarioArgs;
use super::theory::words;

const EXAMPLES: &str = "\
Examples:
  ackclock compare my.toml --model --kernel
  ackclock compare my.toml --kernel my-patch --json | jq '.flows[0].first'

All hosts with a profile of Linux are kernels in the second run, unless the scenario names kernels itself;
then those are. Packets are compared at the card of the host that opens the connection: sequence and
acknowledgment numbers, lengths, flags except PSH, and SACK blocks, each direction by itself.

Exit status: 0 the packets are the same, and their times within --tolerance; 1 they differ; 2 a mistake.";

/// Arguments of `compare`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, override_usage = "ackclock compare [OPTIONS] <FILE>")]
pub(crate) struct GradesArgs {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArgs,
    /// Compare with modelled hosts [always on: there is no other reference yet]
    #[arg(long)]
    pub(crate) model: bool,
    /// Kernel of all Linux hosts [default: those of the scenario, else the first of `kernel list`]
    #[arg(long, value_name = "NAME", num_args = 0..=1)]
    pub(crate) kernel: Option<Option<String>>,
    /// Tolerated difference of packet times
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
