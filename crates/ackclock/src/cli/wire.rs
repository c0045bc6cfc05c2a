//! Arguments of `wire`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use scenario::units_text;
use units::Bytes;

use super::ScenarioArgs;
use super::theory::words;

/// The subcommands of `wire`.
#[derive(Debug, Subcommand)]
pub(crate) enum WireCommand {
    /// Send from a simulated endpoint to this machine's own TCP
    #[command(after_help = SEND_EXAMPLES)]
    Send(EndArgs),
    /// Receive with a simulated endpoint from this machine's own TCP
    #[command(after_help = RECEIVE_EXAMPLES)]
    Receive(EndArgs),
    /// Emulate a scenario's path between real hosts, for any program
    #[command(after_help = LINK_EXAMPLES)]
    Link(LinkArgs),
    /// Run a scenario with a real sender over the emulated path, and with the simulated sender
    #[command(after_help = COMPARE_EXAMPLES)]
    Compare(CompareArgs),
}

pub(crate) const WIRE_EXAMPLES: &str = "\
Examples:
  ackclock wire send --profile freebsd-14.3 --bytes 100MB
  ackclock wire send my.toml --pcap wire.pcapng --csv wire.csv
  ackclock wire receive my.toml --seed 7
  ackclock wire link my.toml --run 'sink=iperf3 -s -1' --run 'sender=sleep 1; iperf3 -c 10.0.0.2'
  ackclock wire compare my.toml --svg windows.svg

Real hosts are unnamed network namespaces, each with a TUN device; they are removed with the
command, however it ends. Needs Linux, CAP_SYS_ADMIN and CAP_NET_ADMIN (run it as root) and
/dev/net/tun.

Exit status: 0 all bytes arrived as written; 1 they did not; 2 an error in arguments or
files, or a missing privilege; 130 interrupted.";

const SEND_EXAMPLES: &str = "\
Examples:
  ackclock wire send --profile freebsd-14.3 --bytes 100MB
  ackclock wire send --profile linux-6.18 --cc cubic --ip 6
  ackclock wire send my.toml --set path.0.forward.0.loss=5%
  ackclock wire send my.toml --pcap wire.pcapng && tshark -r wire.pcapng
  ackclock wire send my.toml --csv wire.csv --svg wire.svg --qlog wire.qlog
  ackclock wire send my.toml --json | jq '.flows[0].goodput_bps, .model.flows[0].goodput_bps'

With a scenario, the first flow's sender is simulated, and the hosts it connects to are real: the
table shows the transfer on the wire and, below it, the same scenario in virtual time. Without one,
the path has no delay.";

const RECEIVE_EXAMPLES: &str = "\
Examples:
  ackclock wire receive --profile freebsd-14.3 --bytes 100MB
  ackclock wire receive my.toml --cc cubic
  ackclock wire receive my.toml --pcap wire.pcapng --json

With a scenario, the first flow's receiver is simulated, and its sender is real.";

const LINK_EXAMPLES: &str = "\
Examples:
  ackclock wire link my.toml
  ackclock wire link my.toml --run 'sink=iperf3 -s -1' --run 'sender=sleep 1; iperf3 -c 10.0.0.2'
  ackclock wire link my.toml --run 'sink=nc -l 5001 > got' --run 'sender=nc -N 10.0.0.2 5001 < file'

All hosts of the scenario are real; the first has the addresses 10.0.0.1 and fd00::1, the second
10.0.0.2 and fd00::2, and so on. Without --run it prints how to enter them and lasts for the
scenario's duration, or until Ctrl-C. The path carries only TCP; random loss and delay
depend on the seed, as in virtual time.";

const COMPARE_EXAMPLES: &str = "\
Examples:
  ackclock wire compare my.toml
  ackclock wire compare my.toml --svg windows.svg
  ackclock wire compare my.toml --report compare.html
  ackclock wire compare my.toml --set sender.cc=reno --json | jq '.flows[0], .model.flows[0]'

Hosts need a Linux profile; its sysctls are set in the hosts' namespaces. The simulated path is
longer by the delay of the real hosts, which is measured before the first loss and printed.";

/// Arguments of `wire link`.
#[derive(Debug, Args)]
pub(crate) struct LinkArgs {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArgs,
    /// Run a shell command on a host; the link is removed when the last command ends
    #[arg(long, value_name = "HOST=COMMAND")]
    pub(crate) run: Vec<String>,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the packets captured at the scenario's taps as pcapng [without taps: every host's
    /// stack]
    #[arg(long, value_name = "FILE")]
    pub(crate) pcap: Option<PathBuf>,
}

/// Arguments of `wire compare`.
#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArgs,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Draw the congestion windows of the real and the simulated sender in one chart
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// Write a self-contained HTML page of plots and tables (see docs/reports.md)
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Write the packets captured at the scenario's taps as pcapng [without taps: every host's
    /// stack]
    #[arg(long, value_name = "FILE")]
    pub(crate) pcap: Option<PathBuf>,
}

/// Arguments of `wire send` and `wire receive`.
#[derive(Debug, Args)]
pub(crate) struct EndArgs {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArgs,
    /// Without a scenario: TCP profile of the simulated endpoint
    #[arg(long, value_name = "PROFILE", default_value = "freebsd-14.3", conflicts_with = "file")]
    pub(crate) profile: String,
    /// Without a scenario: congestion control of the sender [default: the profile's or system's
    /// own]
    #[arg(long, value_name = "CC", conflicts_with = "file")]
    pub(crate) cc: Option<String>,
    /// Without a scenario: bytes to send
    #[arg(long, value_name = "SIZE", default_value = "100MB", conflicts_with = "file",
          value_parser = size)]
    pub(crate) bytes: Bytes,
    /// Without a scenario: IP version
    #[arg(long, value_name = "VERSION", default_value = "4", conflicts_with = "file",
          value_parser = clap::value_parser!(u8).range(4..=6))]
    pub(crate) ip: u8,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the packets as pcapng, captured at the scenario's taps [without taps: every host's
    /// stack]
    #[arg(long, value_name = "FILE")]
    pub(crate) pcap: Option<PathBuf>,
    /// Write every event of the simulated endpoint as a CSV row with the sender's state after it
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
    /// Draw congestion window and bytes in flight of the simulated endpoint over time as a chart
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// Write a log of the simulated endpoint as FreeBSD's Black Box Log, in pcapng
    #[arg(long, value_name = "FILE")]
    pub(crate) bblog: Option<PathBuf>,
    /// Write a log of the simulated endpoint as qlog, with TCP mapped to the terms of QUIC
    #[arg(long, value_name = "FILE")]
    pub(crate) qlog: Option<PathBuf>,
}

fn size(text: &str) -> Result<Bytes, String> {
    units_text::size(text).map_err(words)
}
