//! Arguments of `run`.

use std::path::PathBuf;

use clap::Args;
use units::Duration;

use super::{ScenarioArgs, ThinningArgs};

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
  ackclock run transfer.toml --png start.png --until 500ms
  ackclock run transfer.toml --queues queues.csv
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
    /// Print what tcpdump would show on HOST, instead of the table [default: the first flow's
    /// sender]
    #[arg(long, value_name = "HOST", num_args = 0..=1)]
    pub(crate) tcpdump: Option<Option<String>>,
    /// Write the packets captured at the scenario's taps as pcapng [without taps: at the first
    /// flow's sender]
    #[arg(long, value_name = "FILE")]
    pub(crate) pcap: Option<PathBuf>,
    /// Write every event as a CSV row with the sender's state after it; with --columns, these
    /// columns over time
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
    /// Write --columns over time, one JSON object per line
    #[arg(long, value_name = "FILE", requires = "columns")]
    pub(crate) jsonl: Option<PathBuf>,
    /// Write every event of a sender with its state after it, and the reads of applications, as a
    /// Parquet table; with --columns, these columns over time
    #[arg(long, value_name = "FILE")]
    pub(crate) parquet: Option<PathBuf>,
    /// Columns of --csv, --jsonl and --parquet, one row whenever one of them changes: cwnd, flight,
    /// pipe, ssthresh, srtt, pacing and others
    #[arg(long, value_name = "NAMES")]
    pub(crate) columns: Option<String>,
    #[command(flatten)]
    pub(crate) thinning: ThinningArgs,
    /// Draw congestion window and bytes in flight of every flow over time as a chart
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// Draw the same chart as PNG, at twice its size
    #[arg(long, value_name = "FILE")]
    pub(crate) png: Option<PathBuf>,
    /// First instant of --svg and --png [default: the beginning]
    #[arg(long, value_name = "TIME", value_parser = super::series::time)]
    pub(crate) from: Option<Duration>,
    /// Last instant of --svg and --png [default: the end]
    #[arg(long, value_name = "TIME", value_parser = super::series::time)]
    pub(crate) until: Option<Duration>,
    /// Write a self-contained HTML page of plots and tables (see docs/reports.md)
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Write a log of the sender as FreeBSD's Black Box Log, in pcapng
    #[arg(long, value_name = "FILE")]
    pub(crate) bblog: Option<PathBuf>,
    /// Write a log of the sender as siftr
    #[arg(long, value_name = "FILE")]
    pub(crate) siftr: Option<PathBuf>,
    /// Format version of --siftr
    #[arg(long, value_name = "VERSION", default_value = "1.3", requires = "siftr")]
    pub(crate) siftr_version: SiftrVersion,
    /// Write a log of the sender as qlog, with TCP mapped to the terms of QUIC
    #[arg(long, value_name = "FILE")]
    pub(crate) qlog: Option<PathBuf>,
    /// Format of --qlog
    #[arg(long, value_name = "FORM", default_value = "current", requires = "qlog")]
    pub(crate) qlog_form: QlogForm,
    /// Write the figures of all flows as OpenMetrics text
    #[arg(long, value_name = "FILE")]
    pub(crate) openmetrics: Option<PathBuf>,
    /// Write rate, round-trip time and window of every sender as a data file of flent (.flent.gz)
    #[arg(long, value_name = "FILE")]
    pub(crate) flent: Option<PathBuf>,
    /// Write length and delay of every link's queue over time as CSV
    #[arg(long, value_name = "FILE")]
    pub(crate) queues: Option<PathBuf>,
    /// Run the programs that the scenario names as kernels of its hosts: they are foreign code
    #[arg(long)]
    pub(crate) allow_exec: bool,
    /// Let real QUIC stacks write their own qlog of each connection into this directory: FLOW-client.sqlog
    #[arg(long, value_name = "DIR")]
    pub(crate) stack_logs: Option<PathBuf>,
    /// Flow whose sender is logged by --bblog, --siftr and --qlog [default: the first]
    #[arg(long, value_name = "FLOW")]
    pub(crate) log_flow: Option<String>,
}

/// Formats of qlog.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum QlogForm {
    /// The drafts: a JSON text sequence
    Current,
    /// Version 0.3, as qvis reads it
    Qvis,
}

/// Format versions of siftr.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum SiftrVersion {
    /// FreeBSD 8 to 13
    #[value(name = "1.2")]
    V1_2,
    /// FreeBSD 14 and later
    #[value(name = "1.3")]
    V1_3,
    /// siftr2
    #[value(name = "2")]
    V2,
}
