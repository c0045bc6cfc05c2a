//! What happens on the way, seen from the outside: single events, shared stations, several paths.

mod common;

use core::num::{NonZeroU32, NonZeroU64};

use ackclock_sim as sim;
use common::{Lots, MBIT, bulk, host, link, ms, pair, road};
use net::link::Limit;
use record::{Event, Movement, Off, Recorder, SenderState, StationId, Who};
use sim::scenario::{ByteRange, Element, Flow, Host, Only, Path, Rule, Scenario, Shared, reverse};
use sim::{FlowOutcome, Observer};
use units::{Duration, Instant, Offset};

const PROFILES: [&str; 2] = ["freebsd-13.2", "linux-6.18"];

/// Counts the steps of packets.
#[derive(Debug, Default)]
struct Counter {
    departed: u64,
    copied: u64,
    damaged: u64,
    arrived: u64,
    lost: u64,
    stations: Vec<StationId>,
}

impl Recorder for Counter {
    const ON: bool = true;
    const PACKETS: bool = true;

    fn record(&mut self, _: Instant, _: Who, _: Event, _: Option<&SenderState>) {}

    fn moved(&mut self, _: Instant, movement: Movement) {
        match movement {
            Movement::Departed { .. } => self.departed += 1,
            Movement::Copied { .. } => self.copied += 1,
            Movement::Damaged { .. } => self.damaged += 1,
            Movement::Arrived { .. } => self.arrived += 1,
            Movement::Dropped { .. } => self.lost += 1,
            Movement::Entered { station, .. } => {
                if !self.stations.contains(&station) {
                    self.stations.push(station);
                }
            }
            Movement::Left { .. } | Movement::Marked { .. } => {}
        }
    }
}

impl Observer for Counter {}

fn hosts(profile: &str) -> [Host; 2] {
    [host("a", profile), host("b", "linux-6.18")]
}

/// 200 kB over 20 Mbit/s and 20 ms, with an element before the line.
fn through(profile: &str, element: Element) -> (FlowOutcome, Counter) {
    let mut forward = road(20 * MBIT, ms(10));
    forward.insert(0, element);
    let scenario = pair(hosts(profile), forward, road(20 * MBIT, ms(10)), bulk(200_000));
    let mut counter = Counter::default();
    let flow = sim::run(&scenario, &mut counter).unwrap().flows.remove(0);
    assert!(flow.finished, "{profile}: {flow:?}");
    assert_eq!(flow.bytes.get(), 200_000);
    (flow, counter)
}

/// The thirtieth data packet, in the midst of the transfer.
fn thirtieth() -> Rule {
    Rule::Listed(vec![30])
}

#[test]
fn a_packet_lost_or_damaged_is_sent_again() {
    for profile in PROFILES {
        let only = Only::Data;
        let (flow, seen) = through(profile, Element::Loss { rule: thirtieth(), only });
        assert_eq!((flow.retransmitted_segments, flow.fast_recoveries), (1, 1), "{profile}");
        assert_eq!((seen.lost, seen.arrived), (1, seen.departed - 1));
        let (flow, seen) = through(profile, Element::Corrupt { rule: thirtieth(), only });
        assert_eq!((flow.retransmitted_segments, flow.fast_recoveries), (1, 1), "{profile}");
        assert_eq!((seen.damaged, seen.lost, seen.arrived), (1, 0, seen.departed));
    }
}

#[test]
fn copies_arrive_and_do_no_harm() {
    for profile in PROFILES {
        let rule = Rule::Every(NonZeroU64::new(1).unwrap());
        let (flow, seen) = through(profile, Element::Duplicate { rule, only: Only::Data });
        assert!(seen.copied >= 200_000 / 1_460);
        assert_eq!(seen.arrived, seen.departed + seen.copied);
        assert_eq!(flow.rtos, 0);
    }
}

/// A station whose next packet may overtake arms itself again and again; what it had set before
/// must not set more.
#[test]
fn a_station_that_reorders_costs_no_more_for_every_packet_it_has_seen() {
    // Old ACKs slow nothing down.
    let reverse = Element::Reverse(reverse::Params {
        group: NonZeroU32::new(4).unwrap(),
        gap: ms(1),
        timeout: Duration::from_micros(500),
        only: Only::Acks,
    });
    let mut back = road(1_000 * MBIT, ms(5));
    back.push(reverse);
    let there = road(1_000 * MBIT, ms(5));
    let scenario = pair(hosts("linux-6.18"), there, back, bulk(200_000_000));
    let mut lots = Lots(0);
    let packets = sim::run(&scenario, &mut lots).unwrap().segments;
    assert!(packets > 130_000);
    assert!(lots.0 * 65_536 < 20 * packets, "{} lots for {packets} packets", lots.0);
}

