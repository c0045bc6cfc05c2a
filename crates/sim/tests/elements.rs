//! Elements seen from outside: single events, shared elements, several paths.

mod common;

use core::num::{NonZeroU32, NonZeroU64};

use ackclock_sim as sim;
use common::{Lots, MBIT, bulk, host, link, ms, pair, route};
use net::link::QueueLimit;
use record::{ElementId, Event, EventSource, NullRecorder, PacketEvent, Recorder, SenderState};
use sim::scenario::{
    ByteRange, ElementSpec, FlowSpec, HostSpec, PacketClass, PathSpec, Scenario, SelectionRule,
    SharedElement, reverse,
};
use sim::{FlowOutcome, Observer};
use units::{Duration, Instant, Offset};

const PROFILES: [&str; 2] = ["freebsd-13.2", "linux-6.18"];

/// Counts packet events.
#[derive(Debug, Default)]
struct PacketEventCounter {
    departed: u64,
    copied: u64,
    damaged: u64,
    arrived: u64,
    lost: u64,
    hops: Vec<ElementId>,
}

impl Recorder for PacketEventCounter {
    const ON: bool = true;
    const PACKETS: bool = true;

    fn record(&mut self, _: Instant, _: EventSource, _: Event, _: Option<&SenderState>) {}

    fn record_packet(&mut self, _: Instant, movement: PacketEvent) {
        match movement {
            PacketEvent::Sent { .. } => self.departed += 1,
            PacketEvent::Duplicated { .. } => self.copied += 1,
            PacketEvent::Corrupted { .. } => self.damaged += 1,
            PacketEvent::Received { .. } => self.arrived += 1,
            PacketEvent::Dropped { .. } => self.lost += 1,
            PacketEvent::Accepted { hop_index, .. } => {
                if !self.hops.contains(&hop_index) {
                    self.hops.push(hop_index);
                }
            }
            PacketEvent::Forwarded { .. }
            | PacketEvent::Marked { .. }
            | PacketEvent::Rewritten { .. }
            | PacketEvent::Injected { .. } => {}
        }
    }
}

impl Observer for PacketEventCounter {}

fn hosts(profile: &str) -> [HostSpec; 2] {
    [host("a", profile), host("b", "linux-6.18")]
}

/// 200 kB over 20 Mbit/s and 20 ms, with an element before the line.
fn through(profile: &str, element: ElementSpec) -> (FlowOutcome, PacketEventCounter) {
    let mut forward = route(20 * MBIT, ms(10));
    forward.insert(0, element);
    let scenario = pair(hosts(profile), forward, route(20 * MBIT, ms(10)), bulk(200_000));
    let mut counter = PacketEventCounter::default();
    let flow = sim::run(&scenario, &mut counter).unwrap().flows.remove(0);
    assert!(flow.finished, "{profile}: {flow:?}");
    assert_eq!(flow.bytes.get(), 200_000);
    (flow, counter)
}

/// The thirtieth data packet, in the middle of the transfer.
fn thirtieth() -> SelectionRule {
    SelectionRule::Listed(vec![30])
}

#[test]
fn a_lost_or_corrupted_packet_is_retransmitted() {
    for profile in PROFILES {
        let only = PacketClass::Data;
        let (flow, seen) = through(profile, ElementSpec::Loss { rule: thirtieth(), only });
        assert_eq!((flow.retransmitted_segments, flow.fast_recoveries), (1, 1), "{profile}");
        assert_eq!((seen.lost, seen.arrived), (1, seen.departed - 1));
        let (flow, seen) = through(profile, ElementSpec::Corrupt { rule: thirtieth(), only });
        assert_eq!((flow.retransmitted_segments, flow.fast_recoveries), (1, 1), "{profile}");
        assert_eq!((seen.damaged, seen.lost, seen.arrived), (1, 0, seen.departed));
    }
}

#[test]
fn duplicates_arrive_and_do_no_harm() {
    for profile in PROFILES {
        let rule = SelectionRule::Every(NonZeroU64::new(1).unwrap());
        let (flow, seen) =
            through(profile, ElementSpec::Duplicate { rule, only: PacketClass::Data });
        assert!(seen.copied >= 200_000 / 1_460);
        assert_eq!(seen.arrived, seen.departed + seen.copied);
        assert_eq!(flow.rtos, 0);
    }
}

/// An element whose next packet may overtake reschedules itself repeatedly; its stale events must
/// not create more events.
#[test]
fn a_reordering_element_has_constant_cost_per_packet() {
    // Old ACKs have no effect.
    let reverse = ElementSpec::Reverse(reverse::ReverseParams {
        group: NonZeroU32::new(4).unwrap(),
        gap: ms(1),
        timeout: Duration::from_micros(500),
        class: PacketClass::Acks,
    });
    let mut back = route(1_000 * MBIT, ms(5));
    back.push(reverse);
    let there = route(1_000 * MBIT, ms(5));
    let scenario = pair(hosts("linux-6.18"), there, back, bulk(200_000_000));
    let mut lots = Lots(0);
    let packets = sim::run(&scenario, &mut lots).unwrap().segments;
    assert!(packets > 130_000);
    assert!(lots.0 * 65_536 < 20 * packets, "{} progress calls for {packets} packets", lots.0);
}

