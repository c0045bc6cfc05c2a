//! A world some of whose hosts stand outside: real machines, whose segments are put in and taken
//! out by whoever drives it.
//!
//! It is the same world as that of [`run`](crate::run): the same stations with the same luck, the
//! same cards, and the same stacks and applications on the hosts that are inside. Time is what the
//! driver says; nothing here looks at a clock.
//!
//! The driver's round: [`Live::advance`] to the present, hand over what [`Live::take_leaving`]
//! gives, [`Live::inject`] what the machines outside have sent, [`Live::advance`] again; then
//! nothing happens before [`Live::next_at`].

use packet::Segment;
use units::Instant;

use crate::observer::Observer;
use crate::outcome::Outcome;
use crate::scenario::Scenario;
use crate::validity::SetupError;
use crate::world::World;

pub use crate::world::outside::Leaving;

/// A world that is driven from outside.
#[expect(missing_debug_implementations, reason = "a whole world is nothing to print")]
pub struct Live<'a, O: Observer> {
    world: World<'a, O>,
    outside: Vec<usize>,
}

impl<'a, O: Observer> Live<'a, O> {
    /// A world before its first moment; `outside` are the indices of the hosts that are real.
    ///
    /// # Errors
    /// [`SetupError`] if the scenario refers to what is not there.
    pub fn new(
        scenario: &'a Scenario,
        outside: &[usize],
        observer: &'a mut O,
    ) -> Result<Self, SetupError> {
        let world = World::new(scenario, outside, observer)?;
        Ok(Self { world, outside: outside.to_vec() })
    }

    /// Is that host a real one?
    pub fn is_outside(&self, host: usize) -> bool {
        self.outside.contains(&host)
    }

    /// Before the beginning: gives each TCP inside the initial sequence number and the timestamp
    /// clock that `of` says for its flow and side (`true`: the listener), in place of those drawn
    /// from the seed, which anybody may know. Where a host has numbers of its own, those stay.
    pub fn number(&mut self, of: impl FnMut(usize, bool) -> [u32; 2]) {
        self.world.number(of);
    }

    /// Lets everything happen that is due at or before `now`, each thing at its own moment.
    pub fn advance(&mut self, now: Instant) {
        self.world.run_until(now);
    }

    /// The TCP at one end of a flow (`listener`: the end that was called); `None` where it is outside,
    /// is not TCP, or has not begun.
    pub fn tcp(&mut self, flow: usize, listener: bool) -> Option<&tcp::Endpoint> {
        self.world.tcp(flow, listener)
    }

    /// When something is due next; `None` if only the hosts outside can make anything happen.
    pub fn next_at(&mut self) -> Option<Instant> {
        self.world.next_at()
    }

    /// A segment, perhaps a burst (`gso_size`), leaves the stack of a host outside now, after all
    /// that is due. False if there is no such flow, or if its sender is inside.
    pub fn inject(&mut self, now: Instant, segment: &Segment) -> bool {
        self.world.run_until(now);
        self.world.inject(segment)
    }

    /// Adds to `into` what has come to stacks outside, in the order of time.
    pub fn take_leaving(&mut self, into: &mut Vec<Leaving>) {
        self.world.take_leaving(into);
    }

    /// Payload bytes that the reader of that flow has taken; `None` if it is outside.
    pub fn has_read(&self, flow: usize) -> Option<u64> {
        self.world.has_read(flow)
    }

    /// Are all flows with an end inside over? Where all hosts are outside, never.
    pub fn over(&self) -> bool {
        self.world.over()
    }

    /// Who watches.
    pub const fn observer(&mut self) -> &mut O {
        self.world.observer()
    }

