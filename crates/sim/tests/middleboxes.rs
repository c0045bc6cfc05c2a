//! Boxes on a path that drop, change or answer packets of a connection, packet by packet.

mod common;

use ackclock_sim as sim;
use common::{MBIT, all_taps, bulk, host, ms, pair, route, tcp};
use core::num::NonZeroU64;
use packet::{Flags, Options, PacketTooBig, Segment, SynOptions};
use record::{Event, EventSource, Recorder, SenderState};
use sim::audit::run_audited;
use sim::scenario::{
    AcceptQueueSpec, App, ElementSpec, FlowSpec, HostSpec, PacketClass, ResetTrigger, Scenario,
    SelectionRule, SharedElement, SynOffers,
};
use sim::{FlowOutcome, Observer};
use tcp::profile::EcnRule;
use units::{Bytes, Duration, Instant, Ratio};

/// The segments at the wire of each host: time in milliseconds, host, whether it leaves; and the ICMP
/// errors that arrive, with their hosts.
#[derive(Debug, Default)]
struct Wire(Vec<(u64, usize, bool, Segment)>, Vec<(usize, PacketTooBig)>);

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

    fn icmp(&mut self, _: Instant, tap: usize, _: bool, message: &PacketTooBig) {
        if tap.is_multiple_of(2) {
            self.1.push((tap / 2, *message));
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

/// What both ends use after a SYN passed a box that removes `strips` from it.
fn stripped(strips: SynOffers) -> (FlowOutcome, Wire) {
    let mut hosts = linux();
    hosts.iter_mut().for_each(|host| tcp(host).profile.ecn = EcnRule::Active);
    let (flow, wire) = run(&world(hosts, 400_000, vec![ElementSpec::Strip(strips)], vec![]));
    assert!(flow.finished, "{flow:?}");
    (flow, wire)
}

fn options(segment: &Segment) -> SynOptions {
    match segment.options {
        Options::Syn(options) => options,
        _ => SynOptions::default(),
    }
}

/// The host that connects offers all; the other sees, and answers, what is left.
#[test]
fn a_stripped_syn_offers_less_and_both_ends_follow() {
    let all = SynOffers::WINDOW_SCALE | SynOffers::SACK | SynOffers::TIMESTAMPS | SynOffers::ECN;
    let offers = |segment: &Segment| {
        let options = options(segment);
        [
            options.window_scale.is_some(),
            options.sack_permitted,
            segment.timestamps.is_some(),
            segment.flags.has(Flags::ECE),
        ]
    };
    let (_, wire) = stripped(all);
    assert_eq!(offers(&wire.at(0, true)[0].1), [true; 4]);
    assert_eq!(offers(&wire.at(1, false)[0].1), [false; 4]);
    assert_eq!(offers(&wire.at(1, true)[0].1), [false; 4]);
    let (sent, received) = (wire.at(0, true)[0].1, wire.at(1, false)[0].1);
    assert_eq!(sent.packet_len().get() - received.packet_len().get(), 16);
    assert_eq!(options(&received).mss, options(&sent).mss);
    let stamped = |wire: &Wire| wire.0.iter().filter(|seen| seen.3.timestamps.is_some()).count();
    // Only the SYN has the option, where it leaves.
    assert_eq!(stamped(&wire), 1);
    assert!(wire.0.iter().all(|seen| seen.3.ecn == 0));
    let (_, wire) = stripped(SynOffers::SACK);
    assert!(!offers(&wire.at(1, true)[0].1)[1]);
    assert!(stamped(&wire) > 100);
    assert!(wire.at(0, true).iter().any(|(_, segment)| segment.ecn != 0));
}

/// Without scaling no window is larger than 65,535 bytes.
#[test]
fn a_path_without_window_scaling_limits_the_flight() {
    let goodput = |there: Vec<ElementSpec>| {
        let mut scenario = world(linux(), 5_000_000, vec![], vec![]);
        scenario.paths[0].forward = [there, route(1_000 * MBIT, ms(20))].concat();
        scenario.paths[0].reverse = route(1_000 * MBIT, ms(20));
        let (flow, _) = run(&scenario);
        assert!(flow.finished, "{flow:?}");
        flow.duration
    };
    let scaled = goodput(vec![]);
    let unscaled = goodput(vec![ElementSpec::Strip(SynOffers::WINDOW_SCALE)]);
    // 5 MB in windows of 64 kB need 77 round trips of 40 ms.
    assert!(scaled < ms(1_500), "{scaled}");
    assert!(unscaled > ms(77 * 40), "{unscaled}");
}

fn mtu(size: u64, from: Duration, icmp: bool) -> ElementSpec {
    ElementSpec::Mtu { size: Bytes(size), from, icmp }
}

/// The largest packets that a host sent before and after a time in milliseconds.
fn largest(wire: &Wire, host: usize, at: u64) -> [u64; 2] {
    let size = |when: fn(u64, u64) -> bool| {
        let sent = wire.at(host, true).into_iter().filter(|(time, _)| when(*time, at));
        sent.map(|(_, segment)| segment.packet_len().get()).max().unwrap_or_default()
    };
    [size(|time, at| time < at), size(|time, at| time >= at)]
}

#[test]
fn segments_become_smaller_after_an_icmp_error() {
    for profile in ["linux-6.18", "freebsd-14.3", "freebsd-rack-14.3"] {
        let hosts = [host("a", profile), host("b", "linux-6.18")];
        let from = ms(100);
        let (flow, wire) = run(&world(hosts, 1_000_000, vec![mtu(1_300, from, true)], vec![]));
        assert!(flow.finished, "{profile}: {flow:?}");
        let [before, after] = largest(&wire, 0, 150);
        assert_eq!(before, 1_500, "{profile}");
        assert_eq!(after, 1_300, "{profile}");
        // None of the larger ones passed, and none waited for a timeout.
        assert_eq!(flow.rtos, 0, "{profile}");
        let errors = wire
            .1
            .iter()
            .filter(|(host, message)| (*host, message.mtu, message.size) == (0, 1_300, 1_500));
        assert!(errors.count() > 0, "{profile}");
    }
}

#[test]
fn a_black_hole_halts_the_transfer() {
    let (flow, wire) = run(&world(linux(), 1_000_000, vec![mtu(1_300, ms(100), false)], vec![]));
    assert!(!flow.finished, "{flow:?}");
    assert!(flow.bytes.get() > 0 && flow.rtos > 5, "{flow:?}");
    assert!(wire.1.is_empty());
    let arrived = wire.at(1, false);
    assert!(arrived.iter().all(|(at, segment)| *at < 140 || segment.packet_len().get() <= 1_300));
}

fn forget(idle: Duration, resets: bool) -> ElementSpec {
    ElementSpec::Forget { idle, resets }
}

/// Two requests with a pause of three seconds between them.
fn with_pause(there: Vec<ElementSpec>, back: Vec<ElementSpec>) -> Scenario {
    let mut scenario = world(linux(), 0, there, back);
    scenario.flows[0].app = App::Requests {
        request: Bytes(100),
        response: Bytes(1_000),
        think: Duration::from_secs(3),
        count: Some(2),
    };
    scenario
}

#[test]
fn a_box_forgets_a_connection_that_pauses() {
    let (flow, _) = run(&with_pause(vec![forget(Duration::from_secs(4), false)], vec![]));
    assert!(flow.finished, "{flow:?}");
    let (flow, wire) = run(&with_pause(vec![forget(Duration::from_secs(2), false)], vec![]));
    assert!(!flow.finished, "{flow:?}");
    // Nothing of the second request arrives, however often it is repeated.
    assert!(wire.at(1, false).iter().all(|(at, _)| *at < 3_000));
    let repeats =
        wire.at(0, true).into_iter().filter(|(at, segment)| *at >= 3_000 && segment.payload > 0);
    assert!(repeats.count() > 5);
}

#[test]
fn a_box_answers_packets_of_a_forgotten_connection_by_a_reset() {
    let mut scenario = with_pause(vec![ElementSpec::Shared(0)], vec![ElementSpec::Shared(0)]);
    let element = forget(Duration::from_secs(2), true);
    scenario.shared.push(SharedElement { name: "nat".into(), element });
    let (flow, wire) = run(&scenario);
    assert!(!flow.finished, "{flow:?}");
    let resets = |host| {
        let arrived = wire.at(host, false).into_iter();
        arrived.filter(|(_, segment)| segment.flags.has(Flags::RST)).map(|(at, _)| at)
    };
    // The box is beside the first host: its RST takes the way back from there on.
    assert_eq!(resets(0).count(), 1);
    assert!(resets(1).next().is_none());
    let last = wire.at(0, true).last().unwrap().0;
    assert!(last < 3_200, "{last}");
}

#[test]
fn a_box_resets_both_ends() {
    for profile in ["linux-6.18", "freebsd-14.3", "freebsd-rack-14.3"] {
        for trigger in
            [ResetTrigger::Bytes(Bytes(100_000)), ResetTrigger::At(Instant::ZERO + ms(120))]
        {
            let hosts = [host("a", profile), host("b", profile)];
            let reset = vec![ElementSpec::Reset(trigger)];
            let (flow, wire) = run(&world(hosts, 1_000_000, reset, vec![]));
            assert!(!flow.finished, "{profile}: {flow:?}");
            for host in [0, 1] {
                let arrived = wire.at(host, false);
                let resets = arrived.iter().filter(|(_, segment)| segment.flags.has(Flags::RST));
                let times: Vec<u64> = resets.map(|(at, _)| *at).collect();
                assert_eq!(times.len(), 1, "{profile}: {trigger:?}: host {host}");
                // Each end accepts it: it sends no more, but answers what is in flight by RSTs.
                let sent = wire.at(host, true).into_iter();
                let alive = sent.filter(|(_, segment)| !segment.flags.has(Flags::RST));
                let last = alive.map(|(at, _)| at).next_back().unwrap();
                assert!(last <= times[0], "{profile}: {trigger:?}: host {host}: {last}");
            }
            if let ResetTrigger::Bytes(bytes) = trigger {
                let data = wire.at(1, false);
                let passed: u64 = data.iter().map(|(_, segment)| u64::from(segment.payload)).sum();
                assert!((bytes.get()..bytes.get() + 1_448).contains(&passed), "{passed}");
            }
        }
    }
}

#[test]
fn a_reset_refuses_connections_that_begin_later() {
    let mut scenario =
        world(linux(), 1_000, vec![ElementSpec::Reset(ResetTrigger::At(Instant::ZERO))], vec![]);
    scenario.duration = Duration::from_secs(10);
    let (flow, wire) = run(&scenario);
    assert!(!flow.finished);
    // One SYN, one answer.
    assert_eq!(wire.at(0, true).len(), 1);
    assert_eq!(wire.at(0, false)[0].1.flags, Flags::RST | Flags::ACK);
}

/// The laws of the boxes: a run against another world breaks them.
#[test]
fn the_verifier_refuses_what_a_box_must_not_do() {
    let breach = |there: ElementSpec, law: ElementSpec| {
        let scenario = world(linux(), 300_000, vec![there], vec![]);
        let other = sim::audit::describe(&world(linux(), 300_000, vec![law], vec![]));
        let found = sim::audit::run_against(&scenario, &other, &mut record::NullRecorder);
        found.unwrap_err().to_string()
    };
    let pause = ElementSpec::Delay(Duration::ZERO);
    let cases = [
        (pause.clone(), mtu(1_300, Duration::ZERO, true), "is larger than element 0 passes"),
        (mtu(1_300, Duration::ZERO, true), mtu(1_400, ms(100), true), "without a reason"),
        (mtu(1_300, ms(50), true), mtu(1_300, ms(50), false), "cannot come from element 0"),
        (pause.clone(), ElementSpec::Strip(SynOffers::SACK), "with a header that it cannot have"),
        (
            ElementSpec::Strip(SynOffers::WINDOW_SCALE),
            pause.clone(),
            "cannot be changed so at element 0",
        ),
        (pause.clone(), forget(ms(10), false), "which no longer passes its connection"),
        (forget(ms(10), true), forget(ms(10), false), "cannot come from element 0"),
        (pause.clone(), ElementSpec::Reset(ResetTrigger::Bytes(Bytes(9))), "no longer passes"),
        (ElementSpec::Reset(ResetTrigger::Bytes(Bytes(9_000))), pause, "without a reason"),
    ];
    for (there, law, message) in cases {
        let found = breach(there.clone(), law.clone());
        assert!(found.contains(message), "{there:?} {law:?}: {found}");
    }
}

/// Six clients connect at once to a host that takes one connection each `accept`.
fn six_at_once(backlog: u32, accept: Duration) -> Scenario {
    let mut scenario = world(linux(), 20_000, vec![], vec![]);
    let first = scenario.flows[0].clone();
    let name = |n| format!("flow {n}");
    scenario.flows = (0..6).map(|n| FlowSpec { name: name(n), ..first.clone() }).collect();
    tcp(&mut scenario.hosts[1]).listen = Some(AcceptQueueSpec { backlog, accept });
    scenario.duration = Duration::from_secs(60);
    scenario
}

fn run_all(scenario: &Scenario) -> (Vec<FlowOutcome>, Wire) {
    let mut wire = Wire::default();
    match run_audited(scenario, &mut wire) {
        Ok((outcome, _)) => (outcome.flows, wire),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn connections_wait_in_the_accept_queue_with_their_data() {
    let (flows, wire) = run_all(&six_at_once(8, ms(200)));
    let times: Vec<u64> = flows.iter().map(|flow| flow.duration.as_nanos() / 1_000_000).collect();
    assert_eq!(times, [200, 400, 600, 800, 1_000, 1_200]);
    // All data had arrived and was acknowledged long before: no SYN and no segment is repeated.
    assert_eq!(wire.syns(0).len(), 6);
    assert!(flows.iter().all(|flow| flow.finished && flow.retransmitted_segments == 0));
}

/// tcp_conn_request, tcp_check_req
#[test]
fn a_full_accept_queue_drops_syns_and_final_acks() {
    // Two fit: the other four have answers to their SYNs, but their last ACKs are dropped.
    let (flows, wire) = run_all(&six_at_once(1, ms(900)));
    assert!(flows.iter().all(|flow| flow.finished), "{flows:#?}");
    let answers = |flow: u32| {
        let sent = wire.at(1, true).into_iter();
        let own =
            sent.filter(|(_, segment)| segment.flow.0 == flow && segment.flags.has(Flags::SYN));
        own.map(|(at, _)| at).collect::<Vec<_>>()
    };
    assert_eq!(answers(0), [10]);
    assert!(answers(3).len() > 1, "{:?}", answers(3));
    // What they sent meanwhile was not acknowledged: data wait for the queue.
    let acks = wire.at(0, false).into_iter().filter(|(_, segment)| segment.flow.0 == 3);
    let first = acks.filter(|(_, segment)| !segment.flags.has(Flags::SYN)).map(|(at, _)| at).next();
    assert!(first.is_some_and(|at| at > 900), "{first:?}");
    assert!(flows[3].rtos > 0);
}

#[test]
fn a_full_accept_queue_drops_syns() {
    let mut scenario = six_at_once(0, ms(5_000));
    // The last begins when the queue has been full for a while.
    scenario.flows[5].start = ms(100);
    let (flows, wire) = run_all(&scenario);
    let syns = wire
        .at(0, true)
        .into_iter()
        .filter(|(_, segment)| segment.flow.0 == 5 && segment.flags.has(Flags::SYN));
    let times: Vec<u64> = syns.map(|(at, _)| at).collect();
    assert!(times.len() > 3, "{times:?}");
    let answered = wire.at(1, true).into_iter().filter(|(_, segment)| segment.flow.0 == 5);
    assert!(answered.map(|(at, _)| at).next().is_none_or(|at| at >= 5_000));
    assert!(flows[0].finished);
}

#[test]
fn the_verifier_knows_the_accept_queue() {
    let breach = |scenario: &Scenario, world: &Scenario| {
        let other = sim::audit::describe(world);
        let found = sim::audit::run_against(scenario, &other, &mut record::NullRecorder);
        found.unwrap_err().to_string()
    };
    let found = breach(&six_at_once(8, ms(200)), &six_at_once(2, ms(200)));
    assert!(found.contains("is established with a full accept queue"), "{found}");
    let found = breach(&six_at_once(8, ms(100)), &six_at_once(8, ms(200)));
    assert!(found.contains("is used before it can have been accepted"), "{found}");
}
