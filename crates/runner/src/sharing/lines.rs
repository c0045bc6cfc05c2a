//! Link statistics: queue delays, lost and marked packets.
//!
//! The queue delay is the time from a packet's arrival to the start of its transmission: zero if
//! the link is idle, else the end of the previous transmission, for any queue discipline.

use record::{ElementId, PacketEvent};
use serde::{Deserialize, Serialize};
use sim::scenario::{ElementSpec, Scenario};
use units::{Duration, Instant};

use super::arrivals::QueueArrivals;
use super::histogram::Histogram;

/// Statistics of a link with its queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinkReport {
    /// Its key in the scenario: `path.0.forward.1`, `shared.up`.
    pub link: String,
    /// Its queue discipline.
    pub queue: String,
    /// Packets sent.
    pub packets: u64,
    /// Packets dropped at the queue.
    pub lost: u64,
    /// Packets marked (ECN).
    pub marked: u64,
    /// Median queue delay of the packets sent.
    pub delay_p50_s: Option<f64>,
    /// 95th percentile.
    pub delay_p95_s: Option<f64>,
    /// 99th percentile.
    pub delay_p99_s: Option<f64>,
    /// Maximum.
    pub delay_max_s: Option<f64>,
}

/// All links of a scenario.
#[derive(Debug, Clone)]
pub(super) struct LinkQueues {
    /// By the index of the element; `None` for elements that are not links.
    elements: Vec<Option<Box<LinkQueue>>>,
    arrivals: QueueArrivals,
}

#[derive(Debug, Clone)]
struct LinkQueue {
    key: String,
    queue: &'static str,
    last_left: Instant,
    waits: Histogram,
    lost: u64,
    marked: u64,
}

/// What a packet event changed at a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QueueChange {
    /// A packet entered.
    Entered,
    /// A packet left after this queue delay.
    Left(Duration),
    /// A packet was dropped; `queued`: from the queue, not on arrival.
    Lost { queued: bool },
}

impl LinkQueues {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let mut elements = Vec::new();
        for (number, path) in scenario.paths.iter().enumerate() {
            for (way, route) in [("forward", &path.forward), ("return", &path.reverse)] {
                for (place, element) in route.iter().enumerate() {
                    if !matches!(element, ElementSpec::Shared(_)) {
                        elements.push(line(element, || format!("path.{number}.{way}.{place}")));
                    }
                }
            }
        }
        let shared = scenario.shared.iter();
        elements.extend(
            shared.map(|shared| line(&shared.element, || format!("shared.{}", shared.name))),
        );
        Self { elements, arrivals: QueueArrivals::default() }
    }

    /// Counts a packet event; returns what it changed at a link.
    #[inline]
    pub(super) fn on_packet_event(
        &mut self,
        at: Instant,
        movement: PacketEvent,
    ) -> Option<QueueChange> {
        match movement {
            PacketEvent::Sent { packet, .. }
            | PacketEvent::Duplicated { copy: packet, .. }
            | PacketEvent::Injected { packet, .. } => {
                self.arrivals.begin(packet);
                None
            }
            PacketEvent::Accepted { hop_index, packet } => {
                self.line(hop_index)?;
                self.arrivals.enter(packet, at);
                Some(QueueChange::Entered)
            }
            PacketEvent::Forwarded { hop_index, packet } => {
                self.line(hop_index)?;
                let arrived = self.arrivals.leave(packet)?;
                let line = self.line(hop_index)?;
                let wait = line.last_left.max(arrived).since(arrived);
                line.waits.add(wait);
                line.last_left = at;
                Some(QueueChange::Left(wait))
            }
            PacketEvent::Dropped { hop_index, packet } => {
                let queued = self.arrivals.end(packet).is_some();
                self.line(hop_index)?.lost += 1;
                Some(QueueChange::Lost { queued })
            }
            PacketEvent::Received { packet, .. } => {
                self.arrivals.end(packet);
                None
            }
            PacketEvent::Marked { hop_index, .. } => {
                self.line(hop_index)?.marked += 1;
                None
            }
            _ => None,
        }
    }

    /// The keys of the links by the index of the element; `None` for elements that are not links.
    pub(super) fn keys(&self) -> impl Iterator<Item = Option<&str>> {
        self.elements.iter().map(|line| line.as_ref().map(|line| &*line.key))
    }

    fn line(&mut self, hop_index: ElementId) -> Option<&mut LinkQueue> {
        self.elements.get_mut(hop_index.0 as usize)?.as_deref_mut()
    }

    pub(super) fn reports(&self) -> Vec<LinkReport> {
        let seconds = |wait: Option<Duration>| wait.map(Duration::as_secs_f64);
        let report = |line: &LinkQueue| LinkReport {
            link: line.key.clone(),
            queue: line.queue.to_owned(),
            packets: line.waits.total(),
            lost: line.lost,
            marked: line.marked,
            delay_p50_s: seconds(line.waits.quantile(500)),
            delay_p95_s: seconds(line.waits.quantile(950)),
            delay_p99_s: seconds(line.waits.quantile(990)),
            delay_max_s: seconds(line.waits.max()),
        };
        self.elements.iter().flatten().map(|line| report(line)).collect()
    }
}

