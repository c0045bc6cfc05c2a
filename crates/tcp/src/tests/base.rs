//! The order of the steps of FreeBSD's base stack (tcp_do_segment, tcp_output), rule by rule; whole
//! transfers are in `golden/freebsd-closed`.

use cc::Controller;
use packet::{Flags, SackBlock, SackBlocks, Segment};
use units::{Duration, Instant, SeqNum};

use super::pair::{TcpPair, config};
use crate::TcpSide;

const MSS: u32 = 1_448;
/// More than the initial window.
const MUCH: u64 = 30_000;

/// A client with the initial window in flight, all of it lost.
fn in_flight(system: &str, sack: bool) -> TcpPair {
    let mut client = config(system, TcpSide::Client);
    client.profile.sack = sack;
    client.tso = false;
    let mut pair = TcpPair::new(client, config("linux-6.18", TcpSide::Server));
    pair.lose = |_, segment| segment.payload > 0;
    pair.to_write = MUCH;
    pair.run(Duration::from_millis(150));
    // The window of the handshake was not scaled: the first ACK opens it.
    let first = ack(&pair, 0, 60_000, &[]);
    pair.hear(&first);
    pair
}

/// An ACK of `segments` segments with blocks of segments.
fn ack(pair: &TcpPair, segments: u32, window: u16, blocks: &[(u32, u32)]) -> Segment {
    let forged = pair.forge(Flags::ACK, 1, 1 + i64::from(segments * MSS));
    let place = |segment: u32| SeqNum(1_001 + segment * MSS);
    let mut option = SackBlocks::EMPTY;
    for &(left, right) in blocks {
        option.push(SackBlock { left: place(left), right: place(right) });
    }
    let options = if blocks.is_empty() { packet::Options::None } else { option.into() };
    Segment { window, options, ..forged }
}

fn cwnd(pair: &TcpPair) -> u64 {
    pair.client.sender_state().cwnd.get()
}

#[test]
fn a_recovery_is_settled_after_snd_una_advances() {
    // Rule 1: cc_post_recovery of 14.0 and later finds an empty pipe: max(0, 1460) + 1460. Before
    // snd_una moves the pipe would be all that is acknowledged: more than ssthresh.
    for (system, settled) in [("freebsd-14.3", 2 * 1_460), ("freebsd-main", 2 * 1_460)] {
        let mut pair = in_flight(system, true);
        for last in 2..=4 {
            pair.hear(&ack(&pair, 0, 60_000, &[(1, last)]));
        }
        // All data sent since is SACKed, too.
        for _ in 0..8 {
            let last = (pair.client.snd.max.0 - 1) as u32 / MSS;
            pair.hear(&ack(&pair, 0, 60_000, &[(1, last)]));
        }
        assert!(pair.client.snd.cc.in_recovery(), "{system}");
        let all = (pair.client.snd.max.0 - 1) as u32;
        let end = Segment { ack: SeqNum(1_001 + all), ..ack(&pair, 0, 60_000, &[]) };
        pair.arrive(&end);
        assert!(!pair.client.snd.cc.in_recovery(), "{system}");
        assert_eq!(cwnd(&pair), settled, "{system}");
    }
}

#[test]
fn a_window_update_is_a_duplicate_while_the_scoreboard_is_empty() {
    // Rules 2 and 3: tcp_is_sack_recovery; `goto drop` leaves snd_wnd as it is.
    for (system, duplicates, taken) in
        [("freebsd-13.0", 0, true), ("freebsd-14.3", 1, false), ("freebsd-main", 1, false)]
    {
        let mut pair = in_flight(system, true);
        pair.client.snd.rexmt.dup_acks = 0;
        let before = pair.client.snd.peer.wnd;
        pair.arrive(&ack(&pair, 0, 65_000, &[]));
        assert_eq!(pair.client.snd.rexmt.dup_acks, duplicates, "{system}");
        assert_eq!(pair.client.snd.peer.wnd > before, taken, "{system}");
    }
}

#[test]
fn a_pending_fin_takes_a_short_last_segment_along() {
    // Rule 5: `flags & TH_FIN && (tp->t_flags & TF_SENTFIN) == 0` sends data that Nagle would hold
    // back.
    for system in ["freebsd-13.0", "freebsd-14.3", "freebsd-main"] {
        let mut client = config(system, TcpSide::Client);
        client.tso = false;
        let mut pair = TcpPair::new(client, config(system, TcpSide::Server));
        pair.to_write = 3 * u64::from(MSS) + 100;
        pair.close_after = true;
        pair.run(Duration::from_millis(110));
        let sent: Vec<u32> = pair.data().map(|segment| segment.payload).collect();
        assert_eq!(sent, [MSS, MSS, MSS, 100], "{system}");
    }
}

