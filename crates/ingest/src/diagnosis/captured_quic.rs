//! QUIC connections of captures, as text.

mod json;

use core::fmt::Write;

use diagnose::quic::captured::{
    CapturedHandshake, CapturedQuicAnalysis, CapturedQuicDirection, ONE_RTT, SpinBit, SpinVerdict,
};
use diagnose::quic::rates::RateHistory;
use diagnose::quic::time;
use diagnose::rules::{Finding, many, percent, rate, size};
use packet::Dir;
use scenario::ReportStyle;
use units::Duration;

use super::FileReport;
use super::text::{BAR, FindingSite, finding};
use crate::inputs::{CapturedQuicConnection, QuicClientHello};

pub(super) use json::CapturedQuicJson;

/// Most connections with a row in the table.
const TABLE: usize = 20;
/// Most connection IDs, addresses and sizes shown of a connection.
const SHOWN: usize = 3;
/// Largest datagram of an Ethernet link, in bytes of UDP payload: 1,500 less the headers of IPv4 and UDP.
const ETHERNET: u32 = 1_472;

/// What a capture does not show of QUIC, and what does.
pub const UNSEEN: [&str; 8] = [
    "A capture without keys shows QUIC's datagrams, not its packets: packet numbers, ACKs and all other",
    "frames are encrypted. Losses, retransmissions, reordering, windows, flow control and what limited the",
    "sender cannot be seen, nor which bytes were retransmitted, nor how it ended.",
    "Connection IDs that the hosts agree on later are encrypted too: a deliberate migration looks like the",
    "end of a connection. Log on a host instead, and pass the log to ackclock diagnose:",
    "  quic-go, neqo: QLOGDIR in the environment | ngtcp2: --qlog-dir | quinn: TransportConfig::qlog_stream",
    "  quiche: Connection::set_qlog | picoquic: picoquic_set_qlog",
    "  Chromium: --log-net-log=FILE, a NetLog",
];

/// Writes the table and the connections of a file, at most `limit`, and what they do not show.
pub(super) fn connections(report: &FileReport, limit: usize, out: &mut String) {
    let all = &report.captured_quic;
    if all.is_empty() {
        return;
    }
    if all.len() > 1 {
        table(all, out);
    }
    for one in all.iter().take(limit) {
        out.push('\n');
        out.push_str(&text(one, report));
    }
    if all.len() > limit {
        let left = many((all.len() - limit) as u64, "more connection");
        let _ = writeln!(out, "\n{left} of QUIC not shown (--limit {})", all.len());
    }
    let left_out = report.file.quic.left_out;
    if left_out > 0 {
        let _ = writeln!(out, "\n{} of QUIC not analysed", many(left_out, "more connection"));
    }
    if all.iter().all(|one| one.is_decrypted) {
        return;
    }
    if let Some(secrets) = unmatched_secrets(report) {
        let _ = writeln!(
            out,
            "\nThe keys do not match: none of the secrets of {} is of a connection of QUIC in this capture.",
            many(secrets, "connection")
        );
    }
    out.push('\n');
    UNSEEN.iter().for_each(|line| {
        let _ = writeln!(out, "{line}");
    });
}

/// The number of connections whose secrets were given, if they are of none of the capture.
pub(super) fn unmatched_secrets(report: &FileReport) -> Option<u64> {
    let all = &report.captured_quic;
    let secrets = report.file.quic.secrets;
    (secrets > 0 && !all.is_empty() && all.iter().all(|one| !one.is_decrypted)).then_some(secrets)
}

fn table(all: &[CapturedQuicConnection], out: &mut String) {
    let head = ["quic", "client > server", "version", "handshake", "sent", "received", "time"];
    let mut rows = vec![head.map(str::to_owned)];
    for one in all.iter().take(TABLE) {
        let analysis = &one.analysis;
        let [sent, received] = analysis.directions.each_ref().map(|dir| size(dir.bytes));
        rows.push([
            one.number.to_string(),
            format!("{} > {}", one.ends.src, one.ends.dst),
            version(one),
            analysis.handshake.duration().map_or_else(|| "-".to_owned(), time),
            sent,
            received,
            time(analysis.duration()),
        ]);
    }
    let widths: [usize; 7] =
        core::array::from_fn(|column| rows.iter().map(|row| row[column].len()).max().unwrap_or(0));
    out.push('\n');
    for row in &rows {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(widths).enumerate() {
            let _ = match column {
                1 | 2 => write!(line, "{cell:<width$}  "),
                _ => write!(line, "{cell:>width$}  "),
            };
        }
        let _ = writeln!(out, "{}", line.trim_end());
    }
    if all.len() > TABLE {
        let _ = writeln!(out, "... and {} more (--json has all)", all.len() - TABLE);
    }
}

