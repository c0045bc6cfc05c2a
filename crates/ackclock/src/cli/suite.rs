//! Arguments of `suite`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

pub(crate) const SUITE_EXAMPLES: &str = "\
Examples:
  ackclock suite rfc9743 --cc bbr                    the verdicts on Linux's BBR version 1
  ackclock suite rfc9743 --cc freebsd-main/cubic --full
  ackclock suite rfc9743 --cc mine.py:Mine           a controller of your own
  ackclock suite rfc9743 --cc ./tcp_mine.so          a kernel's own file (ackclock cc build)
  ackclock suite rfc9743 --cc bbr --criterion 5.1.3 --full
  ackclock suite rfc9743 --cc bbr --report bbr.html  every figure, with the scenario files
  ackclock suite rfc9743 --cc newreno --knob net.inet.tcp.cc.newreno.beta=80
  ackclock suite slow-start --cc cubic               where slow start ends, on 200 paths
  ackclock suite tcpeval --cc bbr --criterion 4.4.2,6.3 --full
  ackclock suite rfc9743 --cc cubic --json > now.json
  ackclock suite rfc9743 --cc cubic --baseline now.json --junit suite.xml --sarif suite.sarif

Exit status: 0 every criterion passes, and nothing is worse than the baseline; 1 a criterion fails
or something is worse; 2 an error in arguments or files; 3 none fails, but one is undecided: its
interval includes a limit, or evidence is missing.";

/// The suites.
#[derive(Debug, Subcommand)]
pub(crate) enum SuiteCommand {
    /// The criteria of RFC 9743 (BCP 133) for a new congestion controller
    #[command(after_help = SUITE_EXAMPLES)]
    Rfc9743(SuiteArgs),
    /// Where slow start ends, on 200 paths: the window over the capacity of the path
    #[command(after_help = SUITE_EXAMPLES)]
    SlowStart(SuiteArgs),
    /// The Common TCP Evaluation Suite (draft-irtf-iccrg-tcpeval-01), with drawn traffic
    #[command(after_help = SUITE_EXAMPLES)]
    Tcpeval(SuiteArgs),
    /// The test cases of the draft of BBR (draft-ietf-ccwg-bbr): each a scenario and assertions on named state
    #[command(after_help = BBR_EXAMPLES)]
    Bbr(BbrArgs),
    /// Real-time response under load: flent's rrul, with flent's data file
    #[command(after_help = FLENT_EXAMPLES)]
    Rrul(FlentArgs),
    /// Round-trip fairness: flent's rtt_fair, to hosts at one, two, four and eight round trips
    #[command(name = "rtt_fair", after_help = FLENT_EXAMPLES)]
    RttFair(FlentArgs),
    /// Uploads and a ping: flent's tcp_nup
    #[command(name = "tcp_nup", after_help = FLENT_EXAMPLES)]
    TcpNup(FlentArgs),
}

const BBR_EXAMPLES: &str = "\
Examples:
  ackclock suite bbr                                 all cases on all paths, quic-rfc9002/bbr-draft
  ackclock suite bbr --list                          the cases and the paths
  ackclock suite bbr --cc rfc/bbr-draft --case probe-rtt,drain-time --path 10M-40ms --full
  ackclock suite bbr --cc quiche-0.30/bbr-quiche --json > quiche.json
  ackclock suite bbr --path 10M-40ms --reference ref  scenario, CSV and qlog of each case
  ackclock suite bbr --case probe-rtt --path 10M-40ms --check theirs.qlog

Exit status: 0 every case passes, or only contradictions of the draft are left; 1 a case fails; 2 an
error in arguments or files.";

/// Arguments of `suite bbr`.
#[derive(Debug, Args)]
pub(crate) struct BbrArgs {
    /// The sender: PROFILE/CC with bbr-draft or a dialect of it (bbr-picoquic, bbr-quiche, bbr-s2n)
    #[arg(long, value_name = "SENDER", default_value = "quic-rfc9002/bbr-draft")]
    pub(crate) cc: String,
    /// Another value of a knob of the sender (may be given several times)
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) knob: Vec<String>,
    /// Only these cases
    #[arg(long, value_name = "CASE", value_delimiter = ',')]
    pub(crate) case: Vec<String>,
    /// Only these paths
    #[arg(long, value_name = "PATH", value_delimiter = ',')]
    pub(crate) path: Vec<String>,
    /// Seed of the runs
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(0..=i64::MAX as u64))]
    pub(crate) seed: u64,
    /// Threads [default: as many as processors]
    #[arg(short = 'j', long, value_name = "N")]
    pub(crate) jobs: Option<usize>,
    /// Print every assertion, not only those that do not hold
    #[arg(long)]
    pub(crate) full: bool,
    /// Print the report as JSON
    #[arg(long, conflicts_with = "full")]
    pub(crate) json: bool,
    /// List the cases and the paths
    #[arg(long)]
    pub(crate) list: bool,
    /// Write scenario, named state (CSV) and qlog of each case into this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) reference: Option<PathBuf>,
    /// Judge the qlog of a stack; with one --case and one --path also against that run here
    #[arg(long, value_name = "QLOG", conflicts_with_all = ["reference", "list"])]
    pub(crate) check: Option<PathBuf>,
}