#[test]
fn a_partial_acknowledgment_is_answered_before_snd_una_moves() {
    // Rule 6: TF_ACKNOW and tcp_output with the old snd_una: a pure ACK if the window is full.
    for system in ["freebsd-13.0", "freebsd-14.3", "freebsd-main"] {
        let mut pair = in_flight(system, true);
        for last in 3..=5 {
            pair.hear(&ack(&pair, 0, 60_000, &[(2, last)]));
        }
        assert!(pair.client.snd.cc.in_recovery(), "{system}");
        let sent = pair.hear(&ack(&pair, 1, 60_000, &[(2, 5)]));
        assert!(sent.first().is_some_and(|s| s.dir == packet::Dir::Forward), "{system}");
        assert!(pair.client.snd.cc.in_recovery(), "{system}");
    }
}

#[test]
fn after_a_timeout_only_holes_are_retransmitted() {
    // Rule 7: the scoreboard of main outlives the first timeout, and no SACKed data is sent.
    let mut pair = in_flight("freebsd-main", true);
    pair.hear(&ack(&pair, 0, 60_000, &[(5, 7)]));
    let at = machine::Endpoint::poll_timeout(&pair.client).unwrap().0;
    pair.now = at;
    pair.with(TcpSide::Client, |cx, end| machine::Endpoint::handle_timeout(end, cx));
    pair.serve();
    assert_eq!(pair.client.totals().timeouts, 1);
    let before = pair.log.len();
    for segments in 1..=7 {
        let first = ack(&pair, segments.min(5), 60_000, &[(5, 7)]);
        pair.hear(&first);
    }
    let sent = &pair.log[before..];
    let reported = 1_001 + 5 * MSS..1_001 + 7 * MSS;
    assert!(sent.iter().any(|s| s.payload > 0));
    assert!(sent.iter().filter(|s| s.payload > 0).all(|s| !reported.contains(&s.seq.0)));
    assert!(
        !pair.client.snd.cc.in_recovery(),
        "no recovery for data retransmitted after a timeout"
    );
}

#[test]
fn duplicates_without_sack_inflate_the_window() {
    // Rule 9: `V_tcp_do_prr && TF_SACK_PERMIT`, else `snd_cwnd += maxseg`.
    for system in ["freebsd-13.0", "freebsd-14.3", "freebsd-main"] {
        let mut pair = in_flight(system, false);
        let duplicate = ack(&pair, 0, 60_000, &[]);
        while !pair.client.snd.cc.in_recovery() {
            pair.hear(&duplicate);
        }
        let before = cwnd(&pair);
        pair.hear(&duplicate);
        assert_eq!(cwnd(&pair), before + u64::from(MSS), "{system}");
    }
}

#[test]
fn segments_of_limited_transmit_are_counted_until_the_next_first_duplicate() {
    // snd_limited is reset only when a duplicate sets t_dupacks to 1.
    let mut pair = in_flight("freebsd-main", true);
    pair.hear(&ack(&pair, 0, 60_000, &[(2, 3)]));
    pair.hear(&ack(&pair, 0, 60_000, &[(2, 4)]));
    assert_eq!(pair.client.snd.rexmt.limited, 2);
    let at = machine::Endpoint::poll_timeout(&pair.client).unwrap().0;
    pair.now = at;
    pair.with(TcpSide::Client, |cx, end| machine::Endpoint::handle_timeout(end, cx));
    assert_eq!(pair.client.snd.rexmt.limited, 2);
}

#[test]
fn a_window_update_is_sent_although_an_ack_is_delayed() {
    // Rule 8: check_delack clears TF_DELACK when it sets the timer; a large read then causes a
    // window update at once.
    let mut server = config("freebsd-14.3", TcpSide::Server);
    if let crate::profile::ReceiveBufferRule::FreeBsd { space, auto, .. } =
        &mut server.profile.receive_buffer
    {
        (*space, *auto) = (units::Bytes(5_000), false);
    }
    let mut client = config("freebsd-14.3", TcpSide::Client);
    client.tso = false;
    let mut pair = TcpPair::new(client, server);
    pair.to_write = 3 * u64::from(MSS);
    pair.reads = false;
    pair.run(Duration::from_millis(152));
    let before = pair.acks().count();
    // Three segments have arrived; the third is not acknowledged yet.
    assert!(pair.server.deadline(record::Purpose::DelayedAck).is_some());
    pair.read_all();
    assert_eq!(pair.acks().count(), before + 1);
    assert!(pair.now < Instant::ZERO + Duration::from_millis(190));
}

