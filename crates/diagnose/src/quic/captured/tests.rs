//! Datagrams made by hand, with results from arithmetic.

use packet::Dir;
use packet::quic::LongPacketType;
use units::RandomStream;

use super::*;
use crate::rules::Severity;

const MS: u64 = 1_000_000;
const CLIENT: Dir = Dir::Forward;
const SERVER: Dir = Dir::Reverse;

fn datagram(dir: Dir, at: u64, len: u32, kinds: &[LongPacketType]) -> CapturedQuicDatagram {
    let mut packets = [0; PACKET_KINDS];
    kinds.iter().for_each(|&kind| packets[kind_index(kind)] += 1);
    packets[ONE_RTT] = u16::from(kinds.is_empty());
    let spin = kinds.is_empty().then_some(false);
    CapturedQuicDatagram { at, frame: at / MS, dir, len, ecn: 2, packets, spin }
}

fn analysis(datagrams: &[CapturedQuicDatagram]) -> CapturedQuicAnalysis {
    let mut analyzer = CapturedQuicAnalyzer::new();
    datagrams.iter().for_each(|one| analyzer.push(one));
    analyzer.finish().unwrap()
}

/// Captured 5 ms from the client and 20 ms from the server, one way.
fn handshake() -> Vec<CapturedQuicDatagram> {
    use LongPacketType::{Handshake, Initial};
    vec![
        datagram(CLIENT, 1_000 * MS, 1_200, &[Initial]),
        datagram(SERVER, 1_040 * MS, 1_200, &[Initial, Handshake]),
        datagram(SERVER, 1_040 * MS, 800, &[Handshake]),
        datagram(CLIENT, 1_050 * MS, 1_200, &[Initial, Handshake]),
        datagram(CLIENT, 1_051 * MS, 100, &[]),
        datagram(SERVER, 1_090 * MS, 300, &[]),
    ]
}

#[test]
fn a_handshake_has_the_round_trips_of_its_packets() {
    let known = analysis(&handshake()).handshake;
    assert_eq!((known.duration(), known.round_trips()), (Some(40 * MS), 1));
    assert_eq!(known.until_client_data(), Some(51 * MS));
    let round_trip = known.round_trip.unwrap();
    assert_eq!((round_trip.server_side, round_trip.client_side), (40 * MS, 10 * MS));
    assert_eq!((known.first_flight.received, known.first_flight.sent), (1_200, 2_000));
    assert!(!known.first_flight.is_limited() && known.waited() == 0);
}

#[test]
fn retries_lost_initials_and_the_limit_of_amplification() {
    use LongPacketType::{Handshake, Initial, Retry};
    let known = analysis(&[
        datagram(CLIENT, 0, 1_200, &[Initial]),
        datagram(CLIENT, 300 * MS, 1_200, &[Initial]),
        datagram(SERVER, 340 * MS, 120, &[Retry]),
        datagram(CLIENT, 350 * MS, 1_200, &[Initial]),
        datagram(SERVER, 390 * MS, 1_200, &[Initial, Handshake]),
        datagram(SERVER, 390 * MS, 9_500, &[Handshake]),
        datagram(CLIENT, 400 * MS, 1_200, &[Initial]),
        datagram(SERVER, 440 * MS, 700, &[Handshake]),
    ]);
    let known = known.handshake;
    assert_eq!((known.waited(), known.unanswered), (300 * MS, Some((300 * MS, 2))));
    assert_eq!((known.retries, known.round_trips()), ((1, Some(340 * MS)), 2));
    assert_eq!(known.first_flight.received, 3_600);
    assert!(known.first_flight.is_limited());
}

#[test]
fn silences_count_from_three_round_trips_on() {
    let mut datagrams = handshake();
    // The round trip is 50 ms: 149 ms are none, 150 ms are one.
    datagrams.push(datagram(CLIENT, 1_239 * MS, 500, &[]));
    datagrams.push(datagram(CLIENT, 1_389 * MS, 500, &[]));
    let silences = analysis(&datagrams).silences;
    assert_eq!((silences.count, silences.ns, silences.threshold), (1, 150 * MS, 150 * MS));
    assert_eq!(silences.frames, (1_239, 1_389));
}

#[test]
fn rates_are_kept_in_at_most_256_intervals() {
    let datagrams: Vec<_> = (0..1_000).map(|n| datagram(SERVER, n * 10 * MS, 1_250, &[])).collect();
    let analysis = analysis(&datagrams);
    assert_eq!(analysis.rates.interval, 40 * MS);
    assert_eq!(analysis.rates.bytes.len(), 250);
    let sum: u64 = analysis.rates.bytes.iter().map(|bytes| bytes[1]).sum();
    assert_eq!(sum, analysis.directions[1].bytes);
    // Four datagrams of 1,250 bytes in 40 ms.
    assert_eq!(analysis.rates.largest(1), Some(125_000.0));
    assert_eq!(analysis.directions[1].ecn, [0, 0, 1_000, 0]);
}

#[test]
fn sizes_and_their_growth() {
    let sizes = [1_200, 1_200, 1_350, 60, 1_350, 1_350, 1_452];
    let datagrams: Vec<_> =
        sizes.iter().zip(0..).map(|(&len, n)| datagram(CLIENT, n * MS, len, &[])).collect();
    let direction = &analysis(&datagrams).directions[0];
    assert_eq!((direction.sizes.smallest, direction.sizes.largest), (60, 1_452));
    assert_eq!(direction.sizes.most_frequent(), Some((1_350, 3)));
    let steps: Vec<_> = direction.sizes.steps.iter().map(|step| (step.frame, step.bytes)).collect();
    assert_eq!(steps, [(0, 1_200), (2, 1_350), (6, 1_452)]);
    assert_eq!(direction.busiest.bytes, 1_452);
}

