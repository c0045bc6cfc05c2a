//! The elements of all paths, and how packets pass them.

use std::collections::BTreeMap;

use machine::{Element as _, PacketAction, PacketId, PacketVerdict, PacketView};
use net::ack_filter::AckFilter;
use net::corrupt::Corrupt;
use net::delay::{ChangingDelay, Delay};
use net::duplicate::Duplicate;
use net::forget::Forget;
use net::jitter::Jitter;
use net::link::Link;
use net::loss::Loss;
use net::mtu::MtuLimit;
use net::outage::Outage;
use net::qdisc_link::QdiscLink;
use net::reorder::displace::Displace;
use net::reorder::reverse::Reverse;
use net::reorder::selective_delay::SelectiveDelay;
use net::reset::Reset;
use net::selection::RandomSource;
use net::slot::Slot;
use net::strip::Strip;
use net::token_bucket::{Policer, Shaper};
use net::wifi::WifiJitter;
use units::{Bytes, Instant};

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

/// An element of the network.
#[derive(Debug)]
pub(crate) struct ElementNode {
    stage: ElementKind,
    /// Time of the element's entry in the event queue.
    pub(crate) armed: Option<Instant>,
    simple: bool,
    /// The element never holds a packet.
    never_holds: bool,
}

/// Result of offering a packet to an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AcceptOutcome {
    /// The packet is queued after others.
    Enqueued,
    /// The packet is queued, and the element expects a wake-up at this time.
    Scheduled(Instant),
    /// Verdict of the element; its next wake-up must be queried.
    ByVerdict(PacketVerdict),
}

/// The most frequent kinds of element inline, the others boxed.
#[derive(Debug)]
#[repr(u8)]
enum ElementKind {
    Link(Link),
    Delay(Delay),
    Other(Box<BoxedElement>),
}

/// At most two cache lines: a world has several per flow.
const _: () = assert!(size_of::<ElementNode>() <= 128);

#[derive(Debug)]
enum BoxedElement {
    Managed(QdiscLink),
    ChangingDelay(ChangingDelay),
    Jitter(Jitter),
    WifiJitter(WifiJitter),
    Slot(Slot),
    Loss(Loss),
    Duplicate(Duplicate),
    Corrupt(Corrupt),
    Reverse(Reverse),
    Displace(Displace),
    Late(SelectiveDelay),
    Thin(AckFilter),
    Outage(Outage),
    Policer(Policer),
    Shaper(Shaper),
    Mtu(MtuLimit),
    Strip(Strip),
    Forget(Forget),
    Reset(Reset),
}

/// Dispatches a call to the element.
macro_rules! ask {
    ($other:expr, $element:ident => $question:expr) => {
        match $other {
            BoxedElement::Managed($element) => $question,
            BoxedElement::ChangingDelay($element) => $question,
            BoxedElement::Jitter($element) => $question,
            BoxedElement::WifiJitter($element) => $question,
            BoxedElement::Slot($element) => $question,
            BoxedElement::Loss($element) => $question,
            BoxedElement::Duplicate($element) => $question,
            BoxedElement::Corrupt($element) => $question,
            BoxedElement::Reverse($element) => $question,
            BoxedElement::Displace($element) => $question,
            BoxedElement::Late($element) => $question,
            BoxedElement::Thin($element) => $question,
            BoxedElement::Outage($element) => $question,
            BoxedElement::Policer($element) => $question,
            BoxedElement::Shaper($element) => $question,
            BoxedElement::Mtu($element) => $question,
            BoxedElement::Strip($element) => $question,
            BoxedElement::Forget($element) => $question,
            BoxedElement::Reset($element) => $question,
        }
    };
}

impl machine::Element for BoxedElement {
    fn accept(&mut self, now: Instant, packet: PacketId, view: &PacketView) -> PacketVerdict {
        ask!(self, element => element.accept(now, packet, view))
    }

    fn next_wake(&self) -> Option<Instant> {
        ask!(self, element => element.next_wake())
    }

    fn wake(&mut self, now: Instant) -> Option<PacketId> {
        ask!(self, element => element.wake(now))
    }

    fn next_action(&mut self) -> Option<PacketAction> {
        ask!(self, element => element.next_action())
    }
}

impl ElementKind {
    /// Returns whether it ever holds a packet.
    fn holds(&self) -> bool {
        let Self::Other(other) = self else { return true };
        !matches!(
            **other,
            BoxedElement::Loss(_)
                | BoxedElement::Duplicate(_)
                | BoxedElement::Corrupt(_)
                | BoxedElement::Mtu(_)
                | BoxedElement::Strip(_)
                | BoxedElement::Forget(_)
                | BoxedElement::Reset(_)
        )
    }

