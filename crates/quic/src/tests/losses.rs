//! Loss, probes and recovery over whole transfers (RFC 9002 sections 6 and 7).

use record::{Cause, Event, Purpose, SentKind};
use units::Duration;

use super::pair::{CLIENT, QuicPair, SERVER};
use crate::ack_policy::QuicAckRule;
use crate::congestion_control::CongestionControl;
use crate::packet::AckFrequency;
use crate::profile::{INET_2025_02, QuicProfile, RFC9002};

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Full packets of 1,231 bytes of the stream, without a handshake; every packet acknowledged.
fn plain() -> QuicProfile {
    QuicProfile { mtu: 1_280, acks: QuicAckRule { every: 1, ..INET_2025_02.acks }, ..INET_2025_02 }
}

/// The client's data packets with these numbers, counted from 0, are lost.
fn losing(numbers: &'static [u64]) -> QuicPair {
    QuicPair::new(plain(), plain(), ms(20))
        .losing(move |side, packet| side == CLIENT && numbers.contains(&packet.number))
}

fn retransmissions(pair: &QuicPair) -> Vec<(u64, Cause)> {
    let trace = pair.traces[CLIENT].0.iter();
    let retransmitted = trace.filter_map(|&(at, event, _)| match event {
        Event::Sent { kind: SentKind::Retransmission(cause), .. } => {
            Some((at.as_nanos() / 1_000_000, cause))
        }
        _ => None,
    });
    retransmitted.collect()
}

#[test]
fn the_ack_of_the_third_later_packet_reveals_a_loss_section_6_1_1() {
    let mut pair = losing(&[2]);
    pair.open();
    pair.write(CLIENT, 10_000);
    pair.run_for(ms(200));
    assert_eq!(retransmissions(&pair), [(40, Cause::FastRetransmit)]);
    let end = &pair.ends[CLIENT];
    assert_eq!((end.totals().lost_packets, end.totals().timeouts), (1, 0));
    assert_eq!(pair.ends[SERVER].recv.taken(), 10_000);
}

#[test]
fn an_ack_reports_the_bytes_received_after_a_gap() {
    let mut pair = losing(&[2]);
    pair.open();
    pair.write(CLIENT, 10_000);
    pair.run_for(ms(200));
    let covered = pair.events(CLIENT).filter_map(|event| match event {
        Event::StreamAcked { at, len } => Some((at.0, len)),
        _ => None,
    });
    // The chunks of the packets after the gap, each acknowledged separately.
    let later =
        pair.sent.iter().filter(|sent| sent.from == CLIENT && (3..9).contains(&sent.packet.number));
    let chunks =
        later.map(|sent| sent.packet.stream.unwrap()).map(|chunk| (chunk.offset, chunk.len));
    let chunks: Vec<(u64, u32)> = chunks.collect();
    assert_eq!((chunks.len(), covered.collect::<Vec<_>>()), (6, chunks));
    // In an ACK for several packets, adjacent chunks are one range.
    let seldom = QuicProfile { acks: QuicAckRule { every: 9, ..INET_2025_02.acks }, ..plain() };
    let mut pair = QuicPair::new(plain(), seldom, ms(20))
        .losing(|side, packet| side == CLIENT && packet.number == 2);
    pair.open();
    pair.write(CLIENT, 10_000);
    pair.run_for(ms(200));
    let ends = pair.events(CLIENT).filter_map(|event| match event {
        Event::StreamAcked { at, len } => Some(at.0 + u64::from(len)),
        _ => None,
    });
    let ends: Vec<u64> = ends.collect();
    assert!(ends.len() < 6 && ends.last() == Some(&10_000), "{ends:?}");
}

#[test]
fn fewer_later_packets_leave_the_time_threshold_section_6_1_2() {
    // The second last packet of a flight: 9/8 of the round trip after it was sent.
    let mut pair = losing(&[6]);
    pair.open();
    pair.write(CLIENT, 8 * 1_231);
    pair.run_for(ms(200));
    assert_eq!(retransmissions(&pair), [(45, Cause::FastRetransmit)]);
    assert!(pair.events(CLIENT).any(|event| event == Event::Timer(Purpose::Reorder)));
}

