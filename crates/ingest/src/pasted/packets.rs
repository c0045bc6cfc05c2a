//! Columns of packets: those of tshark and Wireshark, as text, CSV and fields, `tcpdump -q`, and the
//! account of `tcptrace`.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use trace::tcpdump::clock;
use units::Duration;

use super::facts::{Figures, PastedSection, RetransmitCount};
use super::numbers::number;

/// Protocols that TCP does not carry.
const OTHERS: &[&str] = &[
    "UDP", "DNS", "MDNS", "LLMNR", "QUIC", "ICMP", "ICMPv6", "ARP", "NTP", "DHCP", "SSDP", "ESP",
    "SCTP", "IPv4", "IPv6", "NBNS", "STUN", "RTP",
];

/// A row of packet columns.
#[derive(Debug)]
struct PacketRow<'t> {
    time: Duration,
    src: &'t str,
    dst: &'t str,
    protocol: &'t str,
    /// Of the frame, in bytes.
    length: Option<f64>,
    info: String,
}

impl PacketRow<'_> {
    /// The two hosts in an order that does not depend on the direction.
    fn pair(&self) -> (&str, &str) {
        if self.src <= self.dst { (self.src, self.dst) } else { (self.dst, self.src) }
    }

    /// Payload of a row of TCP.
    fn payload(&self) -> Option<f64> {
        self.info.split_whitespace().find_map(|word| number(word.strip_prefix("Len=")?))
    }

    fn has(&self, text: &str) -> bool {
        self.info.contains(text)
    }
}

/// Parses `5 0.24 10.0.0.1 → 10.0.0.2 TCP 1514 [TCP Retransmission] 40000 → 5201 [ACK] ...`, with any
/// timestamp, or the same as CSV.
fn row(line: &str) -> Option<PacketRow<'_>> {
    let line = line.trim();
    if let Some(quoted) = line.strip_prefix('"') {
        let fields: Vec<&str> = quoted.trim_end_matches('"').split("\",\"").collect();
        let [index, time, src, dst, protocol, length, ref info @ ..] = fields[..] else {
            return None;
        };
        index.parse::<u64>().ok()?;
        let stamp = clock::find(time)?;
        let time = stamp.at;
        return Some(PacketRow {
            time,
            src,
            dst,
            protocol,
            length: number(length),
            info: info.join(" "),
        });
    }
    let (index, rest) = line.split_once(char::is_whitespace)?;
    index.parse::<u64>().ok()?;
    let rest = rest.trim_start();
    let stamp = clock::find(rest)?;
    let mut words = rest[stamp.len..].split_whitespace().peekable();
    let src = words.next()?;
    let _ = words.next_if(|word| matches!(*word, "→" | "->"));
    let dst = words.next()?;
    let protocol = words.next()?;
    let is_name = protocol.starts_with(|c: char| c.is_ascii_uppercase())
        && protocol.chars().all(|c| c.is_ascii_alphanumeric() || "./-_".contains(c));
    if !is_name {
        return None;
    }
    let mut info: Vec<&str> = words.collect();
    // Old versions print no length: the port is first then.
    let is_port = matches!(info.get(1), Some(&(">" | "→" | "->")));
    let length = info.first().and_then(|word| word.parse::<u32>().ok()).filter(|_| !is_port);
    if length.is_some() {
        info.remove(0);
    }
    let time = stamp.at;
    Some(PacketRow {
        time,
        src,
        dst,
        protocol,
        length: length.map(f64::from),
        info: info.join(" "),
    })
}

/// Seconds from one time to another, of 64 bits since 1970.
fn elapsed(from: Duration, to: Duration) -> f64 {
    to.as_nanos().saturating_sub(from.as_nanos()) as f64 / 1e9
}

