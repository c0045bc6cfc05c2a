//! Random worlds on the wire: our endpoints and paths between random hosts, one of them or both this
//! machine's own TCP. Whatever the path does, every byte arrives once and in order. Needs the privilege
//! to make network namespaces; without it the test says so and passes. So many as one likes:
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

use net::link::Limit;
use packet::IpVersion;
use record::Off;
use sim::scenario::{Element, GilbertElliott, Only, Rule, reverse};
use units::{Bytes, Duration, Rate, Ratio, Stream};
use world::{World, share};

/// Worlds of an ordinary run.
const USUAL: u64 = 100;
/// Worlds at a time: most of their time they wait.
const AT_A_TIME: usize = 10;

#[expect(clippy::disallowed_methods, reason = "a test's own size, not a run's")]
fn wanted() -> u64 {
    let text = std::env::var("ACKCLOCK_WIRE_WORLDS").ok();
    text.map_or(USUAL, |text| text.parse().expect("ACKCLOCK_WIRE_WORLDS is a whole number"))
}

/// Whose TCP is this program's.
#[derive(Debug, Clone, Copy)]
enum Ours {
    Sender,
    Receiver,
    Neither,
}

fn micros(draws: &mut Stream, most: u64) -> Duration {
    Duration::from_micros(draws.below(most))
}

fn fault(draws: &mut Stream) -> Element {
    let only = if draws.below(2) == 0 { Only::All } else { Only::Data };
    let percent = |draws: &mut Stream, most| share(draws.below(most), 1_000);
    match draws.below(9) {
        0 | 1 => Element::Loss { rule: percent(draws, 30), only },
        2 => {
            let ratio = |part, whole| Ratio::new(part, whole).unwrap();
            let channel =
                GilbertElliott { p: ratio(1, 200), r: ratio(1, 3), h: ratio(0, 1), k: ratio(1, 1) };
            Element::Loss { rule: Rule::GilbertElliott(channel), only }
        }
        3 => Element::Duplicate { rule: percent(draws, 50), only },
        4 => Element::Corrupt { rule: percent(draws, 10), only },
        5 => Element::Reverse(reverse::Params {
            group: NonZeroU32::new(2 + draws.below(4) as u32).unwrap(),
            gap: micros(draws, 300),
            timeout: Duration::from_millis(1),
            only,
        }),
        6 => Element::Displace {
            rule: percent(draws, 50),
            places: NonZeroU32::new(1 + draws.below(6) as u32).unwrap(),
            timeout: Duration::from_millis(3),
            only,
        },
        7 => Element::Late { rule: percent(draws, 30), by: micros(draws, 5_000), only },
        _ => Element::Jitter { most: micros(draws, 2_000) },
    }
}

fn road(draws: &mut Stream, back: bool) -> Vec<Element> {
    let mut road = Vec::new();
    for _ in 0..draws.below(4) {
        road.push(fault(draws));
    }
    if back && draws.below(6) == 0 {
        let bytes = Bytes(1_448 * (1 + draws.below(8)));
        road.push(Element::Thin { bytes, timeout: Duration::from_millis(4) });
    }
    if draws.below(3) > 0 {
        let rate = Rate::from_bits_per_second(20_000_000 + draws.below(500_000_000)).unwrap();
        road.push(Element::Link { rate, limit: Limit::Packets(30 + draws.below(500) as u32) });
    }
    road.push(Element::Delay(micros(draws, 3_000)));
    road
}

/// World `number`: what it is, its bytes, who is ours.
fn draw(number: u64) -> (World, u64, Ours) {
    let mut draws = Stream::named(number, "wire world", "test");
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
    scenario.paths[0].forward = road(&mut draws, false);
    scenario.paths[0].reverse = road(&mut draws, true);
    (world, bytes, ours)
}

#[test]
fn whatever_the_path_does_every_byte_arrives_once_and_in_order() {
    if world::skipped() {
        return;
    }
    let (wanted, next) = (wanted(), AtomicU64::new(0));
    let again = Mutex::new(0);
    let worker = || loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= wanted {
            return;
        }
        let (world, bytes, ours) = draw(number);
        let done = match ours {
            Ours::Sender => world.run(true, &mut Off),
            Ours::Receiver => world.run(false, &mut Off),
            Ours::Neither => world.run_between_kernels(&mut Off),
        };
        let path = &world.scenario.paths[0];
        let profile = world.scenario.hosts[0].stack.profile_name();
        let what = format!("world {number}, {profile}, {ours:?} ours: {path:?}");
        world::assert_whole(&done, bytes, &what);
        *again.lock().unwrap() += done.outcome.flows[0].retransmitted_segments;
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_A_TIME).map(|_| scope.spawn(worker)).collect();
        for worker in workers {
            worker.join().unwrap();
        }
    });
    let again = again.into_inner().unwrap();
    world::say(&format!("{wanted} worlds, {again} segments sent again"));
    assert!(again > wanted, "paths that lose nothing prove little");
}
