//! The text that iperf3 and iperf2 print: intervals and summaries of streams, of one test after
//! another.

use std::collections::BTreeMap;

use super::facts::{IperfTransfer, PastedSection, WindowSamples};
use super::numbers::{binary, bits_per_second, bytes, leading, number};

/// A line of an interval or of a summary.
#[derive(Debug, Clone, PartialEq)]
struct IperfLine<'t> {
    /// From 1.
    number: usize,
    stream: &'t str,
    /// `TX-C`, `RX-C` of a test in both directions.
    role: &'t str,
    from: f64,
    to: f64,
    bytes: f64,
    rate: f64,
    /// Words after the rate.
    rest: Vec<&'t str>,
}

impl IperfLine<'_> {
    /// `sender` or `receiver` of a summary.
    fn end(&self) -> Option<&str> {
        self.rest.iter().copied().find(|word| matches!(*word, "sender" | "receiver"))
    }

    fn is_sum(&self) -> bool {
        self.stream.starts_with("SUM")
    }
}

/// Most brackets of a line that are tried.
const MOST_BRACKETS: usize = 16;

/// Parses `[  5]   0.00-1.00   sec  1.12 MBytes  9.43 Mbits/sec   12   42.4 KBytes`; a prompt or `^C`
/// may be before it.
fn parse(line: &str, number: usize) -> Option<IperfLine<'_>> {
    let mut brackets = line.match_indices('[').take(MOST_BRACKETS);
    brackets.find_map(|(at, _)| parse_at(&line[at + 1..], number))
}

fn parse_at(text: &str, index: usize) -> Option<IperfLine<'_>> {
    let (stream, mut rest) = text.split_once(']')?;
    let mut role = "";
    if let Some((tag, after)) = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        (role, rest) = (tag.trim(), after);
    }
    // iperf2 writes `0.0-10.0 sec` and, for short times, `0.0- 1.0 sec`.
    let (from, rest) = rest.trim_start().split_once('-')?;
    let (to, rest) = rest.trim_start().split_once(char::is_whitespace)?;
    let mut words = rest.split_whitespace();
    if !matches!(words.next()?, "sec" | "s") {
        return None;
    }
    let bytes = bytes(words.next()?, words.next()?)?;
    let rate = bits_per_second(words.next()?, words.next()?)?;
    let (from, to) = (number(from)?, number(to)?);
    let (stream, rest) = (stream.trim(), words.collect());
    Some(IperfLine { number: index, stream, role, from, to, bytes, rate, rest })
}

/// Lines of one test.
#[derive(Debug, Default)]
struct IperfRun<'t> {
    lines: Vec<IperfLine<'t>>,
    streams: BTreeMap<(&'t str, &'t str), StreamLines>,
    /// It has the line of a sender or receiver.
    has_end: bool,
    /// A stream has a line from 0 on after another line.
    has_total: bool,
    connected: Option<ConnectedLine>,
    is_reverse: bool,
    is_udp: bool,
}

/// The lines of a stream in one role.
#[derive(Debug, Default)]
struct StreamLines {
    count: usize,
    /// Index of the last line.
    last: usize,
    /// It has the line of the sender, of the receiver.
    ends: [bool; 2],
}

/// Index of `sender` and `receiver`.
fn end_index(end: &str) -> usize {
    usize::from(end == "receiver")
}

impl<'t> IperfRun<'t> {
    /// Whether the test has its summary.
    fn is_finished(&self) -> bool {
        self.has_end || self.has_total
    }

    fn push(&mut self, line: IperfLine<'t>) {
        let any_role = (line.stream, "")..;
        self.has_total |= line.from == 0.0
            && self.streams.range(any_role).next().is_some_and(|((of, _), _)| *of == line.stream);
        let stream = self.streams.entry((line.stream, line.role)).or_default();
        stream.count += 1;
        stream.last = self.lines.len();
        if let Some(end) = line.end() {
            stream.ends[end_index(end)] = true;
            self.has_end = true;
        }
        self.lines.push(line);
    }

    /// Whether a line cannot be of the same test.
    fn is_before(&self, next: &IperfLine<'t>) -> bool {
        let same = self.streams.get(&(next.stream, next.role));
        match (next.end(), same) {
            (Some(end), same) => same.is_some_and(|same| same.ends[end_index(end)]),
            (None, _) if self.has_end => true,
            (None, None) => false,
            // iperf2 has no word for a summary: the line from 0 to the end.
            (None, Some(same)) => {
                let last = &self.lines[same.last];
                if same.count > 1 {
                    return last.from == 0.0;
                }
                // A summary of one interval has the same figures.
                let is = |a: f64, b: f64| a.total_cmp(&b).is_eq();
                is(last.from, next.from) && is(last.to, next.to) && !is(last.bytes, next.bytes)
            }
        }
    }
}

/// Whether a line begins a test.
fn begins(line: &str) -> bool {
    ["Connecting to host", "Client connecting to", "Server listening on", "Accepted connection"]
        .iter()
        .any(|text| line.contains(text))
        || is_command(line)
}

