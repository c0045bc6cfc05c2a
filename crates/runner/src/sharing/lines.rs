//! What lines do to packets: who waits how long, who is lost, who is marked.
//!
//! A packet waits from its coming until the line takes it: at once if it is idle, else as the one
//! before leaves, whichever discipline the queue has.

use std::collections::VecDeque;

use record::{Movement, PacketNumber, StationId};
use serde::{Deserialize, Serialize};
use sim::scenario::{Element, Policy, Scenario};
use units::{Duration, Instant};

use super::histogram::Histogram;

/// What a line with its queue did in a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LineReport {
    /// Its key in the scenario: `path.0.forward.1`, `shared.up`.
    pub link: String,
    /// Its discipline.
    pub queue: String,
    /// Packets that it sent.
    pub packets: u64,
    /// Packets lost in front of it.
    pub lost: u64,
    /// Packets marked (ECN).
    pub marked: u64,
    /// Queue delay that half of the packets sent do not exceed.
    pub delay_p50_s: Option<f64>,
    /// That 95 of 100 do not exceed.
    pub delay_p95_s: Option<f64>,
    /// That 99 of 100 do not exceed.
    pub delay_p99_s: Option<f64>,
    /// The longest.
    pub delay_max_s: Option<f64>,
}

/// All lines of a scenario.
#[derive(Debug, Clone)]
pub(super) struct Lines {
    /// By the number of the station; `None` for one that is no line.
    stations: Vec<Option<Box<Line>>>,
}

#[derive(Debug, Clone)]
struct Line {
    key: String,
    queue: &'static str,
    /// Packets that are there, in the order of their coming.
    held: VecDeque<(PacketNumber, Instant)>,
    last_left: Instant,
    waits: Histogram,
    lost: u64,
    marked: u64,
}

impl Lines {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let mut stations = Vec::new();
        for (number, path) in scenario.paths.iter().enumerate() {
            for (way, road) in [("forward", &path.forward), ("return", &path.reverse)] {
                for (place, element) in road.iter().enumerate() {
                    if !matches!(element, Element::Shared(_)) {
                        stations.push(line(element, || format!("path.{number}.{way}.{place}")));
                    }
                }
            }
        }
        let shared = scenario.shared.iter();
        stations.extend(
            shared.map(|shared| line(&shared.element, || format!("shared.{}", shared.name))),
        );
        Self { stations }
    }

    #[inline]
    pub(super) fn moved(&mut self, at: Instant, movement: Movement) {
        match movement {
            Movement::Entered { station, packet } => {
                if let Some(line) = self.line(station) {
                    line.held.push_back((packet, at));
                }
            }
            Movement::Left { station, packet } => {
                if let Some(line) = self.line(station)
                    && let Some(came) = line.take(packet)
                {
                    line.waits.add(line.last_left.max(came).since(came));
                    line.last_left = at;
                }
            }
            Movement::Dropped { station, packet } => {
                if let Some(line) = self.line(station) {
                    line.take(packet);
                    line.lost += 1;
                }
            }
            Movement::Marked { station, .. } => {
                if let Some(line) = self.line(station) {
                    line.marked += 1;
                }
            }
            _ => {}
        }
    }

    fn line(&mut self, station: StationId) -> Option<&mut Line> {
        self.stations.get_mut(station.0 as usize)?.as_deref_mut()
    }

    pub(super) fn reports(&self) -> Vec<LineReport> {
        let seconds = |wait: Option<Duration>| wait.map(Duration::as_secs_f64);
        let report = |line: &Line| LineReport {
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
        self.stations.iter().flatten().map(|line| report(line)).collect()
    }
}

impl Lines {
    /// Of each line its key and how the waits of its packets are distributed.
    pub(super) fn distributions(&self) -> impl Iterator<Item = (&str, Vec<(Duration, u64)>)> {
        self.stations.iter().flatten().map(|line| (&*line.key, line.waits.distribution()))
    }
}

impl Line {
    /// When a packet came that goes; `None` if it is not there.
    fn take(&mut self, packet: PacketNumber) -> Option<Instant> {
        // A line takes the oldest, a full queue loses the newest; what stands between them is only
        // searched for where a discipline chooses.
        let newest = self.held.len().checked_sub(1)?;
        let is_newest = self.held[newest].0 == packet;
        let place = match is_newest {
            true => newest,
            false => self.held.iter().position(|(held, _)| *held == packet)?,
        };
        self.held.remove(place).map(|(_, came)| came)
    }
}

/// `None` for what is no line.
fn line(element: &Element, key: impl FnOnce() -> String) -> Option<Box<Line>> {
    let queue = match element {
        Element::Link { .. } => "drop-tail",
        Element::ManagedLink { queue, .. } => match queue {
            Policy::DropTail => "drop-tail",
            Policy::CoDel(_) => "codel",
            Policy::FqCoDel(_) => "fq_codel",
            Policy::Pie(_) => "pie",
            Policy::Red(_) => "red",
        },
        _ => return None,
    };
    Some(Box::new(Line {
        key: key(),
        queue,
        held: VecDeque::new(),
        last_left: Instant::ZERO,
        waits: Histogram::default(),
        lost: 0,
        marked: 0,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_waits_until_the_one_before_has_left() {
        let rate = units::Rate::from_bits_per_second(1).unwrap();
        let limit = net::link::Limit::Packets(9);
        let mut lines = Lines { stations: vec![line(&Element::Link { rate, limit }, String::new)] };
        let at = |ns| Instant::ZERO + Duration::from_nanos(ns);
        let (station, p) = (StationId(0), PacketNumber);
        let mut enter = |ns, n| lines.moved(at(ns), Movement::Entered { station, packet: p(n) });
        [(0, 0), (10, 1), (20, 2), (30, 3)].into_iter().for_each(|(ns, n)| enter(ns, n));
        let mut leave = |ns, n| lines.moved(at(ns), Movement::Left { station, packet: p(n) });
        // The third goes before the second, the fourth is lost inside.
        leave(100, 0);
        leave(200, 2);
        lines.moved(at(200), Movement::Dropped { station, packet: p(3) });
        lines.moved(at(300), Movement::Left { station, packet: p(1) });
        lines.moved(at(300), Movement::Dropped { station, packet: p(4) });
        // 0, 80 and 190 ns.
        let found = &lines.reports()[0];
        assert_eq!((found.packets, found.lost), (3, 2));
        assert_eq!((found.delay_p50_s, found.delay_max_s), (Some(80e-9), Some(190e-9)));
    }
}
