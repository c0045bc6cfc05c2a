//! The page of a diagnosis: each connection's time budget, its findings, and its time-sequence
//! graph annotated with the findings.

mod graph;
mod tables;
mod verdict;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::Path;

use diagnose::rules::{many, rate, size, time};
use diagnose::{Analysis, Diagnosis};
use report::page::{Page, PagePart};
use report::table::ReportTable;

use crate::run_page::maker;
use ingest::diagnosis::{
    ConnectionReport, DiagnosisReport, FileReport, UNSEEN_IN_CAPTURES_OF_QUIC, captured_quic_text,
    exchange_lines, finding_text, guess_text, kernel_limit, kernel_text,
};

/// Connections of each file that get their own chapter.
const CHAPTERS: usize = 6;

/// Builds the page of a diagnosis. Graphs need the packets
/// ([`AnalysisSettings::packets`](diagnose::AnalysisSettings::packets)).
pub fn page(report: &DiagnosisReport) -> Page {
    let mut parts = Vec::new();
    let whole: Vec<&str> = report.files.iter().map(|file| file.file.name.as_str()).collect();
    let names = without_folders(&whole);
    for (number, (file, name)) in report.files.iter().zip(&names).enumerate() {
        file_parts(file, name, number, &mut parts);
    }
    let joined = report.joined_text();
    if !joined.is_empty() {
        parts.push(PagePart::Heading("Between the captures".into()));
        parts.push(PagePart::Verbatim(joined.trim_start().to_owned()));
    }
    Page {
        title: format!("Why is it slow? {}", names.join(", ")),
        // The verdict on a single connection says the same.
        lead: if has_one_verdict(report) { String::new() } else { sentence(&report.answer()) },
        facts: report.files.iter().map(|file| (file.file.name.clone(), facts(file))).collect(),
        maker: maker(),
        parts,
    }
}

/// Builds a page with the verdicts alone, for a notebook.
pub fn cards(report: &DiagnosisReport) -> Page {
    let mut parts = Vec::new();
    for file in &report.files {
        for judged in file.quic.iter().take(CHAPTERS) {
            parts.push(PagePart::Heading(format!("QUIC connection {}", judged.connection.number)));
            parts.push(PagePart::Verdict(verdict::of_quic(file, judged)));
        }
        for judged in file.connections.iter().take(CHAPTERS) {
            let analysis = &*judged.analysis();
            let (diagnosis, _) = file.explained(judged, analysis);
            let transfer = judged.transfer(analysis);
            parts.push(PagePart::Heading(format!("Flow {}: {transfer}", analysis.stream)));
            parts.push(PagePart::Verdict(verdict::of_tcp(file, judged, &diagnosis, Vec::new())));
        }
    }
    Page { title: sentence(&report.answer()), maker: maker(), parts, ..Page::default() }
}

/// Whether the page has one chapter, which begins with its verdict.
fn has_one_verdict(report: &DiagnosisReport) -> bool {
    let [file] = report.files.as_slice() else { return false };
    let has_data = |judged: &ConnectionReport| {
        let analysis = judged.analysis();
        analysis.frames > 0 && analysis.main().is_some()
    };
    match (file.connections.as_slice(), file.quic.as_slice()) {
        ([judged], []) => has_data(judged) && file.captured_quic.is_empty(),
        ([], [_]) => file.captured_quic.is_empty(),
        _ => false,
    }
}

/// A sentence with a capital letter and a full stop.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().collect::<String>());
    format!("{}{}.", first.unwrap_or_default(), letters.as_str())
}

/// The names of files without their folders, if they differ without those.
fn without_folders<'n>(names: &[&'n str]) -> Vec<&'n str> {
    let short: Vec<&str> = names.iter().copied().map(without_folder).collect();
    let different: BTreeSet<&str> = short.iter().copied().collect();
    if different.len() < names.len() { names.to_vec() } else { short }
}

fn without_folder(name: &str) -> &str {
    Path::new(name).file_name().and_then(OsStr::to_str).unwrap_or(name)
}

fn facts(report: &FileReport) -> String {
    let file = &report.file;
    if !report.quic.is_empty() {
        let connections = many(report.quic.len() as u64, "connection");
        return format!("{}, {}, {connections} of QUIC", file.kind, many(file.frames, "event"));
    }
    let connections = many(report.connections.len() as u64, "connection");
    let quic = match report.captured_quic.len() {
        0 => String::new(),
        count => format!(", {count} of QUIC"),
    };
    format!("{}, {}, {connections} of TCP{quic}", file.kind, many(file.frames, "frame"))
}

fn file_parts(report: &FileReport, name: &str, number: usize, parts: &mut Vec<PagePart>) {
    let problems = &report.file.problems;
    if problems.count > 0 {
        let first: Vec<_> = problems.first.iter().take(3).cloned().collect();
        let more = problems.count.saturating_sub(first.len() as u64);
        let more = if more > 0 { format!("\n{more} more") } else { String::new() };
        parts.push(PagePart::Text(format!("The file is damaged:\n{}{more}", first.join("\n"))));
    }
    if report.connections.len() > 1 {
        parts.push(PagePart::Heading(format!("Connections of {name}")));
        parts.push(PagePart::Table(tables::connections(report)));
    }
    for judged in report.quic.iter().take(CHAPTERS) {
        let number = judged.connection.number;
        parts.push(PagePart::Heading(format!("QUIC connection {number}")));
        parts.push(PagePart::Verdict(verdict::of_quic(report, judged)));
        parts.push(PagePart::Verbatim(judged.plain_text(&report.file.name)));
    }
    for judged in report.connections.iter().take(CHAPTERS) {
        chapter(report, judged, number, parts);
    }
    captured_quic(report, parts);
    if report.connections.len() > CHAPTERS {
        let left = (report.connections.len() - CHAPTERS) as u64;
        parts.push(PagePart::Text(format!(
            "{} of this file are only in the table; --flow makes a page of one of them.",
            many(left, "more connection")
        )));
    }
}

