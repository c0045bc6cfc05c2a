//! Network, client or server: what the time of connections with requests was spent on, each and by
//! server.

use core::cmp::Reverse;
use core::fmt::Write;
use std::collections::BTreeMap;
use std::net::SocketAddr;

use diagnose::exchange::Waits;
use diagnose::rules::{many, time};
use diagnose::{Analysis, ExchangeBudget, ExchangeShare};
use packet::Dir;
use scenario::ReportStyle;
use serde::Serialize;
use units::Duration;

use super::text::time_bar;
use super::{ConnectionReport, FileReport};

/// Most servers that are shown.
const SHOWN: usize = 10;

const LETTERS: [(ExchangeShare, char, &str); 5] = [
    (ExchangeShare::Network, 'n', "35"),
    (ExchangeShare::Client, 'c', "36"),
    (ExchangeShare::Server, 's', "31"),
    (ExchangeShare::Transfer, 't', "32"),
    (ExchangeShare::Idle, '.', "90"),
];

/// The parts of an [`ExchangeBudget`] that a report keeps of each connection with data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct ExchangeSummary {
    network: Duration,
    client: Duration,
    server: Duration,
    transfer: Duration,
    requests: u32,
    /// Mean time to the first byte, in microseconds.
    first_byte_us: u32,
}

impl ExchangeSummary {
    /// That of a connection; `None` without data.
    pub(super) fn of(analysis: &Analysis) -> Option<Self> {
        let budget = analysis.exchange.as_deref()?;
        let limited = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        Some(Self {
            network: budget.of(ExchangeShare::Network),
            client: budget.of(ExchangeShare::Client),
            server: budget.of(ExchangeShare::Server),
            transfer: budget.of(ExchangeShare::Transfer),
            requests: limited(budget.requests()),
            first_byte_us: limited(budget.first_byte.mean().unwrap_or_default().as_micros()),
        })
    }

    /// Time spent on this; 0 for idle time.
    pub(super) const fn spent(&self, share: ExchangeShare) -> Duration {
        match share {
            ExchangeShare::Network => self.network,
            ExchangeShare::Client => self.client,
            ExchangeShare::Server => self.server,
            ExchangeShare::Transfer => self.transfer,
            ExchangeShare::Idle => Duration::ZERO,
        }
    }

    fn add(&mut self, other: &Self) {
        self.network += other.network;
        self.client += other.client;
        self.server += other.server;
        self.transfer += other.transfer;
        self.requests = self.requests.saturating_add(other.requests);
    }
}

/// The summaries of a file, by the numbers of the connections.
#[derive(Debug, Default)]
pub(super) struct Exchanges(Vec<(u32, ExchangeSummary)>);

impl Exchanges {
    pub(super) fn add(&mut self, number: u32, summary: Option<ExchangeSummary>) {
        self.0.extend(summary.map(|summary| (number, summary)));
    }

    /// Makes [`of`](Self::of) find what was added.
    pub(super) fn sort(&mut self) {
        self.0.sort_by_key(|(number, _)| *number);
    }

    /// The summary of a connection.
    pub(super) fn of(&self, one: &ConnectionReport) -> Option<&ExchangeSummary> {
        let number = one.number();
        let index = self.0.binary_search_by_key(&number, |(number, _)| *number).ok()?;
        self.0.get(index).map(|(_, summary)| summary)
    }
}

/// Sums of the parts, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Default)]
pub(super) struct SpentJson {
    network_s: f64,
    client_s: f64,
    server_s: f64,
    transfer_s: f64,
}

impl SpentJson {
    /// The sum over connections.
    pub(super) fn sum<'a>(all: impl Iterator<Item = &'a ExchangeSummary>) -> Self {
        let mut sum = ExchangeSummary::default();
        all.for_each(|one| sum.add(one));
        Self::of(&sum)
    }

    fn of(sum: &ExchangeSummary) -> Self {
        let seconds = Duration::as_secs_f64;
        Self {
            network_s: seconds(sum.network),
            client_s: seconds(sum.client),
            server_s: seconds(sum.server),
            transfer_s: seconds(sum.transfer),
        }
    }
}