    /// What was measured so far. Of an end outside it tells nothing: no byte read, no window.
    pub fn outcome(&self) -> Outcome {
        self.world.outcome()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{App, Close, Element, Flow, Only, Rule, tests::two_hosts};
    use packet::{Dir, Flags, IpVersion};
    use record::Off;
    use units::{Bytes, Duration, FlowId, Ratio, SeqNum};

    fn scenario(loss: bool) -> Scenario {
        let share = Rule::Share(Ratio::new(1, 2).unwrap());
        let mut forward = vec![Element::Delay(Duration::from_micros(5_300))];
        if loss {
            forward.push(Element::Loss { rule: share, only: Only::All });
        }
        let mut scenario =
            two_hosts(forward, vec![Element::Delay(Duration::from_micros(7_100))], vec![]);
        scenario.flows.push(Flow {
            name: "up".into(),
            path: 0,
            from: 0,
            to: 1,
            start: Duration::ZERO,
            app: App::Bulk { bytes: Some(Bytes(100_000)), write: None },
            ip: IpVersion::V4,
            nodelay: false,
            reads: None,
            close: Close::Fin,
            keepalive: None,
        });
        scenario
    }

    fn at_ms(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    /// The listener is played by a world of its own: two worlds, each with the other's host outside,
    /// joined by nothing but their segments, do what one world does.
    #[test]
    fn two_halves_make_a_whole() {
        let whole = crate::run(&scenario(false), &mut Off).unwrap();
        let (one, mut other) = (scenario(false), scenario(false));
        // Each road lies in one of the worlds only.
        other.paths[0].forward.clear();
        other.paths[0].reverse.clear();
        let (mut off, mut deaf) = (Off, Off);
        let mut near = Live::new(&one, &[1], &mut off).unwrap();
        let mut far = Live::new(&other, &[0], &mut deaf).unwrap();
        let mut leaving = Vec::new();
        let mut ended = Instant::ZERO;
        while !(near.over() && far.over()) {
            let times = [near.next_at(), far.next_at()];
            let Some(now) = times.into_iter().flatten().min() else { break };
            // At one moment a segment may go to and fro between them.
            loop {
                near.advance(now);
                near.take_leaving(&mut leaving);
                for came in leaving.drain(..) {
                    assert_eq!((came.at, came.host), (now, 1));
                    assert!(far.inject(now, &came.segment));
                }
                far.advance(now);
                far.take_leaving(&mut leaving);
                if leaving.is_empty() {
                    break;
                }
                leaving.drain(..).for_each(|came| assert!(near.inject(now, &came.segment)));
            }
            ended = now;
        }
        assert_eq!(far.has_read(0), Some(100_000));
        assert_eq!(near.has_read(0), None);
        let (sent, read) = (near.outcome(), far.outcome());
        assert_eq!(sent.segments, whole.segments);
        assert_eq!(sent.flows[0].max_cwnd, whole.flows[0].max_cwnd);
        assert_eq!(read.flows[0].bytes, whole.flows[0].bytes);
        assert_eq!(read.flows[0].duration, whole.flows[0].duration);
        assert!(ended >= whole.ended);
    }

    #[test]
    fn a_segment_from_outside_meets_the_stations() {
        let scenario = scenario(true);
        let mut off = Off;
        let mut live = Live::new(&scenario, &[0, 1], &mut off).unwrap();
        let syn = |flow| Segment {
            flow: FlowId(flow),
            flags: Flags::SYN,
            seq: SeqNum(7),
            ..Segment::default()
        };
        assert!(!live.inject(at_ms(0), &syn(1)), "no such flow");
        let mut came = Vec::new();
        for ms in 0..200 {
            assert!(live.inject(at_ms(ms), &syn(0)));
        }
        live.advance(at_ms(1_000));
        live.take_leaving(&mut came);
        // Half of them are lost: 100, give or take 4 standard deviations of 7.
        assert!((72..=128).contains(&came.len()), "{}", came.len());
        assert!(came.iter().all(|one| one.host == 1 && one.segment.dir == Dir::Forward));
        assert!(came.windows(2).all(|pair| pair[0].at < pair[1].at));
        assert!(!live.over());
        assert_eq!(live.next_at(), None);
    }

    #[test]
    fn first_numbers_may_be_given() {
        let scenario = scenario(false);
        let mut off = Off;
        let mut live = Live::new(&scenario, &[1], &mut off).unwrap();
        live.number(|flow, listens| [100 + flow as u32, if listens { 0 } else { 7 }]);
        live.advance(at_ms(10));
        let mut came = Vec::new();
        live.take_leaving(&mut came);
        let syn = came[0].segment;
        assert_eq!((syn.flags, syn.seq), (Flags::SYN, SeqNum(100)));
        assert_eq!(syn.timestamps.map(|stamps| stamps.val), Some(7));
    }

    #[test]
    fn who_is_inside_cannot_be_spoken_for() {
        let scenario = scenario(false);
        let mut off = Off;
        let mut live = Live::new(&scenario, &[1], &mut off).unwrap();
        assert!(live.is_outside(1) && !live.is_outside(0));
        assert!(!live.inject(at_ms(0), &Segment::default()), "the client is inside");
        assert!(live.inject(at_ms(0), &Segment { dir: Dir::Reverse, ..Segment::default() }));
    }
}
