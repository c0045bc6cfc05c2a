//! What pasted texts say about a transfer.

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
    /// Segments retransmitted.
    pub retransmits: Option<f64>,
    /// Segments sent.
    pub segments: Option<f64>,
    /// Least, mean and largest congestion window of a stream.
    pub cwnd: Option<(f64, f64, f64)>,
    /// Least and mean round-trip time.
    pub rtt: Option<(f64, f64)>,
    /// Largest round-trip time.
    pub rtt_max: Option<f64>,
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
    /// Packets with a window of zero.
    pub zero_windows: usize,
    /// What else a tool says is wrong, worst first.
    pub faults: Vec<String>,
    /// Parts of a request of HTTP in milliseconds.
    pub phases: Vec<(&'static str, f64)>,
}
