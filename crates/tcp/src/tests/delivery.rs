//! Delivery of every byte once and in order, and its acknowledgment.

use packet::{Dir, Flags, Segment};
use units::{Duration, SeqNum};

use super::pair::{TcpPair, config};
use crate::TcpSide;

const MINUTE: Duration = Duration::from_secs(60);

#[test]
fn a_megabyte_arrives_between_all_systems() {
    for client in crate::profile::NAMES {
        for server in crate::profile::NAMES {
            let mut pair = TcpPair::of(client, server);
            pair.to_write = 1_000_000;
            pair.run(MINUTE);
            assert_eq!(pair.read, 1_000_000, "{client} to {server}");
            // Two packets in one burst may wait for the delayed ACK of the RFC profile, which it
            // does not include in the probe timeout (RFC 8985 section 7.2).
            let probes = u64::from(client == "rfc" && server == "rfc");
            let retransmission = pair.client.totals().retransmitted_packets;
            assert!(retransmission <= probes, "{client} to {server}: {retransmission}");
        }
    }
}

#[test]
fn sequence_numbers_may_wrap() {
    for isn in [u32::MAX, u32::MAX - 70_000, 0x7fff_ff00] {
        let mut client = config("freebsd-13.2", TcpSide::Client);
        client.isn = SeqNum(isn);
        let mut pair = TcpPair::new(client, config("linux-6.18", TcpSide::Server));
        pair.to_write = 200_000;
        pair.run(MINUTE);
        assert_eq!(pair.read, 200_000, "from {isn}");
    }
}

#[test]
fn freebsd_acknowledges_every_second_segment_and_the_last_after_40_ms() {
    let mut client = config("freebsd-13.2", TcpSide::Client);
    client.tso = false;
    let mut pair = TcpPair::new(client, config("freebsd-13.2", TcpSide::Server));
    pair.to_write = 3 * 1_448;
    pair.run(MINUTE);
    let acked: Vec<_> = pair.acks().map(|ack| ack.ack.0 - 1_001).collect();
    assert_eq!(acked, [2_896, 4_344]);
    // 50 ms for each of four one-way trips (SYN, SYN-ACK, data, ACK), 40 ms of delay.
    assert_eq!(pair.now.as_nanos(), 240_000_000);
}

#[test]
fn a_merged_segment_is_acknowledged_at_once_and_once() {
    for system in ["freebsd-13.2", "linux-6.18"] {
        let mut pair = TcpPair::of("freebsd-13.2", system);
        pair.to_write = 14_480;
        pair.run(MINUTE);
        let acked: Vec<_> = pair.acks().map(|ack| ack.ack.0 - 1_001).collect();
        assert_eq!(acked, [14_480], "{system}");
    }
}

/// An established pair and a forged data segment of the client.
fn with_forged(payload: u32, at: u32) -> (TcpPair, Segment) {
    let mut pair = TcpPair::of("freebsd-13.2", "freebsd-13.2");
    pair.run(MINUTE);
    let last = *pair.log.last().unwrap();
    let forged = Segment {
        dir: Dir::Forward,
        flags: Flags::ACK,
        seq: SeqNum(1_001 + at),
        payload,
        gso_size: 0,
        ..last
    };
    (pair, forged)
}

#[test]
fn a_gap_is_answered_with_duplicates_that_carry_sack() {
    let (mut pair, forged) = with_forged(1_448, 1_448);
    pair.arrive(&forged);
    pair.serve();
    let dup = *pair.acks().last().unwrap();
    assert_eq!(dup.ack, SeqNum(1_001));
    let blocks: Vec<_> = dup.sack_blocks().iter().map(|b| (b.left.0, b.right.0)).collect();
    assert_eq!(blocks, [(2_449, 3_897)]);
    // The gap filled: all is delivered and acknowledged at once.
    let filler = Segment { seq: SeqNum(1_001), ..forged };
    pair.arrive(&filler);
    pair.serve();
    assert_eq!(pair.acks().last().unwrap().ack, SeqNum(1_001 + 2_896));
    assert_eq!(pair.read, 2_896);
}

#[test]
fn duplicate_data_is_acknowledged_and_not_delivered() {
    let (mut pair, forged) = with_forged(1_000, 0);
    pair.arrive(&forged);
    pair.serve();
    pair.arrive(&forged);
    pair.serve();
    assert_eq!(pair.read, 1_000);
    assert_eq!(pair.acks().last().unwrap().ack, SeqNum(2_001));
    // Half old, half new: only the new half counts.
    let overlapping = Segment { seq: SeqNum(1_501), ..forged };
    pair.arrive(&overlapping);
    pair.serve();
    assert_eq!(pair.read, 1_500);
}

