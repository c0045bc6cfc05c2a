//! What applications do, on paths simple enough to reckon by hand.

mod common;

use ackclock_sim as sim;
use common::{Lots, MBIT, all_taps, bulk, host, ms, pair, road, tcp};
use packet::{Flags, Segment};
use record::Off;
use record::{Event, Recorder, SenderState, Who};
use sim::scenario::{App, Burst, Close, During, Element, Flow, Keepalive, Pause, Reads, Scenario};
use sim::{Latency, Observer};
use tcp::profile::ReceiveBufferRule;
use units::{Bytes, Duration, Instant};

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

/// What the sink of a run sends and what its application reads.
#[derive(Default)]
struct AtSink {
    /// Window fields of its ACKs, the handshake's not among them.
    windows: Vec<u16>,
    reads: Vec<(Instant, u32)>,
    resets: u64,
    /// Segments of the source without payload.
    bare: Vec<Instant>,
}

impl Recorder for AtSink {
    const ON: bool = true;

    fn record(&mut self, at: Instant, who: Who, event: Event, _: Option<&SenderState>) {
        if let Event::Read { bytes, .. } = event
            && who.host.0 == 1
        {
            self.reads.push((at, bytes));
        }
    }
}

impl Observer for AtSink {
    fn tap(&mut self, at: Instant, tap: usize, outbound: bool, segment: &Segment) {
        if segment.flags.has(Flags::RST) {
            self.resets += 1;
        }
        match (tap, outbound) {
            (1, true) if segment.syn_options().is_none() => self.windows.push(segment.window),
            (0, true) if segment.payload == 0 => self.bare.push(at),
            _ => {}
        }
    }
}

fn watched(scenario: &Scenario) -> (sim::Outcome, AtSink) {
    let mut seen = AtSink::default();
    let (outcome, _) = sim::audit::run_audited(scenario, &mut seen).unwrap();
    (outcome, seen)
}

#[test]
fn a_slow_reader_sets_the_pace_and_its_window_closes_and_opens() {
    // The recorded transfer h2_slowreader_reno: 3 MB over 100 Mbit/s and 15 ms each way, 16 KiB
    // read every 20 ms out of a buffer of 256 KiB.
    for sender in tcp::profile::NAMES {
        for sink in ["linux-6.18", "freebsd-14.3", "rfc"] {
            let mut hosts = [host("sender", sender), host("sink", sink)];
            let size = Bytes(262_144);
            match &mut tcp(&mut hosts[1]).profile.receive_buffer {
                ReceiveBufferRule::Linux { rmem, auto, .. } => (*rmem, *auto) = ([size; 3], false),
                ReceiveBufferRule::FreeBsd { space, auto, .. } => (*space, *auto) = (size, false),
                ReceiveBufferRule::Fixed { space } => *space = size,
            }
            let reads = Some(Reads { chunk: Bytes(16_384), every: ms(20) });
            let way = || road(100 * MBIT, ms(15));
            let flow = Flow { reads, ..bulk(3_000_000) };
            let mut scenario = pair(hosts, way(), way(), flow);
            scenario.taps = all_taps(2);
            scenario.taps.retain(|tap| tap.place == sim::scenario::TapPlace::Stack);
            let (outcome, seen) = watched(&scenario);
            let flow = &outcome.flows[0];
            assert!(flow.finished && flow.bytes == Bytes(3_000_000), "{sender} {sink}");
            // Every 20 ms, and whole chunks once slow start keeps up: the rate is the reader's. In
            // whole chunks it would be (3,000,000 - 1448) / 16,384 = 183.02 beside the first segment,
            // 184 intervals; the kernel's took 3.680 s from the first byte to the last.
            let intervals = seen.reads.windows(2).map(|two| two[1].0.since(two[0].0));
            assert!(intervals.clone().all(|span| span == ms(20)), "{sender} {sink}");
            assert!((184..=186).contains(&intervals.count()), "{sender} {sink}");
            let whole = &seen.reads[8..seen.reads.len() - 1];
            assert!(whole.iter().all(|&(_, bytes)| bytes == 16_384), "{sender} {sink}");
            // It closes to a small part of what it was, opens again, and nothing is sent twice.
            let most = *seen.windows.iter().max().unwrap();
            let shut =
                seen.windows.iter().position(|&window| 4 * u32::from(window) < u32::from(most));
            let shut = shut.unwrap_or_else(|| panic!("{sender} {sink}: {:?}", seen.windows));
            let least = *seen.windows[shut..].iter().min().unwrap();
            assert!(*seen.windows.last().unwrap() > 2 * least, "{sender} {sink}");
            // RACK of FreeBSD allows 40 ms for a delayed acknowledgment of the end of the data, which
            // its FIN waits for; the RFCs' receiver takes 200 ms, and is probed.
            let probed = sender.starts_with("freebsd-rack") && sink == "rfc";
            let again = if probed { 2 } else { 0 };
            assert_eq!(flow.retransmitted_segments, again, "{sender} {sink}");
        }
    }
}

/// Bytes of each read at the sink, the first of which may be slow.
fn read_sizes(reads: Option<Reads>, way: Duration, app: App, moderation: Duration) -> Vec<u32> {
    let mut hosts = [host("sender", "freebsd-14.3"), host("sink", "freebsd-14.3")];
    hosts[1].offload.moderation = moderation;
    let delay = || vec![Element::Delay(way)];
    let scenario = pair(hosts, delay(), delay(), Flow { app, reads, nodelay: true, ..bulk(0) });
    watched(&scenario).1.reads.into_iter().map(|(_, bytes)| bytes).collect()
}

