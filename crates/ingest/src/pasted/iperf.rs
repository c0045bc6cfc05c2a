//! The text that iperf3 and iperf2 print: intervals and summaries of streams.

use super::facts::{Figures, PastedSection};
use super::numbers::{bits_per_second, bytes, number};

/// A line of an interval or of a summary.
#[derive(Debug, Clone, PartialEq)]
struct IperfLine<'t> {
    stream: &'t str,
    from: f64,
    to: f64,
    bytes: f64,
    rate: f64,
    /// Words after the rate.
    rest: Vec<&'t str>,
}

/// Parses `[  5]   0.00-1.00   sec  1.12 MBytes  9.43 Mbits/sec   12   42.4 KBytes`.
fn parse(line: &str) -> Option<IperfLine<'_>> {
    let (stream, rest) = line.trim_start().strip_prefix('[')?.split_once(']')?;
    // iperf2 writes `0.0-10.0 sec` and, for short times, `0.0- 1.0 sec`.
    let rest = rest.trim_start();
    let (from, rest) = rest.split_once('-')?;
    let (to, rest) = rest.trim_start().split_once(char::is_whitespace)?;
    let mut words = rest.split_whitespace();
    if !matches!(words.next()?, "sec" | "s") {
        return None;
    }
    let bytes = bytes(words.next()?, words.next()?)?;
    let rate = bits_per_second(words.next()?, words.next()?)?;
    let (from, to) = (number(from)?, number(to)?);
    Some(IperfLine { stream: stream.trim(), from, to, bytes, rate, rest: words.collect() })
}

/// Reads all lines of a text.
pub(super) fn section(text: &str, figures: &mut Figures) -> Option<PastedSection> {
    let lines: Vec<(usize, IperfLine<'_>)> = text
        .lines()
        .enumerate()
        .filter_map(|(index, line)| Some((index + 1, parse(line)?)))
        .collect();
    let first = lines.first()?.0;
    let mut facts = Vec::new();
    if let Some(connected) = text.lines().find_map(connected) {
        facts.push(format!("{} to {}", connected.local, connected.remote));
        figures.peer.get_or_insert(connected.remote.clone());
        figures.port = figures.port.or(connected.port);
    }
    let is_summary =
        |line: &IperfLine<'_>| line.rest.iter().any(|word| matches!(*word, "sender" | "receiver"));
    let longest = lines.iter().map(|(_, line)| line.to).fold(0.0, f64::max);
    // iperf2 has no word for it: the line from 0 to the end.
    let whole = |line: &IperfLine<'_>| is_summary(line) || line.from == 0.0 && line.to >= longest;
    let totals: Vec<&IperfLine<'_>> =
        lines.iter().map(|(_, line)| line).filter(|line| whole(line)).collect();
    let sums: Vec<&&IperfLine<'_>> = totals.iter().filter(|line| line.stream == "SUM").collect();
    let streams = lines.iter().filter(|(_, line)| line.stream != "SUM");
    let mut names: Vec<&str> = streams.clone().map(|(_, line)| line.stream).collect();
    names.sort_unstable();
    names.dedup();
    figures.streams = Some(names.len());
    let of = |word: &str| {
        let sum = sums.iter().find(|line| line.rest.contains(&word)).map(|line| **line);
        sum.or_else(|| totals.iter().find(|line| line.rest.contains(&word)).copied())
    };
    let total = of("receiver")
        .or_else(|| of("sender"))
        .or_else(|| sums.first().map(|line| **line).or_else(|| totals.first().copied()));
    let intervals: Vec<&IperfLine<'_>> =
        streams.clone().map(|(_, line)| line).filter(|line| !whole(line)).collect();
    if let Some(total) = total {
        figures.rate = Some(total.rate);
        figures.bytes = Some(total.bytes);
        figures.seconds = Some(total.to - total.from);
        let (rate, time) = (total.rate / 1e6, total.to - total.from);
        facts.push(format!("{rate:.2} Mbit/s for {time:.1} s in {} streams", names.len()));
    } else if !intervals.is_empty() {
        let mean = intervals.iter().map(|line| line.rate).sum::<f64>() / intervals.len() as f64;
        figures.rate = Some(mean * names.len() as f64);
        facts.push(format!("{:.2} Mbit/s a stream, without a summary", mean / 1e6));
    }
    datagrams(total, figures, &mut facts);
    if figures.datagrams_lost.is_none() {
        window(of("sender"), &intervals, figures, &mut facts);
    }
    let rates: Vec<f64> = intervals.iter().map(|line| line.rate).collect();
    if rates.len() > 2 {
        let least = rates.iter().copied().fold(f64::MAX, f64::min);
        let most = rates.iter().copied().fold(0.0, f64::max);
        facts.push(format!("intervals from {:.2} to {:.2} Mbit/s", least / 1e6, most / 1e6));
        figures.stalls = Some(rates.iter().filter(|rate| **rate == 0.0).count());
    }
    Some(PastedSection { kind: "iperf", line: first, facts })
}

/// Reads `0.012 ms  37/8500 (0.44%)` of UDP.
fn datagrams(total: Option<&IperfLine<'_>>, figures: &mut Figures, facts: &mut Vec<String>) {
    let Some(total) = total else { return };
    let Some(at) = total.rest.iter().position(|word| word.contains('/')) else { return };
    let Some((lost, all)) = total.rest[at].split_once('/') else { return };
    if let Some((lost, all)) = number(lost).zip(number(all)).filter(|(_, all)| *all > 0.0) {
        figures.datagrams_lost = Some(lost / all);
        facts.push(format!("{lost} of {all} datagrams of UDP lost"));
    }
}

/// Reads the columns Retr and Cwnd.
fn window(
    sender: Option<&IperfLine<'_>>,
    intervals: &[&IperfLine<'_>],
    figures: &mut Figures,
    facts: &mut Vec<String>,
) {
    let first = |line: &IperfLine<'_>| line.rest.first().and_then(|word| number(word));
    let counted = intervals.iter().filter_map(|line| first(line)).sum::<f64>();
    let has_column = intervals.iter().any(|line| line.rest.len() >= 3);
    if let Some(retransmits) = sender.and_then(first).or(has_column.then_some(counted)) {
        figures.retransmits = Some(retransmits);
        facts.push(format!("{retransmits} segments retransmitted"));
    }
    let windows: Vec<f64> =
        intervals.iter().filter_map(|line| bytes(line.rest.get(1)?, line.rest.get(2)?)).collect();
    if windows.is_empty() {
        return;
    }
    let least = windows.iter().copied().fold(f64::MAX, f64::min);
    let most = windows.iter().copied().fold(0.0, f64::max);
    let mean = windows.iter().sum::<f64>() / windows.len() as f64;
    figures.cwnd = Some((least, mean, most));
    facts.push(format!("cwnd {:.0} to {:.0} kB", least / 1e3, most / 1e3));
}

struct ConnectedLine {
    local: String,
    remote: String,
    port: Option<u16>,
}

/// Parses `[  5] local 10.0.0.1 port 45670 connected to 10.0.0.2 port 5201`.
fn connected(line: &str) -> Option<ConnectedLine> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let at = words.iter().position(|word| *word == "local")?;
    let with = words.iter().position(|word| matches!(*word, "to" | "with"))?;
    let port = words.get(with + 3).and_then(|word| word.parse().ok());
    Some(ConnectedLine {
        local: (*words.get(at + 1)?).to_owned(),
        remote: (*words.get(with + 1)?).to_owned(),
        port,
    })
}