/// Hosts 0 and 1 send to host 2, each over 10 ms of its own and a line of 10 Mbit/s.
fn two_senders(line: &[Element; 2]) -> Scenario {
    let path = |from, line: &Element| Path {
        from,
        to: 2,
        forward: vec![Element::Delay(ms(10)), line.clone()],
        reverse: vec![Element::Delay(ms(10))],
    };
    let mut scenario = pair(hosts("linux-6.18"), Vec::new(), Vec::new(), bulk(1_000_000));
    scenario.hosts.push(host("c", "linux-6.18"));
    scenario.paths = vec![path(0, &line[0]), path(1, &line[1])];
    let line = link(10 * MBIT, Limit::Packets(1_000));
    scenario.shared = vec![Shared { name: "line".into(), element: line }];
    let flow = |from| Flow { path: from, from, to: 2, ..bulk(1_000_000) };
    scenario.flows = vec![flow(0), flow(1)];
    scenario
}

#[test]
fn a_shared_line_is_one_line() {
    let durations = |line: [Element; 2]| {
        let mut counter = Counter::default();
        let outcome = sim::run(&two_senders(&line), &mut counter).unwrap();
        let longest = outcome.flows.iter().map(|flow| flow.duration).max().unwrap();
        (longest, counter.stations)
    };
    // 691 packets of 1500 bytes carry 1 MB; two such flows need 1.658 s of the line, one 0.829.
    let both = Duration::from_micros(2 * 691 * 1_200);
    let (shared, mut stations) = durations([Element::Shared(0), Element::Shared(0)]);
    assert!(shared >= both.saturating_sub(ms(2)), "{shared}");
    // Own delays are stations 0 to 3, the line is 4.
    stations.sort();
    assert_eq!(stations, [0, 1, 2, 3, 4].map(StationId));
    let own = || link(10 * MBIT, Limit::Packets(1_000));
    let (apart, _) = durations([own(), own()]);
    assert!(apart < both.saturating_sub(ms(400)), "{apart}");
}

#[test]
fn flows_choose_between_paths() {
    let mut scenario = pair(
        hosts("linux-6.18"),
        road(100 * MBIT, ms(10)),
        road(100 * MBIT, ms(10)),
        bulk(100_000),
    );
    let far = || road(100 * MBIT, ms(50));
    scenario.paths.push(Path { from: 1, to: 0, forward: far(), reverse: far() });
    let second = Flow { path: 1, ..scenario.flows[0].clone() };
    scenario.flows.push(second);
    let outcome = sim::run(&scenario, &mut Off).unwrap();
    let [near, far] = [0, 1].map(|flow: usize| outcome.flows[flow].min_rtt.unwrap());
    assert!((ms(20)..ms(25)).contains(&near), "{near}");
    assert!((ms(100)..ms(105)).contains(&far), "{far}");
}

#[test]
fn the_same_bytes_are_lost_in_every_run() {
    // The packet with byte 72,400 = 50 * 1448, and its first retransmission. Where losses are not
    // told by time, and what was resent is not looked after, the second one comes by the timer.
    for profile in PROFILES {
        let by_timer = u64::from(matches!(profile, "freebsd-13.2" | "freebsd-14.3"));
        for (times, resent, timeouts) in [(1, 1, 0), (2, 2, by_timer)] {
            let range = ByteRange { from: Offset(72_400), until: Offset(72_401), times };
            let element = Element::Loss { rule: Rule::Bytes(range), only: Only::All };
            let (flow, counter) = through(profile, element);
            assert!(flow.finished, "{profile}");
            assert_eq!(counter.lost, u64::from(times), "{profile}");
            assert!(flow.retransmitted_segments >= resent, "{profile}");
            assert_eq!(flow.rtos, timeouts, "{profile} {times}");
        }
        // What is never sent is never lost.
        let range = ByteRange { from: Offset(200_000), until: Offset(900_000), times: 1 };
        let (flow, counter) =
            through(profile, Element::Loss { rule: Rule::Bytes(range), only: Only::All });
        assert_eq!((counter.lost, flow.retransmitted_segments), (0, 0), "{profile}");
    }
}
