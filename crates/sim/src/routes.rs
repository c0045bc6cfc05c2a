//! The routes of all paths: which elements packets pass, and in which order.

mod node;

use std::collections::BTreeMap;

use net::selection::RandomSource;

pub(crate) use node::{AcceptOutcome, ElementNode};

use node::{ElementKind, kind};

use crate::scenario::{ElementSpec, Scenario};
use crate::validity::SetupError;

/// Next hop of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hop {
    /// An element, by index. Several routes may pass through one.
    Element(u32),
    /// The network card of a host: the end of the route.
    Host(u16),
}

/// All one-way routes in one array of hops: forward and reverse route of the first path, then of
/// the second, and so on, each ending with its host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RouteTable {
    stops: Vec<Hop>,
    /// Index of the first hop of each route.
    starts: Vec<u32>,
}

impl RouteTable {
    /// Returns the hop with that index.
    #[inline]
    pub(crate) fn stop(&self, number: u32) -> Hop {
        self.stops[number as usize]
    }

    /// Returns the number of hops of all routes.
    pub(crate) fn len(&self) -> usize {
        self.stops.len()
    }

    /// Returns the first hops of the forward and the reverse route of a path.
    pub(crate) fn of_path(&self, path: usize) -> Option<[u32; 2]> {
        self.starts.as_chunks().0.get(path).copied()
    }

    /// Returns the position of a hop on its route, and the host where the route ends.
    pub(crate) fn position(&self, number: u32) -> (u16, u16) {
        let route = self.starts.partition_point(|&start| start <= number) - 1;
        let mut ahead = self.stops[number as usize..].iter();
        let to = ahead.find_map(|stop| match stop {
            Hop::Host(host) => Some(*host),
            Hop::Element(_) => None,
        });
        ((number - self.starts[route]) as u16, to.unwrap_or_default())
    }

    /// Returns the first hop on the way back of a packet that is at this hop, an element. The way
    /// back begins after the same element on the opposite route, or if that is elsewhere, at the
    /// start of the route.
    pub(crate) fn way_back(&self, number: u32) -> u32 {
        let route = self.starts.partition_point(|&start| start <= number) - 1;
        let start = self.starts[route ^ 1];
        let at = self.stops[number as usize];
        let back = self.stops[start as usize..].iter();
        let elements = back.take_while(|stop| matches!(stop, Hop::Element(_)));
        let place = elements.enumerate().find(|&(_, stop)| *stop == at);
        place.map_or(start, |(place, _)| start + place as u32 + 1)
    }

    /// Returns the index of the path of a hop, and whether the hop is on its reverse route.
    pub(crate) fn path(&self, number: u32) -> (usize, bool) {
        let route = self.starts.partition_point(|&start| start <= number) - 1;
        (route / 2, route % 2 == 1)
    }

    fn add(&mut self, hops: impl Iterator<Item = u32>, to: usize) {
        self.starts.push(self.stops.len() as u32);
        self.stops.extend(hops.map(Hop::Element));
        self.stops.push(Hop::Host(to as u16));
    }
}

