//! A diagnosis as text, in the style of compiler diagnostics.

use core::fmt::Write;

use diagnose::rules::{Finding, Severity, many, percent, rate, rule, size, time, time_percent};
use diagnose::{Analysis, Limiter, TimeBudget};
use packet::Dir;

use super::captured_quic;
use super::exchange::exchange_text;
use super::groups::summary;
use super::host::host_text;
use super::kernel::{kernel_limit, kernel_text};
use super::limits::named;
use super::negotiated::negotiated_text;
use super::not_read::not_read;
use super::verdict_line::verdict_line;
use super::{ConnectionReport, DiagnosisReport, FileReport, TriedCure};
use crate::inputs::InputKind;
use scenario::ReportStyle;
use units::Duration;

/// Options of the text output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextStyle {
    /// Connections shown with their findings, worst first.
    pub limit: usize,
    /// Colours.
    pub look: ReportStyle,
}

/// Most rows of the table of connections.
const TABLE: usize = 20;
/// Most connections of several files that are ranked together.
const RANKED: usize = 10;
/// Characters of the bar.
pub(super) const BAR: usize = 60;

impl DiagnosisReport {
    /// Formats the report as text.
    pub fn text(&self, view: TextStyle) -> String {
        let mut out = paint(&self.answer(), "1", view.look) + "\n";
        let ranking = self.ranking();
        if !ranking.is_empty() {
            out.push('\n');
            out.push_str(&ranking);
        }
        for file in &self.files {
            out.push('\n');
            file_text(file, self.duplicate_connections(file), view, &mut out);
        }
        out.push_str(&self.joined_text());
        out
    }
}

impl DiagnosisReport {
    /// The costliest connections of several files; empty for one, and for captures of one transfer at
    /// both ends.
    fn ranking(&self) -> String {
        if self.files.len() < 2 || !self.joined.is_empty() {
            return String::new();
        }
        let limited = |file: &FileReport, one: &ConnectionReport| {
            let rule = one.primary.and_then(rule)?;
            Some((
                (one.failed, one.cost),
                file.file.name.clone(),
                one.number(),
                format!("{} {}", rule.code, named(rule.code, rule.name, one.kind)),
            ))
        };
        let of = |file: &'_ FileReport| -> Vec<_> {
            file.connections.iter().filter_map(|one| limited(file, one)).collect()
        };
        let mut all: Vec<_> = self.files.iter().flat_map(of).collect();
        all.sort_by_key(|(rank, ..)| core::cmp::Reverse(*rank));
        if all.len() < 2 {
            return String::new();
        }
        let order = match all.iter().any(|((failed, _), ..)| *failed) {
            true => "failed connections first, then the costliest",
            false => "costliest connections first",
        };
        let mut out = format!("{} files, {order}\n", self.files.len());
        for ((_, cost), file, number, limit) in all.iter().take(RANKED) {
            let _ = writeln!(out, "  {}  {file} flow {number}: {limit}", time(*cost));
        }
        if all.len() > RANKED {
            let _ = writeln!(out, "  ... and {} more", all.len() - RANKED);
        }
        out
    }
}

fn file_text(report: &FileReport, duplicate_connections: usize, view: TextStyle, out: &mut String) {
    let file = &report.file;
    if let Some(counters) = &file.host_counters {
        let _ = writeln!(out, "{}: {}, {}", file.name, file.kind, many(file.frames, "counter"));
        damage_text(report, out);
        match view.limit {
            0 => _ = writeln!(out, "  {}", verdict_line(report)),
            _ => host_text(counters, out),
        }
        return;
    }
    let connections = report.connections.len();
    let different = connections.saturating_sub(duplicate_connections);
    let is_qlog = matches!(file.kind, InputKind::Qlog | InputKind::NetLog);
    let (records, shown) =
        if is_qlog { ("event", report.quic.len()) } else { ("frame", different) };
    let _ = write!(
        out,
        "{}: {}, {}, {} of {}",
        file.name,
        file.kind,
        many(file.frames, records),
        many(shown as u64, "connection"),
        if is_qlog { "QUIC" } else { "TCP" }
    );
    if !report.captured_quic.is_empty() {
        let _ = write!(out, ", {} of QUIC", report.captured_quic.len());
    }
    let _ = match duplicate_connections {
        0 => writeln!(out),
        _ if different == 1 => writeln!(out, ", seen at {connections} capture points"),
        _ => {
            writeln!(out, ", {duplicate_connections} of them seen at another capture point as well")
        }
    };
    damage_text(report, out);
    if view.limit == 0 {
        let _ = writeln!(out, "  {}", verdict_line(report));
    }
    if is_qlog {
        return quic_connections(report, view, out);
    }
    for line in not_read(file) {
        let _ = writeln!(out, "  {line}");
    }
    if connections == 0 && report.captured_quic.is_empty() {
        out.push_str("  no TCP connection found (for QUIC, pass its qlog)\n");
    }
    let summary = summary(report);
    if !summary.is_empty() {
        out.push('\n');
    }
    for line in summary {
        let _ = writeln!(out, "{line}");
    }
    if connections > 1 {
        table(report, out);
    }
    for judged in report.connections.iter().take(view.limit) {
        connection(judged, report, view, out);
    }
    if connections > view.limit {
        let _ = writeln!(
            out,
            "\n{} not shown (--limit {connections}, or --flow N)",
            many((connections - view.limit) as u64, "more connection")
        );
    }
    captured_quic::connections(report, view.limit, out);
    // Those whose packets were decrypted.
    quic_connections(report, view, out);
}

