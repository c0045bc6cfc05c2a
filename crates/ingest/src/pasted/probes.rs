//! `ping`, `mtr` and `traceroute`, in any language.

use super::facts::{Figures, PastedSection};
use super::numbers::{leading, number, rounded};

/// Texts of probes without an answer.
const UNANSWERED: &[&str] = &[
    "Request timeout for",
    "Request timed out",
    "Zeitüberschreitung der",
    "Délai d'attente",
    "Host Unreachable",
];

/// What a series of probes showed.
#[derive(Debug, Default)]
struct PingSeries {
    line: usize,
    host: Option<String>,
    replies: Vec<f64>,
    unanswered: usize,
    /// Percent.
    loss: Option<f64>,
    /// Least, mean and largest, in milliseconds.
    summary: Option<[f64; 3]>,
}

/// Reads what ping prints: replies, and the summary of one series after another.
pub(super) fn ping(text: &str, figures: &mut Figures) -> Vec<PastedSection> {
    let mut all: Vec<PingSeries> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line_number = index + 1;
        let begun = || PingSeries { line: line_number, ..PingSeries::default() };
        if let Some(host) = heading(line) {
            all.push(PingSeries { host: Some(host), ..begun() });
            continue;
        }
        if let Some(series) = fping(line) {
            all.push(PingSeries { line: line_number, ..series });
            continue;
        }
        let is_new = all.last().is_none_or(|series| series.summary.is_some());
        if let Some(ms) = reply(line) {
            if is_new {
                all.push(begun());
            }
            if let Some(series) = all.last_mut() {
                series.replies.push(ms);
            }
        } else if UNANSWERED.iter().any(|text| line.contains(text)) {
            if is_new {
                all.push(begun());
            }
            if let Some(series) = all.last_mut() {
                series.unanswered += 1;
            }
        } else if let Some(percent) = lost(line) {
            // The times of a series follow its loss.
            if all.last().is_none_or(|series| series.summary.is_some() || series.loss.is_some()) {
                all.push(begun());
            }
            if let Some(series) = all.last_mut() {
                series.loss = Some(percent);
            }
        } else if let Some(times) = times(line) {
            if is_new {
                all.push(begun());
            }
            if let Some(series) = all.last_mut() {
                series.summary = Some(times);
            }
        }
    }
    all.retain(|series| {
        !series.replies.is_empty() || series.loss.is_some() || series.summary.is_some()
    });
    // Idle and loaded times are often two series.
    let times: Vec<[f64; 3]> = all.iter().filter_map(PingSeries::times).collect();
    if let Some([_, mean, _]) = times.first() {
        let least = times.iter().map(|one| one[0]).fold(f64::MAX, f64::min);
        let most = times.iter().map(|one| one[2]).fold(0.0, f64::max);
        figures.add_rtt(least, *mean, most);
    }
    all.into_iter().map(|series| series.section(figures)).collect()
}

impl PingSeries {
    /// Least, mean and largest time: those of the summary, or of the replies of a text without one.
    fn times(&self) -> Option<[f64; 3]> {
        let of_replies = || {
            let sum: f64 = self.replies.iter().sum();
            let least = self.replies.iter().copied().fold(f64::MAX, f64::min);
            let most = self.replies.iter().copied().fold(0.0, f64::max);
            [least, rounded(sum / self.replies.len() as f64), most]
        };
        self.summary.or_else(|| (!self.replies.is_empty()).then(of_replies))
    }

    fn section(self, figures: &mut Figures) -> PastedSection {
        let mut facts = Vec::new();
        let sent = self.replies.len() + self.unanswered;
        let cut = (self.unanswered > 0).then(|| 100.0 * self.unanswered as f64 / sent as f64);
        if let Some(percent) = self.loss.or(cut) {
            let known = figures.probe_loss.unwrap_or(0.0);
            figures.probe_loss = Some(known.max(percent / 100.0));
            facts.push(format!("{} % of the probes lost", rounded(percent)));
        }
        if let Some([least, mean, most]) = self.times() {
            facts.push(format!("round-trip time {least} ms at least, {mean} mean, {most} at most"));
        }
        figures.peer = figures.peer.take().or(self.host);
        PastedSection { kind: "ping", line: self.line, facts }
    }
}