fn is_command(line: &str) -> bool {
    line.split(['`', ' ', '/', '$', '#'])
        .any(|word| matches!(word, "iperf3" | "iperf" | "iperf.exe" | "iperf3.exe"))
        && (line.contains(" -c") || line.contains(" -s") || line.contains(" --client"))
}

/// Reads all tests of a text, each direction of a test in both as one.
pub(super) fn transfers(text: &str) -> Vec<(IperfTransfer, PastedSection)> {
    let mut runs: Vec<IperfRun<'_>> = vec![IperfRun::default()];
    for (index, line) in text.lines().enumerate() {
        // What iperf3 leaves out (`-O`) is not part of the test.
        let parsed = parse(line, index + 1).filter(|line| !line.rest.contains(&"(omitted)"));
        let Some(run) = runs.last() else { break };
        let is_new = match &parsed {
            Some(next) => run.is_before(next),
            None if begins(line) => !run.lines.is_empty(),
            None => run.is_finished() && connected(line).is_some(),
        };
        if is_new {
            runs.push(IperfRun::default());
        }
        let Some(run) = runs.last_mut() else { break };
        if begins(line) && run.lines.is_empty() {
            let words = || line.split([' ', '`']);
            run.is_reverse |= words().any(|word| matches!(word, "-R" | "--reverse"));
            run.is_udp |= words().any(|word| matches!(word, "-u" | "--udp"));
        }
        run.is_reverse |= line.contains("Reverse mode");
        run.is_udp |= line.contains("Datagrams") || line.contains(", UDP port");
        if run.connected.is_none() {
            run.connected = connected(line);
        }
        if let Some(line) = parsed {
            run.push(line);
        }
    }
    runs.retain(|run| !run.lines.is_empty());
    let mut found = Vec::new();
    for run in &runs {
        let mut roles: Vec<&str> = run.lines.iter().map(|line| line.role).collect();
        roles.sort_unstable();
        roles.dedup();
        found.extend(roles.into_iter().map(|role| transfer(run, role)));
    }
    found
}

/// Reads one direction of a test.
fn transfer(run: &IperfRun<'_>, role: &str) -> (IperfTransfer, PastedSection) {
    let lines: Vec<&IperfLine<'_>> = run.lines.iter().filter(|line| line.role == role).collect();
    let first = lines.first().map_or(1, |line| line.number);
    let mut of = IperfTransfer { line: first, is_udp: run.is_udp, ..IperfTransfer::default() };
    let mut facts = Vec::new();
    if let Some(connected) = &run.connected {
        facts.push(format!("{} to {}", connected.local, connected.remote));
        (of.peer, of.port) = (Some(connected.remote.clone()), connected.port);
    }
    if run.is_reverse || role.starts_with("RX") {
        facts.push("the other host sends".to_owned());
    }
    let longest = lines.iter().map(|line| line.to).fold(0.0, f64::max);
    let whole =
        |line: &IperfLine<'_>| line.end().is_some() || line.from == 0.0 && line.to >= longest;
    let totals: Vec<&IperfLine<'_>> = lines.iter().copied().filter(|line| whole(line)).collect();
    let mut names: Vec<&str> =
        lines.iter().filter(|line| !line.is_sum()).map(|line| line.stream).collect();
    names.sort_unstable();
    names.dedup();
    of.streams = names.len();
    let of_end = |end: &str| {
        let mut ended = totals.iter().filter(|line| line.end() == Some(end));
        ended.clone().find(|line| line.is_sum()).or_else(|| ended.next()).copied()
    };
    let total = of_end("receiver").filter(|line| line.bytes > 0.0).or_else(|| of_end("sender"));
    let total = total.or_else(|| totals.iter().find(|line| line.is_sum()).copied());
    let total = total.or_else(|| totals.first().copied());
    let intervals: Vec<&IperfLine<'_>> =
        lines.iter().copied().filter(|line| !line.is_sum() && !whole(line)).collect();
    let streams = match names.len() {
        0 => String::new(),
        1 => " in 1 stream".to_owned(),
        count => format!(" in {count} streams"),
    };
    if let Some(total) = total {
        (of.rate, of.bytes) = (Some(total.rate), Some(total.bytes));
        of.seconds = Some(total.to - total.from);
        let (rate, time) = (total.rate / 1e6, total.to - total.from);
        facts.push(format!("{rate:.2} Mbit/s for {time:.1} s{streams}"));
    } else if !intervals.is_empty() {
        let mean = intervals.iter().map(|line| line.rate).sum::<f64>() / intervals.len() as f64;
        of.rate = Some(mean * names.len() as f64);
        of.bytes = Some(intervals.iter().map(|line| line.bytes).sum());
        facts.push(format!("{:.2} Mbit/s a stream, without a summary", mean / 1e6));
    }
    datagrams(total, &mut of, &mut facts);
    if !of.is_udp {
        extended(&lines, total, &mut of, &mut facts);
        window(of_end("sender"), &intervals, &mut of, &mut facts);
    }
    let rates: Vec<f64> = intervals.iter().map(|line| line.rate).collect();
    if rates.len() > 2 {
        let least = rates.iter().copied().fold(f64::MAX, f64::min);
        let most = rates.iter().copied().fold(0.0, f64::max);
        facts.push(format!("intervals from {:.2} to {:.2} Mbit/s", least / 1e6, most / 1e6));
        of.stalls = Some(rates.iter().filter(|rate| **rate == 0.0).count());
    }
    (of, PastedSection { kind: "iperf", line: first, facts })
}

