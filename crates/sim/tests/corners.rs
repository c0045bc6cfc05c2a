//! Corner cases in which a transfer could stall, or an event could be wrong.

mod common;

use ackclock_sim as sim;
use common::{GBIT, MBIT, bulk, host, link, ms, pair, route, tcp, us};
use net::link::QueueLimit;
use net::offload::{GroParams, LroParams};
use record::{Event, EventSource, Recorder, SenderState};
use sim::Observer;
use sim::scenario::{
    App, DatagramInterval, DatagramSpec, ElementSpec, FlowSpec, PacketClass, ReceiveOffloadSpec,
    Scenario, SelectionRule,
};
use tcp::knobs::{self, KnobValue};
use tcp::profile::NAMES;
use units::{Bytes, Duration, Instant, Ratio};

/// A line that accepts a packet only while it is idle: of a burst all but the first are dropped.
fn without_queue() -> Vec<ElementSpec> {
    vec![link(MBIT, QueueLimit::Packets(0)), ElementSpec::Delay(ms(10))]
}

/// Times and amounts of all reads.
#[derive(Default)]
struct Reads(Vec<(Instant, u32, u64)>);

impl Recorder for Reads {
    const ON: bool = true;

    fn record(&mut self, at: Instant, _: EventSource, event: Event, _: Option<&SenderState>) {
        if let Event::AppRead { bytes, total: upto } = event {
            self.0.push((at, bytes, upto.0));
        }
    }
}

impl Observer for Reads {}

#[test]
fn reading_up_to_the_end_does_not_count_the_fin() {
    for name in NAMES {
        let mut hosts = [host("a", name), host("b", name)];
        // The FIN is in the buffer before the application reads.
        hosts[1].delay = ms(5);
        let scenario = pair(hosts, route(MBIT, ms(10)), route(MBIT, ms(10)), bulk(1_000));
        let mut reads = Reads::default();
        sim::run(&scenario, &mut reads).unwrap();
        assert_eq!(reads.0.iter().map(|read| read.2).max(), Some(1_000), "{name}");
    }
}

#[test]
fn a_lost_syn_costs_one_second_only() {
    for name in NAMES {
        let hosts = [host("a", name), host("b", name)];
        let mut scenario = pair(hosts, without_queue(), route(MBIT, ms(10)), bulk(0));
        // The second SYN meets the first on the line.
        scenario.flows.push(bulk(1_449));
        let outcome = sim::run(&scenario, &mut record::NullRecorder).unwrap();
        let flow = &outcome.flows[1];
        assert!(flow.rtos >= 1, "{name}: the SYN was not lost");
        assert!(flow.finished, "{name}");
        assert!(flow.duration < Duration::from_secs(3), "{name}: {}", flow.duration);
    }
}

#[test]
fn a_lost_small_segment_is_retransmitted() {
    for name in NAMES {
        let hosts = [host("a", name), host("b", name)];
        let mut scenario = pair(hosts, without_queue(), route(MBIT, ms(10)), bulk(0));
        // The first write meets the last ACK of the handshake on the line; the second is much
        // later.
        let every = Duration::from_secs(1_000);
        let app = App::Paced { chunk: Bytes(100), every, bytes: Some(Bytes(200)), blocking: true };
        scenario.flows[0].app = app;
        let mut reads = Reads::default();
        let outcome = sim::run(&scenario, &mut reads).unwrap();
        // By the RTO, or by a probe before it.
        assert!(outcome.flows[0].retransmitted_segments > 0, "{name}: nothing was lost");
        let first = reads.0.first().map(|read| read.0.since(Instant::ZERO));
        assert!(first.is_some_and(|at| at < Duration::from_secs(3)), "{name}: read at {first:?}");
    }
}

