//! Random worlds, followed packet by packet by a checker with a model of its own.
//!
//! `PROPTEST_CASES=20000` runs more of them, `PROPTEST_RNG_SEED` others; by default, the same ones
//! every time.

mod checker;
mod common;

use core::fmt;
use core::num::NonZeroU32;
use std::collections::BTreeMap;

use ackclock_sim as sim;
use checker::Checker;
use common::{all_taps, host, link, tcp, tcp_of, us};
use net::link::QueueLimit;
use net::offload::{GroParams, LroParams};
use packet::IpVersion;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{FileFailurePersistence, RngSeed};
use record::{Digest, Event, EventSource, LongWay, Recorder, SenderState, Shortcuts};
use sim::RunOutcome;
use sim::scenario::{
    App, Close, ElementSpec, FlowSpec, HostSpec, KeepaliveSpec, Offload, PathSpec, ReadPattern,
    ReceiveOffloadSpec, Scenario,
};
use tcp::profile::{BurstRule, Family, NAMES, ReceiveBufferRule, SendBufferRule};
use units::{Bytes, Duration, Instant};

/// Default number of worlds; most finish within a millisecond.
const LEAST_CASES: u32 = 8_000;

fn config() -> ProptestConfig {
    let mut config = ProptestConfig::default();
    config.cases = config.cases.max(LEAST_CASES);
    if config.rng_seed == RngSeed::Random {
        config.rng_seed = RngSeed::Fixed(1);
    }
    let place = FileFailurePersistence::Direct("tests/worlds.regressions");
    config.failure_persistence = Some(Box::new(place));
    config
}

fn a_receive() -> impl Strategy<Value = ReceiveOffloadSpec> {
    let gro = GroParams { ends_at_push: false, same_timestamps: false, ..GroParams::LINUX };
    select(vec![
        ReceiveOffloadSpec::Off,
        ReceiveOffloadSpec::Lro(LroParams::FREEBSD_14),
        ReceiveOffloadSpec::Lro(LroParams::FREEBSD_13_0),
        ReceiveOffloadSpec::Gro(GroParams::LINUX),
        ReceiveOffloadSpec::Gro(gro),
    ])
}

fn an_offload() -> impl Strategy<Value = Offload> {
    let flush = select(vec![0, 0, 50, 1_000]);
    let budget = select(vec![0, 0, 1, 2, 5, 64]);
    let moderation = select(vec![0, 0, 0, 700]);
    (any::<bool>(), a_receive(), flush, budget, moderation).prop_map(
        |(tso, receive, flush, budget, moderation)| Offload {
            tso,
            receive,
            flush: us(flush),
            budget: NonZeroU32::new(budget),
            moderation: us(moderation),
            ..Offload::default()
        },
    )
}

fn a_host() -> impl Strategy<Value = HostSpec> {
    let options = (any::<[bool; 3]>(), select(vec![576, 1_280, 1_500, 1_500, 9_000]));
    let clock = (select(vec![100, 250, 1_000]), 0..10_000_u64);
    let isn = prop_oneof![Just(None), (0..100_000_u32).prop_map(|n| Some(n.wrapping_neg()))];
    (select(NAMES.as_slice()), options, clock, an_offload(), 0..1_000_u64, isn).prop_map(
        |(name, ([timestamps, sack, scaling], mtu), (hz, phase), offload, delay, isn)| {
            let mut host = host("", name);
            host.offload = offload;
            host.delay = us(delay);
            let stack = tcp(&mut host);
            stack.profile.timestamps = timestamps;
            stack.profile.sack = sack;
            stack.profile.window_scaling = scaling;
            stack.profile.mtu = mtu;
            stack.profile.hz = hz;
            stack.clock_phase = us(phase);
            stack.isn = isn;
            stack.timestamp = isn;
            host
        },
    )
}

/// 1 Mbit/s to 100 Gbit/s, log-uniform over the orders of magnitude.
fn a_rate() -> impl Strategy<Value = u64> {
    (0..5_u32, 10..=100_u64).prop_map(|(tens, digits)| digits * 100_000 * 10_u64.pow(tens))
}

fn a_limit() -> impl Strategy<Value = QueueLimit> {
    prop_oneof![
        (0..20_u32).prop_map(QueueLimit::Packets),
        (20..5_000_u32).prop_map(QueueLimit::Packets),
        (0..30_000_u64).prop_map(|n| QueueLimit::Bytes(Bytes(n))),
        (30_000..10_000_000_u64).prop_map(|n| QueueLimit::Bytes(Bytes(n))),
    ]
}

