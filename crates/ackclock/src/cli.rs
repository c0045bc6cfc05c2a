//! Arguments, with their help.

mod series;
mod theory;
mod whatif;
mod wire;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

pub(crate) use series::ThinningArgs;
pub(crate) use theory::{
    AimdArgs, CubicArgs, MathisArgs, PathArgs, PftkArgs, TheoryCommand, TrialArgs,
};
pub(crate) use whatif::{FromArgs, WhatIfArgs};

pub(crate) use wire::{CompareArgs, EndArgs, LinkArgs, WireCommand};

/// Finds out why a TCP transfer is slow, reproduces it in virtual time, and shows what would
/// cure it.
#[derive(Debug, Parser)]
#[command(name = "ackclock", version, after_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXAMPLES: &str = "\
Examples:
  ackclock diagnose slow.pcap                           why was this transfer slow?
  ackclock run scenarios/slow-start-lro.toml            run a scenario, print a table
  ackclock run scenarios/slow-start-lro.toml --tcpdump  print what tcpdump would have seen
  ackclock sweep my.toml -m path.loss=0.1%,1%,10%       run it over a grid, on all cores
  ackclock scenario check my.toml                       look for mistakes without running
  ackclock reproduce --list                             published figures that can be checked
  ackclock theory mathis --rtt 20ms --loss 0.1%         what a loss rate allows
  ackclock packetdrill golden/packetdrill               run packet scripts, print a table

Exit status: 0 all is well; 1 a figure lies outside its band; 2 a mistake in arguments or files.";

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Find out from a capture why a transfer is slow, and what it costs
    Diagnose(DiagnoseArgs),
    /// Explain a finding of diagnose: background, and what to do on each system
    Explain(ExplainArgs),
    /// Run a captured transfer again, with its own sender and with others
    #[command(name = "whatif")]
    WhatIf(WhatIfArgs),
    /// Run a scenario in virtual time
    Run(RunArgs),
    /// Run a scenario over a grid, on all cores
    Sweep(SweepArgs),
    /// Show the runs of a sweep as a table, mean and confidence interval in its cells
    Table(TableArgs),
    /// Check scenario files and describe their format
    #[command(subcommand, after_help = SCENARIO_EXAMPLES)]
    Scenario(ScenarioCommand),
    /// Print published figures beside what Ackclock measures
    Reproduce(ReproduceArgs),
    /// Read a log, whole or damaged: FreeBSD's Black Box Log or siftr, or qlog
    Read(ReadArgs),
    /// Ask the formulas what a loss rate allows, and what speaks against them
    #[command(subcommand, after_help = theory::THEORY_EXAMPLES)]
    Theory(TheoryCommand),
    /// Turn an ini file of INET's QUIC experiment (OMNeT++) into a scenario
    ImportIni(ImportIniArgs),
    /// Run packet scripts in packetdrill's language, in virtual time
    Packetdrill(PacketdrillArgs),
    /// Run a scenario in real time, with this machine's own TCP as some of its hosts
    #[command(subcommand, after_help = wire::WIRE_EXAMPLES)]
    Wire(WireCommand),
}