#[test]
fn a_probe_reveals_the_loss_of_the_last_packet_section_6_2() {
    let mut pair = losing(&[7]);
    pair.open();
    pair.write(CLIENT, 8 * 1_231);
    pair.run_for(ms(500));
    // After 40 ms, seven samples of 40 ms: variance 20 * (3/4)^6 = 3.56 ms; the peer's delay is 25
    // ms: the timeout is 40 + 14.2 + 25 ms after the packet was sent.
    let trace = pair.traces[CLIENT].0.iter();
    let fired: Vec<_> = trace
        .filter(|(_, event, _)| *event == Event::Timer(Purpose::LossProbe))
        .map(|(at, ..)| at.as_nanos() / 1_000_000)
        .collect();
    assert_eq!(fired, [79]);
    assert_eq!(retransmissions(&pair), [(79, Cause::LossProbe)]);
    // A PTO declares no packet lost and does not reduce the window (section 6.2.4); the
    // acknowledgment of the probe reveals the loss.
    assert_eq!(pair.ends[SERVER].recv.taken(), 8 * 1_231);
    assert_eq!(pair.ends[CLIENT].totals().persistent, 0);
}

#[test]
fn a_probe_may_exceed_the_window_and_timeouts_double_section_6_2_1() {
    let mut pair = QuicPair::new(plain(), plain(), ms(20))
        .losing(|side, packet| side == CLIENT && (10..16).contains(&packet.number));
    pair.open();
    pair.write(CLIENT, 10 * 1_231);
    pair.run_for(ms(100));
    let since = pair.now;
    pair.write(CLIENT, 1_231);
    pair.run_for(ms(5_000));
    let times: Vec<u64> = pair
        .sent
        .iter()
        .filter(|sent| sent.from == CLIENT && sent.at >= since)
        .map(|sent| sent.at.since(since).as_micros())
        .collect();
    let gaps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps.len() >= 6, "{gaps:?}");
    for pair in gaps[..5].windows(2) {
        assert!(pair[1].abs_diff(2 * pair[0]) <= 2, "{gaps:?}");
    }
    assert_eq!(pair.ends[SERVER].recv.taken(), 11 * 1_231);
}

#[test]
fn a_long_silence_is_persistent_congestion_section_7_6() {
    let mut pair = QuicPair::new(plain(), plain(), ms(20))
        .losing(|side, packet| side == CLIENT && (10..33).contains(&packet.number));
    pair.open();
    pair.write(CLIENT, 400_000);
    pair.run_for(ms(20_000));
    // The second flight is lost, and so are three probes, 65, 130 and 260 ms apart: more than three
    // times 65 ms.
    let totals = *pair.ends[CLIENT].totals();
    assert_eq!(totals.persistent, 1);
    // The window fell to two datagrams, the threshold stayed: slow start followed.
    let collapse = pair.traces[CLIENT].0.iter().find_map(|&(_, event, _)| match event {
        Event::Window { cwnd, cause: Cause::Timeout, .. } => Some(cwnd),
        _ => None,
    });
    assert_eq!(collapse, Some(2 * 1_252));
    assert_eq!(pair.ends[SERVER].recv.taken(), 400_000);
}

#[test]
fn losses_of_one_round_halve_the_window_once_section_7_3_2() {
    let mut pair = losing(&[31, 33, 35]);
    pair.open();
    pair.write(CLIENT, 200_000);
    pair.run_for(ms(2_000));
    assert_eq!(pair.ends[CLIENT].totals().recoveries, 1);
    assert_eq!(pair.ends[CLIENT].totals().lost_packets, 3);
}

#[test]
fn a_connection_without_a_reply_is_aborted() {
    let mut pair = QuicPair::new(plain(), plain(), ms(20))
        .losing(|side, packet| side == CLIENT && packet.number >= 10);
    pair.open();
    pair.write(CLIENT, 100_000);
    pair.run_for(Duration::from_secs(3_000));
    assert!(pair.signals[CLIENT].contains(&machine::Signal::Aborted));
    assert!(pair.ends[CLIENT].totals().timeouts <= 10);
}

