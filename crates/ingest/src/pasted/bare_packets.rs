//! Packets of tcpdump without their times: `-t`, and `-ttt`, which prints the time since the previous packet.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use trace::tcpdump::clock;
use units::Duration;

use super::facts::{Figures, PastedSection, RetransmitCount};
use super::numbers::number;

/// A line of TCP: `IP 10.0.0.1.40000 > 10.0.0.2.443: Flags [.], seq 1:1449, ack 1, win 502, length 1448`.
struct BareLine<'t> {
    from: &'t str,
    to: &'t str,
    flags: &'t str,
    /// First and last byte as printed.
    range: Option<(u64, u64)>,
    ack: Option<u64>,
    window: Option<u64>,
    length: u64,
    is_sacked: bool,
}

impl<'t> BareLine<'t> {
    fn parse(line: &'t str) -> Option<Self> {
        let line = line.trim_start();
        let rest = line.strip_prefix("IP6 ").or_else(|| line.strip_prefix("IP "))?;
        let (from, rest) = rest.split_once(" > ")?;
        let (to, rest) = rest.split_once(": Flags [")?;
        let (flags, rest) = rest.split_once(']')?;
        let after = |name: &str| {
            let (_, text) = rest.split_once(name)?;
            Some(text.split([',', ' ']).next().unwrap_or_default())
        };
        let range = after(", seq ").and_then(|range| {
            let (begin, end) = range.split_once(':')?;
            Some((begin.parse().ok()?, end.parse().ok()?))
        });
        let of = |name| after(name).and_then(|text| text.parse().ok());
        let length = of(", length ")?;
        let is_sacked =
            rest.contains("sack 1 {") || rest.contains("sack 2 {") || rest.contains("sack 3 {");
        Some(Self {
            from,
            to,
            flags,
            range,
            ack: of(", ack "),
            window: of(", win "),
            length,
            is_sacked,
        })
    }
}

/// Whether a text has packets of tcpdump without a time.
pub fn has_no_times(text: &str) -> bool {
    let mut lines = text.lines().filter(|line| line.contains(": Flags ["));
    let is_bare = |line: &str| clock::find(line.trim_start()).is_none();
    lines.clone().any(|line| BareLine::parse(line).is_some()) && lines.all(is_bare)
}

/// Reads the packets of `tcpdump -t`: what was retransmitted, acknowledged twice and closed, but no rate.
pub(super) fn untimed(text: &str, figures: &mut Figures) -> Option<PastedSection> {
    if !has_no_times(text) {
        return None;
    }
    let (mut first, mut packets, mut payload) = (None, 0, 0);
    let (mut data, mut again, mut zero, mut duplicates, mut sacks, mut resets) = (0, 0, 0, 0, 0, 0);
    let mut sent: BTreeSet<(&str, &str, u64)> = BTreeSet::new();
    let mut acked: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    let mut pairs: BTreeSet<(&str, &str)> = BTreeSet::new();
    for (index, line) in text.lines().enumerate() {
        let Some(line) = BareLine::parse(line) else { continue };
        first.get_or_insert(index + 1);
        packets += 1;
        payload += line.length;
        pairs.insert((line.from.min(line.to), line.from.max(line.to)));
        resets += usize::from(line.flags.contains('R'));
        zero += usize::from(line.window == Some(0) && !line.flags.contains('R'));
        sacks += usize::from(line.is_sacked);
        // A number after the SYN is relative, that of the SYN is not.
        if let Some((begin, _)) =
            line.range.filter(|_| line.length > 0 && !line.flags.contains('S'))
        {
            data += 1;
            again += usize::from(!sent.insert((line.from, line.to, begin)));
        } else if let Some(ack) = line.ack.filter(|_| line.length == 0 && line.flags == ".") {
            duplicates += usize::from(acked.insert((line.from, line.to), ack) == Some(ack));
        }
    }
    let line = first?;
    figures.bytes = figures.bytes.or(Some(payload as f64));
    figures.zero_windows += zero;
    let count = RetransmitCount::of("tcpdump -t", again as f64);
    figures.retransmits.push(RetransmitCount { sent: Some(f64::from(data)), ..count });
    if figures.peer.is_none() {
        // The host that most packets with data go to is not known: the first line names one.
        let to = text.lines().find_map(BareLine::parse).map(|line| line.to);
        let (host, port) = to.and_then(|to| to.rsplit_once('.')).unzip();
        figures.peer = host.map(str::to_owned);
        figures.port = figures.port.or(port.and_then(|port| port.parse().ok()));
    }
    let mut facts = vec![format!(
        "{packets} packets of TCP in {} connections, {payload} bytes of payload",
        pairs.len()
    )];
    for (count, what) in [
        (again, "segments of data that begin where one before did: retransmissions"),
        (duplicates, "ACKs that repeat the one before: duplicates or updates of the window"),
        (sacks, "ACKs with SACK blocks: data is missing before them"),
        (zero, "with a window of zero"),
        (resets, "resets"),
    ] {
        if count > 0 {
            facts.push(format!("{count} {what}"));
        }
    }
    facts.push(
        "without times, so without rates and round trips: print the capture without -t".into(),
    );
    Some(PastedSection { kind: "tcpdump -t", line, facts })
}