impl LinkQueues {
    /// The key and the delay distribution of each link.
    pub(super) fn distributions(&self) -> impl Iterator<Item = (&str, Vec<(Duration, u64)>)> {
        self.elements.iter().flatten().map(|line| (&*line.key, line.waits.distribution()))
    }
}

/// `None` for elements that are not links.
fn line(element: &ElementSpec, key: impl FnOnce() -> String) -> Option<Box<LinkQueue>> {
    let queue = match element {
        ElementSpec::Link { .. } => "drop-tail",
        ElementSpec::LinkWithQdisc { queue, .. } => queue.name(),
        _ => return None,
    };
    Some(Box::new(LinkQueue {
        key: key(),
        queue,
        last_left: Instant::ZERO,
        waits: Histogram::default(),
        lost: 0,
        marked: 0,
    }))
}

#[cfg(test)]
mod tests {
    use record::PacketNumber;

    use super::*;

    #[test]
    fn a_packet_waits_until_the_one_before_has_left() {
        let rate = units::Rate::from_bits_per_second(1).unwrap();
        let limit = net::link::QueueLimit::Packets(9);
        let elements = vec![line(&ElementSpec::Link { rate, limit }, String::new)];
        let mut lines = LinkQueues { elements, arrivals: QueueArrivals::default() };
        let at = |ns| Instant::ZERO + Duration::from_nanos(ns);
        let (hop_index, p) = (ElementId(0), PacketNumber);
        let mut enter = |ns, n| {
            lines.on_packet_event(at(ns), PacketEvent::Accepted { hop_index, packet: p(n) });
        };
        [(0, 0), (10, 1), (20, 2), (30, 3)].into_iter().for_each(|(ns, n)| enter(ns, n));
        let mut leave = |ns, n| {
            lines.on_packet_event(at(ns), PacketEvent::Forwarded { hop_index, packet: p(n) });
        };
        // The third packet overtakes the second, the fourth is dropped from within the queue.
        leave(100, 0);
        leave(200, 2);
        lines.on_packet_event(at(200), PacketEvent::Dropped { hop_index, packet: p(3) });
        lines.on_packet_event(at(300), PacketEvent::Forwarded { hop_index, packet: p(1) });
        lines.on_packet_event(at(300), PacketEvent::Dropped { hop_index, packet: p(4) });
        // 0, 80 and 190 ns.
        let found = &lines.reports()[0];
        assert_eq!((found.packets, found.lost), (3, 2));
        assert_eq!((found.delay_p50_s, found.delay_max_s), (Some(80e-9), Some(190e-9)));
    }
}
