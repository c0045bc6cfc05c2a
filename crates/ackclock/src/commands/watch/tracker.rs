//! Follows sockets from poll to poll.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use diagnose::socket::{SocketLimit, SocketSample, SocketVerdict};
use units::Instant;
use wire_io::socket_table::{KernelSocket, SocketCookie, SocketSnapshot};

/// Which sockets are followed.
#[derive(Debug, Clone, Default)]
pub(super) struct SocketFilter {
    /// Addresses of either host.
    pub(super) hosts: Vec<IpAddr>,
    /// Ports of either host.
    pub(super) ports: Vec<u16>,
}

impl SocketFilter {
    fn admits(&self, socket: &KernelSocket) -> bool {
        let ends = [socket.local, socket.remote];
        let has_ip = |ip: &IpAddr| ends.iter().any(|end| end.ip() == *ip);
        let has_port = |port: &u16| ends.iter().any(|end| end.port() == *port);
        (self.hosts.is_empty() || self.hosts.iter().any(has_ip))
            && (self.ports.is_empty() || self.ports.iter().any(has_port))
    }
}

/// A socket with what limited it.
#[derive(Debug, Clone)]
pub(super) struct WatchedSocket {
    pub(super) socket: KernelSocket,
    pub(super) verdict: SocketVerdict,
    /// Data arrive rather than leave.
    pub(super) receives: bool,
}

/// A socket that is no longer there.
#[derive(Debug, Clone)]
pub(super) struct GoneSocket {
    /// Its last sample, with the verdict since it was first polled.
    pub(super) watched: WatchedSocket,
    pub(super) ending: SocketEnding,
}

/// How a socket ended, as far as polls show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SocketEnding {
    /// It is in TIME-WAIT: this host closed first, in order.
    ClosedHere,
    /// It was being closed at the last poll.
    Closed,
    /// It was established at the last poll: reset, killed, or closed by the peer first, since then.
    Vanished,
}

impl SocketEnding {
    /// Its name in JSON.
    pub(super) const fn key(self) -> &'static str {
        match self {
            Self::ClosedHere => "closed_here",
            Self::Closed => "closed",
            Self::Vanished => "vanished",
        }
    }

    /// What it means, in words.
    pub(super) const fn meaning(self) -> &'static str {
        match self {
            Self::ClosedHere => "closed in order, by this host first",
            Self::Closed => "closed in order",
            Self::Vanished => {
                "established at the last poll, then gone: reset, killed, or closed by the peer first"
            }
        }
    }
}

/// The sockets of an interval.
#[derive(Debug, Clone, Default)]
pub(super) struct WatchedInterval {
    /// Those with data, most first.
    pub(super) active: Vec<WatchedSocket>,
    /// Number of those without.
    pub(super) idle: usize,
    /// Those that ended.
    pub(super) gone: Vec<GoneSocket>,
}

/// First and last sample of each socket.
#[derive(Debug, Default)]
pub(super) struct SocketTracker {
    filter: SocketFilter,
    known: BTreeMap<SocketCookie, TrackedSocket>,
    polled: Option<Instant>,
}

#[derive(Debug)]
struct TrackedSocket {
    first: SocketSample,
    last: KernelSocket,
}

impl SocketTracker {
    pub(super) fn new(filter: SocketFilter) -> Self {
        Self { filter, ..Self::default() }
    }

    /// Takes a poll at `at` and returns what happened since the one before.
    pub(super) fn poll(&mut self, at: Instant, snapshot: SocketSnapshot) -> WatchedInterval {
        let mut interval = WatchedInterval::default();
        let mut before = core::mem::take(&mut self.known);
        for (cookie, socket) in snapshot.sockets {
            if !self.filter.admits(&socket) {
                continue;
            }
            let old = before.remove(&cookie);
            // A socket that was not there before began in this interval.
            let new =
                SocketSample { at: self.polled, app_limited: true, ..SocketSample::default() };
            let start = old.as_ref().map_or(new, |old| old.last.sample);
            let watched = WatchedSocket::of(&start, socket.clone());
            if watched.verdict.limit == SocketLimit::Idle {
                interval.idle += 1;
            } else if self.polled.is_some() {
                interval.active.push(watched);
            }
            let first = old
                .map_or(if self.polled.is_some() { new } else { socket.sample }, |old| old.first);
            self.known.insert(cookie, TrackedSocket { first, last: socket });
        }
        interval.active.sort_by_key(|one| core::cmp::Reverse(one.verdict.bytes));
        interval.gone = before
            .into_values()
            .map(|old| {
                let ends: (SocketAddr, SocketAddr) = (old.last.local, old.last.remote);
                let ending = match old.last.state {
                    _ if snapshot.time_wait.contains(&ends) => SocketEnding::ClosedHere,
                    "ESTAB" | "SYN-SENT" | "SYN-RECV" => SocketEnding::Vanished,
                    _ => SocketEnding::Closed,
                };
                GoneSocket { watched: WatchedSocket::of(&old.first, old.last), ending }
            })
            .collect();
        self.polled = Some(at);
        interval
    }

