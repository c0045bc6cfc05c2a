//! Scenario files of the draft's topologies: shared links, and routes between two hosts.

use core::fmt::Write as _;

use super::traffic::DrawnFlow;
use crate::sender::SuiteSender;

/// A scenario file in progress. Hosts are numbered by route, so hosts with an even number send.
#[derive(Debug)]
pub(super) struct TopologyText {
    text: String,
    routes: usize,
    flows: usize,
}

impl TopologyText {
    pub(super) fn new(name: &str, seconds: u64) -> Self {
        let text = format!("title = {name:?}\nseed = 1\nduration = \"{seconds}s\"\n\n");
        Self { text, routes: 0, flows: 0 }
    }

    /// Adds a link of `rate` bit/s with a queue of `buffer` bytes.
    pub(super) fn link(&mut self, key: &str, rate: u64, buffer: u64) {
        let _ = writeln!(
            self.text,
            "[shared.{key}]\nlink = {{ rate = \"{rate}bit/s\", buffer = \"{buffer}B\" }}\n"
        );
    }

    /// Adds the hosts of a route with their path; the number of the route.
    pub(super) fn route(&mut self, sender: &SuiteSender, there: &[Hop], back: &[Hop]) -> usize {
        let route = self.routes;
        self.routes += 1;
        let (from, to) = (format!("sender{route}"), format!("sink{route}"));
        let _ = writeln!(
            self.text,
            "{}\n[[path]]\nfrom = {from:?}\nto = {to:?}\nforward = [{}]\nreturn = [{}]\n",
            sender.hosts(&from, &to, None),
            elements(there),
            elements(back)
        );
        route
    }

    /// Adds a flow. `app` is a key of a flow with its value, such as `bulk = "1MB"`.
    pub(super) fn flow(&mut self, route: usize, start_ns: u64, app: &str) {
        let _ = writeln!(
            self.text,
            "[[flow]]\nname = \"f{}\"\nfrom = \"sender{route}\"\nto = \"sink{route}\"\nstart = \
             \"{start_ns}ns\"\n{app}\n",
            self.flows
        );
        self.flows += 1;
    }

    /// Adds drawn transfers. The first of their routes has the number `first`.
    pub(super) fn transfers(&mut self, first: usize, flows: &[DrawnFlow]) {
        for flow in flows {
            let app = format!("bulk = \"{}B\"", flow.bytes);
            self.flow(first + flow.route, flow.start, &app);
        }
    }

    pub(super) fn finish(self) -> String {
        self.text
    }
}

/// An element of a path.
#[derive(Debug, Clone)]
pub(super) enum Hop {
    /// A link that [`TopologyText::link`] added.
    Link(String),
    /// A delay in microseconds.
    Delay(u64),
}

fn elements(hops: &[Hop]) -> String {
    let element = |hop: &Hop| match hop {
        Hop::Link(key) => format!("{{ shared = {key:?} }}"),
        Hop::Delay(us) => format!("{{ delay = \"{us}us\" }}"),
    };
    hops.iter().map(element).collect::<Vec<_>>().join(", ")
}

/// Name of the link under test in scenarios; further ones continue it.
pub(super) const CENTRAL: &str = "central";
/// Name of the link of the ACKs.
pub(super) const BACK: &str = "back";

/// A central link and the one of its ACKs.
#[derive(Debug, Clone, Copy)]
pub(super) struct CentralLink {
    /// Rate in bit/s and queue in bytes, in the direction of the data.
    pub(super) down: (u64, u64),
    /// The same against it; `None`: the link is a medium for both directions.
    pub(super) up: Option<(u64, u64)>,
}

impl CentralLink {
    /// The same in both directions.
    pub(super) const fn symmetric(rate: u64, buffer: u64) -> Self {
        Self { down: (rate, buffer), up: Some((rate, buffer)) }
    }

    pub(super) fn add(self, text: &mut TopologyText) {
        text.link(CENTRAL, self.down.0, self.down.1);
        if let Some((rate, buffer)) = self.up {
            text.link(BACK, rate, buffer);
        }
    }

    /// Adds a route with this delay each way.
    pub(super) fn route(self, text: &mut TopologyText, sender: &SuiteSender, way_us: u64) -> usize {
        let delay = Hop::Delay(way_us);
        let back = if self.up.is_some() { BACK } else { CENTRAL };
        let there = [Hop::Link(CENTRAL.to_owned()), delay.clone()];
        text.route(sender, &there, &[Hop::Link(back.to_owned()), delay])
    }

    /// Adds the nine routes between three nodes on each side, section 4.1; the number of the first.
    /// Edge links are delays: their rates, which are no lower than the central link's, are left out.
    pub(super) fn dumbbell(
        self,
        text: &mut TopologyText,
        sender: &SuiteSender,
        way_us: u64,
        (left, right): ([u64; 3], [u64; 3]),
    ) -> usize {
        let way = |route: usize| way_us + left[route % 3] + right[route / 3];
        let routes: Vec<usize> =
            (0..ROUTES).map(|route| self.route(text, sender, way(route))).collect();
        routes[0]
    }
}

/// Routes of a dumbbell.
pub(super) const ROUTES: usize = 9;

/// Delays of the edge links of the draft in microseconds, section 4.1, left and right.
pub(super) const EDGES: ([u64; 3], [u64; 3]) = ([0, 12_000, 25_000], [2_000, 37_000, 75_000]);

/// Bytes at this rate in this number of milliseconds.
pub(super) const fn bytes(rate: u64, ms: u64) -> u64 {
    rate / 8 * ms / 1_000
}
