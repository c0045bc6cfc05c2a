//! The stations of all paths, and what happens at them.

use std::collections::BTreeMap;

use machine::{Element as _, Fate, PacketId, Verdict, View};
use net::choice::Luck;
use net::corrupt::Corrupt;
use net::delay::Delay;
use net::duplicate::Duplicate;
use net::jitter::Jitter;
use net::link::Link;
use net::loss::Loss;
use net::managed::ManagedLink;
use net::outage::Outage;
use net::reorder::displace::Displace;
use net::reorder::late::Late;
use net::reorder::reverse::Reverse;
use net::thin::Thin;
use net::token_bucket::{Policer, Shaper};
use units::{Bytes, Instant};

use crate::scenario::{Element, Scenario};
use crate::validity::SetupError;

/// What a packet comes to next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// A station, by number. Several roads may lead through one.
    Station(u32),
    /// The network card of a host: the end of the road.
    Host(u16),
}

/// All one-way roads, as one row of stops: forward and reverse road of the first path, then of
/// the second, and so on, each ending with its host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Roads {
    stops: Vec<Stop>,
    /// Where each road begins.
    starts: Vec<u32>,
}

impl Roads {
    /// The stop with that number.
    #[inline]
    pub(crate) fn stop(&self, number: u32) -> Stop {
        self.stops[number as usize]
    }

    /// First stops of the forward and the reverse road of a path.
    pub(crate) fn of_path(&self, path: usize) -> Option<[u32; 2]> {
        self.starts.as_chunks().0.get(path).copied()
    }

    /// Place of a stop on its road, and the host that the road leads to.
    pub(crate) fn place(&self, number: u32) -> (u16, u16) {
        let road = self.starts.partition_point(|&start| start <= number) - 1;
        let mut ahead = self.stops[number as usize..].iter();
        let to = ahead.find_map(|stop| match stop {
            Stop::Host(host) => Some(*host),
            Stop::Station(_) => None,
        });
        ((number - self.starts[road]) as u16, to.unwrap_or_default())
    }

    /// Index of the path that a stop is on, and whether it is on its reverse road.
    pub(crate) fn path(&self, number: u32) -> (usize, bool) {
        let road = self.starts.partition_point(|&start| start <= number) - 1;
        (road / 2, road % 2 == 1)
    }

    fn add(&mut self, stations: impl Iterator<Item = u32>, to: usize) {
        self.starts.push(self.stops.len() as u32);
        self.stops.extend(stations.map(Stop::Station));
        self.stops.push(Stop::Host(to as u16));
    }
}

/// An element in its place.
#[derive(Debug)]
pub(crate) struct Station {
    stage: Stage,
    /// Time of the entry in the calendar that stands for this station.
    pub(crate) armed: Option<Instant>,
    simple: bool,
    /// It holds no packet, ever.
    lets_pass: bool,
}

/// What became of a packet that came to a station.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Accepted {
    /// It waits behind others.
    Waits,
    /// It waits, and the station wants to wake then; it counts on that.
    Wakes(Instant),
    /// What its element says; when that wants to wake has to be asked.
    Judged(Verdict),
}

/// What packets meet most; the rest is kept out of their way.
#[derive(Debug)]
#[repr(u8)]
enum Stage {
    Link(Link),
    Delay(Delay),
    Other(Box<Other>),
}

/// Two cache lines at most: a world has some for every flow.
const _: () = assert!(size_of::<Station>() <= 128);

#[derive(Debug)]
enum Other {
    Managed(ManagedLink),
    Jitter(Jitter),
    Loss(Loss),
    Duplicate(Duplicate),
    Corrupt(Corrupt),
    Reverse(Reverse),
    Displace(Displace),
    Late(Late),
    Thin(Thin),
    Outage(Outage),
    Policer(Policer),
    Shaper(Shaper),
}

