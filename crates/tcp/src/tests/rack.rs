//! FreeBSD's RACK stack (tcp_stacks/rack.c).

use packet::{Flags, SackBlock, SackBlocks, Segment};
use units::{Bytes, Duration, SeqNum};

use super::pair::{Pair, config};
use crate::Side;
use crate::profile::{LossRule, SendBufferRule, TimedRule};

const STACKS: [&str; 2] = ["freebsd-rack-14.3", "freebsd-rack-main"];
const MSS: u32 = 1_448;

fn sending(stack: &str, bytes: u64) -> Pair {
    let mut client = config(stack, Side::Client);
    client.tso = false;
    let mut pair = Pair::new(client, config("freebsd-14.3", Side::Server));
    pair.to_write = bytes;
    pair
}

/// An ACK of so many segments that reports the first one as a duplicate.
fn again(pair: &Pair, segments: u32) -> Segment {
    let mut blocks = SackBlocks::EMPTY;
    blocks.push(SackBlock { left: SeqNum(1_001), right: SeqNum(1_001 + MSS) });
    let ack = pair.forge(Flags::ACK, 1, i64::from(1 + segments * MSS));
    Segment { options: blocks.into(), window: 65_000, ..ack }
}

#[test]
fn a_loss_that_a_probe_repaired_lowers_nothing() {
    // rack_lower_cwnd_at_tlp is 0: rack_update_rtt signals no congestion (RFC 8985 section 7.4.2 would).
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
fn the_duplicate_that_comes_as_a_round_ends_still_belongs_to_it() {
    // rack_log_ack notes what is reported twice before it asks whether the round is over.
    for stack in STACKS {
        let mut pair = sending(stack, 1_000_000);
        pair.run(Duration::from_millis(110));
        pair.now += Duration::from_millis(100);
        let mut rounds = |segments| {
            let ack = again(&pair, segments);
            drop(pair.hear(&ack));
            pair.client.rounds_with_duplicates()
        };
        // The round ends with all ten segments of the first flight.
        assert_eq!([1, 9, 10, 11].map(&mut rounds), [1, 1, 1, 2], "{stack}");
    }
}

#[test]
fn a_call_waits_for_three_quarters_of_what_the_last_one_sent() {
    // rack_get_pacing_delay without pacing: ten segments of a window of ten in a round trip of 100 ms
    // are 100 ms, less a quarter; until then rack_output returns, for acknowledgments too.
    for (reduction, waits) in [(4, 75), (1, 0)] {
        let mut client = config("freebsd-rack-main", Side::Client);
        client.tso = false;
        let LossRule::Timed(TimedRule::Rack(rule)) = &mut client.profile.loss else { panic!() };
        rule.burst.reduction = reduction;
        let mut pair = Pair::new(client, config("freebsd-14.3", Side::Server));
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
    // rack_user_set_max_segs: at a window of a hundred segments or so a burst is cut.
    for tso in [false, true] {
        let mut client = config("freebsd-rack-main", Side::Client);
        client.tso = tso;
        client.profile.newreno.initcwnd_segments = 100;
        let SendBufferRule::FreeBsd { space, auto, .. } = &mut client.profile.send_buffer else {
            panic!()
        };
        (*space, *auto) = (Bytes(1 << 20), false);
        let mut pair = Pair::new(client, config("freebsd-14.3", Side::Server));
        pair.to_write = 1_000_000;
        // The wait is that of 40 segments at 100 a round trip, less a quarter.
        for (at, segments) in [(100, 40), (129, 40), (131, 45)] {
            pair.run(Duration::from_millis(at));
            let sent: u32 = pair.data().map(|s| s.payload).sum();
            assert_eq!(sent / MSS, segments, "{tso} {at}");
        }
    }
}

/// An ACK of so many segments that reports the third one.
fn third(pair: &Pair, segments: u32) -> Segment {
    let mut blocks = SackBlocks::EMPTY;
    blocks.push(SackBlock { left: SeqNum(1_001 + 2 * MSS), right: SeqNum(1_001 + 3 * MSS) });
    let ack = pair.forge(Flags::ACK, 1, i64::from(1 + segments * MSS));
    Segment { options: blocks.into(), window: 65_000, ..ack }
}

#[test]
fn a_recovery_begins_with_what_was_unacknowledged_before_its_ack() {
    // rack_cong_signal takes snd_max - snd_una, which rack_process_ack moves only afterwards.
    for stack in STACKS {
        let mut pair = sending(stack, 1_000_000);
        pair.run(Duration::from_millis(110));
        pair.now += Duration::from_millis(100);
        drop(pair.hear(&third(&pair, 0)));
        let flight = pair.client.sender_state().flight().get();
        pair.now += Duration::from_millis(50);
        drop(pair.hear(&third(&pair, 1)));
        assert!(pair.client.sender_state().in_recovery, "{stack}");
        assert_eq!(pair.client.recovery_flight(), Some(flight), "{stack}");
    }
}

#[test]
fn an_overtaken_acknowledgment_tells_of_reordering_and_its_blocks_count() {
    for stack in STACKS {
        let mut pair = sending(stack, 1_000_000);
        pair.run(Duration::from_millis(110));
        pair.now += Duration::from_millis(100);
        drop(pair.hear(&Segment { options: Default::default(), ..third(&pair, 1) }));
        let before = pair.client.sender_state();
        assert!(!pair.client.saw_reordering(), "{stack}");
        drop(pair.hear(&third(&pair, 0)));
        assert!(pair.client.saw_reordering(), "{stack}");
        let after = pair.client.sender_state();
        let sent = after.snd_max.since(before.snd_max);
        assert_eq!(before.pipe + sent - after.pipe, Bytes(u64::from(MSS)), "{stack}");
    }
}