const FLENT_EXAMPLES: &str = "\
Examples:
  ackclock suite rrul --cc cubic                     mean, median and p95 of each series
  ackclock suite rrul --cc cubic --queue fq_codel --out rrul.flent.gz
  ackclock suite rtt_fair --cc bbr --rtt 20 --down 100Mbit/s --out fair.flent.gz
  ackclock suite tcp_nup --cc freebsd-main/cubic --streams 8 --out up.flent.gz
  flent -p all_scaled -o rrul.png rrul.flent.gz      flent plots the file

The DSCP of flent's streams has no effect here; a ping is a request and its response over TCP.";

/// Arguments of a test of flent.
#[derive(Debug, Args)]
pub(crate) struct FlentArgs {
    /// The sender of all streams: PROFILE/CC, or reno, cubic, bbr, bbr3 (Linux), newreno (FreeBSD)
    #[arg(long, value_name = "SENDER")]
    pub(crate) cc: String,
    /// Another value of a knob of the sender (may be given several times)
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) knob: Vec<String>,
    /// Rate of the uplink
    #[arg(long, value_name = "RATE", default_value = "20Mbit/s")]
    pub(crate) up: String,
    /// Rate of the downlink
    #[arg(long, value_name = "RATE", default_value = "50Mbit/s")]
    pub(crate) down: String,
    /// Round trip without queues, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 40, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) rtt: u32,
    /// Capacity of each queue: packets or bytes
    #[arg(long, value_name = "SIZE", default_value = "200p")]
    pub(crate) buffer: String,
    /// Queue discipline of both links: drop-tail, codel, fq_codel, pie or red
    #[arg(long, value_name = "NAME", default_value = "drop-tail")]
    pub(crate) queue: String,
    /// Seconds of load
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u32).range(3..=3_600))]
    pub(crate) length: u32,
    /// Uploads of tcp_nup
    #[arg(long, value_name = "COUNT", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) streams: u32,
    /// Seed of the run
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(0..=i64::MAX as u64))]
    pub(crate) seed: u64,
    /// Write flent's data file; packed if its name ends in .gz
    #[arg(short = 'o', long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Print the scenario file of the test instead of running it
    #[arg(long)]
    pub(crate) scenario: bool,
}

/// Arguments of a suite.
#[derive(Debug, Args)]
pub(crate) struct SuiteArgs {
    /// The sender under test: PROFILE/CC, or reno, cubic, bbr, bbr3 (Linux), newreno (FreeBSD), or one
    /// of your own: FILE.py:CLASS in Python, FILE.so of `ackclock cc build`, or these after PROFILE/
    #[arg(long, value_name = "SENDER")]
    pub(crate) cc: String,
    /// Another value of a knob of the sender under test (may be given several times)
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) knob: Vec<String>,
    /// The reference senders, of which the worst sets each limit [default: Reno and CUBIC of the same
    /// stack]
    #[arg(long, value_name = "SENDER", value_delimiter = ',')]
    pub(crate) against: Vec<String>,
    /// Only these criteria, by their section
    #[arg(long, value_name = "SECTION", value_delimiter = ',')]
    pub(crate) criterion: Vec<String>,
    /// Draws of each world (rfc9743): of start times, of the hosts' noise, of losses (these at least 10)
    #[arg(long, value_name = "COUNT", default_value_t = suite::DEFAULT_DRAWS, value_parser = clap::value_parser!(u32).range(2..=1_000))]
    pub(crate) phases: u32,
    /// Most draws: a world that does not decide gets twice as many until it does or has these [default: 16]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(2..=1_000))]
    pub(crate) budget: Option<u32>,
    /// Longest processing time of a packet in the sending hosts, uniform from zero (rfc9743): a time, or
    /// `hosts` (a packet's service time at the bottleneck, 50 to 500 us), or `off`
    #[arg(long, value_name = "TIME", default_value = "hosts")]
    pub(crate) noise: suite::HostNoise,
    /// Seed of the draws (rfc9743)
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u32,
    /// Threads [default: as many as processors]
    #[arg(short = 'j', long, value_name = "N")]
    pub(crate) jobs: Option<usize>,
    /// Print every figure with its limit, not only those beyond it
    #[arg(long)]
    pub(crate) full: bool,
    /// Print the report as JSON
    #[arg(long, conflicts_with_all = ["markdown", "full"])]
    pub(crate) json: bool,
    /// Print the report as a Markdown table, or write it to a file
    #[arg(long, value_name = "FILE", num_args = 0..=1, conflicts_with = "full")]
    pub(crate) markdown: Option<Option<PathBuf>>,
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
