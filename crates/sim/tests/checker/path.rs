//! One route of a path: no packet leaves it that did not enter, none early, out of order or faster
//! than the rate of the lines, and none is dropped from a queue with free space.

use std::collections::VecDeque;

use ackclock_sim as sim;
use net::link::QueueLimit;
use packet::Segment;
use sim::scenario::ElementSpec;
use units::Instant;

/// An arithmetic model of a queue and its line: a packet starts on arrival or when its predecessor
/// has left, and takes its bits over the rate, rounded to the nanosecond below or above.
struct LineChecker {
    rate: u64,
    limit: QueueLimit,
    /// Earliest and latest departure time of each packet accepted, and its size.
    leaving: VecDeque<(u64, u64, u64)>,
}

/// A packet between entrance and exit.
struct PacketInTransit {
    entered: u64,
    packet: Segment,
    /// Interval in which it must leave, if known.
    due: Option<(u64, u64)>,
}

pub(crate) struct RouteChecker {
    /// Lines in order, with their rates.
    rates: Vec<u64>,
    delays: u64,
    /// The line at the entrance, if the first element is one, and whether it is the only one.
    first: Option<LineChecker>,
    only: bool,
    inside: VecDeque<PacketInTransit>,
    /// Rate of the last line.
    last_rate: Option<u64>,
    last_out: Option<u64>,
    /// Flows of the packets dropped after the entrance whose absence has not been seen yet.
    lost_inside: Vec<usize>,
    dropped: Vec<usize>,
}

fn bits_ns(size: u64) -> u128 {
    u128::from(size) * 8 * 1_000_000_000
}

fn at_least(size: u64, rate: u64) -> u64 {
    (bits_ns(size) / u128::from(rate)) as u64
}

fn at_most(size: u64, rate: u64) -> u64 {
    bits_ns(size).div_ceil(u128::from(rate)) as u64
}

impl LineChecker {
    /// Queued packets and their bytes, excluding the one in transmission, if all have left that may
    /// have (`sure`) or must have.
    fn waiting(&self, now: u64, sure: bool) -> (u64, u64) {
        let still = |&&(early, late, _): &&(u64, u64, u64)| {
            if sure { early > now } else { late >= now }
        };
        let waiting = self.leaving.iter().filter(still).skip(1);
        waiting.fold((0, 0), |(packets, bytes), &(.., size)| (packets + 1, bytes + size))
    }

    fn has_room(&self, waiting: (u64, u64), size: u64) -> bool {
        match self.limit {
            QueueLimit::Packets(limit) => waiting.0 < u64::from(limit),
            QueueLimit::Bytes(limit) => waiting.1 + size <= limit.get(),
        }
    }

    fn accept(&mut self, now: u64, size: u64) {
        while self.leaving.front().is_some_and(|&(_, late, _)| late < now) {
            self.leaving.pop_front();
        }
        let (early, late) = self.leaving.back().map_or((now, now), |&(e, l, _)| (e, l));
        let early = early.max(now) + at_least(size, self.rate);
        let late = late.max(now) + at_most(size, self.rate);
        self.leaving.push_back((early, late, size));
    }
}

impl RouteChecker {
    pub(crate) fn new(elements: &[ElementSpec]) -> Self {
        let mut route = Self {
            rates: Vec::new(),
            delays: 0,
            first: None,
            only: true,
            inside: VecDeque::new(),
            last_rate: None,
            last_out: None,
            lost_inside: Vec::new(),
            dropped: Vec::new(),
        };
        for (place, element) in elements.iter().enumerate() {
            match *element {
                ElementSpec::Link { rate, limit } => {
                    let rate = rate.bits_per_second();
                    route.rates.push(rate);
                    route.last_rate = Some(rate);
                    if place == 0 {
                        route.first = Some(LineChecker { rate, limit, leaving: VecDeque::new() });
                    } else {
                        route.only = false;
                    }
                }
                ElementSpec::Delay(span) => route.delays += span.as_nanos(),
                _ => panic!("this model supports links and delays only"),
            }
        }
        route
    }

    pub(crate) fn dropped_of(&self, flow: usize) -> u64 {
        self.dropped.iter().filter(|&&f| f == flow).count() as u64
    }

    pub(crate) fn enter(&mut self, at: Instant, packet: &Segment) {
        let (now, size) = (at.as_nanos(), packet.wire_len().get());
        let mut due = None;
        if let Some(line) = &mut self.first {
            line.accept(now, size);
            if self.only {
                let &(early, late, _) = line.leaving.back().unwrap();
                due = Some((early + self.delays, late + self.delays));
            }
        }
        self.inside.push_back(PacketInTransit { entered: now, packet: *packet, due });
    }

    /// A packet was dropped at element number `element`.
    pub(crate) fn drop(&mut self, at: Instant, flow: usize, element: u16, size: u64, new: bool) {
        self.dropped.push(flow);
        if element > 0 {
            self.lost_inside.push(flow);
            return;
        }
        assert!(new, "the queue at the entrance dropped a packet that did not just arrive");
        let packet = self.inside.pop_back().unwrap().packet;
        assert_eq!((packet.flow.0 as usize, packet.wire_len().get()), (flow, size));
        let line = self.first.as_mut().expect("a drop at an element that is no line");
        line.leaving.pop_back();
        let waiting = line.waiting(at.as_nanos(), false);
        assert!(!line.has_room(waiting, size), "dropped a packet that fits at {at:?}");
        assert!(!line.leaving.is_empty(), "dropped a packet before an idle line");
    }

    pub(crate) fn leave(&mut self, at: Instant, packet: &Segment) {
        let now = at.as_nanos();
        let PacketInTransit { entered, due, .. } = loop {
            let first = self.inside.pop_front().expect("out of thin air");
            if first.packet == *packet {
                break first;
            }
            let flow = first.packet.flow.0 as usize;
            let lost = self.lost_inside.iter().position(|&lost| lost == flow);
            self.lost_inside.swap_remove(lost.expect("a packet overtook another"));
        };
        let size = packet.wire_len().get();
        let lines: u64 = self.rates.iter().map(|&rate| at_least(size, rate)).sum();
        let least = self.delays + lines;
        assert!(now - entered >= least, "arrived after {} ns, not {least}", now - entered);
        if let Some((early, late)) = due {
            assert!((early..=late).contains(&now), "arrived at {now}, not in {early}..={late}");
        }
        if let (Some(last), Some(rate)) = (self.last_out, self.last_rate) {
            assert!(now - last >= at_least(size, rate), "the line is faster than its rate");
        }
        self.last_out = Some(now);
        self.check_room(at);
    }

    /// Checks that the queue at the entrance does not exceed its limit.
    fn check_room(&self, at: Instant) {
        if let Some(line) = &self.first {
            let (packets, bytes) = line.waiting(at.as_nanos(), true);
            let fits = match line.limit {
                QueueLimit::Packets(limit) => packets <= u64::from(limit),
                QueueLimit::Bytes(limit) => bytes <= limit.get(),
            };
            assert!(fits, "{packets} packets of {bytes} bytes wait in a queue of {:?}", line.limit);
        }
    }
}
