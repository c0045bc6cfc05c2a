//! The verdict on a file in a line, where its connections are not shown.

use diagnose::rules::{Severity, many, rule, time};

use super::FileReport;
use super::captured_quic::findings as findings_of_captured;
use super::host::host_answer;
use super::kernel::kernel_limit;
use super::limits::named;

/// What limited the worst connection of a file, and the number of those that were limited.
pub(super) fn verdict_line(report: &FileReport) -> String {
    let quic = report.quic.iter().filter_map(|one| {
        let code = one.diagnosis.primary?;
        let name = diagnose::quic::rules::quic_rule(code).map_or("", |rule| rule.name);
        let kind = one.diagnosis.findings.iter().find(|found| found.code == code);
        let name = named(code, name, kind.map_or("", |found| found.kind));
        let cost = one.diagnosis.cost();
        Some((one.connection.number, code, name, cost, one.diagnosis.failed()))
    });
    let tcp = report.connections.iter().filter_map(|one| {
        let rule = one.primary.and_then(rule)?;
        Some((one.number(), rule.code, named(rule.code, rule.name, one.kind), one.cost, one.failed))
    });
    let limited: Vec<_> = tcp.chain(quic).collect();
    let all = report.connections.len() + report.quic.len() + report.captured_quic.len();
    // Both lists have the worst first.
    let Some(&(number, code, ref name, cost, failed)) = limited.first() else {
        return without_finding(report, all);
    };
    let mut line = format!("verdict: {code} {name}");
    if failed {
        line += ", failed";
    } else if !cost.is_zero() {
        line += &format!(", {} lost", time(cost));
    }
    if all > 1 {
        line += &format!(" (flow {number}); {} of {all} connections limited", limited.len());
    }
    line
}

fn without_finding(report: &FileReport, all: usize) -> String {
    let captured = report.captured_quic.iter().find_map(|one| {
        let found = findings_of_captured(one, report);
        found.into_iter().find(|found| found.severity > Severity::Note)
    });
    if let Some(found) = captured {
        return format!("verdict: {} {}", found.code, found.title);
    }
    let kernel = report.connections.iter().find_map(|one| kernel_limit(&one.analysis()));
    match (kernel, all) {
        (_, 0) if let Some(counters) = &report.file.host_counters => {
            format!("verdict: {}", host_answer(counters))
        }
        (_, 0) => "verdict: none, it has no connection".to_owned(),
        (Some(limit), _) => format!("verdict: {}, by the kernel's account", limit.name()),
        (None, 1) => "verdict: nothing above a note".to_owned(),
        (None, _) => format!("verdict: nothing above a note in {}", many(all as u64, "connection")),
    }
}
