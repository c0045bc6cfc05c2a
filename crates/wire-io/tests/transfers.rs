//! Our endpoints against this machine's own TCP. Needs the privilege to make network namespaces;
//! without it every test says so and passes.
#![cfg(target_os = "linux")]

mod world;

use record::Off;
use sim::scenario::{Element, Only, Rule};
use units::{Duration, Ratio};
use world::{World, share};

/// 5 % loss, duplication and reordering in both directions.
fn rough() -> Vec<Element> {
    vec![
        Element::Loss { rule: share(5, 100), only: Only::All },
        Element::Duplicate { rule: share(2, 100), only: Only::All },
        Element::Displace {
            rule: Rule::Share(Ratio::new(2, 100).unwrap()),
            places: std::num::NonZeroU32::new(3).unwrap(),
            timeout: Duration::from_millis(5),
            only: Only::All,
        },
        Element::Delay(Duration::from_micros(500)),
    ]
}

#[test]
fn every_byte_arrives_once_and_in_order() {
    if world::skipped() {
        return;
    }
    for profile in tcp::profile::NAMES {
        for send in [true, false] {
            let mut world = World::new(profile, 2_000_000);
            world.road(rough());
            let done = world.run(send, &mut Off);
            world::assert_whole(&done, 2_000_000, &format!("{profile}, send {send}"));
        }
    }
}

#[test]
fn a_clean_path_loses_nothing_over_both_versions_of_ip() {
    if world::skipped() {
        return;
    }
    for ip in [packet::IpVersion::V4, packet::IpVersion::V6] {
        for send in [true, false] {
            let mut world = World::new("freebsd-14.3", 20_000_000);
            world.scenario.flows[0].ip = ip;
            let done = world.run(send, &mut Off);
            world::assert_whole(&done, 20_000_000, &format!("{ip:?}, send {send}"));
            // (That nothing is sent again cannot be asked for: on a busy machine a timer may well fire
            // before the other side had its turn.)
            assert_eq!(done.overflowed, 0);
        }
    }
}

#[test]
fn two_kernels_over_our_path() {
    if world::skipped() {
        return;
    }
    let mut world = World::new("linux-6.18", 3_000_000);
    world.road(rough());
    let done = world.run_between_kernels(&mut Off);
    world::assert_whole(&done, 3_000_000, "between kernels");
    let flow = &done.outcome.flows[0];
    assert!(flow.fast_recoveries > 0 && flow.retransmitted_segments > 0, "{flow:?}");
    assert!(!done.flows[0].samples.is_empty());
}
