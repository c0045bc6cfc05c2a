//! Connections to the same server with the same cause.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use diagnose::rules::{many, rule, time};
use serde::Serialize;
use units::Duration;

use super::FileReport;
use super::exchange::{ExchangeSummary, SpentJson, servers_text};

/// Most groups that are shown.
const SHOWN: usize = 10;
/// Fewest connections of a file that are summarised.
const MIN_CONNECTIONS: usize = 4;

/// Connections to a server that one cause limited.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct ConnectionGroup {
    /// Address and port.
    server: String,
    /// Code of the finding.
    code: &'static str,
    /// Number of connections.
    connections: u64,
    /// Median and sum of its cost, in seconds.
    median_cost_s: f64,
    cost_s: f64,
    /// What the time of those with data was spent on.
    spent: SpentJson,
    #[serde(skip)]
    cost: (Duration, Duration),
    /// Connections of the group failed.
    #[serde(skip)]
    failed: bool,
}

impl ConnectionGroup {
    fn text(&self) -> String {
        let name = rule(self.code).map_or("", |rule| rule.name);
        let (median, sum) = self.cost;
        let cost = match (median, sum) {
            (_, Duration::ZERO) => String::new(),
            (median, _) if self.connections > 1 => {
                format!(", {} each, {} in all", time(median), time(sum))
            }
            _ => format!(", {}", time(sum)),
        };
        let connections = many(self.connections, "connection");
        format!("{connections} to {}: {} {name}{cost}", self.server, self.code)
    }
}

/// The groups of a file: failed connections first, then by cost.
pub(super) fn groups(report: &FileReport) -> Vec<ConnectionGroup> {
    type GroupMembers<'a> = (Vec<Duration>, Vec<&'a ExchangeSummary>, bool);
    let mut costs: BTreeMap<(SocketAddr, &'static str), GroupMembers<'_>> = BTreeMap::new();
    for one in &report.connections {
        if let Some(code) = one.primary {
            let (costs, spent, failed) = costs.entry((one.stream.ends().dst, code)).or_default();
            costs.push(one.cost);
            *failed |= one.failed;
            spent.extend(report.exchanges.of(one));
        }
    }
    let mut all: Vec<_> = costs
        .into_iter()
        .map(|((server, code), (mut costs, spent, failed))| {
            costs.sort_unstable();
            let median = costs[costs.len() / 2];
            let sum: Duration = costs.iter().copied().sum();
            ConnectionGroup {
                server: server.to_string(),
                code,
                connections: costs.len() as u64,
                median_cost_s: median.as_secs_f64(),
                cost_s: sum.as_secs_f64(),
                spent: SpentJson::sum(spent.into_iter()),
                cost: (median, sum),
                failed,
            }
        })
        .collect();
    all.sort_by_key(|one| core::cmp::Reverse((one.failed, one.cost.1, one.connections)));
    all
}

/// The summary of a file with several connections, in lines.
pub(super) fn summary(report: &FileReport) -> Vec<String> {
    if report.connections.len() < MIN_CONNECTIONS {
        return Vec::new();
    }
    let failed = report.connections.iter().filter(|one| one.failed).count();
    let limited =
        report.connections.iter().filter(|one| !one.failed && one.primary.is_some()).count();
    let rest = report.connections.len() - failed - limited;
    let mut lines = vec![format!(
        "summary: {failed} failed, {limited} limited by a finding, {rest} without one above a note"
    )];
    let groups = groups(report);
    lines.extend(groups.iter().take(SHOWN).map(|group| format!("  {}", group.text())));
    if groups.len() > SHOWN {
        lines.push(format!("  ... and {} more (--csv, --json)", groups.len() - SHOWN));
    }
    lines.extend(servers_text(report));
    lines
}
