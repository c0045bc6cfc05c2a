//! FreeBSD's RACK stack (tcp_stacks/rack.c).

use packet::{Dir, Flags, SackBlock, SackBlocks, Segment};
use units::{Bytes, Duration, SeqNum};

use super::pair::{TcpPair, config};
use crate::TcpSide;
use crate::profile::{LossDetectionRule, SendBufferRule};

const STACKS: [&str; 2] = ["freebsd-rack-14.3", "freebsd-rack-main"];
const MSS: u32 = 1_448;

fn sending(stack: &str, bytes: u64) -> TcpPair {
    let mut client = config(stack, TcpSide::Client);
    client.tso = false;
    let mut pair = TcpPair::new(client, config("freebsd-14.3", TcpSide::Server));
    pair.to_write = bytes;
    pair
}

/// An ACK of `segments` segments that reports the first one as a duplicate.
fn repeated(pair: &TcpPair, segments: u32) -> Segment {
    let mut blocks = SackBlocks::EMPTY;
    blocks.push(SackBlock { left: SeqNum(1_001), right: SeqNum(1_001 + MSS) });
    let ack = pair.forge(Flags::ACK, 1, i64::from(1 + segments * MSS));
    Segment { options: blocks.into(), window: 65_000, ..ack }
}

#[test]
fn a_loss_repaired_by_a_probe_does_not_reduce_the_window() {
    // rack_lower_cwnd_at_tlp is 0: rack_update_rtt signals no congestion (RFC 8985 section 7.4.2
    // would).
    for stack in STACKS {
        let mut pair = sending(stack, 14_480);
        pair.lose = |number, s| number < 16 && s.payload > 0 && s.seq.0 == 1_001 + 9 * MSS;
        pair.run(Duration::from_secs(1));
        let totals = *pair.client.totals();
        assert_eq!((pair.read, totals.timeouts), (14_480, 0), "{stack}");
        assert_eq!(totals.retransmitted_packets, 1, "{stack}");
        assert_eq!(pair.client.sender_state().ssthresh, None, "{stack}");
    }
}

#[test]
fn a_duplicate_at_the_end_of_a_dsack_round_belongs_to_that_round() {
    // rack_log_ack records duplicates before it checks whether the round is over.
    for stack in STACKS {
        let mut pair = sending(stack, 1_000_000);
        pair.run(Duration::from_millis(110));
        pair.now += Duration::from_millis(100);
        let mut rounds = |segments| {
            let ack = repeated(&pair, segments);
            drop(pair.hear(&ack));
            pair.client.snd.dsack_rounds()
        };
        // The round ends with all ten segments of the first flight.
        assert_eq!([1, 9, 10, 11].map(&mut rounds), [1, 1, 1, 2], "{stack}");
    }
}

#[test]
fn the_pause_after_a_burst_is_three_quarters_of_its_pacing_time() {
    // rack_get_pacing_delay without pacing: ten segments of a window of ten in a round trip of 100
    // ms are 100 ms, less a quarter; until then rack_output returns at once, even when called for
    // acknowledgments.
    for (reduction, waits) in [(4, 75), (1, 0)] {
        let mut client = config("freebsd-rack-main", TcpSide::Client);
        client.tso = false;
        let LossDetectionRule::FreeBsdRack(rule) = &mut client.profile.loss else { panic!() };
        rule.burst.reduction = reduction;
        let mut pair = TcpPair::new(client, config("freebsd-14.3", TcpSide::Server));
        pair.to_write = 1_000_000;
        pair.run(Duration::from_millis(110));
        let sent = pair.data().count();
        assert_eq!(sent, 10);
        let mut blocks = SackBlocks::EMPTY;
        blocks.push(SackBlock { left: SeqNum(1_001 + 2 * MSS), right: SeqNum(1_001 + 3 * MSS) });
        let ack = pair.forge(Flags::ACK, 1, i64::from(1 + 2 * MSS));
        let ack = Segment { options: blocks.into(), window: 65_000, ..ack };
        drop(pair.hear(&ack));
        assert_eq!(pair.data().count() > sent, waits == 0);
        pair.run(Duration::from_millis(100 + waits.max(1) - 1));
        assert_eq!(pair.data().count() > sent, waits == 0);
        pair.run(Duration::from_millis(100 + waits + 1));
        assert!(pair.data().count() > sent);
    }
}