/// A datagram of each host every 2 ms, captured 10 ms from the client and 15 ms from the server (one way),
/// with the bit that `value` gives for the time at the sender and the last bit it received.
fn spinning(value: &mut dyn FnMut(Dir, bool) -> bool) -> SpinBit {
    let (mut to_server, mut to_client) = (Vec::new(), Vec::new());
    let mut seen = Vec::new();
    for step in 0..1_000_u64 {
        let now = step * MS;
        let last = |sent: &[(u64, bool)], delay: u64| {
            sent.iter().rev().find(|(at, _)| at + delay <= now).is_some_and(|(_, bit)| *bit)
        };
        if !step.is_multiple_of(2) {
            continue;
        }
        let of_server = value(SERVER, last(&to_server, 25 * MS));
        let of_client = value(CLIENT, last(&to_client, 25 * MS));
        to_server.push((now, of_client));
        to_client.push((now, of_server));
        seen.push((now + 10 * MS, CLIENT, of_client));
        seen.push((now + 15 * MS, SERVER, of_server));
    }
    seen.sort_by_key(|(at, ..)| *at);
    let datagrams = seen.iter().map(|&(at, dir, bit)| CapturedQuicDatagram {
        spin: Some(bit),
        ..datagram(dir, at, 500, &[])
    });
    analysis(&datagrams.collect::<Vec<_>>()).spin
}

#[test]
fn a_bit_that_spins_has_the_round_trips_of_the_path() {
    let spin = spinning(&mut |dir, received| (dir == CLIENT) != received);
    assert_eq!(spin.verdict, SpinVerdict::Spins);
    // 25 ms each way, sent at even milliseconds: 26 ms to the next datagram at the other end.
    assert_eq!(spin.whole.summary(), Some([52 * MS; 3]));
    let sides = [&spin.server_side, &spin.client_side].map(|side| side.summary().unwrap()[1]);
    assert_eq!(sides, [31 * MS, 21 * MS]);
}

#[test]
fn a_bit_that_is_constant_or_random_does_not_spin() {
    let constant = spinning(&mut |dir, _| dir == CLIENT);
    assert_eq!((constant.verdict, constant.edges), (SpinVerdict::Constant, 0));
    // None of 200 random bits is taken for one that spins.
    for seed in 0..200 {
        let mut draws = RandomStream::named(seed, "spin", "bits");
        let random = spinning(&mut |_, _| draws.below(2) == 1);
        assert_eq!(random.verdict, SpinVerdict::Random, "seed {seed}");
        // Only one of the hosts is random.
        let random = spinning(&mut |dir, received| match dir {
            CLIENT => draws.below(2) == 1,
            SERVER => received,
        });
        assert_eq!(random.verdict, SpinVerdict::Random, "seed {seed}");
    }
}

/// The findings' codes with their costs in ms.
fn codes(datagrams: &[CapturedQuicDatagram]) -> Vec<(&'static str, u64)> {
    let found = captured_findings(&analysis(datagrams));
    found.iter().map(|one| (one.code, one.cost.as_millis())).collect()
}

#[test]
fn a_handshake_of_one_round_trip_has_no_finding() {
    assert_eq!(codes(&handshake()), []);
}

#[test]
fn findings_of_a_slow_handshake_have_the_time_of_its_packets() {
    use LongPacketType::{Handshake, Initial, Retry};
    let slow = [
        datagram(CLIENT, 1_000 * MS, 1_200, &[Initial]),
        datagram(CLIENT, 1_300 * MS, 1_200, &[Initial]),
        datagram(SERVER, 1_340 * MS, 120, &[Retry]),
        datagram(CLIENT, 1_350 * MS, 1_200, &[Initial]),
        datagram(SERVER, 1_390 * MS, 1_200, &[Initial, Handshake]),
        datagram(SERVER, 1_390 * MS, 9_500, &[Handshake]),
        datagram(CLIENT, 1_400 * MS, 1_200, &[Initial, Handshake]),
        datagram(SERVER, 1_440 * MS, 700, &[Handshake]),
    ];
    // Accepted was the Initial of 350 ms; the limit cost 40 ms to the server and 10 ms to the client.
    assert_eq!(codes(&slow)[..2], [("CC801", 350), ("CC831", 300)]);
    let all = captured_findings(&analysis(&slow));
    let limited = all.iter().find(|found| found.code == "CC802").unwrap();
    assert_eq!((limited.cost.as_nanos(), limited.frames), (50 * MS, (1_000, 1_440)));
    let handshake = &all[0];
    assert_eq!(handshake.severity, Severity::Error);
    assert!(handshake.title.contains("1 Retry"), "{}", handshake.title);
}

#[test]
fn no_answer_silences_and_marks() {
    use LongPacketType::Initial;
    let alone =
        [datagram(CLIENT, 0, 1_200, &[Initial]), datagram(CLIENT, 999 * MS, 1_200, &[Initial])];
    assert_eq!(codes(&alone)[0], ("CC803", 999));
    let mut idle = handshake();
    idle.push(datagram(SERVER, 3_090 * MS, 300, &[]));
    let mut marked = datagram(SERVER, 3_091 * MS, 300, &[]);
    marked.ecn = 3;
    idle.push(marked);
    assert_eq!(codes(&idle), [("CC831", 2_000), ("CC815", 0)]);
    // A sender in the middle of a connection has no handshake to judge.
    let middle = [datagram(CLIENT, 0, 900, &[]), datagram(CLIENT, MS, 900, &[])];
    assert_eq!(codes(&middle), []);
}