fn damage_text(report: &FileReport, out: &mut String) {
    let problems = &report.file.problems;
    for problem in problems.first.iter().take(3) {
        let _ = writeln!(out, "  damaged: {problem}");
    }
    if problems.count > 3 {
        let _ = writeln!(out, "  damaged: {} more", problems.count - 3);
    }
}

fn quic_connections(report: &FileReport, view: TextStyle, out: &mut String) {
    for judged in report.quic.iter().take(view.limit) {
        judged.text(&report.file.name, view, out);
    }
    if report.quic.len() > view.limit {
        let left = many((report.quic.len() - view.limit) as u64, "more connection");
        let _ = writeln!(out, "\n{left} not shown (--limit {}, or --flow N)", report.quic.len());
    }
}

fn table(report: &FileReport, out: &mut String) {
    let mut rows = vec![
        ["flow", "transfer", "bytes", "time", "goodput", "lost", "limited by"].map(str::to_string),
    ];
    for judged in report.connections.iter().take(TABLE) {
        let limit = judged.primary.and_then(rule);
        let analysis = judged.analysis();
        rows.push([
            analysis.stream.to_string(),
            judged.transfer(&analysis),
            size(judged.bytes),
            time(judged.duration),
            rate(analysis.goodput()),
            time(judged.cost),
            match (limit, kernel_limit(&analysis)) {
                (Some(rule), _) => {
                    format!("{} {}", rule.code, named(rule.code, rule.name, judged.kind))
                }
                (None, Some(limit)) => format!("kernel: {}", limit.name()),
                _ => "-".into(),
            },
        ]);
    }
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let widths: [usize; 7] = core::array::from_fn(width);
    out.push('\n');
    for row in &rows {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            // Names are left-aligned, numbers right-aligned.
            let cell = if matches!(column, 1 | 6) {
                format!("{cell:<w$}", w = widths[column])
            } else {
                format!("{cell:>w$}", w = widths[column])
            };
            line.push_str(&cell);
            line.push_str("  ");
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    if report.connections.len() > TABLE {
        let _ = writeln!(out, "... and {} more (--csv has all)", report.connections.len() - TABLE);
    }
}

fn connection(judged: &ConnectionReport, report: &FileReport, view: TextStyle, out: &mut String) {
    let analysis = &*judged.analysis();
    let (diagnosis, guesses) = report.explained(judged, analysis);
    let course = &diagnosis.course;
    let number = analysis.stream;
    let site = FindingSite {
        cures: &judged.cures,
        ..FindingSite::flow(&report.file.name, number, course.budget.active())
    };
    let mut transferred = size(judged.bytes);
    // A single poll of a receiver has no time.
    if !judged.duration.is_zero() || analysis.frames > 0 {
        let (time, rate) = (time(judged.duration), rate(analysis.goodput()));
        transferred = format!("{transferred} in {time}, {rate}");
    }
    let account = kernel_text(analysis);
    let transfer = judged.transfer(analysis);
    if analysis.frames == 0 && !account.is_empty() {
        let _ = write!(out, "\nflow {number}  {transfer}  {transferred}\n{account}");
        return;
    }
    let Some(flow) = analysis.main() else {
        let packets = many(analysis.frames, "packet");
        let _ = write!(out, "\nflow {number}  {transfer}  {packets}, no data\n{account}");
        return findings(&diagnosis.findings, &site, view.look, out);
    };
    let _ = writeln!(out, "\nflow {number}  {transfer}  {transferred}");
    let counts = &flow.counts;
    let mut facts = vec![format!("captured at the {}", flow.point.name())];
    if flow.point.name() == "unknown" {
        facts = vec!["capture point unknown".into()];
    } else if flow.point.name() == "middle" {
        facts = vec!["captured between the hosts".into()];
    }
    if let Some(base) = course.path.base_rtt {
        facts.push(format!("round trip {}", time(base)));
    }
    facts.push(format!("MSS {}", flow.mss));
    facts.push(format!(
        "{} of {} packets retransmitted",
        counts.retransmitted,
        counts.new + counts.retransmitted
    ));
    if counts.spurious > 0 {
        facts.push(format!("{} of them spurious", counts.spurious));
    }
    let _ = writeln!(out, "  {}", facts.join("; "));
    let _ = writeln!(out, "  {}", negotiated_text(analysis));
    if let Some(guess) = guess_text(&guesses) {
        let _ = writeln!(out, "  {guess}");
    }
    budget(&course.budget, view.look, out);
    out.push_str(&exchange_text(analysis, view.look));
    out.push_str(&account);
    findings(&diagnosis.findings, &site, view.look, out);
    other_direction(analysis, judged, report, view, out);
}

/// Writes the budget and the findings above a note of the direction with less data.
fn other_direction(
    analysis: &Analysis,
    judged: &ConnectionReport,
    report: &FileReport,
    view: TextStyle,
    out: &mut String,
) {
    let Some(other) = report.explained_other_direction(judged, analysis) else { return };
    let from = if analysis.main_dir() == Dir::Forward { "server" } else { "client" };
    let flow = analysis.flows[analysis.main_dir().reversed() as usize].as_deref();
    let bytes = size(flow.map_or(0, |flow| flow.bytes));
    let limit = other.primary.and_then(rule);
    let limit =
        limit.map_or("nothing above a note".into(), |rule| format!("{} {}", rule.code, rule.name));
    let _ = writeln!(
        out,
        "\nother direction of flow {}: {bytes} from the {from}; {limit}",
        analysis.stream
    );
    budget(&other.course.budget, view.look, out);
    let site = FindingSite::flow(&report.file.name, analysis.stream, other.course.budget.active());
    for one in other.findings.iter().filter(|one| one.severity > Severity::Note) {
        finding(one, &site, view.look, out);
    }
}

/// The senders whose windows match the capture, as text.
pub fn guess_text(guesses: &[fit::Guess]) -> Option<String> {
    let best = guesses.first()?;
    let name = |guess: &fit::Guess| format!("{} {}", guess.profile, guess.cc);
    let off = |guess: &fit::Guess| format!("{:.1} %", 100.0 * guess.misfit);
    let (equal, others): (Vec<_>, Vec<_>) = guesses.iter().partition(|guess| guess.equals(best));
    let equal: Vec<_> = equal.into_iter().map(name).collect();
    let found = if best.fits() { "sends like" } else { "sends like none known; nearest" };
    let rounds = many(best.rounds as u64, "round trip");
    let of = if best.slow_start_only { " of slow start" } else { "" };
    let mut text =
        format!("{found} {}: window {} off in {rounds}{of}", equal.join(" or "), off(best));
    for other in others.iter().take(2) {
        let _ = write!(text, "; {} {}", name(other), off(other));
    }
    Some(text)
}

/// Formats a finding of a connection without colours; `active` is the time at work.
pub fn finding_text(
    found: &Finding,
    (file, judged, active): (&str, &ConnectionReport, Duration),
) -> String {
    let mut out = String::new();
    let site = FindingSite::flow(file, judged.number(), active);
    let site = FindingSite { cures: &judged.cures, ..site };
    finding(found, &site, ReportStyle::Plain, &mut out);
    out.trim_start().to_owned()
}

/// Where a finding was made.
pub(super) struct FindingSite<'a> {
    pub(super) file: &'a str,
    /// `flow` or `connection`, and its number.
    pub(super) item: &'static str,
    pub(super) number: u32,
    /// `frames` or `events`.
    pub(super) records: &'static str,
    /// Active time.
    pub(super) active: Duration,
    /// Whether a display filter selects the frames.
    pub(super) filtered: bool,
    /// Cures that were tried.
    pub(super) cures: &'a [TriedCure],
}