#[test]
fn linux_holds_a_small_segment_only_after_a_small_one() {
    // tcp_nagle_check with Minshall's rule: full-sized segments in flight do not hold it.
    let hosts = [host("a", "linux-6.18"), host("b", "linux-6.18")];
    let mut scenario = pair(hosts, route(GBIT, ms(50)), route(GBIT, ms(50)), bulk(0));
    let every = Duration::from_secs(1_000);
    scenario.flows[0].app =
        App::Paced { chunk: Bytes(4_000), every, bytes: Some(Bytes(8_000)), blocking: true };
    let mut reads = Reads::default();
    sim::run(&scenario, &mut reads).unwrap();
    // The handshake, then the one-way delay; waiting for an ACK would take another 100 ms.
    let in_time = Instant::ZERO + ms(160);
    let early = reads.0.iter().filter(|read| read.0 < in_time).map(|read| read.2).max();
    assert_eq!(early, Some(4_000));
}

/// Round-trip times that the sender measured.
#[derive(Default)]
struct Samples(Vec<Duration>);

impl Recorder for Samples {
    const ON: bool = true;

    fn record(&mut self, _: Instant, who: EventSource, event: Event, _: Option<&SenderState>) {
        if let (Event::RttSample { rtt }, 0) = (event, who.host.0) {
            self.0.push(rtt);
        }
    }
}

impl Observer for Samples {}

#[test]
fn linux_measures_by_send_times_without_retransmissions() {
    // Echoed timestamps count milliseconds and would sometimes give 10 ms.
    let hosts = [host("a", "linux-6.18"), host("b", "linux-6.18")];
    let way = route(GBIT, us(5_150));
    let scenario = pair(hosts, way.clone(), way, bulk(300_000));
    let mut samples = Samples::default();
    let outcome = sim::run(&scenario, &mut samples).unwrap();
    assert_eq!(outcome.flows[0].retransmitted_segments, 0);
    assert!(samples.0.len() > 10);
    let least = samples.0.iter().min();
    assert!(least.is_some_and(|&rtt| rtt >= us(10_300)), "{least:?}");
}

/// Merges reported for a receive offload.
#[derive(Default)]
struct Merges(Vec<(u16, u32)>);

impl Recorder for Merges {
    const ON: bool = true;

    fn record(&mut self, _: Instant, _: EventSource, event: Event, _: Option<&SenderState>) {
        if let Event::Aggregated { packets, bytes } = event {
            self.0.push((packets, bytes));
        }
    }
}

impl Observer for Merges {}

#[test]
fn every_offload_reports_its_aggregates() {
    // The last ACK of the handshake arrives in the same pass as the ten segments. LRO appends data
    // to it (tcp_lro.c does not require payload in the head); GRO does not (skb_gro_receive).
    let of_lro = (ReceiveOffloadSpec::Lro(LroParams::FREEBSD_14), 11);
    for (receive, packets) in [of_lro, (ReceiveOffloadSpec::Gro(GroParams::LINUX), 10)] {
        let mut hosts = [host("a", "freebsd-13.2"), host("b", "linux-6.18")];
        hosts[0].offload.tso = true;
        hosts[1].offload.receive = receive;
        hosts[1].delay = ms(1);
        let scenario = pair(hosts, route(GBIT, ms(50)), route(GBIT, ms(50)), bulk(14_480));
        let mut merges = Merges::default();
        sim::run(&scenario, &mut merges).unwrap();
        assert_eq!(merges.0, [(packets, 14_480)], "{receive:?}");
    }
}

fn with_knob(mut scenario: Scenario, host: usize, knob: &str, value: KnobValue) -> Scenario {
    let profile = &mut tcp(&mut scenario.hosts[host]).profile;
    knobs::find(profile, knob).unwrap().set(profile, value).unwrap();
    scenario
}