/// Asks the element.
macro_rules! ask {
    ($other:expr, $element:ident => $question:expr) => {
        match $other {
            Other::Managed($element) => $question,
            Other::Jitter($element) => $question,
            Other::Loss($element) => $question,
            Other::Duplicate($element) => $question,
            Other::Corrupt($element) => $question,
            Other::Reverse($element) => $question,
            Other::Displace($element) => $question,
            Other::Late($element) => $question,
            Other::Thin($element) => $question,
            Other::Outage($element) => $question,
            Other::Policer($element) => $question,
            Other::Shaper($element) => $question,
        }
    };
}

impl machine::Element for Other {
    #[inline(never)]
    fn accept(&mut self, now: Instant, packet: PacketId, view: &View) -> Verdict {
        ask!(self, element => element.accept(now, packet, view))
    }

    #[inline(never)]
    fn next_wake(&self) -> Option<Instant> {
        ask!(self, element => element.next_wake())
    }

    #[inline(never)]
    fn wake(&mut self, now: Instant) -> Option<PacketId> {
        ask!(self, element => element.wake(now))
    }

    fn next_fate(&mut self) -> Option<Fate> {
        ask!(self, element => element.next_fate())
    }
}

impl Stage {
    /// Does it ever hold a packet?
    fn holds(&self) -> bool {
        let Self::Other(other) = self else { return true };
        !matches!(**other, Other::Loss(_) | Other::Duplicate(_) | Other::Corrupt(_))
    }

    /// An element that leaves nothing to chance: nobody needs to name it.
    fn plain(element: &Element) -> Option<Self> {
        match element {
            Element::Link { rate, limit } => Some(Self::Link(Link::new(*rate, *limit))),
            Element::Delay(span) => Some(Self::Delay(Delay::new(*span))),
            _ => None,
        }
    }

    /// `None` for a reference to a shared element, which is no station of its own.
    fn new(element: &Element, luck: &Luck<'_>) -> Option<Self> {
        let other = match element {
            Element::Link { .. } | Element::Delay(_) => return Self::plain(element),
            Element::Shared(_) => return None,
            Element::ManagedLink { capacity, limit, queue } => {
                Other::Managed(ManagedLink::new(capacity.clone(), *limit, *queue, luck))
            }
            Element::Jitter { most } => Other::Jitter(Jitter::new(*most, luck)),
            Element::Loss { rule, only } => Other::Loss(Loss::new(rule, *only, luck)),
            Element::Duplicate { rule, only } => {
                Other::Duplicate(Duplicate::new(rule, *only, luck))
            }
            Element::Corrupt { rule, only } => Other::Corrupt(Corrupt::new(rule, *only, luck)),
            Element::Reverse(params) => Other::Reverse(Reverse::new(*params)),
            Element::Displace { rule, places, timeout, only } => {
                Other::Displace(Displace::new(rule, *places, *timeout, *only, luck))
            }
            Element::Late { rule, by, only } => Other::Late(Late::new(rule, *by, *only, luck)),
            Element::Thin { bytes, timeout } => Other::Thin(Thin::new(*bytes, *timeout)),
            Element::Outage { from, until, during } => {
                let (from, until) = (Instant::ZERO + *from, Instant::ZERO + *until);
                Other::Outage(Outage::new(from, until, *during))
            }
            Element::Policer { rate, burst } => Other::Policer(Policer::new(*rate, *burst)),
            Element::Shaper { rate, burst, limit } => {
                Other::Shaper(Shaper::new(*rate, *burst, *limit))
            }
        };
        Some(Self::Other(Box::new(other)))
    }
}

impl Station {
    fn new(stage: Stage) -> Self {
        let simple = matches!(stage, Stage::Link(_) | Stage::Delay(_));
        Self { lets_pass: !stage.holds(), stage, armed: None, simple }
    }

    /// Does it keep order, and does but one road lead through it? Then nothing comes to it before a packet
    /// that leaves it, and what that brings about, has come to rest: packets only go on, and what they
    /// bring about begins other roads.
    #[inline(always)]
    pub(crate) const fn is_simple(&self) -> bool {
        self.simple
    }