/// The connections to a server.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct ServerJson {
    server: String,
    connections: u64,
    requests: u64,
    /// Median over the connections of their mean.
    first_byte_s: f64,
    spent: SpentJson,
    #[serde(skip)]
    sum: ExchangeSummary,
}

/// The servers that answered requests: those with the most waiting for network and server first.
pub(super) fn servers(report: &FileReport) -> Vec<ServerJson> {
    let mut all: BTreeMap<SocketAddr, (u64, ExchangeSummary, Vec<u32>)> = BTreeMap::new();
    for one in &report.connections {
        let Some(summary) = report.exchanges.of(one).filter(|one| one.requests > 0) else {
            continue;
        };
        let (connections, sum, first) = all.entry(one.stream.ends().dst).or_default();
        *connections += 1;
        sum.add(summary);
        first.push(summary.first_byte_us);
    }
    let mut servers: Vec<_> = all
        .into_iter()
        .map(|(server, (connections, sum, mut first))| {
            first.sort_unstable();
            ServerJson {
                server: server.to_string(),
                connections,
                requests: u64::from(sum.requests),
                first_byte_s: f64::from(first[first.len() / 2]) / 1e6,
                spent: SpentJson::of(&sum),
                sum,
            }
        })
        .collect();
    servers.sort_by_key(|one| Reverse(one.sum.network + one.sum.server));
    servers
}

/// The table of the servers, in lines; empty if none answered a request.
pub(super) fn servers_text(report: &FileReport) -> Vec<String> {
    let servers = servers(report);
    if servers.is_empty() {
        return Vec::new();
    }
    let mut rows = vec![
        [
            "server",
            "connections",
            "requests",
            "first byte",
            "network",
            "client",
            "server",
            "transfer",
        ]
        .map(str::to_owned),
    ];
    for one in servers.iter().take(SHOWN) {
        let first_byte = Duration::from_nanos((one.first_byte_s * 1e9) as u64);
        let spent = |share| time(one.sum.spent(share));
        rows.push([
            one.server.clone(),
            one.connections.to_string(),
            one.requests.to_string(),
            time(first_byte),
            spent(ExchangeShare::Network),
            spent(ExchangeShare::Client),
            spent(ExchangeShare::Server),
            spent(ExchangeShare::Transfer),
        ]);
    }
    let widths: [usize; 8] =
        core::array::from_fn(|n| rows.iter().map(|row| row[n].len()).max().unwrap_or(0));
    let mut lines = vec!["requests: what the time was spent on, by server".to_owned()];
    for row in &rows {
        let mut line = format!("  {:<w$}", row[0], w = widths[0]);
        for (cell, width) in row.iter().zip(widths).skip(1) {
            let _ = write!(line, "  {cell:>width$}");
        }
        lines.push(line);
    }
    if servers.len() > SHOWN {
        lines.push(format!("  ... and {} more (--json)", servers.len() - SHOWN));
    }
    lines
}

/// What the time of a connection with requests was spent on; empty without requests.
pub(super) fn exchange_text(analysis: &Analysis, look: ReportStyle) -> String {
    let mut out = String::new();
    let Some(budget) = analysis.exchange.as_deref().filter(|one| has_turns(one)) else {
        return out;
    };
    let parts =
        LETTERS.map(|(share, letter, colour)| (budget.of(share), letter, share.name(), colour));
    let (bar, shares) = time_bar(&parts, look);
    let _ = writeln!(out, "  spent [{bar}]");
    let _ = writeln!(out, "        {shares}");
    for line in waits(budget) {
        let _ = writeln!(out, "        {line}");
    }
    out
}

const fn has_turns(budget: &ExchangeBudget) -> bool {
    budget.thinking[0].count + budget.thinking[1].count > 0
}

