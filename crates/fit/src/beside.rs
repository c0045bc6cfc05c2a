//! Other recorded connections that share the bottleneck of a fitted one.
//!
//! Connections between the same two hosts whose data go the same way at the same time take the same path. Then one
//! link has the rate of all of them together, and each of the others is a flow of its own beside the transfer.

use std::net::IpAddr;

use diagnose::Analysis;
use packet::Dir;
use scenario::document::{ElementTable, FlowTable, HostTable, Located, PathTable, given};
use units::Duration;

use crate::text::LONGEST;
use crate::{Basis, LossPattern, PathFit};

/// Most connections beside a transfer.
const MOST: usize = 8;
/// A connection with fewer bytes than this part of the transfer takes nothing from it: one of this number.
const LEAST_PART: u64 = 50;
/// Least part of the time of the transfer in which another one must deliver: one of this number.
const LEAST_OVERLAP: u64 = 10;
/// Windows in which the throughput of all is counted: round trips, and least length in ns.
const WINDOW: (u64, u64) = (4, 20_000_000);
/// Fewest windows that show a rate.
const FEWEST_WINDOWS: usize = 4;

/// A recorded connection beside a transfer.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowBeside {
    /// Its fit; the link of its path is that of the transfer.
    pub(crate) fit: PathFit,
    /// When it begins, in ns from the first packet of the transfer.
    pub(crate) start: u64,
    /// Its sender.
    pub(crate) sender: (&'static str, Option<&'static str>),
    /// Its number in the capture.
    stream: u32,
}

/// Sender and receiver of the data of a connection.
fn hosts(analysis: &Analysis) -> (IpAddr, IpAddr) {
    let (client, server) = (analysis.ends.src.ip(), analysis.ends.dst.ip());
    match analysis.main_dir() {
        Dir::Forward => (client, server),
        Dir::Reverse => (server, client),
    }
}

impl FlowBeside {
    /// The connections among `others` that share the path of the transfer `own`, which `fit` fits; none if there are
    /// too many for a simulation, or one of them cannot be fitted. `sender_of` names the sender of each.
    pub fn of(
        own: &Analysis,
        fit: &PathFit,
        others: &[&Analysis],
        sender_of: impl Fn(&Analysis, &PathFit) -> (&'static str, Option<&'static str>),
    ) -> Vec<Self> {
        let own_span = Span::of(own, fit);
        let mut beside = Vec::new();
        for &other in others {
            let is_same = other.stream == own.stream || hosts(other) != hosts(own);
            if is_same || other.bytes() * LEAST_PART < fit.bytes {
                continue;
            }
            // What cannot be fitted takes its part all the same.
            let Ok(found) = PathFit::of(other) else { return Vec::new() };
            let span = Span::of(other, &found);
            if span.overlap(own_span) * LEAST_OVERLAP < fit.time {
                continue;
            }
            let sender = sender_of(other, &found);
            let start = other.first.as_nanos().saturating_sub(own.first.as_nanos());
            let before = own.first.as_nanos().saturating_sub(other.first.as_nanos());
            let fit = found.since(before);
            beside.push(Self { fit, start, sender, stream: other.stream });
        }
        if beside.len() > MOST { Vec::new() } else { beside }
    }
}

/// Begin and end of a delivery, in ns on the clock of the capture.
#[derive(Debug, Clone, Copy)]
struct Span(u64, u64);

impl Span {
    fn of(analysis: &Analysis, fit: &PathFit) -> Self {
        let begin = if fit.opened { 0 } else { fit.first_data };
        let begin = analysis.first.as_nanos() + begin;
        Self(begin, begin + fit.time)
    }

    fn overlap(self, other: Self) -> u64 {
        self.1.min(other.1).saturating_sub(self.0.max(other.0))
    }
}

impl PathFit {
    /// What remains of the transfer `before` ns after its first packet.
    fn since(self, before: u64) -> Self {
        if before == 0 {
            return self;
        }
        let gone = self.delivered_at(before);
        let mut rest = Self { conversation: None, ..self };
        rest.bytes = rest.bytes.saturating_sub(gone).max(1);
        let later = |span: &mut (u64, u64)| {
            *span = (span.0.saturating_sub(before), span.1.saturating_sub(before));
        };
        rest.losses.outages.iter_mut().for_each(later);
        rest.losses.outages.retain(|span| span.1 > 0);
        let skipped = gone / rest.mss.max(1);
        rest.losses.packets.retain(|one| one.0 > skipped);
        rest.losses.packets.iter_mut().for_each(|one| one.0 -= skipped);
        rest
    }

    /// Bytes delivered by `at` ns.
    fn delivered_at(&self, at: u64) -> u64 {
        let point = self.delivered.partition_point(|point| point.0 <= at);
        point.checked_sub(1).map_or(0, |last| self.delivered[last].1)
    }

    /// The rate of the link that the transfer and those beside it share, in bit/s of IP packets: the throughput of all
    /// in most windows in which several deliver. `None` if there are few of them.
    pub fn rate_of_all(&self, beside: &[FlowBeside]) -> Option<u64> {
        let window = (WINDOW.0 * self.rtt).max(WINDOW.1);
        let wire = |fit: &Self, bytes: u64| {
            bytes as f64 * (fit.mss + fit.headers) as f64 / fit.mss.max(1) as f64
        };
        let in_window = |fit: &Self, start: u64, from: u64| {
            let at = |time: u64| fit.delivered_at(time.saturating_sub(start));
            wire(fit, at(from + window).saturating_sub(at(from)))
        };
        let mut rates = Vec::new();
        let mut from = 0;
        while from + window <= self.time {
            let own = in_window(self, 0, from);
            let others: Vec<f64> =
                beside.iter().map(|one| in_window(&one.fit, one.start, from)).collect();
            if own > 0.0 && others.iter().any(|&bytes| bytes > 0.0) {
                let all = own + others.iter().sum::<f64>();
                rates.push((all * 8e9 / window as f64) as u64);
            }
            from += window;
        }
        rates.sort_unstable();
        (rates.len() >= FEWEST_WINDOWS).then(|| rates[rates.len() * 3 / 4])
    }

