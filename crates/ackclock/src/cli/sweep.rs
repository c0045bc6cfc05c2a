//! Arguments of `sweep` and of `table`, which shows its results.

use std::path::PathBuf;

use clap::Args;

use super::{ScenarioArgs, ThinningArgs};

const SWEEP_EXAMPLES: &str = "\
Examples:
  ackclock sweep grid.toml                               the axes of its table [sweep]
  ackclock sweep transfer.toml -m sender.cc=newreno,cubic -m path.loss=0.1%,1% --repeat 5
  ackclock sweep transfer.toml -m 'path.delay=10ms..100ms step 10ms' --out delays
  ackclock sweep transfer.toml -m 'path.rate,path.buffer=(10Mbit/s,1bdp),(1Gbit/s,100p)'
  ackclock sweep transfer.toml -m 'path.rate=1Mbit/s..1Gbit/s log 7' --dry-run
  ackclock sweep grid.toml --series cwnd,flight --every 10ms
  ackclock sweep grid.toml --report grid.html            a page of heat maps
  ackclock sweep grid.toml --resume                      continue after Ctrl-C, a crash, a reboot

A directory holds the result: runs.jsonl and runs.csv in the order of the runs, a checksum of each
run in runs.sums, and the sweep itself in sweep.json and scenario.toml. The same sweep gives the
same bytes for any --jobs, interrupted or not.

Exit status: 0 success; 2 an error in arguments or files; 130 interrupted (143 by SIGTERM), continue
with --resume.";

/// Arguments of `sweep`.
#[derive(Debug, Args)]
#[command(after_help = SWEEP_EXAMPLES, override_usage = "ackclock sweep [OPTIONS] <FILE>")]
pub(crate) struct SweepArgs {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArgs,
    /// An axis: comma-separated values, a range (`A..B step S`, `A..B log N`, `A..B in N`), or keys
    /// that change together
    #[arg(short = 'm', long = "axis", value_name = "KEY=VALUES")]
    pub(crate) axis: Vec<String>,
    /// Runs of each point, with seeds N, N+1 and so on
    #[arg(long, value_name = "RUNS", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) repeat: Option<u64>,
    /// Condition that points must meet: `sender.cc != cubic or path.delay >= 10ms`
    #[arg(long, value_name = "CONDITION")]
    pub(crate) only: Option<String>,
    /// Threads [default: one for each core]
    #[arg(short = 'j', long, value_name = "N", value_parser = jobs)]
    pub(crate) jobs: Option<usize>,
    /// Directory of the result [default: the file's name with `.sweep`, here]
    #[arg(short = 'o', long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Continue an interrupted sweep
    #[arg(long)]
    pub(crate) resume: bool,
    /// Print the runs without running them
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print the scenario of run N without running it
    #[arg(long, value_name = "N", conflicts_with = "dry_run")]
    pub(crate) show: Option<u64>,
    /// Allow more than a million runs
    #[arg(long)]
    pub(crate) yes: bool,
    /// Also write the table of runs.csv with its units as Parquet [default: runs.parquet of the result]
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, conflicts_with_all = ["dry_run", "show"])]
    pub(crate) parquet: Option<Option<PathBuf>>,
    /// Keep columns of each run over time, in series/N.csv of the result: cwnd,flight,srtt
    /// [default: those of the file's table sweep.series]
    #[arg(long, value_name = "NAMES")]
    pub(crate) series: Option<String>,
    #[command(flatten)]
    pub(crate) thinning: ThinningArgs,
    /// Beside the series, keep the length and delay of the queue of every link of each run over time,
    /// in series/N.queues.csv of the result
    #[arg(long)]
    pub(crate) queues: bool,
    /// Write a self-contained HTML page with heat maps (see docs/reports.md)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["dry_run", "show"])]
    pub(crate) report: Option<PathBuf>,
    /// Print the means as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

fn jobs(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(jobs) if (1..=1024).contains(&jobs) => Ok(jobs),
        _ => Err("expected a number of threads from 1 to 1024".to_owned()),
    }
}

const TABLE_EXAMPLES: &str = "\
Examples:
  ackclock table transfer.sweep
  ackclock table transfer.sweep --rows path.loss --cols sender.cc --value goodput
  ackclock table transfer.sweep --report transfer.html
  ackclock table transfer.sweep --rows seed --value rtos --flow upload
  ackclock table transfer.sweep --rows path.loss --sum   the flows of each run together
  ackclock table transfer.sweep --rows path.delay --cols sender.cc --svg cc.svg --lines
  ackclock table transfer.sweep --rows path.loss --json | jq '.[].mean'

Intervals are the 95 % confidence intervals of the mean (Student's t) over the runs of a cell, if
these differ only in their seeds.";

/// Arguments of `table`.
#[derive(Debug, Args)]
#[command(after_help = TABLE_EXAMPLES)]
pub(crate) struct TableArgs {
    /// Directory of the sweep
    pub(crate) dir: PathBuf,
    /// Axes of the rows, comma-separated; `seed` and `flow` count as axes [default: all but the
    /// last]
    #[arg(long, value_name = "KEYS")]
    pub(crate) rows: Option<String>,
    /// Axes of the columns [default: the last, if neither is given]
    #[arg(long, value_name = "KEYS")]
    pub(crate) cols: Option<String>,
    /// Figure in the cells: a column of runs.csv, with or without its unit
    #[arg(long, value_name = "FIGURE", default_value = "goodput")]
    pub(crate) value: String,
    /// Only the flow of this name [default: each flow has its own cells]
    #[arg(long, value_name = "FLOW")]
    pub(crate) flow: Option<String>,
    /// Sum over the flows of each run, for additive figures: goodput, bytes, rtos
    #[arg(long, conflicts_with = "flow")]
    pub(crate) sum: bool,
    /// Write a self-contained HTML page with heat maps (see docs/reports.md)
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Draw the table: as a line chart over a numeric row axis if it has no column axes, else as a
    /// heat map
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// Draw the same chart as PNG, at twice its size
    #[arg(long, value_name = "FILE")]
    pub(crate) png: Option<PathBuf>,
    /// Draw lines instead of a heat map, one per column
    #[arg(long)]
    pub(crate) lines: bool,
    /// Write the runs with all columns as a Parquet table
    #[arg(long, value_name = "FILE")]
    pub(crate) parquet: Option<PathBuf>,
    /// Print one JSON object per cell
    #[arg(long)]
    pub(crate) json: bool,
}
