//! A peer that closes its window over outstanding data. RFC 9293 section 3.8.6: the connection must
//! not be dropped while the peer answers, however long its window stays closed.

use machine::{Endpoint as _, Signal};
use packet::{Dir, Flags, Segment};
use units::{Duration, Instant, SeqNum};

use super::pair::{TcpPair, config};
use crate::profile::NAMES;
use crate::{TcpSide, TcpState};

/// Far longer than the time until a dead peer is dropped: 15 timeouts of Linux last 924.6 s and
/// more.
const LONG: Duration = Duration::from_secs(6 * 3_600);

/// The client has `bytes` to send, some of them in flight, and the peer advertises a zero window.
fn zero_window_over_data(system: &str, bytes: u64) -> TcpPair {
    let mut client = config(system, TcpSide::Client);
    client.tso = false;
    let mut pair = TcpPair::new(client, config("linux-6.18", TcpSide::Server));
    pair.run(Duration::from_secs(1));
    pair.lose = |_, _| true;
    pair.to_write = bytes;
    pair.with(TcpSide::Client, |cx, end| assert_eq!(end.write(cx, bytes), bytes));
    pair.serve();
    assert!(pair.data().count() > 1, "{system}");
    pair.hear(&window(&pair, 0, 0));
    pair
}

/// An ACK of the first `acked` payload bytes that opens the window by `open`, before scaling.
fn window(pair: &TcpPair, acked: i64, open: u16) -> Segment {
    Segment { window: open, ..pair.forge(Flags::ACK, 1, 1 + acked) }
}

/// Runs the client alone until `until`; a peer that `answers` acknowledges each segment with a zero
/// window. Returns the segments sent and their times.
fn live(pair: &mut TcpPair, until: Instant, answers: bool) -> Vec<(Instant, Segment)> {
    let mut sent = Vec::new();
    while let Some((at, _)) = pair.client.poll_timeout().filter(|&(at, _)| at <= until) {
        pair.now = pair.now.max(at);
        pair.with(TcpSide::Client, |cx, end| end.handle_timeout(cx));
        let before = pair.log.len();
        pair.serve();
        let new: Vec<_> =
            pair.log[before..].iter().filter(|s| s.dir == Dir::Forward).copied().collect();
        sent.extend(new.iter().map(|&segment| (pair.now, segment)));
        for _ in new.iter().filter(|_| answers) {
            pair.hear(&window(pair, 0, 0));
        }
    }
    pair.now = until;
    sent
}

/// Does the system count any pure ACK that does not advance as a duplicate, whatever its window, so
/// that it misses a window closed by one (tcp_is_sack_recovery, `goto drop`)?
fn is_blind(system: &str) -> bool {
    ["freebsd-14.3", "freebsd-main"].contains(&system)
}

#[test]
fn freebsd_14_and_later_miss_the_zero_window() {
    for system in ["freebsd-13.0", "freebsd-14.3", "freebsd-main"] {
        let pair = zero_window_over_data(system, 5_000);
        let state = pair.client.sender_state();
        assert_eq!(state.snd_wnd.get() > 0, is_blind(system), "{system}");
    }
}

#[test]
fn the_connection_is_kept_as_long_as_the_peer_answers() {
    for system in NAMES.into_iter().filter(|system| !is_blind(system)) {
        // All data in flight, and much more than that.
        for bytes in [5_000, 30_000] {
            let mut pair = zero_window_over_data(system, bytes);
            let sent = live(&mut pair, Instant::ZERO + LONG, true);
            assert_eq!(pair.client.state(), TcpState::Established, "{system} {bytes}");
            // After backoff there are at most two minutes between two probes.
            assert!(sent.len() as u64 >= LONG.as_nanos() / 120_000_000_000, "{system} {bytes}");
            // Only the head of the unacknowledged data; rack.c sends what a keepalive sends.
            let head = if system.starts_with("freebsd-rack") { 1_000 } else { 1_001 };
            assert!(sent.iter().all(|(_, s)| s.seq == SeqNum(head)), "{system} {bytes}");
        }
    }
}

#[test]
fn freebsd_and_the_rfcs_probe_with_a_byte_at_persist_intervals() {
    // tcp_output stops the retransmission timer, pulls snd_nxt back and sets the persist timer; if
    // no data is unsent, it does so once the retransmission timer has fired.
    for (system, least, most) in [("freebsd-13.0", 5, 60), ("freebsd-13.2", 5, 60), ("rfc", 1, 60)]
    {
        for bytes in [5_000, 30_000] {
            let mut pair = zero_window_over_data(system, bytes);
            let mut sent = live(&mut pair, Instant::ZERO + LONG, true);
            // A timeout of FreeBSD forces a segment, even if it is a pure ACK (`TF_ACKNOW`).
            sent.retain(|(_, s)| s.payload > 0);
            assert!(sent.iter().all(|(_, s)| s.payload == 1), "{system} {bytes}");
            let gaps: Vec<_> = sent.windows(2).map(|two| two[1].0.since(two[0].0)).collect();
            assert_eq!(gaps.first(), Some(&Duration::from_secs(least)), "{system} {bytes}");
            assert_eq!(gaps.last(), Some(&Duration::from_secs(most)), "{system} {bytes}");
            assert!(gaps.is_sorted(), "{system} {bytes}");
            assert!(pair.client.totals().timeouts <= 1, "{system} {bytes}");
        }
    }
}