/// Returns whether a transfer of jumbo frames completes to a host whose buffer holds less than one
/// frame.
fn jumbo_to(name: &str, sink: &str, knob: &str, value: KnobValue) -> bool {
    let mut hosts = [host("a", name), host("b", sink)];
    hosts.iter_mut().for_each(|host| tcp(host).profile.mtu = 9_000);
    let scenario = pair(hosts, route(10 * MBIT, ms(1)), route(10 * MBIT, ms(1)), bulk(30_000));
    let scenario = with_knob(scenario, 1, knob, value);
    sim::run(&scenario, &mut record::NullRecorder).unwrap().flows[0].finished
}

#[test]
fn a_small_freebsd_buffer_takes_jumbo_frames() {
    for name in NAMES {
        let small = KnobValue::Size(Bytes(4_096));
        assert!(jumbo_to(name, "freebsd-14.3", "net.inet.tcp.recvspace", small), "{name}");
    }
}

#[test]
fn a_small_linux_buffer_takes_jumbo_frames() {
    for name in NAMES {
        let small = KnobValue::Sizes([Bytes(4_096), Bytes(16_384), Bytes(16_384)]);
        assert!(jumbo_to(name, "linux-6.18", "net.ipv4.tcp_rmem", small), "{name}");
    }
}

#[test]
fn the_smallest_freebsd_send_buffer_sends() {
    let hosts = [host("a", "freebsd-13.2"), host("b", "freebsd-13.2")];
    let scenario = pair(hosts, route(MBIT, ms(1)), route(MBIT, ms(1)), bulk(20_000));
    let small = KnobValue::Size(Bytes(2_048));
    let scenario = with_knob(scenario, 0, "net.inet.tcp.sendspace", small);
    let scenario = with_knob(scenario, 0, "net.inet.tcp.sendbuf_auto", KnobValue::Switch(false));
    assert!(sim::run(&scenario, &mut record::NullRecorder).unwrap().flows[0].finished);
}

#[test]
fn the_smallest_linux_send_buffer_sends() {
    let hosts = [host("a", "linux-6.18"), host("b", "linux-6.18")];
    let scenario = pair(hosts, route(MBIT, ms(1)), route(MBIT, ms(1)), bulk(2_000));
    let scenario = with_knob(
        scenario,
        0,
        "net.ipv4.tcp_wmem",
        KnobValue::Sizes([Bytes(1), Bytes(2_048), Bytes(2_048)]),
    );
    assert!(sim::run(&scenario, &mut record::NullRecorder).unwrap().flows[0].finished);
}

#[test]
fn an_unfinished_flow_lasts_to_the_end_of_the_run() {
    let hosts = [host("a", "linux-6.18"), host("b", "linux-6.18")];
    let mut scenario = pair(hosts, route(MBIT, ms(1)), route(MBIT, ms(1)), bulk(0));
    // It writes a byte per minute without end.
    let every = Duration::from_secs(60);
    scenario.flows[0].app = App::Paced { chunk: Bytes(1), every, bytes: None, blocking: true };
    scenario.duration = Duration::from_secs(100);
    let outcome = sim::run(&scenario, &mut record::NullRecorder).unwrap();
    assert_eq!(outcome.ended, Instant::ZERO + scenario.duration);
    assert_eq!(outcome.flows[0].duration, scenario.duration);
}

#[test]
fn an_empty_flow_opens_and_closes() {
    for name in NAMES {
        let hosts = [host("a", name), host("b", name)];
        // No elements at all: everything happens at one instant.
        let mut scenario = pair(hosts, Vec::new(), Vec::new(), bulk(0));
        scenario.flows.push(FlowSpec { nodelay: true, ..bulk(100_000) });
        let outcome = sim::run(&scenario, &mut record::NullRecorder).unwrap();
        assert!(outcome.flows.iter().all(|flow| flow.finished), "{name}");
    }
}

/// An element that corrupts no packet and adds no delay.
fn no_time() -> Vec<ElementSpec> {
    let rule = SelectionRule::Share(Ratio::new(0, 1).unwrap());
    vec![ElementSpec::Corrupt { rule, only: PacketClass::All }]
}