/// Builds all elements, in the order of [`record::ElementId`], and two routes per path: forward,
/// reverse.
///
/// The names of an element's random streams contain its kind, its number among those of its kind on
/// its route, and the names of the hosts at the ends; for a shared element, its name. So elements
/// of other kinds, and later ones of its kind, do not change its streams.
///
/// # Errors
/// The first path or shared element with an invalid reference or too many elements.
pub(crate) fn build(scenario: &Scenario) -> Result<(Vec<ElementNode>, RouteTable), SetupError> {
    let own = |element: &&ElementSpec| !matches!(element, ElementSpec::Shared(_));
    let all = scenario.paths.iter().flat_map(|path| path.forward.iter().chain(&path.reverse));
    let mut builder =
        RoutesBuilder { scenario, hops: Vec::new(), first_shared: all.filter(own).count() as u32 };
    let mut routes = RouteTable::default();
    // Number of paths so far between hosts of these names.
    let mut numbers: BTreeMap<[&str; 2], u32> = BTreeMap::new();
    for (index, path) in scenario.paths.iter().enumerate() {
        let wrong = SetupError::Path { path: index };
        let name = |host: usize| scenario.hosts.get(host).map(|host| host.name.as_str());
        let Some((a, b)) = name(path.from).zip(name(path.to)) else { return Err(wrong) };
        let number = numbers.entry([a.min(b), a.max(b)]).or_default();
        let forward = builder.route(&path.forward, || format!("{a} to {b}, path {number}"));
        let reverse = builder.route(&path.reverse, || format!("{b} to {a}, path {number}"));
        *number += 1;
        let (forward, reverse) = forward.zip(reverse).ok_or(wrong)?;
        routes.add(forward.into_iter(), path.to);
        routes.add(reverse.into_iter(), path.from);
    }
    for (index, shared) in scenario.shared.iter().enumerate() {
        let owner = format!("shared {}", shared.name);
        let stage =
            ElementKind::new(&shared.element, &RandomSource { seed: scenario.seed, owner: &owner });
        let stage = stage.ok_or(SetupError::Shared { shared: index })?;
        builder.hops.push(ElementNode::shared(stage));
    }
    Ok((builder.hops, routes))
}

struct RoutesBuilder<'a> {
    scenario: &'a Scenario,
    hops: Vec<ElementNode>,
    first_shared: u32,
}