/// Reads `0.012 ms  37/8500 (0.44%)` of UDP; iperf2 writes `37/ 8500`.
fn datagrams(total: Option<&IperfLine<'_>>, of: &mut IperfTransfer, facts: &mut Vec<String>) {
    let Some(total) = total else { return };
    // The jitter comes before it; iperf2's `Write/Err` of TCP has none.
    let Some(at) = total.rest.iter().position(|word| *word == "ms") else { return };
    let Some((lost, all)) = total.rest.get(at + 1).and_then(|word| word.split_once('/')) else {
        return;
    };
    let all =
        if all.is_empty() { total.rest.get(at + 2).copied().unwrap_or_default() } else { all };
    if let Some((lost, all)) = number(lost).zip(number(all)) {
        of.is_udp = true;
        if all > 0.0 {
            of.datagrams_lost = Some(lost / all);
            facts.push(format!("{lost} of {all} datagrams of UDP lost"));
        }
    }
}

/// Reads the columns `Write/Err  Rtry  Cwnd/RTT` of `iperf -e` (iperf 2).
fn extended(
    lines: &[&IperfLine<'_>],
    total: Option<&IperfLine<'_>>,
    of: &mut IperfTransfer,
    facts: &mut Vec<String>,
) {
    let columns = |line: &IperfLine<'_>| {
        let [writes, again, state, ..] = line.rest[..] else { return None };
        let (written, errors) = writes.split_once('/')?;
        number(written).and(number(errors))?;
        let (window, trip) = state.split_once('/').unwrap_or((state, ""));
        let trip = leading(trip).map(|(value, _)| value / 1e3);
        Some((number(again)?, binary(window)?, trip))
    };
    let rows: Vec<_> = lines.iter().filter_map(|line| columns(line)).collect();
    if rows.is_empty() {
        return;
    }
    let again = total
        .and_then(columns)
        .map_or_else(|| rows.iter().map(|row| row.0).sum(), |(again, ..)| again);
    of.retransmits = Some(again);
    facts.push(format!("{again} segments retransmitted"));
    of.windows = samples(&rows.iter().map(|row| row.1).collect::<Vec<_>>(), facts);
    let trips: Vec<f64> = rows.iter().filter_map(|row| row.2).filter(|trip| *trip > 0.0).collect();
    if !trips.is_empty() {
        let least = trips.iter().copied().fold(f64::MAX, f64::min);
        let mean = trips.iter().sum::<f64>() / trips.len() as f64;
        of.rtt = Some((least, mean));
        facts.push(format!("round-trip time {mean:.1} ms, {least:.1} ms at least"));
    }
}

/// Reads the columns Retr and Cwnd.
fn window(
    sender: Option<&IperfLine<'_>>,
    intervals: &[&IperfLine<'_>],
    of: &mut IperfTransfer,
    facts: &mut Vec<String>,
) {
    if of.retransmits.is_some() {
        return;
    }
    let first = |line: &IperfLine<'_>| line.rest.first().and_then(|word| number(word));
    let sizes: Vec<f64> =
        intervals.iter().filter_map(|line| bytes(line.rest.get(1)?, line.rest.get(2)?)).collect();
    let counted =
        (!sizes.is_empty()).then(|| intervals.iter().filter_map(|line| first(line)).sum());
    if let Some(retransmits) = sender.and_then(first).or(counted) {
        of.retransmits = Some(retransmits);
        facts.push(format!("{retransmits} segments retransmitted"));
    }
    if !sizes.is_empty() {
        of.windows = samples(&sizes, facts);
    }
}

fn samples(sizes: &[f64], facts: &mut Vec<String>) -> Option<WindowSamples> {
    let least = sizes.iter().copied().fold(f64::MAX, f64::min);
    let most = sizes.iter().copied().fold(0.0, f64::max);
    let mean = sizes.iter().sum::<f64>() / sizes.len() as f64;
    facts.push(format!("cwnd {:.0} to {:.0} kB", least / 1e3, most / 1e3));
    Some(WindowSamples { least, mean, most, count: sizes.len() })
}

#[derive(Debug)]
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
    if words.get(with.checked_sub(1)?) != Some(&"connected") {
        return None;
    }
    let port = words.get(with + 3).and_then(|word| word.parse().ok());
    Some(ConnectedLine {
        local: (*words.get(at + 1)?).to_owned(),
        remote: (*words.get(with + 1)?).to_owned(),
        port,
    })
}