    /// Creates an element that draws no random numbers, so needs no stream name.
    fn plain(element: &ElementSpec) -> Option<Self> {
        match element {
            ElementSpec::Link { rate, limit } => Some(Self::Link(Link::new(*rate, *limit))),
            ElementSpec::Delay(span) => Some(Self::Delay(Delay::new(*span))),
            _ => None,
        }
    }

    /// Returns `None` for a reference to a shared element, which has no state of its own.
    fn new(element: &ElementSpec, random_source: &RandomSource<'_>) -> Option<Self> {
        let other = match element {
            ElementSpec::Link { .. } | ElementSpec::Delay(_) => return Self::plain(element),
            ElementSpec::Shared(_) => return None,
            ElementSpec::LinkWithQdisc { capacity, limit, limits, queue } => {
                let link = QdiscLink::new(capacity.clone(), *limit, *queue, random_source);
                BoxedElement::Managed(link.with_limits(limits.clone()))
            }
            ElementSpec::ChangingDelay(span) => {
                BoxedElement::ChangingDelay(ChangingDelay::new(span.clone()))
            }
            ElementSpec::WifiJitter(average) => {
                BoxedElement::WifiJitter(WifiJitter::new(average.clone(), random_source))
            }
            ElementSpec::Slot(params) => BoxedElement::Slot(Slot::new(*params, random_source)),
            ElementSpec::Jitter { most } => BoxedElement::Jitter(Jitter::new(*most, random_source)),
            ElementSpec::Loss { rule, only } => {
                BoxedElement::Loss(Loss::new(rule, *only, random_source))
            }
            ElementSpec::Duplicate { rule, only } => {
                BoxedElement::Duplicate(Duplicate::new(rule, *only, random_source))
            }
            ElementSpec::Corrupt { rule, only } => {
                BoxedElement::Corrupt(Corrupt::new(rule, *only, random_source))
            }
            ElementSpec::Reverse(params) => BoxedElement::Reverse(Reverse::new(*params)),
            ElementSpec::Displace { rule, places, timeout, only } => {
                BoxedElement::Displace(Displace::new(rule, *places, *timeout, *only, random_source))
            }
            ElementSpec::Late { rule, by, only } => {
                BoxedElement::Late(SelectiveDelay::new(rule, *by, *only, random_source))
            }
            ElementSpec::Thin { bytes, timeout } => {
                BoxedElement::Thin(AckFilter::new(*bytes, *timeout))
            }
            ElementSpec::Outage { from, until, period, during } => {
                let (from, until) = (Instant::ZERO + *from, Instant::ZERO + *until);
                BoxedElement::Outage(Outage::new(from, until, *during).repeated(*period))
            }
            ElementSpec::Policer { rate, burst } => {
                BoxedElement::Policer(Policer::new(*rate, *burst))
            }
            ElementSpec::Shaper { rate, burst, limit } => {
                BoxedElement::Shaper(Shaper::new(*rate, *burst, *limit))
            }
            ElementSpec::Mtu { size, from, icmp } => {
                BoxedElement::Mtu(MtuLimit::new(*size, Instant::ZERO + *from, *icmp))
            }
            ElementSpec::Strip(offers) => BoxedElement::Strip(Strip::new(*offers)),
            ElementSpec::Forget { idle, resets } => {
                BoxedElement::Forget(Forget::new(*idle, *resets))
            }
            ElementSpec::Reset(trigger) => BoxedElement::Reset(Reset::new(*trigger)),
        };
        Some(Self::Other(Box::new(other)))
    }
}

impl ElementNode {
    fn new(stage: ElementKind) -> Self {
        let simple = matches!(stage, ElementKind::Link(_) | ElementKind::Delay(_));
        Self { never_holds: !stage.holds(), stage, armed: None, simple }
    }

    /// Returns whether the element is FIFO and on a single route. Then no packet reaches it before
    /// a departed packet, and all its effects, have been processed: packets only move forward, and
    /// their effects start on other routes.
    #[inline(always)]
    pub(crate) const fn is_simple(&self) -> bool {
        self.simple
    }

    /// Offers a packet to the element; `view` computes the view for elements that read it.
    #[inline(always)]
    pub(crate) fn accept(
        &mut self,
        now: Instant,
        id: PacketId,
        size: Bytes,
        view: impl FnOnce() -> PacketView,
    ) -> AcceptOutcome {
        match &mut self.stage {
            ElementKind::Link(link) => {
                if !link.take(now, id, size) {
                    return AcceptOutcome::ByVerdict(PacketVerdict::Dropped);
                }
            }
            ElementKind::Delay(delay) => delay.take(now, id),
            ElementKind::Other(other) => {
                return AcceptOutcome::ByVerdict(other.accept(now, id, &view()));
            }
        }
        if self.armed.is_some() {
            return AcceptOutcome::Enqueued;
        }
        self.armed = self.next_wake();
        self.armed.map_or(AcceptOutcome::Enqueued, AcceptOutcome::Scheduled)
    }