#[test]
fn data_beyond_the_window_is_dropped() {
    let (mut pair, forged) = with_forged(1_448, 70_000);
    pair.arrive(&forged);
    pair.serve();
    let answer = pair.acks().last().unwrap();
    assert_eq!(answer.ack, SeqNum(1_001));
    assert!(answer.sack_blocks().is_empty());
}

#[test]
fn an_acknowledgment_of_unsent_data_changes_nothing() {
    let (mut pair, _) = with_forged(0, 0);
    let before = pair.client.sender_state();
    let mut ack = *pair.log[1..].iter().find(|s| s.dir == Dir::Reverse).unwrap();
    ack.flags = Flags::ACK;
    ack.options = packet::Options::default();
    ack.seq = SeqNum(2_000_000_001);
    ack.ack = SeqNum(5_000);
    pair.arrive(&ack);
    pair.serve();
    assert_eq!(pair.client.sender_state(), before);
    assert_eq!(pair.log.last().unwrap().dir, Dir::Forward, "it is answered with an ACK");
}

#[test]
fn the_reassembly_queue_is_bounded() {
    // Every second byte of 2,000: more gaps than FreeBSD stores (tcp_reass: one for each segment of
    // the buffer and one more, at most net.inet.tcp.reass.maxqueuelen). Dropped data has to be
    // retransmitted. Linux stores what fits its memory, at least 768 bytes for a packet.
    for system in crate::profile::NAMES {
        let mut pair = TcpPair::of(system, system);
        pair.run(MINUTE);
        let last = *pair.log.iter().rfind(|s| s.dir == Dir::Forward).unwrap();
        let byte = |at: u32| Segment {
            flags: Flags::ACK,
            seq: SeqNum(1_001 + at),
            payload: 1,
            gso_size: 0,
            ..last
        };
        let answers = (0..1_000).map(|n| {
            let before = pair.log.len();
            pair.arrive(&byte(2 * n + 1));
            pair.serve();
            pair.log[before..].iter().map(|s| s.sack_blocks().len()).max().unwrap_or(0)
        });
        let most = answers.max();
        assert_eq!(most, Some(3), "{system}: blocks that fit beside timestamps");
        for n in 0..1_000 {
            pair.arrive(&byte(2 * n));
            pair.serve();
        }
        // 1,000 bytes in order, and the stored ranges that they joined; the rest is after a gap
        // that was dropped. 65,700 / 1,460 + 1 = 46; 131,072 / 768 + 1 = 171.
        let kept = match system {
            _ if system.starts_with("linux") => 2 * 171 + 1,
            "rfc" => 2_000,
            _ => 2 * 46 + 1,
        };
        assert_eq!(pair.read, kept, "{system}");
        for n in 0..2_000 {
            pair.arrive(&byte(n));
            pair.serve();
        }
        assert_eq!(pair.read, 2_000, "{system}");
    }
}

/// The right edge of the window that the server has advertised, as a sequence number.
fn edge(pair: &TcpPair) -> SeqNum {
    let scale = pair.log[1].syn_options().and_then(|options| options.window_scale).unwrap_or(0);
    let ack = pair.acks().last().unwrap();
    SeqNum(ack.ack.0 + (u32::from(ack.window) << scale))
}

#[test]
fn data_at_the_window_edge_is_answered_and_an_acknowledgment_there_is_accepted() {
    // RFC 9293 section 3.10.7.4 requires an ACK for data that does not fit. It also rejects pure
    // ACKs at the edge, but both kernels accept them: tcp_sequence of Linux, `todrop > 0` in
    // tcp_do_segment of FreeBSD. A peer that has filled the window sends just these.
    for system in crate::profile::NAMES {
        let mut pair = TcpPair::of(system, system);
        pair.to_write = 2_896;
        pair.run(MINUTE);
        let last = *pair.log.iter().rfind(|s| s.dir == Dir::Forward).unwrap();
        let seq = edge(&pair);
        let before = pair.log.len();
        let data = Segment { flags: Flags::ACK, seq, payload: 100, gso_size: 0, ..last };
        pair.arrive(&data);
        pair.serve();
        assert_eq!(pair.log.len(), before + 1, "{system}");
        // An ACK of 100 bytes that the server has sent.
        pair.with(TcpSide::Server, |cx, end| assert_eq!(end.write(cx, 100), 100));
        pair.serve();
        let ack = SeqNum(2_000_000_001 + 100);
        pair.arrive(&Segment { payload: 0, ack, ..data });
        let state = pair.server.sender_state();
        assert_eq!(state.snd_una.0, 100, "{system}");
    }
}