fn a_delay() -> impl Strategy<Value = Duration> {
    prop_oneof![Just(0), 0..1_000_u64, 0..200_000_u64].prop_map(us)
}

fn a_route() -> impl Strategy<Value = Vec<ElementSpec>> {
    let parts = (a_rate(), a_limit(), a_delay(), a_delay());
    (0..5_u8, parts).prop_map(|(shape, (rate, limit, near, far))| {
        let line = link(rate, limit);
        let fast = link(10 * rate, QueueLimit::Packets(1_000));
        match shape {
            0 => vec![ElementSpec::Delay(far)],
            1 => vec![ElementSpec::Delay(near), line, ElementSpec::Delay(far), fast],
            _ => vec![line, ElementSpec::Delay(far)],
        }
    })
}

fn an_app() -> impl Strategy<Value = App> {
    let bulk = prop_oneof![0..3_000_u64, 0..400_000_u64, 0..3_000_000_u64];
    let paced = (1..20_000_u64, 1..50_000_u64, 0..100_000_u64);
    prop_oneof![
        3 => bulk.prop_map(|bytes| App::Bulk { bytes: Some(Bytes(bytes)), write: None }),
        1 => paced.prop_map(|(chunk, every, bytes)| App::Paced {
            chunk: Bytes(chunk),
            every: us(every),
            bytes: Some(Bytes(bytes)), blocking: true }),
    ]
}

fn a_flow() -> impl Strategy<Value = FlowSpec> {
    let ip = select(vec![IpVersion::V4, IpVersion::V6]);
    let reads =
        prop_oneof![3 => Just(None), 1 => (1_000..100_000_u64, 1..20_000_u64).prop_map(Some)];
    (0..2_usize, any::<[bool; 2]>(), 0..300_000_u64, an_app(), ip, reads).prop_map(
        |(path, [backward, nodelay], start, app, ip, reads)| {
            // Path 0 connects hosts 0 and 1, path 1 hosts 2 and 1.
            let (a, b) = (2 * path, 1);
            let (from, to) = if backward { (b, a) } else { (a, b) };
            // At least 50 bytes per millisecond, so that it finishes.
            let reads = reads.map(|(chunk, every)| {
                let every = us(every).min(us(20 * chunk));
                ReadPattern { chunk: Bytes(chunk), every }
            });
            FlowSpec {
                name: String::new(),
                path,
                from,
                to,
                start: us(start),
                app,
                ip,
                nodelay,
                reads,
                close: Close::Fin,
                keepalive: nodelay.then_some(KeepaliveSpec::default()),
            }
        },
    )
}

prop_compose! {
    fn a_world()(
        seed in any::<u64>(),
        hosts in proptest::collection::vec(a_host(), 3),
        routes in proptest::collection::vec(a_route(), 4),
        flows in proptest::collection::vec(a_flow(), 1..=4),
    ) -> RandomWorld {
        let mut routes = routes.into_iter();
        let mut path = |from| PathSpec {
            from,
            to: 1,
            forward: routes.next().unwrap(),
            reverse: routes.next().unwrap(),
        };
        RandomWorld(Scenario {
            title: String::new(),
            seed,
            // RTO backoff may make a transfer last for days; waiting is free here.
            duration: Duration::from_secs(10_000_000),
            paths: vec![path(0), path(2)],
            shared: Vec::new(),
            flows,
            groups: Vec::new(),
            taps: all_taps(hosts.len()),
            hosts,
        })
    }
}

struct RandomWorld(Scenario);

/// Prints only the varying parameters, one line each, for people.
impl fmt::Debug for RandomWorld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}", self.0.seed)?;
        for (number, host) in self.0.hosts.iter().enumerate() {
            let stack = tcp_of(host);
            let p = &stack.profile;
            let options = (p.timestamps, p.sack, p.window_scaling, p.mtu, p.hz);
            writeln!(f, "host {number}: {}, ts, sack, scaling, mtu, hz {options:?}", p.name)?;
            let clock = (host.delay, stack.clock_phase, stack.isn);
            writeln!(f, "  delay, phase, isn {clock:?}, {:?}", host.offload)?;
        }
        for (number, path) in self.0.paths.iter().enumerate() {
            writeln!(f, "path {number}: {} to {}", path.from, path.to)?;
            writeln!(f, "  forward {:?}", path.forward)?;
            writeln!(f, "  reverse {:?}", path.reverse)?;
        }
        for (number, flow) in self.0.flows.iter().enumerate() {
            writeln!(f, "flow {number}: {flow:?}")?;
        }
        Ok(())
    }
}

