//! A world with external hosts: real machines, whose segments the driver injects and removes.
//!
//! It is the same world as that of [`run`](crate::run): the same elements with the same random
//! streams, the same network cards, and the same stacks and applications on the simulated hosts.
//! The driver supplies the time; this module never reads a clock.
//!
//! One round of the driver: [`LiveSimulation::advance`] to the present, deliver the segments of
//! [`LiveSimulation::take_leaving`], [`LiveSimulation::inject`] the segments that the external
//! hosts have sent, [`LiveSimulation::advance`] again; the next event is then at
//! [`LiveSimulation::next_at`].

use packet::Segment;
use units::Instant;

use crate::observer::Observer;
use crate::outcome::RunOutcome;
use crate::scenario::Scenario;
use crate::validity::SetupError;
use crate::world::Simulation;

pub use crate::world::external::{ExternalDelivery, ExternalPacket};

/// A world driven from outside.
#[expect(missing_debug_implementations, reason = "a whole world is too large to print")]
pub struct LiveSimulation<'a, O: Observer> {
    world: Simulation<'a, O>,
    outside: Vec<usize>,
}

impl<'a, O: Observer> LiveSimulation<'a, O> {
    /// Creates a world at time zero; `external` are the indices of the external hosts.
    ///
    /// # Errors
    /// [`SetupError`] if the scenario refers to a missing host, path or element.
    pub fn new(
        scenario: &'a Scenario,
        outside: &[usize],
        observer: &'a mut O,
    ) -> Result<Self, SetupError> {
        let world = Simulation::new(scenario, outside, observer)?;
        Ok(Self { world, outside: outside.to_vec() })
    }

    /// Returns whether a host is external.
    pub fn is_external(&self, host: usize) -> bool {
        self.outside.contains(&host)
    }

    /// Before the start: sets the initial sequence number and the timestamp clock of each simulated
    /// TCP to those that `of` returns for its flow and side (`true`: the listener), in place of the
    /// predictable ones drawn from the seed. Numbers that a host configures itself stay.
    pub fn number(&mut self, of: impl FnMut(usize, bool) -> [u32; 2]) {
        self.world.number(of);
    }

    /// Processes all events due at or before `now`, each at its own time.
    pub fn advance(&mut self, now: Instant) {
        self.world.run_until(now);
    }

    /// Returns the TCP at one end of a flow (`listener`: the passive end); `None` if it is
    /// external, not TCP, or not yet created.
    pub fn tcp(&mut self, flow: usize, listener: bool) -> Option<&tcp::TcpEndpoint> {
        self.world.tcp(flow, listener)
    }

    /// Returns when the next event is due; `None` if only external hosts can cause one.
    pub fn next_at(&mut self) -> Option<Instant> {
        self.world.next_at()
    }

    /// Transmits a segment, possibly a burst (`gso_size`), from an external host's stack now, after
    /// all events that are due. Returns false if the flow does not exist or its sender is
    /// simulated.
    pub fn inject(&mut self, now: Instant, segment: &Segment) -> bool {
        self.world.run_until(now);
        self.world.inject(segment)
    }

    /// Appends the segments delivered to external stacks to `into`, in order of time.
    pub fn take_leaving(&mut self, into: &mut Vec<ExternalDelivery>) {
        self.world.take_leaving(into);
    }

    /// Returns the payload bytes that the flow's reader has read; `None` if it is external.
    pub fn has_read(&self, flow: usize) -> Option<u64> {
        self.world.has_read(flow)
    }

    /// Returns whether all flows with a simulated end have finished; never if all hosts are
    /// external.
    pub fn over(&self) -> bool {
        self.world.over()
    }

    /// Returns the observer.
    pub const fn observer(&mut self) -> &mut O {
        self.world.observer()
    }

