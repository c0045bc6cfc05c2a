//! Whether a host waits within its messages, after their heads: a part of CC505 and CC506.
//!
//! A client that asks for permission first (Expect: 100-continue, RFC 9110 section 10.1.1) and gets none waits a second
//! or so; a server sends the head of a response and then computes the rest.

use packet::Dir;

use super::case::{DiagnosisCase, many, number, seconds, time, time_percent};
use super::think_time::roles_are_known;
use super::{DiagnosisRule, Finding, Severity};
use crate::exchange::ExchangeShare;

/// The finding about the messages of a host, if their waits are a tenth of the time or more.
pub(super) fn finding(
    case: &DiagnosisCase<'_>,
    rule: &DiagnosisRule,
    host: Dir,
) -> Option<Finding> {
    let budget = case.analysis.exchange.as_deref()?;
    if !roles_are_known(case) || case.flow.dir != case.analysis.main_dir() {
        return None;
    }
    let waits = budget.held[host as usize];
    // One message that is as late as the others is: what preceded it was the end of an opening.
    let habit = budget.thinking[host as usize].mean().unwrap_or_default();
    if waits.count == 1 && habit * 2 >= waits.total {
        return None;
    }
    let work = budget.whole().saturating_sub(budget.of(ExchangeShare::Idle));
    let severity = DiagnosisCase::severity_of_wait(waits.total, work);
    if severity == Severity::Note {
        return None;
    }
    let name = if host == Dir::Forward { "client" } else { "server" };
    let title = format!(
        "the {name} waits {} within {}, after the first bytes: {} of the time",
        time(waits.total),
        many(waits.count, "message"),
        time_percent(waits.total, work)
    );
    let (first, last) = waits.longest.frames;
    let longest = format!("{} in frames {first}..{last}", time(waits.longest.length));
    let mut finding = case
        .finding(rule, waits.total, title)
        .of_kind("in-request")
        .with([
            number("held_s", seconds(waits.total), "waits", time(waits.total)),
            number("longest_held_s", seconds(waits.longest.length), "longest", longest),
        ])
        .because(format!("the {name}'s application sends the head of a message and the rest later"))
        .unseen("what it waits for: permission (Expect: 100-continue), a disk, another server");
    finding.severity = severity;
    Some(finding)
}