/// Gives every host buffers of a few segments, which autotuning does not enlarge.
fn shrink_buffers(scenario: &mut Scenario, sizes: [u64; 3]) {
    for (host, size) in scenario.hosts.iter_mut().zip(sizes) {
        let profile = &mut tcp(host).profile;
        // Space for at least three segments of the link.
        let size = Bytes(size.max(3 * u64::from(profile.mtu)));
        match &mut profile.receive_buffer {
            ReceiveBufferRule::FreeBsd { space, auto, .. } => (*space, *auto) = (size, false),
            // Half of it is for payload.
            ReceiveBufferRule::Linux { rmem, auto, .. } => {
                let double = Bytes(2 * size.get());
                (*rmem, *auto) = ([double; 3], false);
            }
            ReceiveBufferRule::Fixed { space } => *space = size,
        }
        match &mut profile.send_buffer {
            SendBufferRule::FreeBsd { space, auto, .. } => (*space, *auto) = (size, false),
            SendBufferRule::Linux { wmem, .. } => *wmem = [size; 3],
            SendBufferRule::Fixed { space } => *space = size,
        }
    }
}

fn check(scenario: &Scenario) {
    let mut checker = Checker::new(scenario);
    match sim::audit::run_audited(scenario, &mut checker) {
        Ok((outcome, _)) => checker.finish(&outcome),
        Err(error) => panic!("{error:?}"),
    }
}

/// Digest and outcome, with endpoints hibernated whenever possible (`packing`) or only when idle.
fn happens(scenario: &Scenario, packing: bool) -> ([u64; 2], RunOutcome) {
    let mut digest = Digest::default();
    let run = if packing { sim::run_packing } else { sim::run };
    let outcome = run(scenario, &mut digest).unwrap();
    ([digest.value(), digest.events()], outcome)
}

/// The events of a run. What holds an endpoint back counts once for each instant, after the other
/// events: a shortened pass may record it earlier.
#[derive(Default)]
struct Events {
    digest: Digest,
    at: Option<Instant>,
    limits: BTreeMap<EventSource, Event>,
    /// Every event as text, if wanted.
    text: Option<Vec<String>>,
}

impl Events {
    fn end_instant(&mut self) {
        let Some(at) = self.at else { return };
        for (who, event) in core::mem::take(&mut self.limits) {
            self.note(at, who, event, None);
        }
    }

    fn note(&mut self, at: Instant, who: EventSource, event: Event, state: Option<&SenderState>) {
        self.digest.record(at, who, event, state);
        if let Some(text) = &mut self.text {
            text.push(format!("{at:?} {who:?} {event:?} {state:?}"));
        }
    }
}

impl Recorder for Events {
    const ON: bool = true;

    fn record(&mut self, at: Instant, who: EventSource, event: Event, state: Option<&SenderState>) {
        if self.at != Some(at) {
            self.end_instant();
            self.at = Some(at);
        }
        match event {
            Event::SendLimited(_) => drop(self.limits.insert(who, event)),
            _ => self.note(at, who, event, state),
        }
    }
}

impl sim::Observer for Events {}

/// Runs a scenario without some of the engine's shortened paths; `text`: with every event.
fn the_long_way<const WITHOUT: u8>(scenario: &Scenario, text: bool) -> (Events, RunOutcome) {
    let text = text.then(Vec::new);
    let mut observer = LongWay::<Events, WITHOUT>(Events { text, ..Events::default() });
    let outcome = sim::run(scenario, &mut observer).unwrap();
    observer.0.end_instant();
    (observer.0, outcome)
}

/// The first event that differs without those shortened paths, or how the outcomes differ.
fn difference<const WITHOUT: u8>(scenario: &Scenario) -> Option<String> {
    let (short, long) =
        (the_long_way::<0>(scenario, false), the_long_way::<WITHOUT>(scenario, false));
    let digests = |events: &Events| (events.digest.value(), events.digest.events());
    if digests(&short.0) == digests(&long.0) && short.1 == long.1 {
        return None;
    }
    let (short, long) =
        (the_long_way::<0>(scenario, true), the_long_way::<WITHOUT>(scenario, true));
    let (before, after) = (short.0.text?, long.0.text?);
    let at = (0..before.len().max(after.len())).find(|&at| before.get(at) != after.get(at));
    let shown = |events: &[String], at| events.get(at).cloned().unwrap_or_else(|| "nothing".into());
    Some(match at {
        Some(at) => format!(
            "event {at} without {WITHOUT:#b}:\n{}\ninstead of\n{}",
            shown(&after, at),
            shown(&before, at)
        ),
        None => format!("without {WITHOUT:#b} {:?}\ninstead of {:?}", long.1, short.1),
    })
}

