//! Arguments, with their help.

mod cc;
mod compare;
mod generated;
mod hunt;
mod interop;
mod kernel;
mod mcp;
mod run;
mod scenario;
mod series;
mod stack;
mod suite;
mod sweep;
mod theory;
mod watch;
mod whatif;
mod wire;

use core::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use units::{Bytes, Duration};

pub(crate) use cc::{CcBuildArgs, CcCommand};
pub(crate) use compare::GradesArgs;
pub(crate) use generated::{CompletionsArgs, ManArgs, SchemaArgs};
pub(crate) use hunt::HuntArgs;
pub(crate) use interop::InteropArgs;
pub(crate) use kernel::{BuildArgs, KernelCheckArgs, KernelCommand, ListArgs};
pub(crate) use mcp::McpArgs;
pub(crate) use run::{QlogForm, RunArgs, SiftrVersion};
pub(crate) use scenario::{
    CheckArgs, ExportArgs, NewArgs, ProfilesArgs, ScenarioArgs, ScenarioCommand,
};
pub(crate) use series::ThinningArgs;
pub(crate) use stack::{StackBuildArgs, StackCheckArgs, StackCommand};
pub(crate) use suite::{BbrArgs, FlentArgs, SuiteArgs, SuiteCommand};
pub(crate) use sweep::{SweepArgs, TableArgs};
pub(crate) use theory::{
    AimdArgs, BbrShareArgs, CubicArgs, MathisArgs, PathArgs, PftkArgs, TheoryCommand, TrialArgs,
};
pub(crate) use watch::WatchArgs;
pub(crate) use whatif::{FromArgs, WhatIfArgs};

pub(crate) use wire::{CompareArgs, EndArgs, LinkArgs, WireCommand};

/// Finds out why a TCP transfer is slow, reproduces it in virtual time, and shows what would
/// cure it.
#[derive(Debug, Parser)]
#[command(name = "ackclock", version, max_term_width = 100, after_help = EXAMPLES, override_usage = USAGE)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    /// Colours of what is printed; auto: on a terminal, unless NO_COLOR is set
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: ColourChoice,
    /// Most memory of the command, as RLIMIT_DATA; on Linux [default: what the machine has]
    #[arg(long, global = true, value_name = "SIZE", value_parser = mcp::size)]
    pub(crate) memory_limit: Option<Bytes>,
    /// Longest time of the command
    #[arg(long, global = true, value_name = "TIME", value_parser = mcp::time)]
    pub(crate) time_limit: Option<Duration>,
    /// Folder, besides that of the scenario, of which a scenario may name files; may be given several times
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) allow_path: Vec<PathBuf>,
}

/// When text is coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub(crate) enum ColourChoice {
    #[default]
    Auto,
    Always,
    Never,
}

const USAGE: &str = "\
ackclock FILE [OPTIONS]       the command for the file: diagnose, run, table, packetdrill
       ackclock COMMAND [OPTIONS]
       ackclock                      what can be done here";

const EXAMPLES: &str = "\
Examples:
  ackclock demo                                         a diagnosis and its cure, without any file
  ackclock diagnose slow.pcap                           why was this transfer slow?
  ackclock watch                                        what limits this machine's connections?
  ackclock run scenarios/slow-start-lro.toml            run a scenario, print a table
  ackclock run scenarios/slow-start-lro.toml --tcpdump  print what tcpdump would show
  ackclock sweep my.toml -m path.loss=0.1%,1%,10%       run it over a grid, on all cores
  ackclock scenario check my.toml                       report errors without running it
  ackclock reproduce --list                             published figures that can be checked
  ackclock theory mathis --rtt 20ms --loss 0.1%         throughput at a loss rate
  ackclock packetdrill golden/packetdrill               run packet scripts, print a table

