//! What tools of the host print about all its connections: `sar -n ETCP`, `ss -s`, tcpretrans, and the
//! metrics of Prometheus' node exporter.

use std::collections::BTreeMap;

use super::facts::{Figures, PastedSection, RetransmitCount};
use super::numbers::number;

/// Reads the tables of `sar -n TCP,ETCP`: the mean of `retrans/s` and of `oseg/s`.
pub(super) fn sar(text: &str, figures: &mut Figures) -> Option<PastedSection> {
    let (mut first, mut head): (Option<usize>, Vec<&str>) = (None, Vec::new());
    // Of each column its values and, from a line `Average:`, its mean.
    let mut columns: BTreeMap<&str, (Vec<f64>, Option<f64>)> = BTreeMap::new();
    for (index, line) in text.lines().enumerate() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.iter().any(|word| matches!(*word, "retrans/s" | "oseg/s")) {
            first.get_or_insert(index + 1);
            head = words;
            continue;
        }
        // The time has one word or two, in the head and below it.
        let names = head.iter().rev().take_while(|name| name.ends_with("/s"));
        let values: Vec<f64> = words.iter().rev().map_while(|word| number(word)).collect();
        if head.is_empty() || values.len() < names.clone().count() {
            head = if words.is_empty() { Vec::new() } else { head };
            continue;
        }
        let is_mean =
            words.first().is_some_and(|word| word.ends_with(':') && number(word).is_none());
        for (name, value) in names.zip(values) {
            let (rows, mean) = columns.entry(name).or_default();
            match is_mean {
                true => *mean = Some(value),
                false => rows.push(value),
            }
        }
    }
    let mean = |name: &str| {
        let (rows, mean) = columns.get(name)?;
        let of_rows = || rows.iter().sum::<f64>() / rows.len() as f64;
        mean.or_else(|| (!rows.is_empty()).then(of_rows))
    };
    let mut facts = Vec::new();
    if let Some(again) = mean("retrans/s") {
        let sent = mean("oseg/s").filter(|sent| *sent > 0.0);
        facts.push(match sent {
            Some(sent) => {
                let percent = 100.0 * again / sent;
                format!("{again} of {sent} segments a second retransmitted ({percent:.2} %)")
            }
            None => format!("{again} segments a second retransmitted"),
        });
        let percent = sent.map_or(again, |sent| 100.0 * again / sent);
        figures.retransmits.push(RetransmitCount {
            sent: sent.map(|_| 100.0),
            is_percentage: sent.is_some(),
            ..RetransmitCount::of("sar", percent)
        });
    }
    Some(PastedSection { kind: "sar", line: first.filter(|_| !columns.is_empty())?, facts })
}

/// Reads `TCP:   345 (estab 123, closed 200, orphaned 0, timewait 195)` of `ss -s`.
pub(super) fn socket_summary(text: &str, _: &mut Figures) -> Option<PastedSection> {
    let (index, counts) = text.lines().enumerate().find_map(|(index, line)| {
        let counts = line.trim().strip_prefix("TCP:")?;
        counts.contains("(estab ").then_some((index, counts.trim()))
    })?;
    let facts = vec![format!("sockets of TCP: {counts}")];
    Some(PastedSection { kind: "ss -s", line: index + 1, facts })
}

