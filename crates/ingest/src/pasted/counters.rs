//! Counters and settings of a host: `nstat`, `netstat -s` and `sysctl -a`.

use super::facts::{Figures, PastedSection, RetransmitCount};
use super::numbers::number;

/// Counters of nstat that count faults, with what they mean.
const FAULTS: &[(&str, &str)] = &[
    ("TcpExtTCPTimeouts", "retransmission timeouts"),
    ("TcpExtTCPLostRetransmit", "retransmissions lost again"),
    (
        "TcpExtTCPSpuriousRtxHostQueues",
        "segments still in the host's own queue at a retransmission",
    ),
    ("TcpExtPruneCalled", "times the receive buffer was full (PruneCalled)"),
    ("TcpExtRcvPruned", "segments dropped from a full receive buffer (RcvPruned)"),
    ("TcpExtOfoPruned", "segments dropped from a full out-of-order queue (OfoPruned)"),
    ("TcpExtTCPRcvQDrop", "segments dropped at a full receive queue"),
    ("TcpExtTCPBacklogDrop", "segments dropped at a full backlog of a socket"),
    ("TcpExtListenOverflows", "connections dropped at a full accept queue"),
    ("TcpExtTCPZeroWindowDrop", "segments dropped at a window of zero"),
    ("TcpExtTCPToZeroWindowAdv", "times the receiver closed its window"),
    ("TcpExtTCPMemoryPressures", "times TCP ran out of memory"),
    ("TcpExtTCPDSACKRecv", "duplicates that the receiver reported (DSACK)"),
    ("TcpExtTCPSACKReorder", "reorderings found by SACK"),
    ("IpReasmFails", "fragments that could not be joined"),
];

/// Segments of a host that `nstat` or `netstat -s` counts.
#[derive(Debug, Default)]
struct SegmentCounters {
    sent: Option<f64>,
    retransmitted: Option<f64>,
    /// Data segments without the retransmitted ones (BSD).
    new: Option<f64>,
}

/// Reads lines `TcpRetransSegs   1234   0.0`, and those of `netstat -s` of Linux, BSD and Windows.
pub(super) fn nstat(text: &str, figures: &mut Figures) -> Option<PastedSection> {
    let (mut first, mut facts) = (None, Vec::new());
    let mut counters = SegmentCounters::default();
    for (index, line) in text.lines().enumerate() {
        let mut words = line.split_whitespace();
        let Some(name) = words.next() else { continue };
        // `netstat -s` prints `TCPTimeouts: 12`.
        let name =
            match name.strip_suffix(':').filter(|name| name.starts_with("TCP") && name.len() > 3) {
                Some(name) => format!("TcpExt{name}"),
                None => name.to_owned(),
            };
        let is_counter = ["Tcp", "Ip", "Udp", "Icmp"].iter().any(|one| name.starts_with(one))
            && name.len() > 4
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let value = words.next().and_then(number);
        if let Some(value) = value.filter(|_| is_counter) {
            first.get_or_insert(index + 1);
            match name.as_str() {
                "TcpOutSegs" => counters.sent = Some(value),
                "TcpRetransSegs" => counters.retransmitted = Some(value),
                _ => {}
            }
            if let Some((_, what)) = FAULTS.iter().find(|(one, _)| *one == name)
                && value > 0.0
            {
                facts.push(format!("{value} {what}"));
                receiver_fault(&name, value, what, figures);
            }
        } else if counters.sentence(line.trim()) {
            first.get_or_insert(index + 1);
        }
    }
    if let Some(line) = windows(text, &mut counters) {
        first.get_or_insert(line);
    }
    let first = first?;
    let SegmentCounters { sent, retransmitted, new } = counters;
    let sent = sent.or(new.zip(retransmitted).map(|(new, again)| new + again));
    if let Some(again) = retransmitted {
        let sent = sent.filter(|sent| *sent > 0.0);
        facts.push(match sent {
            Some(sent) => {
                let percent = 100.0 * again / sent;
                format!("{again} of {sent} segments retransmitted ({percent:.2} %), since boot")
            }
            None => format!("{again} segments retransmitted"),
        });
        figures.retransmits.push(RetransmitCount {
            sent,
            is_since_boot: true,
            ..RetransmitCount::of("nstat", again)
        });
    }
    Some(PastedSection { kind: "nstat", line: first, facts })
}