/// Returns the host of `PING host (...)`, `Pinging host [..] with 32 bytes`, `Ping wird ausgeführt
/// für host mit 32 Bytes`.
fn heading(line: &str) -> Option<String> {
    let line = line.trim();
    if let Some(rest) = line.strip_prefix("PING ").or_else(|| line.strip_prefix("Pinging ")) {
        return rest.split_whitespace().next().map(|host| host.trim_end_matches(':').to_owned());
    }
    // Windows names the number of bytes in each language.
    let is_windows =
        line.to_lowercase().contains("ping") && line.contains(" 32 ") && line.ends_with(':');
    let words: Vec<&str> = line.split_whitespace().collect();
    let host = words.iter().find(|word| word.contains('.') && word.len() > 3);
    host.filter(|_| is_windows).map(|host| (*host).to_owned())
}

/// Reads `10.0.0.1 : xmt/rcv/%loss = 100/97/3%, min/avg/max = 9.1/10.2/45.3` of fping.
fn fping(line: &str) -> Option<PingSeries> {
    let (host, rest) = line.split_once(" : xmt/rcv/%loss = ")?;
    let (counts, rest) = rest.split_once(',').unwrap_or((rest, ""));
    let loss = counts.rsplit('/').next().and_then(number);
    let host = Some(host.trim().to_owned());
    Some(PingSeries { host, loss, summary: times(rest), ..PingSeries::default() })
}

/// Returns the time of a reply: `64 bytes from ...: icmp_seq=1 ttl=57 time=12.1 ms`, `Reply from ...:
/// bytes=32 time<1ms TTL=117`.
fn reply(line: &str) -> Option<f64> {
    let lower = line.to_lowercase();
    if !lower.contains("ttl=") && !lower.contains("hlim=") && !lower.contains("icmp_seq=") {
        return None;
    }
    lower.match_indices(['=', '<']).find_map(|(at, _)| {
        let (value, rest) = leading(&lower[at + 1..])?;
        rest.trim_start().starts_with("ms").then_some(value)
    })
}

/// Returns the percentage of `3 packets transmitted, 3 received, 0% packet loss`, and of
/// `Packets: Sent = 4, Received = 3, Lost = 1 (25% loss)`.
fn lost(line: &str) -> Option<f64> {
    let is_unix = line.contains("packet loss") && line.contains(',');
    let is_windows = line.matches(" = ").count() == 3 && line.contains('(') && line.contains('%');
    if !is_unix && !is_windows {
        return None;
    }
    let before = line.split('%').next()?.trim_end();
    let (_, digits) = before.rsplit_once(|c: char| !c.is_ascii_digit() && c != '.')?;
    number(digits)
}

/// Returns the times of `rtt min/avg/max/mdev = ...`, and of `Minimum = 14ms, Maximum = 213ms, Average
/// = 80ms`: Windows has this order in every language.
fn times(line: &str) -> Option<[f64; 3]> {
    if let Some((_, values)) = line.split_once("min/avg/max") {
        let (_, values) = values.split_once(" = ")?;
        let values: Vec<f64> = values.split(['/', ' ']).filter_map(number).collect();
        return match values[..] {
            [least, mean, most, ..] => Some([least, mean, most]),
            _ => None,
        };
    }
    let mut values = Vec::new();
    for part in line.split(" = ").skip(1) {
        let (value, rest) = leading(part.trim_start())?;
        values.push(rest.trim_start().starts_with("ms").then_some(value)?);
    }
    match values[..] {
        [least, most, mean] => Some([least, mean, most]),
        _ => None,
    }
}

/// A hop of `mtr`.
struct MtrHop {
    number: usize,
    name: String,
    loss: f64,
    mean: f64,
}

