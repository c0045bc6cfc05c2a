//! A diagnosis as a page: each connection's time budget, its findings, and its time-sequence graph
//! with the findings pinned on it.

mod graph;
mod tables;

use diagnose::Diagnosis;
use diagnose::rules::{many, rate, rule, size, time};
use report::page::{Page, Part};

use crate::run_page::maker;
use ingest::diagnosis::{FileReport, Judged, Report, finding_text, guess_text};

/// Connections that get a chapter of their own, of each file.
const CHAPTERS: usize = 6;

/// A diagnosis as a page. Graphs need the packets ([`Settings::packets`](diagnose::Settings::packets)).
pub fn page(report: &Report) -> Page {
    let names: Vec<_> = report.files.iter().map(|file| file.file.name.clone()).collect();
    let mut parts = Vec::new();
    for (number, file) in report.files.iter().enumerate() {
        file_parts(file, number, &mut parts);
    }
    let joined = report.joined_text();
    if !joined.is_empty() {
        parts.push(Part::Heading("Between the captures".into()));
        parts.push(Part::Verbatim(joined.trim_start().to_owned()));
    }
    Page {
        title: format!("Why is it slow? {}", names.join(", ")),
        lead: String::new(),
        facts: report.files.iter().map(|file| (file.file.name.clone(), facts(file))).collect(),
        maker: maker(),
        parts,
    }
}

fn facts(report: &FileReport) -> String {
    let file = &report.file;
    let connections = many(report.connections.len() as u64, "connection");
    format!("{}, {}, {connections} of TCP", file.kind, many(file.frames, "frame"))
}

fn file_parts(report: &FileReport, number: usize, parts: &mut Vec<Part>) {
    let problems = &report.file.problems;
    if problems.count > 0 {
        let first: Vec<_> = problems.first.iter().take(3).cloned().collect();
        let more = problems.count.saturating_sub(first.len() as u64);
        let more = if more > 0 { format!("\n{more} more") } else { String::new() };
        parts.push(Part::Text(format!("The file is damaged:\n{}{more}", first.join("\n"))));
    }
    if report.connections.len() > 1 {
        parts.push(Part::Heading(format!("Connections of {}", report.file.name)));
        parts.push(Part::Table(tables::connections(report)));
    }
    for judged in report.connections.iter().take(CHAPTERS) {
        chapter(report, judged, number, parts);
    }
    if report.connections.len() > CHAPTERS {
        let left = (report.connections.len() - CHAPTERS) as u64;
        parts.push(Part::Text(format!(
            "{} of this file stand in the table only; a page of one of them is made with --flow.",
            many(left, "more connection")
        )));
    }
}

fn chapter(report: &FileReport, judged: &Judged, file: usize, parts: &mut Vec<Part>) {
    let analysis = &judged.stream.analysis;
    let number = analysis.stream;
    let diagnosis = report.diagnosis(judged);
    parts.push(Part::Heading(format!("Flow {number}: {}", judged.transfer())));
    let Some(flow) = judged.flow() else {
        parts.push(Part::Text(format!("{}, no data.", many(analysis.frames, "packet"))));
        return findings(report, judged, &diagnosis, "", parts);
    };
    let counts = &flow.counts;
    let mut figures = vec![
        ("time".to_owned(), time(analysis.duration().as_nanos())),
        ("bytes".to_owned(), size(flow.bytes)),
        ("goodput".to_owned(), rate(judged.goodput())),
        ("sent again".to_owned(), {
            let all = counts.new + counts.retransmitted;
            format!("{} of {all}", counts.retransmitted)
        }),
    ];
    if let Some(base) = diagnosis.course.path.base_rtt {
        figures.push(("round trip".to_owned(), time(base)));
    }
    let primary = diagnosis.primary.and_then(rule);
    figures.push(("limited by".to_owned(), primary.map_or("–".into(), |rule| rule.code.into())));
    parts.push(Part::Figures(figures));
    let mut told = match primary {
        Some(rule) => format!("{}: {}. ", rule.code, rule.name),
        None => String::new(),
    };
    told += &match flow.point.name() {
        "unknown" => "Where the capture was taken is not known.".to_owned(),
        "middle" => "Captured between the hosts.".to_owned(),
        place => format!("Captured at the {place}."),
    };
    if let Some(guess) = guess_text(&fit::guesses(analysis)) {
        told += &format!(" It {guess}.");
    }
    parts.push(Part::Text(told));
    let id = format!("file-{file}-flow-{number}");
    parts.push(Part::Table(tables::budget(&diagnosis.course.budget)));
    findings(report, judged, &diagnosis, &id, parts);
    if analysis.packets.is_empty() {
        parts.push(Part::Text("Its packets were not kept, so that there is no graph.".into()));
    } else {
        parts.push(Part::Plots(graph::of(analysis, flow, &diagnosis.findings, &id)));
    }
    parts.push(Part::Table(tables::rounds(flow, &id)));
}

fn findings(
    report: &FileReport,
    judged: &Judged,
    diagnosis: &Diagnosis,
    plots: &str,
    parts: &mut Vec<Part>,
) {
    if diagnosis.findings.is_empty() {
        return parts.push(Part::Text("Nothing wrong was found.".into()));
    }
    let number = judged.stream.analysis.stream;
    let active = diagnosis.course.budget.active();
    parts.push(Part::Table(tables::findings(&diagnosis.findings, number, active, plots)));
    for found in &diagnosis.findings {
        let title = format!("{}: evidence, cause and cure", found.code);
        let text = finding_text(found, (&report.file.name, number, active));
        parts.push(Part::Folded { title, text });
    }
}
