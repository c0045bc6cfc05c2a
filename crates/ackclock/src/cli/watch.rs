//! Arguments of `watch`.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::Args;

const WATCH_EXAMPLES: &str = "\
Examples:
  ackclock watch                               all connections of this machine, every second
  ackclock watch --host 192.0.2.7 --port 443   only those of a host and a port
  ackclock watch --every 10s --count 6         six intervals of 10 s, then a summary
  ackclock watch --json | jq -c '.connections[] | [.remote, .limit]'
  ackclock watch --openmetrics /var/lib/node_exporter/ackclock.prom

The kernel counts how long the peer's window and the send buffer limited each connection, and how
long data were in flight (ss -ti prints it, too). No privileges are needed. Only the connections of
this network namespace are listed: ip netns exec NAME ackclock watch shows those of another one.

Exit status: 0 success, also after Ctrl-C; 2 an error in arguments, or the kernel refuses.";

/// Arguments of `watch`.
#[derive(Debug, Args)]
#[command(after_help = WATCH_EXAMPLES)]
pub(crate) struct WatchArgs {
    /// Only connections of this host, local or remote; several: any of them
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) host: Vec<IpAddr>,
    /// Only connections with this port, local or remote; several: any of them
    #[arg(long, value_name = "PORT")]
    pub(crate) port: Vec<u16>,
    /// Time between two polls
    #[arg(long, value_name = "DURATION", default_value = "1s")]
    pub(crate) every: String,
    /// Number of intervals [default: until Ctrl-C]
    #[arg(long, value_name = "COUNT")]
    pub(crate) count: Option<u64>,
    /// Connections shown in each interval, those with most data first
    #[arg(long, value_name = "COUNT", default_value = "20", conflicts_with = "json")]
    pub(crate) limit: usize,
    /// Print one JSON object per line: one for each interval, and a summary at the end
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the figures of the last interval as OpenMetrics text, replaced after each
    #[arg(long, value_name = "FILE")]
    pub(crate) openmetrics: Option<PathBuf>,
}
