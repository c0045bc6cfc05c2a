//! Boxes on a path that drop, change or answer packets of a connection, packet by packet.

mod common;

use ackclock_sim as sim;
use common::{MBIT, all_taps, bulk, host, ms, pair, route, tcp};
use core::num::NonZeroU64;
use packet::{Flags, Segment};
use record::{Event, EventSource, Recorder, SenderState};
use sim::audit::run_audited;
use sim::scenario::{ElementSpec, HostSpec, PacketClass, Scenario, SelectionRule};
use sim::{FlowOutcome, Observer};
use tcp::profile::EcnRule;
use units::{Duration, Instant, Ratio};

/// The segments at the wire of each host: time in milliseconds, host, whether it leaves.
#[derive(Debug, Default)]
struct Wire(Vec<(u64, usize, bool, Segment)>);

impl Recorder for Wire {
    const ON: bool = false;

    fn record(&mut self, _: Instant, _: EventSource, _: Event, _: Option<&SenderState>) {}
}

impl Observer for Wire {
    fn tap(&mut self, at: Instant, tap: usize, outbound: bool, segment: &Segment) {
        if tap.is_multiple_of(2) {
            self.0.push((at.as_nanos() / 1_000_000, tap / 2, outbound, *segment));
        }
    }
}

impl Wire {
    /// What a host sent, or received: times in milliseconds, and segments.
    fn at(&self, host: usize, outbound: bool) -> Vec<(u64, Segment)> {
        let own = self.0.iter().filter(|seen| (seen.1, seen.2) == (host, outbound));
        own.map(|&(at, _, _, segment)| (at, segment)).collect()
    }

    /// Times and control bits of the SYNs and SYN-ACKs that a host sent.
    fn syns(&self, host: usize) -> Vec<(u64, Flags)> {
        let sent = self.at(host, true).into_iter();
        let syns = sent.filter(|(_, segment)| segment.flags.has(Flags::SYN));
        syns.map(|(at, segment)| (at, segment.flags)).collect()
    }
}

fn linux() -> [HostSpec; 2] {
    [host("a", "linux-6.18"), host("b", "linux-6.18")]
}

/// `bytes` over 20 Mbit/s and 20 ms, with elements before the lines.
fn world(
    hosts: [HostSpec; 2],
    bytes: u64,
    there: Vec<ElementSpec>,
    back: Vec<ElementSpec>,
) -> Scenario {
    let with = |mut own: Vec<ElementSpec>| {
        own.extend(route(20 * MBIT, ms(10)));
        own
    };
    let mut scenario = pair(hosts, with(there), with(back), bulk(bytes));
    scenario.taps = all_taps(2);
    scenario
}

/// Runs it against the laws of its elements.
fn run(scenario: &Scenario) -> (FlowOutcome, Wire) {
    let mut wire = Wire::default();
    match run_audited(scenario, &mut wire) {
        Ok((mut outcome, _)) => (outcome.flows.remove(0), wire),
        Err(error) => panic!("{error}"),
    }
}

fn lose_first(only: PacketClass) -> ElementSpec {
    ElementSpec::Loss { rule: SelectionRule::Listed(vec![1]), only }
}

fn lose_all(only: PacketClass) -> ElementSpec {
    ElementSpec::Loss { rule: SelectionRule::Share(Ratio::new(1, 1).unwrap()), only }
}

/// The timer of a second fires in a later slot of Linux's timer wheel, 24 ms later.
#[test]
fn a_lost_syn_is_repeated_after_a_second() {
    let (flow, wire) = run(&world(linux(), 20_000, vec![lose_first(PacketClass::Syns)], vec![]));
    assert!(flow.finished, "{flow:?}");
    assert_eq!(wire.syns(0).iter().map(|syn| syn.0).collect::<Vec<_>>(), [0, 1_024]);
    // The listener saw one of them.
    assert_eq!(wire.syns(1), [(1_034, Flags::SYN | Flags::ACK)]);
    // Nothing else was lost.
    assert_eq!(flow.retransmitted_segments, 0);
}

#[test]
fn a_lost_syn_ack_makes_both_ends_repeat() {
    let (flow, wire) = run(&world(linux(), 20_000, vec![], vec![lose_first(PacketClass::SynAcks)]));
    assert!(flow.finished, "{flow:?}");
    assert_eq!(wire.syns(0).iter().map(|syn| syn.0).collect::<Vec<_>>(), [0, 1_024]);
    assert_eq!(wire.syns(1).iter().map(|syn| syn.0).collect::<Vec<_>>(), [10, 1_024, 1_034]);
}

/// Linux repeats the SYN without ECN (tcp_ecn_clear_syn), FreeBSD after one more that asks
/// (`net.inet.tcp.ecn.maxretries`).
#[test]
fn a_path_that_drops_syns_with_ecn_ends_the_use_of_ecn() {
    let asking = Flags::SYN | Flags::ECE | Flags::CWR;
    for (profile, asks) in [("linux-6.18", 1), ("freebsd-14.3", 2)] {
        let mut hosts = [host("a", profile), host("b", "linux-6.18")];
        tcp(&mut hosts[0]).profile.ecn = EcnRule::Active;
        let (flow, wire) = run(&world(hosts, 20_000, vec![lose_all(PacketClass::EcnSyns)], vec![]));
        assert!(flow.finished, "{flow:?}");
        let flags: Vec<Flags> = wire.syns(0).iter().map(|syn| syn.1).collect();
        let mut expected = vec![asking; asks];
        expected.push(Flags::SYN);
        assert_eq!(flags, expected, "{profile}");
        assert!(wire.at(0, true).iter().all(|(_, segment)| segment.ecn == 0), "{profile}");
    }
}

/// A law of the element: it may lose no packet of another class.
#[test]
fn the_verifier_refuses_losses_of_another_class() {
    let every = SelectionRule::Every(NonZeroU64::new(9).unwrap());
    let loss = |only| vec![ElementSpec::Loss { rule: every.clone(), only }];
    let scenario = world(linux(), 200_000, loss(PacketClass::Data), vec![]);
    for only in [PacketClass::Acks, PacketClass::Syns, PacketClass::SynAcks, PacketClass::EcnSyns] {
        let other = sim::audit::describe(&world(linux(), 200_000, loss(only), vec![]));
        let found = sim::audit::run_against(&scenario, &other, &mut record::NullRecorder);
        let message = found.unwrap_err().to_string();
        assert!(message.contains("without a reason"), "{message}");
    }
}
