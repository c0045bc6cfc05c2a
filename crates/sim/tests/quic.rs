//! QUIC over complete paths, alone and next to TCP; the verifier checks every run.

mod common;

use ackclock_sim::audit::run_audited;
use ackclock_sim::scenario::{
    App, Close, ElementSpec, HostSpec, PacketClass, PathSpec, QuicStack, SelectionRule,
    SharedElement, StackSpec,
};
use ackclock_sim::{RunOutcome, Scenario, SetupError};
use net::link::QueueLimit;
use quic::QuicProfile;
use record::Digest;
use units::{Bytes, Duration, Ratio};

use common::{bulk, host, link, route, tcp};

fn quic_host(name: &str, profile: &str) -> HostSpec {
    let profile = QuicProfile::named(profile).unwrap();
    let stack = StackSpec::Quic(QuicStack { profile, cc: profile.controller() });
    HostSpec { stack, ..host(name, "rfc") }
}

fn world(
    profile: &str,
    forward: Vec<ElementSpec>,
    reverse: Vec<ElementSpec>,
    bytes: u64,
) -> Scenario {
    Scenario {
        title: "quic".into(),
        seed: 3,
        duration: Duration::from_secs(600),
        hosts: vec![quic_host("a", profile), quic_host("b", profile)],
        paths: vec![PathSpec { from: 0, to: 1, forward, reverse }],
        shared: Vec::new(),
        flows: vec![bulk(bytes)],
        groups: Vec::new(),
        taps: Vec::new(),
    }
}

fn audited(scenario: &Scenario) -> (RunOutcome, u64) {
    let mut digest = Digest::default();
    let (outcome, summary) = run_audited(scenario, &mut digest).unwrap();
    for (flow, ends) in outcome.flows.iter().zip(&summary.flows) {
        assert!(flow.finished, "{flow:?}");
        assert_eq!(ends[0].written, ends[1].read);
    }
    (outcome, digest.value())
}

#[test]
fn all_bytes_arrive_under_every_profile_and_the_run_repeats() {
    for name in quic::profile::NAMES {
        let routes = || route(50_000_000, Duration::from_millis(10));
        let scenario = world(name, routes(), routes(), 3_000_000);
        let (outcome, digest) = audited(&scenario);
        let flow = &outcome.flows[0];
        assert_eq!((flow.profile, flow.bytes), (name, Bytes(3_000_000)));
        assert!(flow.received_packet_bytes.unwrap() > flow.bytes);
        assert_eq!(digest, audited(&scenario).1);
    }
}

fn rough() -> Vec<ElementSpec> {
    let share = |n| SelectionRule::Share(Ratio::new(n, 100).unwrap());
    let span = Duration::from_millis;
    vec![
        ElementSpec::Loss { rule: share(2), only: PacketClass::All },
        link(20_000_000, QueueLimit::Packets(30)),
        ElementSpec::Duplicate { rule: share(3), only: PacketClass::All },
        ElementSpec::Corrupt { rule: share(1), only: PacketClass::All },
        ElementSpec::Late { rule: share(3), only: PacketClass::All, by: span(7) },
        ElementSpec::Jitter { most: span(3) },
        ElementSpec::Delay(span(12)),
    ]
}

#[test]
fn loss_duplication_corruption_and_reordering_do_no_harm() {
    for name in quic::profile::NAMES {
        for seed in 0..6 {
            let scenario = Scenario { seed, ..world(name, rough(), rough(), 1_000_000) };
            audited(&scenario);
        }
    }
}

#[test]
fn requests_and_resets_work_over_quic() {
    let routes = || route(20_000_000, Duration::from_millis(15));
    let mut scenario = world("quic-rfc9002", rough(), rough(), 0);
    scenario.flows[0].app = App::Requests {
        request: Bytes(300),
        response: Bytes(40_000),
        think: Duration::from_millis(50),
        count: Some(20),
    };
    let outcome = run_audited(&scenario, &mut Digest::default()).unwrap().0;
    assert_eq!(outcome.flows[0].bytes, Bytes(20 * 40_000));
    let mut scenario = world("quic-rfc9002", routes(), routes(), 500_000);
    scenario.flows[0].close = Close::Reset;
    let outcome = run_audited(&scenario, &mut Digest::default()).unwrap().0;
    assert!(outcome.ended < units::Instant::ZERO + Duration::from_secs(60));
}

#[test]
fn quic_and_tcp_share_a_bottleneck() {
    let far = || vec![ElementSpec::Shared(0), ElementSpec::Delay(Duration::from_millis(20))];
    let near = || vec![ElementSpec::Delay(Duration::from_millis(20))];
    let path = |from, to| PathSpec { from, to, forward: far(), reverse: near() };
    let mut scenario = world("quic-rfc9002", far(), near(), 6_000_000);
    scenario.shared = vec![SharedElement {
        name: "line".into(),
        element: link(20_000_000, QueueLimit::Packets(60)),
    }];
    scenario.hosts.extend([host("c", "freebsd-14.3"), host("d", "freebsd-14.3")]);
    scenario.paths = vec![path(0, 1), path(2, 3)];
    scenario.flows = vec![
        bulk(6_000_000),
        ackclock_sim::scenario::FlowSpec { path: 1, from: 2, to: 3, ..bulk(6_000_000) },
    ];
    let (outcome, _) = audited(&scenario);
    let rates: Vec<f64> = outcome.flows.iter().map(|flow| flow.goodput_bps() / 1e6).collect();
    // Neither starves: 12 MB over 20 Mbit/s take at least 4.8 s.
    assert!(rates.iter().all(|rate| *rate > 4.0), "{rates:?}");
}

#[test]
fn bbr_is_rejected_without_a_linux_stack() {
    let routes = || route(20_000_000, Duration::from_millis(15));
    let mut scenario = world("quic-rfc9002", routes(), routes(), 1_000);
    scenario.hosts = vec![host("a", "rfc"), host("b", "rfc")];
    tcp(&mut scenario.hosts[1]).cc = cc::Algorithm::Bbr;
    let error = ackclock_sim::run(&scenario, &mut Digest::default()).unwrap_err();
    assert_eq!(error, SetupError::Controller { host: 1 }.into());
}

#[test]
fn a_flow_between_quic_and_tcp_is_rejected() {
    let routes = || route(20_000_000, Duration::from_millis(15));
    let mut scenario = world("quic-rfc9002", routes(), routes(), 1_000);
    scenario.hosts[1] = host("b", "rfc");
    let error = ackclock_sim::run(&scenario, &mut Digest::default()).unwrap_err();
    assert_eq!(error, SetupError::Transport { flow: 0 }.into());
}
