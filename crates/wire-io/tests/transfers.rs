//! Simulated endpoints against this machine's own TCP. Needs the privilege to create network
//! namespaces; without it, every test prints so and passes.
#![cfg(target_os = "linux")]

mod world;

use record::NullRecorder;
use sim::scenario::{ElementSpec, PacketClass, SelectionRule};
use units::{Duration, Ratio};
use world::{World, share};

/// 5 % loss, duplication and reordering in both directions.
fn rough() -> Vec<ElementSpec> {
    vec![
        ElementSpec::Loss { rule: share(5, 100), only: PacketClass::All },
        ElementSpec::Duplicate { rule: share(2, 100), only: PacketClass::All },
        ElementSpec::Displace {
            rule: SelectionRule::Share(Ratio::new(2, 100).unwrap()),
            places: std::num::NonZeroU32::new(3).unwrap(),
            timeout: Duration::from_millis(5),
            only: PacketClass::All,
        },
        ElementSpec::Delay(Duration::from_micros(500)),
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
            world.route(rough());
            let done = world.run(send, &mut NullRecorder);
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
            let done = world.run(send, &mut NullRecorder);
            world::assert_whole(&done, 20_000_000, &format!("{ip:?}, send {send}"));
            // Retransmissions are not checked: on a busy machine a timer can fire before the peer
            // is scheduled.
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
    world.route(rough());
    let done = world.run_between_kernels(&mut NullRecorder);
    world::assert_whole(&done, 3_000_000, "between kernels");
    let flow = &done.outcome.flows[0];
    assert!(flow.fast_recoveries > 0 && flow.retransmitted_segments > 0, "{flow:?}");
    assert!(!done.flows[0].samples.is_empty());
}