    /// What limited the sockets that are there since they were first polled, those with most data
    /// first.
    pub(super) fn summary(&self) -> Vec<WatchedSocket> {
        let known = self.known.values();
        let mut all: Vec<_> =
            known.map(|one| WatchedSocket::of(&one.first, one.last.clone())).collect();
        all.retain(|one| one.verdict.limit != SocketLimit::Idle);
        all.sort_by_key(|one| core::cmp::Reverse(one.verdict.bytes));
        all
    }
}

impl WatchedSocket {
    fn of(start: &SocketSample, socket: KernelSocket) -> Self {
        let verdict = SocketVerdict::of(Some(start), &socket.sample);
        let moved = |value: fn(&SocketSample) -> Option<u64>| {
            value(&socket.sample).unwrap_or(0).saturating_sub(value(start).unwrap_or(0))
        };
        let receives = moved(|one| one.received) > moved(|one| one.acked);
        Self { socket, verdict, receives }
    }
}

#[cfg(test)]
mod tests {
    use units::Duration;

    use super::*;

    fn socket(port: u16, ns: u64, acked: u64) -> KernelSocket {
        KernelSocket {
            local: ([10, 0, 0, 1], port).into(),
            remote: ([10, 0, 0, 2], 80).into(),
            state: "ESTAB",
            cc: "reno".to_owned(),
            sample: SocketSample {
                at: Some(Instant::from_nanos(ns)),
                acked: Some(acked),
                busy: Some(Duration::from_nanos(ns)),
                ..SocketSample::default()
            },
        }
    }

    fn snapshot(sockets: &[(u64, KernelSocket)]) -> SocketSnapshot {
        let sockets = sockets.iter().cloned().collect();
        SocketSnapshot { sockets, ..SocketSnapshot::default() }
    }

    #[test]
    fn sockets_come_and_go() {
        let mut tracker = SocketTracker::default();
        let first =
            tracker.poll(Instant::ZERO, snapshot(&[(1, socket(1, 0, 0)), (2, socket(2, 0, 0))]));
        assert!(first.active.is_empty() && first.gone.is_empty());
        let second = socket(2, 1_000, 500);
        // The port is used again by another socket.
        let reused = socket(1, 1_000, 900);
        let next = tracker.poll(Instant::from_nanos(1_000), snapshot(&[(3, reused), (2, second)]));
        assert_eq!(next.gone.len(), 1);
        assert_eq!(next.gone[0].ending, SocketEnding::Vanished);
        let bytes: Vec<_> = next.active.iter().map(|one| one.verdict.bytes).collect();
        assert_eq!(bytes, [900, 500]);
        assert_eq!(tracker.summary().len(), 2);
        let mut last = snapshot(&[]);
        last.time_wait.insert((([10, 0, 0, 1], 1).into(), ([10, 0, 0, 2], 80).into()));
        let last = tracker.poll(Instant::from_nanos(2_000), last);
        let endings: Vec<_> = last.gone.iter().map(|one| one.ending).collect();
        assert_eq!(endings, [SocketEnding::Vanished, SocketEnding::ClosedHere]);
    }

    #[test]
    fn only_some_hosts_and_ports() {
        for (hosts, ports, count) in
            [(vec![], vec![], 2), (vec!["10.0.0.2"], vec![2], 1), (vec!["10.0.0.3"], vec![], 0)]
        {
            let hosts = hosts.iter().map(|host| host.parse().unwrap()).collect();
            let mut tracker = SocketTracker::new(SocketFilter { hosts, ports });
            tracker.poll(Instant::ZERO, snapshot(&[(1, socket(1, 0, 0)), (2, socket(2, 0, 0))]));
            assert_eq!(tracker.known.len(), count);
        }
    }
}
