//! Transfers between kernels and modelled hosts.
#![cfg(target_os = "linux")]
#![allow(clippy::missing_panics_doc, missing_docs, reason = "tests")]

mod support;

use core::num::NonZeroU64;

use ackclock_guest::kernel::check::PacketDigest;
use ackclock_guest::uml::Protocol;
use ackclock_guest::{GuestRun, Job, run};
use cc::cubic::CubicVariant;
use net::link::QueueLimit;
use packet::{IpVersion, Segment};
use record::{Event, EventSource, Recorder, SenderState};
use sim::Observer;
use sim::scenario::{
    App, Close, ElementSpec, KeepaliveSpec, OnPeriod, PacketClass, Pause, ReadPattern,
    ReceiveOffloadSpec, Scenario, SelectionRule, StackSpec, TcpStack,
};
use support::{endpoints, flow, guests, job, kernel, scenario};
use tcp::profile::TcpProfile;
use units::{Bytes, Duration, Instant, Offset, Ratio};

fn digest(job: &Job<'_>) -> (String, GuestRun) {
    let mut digest = PacketDigest::default();
    let done = run(job, &mut digest).unwrap_or_else(|error| panic!("{error}"));
    assert!(digest.packets > 0);
    (digest.finish(), done)
}

/// Adds random losses and reordering in both directions.
fn with_losses(mut scenario: Scenario) -> Scenario {
    let rule = |percent| SelectionRule::Share(Ratio::new(percent, 100).unwrap());
    let late =
        ElementSpec::Late { rule: rule(1), by: Duration::from_millis(2), only: PacketClass::All };
    let loss = ElementSpec::Loss { rule: rule(2), only: PacketClass::All };
    scenario.paths[0].forward.extend([loss.clone(), late]);
    scenario.paths[0].reverse.push(loss);
    scenario
}

/// Every mix of kernels and models transfers all bytes, and sends the same packets at the same
/// times in every run, with shared memory and with messages.
#[test]
fn a_run_is_a_function_of_scenario_and_kernel() {
    let Some(kernel) = kernel() else { return };
    let scenario = with_losses(scenario(600_000));
    let endpoints = endpoints(&scenario);
    let mut digests = Vec::new();
    for hosts in [&[0][..], &[1], &[0, 1]] {
        let guests = guests(&kernel, hosts);
        let by_memory = job(&scenario, &guests, &endpoints);
        let by_messages = Job { protocol: Protocol::Messages, ..by_memory };
        let (first, done) = digest(&by_memory);
        let flow = &done.outcome.flows[0];
        assert_eq!((flow.bytes, flow.finished), (Bytes(600_000), true), "{hosts:?}");
        assert!(flow.retransmitted_segments > 0, "{hosts:?}");
        assert_eq!(flow.profile == "kernel", hosts.contains(&0));
        assert_eq!(first, digest(&by_memory).0, "{hosts:?} twice");
        assert_eq!(first, digest(&by_messages).0, "{hosts:?} by messages");
        digests.push(first);
    }
    digests.sort();
    digests.dedup();
    assert_eq!(digests.len(), 3, "a model and a kernel have different numbers");
}

/// The packets, and the states that senders report.
#[derive(Default)]
struct StateRecord {
    packets: Vec<(Instant, usize, Segment)>,
    states: Vec<(Instant, SenderState)>,
}

impl Recorder for StateRecord {
    const ON: bool = true;

    fn record(&mut self, at: Instant, _: EventSource, event: Event, state: Option<&SenderState>) {
        if let (Event::TcpInfo { .. }, Some(state)) = (event, state) {
            self.states.push((at, *state));
        }
    }
}

impl Observer for StateRecord {
    fn tap(&mut self, at: Instant, tap: usize, _: bool, segment: &Segment) {
        self.packets.push((at, tap, *segment));
    }
}

