//! The same scenario gives the same events, whatever observes it and whatever else is in the world.

mod common;

use ackclock_sim as sim;
use common::{GBIT, MBIT, all_taps, bulk, host, link, ms, pair, route, us};
use net::link::QueueLimit;
use net::offload::{GroParams, LroParams};
use packet::{Flags, IpVersion, Segment};
use record::{Digest, Event, EventSource, NullRecorder, Recorder, SenderState};
use sim::scenario::{
    App, ElementSpec, FlowSpec, PathSpec, ReceiveOffloadSpec, Scenario, TapPoint, TapSpec,
};
use sim::{Observer, ObserverPair};
use units::{Bytes, Duration, Instant};

/// Ten diverse worlds.
fn worlds() -> Vec<Scenario> {
    let plain = |sender: &str, sink: &str, forward: Vec<ElementSpec>, flow: FlowSpec| {
        pair([host("sender", sender), host("sink", sink)], forward, route(GBIT, ms(10)), flow)
    };
    let mut worlds = vec![
        plain("freebsd-13.2", "linux-6.18", route(GBIT, ms(10)), bulk(3_000_000)),
        plain("freebsd-14.3", "freebsd-14.3", route(100 * MBIT, ms(40)), bulk(3_000_000)),
        plain("freebsd-main", "linux-6.18", route(10 * MBIT, ms(5)), bulk(1_000_000)),
        plain("linux-6.18", "linux-6.18", route(100 * GBIT, ms(1)), bulk(3_000_000)),
    ];
    // A queue that overflows.
    let narrow = vec![link(20 * MBIT, QueueLimit::Packets(20)), ElementSpec::Delay(ms(10))];
    worlds.push(plain("freebsd-13.2", "freebsd-13.2", narrow.clone(), bulk(2_000_000)));
    let bytes = vec![link(20 * MBIT, QueueLimit::Bytes(Bytes(30_000))), ElementSpec::Delay(ms(10))];
    worlds.push(plain("linux-6.18", "linux-6.18", bytes, bulk(2_000_000)));
    // Offloads on both sides.
    let mut merged = plain("freebsd-13.2", "linux-6.18", route(GBIT, ms(20)), bulk(3_000_000));
    merged.hosts[0].offload.tso = true;
    merged.hosts[0].offload.receive = ReceiveOffloadSpec::Lro(LroParams::FREEBSD_14);
    merged.hosts[1].offload.receive = ReceiveOffloadSpec::Gro(GroParams::LINUX);
    merged.hosts[1].delay = us(200);
    worlds.push(merged);
    // An application that writes occasionally.
    let mut paced = plain("linux-6.18", "freebsd-14.3", route(GBIT, ms(20)), bulk(0));
    let bytes = Some(Bytes(300_000));
    paced.flows[0].app = App::Paced { chunk: Bytes(5_000), every: ms(7), bytes, blocking: true };
    worlds.push(paced);
    // Three flows in one queue.
    let mut crowd = plain("freebsd-13.2", "linux-6.18", narrow.clone(), bulk(1_000_000));
    for start in [30, 60] {
        crowd.flows.push(FlowSpec { start: ms(start), ip: IpVersion::V6, ..bulk(500_000) });
    }
    worlds.push(crowd);
    // Two paths, one flow in each direction.
    let mut both = plain("linux-6.18", "freebsd-main", narrow, bulk(1_000_000));
    both.flows.push(FlowSpec { from: 1, to: 0, ..bulk(1_000_000) });
    worlds.push(both);
    worlds
}

fn digest(scenario: &Scenario) -> (u64, u64) {
    let mut digest = Digest::default();
    let outcome = sim::run(scenario, &mut digest).unwrap();
    assert!(outcome.flows.iter().all(|flow| flow.finished));
    (digest.value(), digest.events())
}

#[test]
fn two_runs_agree() {
    let digests: Vec<_> = worlds().iter().map(digest).collect();
    let repeated: Vec<_> = worlds().iter().map(digest).collect();
    assert_eq!(digests, repeated);
    // The digest distinguishes the worlds: no two are equal.
    for (n, one) in digests.iter().enumerate() {
        assert!(!digests[..n].contains(one));
    }
}

#[test]
fn the_seed_matters_where_randomness_is_used() {
    for mut scenario in worlds() {
        let syn = |scenario: &Scenario| first_flow(scenario, Instant::ZERO).0;
        let before = syn(&scenario);
        scenario.seed += 1;
        assert_ne!(syn(&scenario), before);
    }
}

#[test]
fn a_tap_changes_nothing() {
    for scenario in worlds() {
        let watched = Scenario { taps: all_taps(scenario.hosts.len()), ..scenario.clone() };
        assert_eq!(digest(&scenario), digest(&watched));
    }
}

#[test]
fn an_observer_changes_nothing() {
    for scenario in worlds() {
        let single_packet = digest(&scenario);
        let mut both =
            ObserverPair(NullRecorder, ObserverPair(Digest::default(), Digest::default()));
        let watched = sim::run(&scenario, &mut both).unwrap();
        assert_eq!(((both.1).0.value(), (both.1).0.events()), single_packet);
        assert_eq!((both.1).1.value(), single_packet.0);
        // Nor does running without one.
        assert_eq!(sim::run(&scenario, &mut NullRecorder).unwrap(), watched);
    }
}

