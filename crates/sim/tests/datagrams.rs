//! Datagrams, echo requests and groups of connections, each run verified.

mod common;

use ackclock_sim as sim;
use common::{GBIT, MBIT, bulk, host, link, ms, pair, route, us};
use net::link::QueueLimit;
use sim::scenario::{
    App, Arrivals, DatagramInterval, DatagramSpec, ElementSpec, FlowSpec, Scenario, TransferSizes,
};
use sim::{DatagramOutcome, LatencyKind, RunOutcome};
use units::{Bytes, Duration};

fn datagrams(size: u64, every: Duration, count: u64, echo: bool) -> FlowSpec {
    let interval = DatagramInterval::Fixed(every);
    let spec = DatagramSpec { size: Bytes(size), interval, count: Some(count), echo };
    FlowSpec { name: "datagrams".into(), app: App::Datagrams(spec), ..bulk(0) }
}

fn run(scenario: &Scenario) -> RunOutcome {
    let audited = sim::audit::run_audited(scenario, &mut record::NullRecorder);
    audited.unwrap_or_else(|error| panic!("{error}")).0
}

fn linux_pair(forward: Vec<ElementSpec>, flow: FlowSpec) -> Scenario {
    let hosts = [host("a", "linux-6.18"), host("b", "linux-6.18")];
    pair(hosts, forward, vec![ElementSpec::Delay(ms(10))], flow)
}

/// 172 + 8 + 20 bytes at 1.6 Mbit/s take 1 ms.
#[test]
fn a_datagram_takes_its_serialization_and_the_delay() {
    let scenario = linux_pair(route(1_600_000, ms(10)), datagrams(172, ms(20), 50, false));
    let outcome = run(&scenario);
    let flow = &outcome.flows[0];
    let latency = flow.latency.unwrap();
    assert_eq!((latency.kind, latency.requests), (LatencyKind::Datagrams, 50));
    assert_eq!((latency.min, latency.max), (ms(11), ms(11)));
    assert_eq!(flow.datagrams, Some(DatagramOutcome { sent: 50, received: 50 }));
    assert_eq!((flow.bytes, flow.finished), (Bytes(50 * 172), true));
    assert_eq!(flow.duration, ms(49 * 20 + 11));
}

#[test]
fn an_echo_returns_at_once() {
    let scenario = linux_pair(route(GBIT, ms(10)), datagrams(72, ms(100), 10, true));
    let flow = &run(&scenario).flows[0];
    let latency = flow.latency.unwrap();
    // 100 bytes at 1 Gbit/s are 800 ns.
    assert_eq!((latency.kind, latency.requests), (LatencyKind::Pings, 10));
    assert_eq!(latency.max, ms(20) + Duration::from_nanos(800));
}

/// A source of twice the rate of the link fills its queue and loses half.
#[test]
fn a_source_without_congestion_control_overruns_a_link() {
    let forward = vec![link(MBIT, QueueLimit::Packets(10)), ElementSpec::Delay(ms(10))];
    // 125 bytes of IP each 0.5 ms.
    let scenario = linux_pair(forward, datagrams(97, us(500), 2_000, false));
    let flow = &run(&scenario).flows[0];
    let DatagramOutcome { sent, received } = flow.datagrams.unwrap();
    assert_eq!(sent, 2_000);
    assert!((1_000..=1_012).contains(&received), "{received}");
    assert!(!flow.finished);
    // Ten wait, one is in transmission: 11 ms at most, and the delay.
    assert_eq!(flow.latency.unwrap().max, ms(21));
}

/// Offloads merge segments, not datagrams, and taps see none.
#[test]
fn datagrams_pass_a_card_that_merges() {
    let mut scenario = linux_pair(route(10 * MBIT, ms(5)), datagrams(972, ms(1), 100, true));
    for host in &mut scenario.hosts {
        host.delay = us(50);
        host.offload.receive =
            sim::scenario::ReceiveOffloadSpec::Gro(net::offload::GroParams::LINUX);
    }
    scenario.flows.push(bulk(300_000));
    scenario.taps = common::all_taps(2);
    let outcome = run(&scenario);
    assert!(outcome.flows[1].finished);
    assert_eq!(outcome.flows[0].datagrams, Some(DatagramOutcome { sent: 100, received: 100 }));
}

#[test]
fn a_group_follows_its_laws_and_a_seed_draws_it_anew() {
    let mut scenario = linux_pair(route(100 * MBIT, ms(5)), bulk(1));
    scenario.replicate(
        0,
        200,
        Arrivals::Poisson(ms(2)),
        Some(TransferSizes::Exponential(Bytes(20_000))),
    );
    scenario.flows.push(bulk(100_000));
    let total = |scenario: &Scenario| -> u64 {
        let outcome = run(scenario);
        assert!(outcome.flows.iter().all(|flow| flow.finished));
        outcome.flows[..200].iter().map(|flow| flow.bytes.get()).sum()
    };
    let once = total(&scenario);
    assert_eq!(once, total(&scenario));
    // 4 MB with a standard deviation of 7 %.
    assert!((2_900_000..5_100_000).contains(&once), "{once}");
    scenario.set_seed(2);
    assert_ne!(once, total(&scenario));
    assert_eq!(scenario.flows[200].app, bulk(100_000).app);
}

/// The end of a source is no event that repeats while other flows continue.
#[test]
fn a_flow_of_datagrams_ends_before_others() {
    let mut scenario = linux_pair(route(MBIT, ms(10)), datagrams(30, ms(1), 10, true));
    scenario.flows.push(bulk(1_000_000));
    let outcome = run(&scenario);
    assert!(outcome.flows.iter().all(|flow| flow.finished));
    assert!(outcome.ended.as_nanos() > 8_000_000_000);
}