Exit status: 0 success; 1 a figure is outside its band; 2 an error in arguments or files.";

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Diagnose a capture that the program has in it, and try the cure
    Demo(DemoArgs),
    /// Find out from a capture or a qlog why a transfer is slow, and what it costs
    Diagnose(DiagnoseArgs),
    /// Report what limits the TCP connections of this machine now, by the kernel's own account (Linux)
    Watch(WatchArgs),
    /// Explain a finding of diagnose: background, and what to do on each system
    Explain(ExplainArgs),
    /// Replay a captured transfer in simulation, with its own sender and with others
    #[command(name = "whatif")]
    WhatIf(WhatIfArgs),
    /// Run a scenario in virtual time
    Run(RunArgs),
    /// Run a scenario over a grid, on all cores
    Sweep(SweepArgs),
    /// Show the runs of a sweep as a table, mean and confidence interval in its cells
    Table(TableArgs),
    /// Check scenario files and describe their format
    #[command(subcommand, after_help = scenario::SCENARIO_EXAMPLES)]
    Scenario(ScenarioCommand),
    /// Evaluate a congestion controller by the criteria of a standard, with verdicts
    #[command(subcommand, after_help = suite::SUITE_EXAMPLES)]
    Suite(SuiteCommand),
    /// Search for the worst case of a congestion controller, shrunk to a scenario of a few lines
    Hunt(HuntArgs),
    /// Run QUIC or TCP stacks in pairs over the path of a scenario: goodput, retransmissions, fairness
    Interop(InteropArgs),
    /// Print published figures next to Ackclock's measurements
    Reproduce(ReproduceArgs),
    /// Read a log, intact or damaged: FreeBSD's Black Box Log or siftr, or qlog
    Read(ReadArgs),
    /// Evaluate throughput formulas at a loss rate, and check their assumptions
    #[command(subcommand, after_help = theory::THEORY_EXAMPLES)]
    Theory(TheoryCommand),
    /// Turn an ini file of INET's QUIC experiment (OMNeT++) into a scenario
    ImportIni(ImportIniArgs),
    /// Run packet scripts in packetdrill's language, in virtual time
    Packetdrill(PacketdrillArgs),
    /// Run a scenario in real time, with this machine's own TCP as some of its hosts
    #[command(subcommand, after_help = wire::WIRE_EXAMPLES)]
    Wire(WireCommand),
    /// Compare a scenario with modelled hosts and with real Linux kernels, packet by packet
    Compare(GradesArgs),
    /// Build, list and check the real Linux kernels that hosts of scenarios can be
    #[command(subcommand, after_help = kernel::KERNEL_EXAMPLES)]
    Kernel(KernelCommand),
    /// Build, list and check the real QUIC stacks that hosts of scenarios can be
    #[command(subcommand, after_help = stack::STACK_EXAMPLES)]
    Stack(StackCommand),
    /// Build and describe congestion controllers in C: a file of Linux's, or your own
    #[command(subcommand, after_help = cc::CC_EXAMPLES)]
    Cc(CcCommand),
    /// Serve diagnoses and simulations to a language model (Model Context Protocol)
    Mcp(McpArgs),
    /// Print the JSON schema of what a command prints with --json
    Schema(SchemaArgs),
    /// Print the completions of a shell
    Completions(CompletionsArgs),
    /// Write the manual pages
    Man(ManArgs),
}

const DEMO_EXAMPLES: &str = "\
Examples:
  ackclock demo
  ackclock demo --save demo.pcap.xz
  ackclock demo CC205                  an example of this finding; --list has all
  ackclock demo CC205 --save CC205.pcap";

/// Arguments of `demo`.
#[derive(Debug, Args)]
#[command(after_help = DEMO_EXAMPLES)]
pub(crate) struct DemoArgs {
    /// Diagnose an example of this finding, such as CC205: a transfer in virtual time
    pub(crate) code: Option<String>,
    /// List the findings that have an example
    #[arg(long, conflicts_with_all = ["code", "save"])]
    pub(crate) list: bool,
    /// Write the capture to a file (of QUIC a qlog) and do nothing else
    #[arg(long, value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,
}