impl RoutesBuilder<'_> {
    /// Adds the elements of the route that `way` names; `None` if it is invalid.
    fn route(&mut self, elements: &[ElementSpec], way: impl Fn() -> String) -> Option<Vec<u32>> {
        // Events store the position of an element in 16 bits.
        if elements.len() >= usize::from(u16::MAX) {
            return None;
        }
        let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
        let mut hops = Vec::with_capacity(elements.len());
        for element in elements {
            let kind = kind(element);
            let count = counts.entry(kind).or_default();
            *count += 1;
            if let Some(stage) = ElementKind::plain(element) {
                hops.push(self.hops.len() as u32);
                self.hops.push(ElementNode::new(stage));
                continue;
            }
            if let ElementSpec::Shared(index) = element {
                if *index >= self.scenario.shared.len() {
                    return None;
                }
                hops.push(self.first_shared + *index as u32);
                continue;
            }
            let owner = format!("{kind} {} from {}", *count - 1, way());
            let random_source = RandomSource { seed: self.scenario.seed, owner: &owner };
            hops.push(self.hops.len() as u32);
            self.hops.push(ElementNode::new(ElementKind::new(element, &random_source)?));
        }
        Some(hops)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{PacketClass, SelectionRule, SharedElement};
    use machine::{PacketAck, PacketId, PacketVerdict, PacketView};
    use units::{Bytes, Dir, Duration, Ecn, FlowId, Instant, Ratio, SeqNum};

    fn half() -> ElementSpec {
        ElementSpec::Loss {
            rule: SelectionRule::Share(Ratio::new(1, 2).unwrap()),
            only: PacketClass::All,
        }
    }

    const PAUSE: ElementSpec = ElementSpec::Delay(Duration::ZERO);

    fn hops(
        forward: Vec<ElementSpec>,
        reverse: Vec<ElementSpec>,
    ) -> (Vec<ElementNode>, RouteTable) {
        build(&world(forward, reverse)).unwrap()
    }

    fn world(forward: Vec<ElementSpec>, reverse: Vec<ElementSpec>) -> Scenario {
        let shared = SharedElement { name: "half".into(), element: half() };
        crate::scenario::tests::two_hosts(forward, reverse, vec![shared])
    }

    /// Outcomes of 200 packets at an element.
    fn random_source(
        (hops, routes): &mut (Vec<ElementNode>, RouteTable),
        route: usize,
        hop: u32,
    ) -> Vec<bool> {
        let Hop::Element(index) = routes.stop(routes.starts[route] + hop) else { panic!("a host") };
        let hop_index = &mut hops[index as usize];
        let view = PacketView {
            size: Bytes(1_500),
            payload: 1_448,
            flow: FlowId(0),
            seq: SeqNum(0),
            syn: false,
            ecn_syn: false,
            dir: Dir::Forward,
            ack: PacketAck::None,
            ecn: Ecn::NotEct,
        };
        let mut lost = || {
            let verdict = hop_index.accept(Instant::ZERO, PacketId(0), view.size, || view);
            verdict == AcceptOutcome::ByVerdict(PacketVerdict::Dropped)
        };
        (0..200).map(|_| lost()).collect()
    }

    #[test]
    fn additional_elements_do_not_change_the_streams_of_another() {
        let single_packet = random_source(&mut hops(vec![half()], vec![]), 0, 0);
        let mut more = hops(vec![PAUSE, half(), PAUSE, half()], vec![PAUSE, half()]);
        assert_eq!(random_source(&mut more, 0, 1), single_packet);
        // The others have streams of their own.
        assert_ne!(random_source(&mut more, 0, 3), single_packet);
        assert_ne!(random_source(&mut more, 1, 1), single_packet);
        let back = random_source(&mut hops(vec![], vec![half()]), 1, 0);
        assert_eq!(random_source(&mut hops(vec![half(), PAUSE], vec![half()]), 1, 0), back);
        let shared = random_source(&mut hops(vec![ElementSpec::Shared(0)], vec![]), 0, 0);
        assert_ne!(shared, single_packet);
        let mut both = hops(vec![half(), PAUSE], vec![half(), ElementSpec::Shared(0)]);
        assert_eq!(random_source(&mut both, 1, 1), shared);
    }

    #[test]
    fn a_second_path_does_not_change_the_streams_of_the_first() {
        let mut scenario = world(vec![half()], vec![]);
        let first = random_source(&mut build(&scenario).unwrap(), 0, 0);
        scenario.paths.push(scenario.paths[0].clone());
        let mut both = build(&scenario).unwrap();
        assert_eq!(random_source(&mut both, 0, 0), first);
        assert_ne!(random_source(&mut both, 2, 0), first);
    }

    #[test]
    fn shared_elements_follow_those_of_the_paths() {
        let shared = ElementSpec::Shared(0);
        let forward = vec![PAUSE, shared.clone(), PAUSE];
        let (hops, routes) = hops(forward, vec![shared, half()]);
        assert_eq!(hops.len(), 4);
        let row = [0, 3, 1].map(Hop::Element);
        assert_eq!(routes.stops[..4], [row[0], row[1], row[2], Hop::Host(1)]);
        let row = [3, 2].map(Hop::Element);
        assert_eq!(routes.stops[4..], [row[0], row[1], Hop::Host(0)]);
        assert_eq!(routes.of_path(0), Some([0, 4]));
        assert_eq!(routes.of_path(1), None);
        assert_eq!((routes.position(2), routes.position(4)), ((2, 1), (0, 0)));
        assert_eq!((routes.path(2), routes.path(4)), ((0, false), (0, true)));
        // After the shared element, or from the start.
        assert_eq!([0, 1, 2].map(|hop| routes.way_back(hop)), [4, 5, 4]);
        assert_eq!([4, 5].map(|hop| routes.way_back(hop)), [2, 0]);
    }

    #[test]
    fn invalid_references_are_rejected() {
        let error = |scenario: &Scenario| build(scenario).map(|_| ()).unwrap_err();
        let scenario = world(vec![ElementSpec::Shared(1)], vec![]);
        assert_eq!(error(&scenario), SetupError::Path { path: 0 });
        let mut scenario = world(vec![], vec![]);
        scenario.shared[0].element = ElementSpec::Shared(0);
        assert_eq!(error(&scenario), SetupError::Shared { shared: 0 });
        let scenario = world(vec![PAUSE; 70_000], vec![]);
        assert_eq!(error(&scenario), SetupError::Path { path: 0 });
    }
}