impl<'a> FindingSite<'a> {
    const fn flow(file: &'a str, number: u32, active: Duration) -> Self {
        Self { file, item: "flow", number, records: "frames", active, filtered: true, cures: &[] }
    }
}

/// Writes the findings of a connection.
pub(super) fn findings(
    found: &[Finding],
    site: &FindingSite<'_>,
    look: ReportStyle,
    out: &mut String,
) {
    if found.is_empty() {
        out.push_str("\nno findings\n");
    }
    for one in found {
        finding(one, site, look, out);
    }
}

const LETTERS: [(Limiter, char, &str); 10] = [
    (Limiter::Handshake, 'h', "37"),
    (Limiter::SlowStart, 's', "33"),
    (Limiter::Cwnd, 'c', "35"),
    (Limiter::Rwnd, 'w', "34"),
    (Limiter::Application, 'a', "36"),
    (Limiter::Recovery, 'r', "31"),
    (Limiter::Timeout, 't', "31;1"),
    (Limiter::Path, '=', "32"),
    (Limiter::Idle, '.', "90"),
    (Limiter::Unknown, '?', "90"),
];

/// The letter of a limiter in the bar of the text.
pub fn limiter_letter(of: Limiter) -> char {
    LETTERS.iter().find(|(limiter, ..)| *limiter == of).map_or('?', |(_, letter, _)| *letter)
}