/// Asking a kernel for the state of its senders moves no packet, whatever its congestion control.
#[test]
fn states_of_kernels_cost_no_packet() {
    let Some(kernel) = kernel() else { return };
    for cc in [cc::Algorithm::Reno, cc::Algorithm::Cubic(CubicVariant::Linux), cc::Algorithm::Bbr] {
        let mut scenario = with_losses(scenario(3_000_000));
        for host in &mut scenario.hosts {
            let profile = TcpProfile::named("linux-6.18").unwrap();
            host.stack = StackSpec::Tcp(TcpStack::new(profile, cc));
        }
        let (guests, endpoints) = (guests(&kernel, &[0, 1]), endpoints(&scenario));
        let job = job(&scenario, &guests, &endpoints);
        let (mut without, mut record) = (StateRecord::default(), StateRecord::default());
        let alone = run(&job, &mut without).unwrap();
        let done = run(&Job { states: true, ..job }, &mut record).unwrap();
        let other = record.packets.iter().zip(&without.packets).find(|(one, other)| one != other);
        assert_eq!(other, None, "{cc:?}");
        assert_eq!(record.packets.len(), without.packets.len());
        assert_eq!(alone.outcome.flows[0].duration, done.outcome.flows[0].duration);
        assert!(without.states.is_empty());
        // Every 10 ms until the close, in order, and all data sent by then.
        let states = &record.states;
        assert!(states.windows(2).all(|pair| pair[0].0 < pair[1].0), "{cc:?}");
        let span = done.outcome.flows[0].duration.as_millis();
        assert!(states.len() as u64 >= span / 10, "{cc:?}: {} in {span} ms", states.len());
        let (_, last) = states.last().unwrap();
        // The FIN, which has a number of its own, may have been sent by the last sample.
        let all_sent = (Offset(3_000_000)..=Offset(3_000_001)).contains(&last.snd_max);
        assert!(all_sent && last.mss == Bytes(1_448), "{cc:?} {last:?}");
    }
}

/// A sysctl sets another controller than the scenario's: the results have the one of the socket.
#[test]
fn the_controller_is_that_of_the_kernels_socket() {
    let Some(kernel) = kernel() else { return };
    let scenario = scenario(20_000);
    let endpoints = endpoints(&scenario);
    // DCTCP without ECN is another set of functions (dctcp_init).
    for (name, used) in [("vegas", "vegas"), ("dctcp", "dctcp-reno")] {
        let mut guests = guests(&kernel, &[0]);
        guests[0].sysctls = vec![("net.ipv4.tcp_congestion_control".to_owned(), name.to_owned())];
        let (_, done) = digest(&job(&scenario, &guests, &endpoints));
        assert_eq!(done.outcome.flows[0].cc, used);
    }
    let guests = guests(&kernel, &[0]);
    let (_, done) = digest(&job(&scenario, &guests, &endpoints));
    assert_eq!(done.outcome.flows[0].cc, "cubic");
}

/// The seed decides the initial sequence numbers of kernels too.
#[test]
fn another_seed_is_another_run() {
    let Some(kernel) = kernel() else { return };
    let scenario = scenario(20_000);
    let other = Scenario { seed: 8, ..scenario.clone() };
    let (guests, endpoints) = (guests(&kernel, &[0, 1]), endpoints(&scenario));
    let one = digest(&job(&scenario, &guests, &endpoints)).0;
    assert_ne!(one, digest(&job(&other, &guests, &endpoints)).0);
}