    /// A packet comes; `view` shows it to those that look into it.
    #[inline(always)]
    pub(crate) fn accept(
        &mut self,
        now: Instant,
        id: PacketId,
        size: Bytes,
        view: impl FnOnce() -> View,
    ) -> Accepted {
        match &mut self.stage {
            Stage::Link(link) => {
                if !link.take(now, id, size) {
                    return Accepted::Judged(Verdict::Dropped);
                }
            }
            Stage::Delay(delay) => delay.take(now, id),
            Stage::Other(other) => {
                return Accepted::Judged(other.accept(now, id, &view()));
            }
        }
        if self.armed.is_some() {
            return Accepted::Waits;
        }
        self.armed = self.next_wake();
        self.armed.map_or(Accepted::Waits, Accepted::Wakes)
    }

    /// Its entry in the calendar came up: is it the one that it waits for? It is taken.
    #[inline(always)]
    pub(crate) fn is_due(&mut self, now: Instant) -> bool {
        // Not if it was overtaken by an earlier one, and the station has armed itself anew since.
        let due = self.armed == Some(now);
        if due {
            self.armed = None;
        }
        due
    }

    /// The first packet of a simple station, if it leaves at or before `now`, and when the next one does:
    /// the station counts on waking then.
    #[inline(always)]
    pub(crate) fn leave(&mut self, now: Instant) -> Option<(PacketId, Option<Instant>)> {
        let (packet, next) = match &mut self.stage {
            Stage::Link(link) => (link.wake(now)?, link.next_wake()),
            Stage::Delay(delay) => (delay.wake(now)?, delay.next_wake()),
            Stage::Other(_) => return None,
        };
        self.armed = next;
        Some((packet, next))
    }

    /// Does it hold no packet, ever?
    #[inline(always)]
    pub(crate) const fn lets_pass(&self) -> bool {
        self.lets_pass
    }

    /// Is what comes in always behind what is there?
    #[inline(always)]
    pub(crate) const fn keeps_order(&self) -> bool {
        matches!(self.stage, Stage::Link(_) | Stage::Delay(_))
    }

    #[inline(always)]
    pub(crate) fn next_wake(&self) -> Option<Instant> {
        match &self.stage {
            Stage::Link(link) => link.next_wake(),
            Stage::Delay(delay) => delay.next_wake(),
            Stage::Other(other) => other.next_wake(),
        }
    }

    /// A packet that leaves at or before `now`.
    pub(crate) fn wake(&mut self, now: Instant) -> Option<PacketId> {
        match &mut self.stage {
            Stage::Link(link) => link.wake(now),
            Stage::Delay(delay) => delay.wake(now),
            Stage::Other(other) => {
                if other.next_wake().is_none_or(|at| at > now) {
                    return None;
                }
                other.wake(now)
            }
        }
    }

    /// What the last packet that came or left made it do to others.
    #[inline(always)]
    pub(crate) fn next_fate(&mut self) -> Option<Fate> {
        match &mut self.stage {
            Stage::Link(_) | Stage::Delay(_) => None,
            Stage::Other(other) => other.next_fate(),
        }
    }
}

/// Kind of an element, as its random streams name it.
fn kind(element: &Element) -> &'static str {
    match element {
        Element::Link { .. } | Element::ManagedLink { .. } => "link",
        Element::Delay(_) => "delay",
        Element::Jitter { .. } => "jitter",
        Element::Loss { .. } => "loss",
        Element::Duplicate { .. } => "duplicate",
        Element::Corrupt { .. } => "corrupt",
        Element::Reverse(_) => "reverse",
        Element::Displace { .. } => "displace",
        Element::Late { .. } => "late",
        Element::Thin { .. } => "thin",
        Element::Outage { .. } => "outage",
        Element::Policer { .. } => "policer",
        Element::Shaper { .. } => "shaper",
        Element::Shared(_) => "shared",
    }
}