const DIAGNOSE_EXAMPLES: &str = "\
Examples:
  ackclock diagnose slow.pcap                    what limited each connection, worst first
  ackclock diagnose slow.pcapng.xz --flow 3      one connection (Wireshark's tcp.stream)
  tcpdump -i em0 -s 128 -w - port 443 | ackclock diagnose -
  tcpdump -i em0 -s 128 -U -w - | ackclock diagnose - --every 10s
  tcpdump -i em0 -s 128 -U -w - | ackclock diagnose - --every 10s --json | jq -c '.connections'
  ackclock diagnose --ring slow.pcap slow.pcap1  the parts that tcpdump -C wrote
  ackclock diagnose day.pcap --port 443 --min-bytes 1MB --sort goodput
  ackclock diagnose day.pcap --filter 'server = 10.0.0.5 and lost > 1s' --csv slow.csv
  ackclock diagnose slow.pcap --json | jq '.connections[0].primary'
  ackclock diagnose slow.pcap --report slow.html the graphs, with the findings on them
  ackclock diagnose ci.pcap --fail-on warning    exit 1 if something costs a tenth of the time
  ackclock diagnose ci.pcap --fail-on CC204      exit 1 if there was a timeout
  ackclock diagnose connection.sqlog             what limited a QUIC connection, from its qlog
  ackclock diagnose client.sqlog client.pcap     and what its host did not send, or dropped
  ackclock diagnose ci.pcap --junit out.xml      for CI; also --sarif, --markdown, --openmetrics
  ackclock diagnose slow.pcap --wireshark f.lua  then: wireshark -X lua_script:f.lua slow.pcap
  ackclock diagnose --against labels.tsv DIR     compare verdicts with labels, as a confusion table

Captures show most when taken at the host that sends the data, from before the connection opens;
128 bytes of each packet are enough (tcpdump -s 128).

Exit status: 0 success; 1 a finding that --fail-on names, or too many verdicts unlike the labels of
--against; 2 an error in arguments, a file that cannot be read, or with --fail-on a file in which nothing
was judged.";

/// Order of the connections of `diagnose`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum SortOrder {
    /// Lost time, most first
    Lost,
    /// Payload, most first
    Bytes,
    /// Duration, longest first
    Time,
    /// Goodput, least first
    Goodput,
    /// Number of the connection
    Flow,
}

/// Arguments of `diagnose`.
#[derive(Debug, Args)]
#[command(after_help = DIAGNOSE_EXAMPLES)]
pub(crate) struct DiagnoseArgs {
    /// Captures (pcap, pcapng, also compressed with gzip, xz, zstd), tcpdump's text, or logs (also
    /// qlog of QUIC, ss -tin, iperf3 --json), or folders of them; - is standard input
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Only this connection, by Wireshark's number (tcp.stream); in a qlog by the number of its trace
    #[arg(long, value_name = "N")]
    pub(crate) flow: Option<u32>,
    /// Connections shown with their findings, worst first [default: 10; with --json all]
    #[arg(long, value_name = "COUNT")]
    pub(crate) limit: Option<usize>,
    /// Only connections of this host, client or server; several: any of them
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) host: Vec<std::net::IpAddr>,
    /// Only connections with this port, client's or server's; several: any of them
    #[arg(long, value_name = "PORT")]
    pub(crate) port: Vec<u16>,
    /// Only connections with this finding; several: any of them
    #[arg(long, value_name = "CODE")]
    pub(crate) code: Vec<String>,
    /// Only connections with at least this much payload, such as 1MB
    #[arg(long, value_name = "SIZE")]
    pub(crate) min_bytes: Option<String>,
    /// Only connections of which this is true: comparisons of host, client, server, port, code, bytes,
    /// time, network-time, client-time, server-time, transfer-time, lost, goodput and flow, with and, or,
    /// not and parentheses
    #[arg(long, value_name = "EXPR")]
    pub(crate) filter: Option<String>,
    /// Order of the connections
    #[arg(long, value_enum, value_name = "ORDER", default_value = "lost")]
    pub(crate) sort: SortOrder,
    /// Print what limits each connection in every interval of this length, by the clock of the
    /// capture, while it is read; the result follows at its end. With --json a line for each. Intervals
    /// have the connections of --host, --port and --flow, the result those of the other conditions, too
    #[arg(long, value_name = "DURATION")]
    pub(crate) every: Option<String>,
    /// With --every: leave connections out of the result after this time without packets, and free their memory
    /// [default: 5min of standard input, never of a file]
    #[arg(long, value_name = "DURATION", requires = "every", value_parser = mcp::time)]
    pub(crate) forget: Option<Duration>,
    /// The files are parts of one capture, as tcpdump -C and -G write them: join them in order of time
    #[arg(long)]
    pub(crate) ring: bool,
    /// Decrypt QUIC in captures with this key log, as SSLKEYLOGFILE names it [default: a file beside the
    /// capture with its name and the ending keys or keylog, or sslkeylog.txt]
    #[arg(long, value_name = "FILE", conflicts_with = "against")]
    pub(crate) keylog: Option<PathBuf>,
    /// Do not try cures: without it the cures of the worst connections are simulated, of captures of at most
    /// 256 MiB
    #[arg(long)]
    pub(crate) no_cures: bool,
    /// Threads [default: as many as processors]
    #[arg(short = 'j', long, value_name = "N")]
    pub(crate) jobs: Option<NonZeroUsize>,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Write a table of all connections as CSV
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
    /// With --csv: an apostrophe before names that a spreadsheet takes for formulas, as `=cmd`
    #[arg(long, requires = "csv")]
    pub(crate) csv_safe: bool,
    /// Write a self-contained HTML page with the time-sequence graphs and the findings on them
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Write the result as JUnit XML: a test case for each connection, which fails by --fail-on
    /// [without it: by a warning or an error]
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// Write the findings as SARIF 2.1.0
    #[arg(long, value_name = "FILE")]
    pub(crate) sarif: Option<PathBuf>,
    /// Write the result as Markdown
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,
    /// Write the figures of all connections and the costs of their findings as OpenMetrics text
    #[arg(long, value_name = "FILE")]
    pub(crate) openmetrics: Option<PathBuf>,
    /// Write a Lua script with which Wireshark and tshark show the findings on the packets they concern
    #[arg(long, value_name = "FILE")]
    pub(crate) wireshark: Option<PathBuf>,
    /// Exit with 1 on a finding of this severity (note, warning, error) or worse, or with this code
    #[arg(long, value_name = "SEVERITY|CODE")]
    pub(crate) fail_on: Option<String>,
    /// Compare the verdicts on a folder of captures with a list of labels (source, file, label, why,
    /// separated by tabs); FILE is the folder. Exits with 1 if fewer than 90 % agree
    #[arg(long, value_name = "LABELS", conflicts_with_all = ["every", "ring", "flow", "limit", "host", "port", "code", "min_bytes", "filter", "csv", "report", "junit", "sarif", "markdown",
          "openmetrics", "wireshark", "fail_on"])]
    pub(crate) against: Option<PathBuf>,
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