/// Reads the lines of tcpretrans of bcc, bpftrace and perf-tools, one for each retransmission: `01:55:05 0 4
/// 10.0.0.1:22 R> 10.0.0.2:34619 ESTABLISHED`, with `L>` for a tail loss probe.
pub(super) fn tcpretrans(text: &str, figures: &mut Figures) -> Option<PastedSection> {
    let (mut first, mut times) = (None, Vec::new());
    let (mut again, mut probes, mut opening) = (0_usize, 0_usize, 0_usize);
    let mut peers: BTreeMap<&str, usize> = BTreeMap::new();
    for (index, line) in text.lines().enumerate() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let Some(at) = words.iter().position(|word| matches!(*word, "R>" | "L>")) else { continue };
        let endpoint = |at: Option<usize>| words.get(at?).copied().filter(|word| is_endpoint(word));
        let ends = endpoint(at.checked_sub(1)).zip(endpoint(Some(at + 1)));
        let Some((_, remote)) = ends else { continue };
        first.get_or_insert(index + 1);
        again += 1;
        probes += usize::from(words[at] == "L>");
        let state = words.get(at + 2).copied().unwrap_or_default();
        opening +=
            usize::from(matches!(state, "SYN_SENT" | "SYN-SENT" | "SYN_RECV" | "NEW_SYN_RECV"));
        *peers.entry(remote).or_default() += 1;
        times.extend(words.iter().find_map(|word| trace::tcpdump::clock::find(word)));
    }
    let line = first?;
    let seconds = times.first().zip(times.last()).map_or(0.0, |(begin, end)| {
        end.at.as_nanos().saturating_sub(begin.at.as_nanos()) as f64 / 1e9
    });
    let mut facts =
        vec![format!("{again} retransmissions to {} hosts and ports in {seconds} s", peers.len())];
    for (count, what) in [(probes, "of them tail loss probes"), (opening, "of them of a SYN")] {
        if count > 0 {
            facts.push(format!("{count} {what}"));
        }
    }
    if let Some((peer, count)) = peers.iter().max_by_key(|(_, count)| **count) {
        facts.push(format!("{count} of them to {peer}"));
        let host = peer.rsplit_once([':', '.']).map_or(*peer, |(host, _)| host);
        let host = host.trim_matches(['[', ']']);
        figures.peer = figures.peer.take().or(Some(host.to_owned()));
    }
    figures.retransmits.push(RetransmitCount::of("tcpretrans", again as f64));
    Some(PastedSection { kind: "tcpretrans", line, facts })
}

/// Whether a word is an address with a port.
fn is_endpoint(word: &str) -> bool {
    let port = word.rsplit_once([':', '.']).map(|(_, port)| port);
    port.is_some_and(|port| port.parse::<u16>().is_ok())
}

/// Reads `node_netstat_Tcp_RetransSegs 2140` of the node exporter: counters since the host booted.
pub(super) fn prometheus(text: &str, figures: &mut Figures) -> Option<PastedSection> {
    let (mut first, mut facts) = (None, Vec::new());
    let (mut sent, mut again) = (None, None);
    for (index, line) in text.lines().enumerate() {
        let Some(metric) = line.trim().strip_prefix("node_netstat_") else { continue };
        // `{instance="a"} 12`
        let name = metric.split(['{', ' ', '\t']).next().unwrap_or_default();
        let Some(value) = metric.rsplit([' ', '\t']).next().and_then(scientific) else { continue };
        first.get_or_insert(index + 1);
        match name {
            "Tcp_OutSegs" => sent = Some(value),
            "Tcp_RetransSegs" => again = Some(value),
            "TcpExt_TCPTimeouts" if value > 0.0 => {
                facts.push(format!("{value} retransmission timeouts"));
            }
            "TcpExt_TCPSynRetrans" if value > 0.0 => {
                facts.push(format!("{value} SYNs retransmitted"));
            }
            "TcpExt_ListenOverflows" | "TcpExt_TCPRcvQDrop" if value > 0.0 => {
                facts.push(format!("{name} {value}"));
            }
            _ => {}
        }
    }
    let line = first?;
    if let Some(again) = again {
        let share = sent.map_or_else(String::new, |sent: f64| {
            format!(" of {sent} ({:.2} %)", 100.0 * again / sent.max(1.0))
        });
        facts.push(format!("{again}{share} segments retransmitted, since boot"));
        let count = RetransmitCount::of("node exporter", again);
        figures.retransmits.push(RetransmitCount { sent, is_since_boot: true, ..count });
    }
    Some(PastedSection { kind: "node exporter", line, facts })
}

/// Parses `5.1234e+06`.
fn scientific(text: &str) -> Option<f64> {
    number(text)
        .or_else(|| text.parse().ok().filter(|value: &f64| value.is_finite() && *value >= 0.0))
}