#[test]
fn data_before_an_out_of_order_fin_is_acknowledged_at_once() {
    // Rule 11: the FIN is in the reassembly queue (tcp_reass).
    let mut pair = TcpPair::of("freebsd-14.3", "freebsd-14.3");
    pair.run(Duration::from_millis(150));
    let data = |seq: u32, payload: u32, flags| Segment {
        dir: packet::Dir::Forward,
        flags,
        seq: SeqNum(1_000 + seq),
        ack: SeqNum(2_000_000_001),
        payload,
        window: 1_000,
        timestamps: pair.log.iter().rfind(|s| s.dir == packet::Dir::Forward).unwrap().timestamps,
        ..Segment::default()
    };
    let fin = data(1 + 2 * MSS, 0, Flags::ACK | Flags::FIN);
    let first = data(1, MSS, Flags::ACK);
    let before = pair.acks().count();
    pair.arrive(&fin);
    pair.serve();
    assert_eq!(pair.acks().count(), before + 1);
    pair.arrive(&first);
    pair.serve();
    assert_eq!(pair.acks().count(), before + 2);
}

/// Runs the client's timers up to `until`.
fn time_passes(pair: &mut TcpPair, until: Instant) {
    while let Some((at, _)) =
        machine::Endpoint::poll_timeout(&pair.client).filter(|&(at, _)| at <= until)
    {
        pair.now = at;
        pair.with(TcpSide::Client, |cx, end| machine::Endpoint::handle_timeout(end, cx));
        pair.serve();
    }
}

#[test]
fn a_window_that_is_too_small_is_filled_by_the_persist_timer() {
    // tcp_timer_persist with TF_FORCEDATA: a byte into a zero window, the whole window if it is
    // too small to be worth filling.
    for system in ["freebsd-13.0", "freebsd-14.3", "freebsd-main"] {
        for window in [0, 1] {
            let mut pair = in_flight(system, true);
            let all = (pair.client.snd.max.0 - 1) as u32;
            pair.hear(&Segment { ack: SeqNum(1_001 + all), ..ack(&pair, 0, window, &[]) });
            let forced = pair.client.snd.peer.wnd.max(1) as u32;
            assert!(forced < MSS);
            let sent = pair.data().count();
            let probes_at = pair.now + Duration::from_secs(6);
            time_passes(&mut pair, probes_at);
            let probe = pair.data().nth(sent).map(|s| s.payload);
            assert_eq!(probe, Some(forced), "{system}");
        }
    }
}

#[test]
fn the_persist_timer_backs_off_by_the_count_of_timeouts() {
    // tcp_setpersist counts in t_rxtshift; an acknowledgment that does not advance leaves it
    // unchanged.
    let mut pair = in_flight("freebsd-14.3", true);
    let all = (pair.client.snd.max.0 - 1) as u32;
    pair.hear(&Segment { ack: SeqNum(1_001 + all), ..ack(&pair, 0, 0, &[]) });
    assert_eq!(pair.client.snd.rexmt.shift, 1);
    let later = pair.now + Duration::from_secs(11);
    time_passes(&mut pair, later);
    assert_eq!(pair.client.snd.rexmt.shift, 3);
}

#[test]
fn a_bad_timeout_is_undone_before_its_recovery_is_settled() {
    // 13.0 checks the echo when it reads the options: the recovery is restored when the
    // acknowledgment ends it, and cc_post_recovery leaves two segments. 14.3 checks only in
    // process_ACK.
    let mut pair = in_flight("freebsd-13.0", true);
    for last in 3..=5 {
        pair.hear(&ack(&pair, 0, 60_000, &[(2, last)]));
    }
    assert!(pair.client.snd.cc.in_recovery());
    // It echoes a timestamp from before the timeout.
    let early = ack(&pair, 0, 60_000, &[]);
    let at = machine::Endpoint::poll_timeout(&pair.client).unwrap().0;
    time_passes(&mut pair, at);
    assert_eq!(pair.client.totals().timeouts, 1);
    let all = (pair.client.snd.max.0 - 1) as u32;
    pair.arrive(&Segment { ack: SeqNum(1_001 + all), ..early });
    assert_eq!(pair.client.totals().spurious, 1);
    assert!(!pair.client.snd.cc.in_recovery());
    assert_eq!(cwnd(&pair), 2 * 1_460);
}

#[test]
fn idle_time_counts_in_ticks() {
    // tcp_output: `ticks - t_sndtime >= t_rxtcur`. There are 229.2 ms between tick 6 and tick 236.
    let mut pair = in_flight("freebsd-main", true);
    let at = |us| Instant::ZERO + Duration::from_micros(us);
    (pair.client.snd.last.received, pair.client.snd.last.sent) = (at(6_900), at(6_900));
    let is_long =
        |us| pair.client.snd.idle_for(&pair.client.conn, at(us), Duration::from_millis(230)).2;
    assert!(is_long(236_100));
    assert!(!is_long(235_900));
}