/// The events of flow 0 up to an instant, and its first segments.
struct FirstFlow {
    until: Instant,
    digest: Digest,
    syns: Vec<(u32, u32)>,
}

impl Recorder for FirstFlow {
    const ON: bool = true;

    fn record(&mut self, at: Instant, who: EventSource, event: Event, state: Option<&SenderState>) {
        if who.flow.0 == 0 && at <= self.until {
            self.digest.record(at, who, event, state);
        }
    }
}

impl Observer for FirstFlow {
    fn tap(&mut self, _: Instant, _: usize, outbound: bool, segment: &Segment) {
        if segment.flow.0 == 0 && segment.flags.has(Flags::SYN) && outbound {
            self.syns.push((segment.seq.0, segment.timestamps.map_or(0, |stamps| stamps.val)));
        }
    }
}

/// Initial sequence number and timestamp of both ends of flow 0, and the digest of its events.
fn first_flow(scenario: &Scenario, until: Instant) -> (Vec<(u32, u32)>, u64) {
    let mut scenario = scenario.clone();
    scenario.taps = [0, 1].map(|host| TapSpec { host, place: TapPoint::Stack }).into();
    let mut seen = FirstFlow { until, digest: Digest::default(), syns: Vec::new() };
    sim::run(&scenario, &mut seen).unwrap();
    (seen.syns, seen.digest.value())
}

#[test]
fn another_flow_does_not_change_the_random_streams_of_the_first() {
    for scenario in worlds() {
        let until = sim::run(&scenario, &mut NullRecorder).unwrap().ended;
        let single_packet = first_flow(&scenario, until);
        // It connects between hosts of its own and then sends very little.
        let mut more = scenario.clone();
        let (from, to, path) = (more.hosts.len(), more.hosts.len() + 1, more.paths.len());
        more.hosts.extend([host("idle", "linux-6.18"), host("too", "freebsd-14.3")]);
        more.paths.push(PathSpec { from, to, forward: Vec::new(), reverse: Vec::new() });
        let app = App::Paced {
            chunk: Bytes(1),
            every: Duration::from_secs(1),
            bytes: None,
            blocking: true,
        };
        more.flows.push(FlowSpec { from, to, path, start: ms(3), app, ..bulk(0) });
        more.duration = Duration::from_secs(100);
        assert_eq!(first_flow(&more, until), single_packet);
    }
}

#[test]
fn hibernation_among_many_flows_does_not_change_results() {
    let hosts = [host("sender", "linux-6.18"), host("sink", "freebsd-14.3")];
    let mut many = pair(hosts, route(100 * MBIT, ms(10)), route(100 * MBIT, ms(10)), bulk(0));
    let bytes = Some(Bytes(6_000));
    let app =
        App::Paced { chunk: Bytes(1_000), every: Duration::from_secs(5), bytes, blocking: true };
    // Enough endpoints for idle ones to be hibernated.
    many.flows =
        (0..700).map(|n| FlowSpec { app: app.clone(), start: ms(5 * n), ..bulk(0) }).collect();
    let (packed, rested) = (&mut Digest::default(), &mut Digest::default());
    let outcome = sim::run_packing(&many, packed).unwrap();
    assert_eq!(outcome, sim::run(&many, rested).unwrap());
    assert_eq!((packed.value(), packed.events()), (rested.value(), rested.events()));
    assert!(outcome.flows.iter().all(|flow| flow.finished));
}

/// Counts the events of single packets.
#[derive(Default)]
struct CountedPackets {
    digest: Digest,
    packets: u64,
    segments: u64,
}

impl Recorder for CountedPackets {
    const ON: bool = true;
    const PACKETS: bool = true;

    fn record(&mut self, at: Instant, who: EventSource, event: Event, state: Option<&SenderState>) {
        self.digest.record(at, who, event, state);
    }

    fn record_packet(&mut self, _: Instant, _: record::PacketEvent) {
        self.packets += 1;
    }
}

impl Observer for CountedPackets {
    fn tap(&mut self, _: Instant, _: usize, _: bool, _: &Segment) {
        self.segments += 1;
    }
}

#[test]
fn the_shared_engine_reports_the_same() {
    for mut scenario in worlds() {
        let mut shared = Digest::default();
        sim::run_shared(&scenario, &mut shared).unwrap();
        assert_eq!((shared.value(), shared.events()), digest(&scenario), "{}", scenario.title);
        scenario.taps = all_taps(scenario.hosts.len());
        let (mut own, mut shared) = (CountedPackets::default(), CountedPackets::default());
        sim::run(&scenario, &mut own).unwrap();
        sim::run_shared(&scenario, &mut shared).unwrap();
        let counts = |one: &CountedPackets| (one.digest.value(), one.packets, one.segments);
        assert_eq!(counts(&shared), counts(&own), "{}", scenario.title);
        assert!(own.packets > 1_000 && own.segments > 1_000, "{:?}", counts(&own));
        // An observer that wants no events is given none.
        sim::run_shared(&scenario, &mut NullRecorder).unwrap();
    }
}