/// The turns of a connection, in lines.
fn waits(budget: &ExchangeBudget) -> Vec<String> {
    let mut lines = Vec::new();
    let at_most = |waits: &Waits| {
        let longest = waits.longest;
        let (from, to) = longest.frames;
        match waits.count {
            1 => format!("{} (frames {from}..{to})", time(longest.length)),
            _ => {
                let mean = time(waits.mean().unwrap_or_default());
                format!("{mean} on average, {} at most (frames {from}..{to})", time(longest.length))
            }
        }
    };
    if budget.requests() > 0 {
        let requests = many(budget.requests(), "request");
        lines
            .push(format!("{requests} answered; first byte after {}", at_most(&budget.first_byte)));
    }
    for (dir, host, what) in
        [(Dir::Reverse, "server", "response"), (Dir::Forward, "client", "further request")]
    {
        let waits = &budget.thinking[dir as usize];
        if waits.count > 0 {
            let what = if waits.count == 1 { format!("the {what}") } else { format!("{what}s") };
            lines.push(format!("the {host} thinks before {what}: {}", at_most(waits)));
        }
    }
    lines
}

/// The turns of a connection in sentences, for a page; empty without requests.
pub fn exchange_lines(analysis: &Analysis) -> Vec<String> {
    analysis.exchange.as_deref().map_or_else(Vec::new, waits)
}

/// What the time of a connection was spent on, for JSON.
#[derive(Debug, Serialize)]
pub(super) struct ExchangeJson {
    /// Round trips of the handshake, from the capture point; `null` if it was not captured.
    handshake_to_server_s: Option<f64>,
    handshake_to_client_s: Option<f64>,
    requests: u64,
    first_byte: WaitsJson,
    server_think: WaitsJson,
    client_think: WaitsJson,
    budget: ExchangeBudgetJson,
    largest: Option<&'static str>,
}

#[derive(Debug, Serialize)]
struct ExchangeBudgetJson {
    network_s: f64,
    client_s: f64,
    server_s: f64,
    transfer_s: f64,
    idle_s: f64,
}

#[derive(Debug, Serialize)]
struct WaitsJson {
    count: u64,
    total_s: f64,
    mean_s: Option<f64>,
    longest_s: Option<f64>,
    longest_frames: Option<[u64; 2]>,
}

impl WaitsJson {
    fn of(waits: &Waits) -> Self {
        let seconds = Duration::as_secs_f64;
        let longest = (waits.count > 0).then_some(waits.longest);
        Self {
            count: waits.count,
            total_s: seconds(waits.total),
            mean_s: waits.mean().map(seconds),
            longest_s: longest.map(|one| seconds(one.length)),
            longest_frames: longest.map(|one| [one.frames.0, one.frames.1]),
        }
    }
}

impl ExchangeJson {
    pub(super) fn of(analysis: &Analysis) -> Option<Self> {
        let budget = analysis.exchange.as_deref()?;
        let seconds = Duration::as_secs_f64;
        let handshake =
            |distance: Option<Duration>| distance.filter(|_| analysis.opened).map(seconds);
        Some(Self {
            handshake_to_server_s: handshake(analysis.distances.to_server),
            handshake_to_client_s: handshake(analysis.distances.to_client),
            requests: budget.requests(),
            first_byte: WaitsJson::of(&budget.first_byte),
            server_think: WaitsJson::of(&budget.thinking[Dir::Reverse as usize]),
            client_think: WaitsJson::of(&budget.thinking[Dir::Forward as usize]),
            budget: ExchangeBudgetJson {
                network_s: seconds(budget.of(ExchangeShare::Network)),
                client_s: seconds(budget.of(ExchangeShare::Client)),
                server_s: seconds(budget.of(ExchangeShare::Server)),
                transfer_s: seconds(budget.of(ExchangeShare::Transfer)),
                idle_s: seconds(budget.of(ExchangeShare::Idle)),
            },
            largest: budget.largest().map(ExchangeShare::name),
        })
    }
}
