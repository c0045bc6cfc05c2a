//! Runs checked by the verifier, and falsified records of runs.

mod common;
mod mutations;

use core::num::{NonZeroU32, NonZeroU64};
use std::sync::OnceLock;

use ackclock_sim as sim;
use check::{RecordItem, RecordedRun, VerifiedSummary};
use common::{GBIT, KBIT, MBIT, bulk, host, link, ms, pair, route, tcp, us};
use mutations::{LIES, falsify, places};
use net::link::QueueLimit;
use net::offload::{GroParams, LroParams};
use packet::IpVersion;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use sim::audit::{AuditError, describe, run_audited};
use sim::scenario::{
    App, ElementSpec, FlowSpec, Framing, HostSpec, Offload, OutageMode, PacketClass, PathSpec,
    ReceiveOffloadSpec, Scenario, SelectionRule, SharedElement, reverse,
};
use units::{Bytes, Duration, Rate, Ratio};

fn audited(scenario: &Scenario) -> VerifiedSummary {
    match run_audited(scenario, &mut record::NullRecorder) {
        Ok((outcome, summary)) => {
            for (flow, ends) in outcome.flows.iter().zip(&summary.flows) {
                assert!(flow.finished, "{} did not finish", scenario.title);
                assert_eq!(ends[1].read, flow.bytes, "{}", scenario.title);
                assert_eq!(ends[0].written, flow.bytes, "{}", scenario.title);
            }
            summary
        }
        Err(AuditError::Rejected(why)) => panic!("{}:\n{why}", scenario.title),
        Err(AuditError::Run(why)) => panic!("{}: {why:?}", scenario.title),
    }
}

fn bursty(name: &str, profile: &str, receive: ReceiveOffloadSpec) -> HostSpec {
    let mut host = host(name, profile);
    host.offload = Offload { tso: true, receive, ..Offload::default() };
    host.delay = us(150);
    tcp(&mut host).clock_phase = us(300);
    host
}

/// A transfer of 300 kB over 10 Mbit/s and 20 ms each way, with `elements` after the line.
fn through(title: &str, profile: &str, elements: Vec<ElementSpec>) -> Scenario {
    let mut forward = route(10 * MBIT, ms(20));
    forward.extend(elements);
    let hosts = [host("a", profile), host("b", "linux-6.18")];
    let mut scenario = pair(hosts, forward, route(10 * MBIT, ms(20)), bulk(300_000));
    scenario.title = title.into();
    scenario
}

const FREEBSD: &str = "freebsd-14.3";
const LINUX: &str = "linux-6.18";

#[test]
fn a_clean_path_drops_nothing() {
    for profile in [FREEBSD, LINUX] {
        let summary = audited(&through("clean", profile, Vec::new()));
        assert_eq!((summary.lost, summary.copies, summary.damaged), (0, 0, 0));
        assert_eq!(summary.departed, summary.arrived);
        assert_eq!(summary.flows[0][0].retransmitted, Bytes(0));
    }
}

#[test]
fn full_queues_of_packets_and_of_bytes() {
    for profile in [FREEBSD, LINUX] {
        for limit in
            [QueueLimit::Packets(0), QueueLimit::Packets(12), QueueLimit::Bytes(Bytes(20_000))]
        {
            let mut scenario = through("a short queue", profile, Vec::new());
            scenario.paths[0].forward[0] = link(10 * MBIT, limit);
            let summary = audited(&scenario);
            assert!(summary.lost > 0);
            assert!(summary.flows[0][0].retransmitted > Bytes(0));
        }
    }
}

#[test]
fn bursts_and_merging_on_fast_lines() {
    let receives = [
        ReceiveOffloadSpec::Off,
        ReceiveOffloadSpec::Lro(LroParams::FREEBSD_14),
        ReceiveOffloadSpec::Gro(GroParams::LINUX),
    ];
    for receive in receives {
        for profile in [FREEBSD, LINUX] {
            let hosts = [bursty("a", profile, receive), bursty("b", LINUX, receive)];
            let way = route(100 * GBIT, ms(5));
            let mut scenario = pair(hosts, way.clone(), way, bulk(3_000_000));
            scenario.title = format!("{profile} with {receive:?}");
            audited(&scenario);
        }
    }
}

#[test]
fn rates_without_whole_nanoseconds_per_byte() {
    for bits in [33_333, 997 * KBIT + 1, 7 * GBIT / 3] {
        let mut scenario = through("an odd rate", FREEBSD, Vec::new());
        scenario.paths[0].forward[0] = link(bits, QueueLimit::Packets(30));
        audited(&scenario);
    }
}

fn flow(path: usize, (from, to): (usize, usize), start: Duration, ip: IpVersion) -> FlowSpec {
    FlowSpec { path, from, to, start, ip, ..bulk(200_000) }
}

#[test]
fn several_flows_both_ways_over_one_bottleneck() {
    let (v4, v6) = (IpVersion::V4, IpVersion::V6);
    let hosts = [host("a", FREEBSD), host("b", LINUX), host("c", LINUX)];
    let [a, b, c] = hosts;
    let mut scenario = pair([a, b], Vec::new(), Vec::new(), bulk(1));
    scenario.title = "shared".into();
    scenario.hosts.push(c);
    let element = link(5 * MBIT, QueueLimit::Packets(20));
    scenario.shared = vec![SharedElement { name: "bottleneck".into(), element }];
    let lead_in =
        |delay| vec![ElementSpec::Delay(delay), ElementSpec::Shared(0), ElementSpec::Delay(ms(3))];
    let path = |from, delay| PathSpec {
        from,
        to: 1,
        forward: lead_in(delay),
        reverse: route(10 * MBIT, delay),
    };
    scenario.paths = vec![path(0, ms(1)), path(2, ms(9))];
    scenario.flows = vec![
        flow(0, (0, 1), Duration::ZERO, v4),
        flow(1, (2, 1), ms(50), v6),
        flow(0, (1, 0), ms(70), v6),
    ];
    let summary = audited(&scenario);
    assert!(summary.lost > 0);
}