/// Every application that a kernel supports, at both ends, and IPv6.
#[test]
fn kernels_have_the_applications_of_models() {
    let Some(kernel) = kernel() else { return };
    let mut scenario = scenario(1);
    let bytes = Some(Bytes(90_000));
    let every = Duration::from_millis(20);
    let on_off = App::OnOff {
        on: OnPeriod::Bytes(Bytes(30_000)),
        off: Pause::Fixed(Duration::from_millis(300)),
        bytes,
    };
    let requests = App::Requests {
        request: Bytes(300),
        response: Bytes(40_000),
        think: Duration::from_millis(50),
        count: Some(4),
    };
    scenario.flows = vec![
        flow("bulk", App::Bulk { bytes, write: None }),
        flow("writes", App::Bulk { bytes, write: NonZeroU64::new(10_000) }),
        flow("paced", App::Paced { chunk: Bytes(5_000), every, bytes, blocking: true }),
        flow("on off", on_off),
        flow("requests", requests),
        flow("slow reader", App::Bulk { bytes, write: None }),
        flow("six", App::Bulk { bytes, write: None }),
        flow("reset", App::Bulk { bytes: Some(Bytes(1_000)), write: None }),
    ];
    scenario.flows[5].reads = Some(ReadPattern { chunk: Bytes(20_000), every });
    scenario.flows[5].nodelay = true;
    scenario.flows[5].keepalive = Some(KeepaliveSpec::default());
    scenario.flows[6].ip = IpVersion::V6;
    scenario.flows[7].close = Close::Reset;
    scenario.flows[7].start = Duration::from_millis(500);
    let endpoints = endpoints(&scenario);
    for hosts in [&[0][..], &[1], &[0, 1]] {
        let guests = guests(&kernel, hosts);
        let done = digest(&job(&scenario, &guests, &endpoints)).1;
        for flow in &done.outcome.flows[..7] {
            let expected = if flow.name == "requests" { 160_000 } else { 90_000 };
            assert_eq!(flow.bytes, Bytes(expected), "{} {hosts:?}", flow.name);
            assert!(flow.finished, "{} {hosts:?}", flow.name);
        }
        // 4 requests of at least a round trip, 3 pauses between them.
        let latency = done.outcome.flows[4].latency.unwrap();
        assert_eq!(latency.requests, 4, "{hosts:?}");
        assert!(latency.min >= Duration::from_millis(20), "{hosts:?} {latency:?}");
        let took = done.outcome.flows[4].duration;
        assert!(took >= Duration::from_millis(4 * 20 + 3 * 50), "{hosts:?} {took:?}");
        // 3 bursts, 2 pauses; 18 chunks, 17 intervals.
        assert!(done.outcome.flows[3].duration >= Duration::from_millis(600), "{hosts:?}");
        assert!(done.outcome.flows[2].duration >= Duration::from_millis(340), "{hosts:?}");
        assert_eq!(done.flows.altered, 0);
        assert_eq!(done.nics.iter().map(|nic| nic.dropped).sum::<u64>(), 0);
    }
}

/// The network card splits a burst that leaves the stack: with TSO a tap at the stack sees fewer,
/// longer packets.
#[test]
fn bursts_are_split_by_the_card() {
    let Some(kernel) = kernel() else { return };
    let mut scenario = scenario(200_000);
    let sent = |scenario: &Scenario| {
        let (guests, endpoints) = (guests(&kernel, &[0]), endpoints(scenario));
        let done = digest(&job(scenario, &guests, &endpoints)).1;
        (done.nics[0].sent, done.outcome.flows[0].bytes)
    };
    let (bursts, bytes) = sent(&scenario);
    scenario.hosts[0].offload.tso = false;
    let (packets, same) = sent(&scenario);
    assert_eq!(bytes, same);
    // 139 segments of 1448 bytes, SYN, ACK and FIN besides.
    assert!((139..150).contains(&packets), "{packets}");
    assert!(bursts < 100, "{bursts}");
}

/// The kernel's own GRO merges the packets of one interrupt, so that the kernel sends fewer ACKs.
#[test]
fn the_kernels_own_gro_merges_the_packets_of_an_interrupt() {
    let Some(kernel) = kernel() else { return };
    let mut scenario = scenario(400_000);
    // No losses: data after a gap is acknowledged at once, merged or not.
    if let ElementSpec::Link { limit, .. } = &mut scenario.paths[0].forward[0] {
        *limit = QueueLimit::Bytes(Bytes(1_000_000));
    }
    let acks = |scenario: &Scenario| {
        let (guests, endpoints) = (guests(&kernel, &[1]), endpoints(scenario));
        let done = digest(&job(scenario, &guests, &endpoints)).1;
        assert_eq!(done.outcome.flows[0].bytes, Bytes(400_000));
        done.nics[0].sent
    };
    scenario.hosts[1].offload.moderation = Duration::from_millis(8);
    let apart = acks(&scenario);
    scenario.hosts[1].offload.receive = ReceiveOffloadSpec::Gro(net::offload::GroParams::LINUX);
    let merged = acks(&scenario);
    assert!(4 * merged < 3 * apart, "{merged} {apart}");
}

