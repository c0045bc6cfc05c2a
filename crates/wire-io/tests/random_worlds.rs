//! Random scenarios on the wire: one host or both are this machine's own TCP, the path is random.
//! Every byte must arrive once and in order. Needs the privilege to create network namespaces;
//! without it, the test prints so and passes. To run more of them:
//!
//! ```text
//! ACKCLOCK_WIRE_WORLDS=1000 cargo test --release -p ackclock-wire-io --test random_worlds -- --nocapture
//! ```
#![cfg(target_os = "linux")]

mod world;

use std::num::NonZeroU32;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use net::link::QueueLimit;
use packet::IpVersion;
use record::NullRecorder;
use sim::scenario::{ElementSpec, GilbertElliott, PacketClass, SelectionRule, reverse};
use units::{Bytes, Duration, RandomStream, Rate, Ratio};
use world::{World, share};

/// Default number of scenarios.
const USUAL: u64 = 100;
/// Scenarios run concurrently; they are mostly idle.
const AT_A_TIME: usize = 10;

#[expect(clippy::disallowed_methods, reason = "a test's own size, not a run's")]
fn wanted() -> u64 {
    let text = std::env::var("ACKCLOCK_WIRE_WORLDS").ok();
    text.map_or(USUAL, |text| text.parse().expect("ACKCLOCK_WIRE_WORLDS is a whole number"))
}

/// The simulated endpoint.
#[derive(Debug, Clone, Copy)]
enum Ours {
    Sender,
    Receiver,
    Neither,
}

fn micros(draws: &mut RandomStream, most: u64) -> Duration {
    Duration::from_micros(draws.below(most))
}

fn fault(draws: &mut RandomStream) -> ElementSpec {
    let only = if draws.below(2) == 0 { PacketClass::All } else { PacketClass::Data };
    let percent = |draws: &mut RandomStream, most| share(draws.below(most), 1_000);
    match draws.below(9) {
        0 | 1 => ElementSpec::Loss { rule: percent(draws, 30), only },
        2 => {
            let ratio = |part, whole| Ratio::new(part, whole).unwrap();
            let channel =
                GilbertElliott { p: ratio(1, 200), r: ratio(1, 3), h: ratio(0, 1), k: ratio(1, 1) };
            ElementSpec::Loss { rule: SelectionRule::GilbertElliott(channel), only }
        }
        3 => ElementSpec::Duplicate { rule: percent(draws, 50), only },
        4 => ElementSpec::Corrupt { rule: percent(draws, 10), only },
        5 => ElementSpec::Reverse(reverse::ReverseParams {
            group: NonZeroU32::new(2 + draws.below(4) as u32).unwrap(),
            gap: micros(draws, 300),
            timeout: Duration::from_millis(1),
            class: only,
        }),
        6 => ElementSpec::Displace {
            rule: percent(draws, 50),
            places: NonZeroU32::new(1 + draws.below(6) as u32).unwrap(),
            timeout: Duration::from_millis(3),
            only,
        },
        7 => ElementSpec::Late { rule: percent(draws, 30), by: micros(draws, 5_000), only },
        _ => ElementSpec::Jitter { most: micros(draws, 2_000) },
    }
}

fn route(draws: &mut RandomStream, back: bool) -> Vec<ElementSpec> {
    let mut route = Vec::new();
    for _ in 0..draws.below(4) {
        route.push(fault(draws));
    }
    if back && draws.below(6) == 0 {
        let bytes = Bytes(1_448 * (1 + draws.below(8)));
        route.push(ElementSpec::Thin { bytes, timeout: Duration::from_millis(4) });
    }
    if draws.below(3) > 0 {
        let rate = Rate::from_bits_per_second(20_000_000 + draws.below(500_000_000)).unwrap();
        route.push(ElementSpec::Link {
            rate,
            limit: QueueLimit::Packets(30 + draws.below(500) as u32),
        });
    }
    route.push(ElementSpec::Delay(micros(draws, 3_000)));
    route
}

/// Draws scenario `number`, with its bytes and simulated endpoint.
fn draw(number: u64) -> (World, u64, Ours) {
    let mut draws = RandomStream::named(number, "wire world", "test");
    let ours = match draws.below(5) {
        0 | 1 => Ours::Sender,
        2 | 3 => Ours::Receiver,
        _ => Ours::Neither,
    };
    let names = match ours {
        Ours::Neither => &["linux-6.18"][..],
        _ => &tcp::profile::NAMES[..],
    };
    let profile = names[draws.below(names.len() as u64) as usize];
    let bytes = 1_000_000 + draws.below(2_000_000);
    let mut world = World::new(profile, bytes);
    let scenario = &mut world.scenario;
    scenario.seed = number;
    if draws.below(3) == 0 {
        scenario.flows[0].ip = IpVersion::V6;
    }
    let tso = draws.below(2) == 0;
    for host in &mut scenario.hosts {
        host.offload.tso = tso;
    }
    if draws.below(2) == 0 {
        let tcp = scenario.hosts[0].stack.tcp_mut().unwrap();
        tcp.cc = cc::registry::find("cubic", tcp.profile.cubic).unwrap();
    }
    scenario.paths[0].forward = route(&mut draws, false);
    scenario.paths[0].reverse = route(&mut draws, true);
    (world, bytes, ours)
}

#[test]
fn every_byte_arrives_once_and_in_order_on_any_path() {
    if world::skipped() {
        return;
    }
    let (wanted, next) = (wanted(), AtomicU64::new(0));
    let retransmitted = Mutex::new(0);
    let worker = || loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= wanted {
            return;
        }
        let (world, bytes, ours) = draw(number);
        let done = match ours {
            Ours::Sender => world.run(true, &mut NullRecorder),
            Ours::Receiver => world.run(false, &mut NullRecorder),
            Ours::Neither => world.run_between_kernels(&mut NullRecorder),
        };
        let path = &world.scenario.paths[0];
        let profile = world.scenario.hosts[0].stack.profile_name();
        let what = format!("world {number}, {profile}, {ours:?} ours: {path:?}");
        world::assert_whole(&done, bytes, &what);
        *retransmitted.lock().unwrap() += done.outcome.flows[0].retransmitted_segments;
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_A_TIME).map(|_| scope.spawn(worker)).collect();
        for worker in workers {
            worker.join().unwrap();
        }
    });
    let retransmitted = retransmitted.into_inner().unwrap();
    world::say(&format!("{wanted} worlds, {retransmitted} segments retransmitted"));
    assert!(retransmitted > wanted, "the paths must lose packets");
}