/// All stations, in the order that [`record::StationId`] counts them, and two roads for each
/// path: forward, reverse.
///
/// An element's random streams bear its kind, its number among those of its kind on its road,
/// and the names of the hosts at the ends; a shared one's bear its name. So elements of other
/// kinds, and more of its kind behind it, do not change its luck.
///
/// # Errors
/// The first path or shared element that names what is not there, or that has too many elements.
pub(crate) fn build(scenario: &Scenario) -> Result<(Vec<Station>, Roads), SetupError> {
    let own = |element: &&Element| !matches!(element, Element::Shared(_));
    let all = scenario.paths.iter().flat_map(|path| path.forward.iter().chain(&path.reverse));
    let mut builder =
        Builder { scenario, stations: Vec::new(), first_shared: all.filter(own).count() as u32 };
    let mut roads = Roads::default();
    // Paths so far between hosts of these names.
    let mut numbers: BTreeMap<[&str; 2], u32> = BTreeMap::new();
    for (index, path) in scenario.paths.iter().enumerate() {
        let wrong = SetupError::Path { path: index };
        let name = |host: usize| scenario.hosts.get(host).map(|host| host.name.as_str());
        let Some((a, b)) = name(path.from).zip(name(path.to)) else { return Err(wrong) };
        let number = numbers.entry([a.min(b), a.max(b)]).or_default();
        let forward = builder.road(&path.forward, || format!("{a} to {b}, path {number}"));
        let reverse = builder.road(&path.reverse, || format!("{b} to {a}, path {number}"));
        *number += 1;
        let (forward, reverse) = forward.zip(reverse).ok_or(wrong)?;
        roads.add(forward.into_iter(), path.to);
        roads.add(reverse.into_iter(), path.from);
    }
    for (index, shared) in scenario.shared.iter().enumerate() {
        let owner = format!("shared {}", shared.name);
        let stage = Stage::new(&shared.element, &Luck { seed: scenario.seed, owner: &owner });
        let stage = stage.ok_or(SetupError::Shared { shared: index })?;
        builder.stations.push(Station { simple: false, ..Station::new(stage) });
    }
    Ok((builder.stations, roads))
}

struct Builder<'a> {
    scenario: &'a Scenario,
    stations: Vec<Station>,
    first_shared: u32,
}