#[test]
fn linux_probes_with_the_head_and_backs_off_to_two_minutes() {
    // tcp_retransmit_timer: "our retransmits become zero probes". The timeout doubles up to
    // TCP_RTO_MAX, whatever the peer answers.
    let mut pair = zero_window_over_data("linux-6.18", 30_000);
    let sent = live(&mut pair, Instant::ZERO + LONG, true);
    assert!(sent.iter().all(|(_, s)| s.payload == 1_448));
    let gaps: Vec<_> = sent.windows(2).map(|two| two[1].0.since(two[0].0).as_millis()).collect();
    // A timer of the wheel fires when its bucket has passed, and buckets are up to an eighth of
    // what was asked for.
    let mut timeout = gaps[0];
    for &gap in &gaps {
        assert!((timeout..=timeout + timeout / 7).contains(&gap.next_multiple_of(4)), "{gaps:?}");
        timeout = (2 * timeout).min(120_000);
    }
    assert!(gaps.len() > 100);
}

#[test]
fn linux_drops_a_silent_peer_after_twice_the_maximum_timeout() {
    // tcp_rtx_probe0_timed_out: nothing received for more than 240 s.
    let mut pair = zero_window_over_data("linux-6.18", 30_000);
    let received = pair.now;
    let sent = live(&mut pair, Instant::ZERO + LONG, false);
    assert_eq!(pair.client.state(), TcpState::Closed);
    assert!(pair.signals.contains(&(TcpSide::Client, Signal::Aborted)));
    let last = sent.last().unwrap().0.since(received);
    assert!(last > Duration::from_secs(120) && last <= Duration::from_secs(240), "{last}");
}

#[test]
fn outstanding_data_is_retransmitted_when_the_window_opens() {
    for system in NAMES.into_iter().filter(|system| !is_blind(system)) {
        let mut pair = zero_window_over_data(system, 5_000);
        let until = Instant::ZERO + Duration::from_secs(600);
        live(&mut pair, until, true);
        let before = pair.log.len();
        pair.hear(&window(&pair, 0, 60));
        let mut acked = 0;
        for _ in 0..20 {
            let came = pair.log[before..].iter().filter(|s| s.dir == Dir::Forward);
            let mut came: Vec<_> = came.map(|s| (s.seq.0 - 1_001, s.payload)).collect();
            came.sort_unstable();
            let had = acked;
            // The peer acknowledges all data without a gap.
            for (left, len) in came {
                if left <= acked {
                    acked = acked.max(left + len);
                }
            }
            if acked > had {
                pair.hear(&window(&pair, i64::from(acked), 60));
            } else if let Some((at, _)) = pair.client.poll_timeout() {
                // Linux waits for its timer: its window is one packet.
                pair.now = pair.now.max(at);
                pair.with(TcpSide::Client, |cx, end| end.handle_timeout(cx));
                pair.serve();
            }
        }
        assert_eq!(acked, 5_000, "{system}");
        assert_eq!(pair.client.acknowledged().get(), 5_000, "{system}");
    }
}

#[test]
fn zero_window_acks_are_not_duplicates() {
    // Without SACK a duplicate is an ACK that changes nothing; but while a sender probes, its
    // retransmission timer does not run, and FreeBSD counts duplicates only while it runs.
    for system in ["freebsd-13.2", "rfc"] {
        let mut client = config(system, TcpSide::Client);
        client.profile.sack = false;
        client.tso = false;
        let mut pair = TcpPair::new(client, config("linux-6.18", TcpSide::Server));
        pair.run(Duration::from_secs(1));
        pair.lose = |_, _| true;
        pair.with(TcpSide::Client, |cx, end| assert_eq!(end.write(cx, 30_000), 30_000));
        pair.serve();
        pair.hear(&window(&pair, 0, 0));
        live(&mut pair, Instant::ZERO + LONG, true);
        assert_eq!(pair.client.totals().fast_recoveries, 0, "{system}");
        assert_eq!(pair.client.totals().retransmitted_packets, 0, "{system}");
    }
}

#[test]
fn a_zero_window_with_the_same_numbers_is_accepted_by_linux_and_the_rfcs() {
    // RFC 9293 section 3.10.7.4: SND.WL2 =< SEG.ACK. FreeBSD accepts only a larger window (step 6
    // of tcp_do_segment), Linux a larger or a zero window (tcp_may_update_window, since 6.6).
    for (system, shut, halved) in
        [("freebsd-13.2", false, false), ("linux-6.18", true, false), ("rfc", true, true)]
    {
        for (open, believed) in [(0, shut), (20, halved)] {
            let mut pair = TcpPair::of(system, "linux-6.18");
            pair.run(Duration::from_secs(1));
            pair.hear(&window(&pair, 0, 50));
            let before = pair.client.sender_state().snd_wnd;
            pair.hear(&window(&pair, 0, open));
            let after = pair.client.sender_state().snd_wnd;
            assert_eq!(after < before, believed, "{system} {open}");
        }
    }
}

#[test]
fn linux_probes_with_the_head_of_the_outstanding_data() {
    // tcp_retransmit_timer, with a zero window: `tcp_retransmit_skb(sk, tcp_rtx_queue_head(sk),
    // 1)`.
    let mut pair = zero_window_over_data("linux-6.18", 5_000);
    let until = pair.now + Duration::from_secs(5);
    let sent = live(&mut pair, until, true);
    let repeated = |s: &Segment| s.payload == 1_448 && s.seq == SeqNum(1_001);
    assert!(sent.len() > 2, "{sent:?}");
    assert!(sent.iter().filter(|(_, s)| repeated(s)).count() > 2, "{sent:?}");
}