    /// Returns whether the event that fired is the one that the element expects, and clears it.
    #[inline(always)]
    pub(crate) fn is_due(&mut self, now: Instant) -> bool {
        // A stale event was superseded by an earlier one, and the element has been scheduled again.
        let due = self.armed == Some(now);
        if due {
            self.armed = None;
        }
        due
    }

    /// Returns the first packet of a simple element, if it leaves at or before `now`, and the next one
    /// with its time: the element expects a wake-up then.
    #[inline(always)]
    pub(crate) fn leave(
        &mut self,
        now: Instant,
    ) -> Option<(PacketId, Option<(Instant, PacketId)>)> {
        let (packet, next) = match &mut self.stage {
            ElementKind::Link(link) => (link.wake(now)?, link.first()),
            ElementKind::Delay(delay) => (delay.wake(now)?, delay.first()),
            ElementKind::Other(_) => return None,
        };
        self.armed = next.map(|(at, _)| at);
        Some((packet, next))
    }

    /// Returns the packet that leaves a plain link or a fixed delay next, and when.
    #[inline(always)]
    pub(crate) fn first(&self) -> Option<(Instant, PacketId)> {
        match &self.stage {
            ElementKind::Link(link) => link.first(),
            ElementKind::Delay(delay) => delay.first(),
            ElementKind::Other(_) => None,
        }
    }

    /// Returns whether it never holds a packet.
    #[inline(always)]
    pub(crate) const fn never_holds(&self) -> bool {
        self.never_holds
    }

    /// Returns whether arriving packets are always queued after earlier ones.
    #[inline(always)]
    pub(crate) const fn keeps_order(&self) -> bool {
        matches!(self.stage, ElementKind::Link(_) | ElementKind::Delay(_))
    }

    #[inline(always)]
    pub(crate) fn next_wake(&self) -> Option<Instant> {
        match &self.stage {
            ElementKind::Link(link) => link.next_wake(),
            ElementKind::Delay(delay) => delay.next_wake(),
            ElementKind::Other(other) => other.next_wake(),
        }
    }

    /// Returns a packet that leaves at or before `now`.
    pub(crate) fn wake(&mut self, now: Instant) -> Option<PacketId> {
        match &mut self.stage {
            ElementKind::Link(link) => link.wake(now),
            ElementKind::Delay(delay) => delay.wake(now),
            ElementKind::Other(other) => {
                if other.next_wake().is_none_or(|at| at > now) {
                    return None;
                }
                other.wake(now)
            }
        }
    }

    /// Returns the next drop or mark caused by the last arrival or departure.
    #[inline(always)]
    pub(crate) fn next_fate(&mut self) -> Option<PacketAction> {
        match &mut self.stage {
            ElementKind::Link(_) | ElementKind::Delay(_) => None,
            ElementKind::Other(other) => other.next_action(),
        }
    }
}

/// Kind of an element, as used in the names of its random streams.
fn kind(element: &ElementSpec) -> &'static str {
    match element {
        ElementSpec::Link { .. } | ElementSpec::LinkWithQdisc { .. } => "link",
        ElementSpec::Delay(_) | ElementSpec::ChangingDelay(_) => "delay",
        ElementSpec::Jitter { .. } => "jitter",
        ElementSpec::WifiJitter(_) => "wifi",
        ElementSpec::Slot(_) => "slot",
        ElementSpec::Loss { .. } => "loss",
        ElementSpec::Duplicate { .. } => "duplicate",
        ElementSpec::Corrupt { .. } => "corrupt",
        ElementSpec::Reverse(_) => "reverse",
        ElementSpec::Displace { .. } => "displace",
        ElementSpec::Late { .. } => "late",
        ElementSpec::Thin { .. } => "thin",
        ElementSpec::Outage { .. } => "outage",
        ElementSpec::Policer { .. } => "policer",
        ElementSpec::Shaper { .. } => "shaper",
        ElementSpec::Mtu { .. } => "mtu",
        ElementSpec::Strip(_) => "strip",
        ElementSpec::Forget { .. } => "forget",
        ElementSpec::Reset(_) => "reset",
        ElementSpec::Shared(_) => "shared",
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
        builder.hops.push(ElementNode { simple: false, ..ElementNode::new(stage) });
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
    use machine::PacketAck;
    use units::{Duration, FlowId, Ratio, SeqNum};

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
            back: false,
            ack: PacketAck::None,
            capable: false,
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