#[test]
fn acknowledgments_are_processed_with_a_zero_receive_window() {
    // RFC 9293 section 3.10.7.4: with a zero window only the ACK of a segment is processed.
    let mut server = config("freebsd-13.2", TcpSide::Server);
    for (name, value) in [
        ("net.inet.tcp.recvspace", crate::knobs::KnobValue::Size(units::Bytes(4_096))),
        ("net.inet.tcp.recvbuf_auto", crate::knobs::KnobValue::Switch(false)),
    ] {
        let knob = crate::knobs::find(&server.profile, name).unwrap();
        knob.set(&mut server.profile, value).unwrap();
    }
    let mut pair = TcpPair::new(config("freebsd-13.2", TcpSide::Client), server);
    pair.reads = false;
    pair.to_write = 50_000;
    pair.run(Duration::from_secs(20));
    assert_eq!(pair.acks().last().unwrap().window, 0);
    pair.with(TcpSide::Server, |cx, end| assert_eq!(end.write(cx, 100), 100));
    pair.serve();
    let probe = *pair.data().last().unwrap();
    let next = edge(&pair);
    let ack = SeqNum(2_000_000_001 + 100);
    pair.arrive(&Segment { seq: next, ack, payload: 1, gso_size: 0, ..probe });
    assert_eq!(pair.server.sender_state().snd_una.0, 100);
}

#[test]
fn only_the_duplicate_part_is_reported_as_dsack() {
    // RFC 2883 section 4: the first block is the data that the receiver already had. `todrop` in
    // tcp_do_segment of FreeBSD, tcp_data_queue of Linux (a partial packet).
    let (mut pair, forged) = with_forged(1_000, 0);
    pair.arrive(&forged);
    pair.serve();
    let before = pair.log.len();
    pair.arrive(&Segment { seq: SeqNum(1_501), ..forged });
    pair.run(MINUTE);
    let answer = pair.log[before];
    assert_eq!(answer.ack, SeqNum(2_501), "{:?}", &pair.log[before..]);
    let blocks: Vec<_> = answer.sack_blocks().iter().map(|b| (b.left.0, b.right.0)).collect();
    assert_eq!(blocks, [(1_501, 2_001)]);
}

#[test]
fn freebsd_acknowledges_a_partly_old_segment_at_once() {
    // TF_ACKNOW at `todrop` of tcp_do_segment, also where the new part alone would be delayed.
    let mut pair = TcpPair::of("freebsd-14.3", "freebsd-14.3");
    pair.to_write = 1_000;
    pair.run(MINUTE);
    let data = *pair.data().next().unwrap();
    let before = pair.log.len();
    pair.arrive(&Segment { payload: 1_100, ..data });
    pair.serve();
    let answers: Vec<_> = pair.log[before..].iter().map(|answer| answer.ack).collect();
    assert_eq!(answers, [SeqNum(1_001 + 1_100)]);
}

#[test]
fn freebsd_sends_a_window_update_for_two_more_segments() {
    // tcp_output: `adv >= 2 * t_maxseg`, where the buffer holds eight segments at most.
    let mut server = config("freebsd-13.2", TcpSide::Server);
    for (name, value) in [
        ("net.inet.tcp.recvspace", crate::knobs::KnobValue::Size(units::Bytes(8_192))),
        ("net.inet.tcp.recvbuf_auto", crate::knobs::KnobValue::Switch(false)),
    ] {
        let knob = crate::knobs::find(&server.profile, name).unwrap();
        knob.set(&mut server.profile, value).unwrap();
    }
    let mut pair = TcpPair::new(config("freebsd-13.2", TcpSide::Client), server);
    pair.reads = false;
    pair.to_write = 4_344;
    pair.run(MINUTE);
    let mut read = |bytes: u64| {
        let before = pair.log.len();
        pair.with(TcpSide::Server, |cx, end| assert_eq!(end.read_up_to(cx, bytes), bytes));
        pair.serve();
        pair.log.len() - before
    };
    // Twice 1,460 bytes are 2,920.
    assert_eq!(read(2_000), 0);
    assert_eq!(read(1_000), 1);
}
