//! Applications, on paths simple enough to compute by hand.

mod common;

use ackclock_sim as sim;
use common::{Lots, MBIT, all_taps, bulk, host, ms, pair, route, tcp};
use packet::{Flags, Segment};
use record::NullRecorder;
use record::{Event, EventSource, Recorder, SenderState};
use sim::scenario::{
    App, Close, ElementSpec, FlowSpec, KeepaliveSpec, OnPeriod, OutageMode, Pause, ReadPattern,
    Scenario,
};
use sim::{Latency, LatencyKind, Observer};
use tcp::profile::ReceiveBufferRule;
use units::{Bytes, Duration, Instant};

const PROFILES: [&str; 2] = ["freebsd-13.2", "linux-6.18"];

/// One flow over 10 ms each way.
fn run(profile: &str, app: App) -> sim::FlowOutcome {
    let hosts = [host("client", profile), host("server", "linux-6.18")];
    let way = || vec![ElementSpec::Delay(ms(10))];
    let scenario = pair(hosts, way(), way(), FlowSpec { app, ..bulk(0) });
    sim::run(&scenario, &mut NullRecorder).unwrap().flows.remove(0)
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
        let (p95, p99) = (Some(trip), Some(trip));
        let kind = LatencyKind::Requests;
        let latency = Latency { kind, requests: 5, min: trip, median: trip, p95, p99, max: trip };
        assert_eq!(flow.latency, Some(latency));
        assert!(flow.finished);
        // The responses are counted, and the side that sends them.
        assert_eq!(flow.bytes, Bytes(5_000));
        assert_eq!(flow.profile, "linux-6.18");
        // The handshake, five round trips, four think times between them.
        assert_eq!(flow.duration, ms(20 + 5 * 20 + 4 * 30));
    }
}

#[test]
fn a_long_response_takes_a_round_trip_per_window() {
    // 30 full segments: ten in the initial window, then twice that number (RFC 6928, slow start).
    let response = Bytes(30 * 1_448);
    let app = App::Requests { request: Bytes(100), response, think: ms(0), count: Some(1) };
    let flow = run("linux-6.18", app);
    assert_eq!(flow.latency.map(|latency| latency.max), Some(ms(20 + 20)));
}

#[test]
fn bursts_of_bytes_and_fixed_pauses() {
    for profile in PROFILES {
        // Ten full segments: an initial window.
        let on = OnPeriod::Bytes(Bytes(14_480));
        let bytes = Some(Bytes(3 * 14_480));
        let flow = run(profile, App::OnOff { on, off: Pause::Fixed(ms(100)), bytes });
        assert!(flow.finished);
        assert_eq!(flow.bytes, Bytes(3 * 14_480));
        // Written at 20, 120 and 220 ms, plus 10 ms of delay.
        assert_eq!(flow.duration, ms(230), "{profile}");
        assert_eq!(flow.latency, None);
    }
}

#[test]
fn random_pauses_depend_on_the_seed_and_the_flow_name() {
    let hosts = || [host("client", "linux-6.18"), host("server", "linux-6.18")];
    let way = || vec![ElementSpec::Delay(ms(10))];
    let off = Pause::Between { least: ms(50), most: ms(150) };
    let app = App::OnOff { on: OnPeriod::Bytes(Bytes(1_448)), off, bytes: Some(Bytes(14_480)) };
    let duration = |seed, name: &str| {
        let mut scenario = pair(
            hosts(),
            way(),
            way(),
            FlowSpec { app: app.clone(), name: name.into(), ..bulk(0) },
        );
        scenario.seed = seed;
        sim::run(&scenario, &mut NullRecorder).unwrap().flows[0].duration
    };
    let base = duration(1, "a");
    assert_eq!(base, duration(1, "a"));
    assert_ne!(base, duration(2, "a"));
    assert_ne!(base, duration(1, "b"));
    // Nine pauses, plus the handshake and the path delay.
    let [least, most] = [50, 150].map(|pause| Duration::from_millis(30 + 9 * pause));
    assert!((least..=most).contains(&base), "{base}");
}

/// Segments that the sink of a run sends, and reads of its application.
#[derive(Default)]
struct AtSink {
    /// Window fields of its ACKs, without the handshake's.
    windows: Vec<u16>,
    reads: Vec<(Instant, u32)>,
    resets: u64,
    /// Segments of the source without payload.
    bare: Vec<Instant>,
}

impl Recorder for AtSink {
    const ON: bool = true;