/// Hosts 0 and 1 send to host 2, each over 10 ms of its own and a line of 10 Mbit/s.
fn two_senders(line: &[ElementSpec; 2]) -> Scenario {
    let path = |from, line: &ElementSpec| PathSpec {
        from,
        to: 2,
        forward: vec![ElementSpec::Delay(ms(10)), line.clone()],
        reverse: vec![ElementSpec::Delay(ms(10))],
    };
    let mut scenario = pair(hosts("linux-6.18"), Vec::new(), Vec::new(), bulk(1_000_000));
    scenario.hosts.push(host("c", "linux-6.18"));
    scenario.paths = vec![path(0, &line[0]), path(1, &line[1])];
    let line = link(10 * MBIT, QueueLimit::Packets(1_000));
    scenario.shared = vec![SharedElement { name: "line".into(), element: line }];
    let flow = |from| FlowSpec { path: from, from, to: 2, ..bulk(1_000_000) };
    scenario.flows = vec![flow(0), flow(1)];
    scenario
}

#[test]
fn a_shared_line_is_one_line() {
    let durations = |line: [ElementSpec; 2]| {
        let mut counter = PacketEventCounter::default();
        let outcome = sim::run(&two_senders(&line), &mut counter).unwrap();
        let longest = outcome.flows.iter().map(|flow| flow.duration).max().unwrap();
        (longest, counter.hops)
    };
    // 691 packets of 1500 bytes carry 1 MB; two such flows need 1.658 s of the line, one 0.829.
    let both = Duration::from_micros(2 * 691 * 1_200);
    let (shared, mut hops) = durations([ElementSpec::Shared(0), ElementSpec::Shared(0)]);
    assert!(shared >= both.saturating_sub(ms(2)), "{shared}");
    // The flows' own delays are elements 0 to 3, the line is 4.
    hops.sort();
    assert_eq!(hops, [0, 1, 2, 3, 4].map(ElementId));
    let own = || link(10 * MBIT, QueueLimit::Packets(1_000));
    let (apart, _) = durations([own(), own()]);
    assert!(apart < both.saturating_sub(ms(400)), "{apart}");
}

#[test]
fn flows_choose_between_paths() {
    let mut scenario = pair(
        hosts("linux-6.18"),
        route(100 * MBIT, ms(10)),
        route(100 * MBIT, ms(10)),
        bulk(100_000),
    );
    let far = || route(100 * MBIT, ms(50));
    scenario.paths.push(PathSpec { from: 1, to: 0, forward: far(), reverse: far() });
    let second = FlowSpec { path: 1, ..scenario.flows[0].clone() };
    scenario.flows.push(second);
    let outcome = sim::run(&scenario, &mut NullRecorder).unwrap();
    let [near, far] = [0, 1].map(|flow: usize| outcome.flows[flow].min_rtt.unwrap());
    assert!((ms(20)..ms(25)).contains(&near), "{near}");
    assert!((ms(100)..ms(105)).contains(&far), "{far}");
}

#[test]
fn the_same_bytes_are_lost_in_every_run() {
    // The packet with byte 72,400 = 50 * 1448, and its first retransmission. Stacks that detect no
    // loss by time and do not track retransmissions send the second one by the RTO.
    for profile in PROFILES {
        let by_timer = u64::from(matches!(profile, "freebsd-13.2" | "freebsd-14.3"));
        for (times, retransmission, timeouts) in [(1, 1, 0), (2, 2, by_timer)] {
            let range = ByteRange { from: Offset(72_400), until: Offset(72_401), times };
            let element =
                ElementSpec::Loss { rule: SelectionRule::Bytes(range), only: PacketClass::All };
            let (flow, counter) = through(profile, element);
            assert!(flow.finished, "{profile}");
            assert_eq!(counter.lost, u64::from(times), "{profile}");
            assert!(flow.retransmitted_segments >= retransmission, "{profile}");
            assert_eq!(flow.rtos, timeouts, "{profile} {times}");
        }
        // A byte that is never sent is never lost.
        let range = ByteRange { from: Offset(200_000), until: Offset(900_000), times: 1 };
        let (flow, counter) = through(
            profile,
            ElementSpec::Loss { rule: SelectionRule::Bytes(range), only: PacketClass::All },
        );
        assert_eq!((counter.lost, flow.retransmitted_segments), (0, 0), "{profile}");
    }
}
