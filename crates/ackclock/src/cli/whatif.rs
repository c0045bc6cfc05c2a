//! Arguments of `whatif` and `scenario from`.

use core::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;

const EXAMPLES: &str = "\
Examples:
  ackclock whatif slow.pcap                                        how well the fit follows the capture
  ackclock whatif slow.pcap --compare linux-6.18/cubic,freebsd-rack-main
  ackclock whatif slow.pcap --flow 3 --set sender.knobs.net.inet.tcp.abc_l_var=45
  ackclock whatif slow.pcap --set path.forward.link.rate=1Gbit/s --set sender.cc=bbr
  ackclock whatif slow.pcap --compare linux-6.18/bbr --kernel linux-6.12
  ackclock whatif slow.pcap --compare freebsd-main --json | jq '.alternatives[0].time_ratio'
  ackclock whatif server.sqlog                                     a QUIC transfer, and what would cure it
  ackclock whatif server.sqlog --report whatif.html                with curves, for a browser
  ackclock whatif server.sqlog --sender quinn-0.11 --compare quinn-0.11/newreno,quic-go-0.65
  ackclock whatif server.pcap --keylog server.keys                 the same from a capture at the sender

The path is fitted from the capture, or from the qlog of the host that sends the data; the recorded sender is simulated on it first. If even that
does not follow the recorded transfer, predictions are unreliable; a warning says so.

Exit status: 0 success; 2 an error in arguments, or a file that cannot be used.";

/// Arguments of `whatif`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct WhatIfArgs {
    /// Capture with the transfer, best taken at the sender, or the sender's qlog; - is standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The connection, by Wireshark's number (tcp.stream) [default: the one with the most data]
    #[arg(long, value_name = "N")]
    pub(crate) flow: Option<u32>,
    /// Key log (SSLKEYLOGFILE) with which packets of QUIC in a capture are decrypted [default: a file beside the
    /// capture with its name and the ending keys or keylog, or sslkeylog.txt]
    #[arg(long, value_name = "FILE")]
    pub(crate) keylog: Option<PathBuf>,
    /// Senders to try on the fitted path, as PROFILE or PROFILE/CC
    #[arg(long, value_name = "SENDER", value_delimiter = ',')]
    pub(crate) compare: Vec<String>,
    /// Sender that --set is tried with, as PROFILE or PROFILE/CC [default: the best fit]; of a qlog the
    /// recorded sender, if the log does not name it
    #[arg(long, value_name = "SENDER")]
    pub(crate) sender: Option<String>,
    /// Set one key of the fitted scenario (see: ackclock scenario from)
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Check the answer with real kernels: senders of Linux are run with this one too, in virtual time
    /// [default: the first of `kernel list`]
    #[arg(long, value_name = "NAME", num_args = 0..=1)]
    pub(crate) kernel: Option<Option<String>>,
    /// Threads [default: as many as processors]
    #[arg(short = 'j', long, value_name = "N")]
    pub(crate) jobs: Option<NonZeroUsize>,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the result as a page, with the recorded and the simulated curves
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
}

const FROM_EXAMPLES: &str = "\
Examples:
  ackclock scenario from slow.pcap > slow.toml && ackclock run slow.toml
  ackclock scenario from slow.pcap --flow 3
  ackclock scenario from server.sqlog";

/// Arguments of `scenario from`.
#[derive(Debug, Args)]
#[command(after_help = FROM_EXAMPLES)]
pub(crate) struct FromArgs {
    /// Capture with the transfer, best taken at the sender, or the sender's qlog, or the pasted text of
    /// iperf3, ss, ping and others; - is standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The connection, by Wireshark's number (tcp.stream) [default: the one with the most data]
    #[arg(long, value_name = "N")]
    pub(crate) flow: Option<u32>,
    /// Key log (SSLKEYLOGFILE) with which packets of QUIC in a capture are decrypted [default: a file beside the
    /// capture with its name and the ending keys or keylog, or sslkeylog.txt]
    #[arg(long, value_name = "FILE")]
    pub(crate) keylog: Option<PathBuf>,
}