#[test]
fn a_call_sends_forty_segments_and_the_rest_waits_for_the_next() {
    // rack_user_set_max_segs: at a window of about a hundred segments a burst is cut.
    for tso in [false, true] {
        let mut client = config("freebsd-rack-main", TcpSide::Client);
        client.tso = tso;
        client.profile.newreno.initcwnd_segments = 100;
        let SendBufferRule::FreeBsd { space, auto, .. } = &mut client.profile.send_buffer else {
            panic!()
        };
        (*space, *auto) = (Bytes(1 << 20), false);
        let mut pair = TcpPair::new(client, config("freebsd-14.3", TcpSide::Server));
        pair.to_write = 1_000_000;
        // The pause is that of 40 segments at 100 per round trip, less a quarter.
        for (at, segments) in [(100, 40), (129, 40), (131, 45)] {
            pair.run(Duration::from_millis(at));
            let sent: u32 = pair.data().map(|s| s.payload).sum();
            assert_eq!(sent / MSS, segments, "{tso} {at}");
        }
    }
}

/// An ACK of `segments` segments that SACKs the third one.
fn third(pair: &TcpPair, segments: u32) -> Segment {
    let mut blocks = SackBlocks::EMPTY;
    blocks.push(SackBlock { left: SeqNum(1_001 + 2 * MSS), right: SeqNum(1_001 + 3 * MSS) });
    let ack = pair.forge(Flags::ACK, 1, i64::from(1 + segments * MSS));
    Segment { options: blocks.into(), window: 65_000, ..ack }
}

#[test]
fn the_recovery_flight_is_the_data_outstanding_before_the_ack() {
    // rack_cong_signal uses snd_max - snd_una; rack_process_ack advances snd_una only afterwards.
    for stack in STACKS {
        let mut pair = sending(stack, 1_000_000);
        pair.run(Duration::from_millis(110));
        pair.now += Duration::from_millis(100);
        drop(pair.hear(&third(&pair, 0)));
        let flight = pair.client.sender_state().flight_size().get();
        pair.now += Duration::from_millis(50);
        drop(pair.hear(&third(&pair, 1)));
        assert!(pair.client.sender_state().in_recovery, "{stack}");
        assert_eq!(pair.client.snd.recovery_flight(), flight, "{stack}");
    }
}

#[test]
fn an_overtaken_acknowledgment_is_evidence_of_reordering_and_its_blocks_count() {
    for stack in STACKS {
        let mut pair = sending(stack, 1_000_000);
        pair.run(Duration::from_millis(110));
        pair.now += Duration::from_millis(100);
        drop(pair.hear(&Segment { options: Default::default(), ..third(&pair, 1) }));
        let before = pair.client.sender_state();
        assert!(!pair.client.snd.saw_reordering(), "{stack}");
        drop(pair.hear(&third(&pair, 0)));
        assert!(pair.client.snd.saw_reordering(), "{stack}");
        let after = pair.client.sender_state();
        let sent = after.snd_max.since(before.snd_max);
        assert_eq!(before.pipe + sent - after.pipe, Bytes(u64::from(MSS)), "{stack}");
    }
}

/// The data segments sent: number of the first byte's segment, payload, and when.
fn sent(pair: &TcpPair) -> Vec<(u32, u32, u64)> {
    let data = pair.times.iter().zip(&pair.log).filter(|(_, s)| s.payload > 0);
    data.map(|(at, s)| ((s.seq.0 - 1_001) / MSS, s.payload, at.as_nanos() / 1_000)).collect()
}