    /// Returns the results so far. It has none for an external end: no bytes read, no window.
    pub fn outcome(&self) -> RunOutcome {
        self.world.outcome()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{
        App, Close, ElementSpec, FlowSpec, PacketClass, SelectionRule, tests::two_hosts,
    };
    use packet::{Dir, Flags, IpVersion};
    use record::NullRecorder;
    use units::{Bytes, Duration, FlowId, Ratio, SeqNum};

    fn segment_of(delivery: &ExternalDelivery) -> Segment {
        match delivery.packet {
            ExternalPacket::Tcp(segment) => segment,
            ExternalPacket::TooBig(message) => panic!("an ICMP error: {message:?}"),
        }
    }

    fn scenario(loss: bool) -> Scenario {
        let share = SelectionRule::Share(Ratio::new(1, 2).unwrap());
        let mut forward = vec![ElementSpec::Delay(Duration::from_micros(5_300))];
        if loss {
            forward.push(ElementSpec::Loss { rule: share, only: PacketClass::All });
        }
        let mut scenario =
            two_hosts(forward, vec![ElementSpec::Delay(Duration::from_micros(7_100))], vec![]);
        scenario.flows.push(FlowSpec {
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

    /// A second world plays the listener: two worlds, each with the other's host external and
    /// joined only by their segments, behave as one.
    #[test]
    fn two_joined_worlds_behave_as_one() {
        let whole = crate::run(&scenario(false), &mut NullRecorder).unwrap();
        let (one, mut other) = (scenario(false), scenario(false));
        // Each route has its elements in one of the worlds only.
        other.paths[0].forward.clear();
        other.paths[0].reverse.clear();
        let (mut off, mut deaf) = (NullRecorder, NullRecorder);
        let mut near = LiveSimulation::new(&one, &[1], &mut off).unwrap();
        let mut far = LiveSimulation::new(&other, &[0], &mut deaf).unwrap();
        let mut leaving = Vec::new();
        let mut ended = Instant::ZERO;
        while !(near.over() && far.over()) {
            let times = [near.next_at(), far.next_at()];
            let Some(now) = times.into_iter().flatten().min() else { break };
            // Segments may go back and forth between them at one instant.
            loop {
                near.advance(now);
                near.take_leaving(&mut leaving);
                for came in leaving.drain(..) {
                    assert_eq!((came.at, came.host), (now, 1));
                    assert!(far.inject(now, &segment_of(&came)));
                }
                far.advance(now);
                far.take_leaving(&mut leaving);
                if leaving.is_empty() {
                    break;
                }
                leaving.drain(..).for_each(|came| assert!(near.inject(now, &segment_of(&came))));
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
    fn an_injected_segment_passes_the_elements() {
        let scenario = scenario(true);
        let mut off = NullRecorder;
        let mut live = LiveSimulation::new(&scenario, &[0, 1], &mut off).unwrap();
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
        // Half of them are lost: 100, plus or minus 4 standard deviations of 7.
        assert!((72..=128).contains(&came.len()), "{}", came.len());
        assert!(came.iter().all(|one| one.host == 1 && segment_of(one).dir == Dir::Forward));
        assert!(came.windows(2).all(|pair| pair[0].at < pair[1].at));
        assert!(!live.over());
        assert_eq!(live.next_at(), None);
    }

    #[test]
    fn initial_numbers_can_be_set() {
        let scenario = scenario(false);
        let mut off = NullRecorder;
        let mut live = LiveSimulation::new(&scenario, &[1], &mut off).unwrap();
        live.number(|flow, listens| [100 + flow as u32, if listens { 0 } else { 7 }]);
        live.advance(at_ms(10));
        let mut came = Vec::new();
        live.take_leaving(&mut came);
        let syn = segment_of(&came[0]);
        assert_eq!((syn.flags, syn.seq), (Flags::SYN, SeqNum(100)));
        assert_eq!(syn.timestamps.map(|stamps| stamps.val), Some(7));
    }

    #[test]
    fn segments_of_simulated_hosts_cannot_be_injected() {
        let scenario = scenario(false);
        let mut off = NullRecorder;
        let mut live = LiveSimulation::new(&scenario, &[1], &mut off).unwrap();
        assert!(live.is_external(1) && !live.is_external(0));
        assert!(!live.inject(at_ms(0), &Segment::default()), "the client is simulated");
        assert!(live.inject(at_ms(0), &Segment { dir: Dir::Reverse, ..Segment::default() }));
    }
}