const DIAGNOSE_EXAMPLES: &str = "\
Examples:
  ackclock diagnose slow.pcap                    what limited each connection, worst first
  ackclock diagnose slow.pcapng.xz --flow 3      one connection (Wireshark's tcp.stream)
  tcpdump -i em0 -s 128 -w - port 443 | ackclock diagnose -
  ackclock diagnose slow.pcap --json | jq '.connections[0].primary'
  ackclock diagnose slow.pcap --report slow.html the graphs, with the findings on them
  ackclock diagnose ci.pcap --fail-on warning    exit 1 if something costs a tenth of the time
  ackclock diagnose ci.pcap --fail-on CC204      exit 1 if there was a timeout

Captures show most when taken at the host that sends the data, from before the connection opens;
128 bytes of each packet are enough (tcpdump -s 128).

Exit status: 0 done; 1 a finding that --fail-on names; 2 a mistake in arguments, or a file that
cannot be read.";

/// Arguments of `diagnose`.
#[derive(Debug, Args)]
#[command(after_help = DIAGNOSE_EXAMPLES)]
pub(crate) struct DiagnoseArgs {
    /// Captures (pcap, pcapng, also packed with gzip, xz, zstd), tcpdump's text, or logs; - is
    /// standard input
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Only this connection, by Wireshark's number (tcp.stream)
    #[arg(long, value_name = "N")]
    pub(crate) flow: Option<u32>,
    /// Connections shown with their findings, worst first [default: 10; with --json all]
    #[arg(long, value_name = "COUNT")]
    pub(crate) limit: Option<usize>,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Write a page (HTML, self-contained) with the time-sequence graphs and the findings on them
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Exit with 1 on a finding of this severity (note, warning, error) or worse, or with this code
    #[arg(long, value_name = "SEVERITY|CODE")]
    pub(crate) fail_on: Option<String>,
}

const EXPLAIN_EXAMPLES: &str = "\
Examples:
  ackclock explain            all codes
  ackclock explain CC101      one of them";

/// Arguments of `explain`.
#[derive(Debug, Args)]
#[command(after_help = EXPLAIN_EXAMPLES)]
pub(crate) struct ExplainArgs {
    /// Code of a finding, as CC101 [default: a list of all]
    pub(crate) code: Option<String>,
}

const RUN_EXAMPLES: &str = "\
Examples:
  ackclock run transfer.toml
  ackclock run transfer.toml --set duration=10s --set path.0.forward.1.delay=20ms
  ackclock run transfer.toml --set host.sender.knobs.net.inet.tcp.abc_l_var=45
  ackclock run transfer.toml --json | jq '.flows[0].goodput_bps'
  ackclock run transfer.toml --tcpdump sink
  ackclock run transfer.toml --pcap transfer.pcapng && tshark -r transfer.pcapng
  ackclock run transfer.toml --report transfer.html
  ackclock run transfer.toml --csv events.csv --svg cwnd.svg
  ackclock run transfer.toml --csv cwnd.csv --columns cwnd,flight --every 10ms
  ackclock run transfer.toml --bblog sender.pcapng && tshark -r sender.pcapng -Y bblog
  ackclock run transfer.toml --siftr sender.log --log-flow upload
  ackclock run transfer.toml --qlog sender.qlog --qlog-form qvis

A run depends on the scenario and its seed alone: the same two give the same bytes anywhere.";

/// Arguments of `run`.
#[derive(Debug, Args)]
#[command(after_help = RUN_EXAMPLES, override_usage = "ackclock run [OPTIONS] <FILE>")]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArgs,
    /// Print the result as JSON
    #[arg(long, conflicts_with = "tcpdump")]
    pub(crate) json: bool,
    /// Print what tcpdump would have seen on HOST, instead of the table [default: the first
    /// flow's sender]
    #[arg(long, value_name = "HOST", num_args = 0..=1)]
    pub(crate) tcpdump: Option<Option<String>>,
    /// Write what the scenario's taps saw as pcapng [without taps: the first flow's sender]
    #[arg(long, value_name = "FILE")]
    pub(crate) pcap: Option<PathBuf>,
    /// Write every event as a row with the sender's state after it; with --columns, these over
    /// time
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
    /// Write --columns over time, one JSON object a line
    #[arg(long, value_name = "FILE", requires = "columns")]
    pub(crate) jsonl: Option<PathBuf>,
    /// Write every event of a sender with its state after it, and what applications read, as a
    /// Parquet table; with --columns, these over time
    #[cfg(feature = "parquet")]
    #[arg(long, value_name = "FILE")]
    pub(crate) parquet: Option<PathBuf>,
    /// Columns of --csv, --jsonl and --parquet, of the senders' states wherever one of them changes:
    /// cwnd, flight, pipe, ssthresh, srtt, pacing and others
    #[arg(long, value_name = "NAMES")]
    pub(crate) columns: Option<String>,
    #[command(flatten)]
    pub(crate) thinning: ThinningArgs,
    /// Draw congestion window and flight of every flow over time as a chart
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// Draw the same chart as PNG, at twice its size
    #[cfg(feature = "png")]
    #[arg(long, value_name = "FILE")]
    pub(crate) png: Option<PathBuf>,
    /// Write a page of plots and tables for a browser, in one file: see docs/reports.md
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Write what the sender's stack would log as FreeBSD's Black Box Log, in pcapng
    #[arg(long, value_name = "FILE")]
    pub(crate) bblog: Option<PathBuf>,
    /// Write what siftr on the sender's host would log
    #[arg(long, value_name = "FILE")]
    pub(crate) siftr: Option<PathBuf>,
    /// Generation of --siftr
    #[arg(long, value_name = "VERSION", default_value = "1.3", requires = "siftr")]
    pub(crate) siftr_version: SiftrVersion,
    /// Write what the sender's stack would log as qlog, TCP in QUIC's words
    #[arg(long, value_name = "FILE")]
    pub(crate) qlog: Option<PathBuf>,
    /// Form of --qlog
    #[arg(long, value_name = "FORM", default_value = "current", requires = "qlog")]
    pub(crate) qlog_form: QlogForm,
    /// Flow whose sender is logged by --bblog, --siftr and --qlog [default: the first]
    #[arg(long, value_name = "FLOW")]
    pub(crate) log_flow: Option<String>,
}