/// Returns a text of `tcpdump -ttt` with the times since its first packet; `None` for any other. The first
/// time is zero, and at least a quarter of the others go back: about half of the gaps are shorter than the
/// one before, but times that a capture reorders are rare.
pub fn with_running_times(text: &str) -> Option<String> {
    let stamp = |line: &str| {
        let body = line.trim_start();
        let found =
            clock::find(body).filter(|found| found.clock == clock::TimestampKind::TimeOfDay)?;
        let at = line.len() - body.len();
        let follows = body[found.len..].trim_start();
        follows.starts_with("IP").then_some((at, found))
    };
    let times: Vec<Duration> = text.lines().filter_map(|line| Some(stamp(line)?.1.at)).collect();
    let back = times.windows(2).filter(|pair| pair[1] < pair[0]).count();
    if times.len() < 3 || times[0] != Duration::ZERO || back * 4 < times.len() - 1 {
        return None;
    }
    let (mut out, mut now) = (String::with_capacity(text.len()), Duration::ZERO);
    for line in text.split_inclusive('\n') {
        let Some((at, found)) = stamp(line) else {
            out.push_str(line);
            continue;
        };
        now = Duration::from_nanos(now.as_nanos().saturating_add(found.at.as_nanos()));
        let micros = now.as_nanos() / 1_000;
        let (seconds, fraction) = (micros / 1_000_000, micros % 1_000_000);
        let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
        let seconds = seconds % 60;
        out.push_str(&line[..at]);
        let _ = write!(out, "{hours:02}:{minutes:02}:{seconds:02}.{fraction:06}");
        out.push_str(&line[at + found.len..]);
    }
    Some(out)
}

/// Reads an excerpt of the JSON of iperf3 that begins within a document: objects with a rate.
pub(super) fn json_excerpt(text: &str, figures: &mut Figures) -> Option<PastedSection> {
    let line = text.lines().position(|line| line.contains("\"bits_per_second\""))? + 1;
    let (mut rates, mut trips) = (Vec::new(), Vec::new());
    let (mut bytes, mut seconds, mut again) = (0.0, 0.0, None);
    for object in text.split(['{', '}']) {
        let field = |name: &str| {
            let (_, rest) = object.split_once(&format!("\"{name}\""))?;
            let value = rest.trim_start().strip_prefix(':')?.trim_start();
            number(value.split([',', '\n', ' ', ']']).next()?)
        };
        let Some(rate) = field("bits_per_second") else { continue };
        // A sum repeats its streams.
        if field("snd_cwnd").is_none() && field("socket").is_none() && !rates.is_empty() {
            continue;
        }
        rates.push(rate);
        bytes += field("bytes").unwrap_or(0.0);
        seconds += field("seconds").unwrap_or(0.0);
        again = field("retransmits").map(|count| count + again.unwrap_or(0.0)).or(again);
        // In microseconds.
        trips.extend(field("rtt").filter(|rtt| *rtt > 0.0).map(|rtt| rtt / 1e3));
    }
    let count = rates.len() as f64;
    let rate = (count > 0.0).then(|| rates.iter().sum::<f64>() / count)?;
    figures.rate = figures.rate.or(Some(rate));
    let mut facts =
        vec![format!("{:.2} Mbit/s: mean of {count} intervals of an excerpt", rate / 1e6)];
    if let Some(again) = again {
        facts.push(format!("{again} segments retransmitted in {seconds:.1} s"));
        let sent = (bytes > 0.0).then(|| bytes / super::facts::MSS);
        figures.retransmits.push(RetransmitCount { sent, ..RetransmitCount::of("iperf", again) });
    }
    if !trips.is_empty() {
        let least = trips.iter().copied().fold(f64::MAX, f64::min);
        let mean = trips.iter().sum::<f64>() / trips.len() as f64;
        let most = trips.iter().copied().fold(0.0, f64::max);
        figures.add_rtt(least, mean, most);
        facts.push(format!("round-trip time {mean:.1} ms, {least:.1} ms at least"));
    }
    Some(PastedSection { kind: "iperf", line, facts })
}
