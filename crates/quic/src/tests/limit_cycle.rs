//! The limit cycles of INET's sender under periodic loss: RTT 2 ms, every 51st packet lost at the
//! sender, at 100 Gb/s.

use record::{Event, SentKind};
use units::{Duration, Instant};

use super::pair::{CLIENT, QuicPair, SERVER};
use crate::ack_policy::QuicAckRule;
use crate::flow_control::Windows;
use crate::profile::{INET_2025_02, QuicProfile};

/// One round of the cycle: ACKs received, packets sent, then window and counter in packets.
type CycleRound = (usize, usize, u64, u64);

fn run(every: u32) -> QuicPair {
    let plenty = Windows { connection: u64::from(u32::MAX), stream: u64::from(u32::MAX) };
    let profile = QuicProfile {
        mtu: 1_280,
        acks: QuicAckRule { every, ..INET_2025_02.acks },
        windows: plenty,
        ..INET_2025_02
    };
    let mut count = 0;
    let mut pair = QuicPair::new(profile, profile, Duration::from_millis(1))
        .rate(100_000_000_000)
        .losing(move |side, _| {
            count = if side == CLIENT { count + 1 } else { count };
            let lost = count == 51;
            count %= 51;
            lost
        });
    pair.run_until(Instant::ZERO + Duration::from_secs(1));
    pair.open();
    pair.write(CLIENT, 50_000_000);
    pair.run_for(Duration::from_millis(400));
    pair
}

/// The rounds of one cycle after 300 ms, beginning with the detection of a loss.
fn rounds(pair: &QuicPair) -> (Vec<CycleRound>, Duration) {
    let mut losses = pair.traces[CLIENT].0.iter().filter(|(at, event, _)| {
        matches!(event, Event::Lost { .. }) && at.as_nanos() > 1_300_000_000
    });
    let (first, second) = (losses.next().unwrap().0, losses.next().unwrap().0);
    // A round is centred on a multiple of the round trip after the loss detection.
    let round_of = |at: Instant| (at.as_nanos() + 1_000_000 - first.as_nanos()) / 2_000_000;
    let count = (second.as_nanos() - first.as_nanos() + 1_000_000) / 2_000_000;
    let rounds = (0..count).map(|n| {
        let within = || {
            let trace = pair.traces[CLIENT].0.iter();
            trace.filter(move |entry| {
                entry.0.as_nanos() + 1_000_000 >= first.as_nanos() && round_of(entry.0) == n
            })
        };
        let acks =
            within().filter(|entry| matches!(entry.1, Event::QuicPacketsAcked { .. })).count();
        let sent = within()
            .filter(|entry| {
                matches!(entry.1, Event::Sent { kind, .. }
            if kind != SentKind::Ack)
            })
            .count();
        let state = within().filter_map(|entry| entry.2).next_back().unwrap();
        (acks, sent, state.cwnd.get() / 1_252, state.partial_acked.get() / 1_252)
    });
    (rounds.collect(), second.since(first))
}

fn goodput(pair: &QuicPair, from_ms: u64) -> f64 {
    let since = Instant::ZERO + Duration::from_millis(from_ms);
    let received =
        pair.sent.iter().filter(|sent| sent.from == CLIENT && !sent.lost && sent.at >= since);
    let bits: u64 = received.map(|sent| 8 * u64::from(sent.packet.size)).sum();
    bits as f64 / pair.now.since(since).as_secs_f64() / 1e6
}

#[test]
fn the_cycle_takes_7_round_trips_with_an_ack_for_every_packet() {
    let pair = run(1);
    let (rounds, cycle) = rounds(&pair);
    let expected: [CycleRound; 7] = [
        (9, 6, 5, 0),
        (6, 5, 5, 0),
        (5, 6, 6, 0),
        (6, 7, 7, 0),
        (7, 8, 8, 0),
        (8, 9, 9, 0),
        (9, 10, 10, 0),
    ];
    assert_eq!(rounds, expected);
    assert_eq!(cycle.as_micros(), 14_000);
    assert!((goodput(&pair, 1_100) - 35.77).abs() < 0.3, "{}", goodput(&pair, 1_100));
    assert_eq!(pair.ends[CLIENT].totals().timeouts, 0);
    assert_eq!(pair.ends[SERVER].totals().lost_packets, 0);
}

#[test]
fn the_cycle_takes_8_round_trips_with_an_ack_for_every_other_packet() {
    let pair = run(2);
    let (rounds, cycle) = rounds(&pair);
    let expected: [CycleRound; 8] = [
        (4, 6, 5, 0),
        (3, 4, 5, 0),
        (2, 4, 5, 3),
        (2, 5, 6, 2),
        (3, 7, 7, 2),
        (3, 7, 8, 1),
        (4, 9, 9, 1),
        (4, 9, 10, 0),
    ];
    assert_eq!(rounds, expected);
    assert_eq!(cycle.as_micros(), 16_001);
    assert!((goodput(&pair, 1_100) - 31.30).abs() < 0.3, "{}", goodput(&pair, 1_100));
}
