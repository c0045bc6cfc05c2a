//! Maps packets to flows.

use std::collections::{BTreeMap, VecDeque};

use packet::wire::Endpoints;
use packet::{Dir, Segment};
use units::FlowId;

/// The flows of a run by their addresses.
#[derive(Debug, Clone)]
pub struct FlowDirectory {
    flows: Vec<Endpoints>,
    numbers: BTreeMap<Endpoints, u32>,
    /// For each host the flows available for connections it opens, least recently used first.
    places: BTreeMap<usize, VecDeque<u32>>,
    /// Connections assigned to a flow.
    pub connections: u64,
}

impl FlowDirectory {
    /// Creates a directory of flows with known addresses, each from its connecting side.
    pub fn of(flows: &[Endpoints]) -> Self {
        let numbers = flows.iter().enumerate().map(|(flow, &between)| (between, flow as u32));
        let places = BTreeMap::new();
        Self { flows: flows.to_vec(), numbers: numbers.collect(), places, connections: 0 }
    }

    /// Creates a directory for future connections: flow number n is for a connection that host
    /// `hosts[n]` opens. Until then its addresses are `nowhere`.
    pub fn places(hosts: &[usize], nowhere: Endpoints) -> Self {
        let mut directory = Self::of(&[]);
        directory.flows = vec![nowhere; hosts.len()];
        for (flow, &host) in hosts.iter().enumerate() {
            directory.places.entry(host).or_default().push_back(flow as u32);
        }
        directory
    }

    /// Returns the addresses of a segment.
    pub fn between(&self, segment: &Segment) -> Endpoints {
        let forward = self.flows[segment.flow.0 as usize];
        match segment.dir {
            Dir::Forward => forward,
            Dir::Reverse => forward.reversed(),
        }
    }

    /// Finds the flow and the direction of a packet from `host`. `opens` is set for a SYN, which
    /// may take over a flow, that of the oldest connection if none is free.
    pub fn find(&mut self, host: usize, between: Endpoints, opens: bool) -> Option<(FlowId, Dir)> {
        if let Some(&flow) = self.numbers.get(&between) {
            return Some((FlowId(flow), Dir::Forward));
        }
        if let Some(&flow) = self.numbers.get(&between.reversed()) {
            return Some((FlowId(flow), Dir::Reverse));
        }
        if !opens {
            return None;
        }
        let places = self.places.get_mut(&host)?;
        let flow = places.pop_front()?;
        places.push_back(flow);
        let offset = &mut self.flows[flow as usize];
        self.numbers.remove(offset);
        *offset = between;
        self.numbers.insert(between, flow);
        self.connections += 1;
        Some((FlowId(flow), Dir::Forward))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;

    fn between(port: u16) -> Endpoints {
        Endpoints {
            src: SocketAddr::from(([10, 0, 0, 1], port)),
            dst: SocketAddr::from(([10, 0, 0, 2], 80)),
        }
    }

    #[test]
    fn only_known_flows_are_found_in_both_directions() {
        let mut directory = FlowDirectory::of(&[between(1), between(2)]);
        assert_eq!(directory.find(0, between(2), false), Some((FlowId(1), Dir::Forward)));
        assert_eq!(directory.find(1, between(1).reversed(), true), Some((FlowId(0), Dir::Reverse)));
        assert_eq!(directory.find(0, between(3), true), None);
        let back = Segment { flow: FlowId(1), dir: Dir::Reverse, ..Segment::default() };
        assert_eq!(directory.between(&back), between(2).reversed());
    }

    #[test]
    fn connections_take_the_flows_of_their_host_and_replace_the_oldest() {
        let mut directory = FlowDirectory::places(&[0, 1, 0], between(0));
        assert_eq!(directory.find(0, between(1), false), None, "only a SYN opens");
        assert_eq!(directory.find(0, between(1), true), Some((FlowId(0), Dir::Forward)));
        assert_eq!(directory.find(0, between(2), true), Some((FlowId(2), Dir::Forward)));
        assert_eq!(directory.find(1, between(3).reversed(), true), Some((FlowId(1), Dir::Forward)));
        assert_eq!(directory.find(0, between(4), true), Some((FlowId(0), Dir::Forward)));
        assert_eq!(directory.find(0, between(1), false), None);
        assert_eq!(directory.find(0, between(3), false), Some((FlowId(1), Dir::Reverse)));
        assert_eq!(directory.connections, 4);
    }
}