#[test]
fn a_writer_with_pauses() {
    let mut scenario = through("paced", FREEBSD, Vec::new());
    let (chunk, bytes) = (Bytes(5_000), Some(Bytes(100_000)));
    scenario.flows[0].app = App::Paced { chunk, every: ms(300), bytes, blocking: true };
    audited(&scenario);
}

fn share(num: u64, den: u64) -> SelectionRule {
    SelectionRule::Share(Ratio::new(num, den).unwrap())
}

fn every(n: u64) -> SelectionRule {
    SelectionRule::Every(NonZeroU64::new(n).unwrap())
}

/// Each kind of element that affects packets.
fn elements() -> Vec<(&'static str, ElementSpec)> {
    let only = PacketClass::All;
    let rate = Rate::from_bits_per_second(3_777_777).unwrap();
    let (four, sixth) = (NonZeroU32::new(4).unwrap(), every(6));
    let group = reverse::ReverseParams { group: four, gap: us(1), timeout: us(2_500), class: only };
    let (from, until) = (ms(150), ms(400));
    vec![
        ("jitter", ElementSpec::Jitter { most: ms(7) }),
        ("loss", ElementSpec::Loss { rule: share(1, 50), only }),
        ("duplicate", ElementSpec::Duplicate { rule: share(1, 20), only }),
        ("corrupt", ElementSpec::Corrupt { rule: share(1, 50), only }),
        ("reverse", ElementSpec::Reverse(group)),
        (
            "displace",
            ElementSpec::Displace { rule: sixth.clone(), places: four, timeout: ms(4), only },
        ),
        ("late", ElementSpec::Late { rule: sixth, by: ms(3), only }),
        ("outage", ElementSpec::Outage { from, until, period: None, during: OutageMode::Drop }),
        ("hold", ElementSpec::Outage { from, until, period: None, during: OutageMode::Hold }),
        ("policer", ElementSpec::Policer { rate, burst: Bytes(30_000) }),
        (
            "shaper",
            ElementSpec::Shaper {
                rate,
                burst: Bytes(9_000),
                limit: QueueLimit::Packets(15),
                framing: Framing { header: 14, ..Framing::NONE },
            },
        ),
    ]
}

#[test]
fn every_kind_of_element_satisfies_its_invariants() {
    for (title, element) in elements() {
        for profile in [FREEBSD, LINUX] {
            let summary = audited(&through(title, profile, vec![element.clone()]));
            match title {
                "loss" | "policer" | "shaper" | "outage" => assert!(summary.lost > 0, "{title}"),
                "duplicate" => assert!(summary.copies > 0),
                "corrupt" => assert!(summary.damaged > 0),
                _ => {}
            }
        }
    }
}

#[test]
fn all_kinds_of_elements_on_one_route() {
    let all = || elements().into_iter().map(|(_, element)| element).collect::<Vec<_>>();
    let mut scenario = through("all", FREEBSD, all());
    scenario.paths[0].reverse.extend(all());
    let thin = ElementSpec::Thin { bytes: Bytes(5_000), timeout: ms(4) };
    scenario.paths[0].reverse.push(thin);
    let summary = audited(&scenario);
    assert!(summary.lost > 0 && summary.copies > 0 && summary.damaged > 0);
}

#[test]
fn filtered_acks() {
    for profile in [FREEBSD, LINUX] {
        let mut scenario = through("thin", profile, Vec::new());
        let thin = ElementSpec::Thin { bytes: Bytes(10_000), timeout: ms(4) };
        scenario.paths[0].reverse.push(thin);
        assert!(audited(&scenario).lost > 0);
    }
}

// Falsified records.

/// Runs with losses, and their records.
fn honest() -> &'static [(check::WorldModel, Vec<RecordItem>); 2] {
    static HONEST: OnceLock<[(check::WorldModel, Vec<RecordItem>); 2]> = OnceLock::new();
    HONEST.get_or_init(|| {
        [FREEBSD, LINUX].map(|profile| {
            let mut scenario = through("honest", profile, Vec::new());
            scenario.paths[0].forward[0] = link(10 * MBIT, QueueLimit::Packets(12));
            scenario.flows[0].app = App::Bulk { bytes: Some(Bytes(150_000)), write: None };
            let mut tape = RecordedRun::default();
            sim::run(&scenario, &mut tape).unwrap();
            let world = describe(&scenario);
            check::verify(&world, &tape.items).unwrap();
            (world, tape.items)
        })
    })
}

fn config() -> ProptestConfig {
    let mut config = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    if config.rng_seed == RngSeed::Random {
        config.rng_seed = RngSeed::Fixed(1);
    }
    config
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_mutation_is_detected(
        lie in proptest::sample::select(LIES.as_slice()),
        at in any::<proptest::sample::Index>(),
        amount in 1..2_000_000_u64,
        sender in 0..2_usize,
    ) {
        let (world, items) = &honest()[sender];
        let places = places(lie, items);
        let mut items = items.clone();
        falsify(lie, &mut items, *at.get(&places), amount);
        prop_assert!(check::verify(world, &items).is_err());
    }
}
