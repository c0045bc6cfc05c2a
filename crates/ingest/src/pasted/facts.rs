//! What pasted texts say about a transfer.

/// Payload of a segment with timestamps, in bytes.
pub(super) const MSS: f64 = 1_448.0;

/// A part of a text that a tool printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastedSection {
    /// Name of the tool.
    pub kind: &'static str,
    /// Its first line, from 1.
    pub line: usize,
    /// What it says.
    pub facts: Vec<String>,
}

/// Retransmissions as one tool counted them, of what it counted as sent in the same time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RetransmitCount {
    /// Name of the tool.
    pub tool: &'static str,
    /// Segments retransmitted.
    pub retransmitted: f64,
    /// Segments sent; absent if the tool does not count them.
    pub sent: Option<f64>,
    /// The counters are those of a host since it booted.
    pub is_since_boot: bool,
    /// The tool prints a percentage alone: `sent` is 100.
    pub is_percentage: bool,
}

impl RetransmitCount {
    /// A count of a tool that saw the transfer.
    pub(super) fn of(tool: &'static str, retransmitted: f64) -> Self {
        Self { tool, retransmitted, sent: None, is_since_boot: false, is_percentage: false }
    }

    /// Fraction of the segments.
    pub fn share(&self) -> Option<f64> {
        self.sent.map(|sent| self.retransmitted / sent.max(1.0))
    }
}

/// Congestion windows that one tool printed, in bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WindowSamples {
    /// Least.
    pub least: f64,
    /// Mean.
    pub mean: f64,
    /// Largest.
    pub most: f64,
    /// Number of samples.
    pub count: usize,
}

/// A test of iperf, in one direction.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct IperfTransfer {
    /// First line.
    pub(super) line: usize,
    pub(super) rate: Option<f64>,
    pub(super) bytes: Option<f64>,
    pub(super) seconds: Option<f64>,
    pub(super) streams: usize,
    pub(super) retransmits: Option<f64>,
    pub(super) windows: Option<WindowSamples>,
    pub(super) rtt: Option<(f64, f64)>,
    pub(super) is_udp: bool,
    pub(super) datagrams_lost: Option<f64>,
    pub(super) stalls: Option<usize>,
    pub(super) peer: Option<String>,
    pub(super) port: Option<u16>,
}

/// Figures of all sections. Times are in milliseconds, windows in bytes, rates in bit/s.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Figures {
    /// Payload or IP rate of the transfer.
    pub rate: Option<f64>,
    /// Payload.
    pub bytes: Option<f64>,
    /// Duration.
    pub seconds: Option<f64>,
    /// Connections side by side.
    pub streams: Option<usize>,
    /// The transfer is one of UDP.
    pub is_udp: bool,
    /// Retransmissions, one count for each tool that has them.
    pub retransmits: Vec<RetransmitCount>,
    /// Congestion windows of a stream.
    pub cwnd: Option<WindowSamples>,
    /// Least and mean round-trip time.
    pub rtt: Option<(f64, f64)>,
    /// Least and largest round-trip time of one tool: the tool whose times differ most.
    pub rtt_range: Option<(f64, f64)>,
    /// Fraction of probes lost.
    pub probe_loss: Option<f64>,
    /// Fraction of datagrams of UDP lost.
    pub datagrams_lost: Option<f64>,
    /// Intervals without data.
    pub stalls: Option<usize>,
    /// Address or name of the other host.
    pub peer: Option<String>,
    /// Its port.
    pub port: Option<u16>,
    /// Fraction of the busy time in which the receive window, and the send buffer limited.
    pub limited: Option<(f64, f64)>,
    /// The sender reported `app_limited`.
    pub app_limited: bool,
    /// Largest receive buffer of the host (`tcp_rmem`).
    pub receive_buffer: Option<f64>,
    /// Largest send buffer (`tcp_wmem`).
    pub send_buffer: Option<f64>,
    /// Window scaling is off.
    pub unscaled: bool,
    /// Packets that a device dropped or received damaged.
    pub device_faults: Vec<String>,
    /// Packets that qdiscs of the host dropped.
    pub queue_drops: Vec<String>,
    /// Packets with a window of zero.
    pub zero_windows: usize,
    /// What else a tool says is wrong, worst first.
    pub faults: Vec<String>,
    /// Parts of a request of HTTP in milliseconds.
    pub phases: Vec<(&'static str, f64)>,
    /// Of several tests of iperf, the number and the line of the one that is judged.
    pub judged: Option<(usize, usize)>,
}

impl Figures {
    /// The count that describes the transfer best: that of a tool which saw the transfer alone, with
    /// the number of segments.
    pub fn retransmit_count(&self) -> Option<&RetransmitCount> {
        let rank = |count: &&RetransmitCount| (count.is_since_boot, count.sent.is_none());
        self.retransmits.iter().min_by_key(rank)
    }

    /// Adds the round-trip times of a tool: the least, the mean and the largest.
    pub(super) fn add_rtt(&mut self, least: f64, mean: f64, most: f64) {
        self.rtt = self.rtt.or(Some((least, mean)));
        let width = |(least, most): (f64, f64)| most - least;
        if self.rtt_range.is_none_or(|known| width(known) < most - least) {
            self.rtt_range = Some((least, most));
        }
    }

    /// Uses the slowest test of iperf for the verdict.
    pub(super) fn judge(&mut self, transfers: &[IperfTransfer]) {
        let slowest = transfers.iter().min_by(|a, b| {
            let rate = |one: &IperfTransfer| one.rate.unwrap_or(f64::MAX);
            a.is_udp.cmp(&b.is_udp).then(rate(a).total_cmp(&rate(b)))
        });
        let Some(transfer) = slowest else { return };
        if transfers.len() > 1 {
            self.judged = Some((transfers.len(), transfer.line));
        }
        self.rate = transfer.rate.or(self.rate);
        self.bytes = transfer.bytes;
        self.seconds = transfer.seconds;
        self.streams = Some(transfer.streams).filter(|streams| *streams > 0);
        self.is_udp = transfer.is_udp;
        self.cwnd = transfer.windows;
        self.datagrams_lost = transfer.datagrams_lost;
        self.stalls = transfer.stalls;
        self.peer = transfer.peer.clone().or(self.peer.take());
        self.port = transfer.port.or(self.port);
        if let Some((least, mean)) = transfer.rtt {
            self.add_rtt(least, mean, mean);
        }
        if let Some(retransmitted) = transfer.retransmits.filter(|_| !transfer.is_udp) {
            let sent = transfer.bytes.map(|bytes| bytes / MSS);
            let count = RetransmitCount { sent, ..RetransmitCount::of("iperf", retransmitted) };
            self.retransmits.insert(0, count);
        }
    }
}