/// Forms of qlog.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum QlogForm {
    /// The drafts: a JSON text sequence
    Current,
    /// Version 0.3, which qvis draws
    Qvis,
}

/// Generations of siftr.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum SiftrVersion {
    /// FreeBSD 8 to 13
    #[value(name = "1.2")]
    V1_2,
    /// FreeBSD 14 on
    #[value(name = "1.3")]
    V1_3,
    /// siftr2
    #[value(name = "2")]
    V2,
}

const SWEEP_EXAMPLES: &str = "\
Examples:
  ackclock sweep grid.toml                               the axes of its table [sweep]
  ackclock sweep transfer.toml -m sender.cc=newreno,cubic -m path.loss=0.1%,1% --repeat 5
  ackclock sweep transfer.toml -m 'path.delay=10ms..100ms step 10ms' --out delays
  ackclock sweep transfer.toml -m 'path.rate,path.buffer=(10Mbit/s,1bdp),(1Gbit/s,100p)'
  ackclock sweep transfer.toml -m 'path.rate=1Mbit/s..1Gbit/s log 7' --dry-run
  ackclock sweep grid.toml --series cwnd,flight --every 10ms
  ackclock sweep grid.toml --report grid.html            a page of heat maps
  ackclock sweep grid.toml --resume                      go on after Ctrl-C, a crash, a reboot

A directory holds the result: runs.jsonl and runs.csv in the order of the runs, sweep.json and
scenario.toml, which say what was run. The same sweep gives the same bytes for any --jobs,
interrupted or not.

Exit status: 0 done; 2 a mistake in arguments or files; 130 interrupted, --resume goes on.";

/// Arguments of `sweep`.
#[derive(Debug, Args)]
#[command(after_help = SWEEP_EXAMPLES, override_usage = "ackclock sweep [OPTIONS] <FILE>")]
pub(crate) struct SweepArgs {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArgs,
    /// An axis: values with commas between, a range (`A..B step S`, `A..B log N`, `A..B in N`), or
    /// keys that change together
    #[arg(short = 'm', long = "axis", value_name = "KEY=VALUES")]
    pub(crate) axis: Vec<String>,
    /// Runs of each point, with the seeds N, N+1 and so on
    #[arg(long, value_name = "RUNS", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) repeat: Option<u64>,
    /// Condition that points must meet: `sender.cc != cubic or path.delay >= 10ms`
    #[arg(long, value_name = "CONDITION")]
    pub(crate) only: Option<String>,
    /// Threads [default: one for each core]
    #[arg(long, value_name = "N", value_parser = jobs)]
    pub(crate) jobs: Option<usize>,
    /// Directory of the result [default: the file's name with `.sweep`, here]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Go on with a sweep that was begun
    #[arg(long)]
    pub(crate) resume: bool,
    /// Print what would be run, and run nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print the scenario of run N, and run nothing
    #[arg(long, value_name = "N", conflicts_with = "dry_run")]
    pub(crate) show: Option<u64>,
    /// Go ahead with more than a million runs
    #[arg(long)]
    pub(crate) yes: bool,
    /// Write runs.parquet too: the table of runs.csv with its units
    #[cfg(feature = "parquet")]
    #[arg(long, conflicts_with_all = ["dry_run", "show"])]
    pub(crate) parquet: bool,
    /// Keep columns of each run over time, in series/N.csv of the result: cwnd,flight,srtt
    /// [default: those of the file's table sweep.series]
    #[arg(long, value_name = "NAMES")]
    pub(crate) series: Option<String>,
    #[command(flatten)]
    pub(crate) thinning: ThinningArgs,
    /// Write a page with heat maps for a browser, in one file: see docs/reports.md
    #[arg(long, value_name = "FILE", conflicts_with_all = ["dry_run", "show"])]
    pub(crate) report: Option<PathBuf>,
    /// Print the means as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

fn jobs(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(jobs) if (1..=1024).contains(&jobs) => Ok(jobs),
        _ => Err("a number of threads from 1 to 1024 is wanted".to_owned()),
    }
}