impl Builder<'_> {
    /// Adds the stations of a road that leads `way`; `None` if it cannot be.
    fn road(&mut self, elements: &[Element], way: impl Fn() -> String) -> Option<Vec<u32>> {
        // Events tell the place of an element in 16 bits.
        if elements.len() >= usize::from(u16::MAX) {
            return None;
        }
        let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
        let mut stations = Vec::with_capacity(elements.len());
        for element in elements {
            let kind = kind(element);
            let count = counts.entry(kind).or_default();
            *count += 1;
            if let Some(stage) = Stage::plain(element) {
                stations.push(self.stations.len() as u32);
                self.stations.push(Station::new(stage));
                continue;
            }
            let owner = format!("{kind} {} from {}", *count - 1, way());
            match (element, Stage::new(element, &Luck { seed: self.scenario.seed, owner: &owner }))
            {
                (_, Some(stage)) => {
                    stations.push(self.stations.len() as u32);
                    self.stations.push(Station::new(stage));
                }
                (Element::Shared(index), None) if *index < self.scenario.shared.len() => {
                    stations.push(self.first_shared + *index as u32);
                }
                _ => return None,
            }
        }
        Some(stations)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Only, Rule, Shared};
    use machine::Ack;
    use units::{Duration, FlowId, Ratio, SeqNum};

    fn half() -> Element {
        Element::Loss { rule: Rule::Share(Ratio::new(1, 2).unwrap()), only: Only::All }
    }

    const PAUSE: Element = Element::Delay(Duration::ZERO);

    fn stations(forward: Vec<Element>, reverse: Vec<Element>) -> (Vec<Station>, Roads) {
        build(&world(forward, reverse)).unwrap()
    }

    fn world(forward: Vec<Element>, reverse: Vec<Element>) -> Scenario {
        let shared = Shared { name: "half".into(), element: half() };
        crate::scenario::tests::two_hosts(forward, reverse, vec![shared])
    }

    /// Fates of 200 packets at a station.
    fn luck((stations, roads): &mut (Vec<Station>, Roads), road: usize, hop: u32) -> Vec<bool> {
        let Stop::Station(index) = roads.stop(roads.starts[road] + hop) else { panic!("a host") };
        let station = &mut stations[index as usize];
        let view = View {
            size: Bytes(1_500),
            payload: 1_448,
            flow: FlowId(0),
            seq: SeqNum(0),
            syn: false,
            back: false,
            ack: Ack::None,
            capable: false,
        };
        let mut lost = || {
            let verdict = station.accept(Instant::ZERO, PacketId(0), view.size, || view);
            verdict == Accepted::Judged(Verdict::Dropped)
        };
        (0..200).map(|_| lost()).collect()
    }

    #[test]
    fn more_elements_do_not_change_the_luck_of_one() {
        let alone = luck(&mut stations(vec![half()], vec![]), 0, 0);
        let mut more = stations(vec![PAUSE, half(), PAUSE, half()], vec![PAUSE, half()]);
        assert_eq!(luck(&mut more, 0, 1), alone);
        // The others have luck of their own.
        assert_ne!(luck(&mut more, 0, 3), alone);
        assert_ne!(luck(&mut more, 1, 1), alone);
        let back = luck(&mut stations(vec![], vec![half()]), 1, 0);
        assert_eq!(luck(&mut stations(vec![half(), PAUSE], vec![half()]), 1, 0), back);
        let shared = luck(&mut stations(vec![Element::Shared(0)], vec![]), 0, 0);
        assert_ne!(shared, alone);
        let mut both = stations(vec![half(), PAUSE], vec![half(), Element::Shared(0)]);
        assert_eq!(luck(&mut both, 1, 1), shared);
    }

    #[test]
    fn a_second_path_does_not_change_the_luck_of_the_first() {
        let mut scenario = world(vec![half()], vec![]);
        let first = luck(&mut build(&scenario).unwrap(), 0, 0);
        scenario.paths.push(scenario.paths[0].clone());
        let mut both = build(&scenario).unwrap();
        assert_eq!(luck(&mut both, 0, 0), first);
        assert_ne!(luck(&mut both, 2, 0), first);
    }

    #[test]
    fn own_stations_come_first_and_shared_ones_last() {
        let shared = Element::Shared(0);
        let forward = vec![PAUSE, shared.clone(), PAUSE];
        let (stations, roads) = stations(forward, vec![shared, half()]);
        assert_eq!(stations.len(), 4);
        let row = [0, 3, 1].map(Stop::Station);
        assert_eq!(roads.stops[..4], [row[0], row[1], row[2], Stop::Host(1)]);
        let row = [3, 2].map(Stop::Station);
        assert_eq!(roads.stops[4..], [row[0], row[1], Stop::Host(0)]);
        assert_eq!(roads.of_path(0), Some([0, 4]));
        assert_eq!(roads.of_path(1), None);
        assert_eq!((roads.place(2), roads.place(4)), ((2, 1), (0, 0)));
        assert_eq!((roads.path(2), roads.path(4)), ((0, false), (0, true)));
    }

    #[test]
    fn what_is_not_there_is_refused() {
        let error = |scenario: &Scenario| build(scenario).map(|_| ()).unwrap_err();
        let scenario = world(vec![Element::Shared(1)], vec![]);
        assert_eq!(error(&scenario), SetupError::Path { path: 0 });
        let mut scenario = world(vec![], vec![]);
        scenario.shared[0].element = Element::Shared(0);
        assert_eq!(error(&scenario), SetupError::Shared { shared: 0 });
        let scenario = world(vec![PAUSE; 70_000], vec![]);
        assert_eq!(error(&scenario), SetupError::Path { path: 0 });
    }
}
