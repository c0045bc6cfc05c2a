//! The slow-start overshoot: 28,000 packets in flight, half of them lost, every acknowledgment with
//! three SACK blocks. `cargo bench -p ackclock-recovery` prints nanoseconds per packet; each line
//! is the best of several runs, since any disturbance makes a run slower.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::hint::black_box;
use std::time::Instant as TcpProbeClock;

use ackclock_recovery::dsack::SackRange;
use ackclock_recovery::holes::{HolesParams, SackInput, SackScoreboard};
use ackclock_recovery::rack::{DeliveredSegment, Rack, RackInput};
use ackclock_recovery::sendmap::SendMap;
use units::{Duration, Instant, Offset};

const PACKETS: u64 = 28_000;
const MSS: u64 = 1_448;
const RTT: Duration = Duration::from_millis(100);
/// Nanoseconds from one packet to the next: 100 ms for all.
const GAP: u64 = 100_000_000 / PACKETS;
const TRIES: u32 = 15;

/// An acknowledgment.
struct Ack {
    th_ack: Offset,
    blocks: Vec<SackRange>,
    now: Instant,
}

fn at(packet: u64) -> Offset {
    Offset(packet * MSS)
}

/// The receiver's acknowledgments: of the packets that arrive, then of the retransmissions of the
/// others, in order, one round trip after the acknowledgment that released them. The blocks are the
/// most recently changed ones (RFC 2018 section 4).
fn acks(lost: impl Fn(u64) -> bool) -> Vec<Ack> {
    let mut arrivals: Vec<(u64, u64)> =
        (0..PACKETS).filter(|&packet| !lost(packet)).map(|packet| (packet, packet)).collect();
    let retransmitted = (0..PACKETS).filter(|&packet| lost(packet));
    let slots: Vec<u64> = arrivals.iter().map(|&(_, slot)| slot + PACKETS).collect();
    arrivals.extend(retransmitted.zip(slots));
    let mut received = vec![false; PACKETS as usize + 1];
    let mut recent: Vec<(u64, u64)> = Vec::new();
    let mut next = 0;
    let mut acks = Vec::new();
    for (packet, slot) in arrivals {
        received[packet as usize] = true;
        while received[next as usize] {
            next += 1;
        }
        let (mut from, mut to) = (packet, packet + 1);
        recent.retain(|&(start, end)| {
            let joins = start <= to && from <= end;
            if joins {
                (from, to) = (from.min(start), to.max(end));
            }
            !joins && end > next
        });
        if to > next {
            recent.insert(0, (from, to));
        }
        // The receiver remembers a few blocks and reports three.
        recent.truncate(6);
        let now = RTT + Duration::from_nanos(slot * GAP);
        acks.push(Ack {
            th_ack: at(next),
            blocks: recent.iter().take(3).map(|&(from, to)| (at(from), at(to))).collect(),
            now: Instant::ZERO + now,
        });
    }
    acks
}

/// FreeBSD's base stack: each acknowledgment retransmits from one hole.
fn holes(acks: &[Ack], max_holes: usize) -> u64 {
    let mut holes = SackScoreboard::new(HolesParams { max_holes, ..HolesParams::FREEBSD_MAIN });
    let mut una = Offset(0);
    let mut sum = 0;
    for ack in acks {
        let update = holes.update(&SackInput {
            th_ack: ack.th_ack,
            blocks: &ack.blocks,
            snd_una: una,
            snd_max: at(PACKETS),
            snd_recover: at(PACKETS),
            t_maxseg: 1_460,
        });
        una = ack.th_ack;
        if holes.next_hole().is_some() {
            holes.on_retransmit(MSS, at(PACKETS));
        }
        sum += update.delivered + holes.pipe(una, at(PACKETS)).unsigned_abs();
    }
    sum
}

fn flight() -> SendMap {
    let mut map = SendMap::new();
    for packet in 0..PACKETS {
        map.push(at(packet), at(packet + 1), Instant::from_nanos(packet * GAP));
    }
    map
}

/// RACK on the send map: each acknowledgment runs loss detection and retransmits one packet.
fn rack(acks: &[Ack], reordering: bool) -> u64 {
    let (mut map, mut rack) = (flight(), Rack::new());
    if reordering {
        let first = DeliveredSegment {
            sent_at: Instant::ZERO,
            end: at(2),
            retransmitted: false,
            echo_older: false,
        };
        rack.on_delivered(&first, Instant::ZERO + RTT, RTT);
        rack.on_delivered(&DeliveredSegment { end: at(1), ..first }, Instant::ZERO + RTT, RTT);
    }
    let mut sum = 0;
    for ack in acks {
        let now = ack.now;
        let mut delivered = |segment: &ackclock_recovery::sendmap::SentSegment| {
            rack.on_delivered(&DeliveredSegment::of(segment, false), now, RTT);
        };
        map.acknowledge(ack.th_ack, |segment| {
            if !segment.sacked() {
                delivered(segment);
            }
        });
        map.apply_sack(&ack.blocks, &mut delivered);
        let standing = RackInput { now, in_recovery: true, min_rtt: RTT, srtt: RTT };
        sum += rack.detect_loss(&mut map, &standing).packets;
        if let Some(&segment) = map.next_lost() {
            map.retransmit(segment.start(), segment.end(), now, false);
        }
        sum += map.sums().pipe();
    }
    assert!(map.is_empty());
    sum
}

/// No loss: every second packet is acknowledged, with a hundred in flight.
fn lossless() -> u64 {
    let mut map = SendMap::new();
    let mut sum = 0;
    for packet in 0..PACKETS {
        map.push(at(packet), at(packet + 1), Instant::from_nanos(packet * GAP));
        if packet % 2 == 1 && packet > 100 {
            map.acknowledge(at(packet - 99), |segment| sum += segment.sent_at().as_nanos());
        }
    }
    sum
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures wall-clock time")]
fn best(mut run: impl FnMut() -> u64) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..TRIES {
        let begin = TcpProbeClock::now();
        black_box(run());
        best = best.min(begin.elapsed().as_secs_f64());
    }
    best * 1e9 / PACKETS as f64
}

fn main() {
    let every_other = acks(|packet| packet % 2 == 0);
    let half = acks(|packet| packet < PACKETS / 2);
    let line = |name: &str, ns: f64| println!("{name:<48}{ns:>8.1} ns/packet");
    for (lost, acks) in [("every other lost", &every_other), ("first half lost", &half)] {
        line(&format!("holes, at most 128, {lost}"), best(|| holes(black_box(acks), 128)));
        line(&format!("holes, unbounded, {lost}"), best(|| holes(black_box(acks), 1 << 20)));
        line(&format!("map and RACK, {lost}"), best(|| rack(black_box(acks), false)));
        line(
            &format!("map and RACK, reordering known, {lost}"),
            best(|| rack(black_box(acks), true)),
        );
    }
    line("map, nothing lost", best(lossless));
}