    fn record(&mut self, at: Instant, who: EventSource, event: Event, _: Option<&SenderState>) {
        if let Event::AppRead { bytes, .. } = event
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

fn watched(scenario: &Scenario) -> (sim::RunOutcome, AtSink) {
    let mut seen = AtSink::default();
    let (outcome, _) = sim::audit::run_audited(scenario, &mut seen).unwrap();
    (outcome, seen)
}

#[test]
fn a_slow_reader_sets_the_rate_and_its_window_closes_and_opens() {
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
            let reads = Some(ReadPattern { chunk: Bytes(16_384), every: ms(20) });
            let way = || route(100 * MBIT, ms(15));
            let flow = FlowSpec { reads, ..bulk(3_000_000) };
            let mut scenario = pair(hosts, way(), way(), flow);
            scenario.taps = all_taps(2);
            scenario.taps.retain(|tap| tap.place == sim::scenario::TapPoint::Stack);
            let (outcome, seen) = watched(&scenario);
            let flow = &outcome.flows[0];
            assert!(flow.finished && flow.bytes == Bytes(3_000_000), "{sender} {sink}");
            // Every 20 ms, and whole chunks once slow start keeps up: the reader sets the rate. In
            // whole chunks it would be (3,000,000 - 1448) / 16,384 = 183.02 plus the first segment,
            // 184 intervals; the kernel's took 3.680 s from the first byte to the last.
            let intervals = seen.reads.windows(2).map(|two| two[1].0.since(two[0].0));
            assert!(intervals.clone().all(|span| span == ms(20)), "{sender} {sink}");
            assert!((184..=186).contains(&intervals.count()), "{sender} {sink}");
            let whole = &seen.reads[8..seen.reads.len() - 1];
            assert!(whole.iter().all(|&(_, bytes)| bytes == 16_384), "{sender} {sink}");
            // It closes to a small fraction of its size, opens again, and nothing is retransmitted.
            let most = *seen.windows.iter().max().unwrap();
            let shut =
                seen.windows.iter().position(|&window| 4 * u32::from(window) < u32::from(most));
            let shut = shut.unwrap_or_else(|| panic!("{sender} {sink}: {:?}", seen.windows));
            let least = *seen.windows[shut..].iter().min().unwrap();
            assert!(*seen.windows.last().unwrap() > 2 * least, "{sender} {sink}");
            // FreeBSD's RACK allows 40 ms for a delayed acknowledgment of the end of the data,
            // which its FIN waits for; the RFCs' receiver takes 200 ms, and is probed.
            let probed = sender.starts_with("freebsd-rack") && sink == "rfc";
            let repeated = if probed { 2 } else { 0 };
            assert_eq!(flow.retransmitted_segments, repeated, "{sender} {sink}");
        }
    }
}

/// Bytes of each read at the sink, the first of which may be slow.
fn read_sizes(
    reads: Option<ReadPattern>,
    way: Duration,
    app: App,
    moderation: Duration,
) -> Vec<u32> {
    let mut hosts = [host("sender", "freebsd-14.3"), host("sink", "freebsd-14.3")];
    hosts[1].offload.moderation = moderation;
    let delay = || vec![ElementSpec::Delay(way)];
    let scenario = pair(hosts, delay(), delay(), FlowSpec { app, reads, nodelay: true, ..bulk(0) });
    watched(&scenario).1.reads.into_iter().map(|(_, bytes)| bytes).collect()
}

#[test]
fn a_reader_runs_after_the_interrupt() {
    // The thread of the interrupt is not preempted by the process that it wakes: the initial window
    // of ten segments, which arrives in one pass, is read at once.
    let ten = App::Bulk { bytes: Some(Bytes(14_480)), write: None };
    assert_eq!(read_sizes(None, ms(10), ten.clone(), Duration::from_micros(200)), [14_480]);
    assert_eq!(read_sizes(None, ms(10), ten, Duration::ZERO).len(), 10);
}

#[test]
fn of_a_simultaneous_arrival_and_read_the_one_scheduled_first_is_first() {
    // 100 bytes every 10 ms, a read every 20 ms: each read coincides with an arrival.
    let app =
        App::Paced { chunk: Bytes(100), every: ms(10), bytes: Some(Bytes(500)), blocking: true };
    let reads = Some(ReadPattern { chunk: Bytes(1_000), every: ms(20) });
    assert_eq!(read_sizes(reads, ms(15), app.clone(), Duration::ZERO)[..2], [100, 100]);
    assert_eq!(read_sizes(reads, ms(25), app, Duration::ZERO)[..2], [100, 200]);
}