impl SegmentCounters {
    /// Reads `1234 segments retransmitted` of Linux, `48210 data packets (69000000 bytes)
    /// retransmitted` of BSD; returns false for any other line.
    fn sentence(&mut self, line: &str) -> bool {
        let Some((count, what)) = line.split_once(' ') else { return false };
        let Some(count) = number(count) else { return false };
        let counter = if what.starts_with("segments sent out") || what == "segments send out" {
            &mut self.sent
        } else if what.starts_with("segments retransmit") {
            &mut self.retransmitted
        } else if let Some(rest) =
            what.strip_prefix("data packets (").or_else(|| what.strip_prefix("data packet ("))
        {
            match rest.split_once(')') {
                Some((_, "")) => &mut self.new,
                Some((_, " retransmitted")) => &mut self.retransmitted,
                _ => return false,
            }
        } else {
            return false;
        };
        *counter = Some(count);
        true
    }
}

/// Reads `netstat -s` of Windows: below the heading of TCP eight lines `Name = 123` in every language,
/// of which the last two are the segments sent and retransmitted. Returns the first line.
fn windows(text: &str, counters: &mut SegmentCounters) -> Option<usize> {
    let lines: Vec<&str> = text.lines().collect();
    let heading = lines.iter().position(|line| {
        line.contains("TCP") && (line.contains("IPv4") || line.contains("IPv6"))
    })?;
    let values: Vec<f64> = lines[heading + 1..]
        .iter()
        .skip_while(|line| line.trim().is_empty())
        .map_while(|line| number(line.rsplit_once(" = ")?.1))
        .collect();
    let [.., sent, retransmitted] = values[..] else { return None };
    if values.len() != 8 {
        return None;
    }
    (counters.sent, counters.retransmitted) = (Some(sent), Some(retransmitted));
    Some(heading + 1)
}

fn receiver_fault(name: &str, value: f64, what: &str, figures: &mut Figures) {
    let of_receiver = ["Prune", "RcvQDrop", "BacklogDrop", "ZeroWindow", "ListenOverflows"];
    if of_receiver.iter().any(|part| name.contains(part)) {
        figures.faults.push(format!(
            "the host that printed the counters is too slow or too small: {value} {what}"
        ));
    }
}

/// Reads settings `net.ipv4.tcp_rmem = 4096 131072 6291456`.
pub(super) fn sysctl(text: &str, figures: &mut Figures) -> Option<PastedSection> {
    let (mut first, mut facts) = (None, Vec::new());
    for (index, line) in text.lines().enumerate() {
        let Some((name, value)) = line.split_once(['=', ':']) else { continue };
        let (name, value) = (name.trim(), value.trim());
        if !name.starts_with("net.") || name.contains(' ') {
            continue;
        }
        first.get_or_insert(index + 1);
        let last = value.split_whitespace().last().and_then(number);
        let notable = match name {
            "net.ipv4.tcp_rmem" => {
                figures.receive_buffer = last;
                true
            }
            "net.ipv4.tcp_wmem" => {
                figures.send_buffer = last;
                true
            }
            "net.inet.tcp.recvbuf_max" => {
                figures.receive_buffer = last;
                true
            }
            "net.inet.tcp.sendbuf_max" => {
                figures.send_buffer = last;
                true
            }
            "net.ipv4.tcp_window_scaling" | "net.inet.tcp.rfc1323" if value == "0" => {
                figures.unscaled = true;
                true
            }
            "net.ipv4.tcp_sack"
            | "net.inet.tcp.sack.enable"
            | "net.ipv4.tcp_timestamps"
            | "net.ipv4.tcp_moderate_rcvbuf"
                if value == "0" =>
            {
                figures.faults.push(format!("{name} is off"));
                true
            }
            "net.ipv4.tcp_congestion_control"
            | "net.inet.tcp.cc.algorithm"
            | "net.core.default_qdisc" => true,
            _ => false,
        };
        if notable {
            facts.push(format!("{name} = {value}"));
        }
    }
    Some(PastedSection { kind: "sysctl", line: first?, facts })
}