/// The version of the connection: that of the server's packets, or the client's.
fn version(one: &CapturedQuicConnection) -> String {
    let of_server = one.versions.iter().rfind(|(dir, _)| *dir == Dir::Reverse);
    let last = of_server.or(one.versions.last());
    last.map_or_else(|| "unknown".to_owned(), |(_, version)| version.to_string())
}

/// A connection as text.
pub fn text(one: &CapturedQuicConnection, report: &FileReport) -> String {
    let mut out = String::new();
    let analysis = &one.analysis;
    let [client, server] = &analysis.directions;
    let _ = writeln!(
        out,
        "quic {}  {} > {}  QUIC {}  {} from the client, {} from the server in {}",
        one.number,
        one.ends.src,
        one.ends.dst,
        version(one),
        size(client.bytes),
        size(server.bytes),
        time(analysis.duration())
    );
    let _ = writeln!(
        out,
        "  frames {}..{} at {:.3} s{}",
        analysis.frames.0,
        analysis.frames.1,
        report.seconds(analysis.interval.0),
        if one.has_opening { "" } else { "; the beginning was not captured" }
    );
    let mut row = |label: &str, text: String| {
        let _ = writeln!(out, "  | {label:<10} {text}");
    };
    if let Some(text) = versions(one) {
        row("versions", text);
    }
    if let Some(hello) = &one.client_hello {
        row("hello", client_hello(hello));
    }
    for text in handshake(&analysis.handshake) {
        row("handshake", text);
    }
    if let Some(text) = spin(&analysis.spin) {
        row("spin bit", text);
    }
    for (name, direction) in [("client", client), ("server", server)] {
        if direction.datagrams > 0 {
            row(name, datagrams(direction));
        }
    }
    let dir = analysis.main_dir();
    let from = if dir == Dir::Forward { "client" } else { "server" };
    if let Some(bar) = rate_bar(&analysis.rates, dir as usize) {
        row("rate", format!("[{bar}] from the {from}"));
        row("", rates(analysis, dir));
    }
    let silences = &analysis.silences;
    if silences.count > 0 {
        row(
            "silences",
            format!(
                "{} of at least {}, {} in all; longest {} between frames {} and {}",
                silences.count,
                time(silences.threshold),
                time(silences.ns),
                time(silences.longest),
                silences.frames.0,
                silences.frames.1
            ),
        );
    }
    if let Some(text) = marks(&analysis.directions) {
        row("ECN", text);
    }
    row("ids", ids(one));
    for moved in one.migrations.iter().take(SHOWN) {
        let at = report.seconds(moved.at);
        let ends = moved.ends;
        row(
            "migration",
            format!("to {} > {} at {at:.3} s, frame {}", ends.src, ends.dst, moved.frame),
        );
    }
    let site = FindingSite {
        file: &report.file.name,
        item: "quic",
        number: one.number,
        records: "frames",
        active: Duration::from_nanos(analysis.active()),
        filtered: false,
        cures: &[],
    };
    for found in findings(one, report) {
        finding(&found, &site, ReportStyle::Plain, &mut out);
    }
    out
}

/// The findings of a connection, with times since the first packet of the file.
pub(super) fn findings(one: &CapturedQuicConnection, report: &FileReport) -> Vec<Finding> {
    let begins = report.file.begins.unwrap_or_default();
    let mut findings = one.findings();
    for found in &mut findings {
        let (from, to) = found.interval;
        found.interval = (from.saturating_sub(begins), to.saturating_sub(begins));
    }
    findings
}

impl FileReport {
    /// A time of the clock of the file as seconds since its first packet; negative before it.
    pub(super) fn seconds(&self, at: u64) -> f64 {
        let begins = self.file.begins.map_or(0, Duration::as_nanos);
        at.abs_diff(begins) as f64 / if at < begins { -1e9 } else { 1e9 }
    }
}

