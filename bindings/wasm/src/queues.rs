//! The queues of a scenario's path: where packets wait.

use sim::scenario::{ElementSpec, LinkCapacity, PathSpec, Scenario};

use net::link::QueueLimit;

/// A queue in front of a line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PathQueue {
    /// Index of the element: see [`record::ElementId`].
    pub(crate) element: u32,
    /// Rate of the line in bits per second; `None` if it changes.
    pub(crate) rate_bps: Option<u64>,
    /// Its capacity in bytes, in packets.
    pub(crate) limit: (Option<u64>, Option<u32>),
}

/// The slowest line of each direction of path number `path`: forward, then reverse.
pub(crate) fn slowest(scenario: &Scenario, path: usize) -> [Option<PathQueue>; 2] {
    let own = |element: &&ElementSpec| !matches!(element, ElementSpec::Shared(_));
    let count = |path: &PathSpec| path.forward.iter().chain(&path.reverse).filter(own).count();
    let paths = &scenario.paths;
    let first_shared: usize = paths.iter().map(count).sum();
    let mut next: usize = paths.iter().take(path).map(count).sum();
    let Some(path) = paths.get(path) else { return [None; 2] };
    [&path.forward, &path.reverse].map(|route| {
        let mut found: Option<PathQueue> = None;
        for element in route {
            let (number, element) = match element {
                ElementSpec::Shared(index) => match scenario.shared.get(*index) {
                    Some(shared) => (first_shared + index, &shared.element),
                    None => continue,
                },
                own => {
                    next += 1;
                    (next - 1, own)
                }
            };
            let Some(queue) = queue(number as u32, element) else { continue };
            let rate = |queue: &PathQueue| queue.rate_bps.unwrap_or(0);
            if found.is_none_or(|best| rate(&queue) < rate(&best)) {
                found = Some(queue);
            }
        }
        found
    })
}

fn queue(element: u32, spec: &ElementSpec) -> Option<PathQueue> {
    let (rate_bps, limit) = match spec {
        ElementSpec::Link { rate, limit } => (Some(rate.bits_per_second()), limit),
        ElementSpec::LinkWithQdisc { capacity: LinkCapacity::Rate(rate), limit, .. } => {
            (Some(rate.bits_per_second()), limit)
        }
        ElementSpec::LinkWithQdisc { limit, .. } => (None, limit),
        ElementSpec::Shaper { rate, limit, .. } => (Some(rate.bits_per_second()), limit),
        _ => return None,
    };
    let limit = match limit {
        QueueLimit::Bytes(bytes) => (Some(bytes.get()), None),
        QueueLimit::Packets(packets) => (None, Some(*packets)),
    };
    Some(PathQueue { element, rate_bps, limit })
}