#[test]
fn a_reader_runs_once_the_interrupt_is_over() {
    // The thread of the interrupt is not preempted by the process that it wakes: the initial window of ten
    // segments, which arrives in one pass, is read at once.
    let ten = App::Bulk { bytes: Some(Bytes(14_480)), write: None };
    assert_eq!(read_sizes(None, ms(10), ten, Duration::from_micros(200)), [14_480]);
    assert_eq!(read_sizes(None, ms(10), ten, Duration::ZERO).len(), 10);
}

#[test]
fn of_an_arrival_and_a_read_at_one_moment_the_one_planned_first_happens_first() {
    // 100 bytes every 10 ms, a read every 20 ms: each read coincides with an arrival.
    let app = App::Paced { chunk: Bytes(100), every: ms(10), bytes: Some(Bytes(500)) };
    let reads = Some(Reads { chunk: Bytes(1_000), every: ms(20) });
    assert_eq!(read_sizes(reads, ms(15), app, Duration::ZERO)[..2], [100, 100]);
    assert_eq!(read_sizes(reads, ms(25), app, Duration::ZERO)[..2], [100, 200]);
}

#[test]
fn an_application_may_reset_instead_of_closing() {
    for profile in PROFILES {
        let hosts = [host("client", profile), host("server", "linux-6.18")];
        let way = || vec![Element::Delay(ms(10))];
        let flow = Flow { close: Close::Reset, ..bulk(20_000) };
        let mut scenario = pair(hosts, way(), way(), flow);
        scenario.taps = all_taps(2);
        scenario.taps.retain(|tap| tap.place == sim::scenario::TapPlace::Stack);
        let (outcome, seen) = watched(&scenario);
        let flow = &outcome.flows[0];
        // The stack takes all at once and has ten segments on the way when the reset goes.
        assert_eq!(flow.bytes, Bytes(14_480), "{profile}");
        assert!(!flow.finished, "{profile}: the end of the stream was never seen");
        assert_eq!(seen.resets, 2, "{profile}: seen where it leaves and where it arrives");
        // Handshake 20 ms, the way of data and reset 10 ms.
        assert_eq!(outcome.ended, Instant::ZERO + ms(30), "{profile}");
    }
}

#[test]
fn a_silent_connection_is_probed_if_its_applications_want_it() {
    for profile in PROFILES {
        let hosts = || [host("client", profile), host("server", profile)];
        let way = || vec![Element::Delay(ms(10))];
        // One byte at 20 ms, the next a day later.
        let app = App::Paced {
            chunk: Bytes(1),
            every: Duration::from_secs(86_400),
            bytes: Some(Bytes(2)),
        };
        let probes = |keepalive| {
            let flow = Flow { app, keepalive, ..bulk(0) };
            let mut scenario = pair(hosts(), way(), way(), flow);
            scenario.duration = Duration::from_secs(86_000);
            scenario.taps = all_taps(2);
            scenario.taps.retain(|tap| tap.place == sim::scenario::TapPlace::Stack);
            let (outcome, seen) = watched(&scenario);
            assert_eq!(outcome.flows[0].bytes, Bytes(1), "{profile}");
            // Behind the SYN and the ACK of the handshake.
            seen.bare[2..].to_vec()
        };
        assert!(probes(None).is_empty(), "{profile}");
        // Both sides probe after two hours of silence. The answer to a probe ends the silence of
        // the side that asked, and the probe that of the other.
        let found = probes(Some(Keepalive::default()));
        let hours = found.iter().map(|at| at.as_nanos() / 3_600_000_000_000);
        assert!(hours.clone().all(|hour| hour % 2 == 0), "{profile} {found:?}");
        assert!(hours.max() == Some(22), "{profile} {found:?}");
        let often = Keepalive { idle: Some(Duration::from_secs(60)), ..Keepalive::default() };
        assert!(probes(Some(often)).len() > 1_000, "{profile}");
    }
}

/// On and off 77,000 times a second, over a road whose way back is cut from 50 ms to a minute on.
fn hectic(during: During) -> Scenario {
    let on = Burst::For(Duration::from_micros(2));
    let off = Pause::Fixed(Duration::from_micros(11));
    let app = App::OnOff { on, off, bytes: Some(Bytes(500_000)) };
    let hosts = [host("client", "freebsd-14.3"), host("server", "freebsd-14.3")];
    let cut = Element::Outage { from: ms(50), until: ms(60_000), during };
    let back = vec![Element::Delay(ms(10)), cut];
    pair(hosts, road(100 * MBIT, ms(10)), back, Flow { app, ..bulk(0) })
}

#[test]
fn a_burst_that_finds_no_room_waits_for_it() {
    let mut lots = Lots(0);
    let outcome = sim::run(&hectic(During::Held), &mut lots).unwrap();
    assert!(outcome.flows[0].finished && outcome.ended > Instant::ZERO + ms(60_000));
    assert_eq!(lots.0, 0);
}

#[test]
fn nobody_writes_to_a_connection_that_is_gone() {
    let mut scenario = hectic(During::Lost);
    // Given up soon after the last answer, long before the second flow begins.
    scenario.flows[0].keepalive =
        Some(Keepalive { idle: Some(ms(100)), interval: Some(ms(100)), count: Some(2) });
    scenario.flows.push(Flow { name: "later".into(), start: ms(90_000), ..bulk(1_000) });
    let mut lots = Lots(0);
    let outcome = sim::run(&scenario, &mut lots).unwrap();
    assert!(!outcome.flows[0].finished && outcome.flows[1].finished);
    assert_eq!(lots.0, 0);
}