#[test]
fn a_burst_completes_before_its_immediate_answer() {
    for name in NAMES {
        let mut hosts = [host("a", name), host("b", name)];
        hosts[0].offload.tso = true;
        let scenario = pair(hosts, no_time(), no_time(), bulk(100_000));
        let audited = sim::audit::run_audited(&scenario, &mut record::NullRecorder);
        let (outcome, _) = audited.unwrap_or_else(|error| panic!("{name}: {error:?}"));
        assert!(outcome.flows[0].finished, "{name}");
    }
}

#[test]
fn hosts_with_zero_delay_answer_each_other_without_end() {
    for name in NAMES {
        let hosts = [host("a", name), host("b", name)];
        let scenario = pair(hosts, no_time(), no_time(), bulk(50_000_000));
        let outcome = sim::run(&scenario, &mut record::NullRecorder).unwrap();
        assert!(outcome.flows[0].finished, "{name}");
    }
}

/// Small datagrams at a high rate over a long delay: the run ends with an error that names the
/// element, before memory is exhausted.
#[test]
fn too_many_packets_in_flight_end_the_run() {
    let hosts = [host("a", "linux-6.18"), host("b", "linux-6.18")];
    let fast = 100 * GBIT;
    let mut forward = route(fast, Duration::from_secs(10));
    forward.insert(
        0,
        ElementSpec::Loss {
            rule: SelectionRule::Share(Ratio::new(0, 1).unwrap()),
            only: PacketClass::All,
        },
    );
    let datagrams = App::Datagrams(DatagramSpec {
        size: Bytes(100),
        interval: DatagramInterval::Fixed(Duration::from_nanos(20)),
        count: None,
        echo: false,
    });
    let mut scenario = pair(hosts, forward, route(fast, ms(10)), bulk(1_000));
    scenario.flows[0].app = datagrams;
    scenario.duration = Duration::from_secs(10);
    let error = sim::run(&scenario, &mut record::NullRecorder).unwrap_err();
    let sim::RunError::InFlight(limit) = error else { panic!("{error}") };
    assert_eq!((limit.path, limit.reverse), (0, false));
    assert!(limit.held > sim::MAX_PACKETS_IN_FLIGHT / 2, "{error}");
    assert!(limit.at < Instant::from_nanos(200_000_000), "{error}");
    assert!(error.to_string().contains(" in path[0].forward["), "{error}");
}

/// Thirty elements that duplicate each packet make 2^30 copies of one: the run ends at the element
/// that exceeds the limit, before memory is exhausted.
#[test]
fn unbounded_duplication_ends_the_run() {
    let all = || SelectionRule::Share(Ratio::new(1, 1).unwrap());
    let twice = || ElementSpec::Duplicate { rule: all(), only: PacketClass::All };
    let run = |count: usize, last: ElementSpec| {
        let mut forward: Vec<ElementSpec> = (0..count).map(|_| twice()).collect();
        forward.push(last);
        let hosts = [host("a", "linux-6.18"), host("b", "linux-6.18")];
        let mut scenario = pair(hosts, forward, route(MBIT, ms(10)), bulk(1_000));
        scenario.duration = Duration::from_secs(5);
        sim::run(&scenario, &mut record::NullRecorder)
    };
    let error = run(30, ElementSpec::Delay(ms(10))).unwrap_err();
    let sim::RunError::Duplicates(found) = error else { panic!("{error}") };
    assert_eq!((found.path, found.reverse, found.at), (0, false, Instant::ZERO));
    assert!(error.to_string().starts_with("path[0].forward["), "{error}");
    // If all copies are dropped at once, only the work is unbounded.
    assert!(run(30, ElementSpec::Loss { rule: all(), only: PacketClass::All }).is_err());
    assert!(run(8, ElementSpec::Delay(ms(10))).is_ok());
}
