//! Values of a socket's `struct tcp_info` and its options as printed by ss.

use units::Duration;

use crate::lines::{LineFault, LinePart, decimal};

/// Values of a socket; those that ss omits (mostly zeros) are `None`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SsInfo {
    /// The congestion control.
    pub cc: Option<String>,
    /// Retransmission timeout.
    pub rto: Option<Duration>,
    /// Smoothed round-trip time.
    pub rtt: Option<Duration>,
    /// Its mean deviation.
    pub rttvar: Option<Duration>,
    /// Windowed minimum round-trip time (`minrtt`).
    pub min_rtt: Option<Duration>,
    /// Payload of a full segment.
    pub mss: Option<u64>,
    /// Congestion window in packets.
    pub cwnd: Option<u64>,
    /// Slow-start threshold in packets.
    pub ssthresh: Option<u64>,
    /// Bytes sent, retransmissions included.
    pub bytes_sent: Option<u64>,
    /// Bytes retransmitted.
    pub bytes_retrans: Option<u64>,
    /// Bytes acknowledged.
    pub bytes_acked: Option<u64>,
    /// Bytes received.
    pub bytes_received: Option<u64>,
    /// Segments with data sent.
    pub data_segs_out: Option<u64>,
    /// Packets delivered, as known to the sender.
    pub delivered: Option<u64>,
    /// Packets in flight.
    pub unacked: Option<u64>,
    /// Retransmitted packets in flight, and in total.
    pub retrans: Option<(u64, u64)>,
    /// Packets marked lost.
    pub lost: Option<u64>,
    /// Packets in SACK blocks.
    pub sacked: Option<u64>,
    /// D-SACKs received.
    pub dsack_dups: Option<u64>,
    /// Reordering degree, in packets.
    pub reordering: Option<u64>,
    /// Number of reordering events.
    pub reord_seen: Option<u64>,
    /// Unsent bytes in the send buffer.
    pub notsent: Option<u64>,
    /// Window advertised by the peer, in bytes.
    pub snd_wnd: Option<u64>,
    /// Pacing rate, bit/s.
    pub pacing_rate: Option<u64>,
    /// Delivery rate, bit/s.
    pub delivery_rate: Option<u64>,
    /// Time with data in flight.
    pub busy: Option<Duration>,
    /// Part of it limited by the peer's window.
    pub rwnd_limited: Option<Duration>,
    /// Part of it limited by the send buffer.
    pub sndbuf_limited: Option<Duration>,
    /// Whether the delivery rate was limited by the application.
    pub app_limited: bool,
}

/// Words without a value that precede the congestion control.
const FLAGS: [&str; 6] = ["ts", "sack", "ecn", "ecnseen", "fastopen", "bidir"];

impl SsInfo {
    /// Parses the values of a line; returns the first invalid one, with its offset from 0.
    pub(super) fn read(&mut self, line: &str) -> Result<(), (usize, LineFault)> {
        let mut words = LinePart::words(line);
        let mut wrong = Ok(());
        while let Some(word) = words.next() {
            let read = match word.text {
                // Their values are separate words.
                "pacing_rate" | "delivery_rate" | "send" => match words.next() {
                    Some(rate) => self.rate(word.text, rate),
                    None => Ok(()),
                },
                _ => self.word(word),
            };
            wrong = wrong.and(read);
        }
        wrong
    }