fn captured_quic(report: &FileReport, parts: &mut Vec<PagePart>) {
    let all = &report.captured_quic;
    if all.is_empty() {
        return;
    }
    parts.push(PagePart::Heading(many(all.len() as u64, "connection") + " of QUIC"));
    for one in all.iter().take(CHAPTERS) {
        parts.push(PagePart::Verbatim(captured_quic_text(one, report)));
    }
    if all.len() > CHAPTERS {
        let left = many((all.len() - CHAPTERS) as u64, "more connection");
        parts.push(PagePart::Text(format!("{left} of QUIC are in the output of --json.")));
    }
    parts.push(PagePart::Verbatim(UNSEEN_IN_CAPTURES_OF_QUIC.join("\n")));
}

fn chapter(report: &FileReport, judged: &ConnectionReport, file: usize, parts: &mut Vec<PagePart>) {
    let analysis = &*judged.analysis();
    let number = analysis.stream;
    let (diagnosis, guesses) = report.explained(judged, analysis);
    parts.push(PagePart::Heading(format!("Flow {number}: {}", judged.transfer(analysis))));
    if analysis.frames == 0
        && let Some(limit) = kernel_limit(analysis)
    {
        parts.push(PagePart::Figures(vec![
            ("time".to_owned(), time(judged.duration)),
            ("bytes".to_owned(), size(judged.bytes)),
            ("goodput".to_owned(), rate(analysis.goodput())),
            ("limited by".to_owned(), limit.name().to_owned()),
        ]));
        return parts.push(PagePart::Verbatim(kernel_text(analysis)));
    }
    let Some(flow) = analysis.main() else {
        parts.push(PagePart::Text(format!("{}, no data.", many(analysis.frames, "packet"))));
        return findings(report, judged, &diagnosis, "", parts);
    };
    let counts = &flow.counts;
    let mut figures = vec![
        ("time".to_owned(), time(analysis.duration())),
        ("bytes".to_owned(), size(flow.bytes)),
        ("goodput".to_owned(), rate(analysis.goodput())),
        ("retransmitted".to_owned(), {
            let all = counts.new + counts.retransmitted;
            format!("{} of {all}", counts.retransmitted)
        }),
    ];
    if let Some(base) = diagnosis.course.path.base_rtt {
        figures.push(("round trip".to_owned(), time(base)));
    }
    figures.push((
        "captured".to_owned(),
        match flow.point.name() {
            "unknown" => "at an unknown point".to_owned(),
            "middle" => "between the hosts".to_owned(),
            place => format!("at the {place}"),
        },
    ));
    parts.push(PagePart::Verdict(verdict::of_tcp(report, judged, &diagnosis, figures)));
    if let Some(guess) = guess_text(&guesses) {
        parts.push(PagePart::Text(format!("It {guess}.")));
    }
    let id = format!("file-{file}-flow-{number}");
    if let Some((table, text)) = exchange_part(analysis) {
        parts.push(PagePart::Table(table));
        parts.push(PagePart::Text(text));
    }
    findings(report, judged, &diagnosis, &id, parts);
    if analysis.packets.is_empty() {
        parts.push(PagePart::Text("There is no graph, since the packets were not kept.".into()));
    } else {
        parts.push(PagePart::Plots(graph::of(analysis, flow, &diagnosis.findings, &id)));
    }
    parts.push(PagePart::Table(tables::rounds(flow, &id)));
}

/// What the time of a connection with requests was spent on.
fn exchange_part(analysis: &Analysis) -> Option<(ReportTable, String)> {
    let lines = exchange_lines(analysis);
    let budget = analysis.exchange.as_deref().filter(|_| !lines.is_empty())?;
    Some((tables::exchange(budget), format!("{}.", lines.join(". "))))
}

fn findings(
    report: &FileReport,
    judged: &ConnectionReport,
    diagnosis: &Diagnosis,
    plots: &str,
    parts: &mut Vec<PagePart>,
) {
    if diagnosis.findings.is_empty() {
        return parts.push(PagePart::Text("No findings.".into()));
    }
    let number = judged.number();
    let active = diagnosis.course.budget.active();
    parts.push(PagePart::Table(tables::findings(&diagnosis.findings, number, active, plots)));
    for found in &diagnosis.findings {
        let title = format!("{}: evidence, cause and cure", found.code);
        let text = finding_text(found, (&report.file.name, judged, active));
        parts.push(PagePart::Folded { title, text });
    }
}

#[cfg(test)]
mod tests {
    use super::without_folders;

    #[test]
    fn folders_are_named_only_where_files_differ_by_them() {
        let two = ["a/sender.pcap", "/tmp/receiver.pcap"];
        assert_eq!(without_folders(&two), ["sender.pcap", "receiver.pcap"]);
        let alike = ["a/sender.pcap", "b/sender.pcap"];
        assert_eq!(without_folders(&alike), alike);
    }
}