#[test]
fn a_slow_reader_learns_of_the_end_with_its_next_read() {
    // Handshake 20 ms, data and FIN 10 ms later; the reader pauses for 500 ms before it reads again,
    // gets the end of the stream and closes, which takes a round trip more.
    let hosts = [host("client", "linux-6.18"), host("server", "linux-6.18")];
    let way = || vec![ElementSpec::Delay(ms(10))];
    let reads = Some(ReadPattern { chunk: Bytes(10_000), every: ms(500) });
    let scenario = pair(hosts, way(), way(), FlowSpec { reads, ..bulk(1_000) });
    let outcome = sim::run(&scenario, &mut NullRecorder).unwrap();
    assert_eq!(outcome.flows[0].duration, ms(30), "all data is read");
    assert_eq!(outcome.ended, Instant::ZERO + ms(550));
}

#[test]
fn an_application_may_reset_instead_of_closing() {
    for profile in PROFILES {
        let hosts = [host("client", profile), host("server", "linux-6.18")];
        let way = || vec![ElementSpec::Delay(ms(10))];
        let flow = FlowSpec { close: Close::Reset, ..bulk(20_000) };
        let mut scenario = pair(hosts, way(), way(), flow);
        scenario.taps = all_taps(2);
        scenario.taps.retain(|tap| tap.place == sim::scenario::TapPoint::Stack);
        let (outcome, seen) = watched(&scenario);
        let flow = &outcome.flows[0];
        // The stack accepts all data at once and has ten segments in flight when the reset follows.
        assert_eq!(flow.bytes, Bytes(14_480), "{profile}");
        assert!(!flow.finished, "{profile}: the end of the stream was never seen");
        assert_eq!(seen.resets, 2, "{profile}: captured at both hosts");
        // Handshake 20 ms, one-way delay of data and reset 10 ms.
        assert_eq!(outcome.ended, Instant::ZERO + ms(30), "{profile}");
    }
}

#[test]
fn an_idle_connection_is_probed_with_keepalive() {
    for profile in PROFILES {
        let hosts = || [host("client", profile), host("server", profile)];
        let way = || vec![ElementSpec::Delay(ms(10))];
        // One byte at 20 ms, the next a day later.
        let app = App::Paced {
            chunk: Bytes(1),
            every: Duration::from_secs(86_400),
            bytes: Some(Bytes(2)),
            blocking: true,
        };
        let probes = |keepalive| {
            let flow = FlowSpec { app: app.clone(), keepalive, ..bulk(0) };
            let mut scenario = pair(hosts(), way(), way(), flow);
            scenario.duration = Duration::from_secs(86_000);
            scenario.taps = all_taps(2);
            scenario.taps.retain(|tap| tap.place == sim::scenario::TapPoint::Stack);
            let (outcome, seen) = watched(&scenario);
            assert_eq!(outcome.flows[0].bytes, Bytes(1), "{profile}");
            // After the SYN and the ACK of the handshake.
            seen.bare[2..].to_vec()
        };
        assert!(probes(None).is_empty(), "{profile}");
        // Both sides probe after two hours of silence. The answer to a probe ends the silence for
        // the prober, and the probe that for the other side.
        let found = probes(Some(KeepaliveSpec::default()));
        let hours = found.iter().map(|at| at.as_nanos() / 3_600_000_000_000);
        assert!(hours.clone().all(|hour| hour % 2 == 0), "{profile} {found:?}");
        assert!(hours.max() == Some(22), "{profile} {found:?}");
        let often =
            KeepaliveSpec { idle: Some(Duration::from_secs(60)), ..KeepaliveSpec::default() };
        assert!(probes(Some(often)).len() > 1_000, "{profile}");
    }
}

/// On and off 77,000 times a second, over a path whose reverse route is cut from 50 ms to a minute.
fn hectic(during: OutageMode) -> Scenario {
    let on = OnPeriod::For(Duration::from_micros(2));
    let off = Pause::Fixed(Duration::from_micros(11));
    let app = App::OnOff { on, off, bytes: Some(Bytes(500_000)) };
    let hosts = [host("client", "freebsd-14.3"), host("server", "freebsd-14.3")];
    let cut = ElementSpec::Outage { from: ms(50), until: ms(60_000), period: None, during };
    let back = vec![ElementSpec::Delay(ms(10)), cut];
    pair(hosts, route(100 * MBIT, ms(10)), back, FlowSpec { app, ..bulk(0) })
}

#[test]
fn a_burst_waits_for_buffer_space() {
    let mut lots = Lots(0);
    let outcome = sim::run(&hectic(OutageMode::Hold), &mut lots).unwrap();
    assert!(outcome.flows[0].finished && outcome.ended > Instant::ZERO + ms(60_000));
    assert_eq!(lots.0, 0);
}

