//! Which packets belong to which flow.

use std::collections::{BTreeMap, VecDeque};

use packet::wire::Endpoints;
use packet::{Dir, Segment};
use units::FlowId;

/// The flows of a world by their addresses.
#[derive(Debug, Clone)]
pub struct Directory {
    flows: Vec<Endpoints>,
    numbers: BTreeMap<Endpoints, u32>,
    /// For each host the flows that are places for connections it may open: the next to be taken
    /// first, a taken one last.
    places: BTreeMap<usize, VecDeque<u32>>,
    /// Connections that came to a place.
    pub connections: u64,
}

impl Directory {
    /// Flows with known addresses, each seen from its connecting side.
    pub fn of(flows: &[Endpoints]) -> Self {
        let numbers = flows.iter().enumerate().map(|(flow, &between)| (between, flow as u32));
        let places = BTreeMap::new();
        Self { flows: flows.to_vec(), numbers: numbers.collect(), places, connections: 0 }
    }

    /// Places for connections that are still to come: flow number n will be one that host
    /// `hosts[n]` opens. Until then its addresses are `nowhere`.
    pub fn places(hosts: &[usize], nowhere: Endpoints) -> Self {
        let mut directory = Self::of(&[]);
        directory.flows = vec![nowhere; hosts.len()];
        for (flow, &host) in hosts.iter().enumerate() {
            directory.places.entry(host).or_default().push_back(flow as u32);
        }
        directory
    }

    /// Addresses of a segment.
    pub fn between(&self, segment: &Segment) -> Endpoints {
        let forward = self.flows[segment.flow.0 as usize];
        match segment.dir {
            Dir::Forward => forward,
            Dir::Reverse => forward.back(),
        }
    }

    /// The flow and the direction of a packet that came from `host`; `opens` if it is a SYN, which
    /// may take a place: that of the oldest connection, if all are taken.
    pub fn find(&mut self, host: usize, between: Endpoints, opens: bool) -> Option<(FlowId, Dir)> {
        if let Some(&flow) = self.numbers.get(&between) {
            return Some((FlowId(flow), Dir::Forward));
        }
        if let Some(&flow) = self.numbers.get(&between.back()) {
            return Some((FlowId(flow), Dir::Reverse));
        }
        if !opens {
            return None;
        }
        let places = self.places.get_mut(&host)?;
        let flow = places.pop_front()?;
        places.push_back(flow);
        let place = &mut self.flows[flow as usize];
        self.numbers.remove(place);
        *place = between;
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
    fn known_flows_are_found_both_ways_and_no_other() {
        let mut directory = Directory::of(&[between(1), between(2)]);
        assert_eq!(directory.find(0, between(2), false), Some((FlowId(1), Dir::Forward)));
        assert_eq!(directory.find(1, between(1).back(), true), Some((FlowId(0), Dir::Reverse)));
        assert_eq!(directory.find(0, between(3), true), None);
        let back = Segment { flow: FlowId(1), dir: Dir::Reverse, ..Segment::default() };
        assert_eq!(directory.between(&back), between(2).back());
    }

    #[test]
    fn connections_take_the_places_of_their_host_and_the_oldest_gives_way() {
        let mut directory = Directory::places(&[0, 1, 0], between(0));
        assert_eq!(directory.find(0, between(1), false), None, "only a SYN opens");
        assert_eq!(directory.find(0, between(1), true), Some((FlowId(0), Dir::Forward)));
        assert_eq!(directory.find(0, between(2), true), Some((FlowId(2), Dir::Forward)));
        assert_eq!(directory.find(1, between(3).back(), true), Some((FlowId(1), Dir::Forward)));
        assert_eq!(directory.find(0, between(4), true), Some((FlowId(0), Dir::Forward)));
        assert_eq!(directory.find(0, between(1), false), None);
        assert_eq!(directory.find(0, between(3), false), Some((FlowId(1), Dir::Reverse)));
        assert_eq!(directory.connections, 4);
    }
}