/// Writes a bar with a letter for each limiter, and their percentages.
fn budget(budget: &TimeBudget, look: ReportStyle, out: &mut String) {
    if budget.whole().is_zero() {
        return;
    }
    let parts = LETTERS
        .map(|(limiter, letter, colour)| (budget.of(limiter), letter, limiter.name(), colour));
    let (bar, shares) = time_bar(&parts, look);
    let _ = writeln!(out, "  time  [{bar}]");
    let _ = writeln!(out, "        {shares}");
}

/// A bar with a letter for each part of a time, and their percentages; a part is its time, letter, name
/// and colour.
pub(super) fn time_bar(
    parts: &[(Duration, char, &str, &str)],
    look: ReportStyle,
) -> (String, String) {
    let whole = parts.iter().map(|part| part.0).sum::<Duration>().as_nanos().max(1);
    let mut bar = String::new();
    let (mut done, mut drawn) = (0_u128, 0);
    let mut shares = Vec::new();
    for &(time, letter, name, colour) in parts.iter().filter(|part| !part.0.is_zero()) {
        let ns = time.as_nanos();
        done += u128::from(ns);
        let until = (done * BAR as u128 / u128::from(whole)) as usize;
        let part: String = core::iter::repeat_n(letter, until - drawn).collect();
        drawn = until;
        bar.push_str(&paint(&part, colour, look));
        shares.push(format!("{letter} {name} {}", percent(ns, whole)));
    }
    (bar, shares.join(" | "))
}

/// Writes a finding.
pub(super) fn finding(
    found: &Finding,
    site: &FindingSite<'_>,
    look: ReportStyle,
    out: &mut String,
) {
    let &FindingSite { file, item, number, records, active, filtered, .. } = site;
    let colour = match found.severity {
        Severity::Note => "36;1",
        Severity::Warning => "33;1",
        Severity::Error => "31;1",
    };
    let head = paint(&format!("{}[{}]", found.severity.name(), found.code), colour, look);
    let _ = writeln!(out, "\n{head}: {}", found.title);
    let (first, last) = found.frames;
    let (from, to) = found.interval;
    let _ = writeln!(
        out,
        "  --> {file}  {item} {number}  {records} {first}..{last}  {:.3}-{:.3} s  confidence: {}",
        from.as_secs_f64(),
        to.as_secs_f64(),
        found.confidence.name()
    );
    if !found.kind.is_empty() {
        row("kind", found.kind, out);
    }
    if !found.cost.is_zero() {
        row(
            "cost",
            &match active {
                // Waits longer than a timeout are no time at work.
                active if found.cost > active => time(found.cost),
                _ => format!(
                    "{} ({} of the time at work)",
                    time(found.cost),
                    time_percent(found.cost, active)
                ),
            },
            out,
        );
    }
    for evidence in found.evidence.iter().filter(|evidence| !evidence.label.is_empty()) {
        row(evidence.label, &evidence.text, out);
    }
    let _ = writeln!(out, "   = cause: {}", found.cause);
    if found.severity > Severity::Note {
        for (system, what) in found.help.applicable() {
            let _ = writeln!(out, "   = help: {system}: {what}");
        }
        if let Some(folded) = found.folded_help() {
            let _ = writeln!(out, "   = help: {folded}");
        }
    }
    for cure in site.cures.iter().filter(|cure| cure.finding == found.code) {
        let _ = writeln!(out, "   = cure: {}", cure.text());
    }
    if !found.unseen.is_empty() {
        let _ = writeln!(out, "   = not visible here: {}", found.unseen);
    }
    if filtered {
        let _ = writeln!(out, "   = filter: {}", found.filter(number));
    }
}

fn row(label: &str, text: &str, out: &mut String) {
    let _ = writeln!(out, "   | {label:<13} {text}");
}

pub(super) fn paint(text: &str, colour: &str, look: ReportStyle) -> String {
    if look == ReportStyle::Coloured && !text.is_empty() {
        format!("\x1b[{colour}m{text}\x1b[0m")
    } else {
        text.to_string()
    }
}