#[test]
fn a_lost_retransmission_is_probed_for_after_two_round_trips() {
    // R1: rack_timer_start schedules a probe in a recovery too, once the oldest segment has been
    // retransmitted.
    for stack in STACKS {
        let mut pair = sending(stack, 100_000);
        pair.lose = |number, s| number < 60 && s.payload > 0 && s.seq.0 == 1_001 + 2 * MSS;
        pair.run(Duration::from_secs(3));
        let totals = *pair.client.totals();
        assert_eq!((pair.read, totals.timeouts), (100_000, 0), "{stack}");
    }
}

#[test]
fn a_lost_tail_is_probed_for_two_round_trips_after_it_was_sent() {
    // R2: the time counts from the last transmission of the last segment, whatever was acknowledged
    // since; R3: the FIN waits until all data is acknowledged.
    for stack in STACKS {
        let mut pair = sending(stack, 14_480);
        pair.lose = |number, s| number < 16 && s.payload > 0 && s.seq.0 >= 1_001 + 8 * MSS;
        pair.run(Duration::from_millis(110));
        pair.with(TcpSide::Client, |_, end| end.close());
        pair.serve();
        pair.run(Duration::from_secs(2));
        let sent = sent(&pair);
        let (tail, probe) = (sent[9], sent[10]);
        assert_eq!((tail.0, probe.0), (9, 9), "{stack}");
        // Twice the smoothed round trip, slightly more than 100 ms.
        assert!((200_000..215_000).contains(&(probe.2 - tail.2)), "{stack} {sent:?}");
        let last = pair.log.iter().rposition(|s| s.payload > 0).unwrap();
        let fin = pair.log.iter().position(|s| s.dir == Dir::Forward && s.flags.has(Flags::FIN));
        assert!(fin.unwrap() > last + 1, "{stack}");
        assert_eq!(pair.client.totals().timeouts, 0, "{stack}");
    }
}

#[test]
fn a_probe_of_less_than_a_segment_of_new_data_repeats_the_last_one() {
    // R4: rack_timeout_tlp sends new data only if that fills a segment.
    for stack in STACKS {
        let mut pair = sending(stack, 14_480 + 500);
        pair.lose = |number, s| number < 16 && s.payload > 0 && s.seq.0 >= 1_001 + 2 * MSS;
        pair.run(Duration::from_secs(2));
        let sent = sent(&pair);
        let repeated = sent.iter().skip(1).zip(&sent).find(|(next, before)| next.0 <= before.0);
        assert_eq!(repeated.map(|(next, _)| next.0), Some(9), "{stack} {sent:?}");
    }
}

#[test]
fn the_first_goodput_measurement_ends_a_pause() {
    // R5: the acknowledgment that arrives a round trip after the first one triggers new data at
    // once, though the pause after the burst would last for 75 ms more.
    for stack in STACKS {
        let mut pair = sending(stack, 1_000_000);
        pair.run(Duration::from_millis(320));
        let sent = sent(&pair);
        let rounds: Vec<_> = sent.iter().map(|s| s.2 / 1_000).collect();
        let after_first = rounds.iter().filter(|&&ms| (300..=301).contains(&ms)).count();
        assert!(after_first > 0, "{stack} {rounds:?}");
    }
}

#[test]
fn the_window_is_kept_over_an_idle_period() {
    // R6: nothing sets t_idle_reduce.
    for stack in STACKS {
        let mut pair = sending(stack, 200_000);
        pair.run(Duration::from_secs(3));
        let before = pair.client.sender_state().cwnd;
        pair.now += Duration::from_secs(20);
        pair.with(TcpSide::Client, |cx, end| assert!(end.write(cx, 14_480) > 0));
        pair.serve();
        assert!(before > Bytes(14_480));
        assert_eq!(pair.client.sender_state().cwnd, before, "{stack}");
    }
}