/// Other versions than the one in use.
fn versions(one: &CapturedQuicConnection) -> Option<String> {
    let mut parts = Vec::new();
    let used = version(one);
    let names = |dir: Dir| {
        let of_dir = one.versions.iter().filter(move |(other, _)| *other == dir);
        let names: Vec<_> = of_dir.map(|(_, version)| version.to_string()).collect();
        names.join(", then ")
    };
    let (client, server) = (names(Dir::Forward), names(Dir::Reverse));
    if !client.is_empty() && client != used {
        parts.push(format!("client {client}"));
    }
    if !server.is_empty() && server != used {
        parts.push(format!("server {server}"));
    }
    if !one.offered.is_empty() {
        let offered: Vec<_> = one.offered.iter().map(ToString::to_string).collect();
        parts.push(format!("the server offered {}", offered.join(", ")));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// What the client offers.
fn client_hello(hello: &QuicClientHello) -> String {
    let name = hello.server_name.as_deref().unwrap_or("none");
    let mut text = format!("server name {name}; ALPN ");
    match &hello.protocols[..] {
        [] => text.push_str("none"),
        protocols => text.push_str(&protocols.join(", ")),
    }
    if hello.has_encrypted_hello {
        text.push_str("; Encrypted Client Hello: the real name may be another");
    }
    text
}

fn handshake(known: &CapturedHandshake) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(ns) = known.duration() {
        let mut text = format!(
            "{} from the client's first Initial to the server's first {} packet, {}",
            time(ns),
            if known.server_handshake.is_some() { "Handshake" } else { "1-RTT" },
            many(known.round_trips(), "round trip")
        );
        if let Some(ns) = known.until_client_data() {
            let _ = write!(text, "; {} to the client's first 1-RTT packet", time(ns));
        }
        lines.push(text);
    }
    if let Some(round_trip) = known.round_trip {
        lines.push(format!(
            "round trip {}: {} to the server and back, {} to the client (with their cryptography)",
            time(round_trip.whole()),
            time(round_trip.server_side),
            time(round_trip.client_side)
        ));
    }
    let after = |at: u64| match known.client_initial {
        Some(first) => format!(", {} after the first Initial", time(at.saturating_sub(first))),
        None => String::new(),
    };
    if let (count, Some(at)) = known.negotiations {
        lines.push(format!("{}{}", many(count, "version negotiation"), after(at)));
    }
    if let (count, Some(at)) = known.retries {
        let packets = if count == 1 { "1 Retry".to_owned() } else { format!("{count} Retries") };
        lines.push(format!("{packets}{}: the server validated the address", after(at)));
    }
    if let Some((_, count)) = known.unanswered.filter(|&(_, count)| count > 1) {
        let waited = known.waited();
        let is_answered = known.server_initial.is_some()
            || known.retries.1.is_some()
            || known.negotiations.1.is_some();
        let until = if is_answered { "before the first answer" } else { "and no answer" };
        lines.push(format!("{count} datagrams with Initials within {} {until}", time(waited)));
    } else if known.client_initial.is_some()
        && known.unanswered == known.client_initial.map(|at| (at, 1))
        && known.server_initial.is_none()
        && known.retries.1.is_none()
        && known.negotiations.1.is_none()
        && known.one_rtt[Dir::Reverse as usize].is_none()
    {
        lines.push("no answer was captured".to_owned());
    }
    if let Some(at) = known.zero_rtt {
        let with = known.client_initial == Some(at);
        let when = if with { " with the first Initial".to_owned() } else { after(at) };
        lines.push(format!("0-RTT data{when}"));
    }
    let flight = known.first_flight;
    if flight.is_limited() {
        lines.push(format!(
            "the server's first flight of {} reached three times the {} received, and went on after the \
             client's answer: a round trip for a shorter certificate chain (RFC 9000 section 8.1)",
            size(flight.sent),
            size(flight.received)
        ));
    }
    lines
}

fn spin(bit: &SpinBit) -> Option<String> {
    let edges = format!("{} in {}", many(bit.edges, "change"), many(bit.packets, "packet"));
    Some(match bit.verdict {
        SpinVerdict::NoPackets => return None,
        SpinVerdict::Constant => "constant: the hosts do not use it".to_owned(),
        SpinVerdict::TooFew => format!("{edges}: too few to decide whether it spins"),
        SpinVerdict::Random => format!("{edges}, {} in turn: random", bit.in_turn),
        SpinVerdict::Spins => {
            let summary = |samples: &diagnose::quic::captured::RoundTripSamples| {
                let [min, median, max] = samples.summary()?;
                Some((samples.count, min, median, max))
            };
            let mut text = "spins".to_owned();
            if let Some((count, min, median, max)) = summary(&bit.whole) {
                let _ = write!(
                    text,
                    ": round trip {} at least, {} median, {} at most ({})",
                    time(min),
                    time(median),
                    time(max),
                    many(count, "sample")
                );
            }
            if let (Some((_, _, server, _)), Some((_, _, client, _))) =
                (summary(&bit.server_side), summary(&bit.client_side))
            {
                let _ = write!(
                    text,
                    "; {} to the server, {} to the client",
                    time(server),
                    time(client)
                );
            }
            text
        }
    })
}

fn datagrams(direction: &CapturedQuicDirection) -> String {
    let sizes = &direction.sizes;
    let mut text =
        format!("{}, largest {} B", many(direction.datagrams, "datagram"), sizes.largest);
    if let Some((bytes, count)) = sizes.most_frequent().filter(|_| direction.datagrams > 1) {
        let share = percent(count, direction.datagrams);
        let _ = write!(text, ", most frequent {bytes} B ({share})");
    }
    // The first datagram is no step, nor are those below the least size of a path.
    let steps: Vec<_> = sizes.steps.iter().filter(|step| step.bytes >= 1_200).collect();
    if steps.len() > 1 {
        let steps: Vec<_> = steps.iter().map(|step| step.bytes.to_string()).collect();
        let _ = write!(text, "; grew {} B", steps.join(" > "));
    }
    if sizes.largest > ETHERNET {
        text += "; larger than Ethernet carries: segmentation offload may have joined several";
    }
    let busiest = direction.busiest;
    if busiest.datagrams > 1 {
        let _ = write!(
            text,
            "; busiest millisecond {} ({})",
            many(busiest.datagrams, "datagram"),
            size(busiest.bytes)
        );
    }
    if direction.packets[ONE_RTT] == 0 {
        text += "; no 1-RTT packet";
    }
    text
}

/// A digit for each part of the time: 9 is the largest rate, a dot no datagram.
fn rate_bar(rates: &RateHistory, dir: usize) -> Option<String> {
    let columns = rates.bytes.len().min(BAR);
    if columns < 2 {
        return None;
    }
    let mut sums = vec![(0_u64, 0_u64); columns];
    for (index, bytes) in rates.bytes.iter().enumerate() {
        let (sum, count) = &mut sums[index * columns / rates.bytes.len()];
        *sum += bytes[dir];
        *count += 1;
    }
    let mean = |&(sum, count): &(u64, u64)| sum as f64 / count.max(1) as f64;
    let most = sums.iter().map(mean).fold(0.0, f64::max);
    let digit = |one: &(u64, u64)| match mean(one) {
        0.0 => '.',
        value => char::from_digit((value * 9.0 / most) as u32, 10).unwrap_or('9'),
    };
    (most > 0.0).then(|| sums.iter().map(digit).collect())
}

fn rates(analysis: &CapturedQuicAnalysis, dir: Dir) -> String {
    let rates = &analysis.rates;
    let bytes = analysis.directions[dir as usize].bytes;
    let mean = bytes as f64 * 1e9 / analysis.duration().max(1) as f64;
    let mut text = format!("{} on average", rate(mean));
    if let Some(largest) = rates.largest(dir as usize) {
        let _ = write!(text, ", {} at most in {}", rate(largest), time(rates.interval));
    }
    text + ", of UDP payload"
}

/// ECN bits, if any host set them.
fn marks(directions: &[CapturedQuicDirection; 2]) -> Option<String> {
    let mut parts = Vec::new();
    for (name, direction) in ["client", "server"].iter().zip(directions) {
        let [_, ect1, ect0, ce] = direction.ecn;
        for (count, what) in [(ect0, "ECT(0)"), (ect1, "ECT(1)"), (ce, "CE")] {
            if count > 0 {
                parts.push(format!("{name} {what} {}", percent(count, direction.datagrams)));
            }
        }
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn ids(one: &CapturedQuicConnection) -> String {
    let list = |dir: Dir| {
        let ids = &one.ids[dir as usize];
        let shown: Vec<_> = ids.iter().take(SHOWN).map(ToString::to_string).collect();
        match ids.len() {
            0 => "none".to_owned(),
            len if len > SHOWN => format!("{} and {} more", shown.join(", "), len - SHOWN),
            _ => shown.join(", "),
        }
    };
    let mut text = format!("client {}; server {}", list(Dir::Forward), list(Dir::Reverse));
    let changes = one.id_changes[0] + one.id_changes[1];
    if changes > 0 {
        let _ = write!(text, "; {} to others", many(changes, "change"));
    }
    text
}