    fn word(&mut self, word: LinePart<'_>) -> Result<(), (usize, LineFault)> {
        let Some((name, _)) = word.text.split_once(':') else {
            let is_name = word.text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
            if word.text == "app_limited" {
                self.app_limited = true;
            } else if self.cc.is_none() && is_name && !FLAGS.contains(&word.text) {
                self.cc = Some(word.text.to_owned());
            }
            return Ok(());
        };
        let value = word.skip_bytes(name.len() + 1);
        let millis = |name| time(value, name, 1_000_000);
        match name {
            "rto" => self.rto = Some(millis("rto")?),
            "rtt" => {
                let (rtt, var) = pair(value, "rtt")?;
                self.rtt = Some(time(rtt, "rtt", 1_000_000)?);
                self.rttvar = Some(time(var, "rtt", 1_000_000)?);
            }
            "minrtt" => self.min_rtt = Some(millis("minrtt")?),
            "mss" => self.mss = Some(value.number("mss")?),
            "cwnd" => self.cwnd = Some(value.number("cwnd")?),
            "ssthresh" => self.ssthresh = Some(value.number("ssthresh")?),
            "bytes_sent" => self.bytes_sent = Some(value.number("bytes_sent")?),
            "bytes_retrans" => self.bytes_retrans = Some(value.number("bytes_retrans")?),
            "bytes_acked" => self.bytes_acked = Some(value.number("bytes_acked")?),
            "bytes_received" => self.bytes_received = Some(value.number("bytes_received")?),
            "data_segs_out" => self.data_segs_out = Some(value.number("data_segs_out")?),
            "delivered" => self.delivered = Some(value.number("delivered")?),
            "unacked" => self.unacked = Some(value.number("unacked")?),
            "retrans" => {
                let (now, all) = pair(value, "retrans")?;
                self.retrans = Some((now.number("retrans")?, all.number("retrans")?));
            }
            "lost" => self.lost = Some(value.number("lost")?),
            "sacked" => self.sacked = Some(value.number("sacked")?),
            "dsack_dups" => self.dsack_dups = Some(value.number("dsack_dups")?),
            "reordering" => self.reordering = Some(value.number("reordering")?),
            "reord_seen" => self.reord_seen = Some(value.number("reord_seen")?),
            "notsent" => self.notsent = Some(value.number("notsent")?),
            "snd_wnd" => self.snd_wnd = Some(value.number("snd_wnd")?),
            "busy" => self.busy = Some(limited(value, "busy")?),
            "rwnd_limited" => self.rwnd_limited = Some(limited(value, "rwnd_limited")?),
            "sndbuf_limited" => self.sndbuf_limited = Some(limited(value, "sndbuf_limited")?),
            _ => {}
        }
        Ok(())
    }

    /// Parses `4311788bps`, `4.3Mbps`; the pacing rate may be `4.3Mbps/9.9Mbps`, current and
    /// maximum.
    fn rate(&mut self, name: &str, word: LinePart<'_>) -> Result<(), (usize, LineFault)> {
        let wrong = |name| (word.at, LineFault::value(name, word.text, "bits a second"));
        let text = word.text.split('/').next().unwrap_or_default();
        let rate = || {
            let text = text.strip_suffix("bps")?;
            let unit = match text.as_bytes().last()? {
                b'K' => 1_000,
                b'M' => 1_000_000,
                b'G' => 1_000_000_000,
                b'T' => 1_000_000_000_000,
                _ => 1,
            };
            decimal(text.trim_end_matches(['K', 'M', 'G', 'T']), unit)
        };
        match name {
            "pacing_rate" => self.pacing_rate = Some(rate().ok_or_else(|| wrong("pacing_rate"))?),
            "delivery_rate" => {
                self.delivery_rate = Some(rate().ok_or_else(|| wrong("delivery_rate"))?);
            }
            _ => {}
        }
        Ok(())
    }
}

/// Parses a decimal number of units of `unit` nanoseconds.
fn time(
    value: LinePart<'_>,
    name: &'static str,
    unit: u64,
) -> Result<Duration, (usize, LineFault)> {
    decimal(value.text, unit)
        .map(Duration::from_nanos)
        .ok_or_else(|| (value.at, LineFault::value(name, value.text, "milliseconds")))
}

/// `72ms`, `10ms(5.0%)`.
fn limited(value: LinePart<'_>, name: &'static str) -> Result<Duration, (usize, LineFault)> {
    let text = value.text.split('(').next().unwrap_or_default();
    let number = text.strip_suffix("ms").unwrap_or_default();
    time(LinePart { text: number, ..value }, name, 1_000_000)
        .map_err(|_| (value.at, LineFault::value(name, value.text, "milliseconds (`72ms`)")))
}

/// `1/2`.
fn pair<'a>(
    value: LinePart<'a>,
    name: &'static str,
) -> Result<(LinePart<'a>, LinePart<'a>), (usize, LineFault)> {
    let (first, _) = value
        .text
        .split_once('/')
        .ok_or_else(|| (value.at, LineFault::value(name, value.text, "two numbers with `/`")))?;
    Ok((LinePart { text: first, ..value }, value.skip_bytes(first.len() + 1)))
}