#[test]
fn the_round_trip_of_the_syn_is_sampled() {
    // R7: rack_do_syn_sent samples the SYN by its echo and by its segment: 100 ms twice, so that
    // the variance has lost an eighth before any data is sent.
    for stack in STACKS {
        let mut pair = sending(stack, 1_000);
        pair.run(Duration::from_millis(101));
        // 100.001 + 4 * (50.000 - 6.250), and the slop.
        assert_eq!(pair.client.sender_state().rto, Duration::from_micros(475_001), "{stack}");
    }
}

#[test]
fn duplicates_count_for_one_transmission_of_a_segment() {
    // rack_update_rsm clears r_dupack: three duplicates without blocks make RACK retransmit the
    // segment once, a round trip and a quarter after its transmission, and not once more after
    // another 125 ms.
    for stack in STACKS {
        let mut pair = sending(stack, 1_448);
        pair.run(Duration::from_millis(110));
        assert_eq!(pair.data().count(), 1, "{stack}");
        pair.lose = |_, _| true;
        pair.now += Duration::from_millis(130);
        // The first one updates the window.
        let ack = Segment { window: 1_027, ..pair.forge(Flags::ACK, 1, 1) };
        for _ in 0..4 {
            drop(pair.hear(&ack));
        }
        assert_eq!(pair.client.totals().retransmitted_packets, 1, "{stack}");
        pair.run(Duration::from_millis(240 + 160));
        assert_eq!(pair.client.totals().retransmitted_packets, 1, "{stack}");
    }
}

#[test]
fn a_timeout_counts_from_the_last_transmission_of_the_oldest_segment() {
    // R8: rack_timer_start takes the time since the oldest segment was sent last, here as a probe,
    // from the timeout in microseconds; not the time since new data was sent.
    for stack in STACKS {
        let mut pair = sending(stack, 1_448);
        pair.lose = |_, s| s.payload > 0;
        pair.run(Duration::from_millis(101));
        let rto = pair.client.sender_state().rto.as_micros();
        pair.run(Duration::from_secs(2));
        let sent = sent(&pair);
        // Two probes, then the timeout.
        let [probe, timeout] = [sent[2], sent[3]].map(|s| s.2);
        // The wheel's slots are of 10 us.
        assert!((rto..=rto + 10).contains(&(timeout - probe)), "{stack} {rto} {sent:?}");
    }
}

/// A sender in recovery: the third segment is SACKed, and the first one is not a moment later.
fn recovering(stack: &str) -> TcpPair {
    let mut pair = sending(stack, 1_000_000);
    pair.run(Duration::from_millis(110));
    pair.now += Duration::from_millis(100);
    drop(pair.hear(&third(&pair, 0)));
    pair.now += Duration::from_millis(50);
    drop(pair.hear(&third(&pair, 1)));
    assert!(pair.client.sender_state().in_recovery, "{stack}");
    pair
}

#[test]
fn the_acknowledgment_that_undoes_a_recovery_also_grows_the_window() {
    // R11: everything is acknowledged 1 ms after the retransmission, so it was spurious (D53832).
    // The threshold is restored, and slow start counts two segments of the acknowledgment.
    let mut pair = recovering("freebsd-rack-main");
    let before = pair.client.sender_state();
    pair.now += Duration::from_millis(1);
    let all = before.snd_max.since(before.snd_una).get() as u32 / MSS + 1;
    drop(
        pair.hear(&Segment {
            window: 65_000,
            ..pair.forge(Flags::ACK, 1, i64::from(1 + all * MSS))
        }),
    );
    let after = pair.client.sender_state();
    assert_eq!((after.in_recovery, after.ssthresh), (false, None));
    assert_eq!(after.cwnd, before.cwnd + Bytes(2 * 1_460));
}
