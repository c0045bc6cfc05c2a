//! Same scenario, same events: whoever watches, whatever else is in the world.

mod common;

use ackclock_sim as sim;
use common::{GBIT, MBIT, all_taps, bulk, host, link, ms, pair, road, us};
use net::link::Limit;
use net::offload::{GroParams, LroParams};
use packet::{Flags, IpVersion, Segment};
use record::{Digest, Event, Off, Recorder, SenderState, Who};
use sim::scenario::{App, Element, Flow, Path, Receive, Scenario, Tap, TapPlace};
use sim::{Observer, Watch};
use units::{Bytes, Duration, Instant};

/// Ten worlds that have little in common.
fn worlds() -> Vec<Scenario> {
    let plain = |sender: &str, sink: &str, forward: Vec<Element>, flow: Flow| {
        pair([host("sender", sender), host("sink", sink)], forward, road(GBIT, ms(10)), flow)
    };
    let mut worlds = vec![
        plain("freebsd-13.2", "linux-6.18", road(GBIT, ms(10)), bulk(3_000_000)),
        plain("freebsd-14.3", "freebsd-14.3", road(100 * MBIT, ms(40)), bulk(3_000_000)),
        plain("freebsd-main", "linux-6.18", road(10 * MBIT, ms(5)), bulk(1_000_000)),
        plain("linux-6.18", "linux-6.18", road(100 * GBIT, ms(1)), bulk(3_000_000)),
    ];
    // A queue that overflows.
    let narrow = vec![link(20 * MBIT, Limit::Packets(20)), Element::Delay(ms(10))];
    worlds.push(plain("freebsd-13.2", "freebsd-13.2", narrow.clone(), bulk(2_000_000)));
    let bytes = vec![link(20 * MBIT, Limit::Bytes(Bytes(30_000))), Element::Delay(ms(10))];
    worlds.push(plain("linux-6.18", "linux-6.18", bytes, bulk(2_000_000)));
    // Offloads on both sides.
    let mut merged = plain("freebsd-13.2", "linux-6.18", road(GBIT, ms(20)), bulk(3_000_000));
    merged.hosts[0].offload.tso = true;
    merged.hosts[0].offload.receive = Receive::Lro(LroParams::FREEBSD_14);
    merged.hosts[1].offload.receive = Receive::Gro(GroParams::LINUX);
    merged.hosts[1].delay = us(200);
    worlds.push(merged);
    // An application that writes now and then.
    let mut paced = plain("linux-6.18", "freebsd-14.3", road(GBIT, ms(20)), bulk(0));
    let bytes = Some(Bytes(300_000));
    paced.flows[0].app = App::Paced { chunk: Bytes(5_000), every: ms(7), bytes };
    worlds.push(paced);
    // Three flows in one queue.
    let mut crowd = plain("freebsd-13.2", "linux-6.18", narrow.clone(), bulk(1_000_000));
    for start in [30, 60] {
        crowd.flows.push(Flow { start: ms(start), ip: IpVersion::V6, ..bulk(500_000) });
    }
    worlds.push(crowd);
    // Two ways, one flow each way.
    let mut both = plain("linux-6.18", "freebsd-main", narrow, bulk(1_000_000));
    both.flows.push(Flow { from: 1, to: 0, ..bulk(1_000_000) });
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
    let again: Vec<_> = worlds().iter().map(digest).collect();
    assert_eq!(digests, again);
    // The digest would tell: no two of these worlds are alike.
    for (n, one) in digests.iter().enumerate() {
        assert!(!digests[..n].contains(one));
    }
}

#[test]
fn the_seed_counts_where_chance_does() {
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
        let alone = digest(&scenario);
        let mut both = Watch(Off, Watch(Digest::default(), Digest::default()));
        let watched = sim::run(&scenario, &mut both).unwrap();
        assert_eq!(((both.1).0.value(), (both.1).0.events()), alone);
        assert_eq!((both.1).1.value(), alone.0);
        // Nor does having none.
        assert_eq!(sim::run(&scenario, &mut Off).unwrap(), watched);
    }
}

/// The events of flow 0 up to a moment, and its first segments.
struct FirstFlow {
    until: Instant,
    digest: Digest,
    syns: Vec<(u32, u32)>,
}

impl Recorder for FirstFlow {
    const ON: bool = true;

    fn record(&mut self, at: Instant, who: Who, event: Event, state: Option<&SenderState>) {
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

/// First sequence number and timestamp of both ends of flow 0, and what else happens in it.
fn first_flow(scenario: &Scenario, until: Instant) -> (Vec<(u32, u32)>, u64) {
    let mut scenario = scenario.clone();
    scenario.taps = [0, 1].map(|host| Tap { host, place: TapPlace::Stack }).into();
    let mut seen = FirstFlow { until, digest: Digest::default(), syns: Vec::new() };
    sim::run(&scenario, &mut seen).unwrap();
    (seen.syns, seen.digest.value())
}

#[test]
fn another_flow_elsewhere_does_not_shift_the_luck_of_the_first() {
    for scenario in worlds() {
        let until = sim::run(&scenario, &mut Off).unwrap().ended;
        let alone = first_flow(&scenario, until);
        // It connects and then hardly says a word, between hosts of its own.
        let mut more = scenario.clone();
        let (from, to, path) = (more.hosts.len(), more.hosts.len() + 1, more.paths.len());
        more.hosts.extend([host("idle", "linux-6.18"), host("too", "freebsd-14.3")]);
        more.paths.push(Path { from, to, forward: Vec::new(), reverse: Vec::new() });
        let app = App::Paced { chunk: Bytes(1), every: Duration::from_secs(1), bytes: None };
        more.flows.push(Flow { from, to, path, start: ms(3), app, ..bulk(0) });
        more.duration = Duration::from_secs(100);
        assert_eq!(first_flow(&more, until), alone);
    }
}

#[test]
fn it_makes_no_difference_which_of_many_sleep() {
    let hosts = [host("sender", "linux-6.18"), host("sink", "freebsd-14.3")];
    let mut many = pair(hosts, road(100 * MBIT, ms(10)), road(100 * MBIT, ms(10)), bulk(0));
    let bytes = Some(Bytes(6_000));
    let app = App::Paced { chunk: Bytes(1_000), every: Duration::from_secs(5), bytes };
    // So many that those at rest are packed.
    many.flows = (0..700).map(|n| Flow { app, start: ms(5 * n), ..bulk(0) }).collect();
    let (packed, rested) = (&mut Digest::default(), &mut Digest::default());
    let outcome = sim::run_packing(&many, packed).unwrap();
    assert_eq!(outcome, sim::run(&many, rested).unwrap());
    assert_eq!((packed.value(), packed.events()), (rested.value(), rested.events()));
    assert!(outcome.flows.iter().all(|flow| flow.finished));
}
