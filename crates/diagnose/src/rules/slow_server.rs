//! Whether a server is slow on nearly all of its connections: a part of CC505.
//!
//! A wait of a few tenths of a second before the only response of a connection may be a lost packet, a long poll or
//! chance. On most of the connections of a server it is the server.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use packet::Dir;
use units::Duration;

use super::case::{DiagnosisCase, count, number, seconds, time};
use super::think_time::roles_are_known;
use super::{Confidence, DiagnosisRule, Finding};
use crate::Analysis;
use crate::exchange::{ExchangeShare, LongestWait, MIN_MESSAGE};

/// Range of a wait of a server: a person perceives a shorter one as no delay, a longer one may be that for an event.
const WAIT: core::ops::RangeInclusive<Duration> =
    Duration::from_millis(100)..=Duration::from_secs(3);
/// Fewest connections of a server, and the part of them that must wait: four of five.
const FEWEST: u64 = 5;
const MOST_OF: (u64, u64) = (4, 5);

/// The connections of a server with a response, and those of them on which it was slow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct ServedConnections {
    all: u64,
    slow: u64,
}

/// The servers of a capture point.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct SlowServers {
    servers: BTreeMap<SocketAddr, ServedConnections>,
}

/// The longest wait of the server of a connection before a response; `None` without a response.
fn longest_wait(analysis: &Analysis) -> Option<LongestWait> {
    let budget = analysis.exchange.as_deref()?;
    let sent = analysis.flows[Dir::Reverse as usize].as_deref()?;
    let waits = budget.thinking[Dir::Reverse as usize];
    (waits.count > 0 && sent.bytes >= MIN_MESSAGE).then_some(waits.longest)
}

impl SlowServers {
    /// No servers.
    pub(super) const fn new() -> Self {
        Self { servers: BTreeMap::new() }
    }

    /// Adds a connection.
    pub(super) fn add(&mut self, analysis: &Analysis) {
        let Some(wait) = longest_wait(analysis) else { return };
        let server = self.servers.entry(analysis.ends.dst).or_default();
        server.all += 1;
        server.slow += u64::from(WAIT.contains(&wait.length));
    }
}

/// The finding of a connection whose server is as slow on most of its others.
pub(super) fn finding(case: &DiagnosisCase<'_>, rule: &DiagnosisRule) -> Option<Finding> {
    let analysis = case.analysis;
    if !roles_are_known(case) || case.flow.dir != analysis.main_dir() {
        return None;
    }
    let wait = longest_wait(analysis).filter(|wait| WAIT.contains(&wait.length))?;
    let budget = analysis.exchange.as_deref()?;
    let ServedConnections { all, slow } =
        *case.neighbours.slow_servers.servers.get(&analysis.ends.dst)?;
    let work = budget.whole().saturating_sub(budget.of(ExchangeShare::Idle));
    let is_server = all >= FEWEST && slow * MOST_OF.1 >= all * MOST_OF.0;
    if !is_server || wait.length * 10 < work {
        return None;
    }
    let LongestWait { length, frames, until } = wait;
    let title = format!(
        "the server takes {} before a response, as on {slow} of its {all} connections",
        time(length)
    );
    let (first, last) = frames;
    let mut finding = case
        .finding(rule, length, title)
        .of_kind("think-server")
        .at((until.saturating_sub(length), until), frames)
        .with([
            number(
                "longest_think_s",
                seconds(length),
                "longest",
                format!("{} in frames {first}..{last}", time(length)),
            ),
            count("slow_connections", slow, "slow", format!("{slow} of {all} connections")),
        ])
        .because("the server's application computes, reads a disk or waits for another server")
        .unseen("which of them, and whether it waits for an event, as a long poll does");
    finding.confidence = finding.confidence.min(Confidence::Medium);
    Some(finding)
}