#[test]
fn acknowledgments_may_be_lost_too() {
    let mut count = 0;
    let mut pair = QuicPair::new(RFC9002, RFC9002, ms(20)).losing(move |side, _| {
        count += u32::from(side == SERVER);
        side == SERVER && count % 3 == 0
    });
    pair.connected();
    pair.write(CLIENT, 3_000_000);
    pair.run_for(Duration::from_secs(20));
    assert_eq!(pair.ends[SERVER].recv.taken(), 3_000_000);
    assert_eq!(pair.ends[CLIENT].bytes_in_flight, 0);
}

#[test]
fn pacing_spreads_a_window_over_the_round_trip_section_7_7() {
    let mut pair = QuicPair::new(RFC9002, RFC9002, ms(50));
    pair.connected();
    let since = pair.now;
    pair.write(CLIENT, 1_000_000);
    pair.run_for(ms(350));
    let times: Vec<u64> = pair
        .sent
        .iter()
        .filter(|sent| sent.from == CLIENT && sent.at >= since && sent.packet.payload() > 0)
        .map(|sent| sent.at.since(since).as_micros())
        .collect();
    // Bursts are at most the initial window, ten packets; the others are sent one by one.
    let bursts: Vec<&[u64]> = times.chunk_by(|a, b| a == b).collect();
    assert_eq!(bursts[0], [0; 10]);
    assert!(bursts.iter().all(|burst| burst.len() <= 10), "{times:?}");
    let single_packet = bursts.iter().filter(|burst| burst.len() == 1).count();
    assert!(single_packet > times.len() / 2, "{times:?}");
}

#[test]
fn tcp_controllers_drive_the_same_sender() {
    let cubic = cc::cubic::CubicVariant::FreeBsd(cc::cubic::CubicParams::FREEBSD_STABLE_14);
    let rfc = cc::cubic::CubicVariant::Rfc;
    let controllers = [
        CongestionControl::NewReno,
        CongestionControl::Reno,
        CongestionControl::Cubic(cubic),
        CongestionControl::Cubic(rfc),
    ];
    let took = controllers.map(|cc| {
        let mut count = 0;
        let profile = QuicProfile { send_buffer: units::Bytes(50_000_000), ..plain() };
        let mut pair = QuicPair::with_cc(profile, profile, ms(10), cc).rate(100_000_000).losing(
            move |side, _| {
                count += u32::from(side == CLIENT);
                side == CLIENT && count % 101 == 0
            },
        );
        pair.keep = false;
        pair.open();
        pair.write(CLIENT, 2_000_000);
        pair.run_for(Duration::from_secs(20));
        assert_eq!(pair.ends[SERVER].recv.taken(), 2_000_000);
        let totals = pair.ends[CLIENT].totals();
        assert!(totals.recoveries > 5 && totals.lost_packets >= totals.recoveries, "{totals:?}");
        let read = pair.traces[SERVER].0.iter().rev();
        let mut last = read.filter(|entry| matches!(entry.1, Event::AppRead { .. }));
        last.next().unwrap().0.as_nanos() / 1_000_000
    });
    // Periods of 100 packets: a window of about 15 packets, 1.8 Mbit in 16 s at most. CUBIC keeps
    // 70 percent of its window where the others keep half.
    assert!(took[2].max(took[3]) < took[0].min(took[1]), "{took:?}");
}

/// The receiver's own delay is 25 ms: a sender that requests a longer one includes it in its PTO
/// (draft-ietf-quic-ack-frequency section 4). Earlier probes would each elicit an ACK of all but
/// the last probe, and so the next probe, endlessly.
#[test]
fn a_requested_ack_delay_extends_the_pto() {
    let asks = AckFrequency { threshold: 1, max_delay_us: 900_000, reordering: 1 };
    let client = QuicProfile { ack_frequency: Some(asks), ..plain() };
    let server = QuicProfile { acks: QuicAckRule { every: 2, ..plain().acks }, ..plain() };
    let mut pair = QuicPair::new(client, server, ms(20));
    pair.open();
    pair.run_for(ms(500));
    // The fifth packet stays unacknowledged for 900 ms.
    pair.write(CLIENT, 5 * 1_231);
    pair.run_for(Duration::from_secs(2));
    let end = &pair.ends[CLIENT];
    assert_eq!((end.totals().timeouts, end.acknowledged().get()), (0, 5 * 1_231));
}
