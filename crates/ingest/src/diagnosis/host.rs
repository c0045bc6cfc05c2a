//! What the counters of a host show: nstat.

use core::fmt::Write;
use std::collections::BTreeMap;

use diagnose::host_counters::{HostCounters, HostLimit};
use diagnose::rules::many;
use serde::Serialize;

/// The counters of a host and what they show, as JSON.
#[derive(Serialize)]
pub(super) struct HostJson<'a> {
    segments_sent: u64,
    retransmitted: u64,
    spurious: u64,
    limits: Vec<HostLimitJson<'a>>,
}

#[derive(Serialize)]
struct HostLimitJson<'a> {
    kind: &'a str,
    code: Option<&'a str>,
    title: String,
    help: &'a str,
    evidence: BTreeMap<&'a str, u64>,
}

impl HostJson<'_> {
    pub(super) fn of(counters: &HostCounters) -> Self {
        let limits = counters.limits().into_iter().map(|limit| {
            let HostLimit { kind, code, title, help, evidence } = limit;
            HostLimitJson { kind, code, title, help, evidence: evidence.into_iter().collect() }
        });
        Self {
            segments_sent: counters.of("TcpOutSegs"),
            retransmitted: counters.retransmitted(),
            spurious: counters.spurious(),
            limits: limits.collect(),
        }
    }
}

/// What the counters show in a line, for the answer before everything else.
pub(super) fn host_answer(counters: &HostCounters) -> String {
    match counters.limits().as_slice() {
        [] => "no fault found by the counters of the host".to_owned(),
        [first, rest @ ..] => {
            let more = match rest.len() {
                0 => String::new(),
                more => format!(" ({more} more below)"),
            };
            format!("by the counters of the host: {}{more}", first.title)
        }
    }
}

/// The counters of a file.
pub(super) fn host_text(counters: &HostCounters, out: &mut String) {
    let (sent, all) = (counters.of("TcpOutSegs"), counters.retransmitted());
    let _ = writeln!(
        out,
        "  all connections of the host: {} sent, {all} retransmitted, {} of them not needed",
        many(sent, "segment"),
        counters.spurious()
    );
    for HostLimit { kind, code, title, help, evidence } in counters.limits() {
        let _ = writeln!(out, "\n  {kind}: {title}");
        let evidence = evidence.iter().map(|(name, value)| format!("{name} {value}"));
        let _ = writeln!(out, "    = counters: {}", evidence.collect::<Vec<_>>().join(", "));
        let _ = match code {
            Some(code) => writeln!(out, "    = help: {help} (ackclock explain {code})"),
            None => writeln!(out, "    = help: {help}"),
        };
    }
}