/// Changes the controllers of the hosts.
fn exchange_controllers(scenario: &mut Scenario, which: [u8; 3]) {
    for (host, which) in scenario.hosts.iter_mut().zip(which) {
        let stack = tcp(host);
        stack.cc = match (which, stack.profile.family) {
            (0, _) => stack.cc,
            (1, Family::Linux) => cc::Algorithm::Bbr,
            _ => stack.profile.controller(),
        };
    }
}

/// Inserts pauses long enough for endpoints to become idle.
fn slow_down(scenario: &mut Scenario, pause: Duration, dialogues: bool) {
    for flow in &mut scenario.flows {
        flow.start += pause;
        let App::Paced { chunk, every, bytes, .. } = flow.app else { continue };
        let (every, bytes) = (every + pause, bytes.map(|all| Bytes(all.get() / 50)));
        flow.app = if dialogues {
            App::Requests { request: Bytes(100), response: chunk, think: every, count: Some(5) }
        } else {
            App::Paced { chunk, every, bytes, blocking: true }
        };
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn runs_are_physically_consistent(world in a_world()) {
        check(&world.0);
    }

    #[test]
    fn small_buffers_stall_no_transfer(
        mut world in a_world(),
        sizes in [4_000..100_000_u64, 4_000..100_000, 4_000..100_000],
    ) {
        shrink_buffers(&mut world.0, sizes);
        check(&world.0);
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn shortened_paths_do_not_change_results(
        mut world in a_world(),
        which in [0..4_u8, 0..4, 0..4],
        sizes in proptest::option::of([4_000..100_000_u64, 4_000..100_000, 4_000..100_000]),
        (taps, holds) in any::<(bool, bool)>(),
    ) {
        if let Some(sizes) = sizes {
            shrink_buffers(&mut world.0, sizes);
        }
        exchange_controllers(&mut world.0, which);
        for host in &mut world.0.hosts {
            if let BurstRule::Linux(rule) = &mut tcp(host).profile.burst {
                rule.device_holds = holds;
            }
        }
        if !taps {
            world.0.taps.clear();
        }
        if let Some(all) = difference::<{ Shortcuts::ALL.bits() }>(&world.0) {
            let one_by_one = [
                difference::<{ Shortcuts::ARRIVAL.bits() }>(&world.0),
                difference::<{ Shortcuts::CALM_ACK.bits() }>(&world.0),
                difference::<{ Shortcuts::IDLE_PASS.bits() }>(&world.0),
                difference::<{ Shortcuts::TRAIN.bits() }>(&world.0),
                difference::<{ Shortcuts::FULL_PACKET.bits() }>(&world.0),
                difference::<{ Shortcuts::BURST.bits() }>(&world.0),
                difference::<{ Shortcuts::ELEMENT.bits() }>(&world.0),
                difference::<{ Shortcuts::HOST.bits() }>(&world.0),
            ];
            let one_by_one: Vec<_> = one_by_one.into_iter().flatten().collect();
            prop_assert!(false, "{}\n{}", one_by_one.join("\n"), all);
        }
    }
}

proptest! {
    // Hibernating an endpoint after every event dominates the run time.
    #![proptest_config(ProptestConfig { cases: config().cases / 8, ..config() })]

    #[test]
    fn hibernation_does_not_change_results(
        mut world in a_world(),
        pause in 0..5_000_u64,
        dialogues in any::<bool>(),
        which in [0..4_u8, 0..4, 0..4],
        sizes in proptest::option::of([4_000..100_000_u64, 4_000..100_000, 4_000..100_000]),
    ) {
        if let Some(sizes) = sizes {
            shrink_buffers(&mut world.0, sizes);
        }
        exchange_controllers(&mut world.0, which);
        slow_down(&mut world.0, Duration::from_millis(pause), dialogues);
        world.0.taps.clear();
        prop_assert_eq!(happens(&world.0, true), happens(&world.0, false));
    }
}