const READ_EXAMPLES: &str = "\
Examples:
  ackclock read UNKNOWN_5001_10.0.0.2_49152.0.pcapng
  cat UNKNOWN_5001_10.0.0.2_49152.?.pcapng | ackclock read -
  ackclock read siftr.log --csv > siftr.csv
  ackclock read connection.sqlog
  ackclock read rrul.flent.gz                          its series, and what limits
  ackclock read bblog.pcapng --json | jq 'select(.record.snd_cwnd < 14480)'

Problems of a log are reported with their position: in the text, in the JSON, or with --csv on
standard error. Exit status: 0 the log is intact; 1 it is damaged or has gaps; 2 it is not a log.";

/// Arguments of `read`.
#[derive(Debug, Args)]
#[command(after_help = READ_EXAMPLES)]
pub(crate) struct ReadArgs {
    /// Log to read; - is standard input
    pub(crate) file: PathBuf,
    /// Print one JSON object per line: sections, records, problems, and a summary at the end
    #[arg(long, conflicts_with = "csv")]
    pub(crate) json: bool,
    /// Print records as CSV, one column per field, or write them to a file
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    pub(crate) csv: Option<Option<PathBuf>>,
}

const REPRODUCE_EXAMPLES: &str = "\
Examples:
  ackclock reproduce                          which published figures hold, a table a case
  ackclock reproduce reordering prr           two of the cases
  ackclock reproduce slow-start-lro --full    every figure with its source, and the declared knobs
  ackclock reproduce --report figures.html    a page of plots and tables
  ackclock reproduce --json > figures.json
  ackclock reproduce --list                   the names of the cases

Exits with 1 if an asserted figure does not hold. The output is the same for any number of threads.";