/// A card with LRO hands merged packets to the kernel, which acknowledges fewer times.
#[test]
fn a_card_with_lro_merges_packets_before_the_kernel() {
    let Some(kernel) = kernel() else { return };
    let mut scenario = scenario(400_000);
    scenario.hosts[1].offload.moderation = Duration::from_millis(8);
    let sink = |scenario: &Scenario| {
        let (guests, endpoints) = (guests(&kernel, &[1]), endpoints(scenario));
        let (digest, done) = digest(&job(scenario, &guests, &endpoints));
        assert_eq!(done.outcome.flows[0].bytes, Bytes(400_000));
        (digest, done.nics[0])
    };
    let (_, apart) = sink(&scenario);
    scenario.hosts[1].offload.receive =
        ReceiveOffloadSpec::Lro(net::offload::LroParams::FREEBSD_14);
    let (first, merged) = sink(&scenario);
    assert!(2 * merged.received < apart.received, "{merged:?} {apart:?}");
    assert!(4 * merged.sent < 3 * apart.sent, "{merged:?} {apart:?}");
    assert_eq!(first, sink(&scenario).0);
}

/// An endpoint that is still active at the end of the run is reported in its current state.
#[test]
fn an_endless_transfer_ends_with_the_run() {
    let Some(kernel) = kernel() else { return };
    let mut scenario = scenario(1);
    scenario.flows = vec![flow("endless", App::Bulk { bytes: None, write: None })];
    scenario.duration = Duration::from_secs(2);
    let (guests, endpoints) = (guests(&kernel, &[0, 1]), endpoints(&scenario));
    let done = digest(&job(&scenario, &guests, &endpoints)).1;
    let flow = &done.outcome.flows[0];
    assert!(!flow.finished);
    assert_eq!(flow.duration, Duration::from_secs(2));
    // 10 Mbit/s for two seconds, less handshake and headers.
    assert!((2_000_000..2_500_000).contains(&flow.bytes.get()), "{:?}", flow.bytes);
    assert!(flow.max_cwnd > Bytes(20_000));
    // A queue of 60 kB and no end: it has overflowed.
    assert!(flow.fast_recoveries > 0 && flow.retransmitted_segments > 0, "{flow:?}");
}

/// A card whose MTU is below that of IPv6 has no settings of IPv6.
#[test]
fn a_card_with_a_small_mtu_sends_small_packets() {
    let Some(kernel) = kernel() else { return };
    let mut scenario = scenario(100_000);
    for host in &mut scenario.hosts {
        let StackSpec::Tcp(TcpStack { profile, .. }) = &mut host.stack else { unreachable!() };
        profile.mtu = 576;
    }
    let (guests, endpoints) = (guests(&kernel, &[0, 1]), endpoints(&scenario));
    let done = digest(&job(&scenario, &guests, &endpoints)).1;
    assert_eq!(done.outcome.flows[0].bytes, Bytes(100_000));
    assert!(done.outcome.segments > 100_000 / 536, "{}", done.outcome.segments);
}

/// Sysctls of the host follow those of its profile, and one that the kernel does not have is an
/// error.
#[test]
fn sysctls_are_set_or_refused() {
    let Some(kernel) = kernel() else { return };
    let scenario = scenario(50_000);
    let endpoints = endpoints(&scenario);
    let mut guests = guests(&kernel, &[0]);
    let default = digest(&job(&scenario, &guests, &endpoints)).0;
    guests[0].sysctls = vec![("net.ipv4.tcp_timestamps".into(), "0".into())];
    assert_ne!(default, digest(&job(&scenario, &guests, &endpoints)).0);
    guests[0].sysctls = vec![("net.ipv4.tcp_no_such_thing".into(), "0".into())];
    let error = run(&job(&scenario, &guests, &endpoints), &mut record::NullRecorder).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("tcp_no_such_thing") && text.contains("host `sender`"), "{text}");
}
