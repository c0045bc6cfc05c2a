//! What applications do, on paths simple enough to reckon by hand.

mod common;

use ackclock_sim as sim;
use common::{bulk, host, ms, pair};
use record::Off;
use sim::Latency;
use sim::scenario::{App, Burst, Element, Flow, Pause};
use units::{Bytes, Duration};

const PROFILES: [&str; 2] = ["freebsd-13.2", "linux-6.18"];

/// One flow over 10 ms each way.
fn run(profile: &str, app: App) -> sim::FlowOutcome {
    let hosts = [host("client", profile), host("server", "linux-6.18")];
    let way = || vec![Element::Delay(ms(10))];
    let scenario = pair(hosts, way(), way(), Flow { app, ..bulk(0) });
    sim::run(&scenario, &mut Off).unwrap().flows.remove(0)
}

#[test]
fn a_request_and_its_response_take_a_round_trip() {
    for profile in PROFILES {
        let flow = run(
            profile,
            App::Requests {
                request: Bytes(100),
                response: Bytes(1_000),
                think: ms(30),
                count: Some(5),
            },
        );
        let trip = ms(20);
        let latency = Latency { requests: 5, min: trip, median: trip, max: trip };
        assert_eq!(flow.latency, Some(latency));
        assert!(flow.finished);
        // The responses count, and the side that sends them.
        assert_eq!(flow.bytes, Bytes(5_000));
        assert_eq!(flow.profile, "linux-6.18");
        // The handshake, five round trips, four thoughts between them.
        assert_eq!(flow.duration, ms(20 + 5 * 20 + 4 * 30));
    }
}

#[test]
fn a_long_response_takes_a_round_trip_for_each_window() {
    // 30 full segments: ten in the initial window, then twice as many (RFC 6928, slow start).
    let response = Bytes(30 * 1_448);
    let app = App::Requests { request: Bytes(100), response, think: ms(0), count: Some(1) };
    let flow = run("linux-6.18", app);
    assert_eq!(flow.latency.map(|latency| latency.max), Some(ms(20 + 20)));
}

#[test]
fn bursts_of_bytes_and_fixed_pauses() {
    for profile in PROFILES {
        // Ten full segments: an initial window.
        let on = Burst::Bytes(Bytes(14_480));
        let bytes = Some(Bytes(3 * 14_480));
        let flow = run(profile, App::OnOff { on, off: Pause::Fixed(ms(100)), bytes });
        assert!(flow.finished);
        assert_eq!(flow.bytes, Bytes(3 * 14_480));
        // Written at 20, 120 and 220 ms, and 10 ms on the way.
        assert_eq!(flow.duration, ms(230), "{profile}");
        assert_eq!(flow.latency, None);
    }
}

#[test]
fn pauses_by_chance_follow_the_seed_and_the_name_of_the_flow() {
    let hosts = || [host("client", "linux-6.18"), host("server", "linux-6.18")];
    let way = || vec![Element::Delay(ms(10))];
    let off = Pause::Between { least: ms(50), most: ms(150) };
    let app = App::OnOff { on: Burst::Bytes(Bytes(1_448)), off, bytes: Some(Bytes(14_480)) };
    let duration = |seed, name: &str| {
        let mut scenario = pair(hosts(), way(), way(), Flow { app, name: name.into(), ..bulk(0) });
        scenario.seed = seed;
        sim::run(&scenario, &mut Off).unwrap().flows[0].duration
    };
    let base = duration(1, "a");
    assert_eq!(base, duration(1, "a"));
    assert_ne!(base, duration(2, "a"));
    assert_ne!(base, duration(1, "b"));
    // Nine pauses, and the handshake and the way before and behind them.
    let [least, most] = [50, 150].map(|pause| Duration::from_millis(30 + 9 * pause));
    assert!((least..=most).contains(&base), "{base}");
}
