//! Conversion of valid texts.

use core::num::NonZeroU32;

use cc::Algorithm;
use net::link::QueueLimit;
use net::offload::{GroParams, HashRule, LroParams};
use packet::IpVersion;
use sim::scenario::{App, ElementSpec, ReceiveOffloadSpec, StackSpec, TapPoint, TapSpec, TcpStack};
use tcp::profile::{DelayedAckRule, ReceiveBufferRule, SendBufferRule, TcpProfile};
use units::{Bytes, Duration, Rate};

use super::*;
use crate::units_text::MAX_DURATION;

#[test]
fn every_key_is_converted() {
    let scenario = loaded(FULL, &[]).unwrap().scenario;
    assert_eq!(scenario.title, "1 MB over 100 ms");
    assert_eq!(scenario.seed, 7);
    assert_eq!(scenario.duration, Duration::from_secs(60));

    let [sender, sink] = scenario.hosts.as_slice() else { panic!("two hosts") };
    assert_eq!(sender.name, "sender");
    let tcp = sender.stack.tcp().unwrap();
    assert_eq!(tcp.cc, Algorithm::NewReno);
    assert_eq!(tcp.profile.mtu, 9_000);
    assert_eq!(tcp.profile.newreno.abc_l_var, 44);
    let SendBufferRule::FreeBsd { space, .. } = tcp.profile.send_buffer else {
        panic!("of FreeBSD")
    };
    assert_eq!(space, Bytes(65_536));
    assert!(matches!(tcp.profile.acks, DelayedAckRule::FreeBsd { delayed: false, .. }));
    assert_eq!(sender.delay, Duration::from_micros(200));
    assert_eq!(tcp.clock_phase, Duration::from_micros(700));
    assert_eq!((tcp.isn, tcp.timestamp), (Some(205_083_268), Some(495_212_525)));
    assert!(sender.offload.tso);
    assert_eq!(sender.offload.flush, Duration::from_micros(5));
    assert_eq!(sender.offload.budget.map(NonZeroU32::get), Some(16));
    let lro = LroParams { ack_limit: 4, length_limit: 65_535, counts_pure_acks: true, entries: 9 };
    assert_eq!(sender.offload.receive, ReceiveOffloadSpec::Lro(lro));
    assert!(matches!(sender.offload.rss_hash, HashRule::Decreasing(four) if four.get() == 4));

    let tcp = sink.stack.tcp().unwrap();
    assert_eq!(tcp.cc, Algorithm::Reno);
    assert_eq!((tcp.isn, tcp.timestamp, sink.delay), (None, None, Duration::ZERO));
    let gro = GroParams {
        max_size: 65_536,
        max_packets: 45,
        ends_at_push: false,
        same_timestamps: false,
    };
    assert_eq!(sink.offload.receive, ReceiveOffloadSpec::Gro(gro));
    let ReceiveBufferRule::Linux { rmem, .. } = tcp.profile.receive_buffer else {
        panic!("of Linux")
    };
    assert_eq!(rmem, [Bytes(4_096), Bytes(131_072), Bytes(6_291_456)]);

    let [bulk, chat] = scenario.flows.as_slice() else { panic!("two flows") };
    assert_eq!((bulk.path, bulk.from, bulk.to), (0, 0, 1));
    assert_eq!(bulk.start, Duration::from_millis(1_500));
    assert_eq!(bulk.app, App::Bulk { bytes: Some(Bytes(1_000_000)), write: None });
    assert_eq!((bulk.ip, bulk.nodelay), (IpVersion::V6, true));
    assert_eq!((chat.path, chat.from, chat.to), (0, 1, 0));
    assert_eq!((chat.ip, chat.nodelay), (IpVersion::V4, false));
    let every = Duration::from_millis(40);
    assert_eq!(chat.app, App::Paced { chunk: Bytes(20_000), every, bytes: None, blocking: true });

    let taps =
        [TapSpec { host: 0, place: TapPoint::Stack }, TapSpec { host: 1, place: TapPoint::Wire }];
    assert_eq!(scenario.taps, taps);
}

#[test]
fn a_bdp_is_the_rate_times_the_delays_of_both_directions() {
    let scenario = loaded(FULL, &[]).unwrap().scenario;
    let path = &scenario.paths[0];
    // Half of 10^9 bit/s * (30 + 70) ms / 8 = 12,500,000 bytes.
    let rate = Rate::from_bits_per_second(1_000_000_000).unwrap();
    let link = ElementSpec::Link { rate, limit: QueueLimit::Bytes(Bytes(6_250_000)) };
    assert_eq!(path.forward, [link, ElementSpec::Delay(Duration::from_millis(30))]);
    assert_eq!(path.reverse, [ElementSpec::Delay(Duration::from_millis(70))]);
}

#[test]
fn omitted_keys_have_defaults() {
    let scenario = loaded(SMALL, &[]).unwrap().scenario;
    assert_eq!((scenario.title.as_str(), scenario.seed), ("", 1));
    assert_eq!(scenario.duration, MAX_DURATION);
    let profile = TcpProfile::named("freebsd-13.2").unwrap();
    let tcp = TcpStack::new(profile, Algorithm::NewReno);
    assert_eq!(scenario.hosts[0].stack, StackSpec::Tcp(tcp));
    assert_eq!(scenario.hosts[0].offload, sim::scenario::Offload::default());
    assert!(scenario.taps.is_empty());
}

#[test]
fn enabled_offloads_have_the_systems_limits() {
    let set = ["host.a.lro=true", "host.b.gro=true"];
    let scenario = loaded(SMALL, &set).unwrap().scenario;
    assert_eq!(scenario.hosts[0].offload.receive, ReceiveOffloadSpec::Lro(LroParams::FREEBSD_14));
    assert_eq!(scenario.hosts[1].offload.receive, ReceiveOffloadSpec::Gro(GroParams::LINUX));
    let scenario = loaded(SMALL, &["host.a.lro=false"]).unwrap().scenario;
    assert_eq!(scenario.hosts[0].offload.receive, ReceiveOffloadSpec::Off);
}

#[test]
fn the_rss_hash_is_the_flows_by_default() {
    let hash = |lro: &str| {
        loaded(SMALL, &[&format!("host.a.lro={lro}")]).unwrap().scenario.hosts[0].offload.rss_hash
    };
    assert_eq!(hash("true"), HashRule::Flow);
    assert_eq!(hash("{ rss_hash = \"flow\" }"), HashRule::Flow);
    assert_eq!(hash("{ rss_hash = \"random\" }"), HashRule::Random);
    assert_eq!(hash("{ rss_hash = { constant = 0 } }"), HashRule::Constant(0));
    let four = NonZeroU32::new(4).unwrap();
    assert_eq!(hash("{ rss_hash = { decreasing = 4 } }"), HashRule::Decreasing(four));
}

#[test]
fn hosts_are_numbered_in_the_order_of_the_text() {
    let text = SMALL.replace("host.a", "host.z").replace("\"a\"", "\"z\"");
    let scenario = loaded(&text, &[]).unwrap().scenario;
    let names: Vec<&str> = scenario.hosts.iter().map(|host| host.name.as_str()).collect();
    assert_eq!(names, ["z", "b"]);
}

#[test]
fn the_digest_without_overrides_is_that_of_the_file() {
    // printf 'host.a ... 1MB" } ]\n' | sha256sum, of coreutils.
    let loaded = loaded(SMALL, &[]).unwrap();
    assert_eq!(loaded.text, SMALL);
    assert_eq!(loaded.sha256, "6410ba8b770dc70a64596c1ce6e6ab2b51f7754fc166f22f4c63ae8f8120112a");
}