    /// The transfer beside others over a link of this rate. `is_full`: the losses of all are those of its full queue.
    #[must_use]
    pub fn with_beside(&self, mut beside: Vec<FlowBeside>, rate: u64, is_full: bool) -> Self {
        let mut other =
            Self { rate: Some(rate), is_rate_seen: true, rate_at_most: None, ..self.clone() };
        if is_full {
            let lost = core::mem::take(&mut other.losses.packets);
            other.overflowed.extend(lost);
            other.overflows = other.overflowed.len() as u64;
            other.bases.retain(|one| one.what != "loss" && one.what != "buffer");
        }
        // The round trips at the losses of some may be of other times, too.
        let own = [self.queueing];
        let mut queueing: Vec<u64> =
            own.into_iter().chain(beside.iter().map(|one| one.fit.queueing)).collect();
        queueing.retain(|&delay| delay > 0);
        queueing.sort_unstable();
        let queueing = queueing.get(queueing.len().saturating_sub(1) / 2).copied().unwrap_or(0);
        let is_overflowing = is_full || other.overflows > 0;
        other.buffer = is_overflowing.then(|| {
            (rate as f64 / 8.0 * queueing as f64 / 1e9) as u64 + other.mss + other.headers
        });
        for one in &mut beside {
            one.fit.rate = Some(rate);
            if is_overflowing {
                one.fit.losses.packets.clear();
            }
        }
        let numbers: Vec<String> = beside.iter().map(|one| one.stream.to_string()).collect();
        let flows = if numbers.len() == 1 { "flow" } else { "flows" };
        let why = format!(
            "{rate} bit/s, shared with {flows} {} of the capture, which are simulated too",
            numbers.join(", ")
        );
        other.bases.retain(|one| one.what != "rate");
        other.bases.push(Basis { what: "rate", why });
        if let Some(buffer) = other.buffer {
            let why = format!("{buffer} B: the queue of all at the losses");
            other.bases.push(Basis { what: "buffer", why });
        }
        other.beside = beside;
        other
    }

    /// A change of the scenario as its keys are with several paths and flows: those of the transfer are the first, and
    /// the link is shared.
    pub(crate) fn located(&self, change: String) -> String {
        if self.beside.is_empty() {
            return change;
        }
        let link = change.strip_prefix("path.forward.link.");
        if let Some(rest) = link {
            return format!("shared.{SHARED_LINK}.link.{rest}");
        }
        for table in ["path", "flow"] {
            let key = change.strip_prefix(table).and_then(|rest| rest.strip_prefix('.'));
            if let Some(key) =
                key.filter(|key| !key.starts_with(|first: char| first.is_ascii_digit()))
            {
                return format!("{table}.0.{key}");
            }
        }
        change
    }

    /// The same without what happens to the packets of those beside it on the path.
    pub(crate) fn clear_losses_beside(&mut self, of_packets: bool, outages: bool) {
        for one in &mut self.beside {
            if of_packets {
                one.fit.losses.packets.clear();
                one.fit.policer = None;
            }
            if outages {
                one.fit.losses.outages.clear();
                one.fit.held = None;
            }
        }
    }
}

/// Name of the link that several connections share.
pub(crate) const SHARED_LINK: &str = "bottleneck";

/// Replaces the link of a path by the one that several paths share; returns it.
pub(crate) fn share_link(path: &mut PathTable) -> Option<ElementTable> {
    let route = path.forward.as_mut()?;
    let link = route.value.iter_mut().find(|element| element.value.link.is_some())?;
    let shared = ElementTable { shared: given(SHARED_LINK), ..ElementTable::default() };
    Some(core::mem::replace(&mut link.value, shared))
}

/// Hosts, path and flow of a connection beside the transfer.
pub(crate) struct BesideTables {
    pub(crate) hosts: [(String, HostTable); 2],
    pub(crate) path: PathTable,
    pub(crate) flow: FlowTable,
}

impl FlowBeside {
    /// The tables of the `number`-th connection.
    pub(crate) fn tables(&self, number: usize, chance: LossPattern) -> BesideTables {
        let Self { fit, start, sender: (profile, cc), .. } = self;
        let name = |host: &str| format!("{host}-{number}");
        let renamed =
            |host: Option<Located<String>>| host.and_then(|host| given(name(&host.value)));
        let mut path = fit.path(chance);
        share_link(&mut path);
        let flow = fit.flow();
        let start = Duration::from_micros((*start).min(LONGEST) / 1_000);
        BesideTables {
            hosts: [(name("sender"), fit.sender(profile, *cc)), (name("receiver"), fit.receiver())],
            path: PathTable { from: renamed(path.from), to: renamed(path.to), ..path },
            flow: FlowTable {
                name: given(name("beside")),
                from: renamed(flow.from),
                to: renamed(flow.to),
                start: (!start.is_zero()).then(|| given(start)).flatten(),
                ..flow
            },
        }
    }
}
