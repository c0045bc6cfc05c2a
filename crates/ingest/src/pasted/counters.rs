//! Counters: `nstat`, `netstat -s`, `ip -s link`, `ifconfig`, `ethtool -S` and `sysctl -a`.

use super::facts::{Figures, PastedSection};
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

/// Reads lines `TcpRetransSegs   1234   0.0`, and those of `netstat -s`.
pub(super) fn nstat(text: &str, figures: &mut Figures) -> Option<PastedSection> {
    let (mut first, mut facts) = (None, Vec::new());
    let (mut out, mut retransmitted) = (None, None);
    for (index, line) in text.lines().enumerate() {
        let mut words = line.split_whitespace();
        let Some(name) = words.next() else { continue };
        let is_counter = ["Tcp", "Ip", "Udp", "Icmp"].iter().any(|one| name.starts_with(one))
            && name.len() > 4
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let value = words.next().and_then(number);
        if let Some(value) = value.filter(|_| is_counter) {
            first.get_or_insert(index + 1);
            match name {
                "TcpOutSegs" => out = Some(value),
                "TcpRetransSegs" => retransmitted = Some(value),
                _ => {}
            }
            if let Some((_, what)) = FAULTS.iter().find(|(one, _)| *one == name)
                && value > 0.0
            {
                facts.push(format!("{value} {what}"));
                receiver_fault(name, value, what, figures);
            }
            continue;
        }
        // `    1234 segments retransmitted`, in Linux and FreeBSD.
        let trimmed = line.trim();
        let Some((count, what)) = trimmed.split_once(' ') else { continue };
        let Some(count) = number(count) else { continue };
        let is_out = what.starts_with("segments sent out") || what == "segments send out";
        let again = what.starts_with("segments retransmit")
            || what.starts_with("data packets") && what.contains("retransmitted");
        if is_out || again {
            first.get_or_insert(index + 1);
            *(if is_out { &mut out } else { &mut retransmitted }) = Some(count);
        }
    }
    let first = first?;
    if let Some((out, again)) = out.zip(retransmitted).filter(|(out, _)| *out > 0.0) {
        let percent = 100.0 * again / out;
        facts.push(format!("{again} of {out} segments retransmitted ({percent:.2} %), since boot"));
        figures.segments = figures.segments.or(Some(out));
        figures.retransmits = figures.retransmits.or(Some(again));
    } else if let Some(again) = retransmitted {
        facts.push(format!("{again} segments retransmitted"));
        figures.retransmits = figures.retransmits.or(Some(again));
    }
    Some(PastedSection { kind: "nstat", line: first, facts })
}

fn receiver_fault(name: &str, value: f64, what: &str, figures: &mut Figures) {
    let of_receiver = ["Prune", "RcvQDrop", "BacklogDrop", "ZeroWindow", "ListenOverflows"];
    if of_receiver.iter().any(|part| name.contains(part)) {
        figures.faults.push(format!(
            "the host that printed the counters is too slow or too small: {value} {what}"
        ));
    }
}

/// Reads `ip -s link` and `ifconfig`.
pub(super) fn devices(text: &str, figures: &mut Figures) -> Option<PastedSection> {
    let (mut first, mut facts) = (None, Vec::new());
    let mut device = String::new();
    let lines: Vec<&str> = text.lines().collect();
    for (index, line) in lines.iter().enumerate() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let numbered =
            words.first().is_some_and(|word| word.trim_end_matches(':').parse::<u32>().is_ok());
        if numbered && line.contains("mtu ") {
            device = words.get(1).map_or("", |name| name.trim_end_matches(':')).to_owned();
        } else if line.contains("flags=") && line.contains("mtu ") {
            device = words.first().map_or("", |name| name.trim_end_matches(':')).to_owned();
        }
        // The line after it has the values of these names.
        let is_head = |head: &str| words.first() == Some(&head) && line.contains("errors");
        if is_head("RX:") || is_head("TX:") {
            let Some(values) = lines.get(index + 1) else { continue };
            first.get_or_insert(index + 1);
            let values: Vec<&str> = values.split_whitespace().collect();
            let direction = words[0].trim_end_matches(':');
            for (name, value) in words[1..].iter().zip(values) {
                let counted = number(value).filter(|count| *count > 0.0);
                let is_fault = matches!(
                    *name,
                    "errors" | "dropped" | "overrun" | "missed" | "carrsns" | "collsns"
                );
                if let Some(count) = counted.filter(|_| is_fault) {
                    facts.push(format!("{device}: {count} {direction} {name}"));
                    figures.device_faults.push(format!("{count} {direction} {name} of {device}"));
                }
            }
        }
        // `RX errors 0  dropped 12  overruns 0  frame 0`.
        if matches!(words.first(), Some(&"RX" | &"TX")) && words.get(1) == Some(&"errors") {
            first.get_or_insert(index + 1);
            for pair in words[1..].chunks(2) {
                let count =
                    pair.get(1).and_then(|value| number(value)).filter(|count| *count > 0.0);
                if let Some(count) = count {
                    facts.push(format!("{device}: {count} {} {}", words[0], pair[0]));
                    figures
                        .device_faults
                        .push(format!("{count} {} {} of {device}", words[0], pair[0]));
                }
            }
        }
    }
    let line = first?;
    if facts.is_empty() {
        facts.push("no device counted errors or drops".to_owned());
    }
    Some(PastedSection { kind: "ip -s link", line, facts })
}

/// Reads `ethtool -S`: counters of faults above zero.
pub(super) fn ethtool(text: &str, figures: &mut Figures) -> Option<PastedSection> {
    const FAULT: &[&str] =
        &["drop", "err", "miss", "discard", "fifo", "no_buf", "nobuf", "crc", "timeout", "overrun"];
    let start = text.lines().position(|line| line.trim() == "NIC statistics:")?;
    let mut facts = Vec::new();
    for line in text.lines().skip(start + 1) {
        let Some((name, value)) = line.trim().split_once(':') else { break };
        let value = number(value).filter(|value| *value > 0.0);
        if let Some(value) = value.filter(|_| FAULT.iter().any(|part| name.contains(part))) {
            facts.push(format!("{name}: {value}"));
            figures.device_faults.push(format!("{value} {name}"));
        }
    }
    if facts.is_empty() {
        facts.push("no counter of errors or drops is above zero".to_owned());
    }
    facts.truncate(12);
    Some(PastedSection { kind: "ethtool -S", line: start + 1, facts })
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