/// Reads columns of tshark and Wireshark. Rows of protocols that TCP carries are packets of TCP, too.
pub(super) fn tshark(text: &str, figures: &mut Figures) -> Option<PastedSection> {
    let rows: Vec<(usize, PacketRow<'_>)> = text
        .lines()
        .enumerate()
        .filter_map(|(index, line)| Some((index + 1, row(line)?)))
        .collect();
    // Headers of a pair of hosts, in bytes.
    let mut headers: BTreeMap<(&str, &str), f64> = BTreeMap::new();
    let mut pairs: BTreeSet<(&str, &str)> = BTreeSet::new();
    for (_, row) in rows.iter().filter(|(_, row)| row.protocol == "TCP") {
        pairs.insert(row.pair());
        let is_plain = !row.has("[SYN");
        if let Some((length, payload)) = row.length.zip(row.payload()).filter(|_| is_plain) {
            headers.insert(row.pair(), (length - payload).max(0.0));
        }
    }
    let tcp: Vec<&(usize, PacketRow<'_>)> = rows
        .iter()
        .filter(|(_, row)| pairs.contains(&row.pair()) && !OTHERS.contains(&row.protocol))
        .collect();
    let &&(line, ref first) = tcp.first()?;
    let seconds = tcp.last().map_or(0.0, |(_, last)| elapsed(first.time, last.time));
    let (mut payload, mut carried, mut sent, mut opened) = (0.0, 0, 0, None);
    for (_, row) in &tcp {
        let data = row.payload().unwrap_or_else(|| {
            let header = headers.get(&row.pair()).copied();
            row.length.zip(header).map_or(0.0, |(length, header)| (length - header).max(0.0))
        });
        payload += data;
        carried += usize::from(row.protocol != "TCP");
        let is_syn = row.has("[SYN]");
        sent += usize::from(data > 0.0 || row.has("[SYN"));
        if is_syn && !row.has("Retransmission") {
            opened = Some(row.time);
        } else if row.has("[SYN, ACK]")
            && let Some(syn) = opened.take()
        {
            let ms = elapsed(syn, row.time) * 1e3;
            figures.rtt = figures.rtt.or(Some((ms, ms)));
        }
    }
    if seconds > 0.0 && payload > 0.0 {
        figures.rate = figures.rate.or(Some(payload * 8.0 / seconds));
        figures.seconds = figures.seconds.or(Some(seconds));
    }
    let count = |text: &str| tcp.iter().filter(|(_, row)| row.has(text)).count();
    let zero = count("[TCP ZeroWindow]") + count("[TCP Zero Window]");
    let full = count("[TCP Window Full]");
    let again = count("Retransmission]");
    figures.zero_windows += zero + full;
    figures.retransmits.push(RetransmitCount {
        sent: Some(sent as f64),
        ..RetransmitCount::of("tshark", again as f64)
    });
    let mut facts =
        vec![format!("{} packets of TCP, {payload} bytes in {seconds:.3} s", tcp.len())];
    for (count, what) in [
        (carried, "of them named by the protocol that they carry"),
        (again, "retransmissions"),
        (count("[TCP Dup ACK"), "duplicate ACKs"),
        (count("[TCP Out-Of-Order]"), "out of order"),
        (zero, "with a window of zero"),
        (full, "that fill the receive window"),
    ] {
        if count > 0 {
            facts.push(format!("{count} {what}"));
        }
    }
    Some(PastedSection { kind: "tshark", line, facts })
}

/// Columns of `tshark -T fields`.
#[derive(Debug, Default)]
struct FieldColumns {
    time: Option<usize>,
    length: Option<usize>,
    again: Option<usize>,
}

impl FieldColumns {
    /// Reads the names that `-E header=y` prints.
    fn named(line: &str) -> Option<Self> {
        let names: Vec<&str> = line.trim().split('\t').collect();
        let at = |wanted: &[&str]| names.iter().position(|name| wanted.contains(name));
        let of = Self {
            time: at(&["frame.time_relative", "frame.time_epoch"]),
            length: at(&["tcp.len"]),
            again: at(&["tcp.analysis.retransmission"]),
        };
        (names.len() > 1 && of.length.is_some()).then_some(of)
    }

    /// Guesses them from a row: a time with a fraction, two addresses, and the payload at the end.
    fn guessed(fields: &[&str]) -> Option<Self> {
        let addresses = fields.iter().filter(|field| field.parse::<IpAddr>().is_ok()).count();
        let time =
            fields.iter().position(|field| field.contains('.') && number(field).is_some())?;
        let length = fields.len().checked_sub(1)?;
        fields[length].parse::<u32>().ok()?;
        (addresses == 2 && fields.len() >= 6).then_some(Self {
            time: Some(time),
            length: Some(length),
            again: None,
        })
    }
}

/// Reads `tshark -T fields`: rows of tabs with the time, the addresses and the payload.
pub(super) fn fields(text: &str, figures: &mut Figures) -> Option<PastedSection> {
    let mut named = None;
    let (mut first, mut begin, mut end) = (None, None, 0.0);
    let (mut packets, mut data, mut again, mut payload) = (0, 0, 0, 0.0);
    for (index, line) in text.lines().enumerate() {
        named = FieldColumns::named(line).or(named);
        let cells: Vec<&str> = line.trim_end().split('\t').map(str::trim).collect();
        let guessed = if named.is_none() { FieldColumns::guessed(&cells) } else { None };
        let Some(columns) = named.as_ref().or(guessed.as_ref()) else { continue };
        let cell = |at: Option<usize>| cells.get(at?).copied();
        let Some(bytes) = cell(columns.length).and_then(number) else { continue };
        first.get_or_insert(index + 1);
        packets += 1;
        data += usize::from(bytes > 0.0);
        payload += bytes;
        again += usize::from(cell(columns.again).is_some_and(|flag| !flag.is_empty()));
        if let Some(time) = cell(columns.time).and_then(number) {
            begin.get_or_insert(time);
            end = time;
        }
    }
    let line = first.filter(|_| packets > 1)?;
    let seconds: f64 = end - begin.unwrap_or(0.0);
    if seconds > 0.0 && payload > 0.0 {
        figures.rate = figures.rate.or(Some(payload * 8.0 / seconds));
        figures.seconds = figures.seconds.or(Some(seconds));
    }
    let mut facts = vec![format!("{packets} packets, {payload} bytes in {seconds:.3} s")];
    if named.is_some_and(|columns| columns.again.is_some()) {
        figures.retransmits.push(RetransmitCount {
            sent: Some(data as f64),
            ..RetransmitCount::of("tshark -T fields", again as f64)
        });
        facts.push(format!("{again} retransmissions"));
    }
    Some(PastedSection { kind: "tshark -T fields", line, facts })
}

/// Reads `10:11:12.1 IP 10.0.0.1.45670 > 10.0.0.2.5201: tcp 1448` of `tcpdump -q`, which has no
/// sequence numbers.
pub(super) fn quiet(text: &str, figures: &mut Figures) -> Option<PastedSection> {
    let (mut first, mut packets, mut payload) = (None, 0, 0.0);
    let (mut begin, mut end) = (None, Duration::ZERO);
    for (index, line) in text.lines().enumerate() {
        let line = line.trim_start();
        let Some(stamp) = clock::find(line) else { continue };
        let Some((_, rest)) = line.split_once(": tcp ") else { continue };
        let Some(bytes) = rest.split_whitespace().next().and_then(number) else { continue };
        first.get_or_insert(index + 1);
        packets += 1;
        payload += bytes;
        end = stamp.at;
        begin.get_or_insert(end);
    }
    let line = first?;
    let seconds = elapsed(begin?, end);
    if seconds > 0.0 && payload > 0.0 {
        figures.rate = figures.rate.or(Some(payload * 8.0 / seconds));
        figures.seconds = figures.seconds.or(Some(seconds));
    }
    let facts = vec![
        format!("{packets} packets of TCP, {payload} bytes in {seconds:.3} s"),
        "without sequence numbers: print the capture without -q".to_owned(),
    ];
    Some(PastedSection { kind: "tcpdump -q", line, facts })
}

/// Reads `tcptrace -l`: of all connections the direction with most data.
pub(super) fn tcptrace(text: &str, figures: &mut Figures) -> Option<PastedSection> {
    let start = text.lines().position(|line| {
        line.contains("Ostermann's tcptrace") || line.trim_start().starts_with("actual data pkts:")
    })?;
    let mut best: BTreeMap<&str, f64> = BTreeMap::new();
    let mut directions: [BTreeMap<&str, f64>; 2] = Default::default();
    let bytes = |of: &BTreeMap<&str, f64>| of.get("actual data bytes").copied().unwrap_or(-1.0);
    // The end is the begin of a connection, too.
    for line in text.lines().chain(["TCP connection 0:"]) {
        let trimmed = line.trim();
        if trimmed.starts_with("TCP connection ") && trimmed.ends_with(':') {
            for direction in core::mem::take(&mut directions) {
                if bytes(&direction) > bytes(&best) {
                    best = direction;
                }
            }
        }
        let Some((name, rest)) = trimmed.split_once(':') else { continue };
        let value = |text: &str| text.split_whitespace().next().and_then(number);
        let second = rest.split_once(&format!("{name}:")).map(|(_, rest)| rest);
        for (direction, text) in directions.iter_mut().zip([Some(rest), second]) {
            if let Some(value) = text.and_then(value) {
                direction.insert(name, value);
            }
        }
    }
    let value = |name: &str| best.get(name).copied();
    let bytes = value("actual data bytes")?;
    let mut facts = vec![format!("{bytes} bytes of data in the direction that has most")];
    if let Some(rate) = value("throughput").map(|bytes| bytes * 8.0).filter(|rate| *rate > 0.0) {
        figures.rate = figures.rate.or(Some(rate));
        facts.push(format!("{:.2} Mbit/s", rate / 1e6));
    }
    figures.bytes = figures.bytes.or(Some(bytes));
    if let Some(again) = value("rexmt data pkts") {
        let sent = value("actual data pkts");
        figures
            .retransmits
            .push(RetransmitCount { sent, ..RetransmitCount::of("tcptrace", again) });
        facts.push(format!("{again} segments retransmitted"));
    }
    if let Some((least, mean)) =
        value("RTT min").zip(value("RTT avg")).filter(|(_, mean)| *mean > 0.0)
    {
        figures.add_rtt(least, mean, value("RTT max").unwrap_or(mean));
        facts.push(format!("round-trip time {mean} ms, {least} ms at least"));
    }
    Some(PastedSection { kind: "tcptrace", line: start + 1, facts })
}