/// Reads the table of `mtr --report`, with the columns of its head.
pub(super) fn mtr(text: &str, figures: &mut Figures) -> Option<PastedSection> {
    let is_head =
        |line: &&str| line.contains("Loss%") && line.contains("Snt") && line.contains("Avg");
    let start = text.lines().position(|line| is_head(&line))?;
    let head = text.lines().nth(start)?;
    let columns: Vec<&str> = head[head.find("Loss%")?..].split_whitespace().collect();
    let average = columns.iter().position(|name| *name == "Avg")?;
    let mut hops: Vec<MtrHop> = Vec::new();
    for line in text.lines().skip(start + 1) {
        let Some((index, rest)) = line.trim_start().split_once('.') else { continue };
        let Ok(index) = index.parse::<usize>() else { continue };
        let words: Vec<&str> = rest.trim_start_matches("|--").split_whitespace().collect();
        let Some(at) = words.len().checked_sub(columns.len()) else { continue };
        // `mtr -z` has the AS before the name.
        let name = words[..at].iter().find(|word| !is_as(word)).map_or("???", |name| name);
        let values = [words.get(at), words.get(at + average)];
        let [Some(loss), Some(mean)] = values.map(|word| word.and_then(|word| number(word))) else {
            continue;
        };
        hops.push(MtrHop { number: index, name: name.to_owned(), loss, mean });
    }
    // Routers that do not answer at all are no end of a path.
    let last = hops.iter().rfind(|hop| hop.loss < 100.0)?;
    let (loss, mean, name) = (last.loss, last.mean, last.name.clone());
    let mut facts = vec![format!("{} hops to {name}: {loss} % lost, {mean} ms mean", last.number)];
    figures.probe_loss = figures.probe_loss.or(Some(loss / 100.0));
    figures.rtt = figures.rtt.or(Some((mean, mean)));
    figures.peer = figures.peer.take().or(Some(name));
    if loss > 0.0 {
        // Loss that does not last to the end is a router that answers few probes.
        let answering: Vec<&MtrHop> = hops.iter().filter(|hop| hop.loss < 100.0).collect();
        let begins = answering.iter().rposition(|hop| hop.loss == 0.0).map_or(0, |at| at + 1);
        // A hop with more loss than the end answers only some probes, too.
        let first = answering[begins..].iter().find(|hop| hop.loss <= 2.0 * loss);
        if let Some(hop) = first {
            facts.push(format!("the loss begins at hop {}, {}", hop.number, hop.name));
        }
    }
    Some(PastedSection { kind: "mtr", line: start + 1, facts })
}

fn is_as(word: &str) -> bool {
    let number = word.strip_prefix("AS");
    number.is_some_and(|number| {
        number == "???" || !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// Reads the rows `host - loss | sent | received | best | mean | worst | last |` of WinMTR.
pub(super) fn win_mtr(text: &str, figures: &mut Figures) -> Option<PastedSection> {
    let start = text.lines().position(|line| line.contains("WinMTR"))?;
    let mut last = None;
    let mut hops = 0;
    for line in text.lines().skip(start + 1) {
        let cells: Vec<&str> =
            line.split('|').map(str::trim).filter(|one| !one.is_empty()).collect();
        let [name, _, received, best, mean, worst, _] = cells[..] else { continue };
        let Some((host, loss)) = name.rsplit_once(" - ") else { continue };
        let values = [loss, received, best, mean, worst].map(number);
        let [Some(loss), Some(received), Some(best), Some(mean), Some(worst)] = values else {
            continue;
        };
        hops += 1;
        if received > 0.0 {
            last = Some((host.trim().to_owned(), loss, best, mean, worst));
        }
    }
    let (name, loss, best, mean, worst) = last?;
    figures.probe_loss = figures.probe_loss.or(Some(loss / 100.0));
    figures.add_rtt(best, mean, worst);
    let facts = vec![format!("{hops} hops to {name}: {loss} % lost, {mean} ms mean")];
    figures.peer = figures.peer.take().or(Some(name));
    Some(PastedSection { kind: "WinMTR", line: start + 1, facts })
}

/// Reads hops of `traceroute` and of `tracert` of Windows: the last that answered has the round-trip
/// time.
pub(super) fn traceroute(text: &str, figures: &mut Figures) -> Option<PastedSection> {
    let is_head = |line: &str| {
        let line = line.trim_start();
        line.starts_with("traceroute to ") && line.contains(" hops max")
            || line.starts_with("Tracing route to ")
            || line.starts_with("Routenverfolgung zu ")
    };
    let start = text.lines().position(is_head)?;
    let head = text.lines().nth(start)?;
    let host = head.split_whitespace().skip_while(|word| !matches!(*word, "to" | "zu")).nth(1)?;
    let host = host.trim_end_matches(',');
    let mut last = None;
    for line in text.lines().skip(start + 1) {
        let words: Vec<&str> =
            line.split_whitespace().map(|word| word.trim_start_matches('<')).collect();
        let Some(index) = words.first().and_then(|word| word.parse::<usize>().ok()) else {
            // `tracert` has a line and a blank one before the hops.
            if last.is_none() {
                continue;
            }
            break;
        };
        let times: Vec<f64> = words
            .windows(2)
            .filter(|pair| pair[1] == "ms")
            .filter_map(|pair| number(pair[0]))
            .collect();
        if let Some(least) = times.iter().copied().reduce(f64::min) {
            last = Some((index, least));
        }
    }
    let (index, ms) = last?;
    figures.rtt = figures.rtt.or(Some((ms, ms)));
    figures.peer = figures.peer.take().or(Some(host.to_owned()));
    let facts = vec![format!("hop {index}, the last that answers: {ms} ms")];
    Some(PastedSection { kind: "traceroute", line: start + 1, facts })
}