const TABLE_EXAMPLES: &str = "\
Examples:
  ackclock table transfer.sweep
  ackclock table transfer.sweep --rows path.loss --cols sender.cc --value goodput
  ackclock table transfer.sweep --report transfer.html
  ackclock table transfer.sweep --rows seed --value rtos --flow upload
  ackclock table transfer.sweep --rows path.delay --cols sender.cc --svg cc.svg --lines
  ackclock table transfer.sweep --rows path.loss --json | jq '.[].mean'

An interval is that of the mean at 95 %, by Student's t over the runs of a cell.";

/// Arguments of `table`.
#[derive(Debug, Args)]
#[command(after_help = TABLE_EXAMPLES)]
pub(crate) struct TableArgs {
    /// Directory of the sweep
    pub(crate) dir: PathBuf,
    /// Axes down the side, with commas between; `seed` is one too [default: all but the last]
    #[arg(long, value_name = "KEYS")]
    pub(crate) rows: Option<String>,
    /// Axes along the top [default: the last, if neither is given]
    #[arg(long, value_name = "KEYS")]
    pub(crate) cols: Option<String>,
    /// Figure in the cells: a column of runs.csv, its unit may be left out
    #[arg(long, value_name = "FIGURE", default_value = "goodput")]
    pub(crate) value: String,
    /// Only the flow of this name
    #[arg(long, value_name = "FLOW")]
    pub(crate) flow: Option<String>,
    /// Write a page with heat maps for a browser, in one file: see docs/reports.md
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Draw the table: as a line over the quantities down its side if nothing stands along the
    /// top, else as a heat map
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// Draw the same as PNG, at twice its size
    #[cfg(feature = "png")]
    #[arg(long, value_name = "FILE")]
    pub(crate) png: Option<PathBuf>,
    /// Draw lines in place of a heat map, one for each column
    #[arg(long)]
    pub(crate) lines: bool,
    /// Write the runs, all columns of them, as a Parquet table
    #[cfg(feature = "parquet")]
    #[arg(long, value_name = "FILE")]
    pub(crate) parquet: Option<PathBuf>,
    /// Print one object for each cell as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// A scenario with changes.
#[derive(Debug, Default, Args)]
pub(crate) struct ScenarioArgs {
    /// Scenario file (TOML; see docs/scenario.md)
    pub(crate) file: Option<PathBuf>,
    /// Change one key of the scenario: dotted as in TOML, entries of a list by number from 0; or
    /// short, where only one place can be meant: sender.cc, path.delay, upload.bulk
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Change the seed of every random stream
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    pub(crate) seed: Option<u64>,
}

/// What to do with scenario files.
#[derive(Debug, Subcommand)]
pub(crate) enum ScenarioCommand {
    /// Report all mistakes of a scenario file without running it
    Check(CheckArgs),
    /// Print a scenario with all changes worked in: the text its SHA-256 is made of
    #[command(after_help = SHOW_EXAMPLES, override_usage = "ackclock scenario show [OPTIONS] <FILE>")]
    Show(ScenarioArgs),
    /// Fit a scenario to a transfer in a capture
    From(FromArgs),
    /// Print all keys of scenario files and all knobs of each system, as Markdown tables
    #[command(after_help = KEYS_EXAMPLES)]
    Keys,
    /// Print the JSON schema of scenario files, for editors
    #[command(after_help = SCHEMA_EXAMPLES)]
    Schema,
}

const SCENARIO_EXAMPLES: &str = "\
Examples:
  ackclock scenario check transfer.toml
  ackclock scenario keys
  ackclock scenario schema > ackclock.schema.json";

const KEYS_EXAMPLES: &str = "\
Examples:
  ackclock scenario keys
  ackclock scenario keys | grep sendbuf";

const CHECK_EXAMPLES: &str = "\
Examples:
  ackclock scenario check transfer.toml
  ackclock scenario check transfer.toml --set flow.0.bulk=10MB
  ackclock scenario check transfer.toml --json";

const SHOW_EXAMPLES: &str = "\
Examples:
  ackclock scenario show transfer.toml --set duration=10s --seed 7 > other.toml";

const SCHEMA_EXAMPLES: &str = "\
Examples:
  ackclock scenario schema > ackclock.schema.json
  (then, as the first line of a scenario, for editors with Taplo or Even Better TOML:)
  #:schema ./ackclock.schema.json";

/// Arguments of `scenario check`.
#[derive(Debug, Args)]
#[command(after_help = CHECK_EXAMPLES, override_usage = "ackclock scenario check [OPTIONS] <FILE>")]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArgs,
    /// Print the mistakes as JSON on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

const READ_EXAMPLES: &str = "\
Examples:
  ackclock read UNKNOWN_5001_10.0.0.2_49152.0.pcapng
  cat UNKNOWN_5001_10.0.0.2_49152.?.pcapng | ackclock read -
  ackclock read siftr.log --csv > siftr.csv
  ackclock read connection.sqlog
  ackclock read bblog.pcapng --json | jq 'select(.record.snd_cwnd < 14480)'

What is wrong with a log is told with its place: in the text, as JSON, or beside CSV on standard
error. Exit status: 0 the log is whole; 1 it is damaged or has gaps; 2 it is no log.";

/// Arguments of `read`.
#[derive(Debug, Args)]
#[command(after_help = READ_EXAMPLES)]
pub(crate) struct ReadArgs {
    /// Log to read; - is standard input
    pub(crate) file: PathBuf,
    /// Print one JSON object a line: sections, records, problems, and a summary at the end
    #[arg(long, conflicts_with = "csv")]
    pub(crate) json: bool,
    /// Print records as CSV, every field a column
    #[arg(long)]
    pub(crate) csv: bool,
}

const REPRODUCE_EXAMPLES: &str = "\
Examples:
  ackclock reproduce
  ackclock reproduce slow-start-lro
  ackclock reproduce reordering
  ackclock reproduce --report figures.html
  ackclock reproduce --list
  ackclock reproduce --json > figures.json";

/// Arguments of `reproduce`.
#[derive(Debug, Args)]
#[command(after_help = REPRODUCE_EXAMPLES)]
pub(crate) struct ReproduceArgs {
    /// Cases to run [default: all]
    #[arg(value_name = "CASE")]
    pub(crate) cases: Vec<String>,
    /// Print the figures as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Write a page of plots and tables for a browser, in one file: see docs/reports.md
    #[arg(long, value_name = "FILE", conflicts_with = "list")]
    pub(crate) report: Option<PathBuf>,
    /// Print the names of the cases and run none
    #[arg(long)]
    pub(crate) list: bool,
}

const IMPORT_INI_EXAMPLES: &str = "\
Examples:
  ackclock import-ini mathis_simple.ini --list
  ackclock import-ini mathis_simple.ini --config ack_every_packet -o mathis.toml
  ackclock import-ini mathis_simple.ini --config ack_every_packet --profile quic-rfc9002
  ackclock import-ini mathis_simple.ini --config ack_every_packet --run 0 --profile linux-6.18

Sweeps become those of the scenario, for ackclock sweep; --run takes one combination of values. What has no meaning here is told on standard error, with line and column, and in the scenario.";

/// Arguments of `import-ini`.
#[derive(Debug, Args)]
#[command(after_help = IMPORT_INI_EXAMPLES)]
pub(crate) struct ImportIniArgs {
    /// Ini file
    pub(crate) file: PathBuf,
    /// Configuration to take, if there are several
    #[arg(long, value_name = "NAME")]
    pub(crate) config: Option<String>,
    /// Combination of the values of ${...} to take [default: all, as the scenario's sweep]
    #[arg(long, value_name = "N")]
    pub(crate) run: Option<usize>,
    /// Print the configurations with their runs
    #[arg(long, conflicts_with_all = ["config", "run", "output"])]
    pub(crate) list: bool,
    /// Profile of both hosts; of a TCP, that of the sender
    #[arg(long, value_name = "PROFILE", default_value = "quic-inet-2025-02")]
    pub(crate) profile: String,
    /// Write the scenario to a file [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

const PACKETDRILL_EXAMPLES: &str = "\
Examples:
  ackclock packetdrill handshake.pkt
  ackclock packetdrill handshake.pkt --profile freebsd-13.2
  ackclock packetdrill golden/packetdrill golden/scripts
  ackclock packetdrill golden/packetdrill --json | jq '.totals'

A directory stands for all .pkt files in it and below. A script may name its profile in a comment at
its top: // profile: freebsd-13.2. See docs/packet-scripts.md for what is supported.
Exit status: 0 no script failed; 1 a script failed; 2 a mistake in arguments or scripts.";

/// Arguments of `packetdrill`.
#[derive(Debug, Args)]
#[command(after_help = PACKETDRILL_EXAMPLES)]
pub(crate) struct PacketdrillArgs {
    /// Scripts, or directories of scripts
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// System the scripts are run against [default: what the script names, else linux-6.18]
    #[arg(long, value_name = "PROFILE")]
    pub(crate) profile: Option<String>,
    /// Let PSH differ
    #[arg(long)]
    pub(crate) relaxed_psh: bool,
    /// Print the verdicts as JSON
    #[arg(long)]
    pub(crate) json: bool,
}