#[test]
fn no_writes_follow_an_aborted_connection() {
    let mut scenario = hectic(OutageMode::Drop);
    // Aborted soon after the last answer, long before the second flow starts.
    scenario.flows[0].keepalive =
        Some(KeepaliveSpec { idle: Some(ms(100)), interval: Some(ms(100)), count: Some(2) });
    scenario.flows.push(FlowSpec { name: "later".into(), start: ms(90_000), ..bulk(1_000) });
    let mut lots = Lots(0);
    let outcome = sim::run(&scenario, &mut lots).unwrap();
    assert!(!outcome.flows[0].finished && outcome.flows[1].finished);
    assert_eq!(lots.0, 0);
}

#[test]
fn a_linux_reader_acknowledges_before_it_closes() {
    // Small writes: the rest of them and the FIN arrive in one segment. The read sends the ACK that
    // is due (tcp_cleanup_rbuf), and only then the reader learns of the end and closes: a 6.12 in
    // User-Mode Linux sends an ACK of 1088, then the FIN.
    let hosts = [host("client", "linux-6.12"), host("server", "linux-6.12")];
    let app = App::Paced {
        chunk: Bytes(29),
        every: Duration::from_micros(46),
        bytes: Some(Bytes(1_086)),
        blocking: true,
    };
    let flow = FlowSpec { app, ..bulk(0) };
    let way = |micros| vec![ElementSpec::Delay(Duration::from_micros(micros))];
    let mut scenario = pair(hosts, way(16_708), way(29_094), flow);
    scenario.taps = all_taps(2);
    scenario.taps.retain(|tap| tap.host == 1 && tap.place == sim::scenario::TapPoint::Stack);
    let mut seen = Answers::default();
    sim::run(&scenario, &mut seen).unwrap();
    let isn = seen.0[0].ack;
    let sent = seen.0.iter().map(|s| (s.flags.has(Flags::FIN), s.ack.0.wrapping_sub(isn.0) + 1));
    let sent: Vec<_> = sent.collect();
    let [.., ack, fin] = sent[..] else { panic!("{sent:?}") };
    assert_eq!([ack, fin], [(false, 1_088), (true, 1_088)], "{sent:?}");
}

/// The first data segments that the connecting side's capture has: payload, and whether PSH is set.
fn captured(profile: &str, tso: bool) -> Vec<(u32, bool)> {
    struct Data(Vec<(u32, bool)>);
    impl Recorder for Data {
        const ON: bool = false;

        fn record(&mut self, _: Instant, _: EventSource, _: Event, _: Option<&SenderState>) {}
    }
    impl Observer for Data {
        fn tap(&mut self, _: Instant, _: usize, outbound: bool, segment: &Segment) {
            if outbound && segment.payload > 0 {
                self.0.push((segment.payload, segment.flags.has(Flags::PSH)));
            }
        }
    }
    let mut hosts = [host("a", profile), host("b", profile)];
    hosts[0].offload.tso = tso;
    let mut scenario =
        pair(hosts, route(10 * MBIT, ms(20)), route(10 * MBIT, ms(20)), bulk(300_000));
    scenario.taps = vec![sim::scenario::TapSpec { host: 0, place: sim::scenario::TapPoint::Stack }];
    let mut seen = Data(Vec::new());
    sim::run(&scenario, &mut seen).unwrap();
    seen.0.truncate(4);
    seen.0
}

#[test]
fn linux_builds_bursts_for_a_card_without_tso_and_splits_them_itself() {
    // Bursts of two segments end with PSH (__tcp_transmit_skb), whoever splits them.
    let (one, two) = (1_448, 2_896);
    assert_eq!(captured("linux-6.18", true), [(two, true); 4]);
    assert_eq!(
        captured("linux-6.18", false),
        [(one, false), (one, true), (one, false), (one, true)]
    );
    assert_eq!(captured("freebsd-14.3", false), [(one, false); 4]);
}

/// The segments that the listening side sends.
#[derive(Default)]
struct Answers(Vec<Segment>);

impl Recorder for Answers {
    const ON: bool = false;

    fn record(&mut self, _: Instant, _: EventSource, _: Event, _: Option<&SenderState>) {}
}

impl Observer for Answers {
    fn tap(&mut self, _: Instant, _: usize, _: bool, segment: &Segment) {
        if segment.dir == packet::Dir::Reverse {
            self.0.push(*segment);
        }
    }
}