/// Arguments of `reproduce`.
#[derive(Debug, Args)]
#[command(after_help = REPRODUCE_EXAMPLES)]
pub(crate) struct ReproduceArgs {
    /// Cases to run [default: all]
    #[arg(value_name = "CASE")]
    pub(crate) cases: Vec<String>,
    /// Print every figure with its source, after the declared knobs of its case
    #[arg(long, conflicts_with = "json")]
    pub(crate) full: bool,
    /// Print the figures as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Threads [default: as many as processors]
    #[arg(short = 'j', long, value_name = "N")]
    pub(crate) jobs: Option<NonZeroUsize>,
    /// Write a self-contained HTML page of plots and tables (see docs/reports.md)
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

Iterations become axes of the scenario, for ackclock sweep; --run uses one combination of values.
Unsupported keys are reported on standard error, with line and column, and in the scenario.";

/// Arguments of `import-ini`.
#[derive(Debug, Args)]
#[command(after_help = IMPORT_INI_EXAMPLES)]
pub(crate) struct ImportIniArgs {
    /// Ini file
    pub(crate) file: PathBuf,
    /// Configuration to use, if there are several
    #[arg(long, value_name = "NAME")]
    pub(crate) config: Option<String>,
    /// Combination of the values of ${...} to use [default: all, as the scenario's sweep]
    #[arg(long, value_name = "N")]
    pub(crate) run: Option<usize>,
    /// Print the configurations with their runs
    #[arg(long, conflicts_with_all = ["config", "run", "output"])]
    pub(crate) list: bool,
    /// Profile of both hosts; of the sender only if it is a TCP profile
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
  ackclock packetdrill handshake.pkt -v          # all packets of the run

A directory means all .pkt files in it and below. A script may name its profile in a comment at
its top: // profile: freebsd-13.2. See docs/packet-scripts.md for what is supported.
With -D, --ip-version, --mtu and --tolerance-usecs the scripts of a suite run as its own runner
runs them: ackclock packetdrill -D CMSG_LEVEL_IP=SOL_IP --allow-unsupported --junit out.xml DIR
Exit status: 0 all scripts passed; 1 a script failed or needs an unsupported feature, or none was
run; 2 an error in arguments or scripts. --allow-unsupported forgives scripts that were not run.";

/// Arguments of `packetdrill`.
#[derive(Debug, Args)]
#[command(after_help = PACKETDRILL_EXAMPLES)]
pub(crate) struct PacketdrillArgs {
    /// Scripts, or directories of scripts
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Profile to run the scripts against [default: the one in the script, else linux-6.18]
    #[arg(long, value_name = "PROFILE")]
    pub(crate) profile: Option<String>,
    /// Version of IP, in place of the scripts' --ip_version
    #[arg(long, value_name = "VERSION", value_parser = ["ipv4", "ipv6", "ipv4-mapped-ipv6"], alias = "ip_version")]
    pub(crate) ip_version: Option<String>,
    /// Tolerance of times in microseconds, in place of the scripts' --tolerance_usecs
    #[arg(long, value_name = "MICROSECONDS", alias = "tolerance_usecs")]
    pub(crate) tolerance_usecs: Option<u32>,
    /// MTU of the host, in place of the scripts' --mtu
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(72..=65_535))]
    pub(crate) mtu: Option<u32>,
    /// Ticks of the kernel's clock per second, in place of the profile's (public suites of Linux:
    /// 1000)
    #[arg(long, value_name = "HZ", value_parser = clap::value_parser!(u32).range(10..=10_000))]
    pub(crate) hz: Option<u32>,
    /// Define a word: NAME=VALUE replaces it, NAME makes `#ifdef NAME` true
    #[arg(short = 'D', long = "define", value_name = "NAME[=VALUE]")]
    pub(crate) define: Vec<String>,
    /// Run each script on a real kernel, too, and print both runs packet by packet: `kernel`, the guest
    /// kernel of the profile, or the name of one (`ackclock kernel list`), whose profile and tick rate
    /// are then the defaults
    #[arg(long, value_name = "KERNEL", conflicts_with = "junit")]
    pub(crate) against: Option<String>,
    /// Succeed although scripts need unsupported features or cannot be read
    #[arg(long)]
    pub(crate) allow_unsupported: bool,
    /// Kinds of events whose failures are noted and do not end a script, in place of the scripts'
    /// --non_fatal: `packet`, `syscall` or both with a comma
    #[arg(long, value_name = "KINDS", alias = "non_fatal")]
    pub(crate) non_fatal: Option<String>,
    /// Write the packets of a script as pcapng; with --against those of the model and of the kernel, each
    /// with an interface of its own
    #[arg(long, value_name = "FILE")]
    pub(crate) pcap: Option<PathBuf>,
    /// Write the results as JUnit XML
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// Ignore differences in the PSH flag
    #[arg(long)]
    pub(crate) relaxed_psh: bool,
    /// Print all packets, sent and received
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// Print the verdicts as JSON
    #[arg(long)]
    pub(crate) json: bool,
}
