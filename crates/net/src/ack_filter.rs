//! ACK filter, as in cable modems, radio links and middleboxes (RFC 3449 section 5.2.1).
//!
//! The convention is that of the Linux golden traces (`ackthin=k:t`): of each connection, one bare
//! ACK passes per k full segments of newly acknowledged bytes, or after the filter has held one for
//! t; a newer ACK replaces the held one.

use std::collections::VecDeque;

use machine::{Element, PacketAck, PacketId, PacketVerdict, PacketView};
use units::{Bytes, Dir, Duration, FlowId, Instant, SeqNum};

/// Passes a fraction of the bare ACKs, always the newest.
///
/// All other packets pass at once, after the ACK held for their connection: data, SACK blocks,
/// flags, and bare ACKs that acknowledge nothing new (duplicates, window updates).
#[derive(Debug, Clone)]
pub struct AckFilter {
    bytes: u64,
    timeout: Duration,
    /// Directions of connections: index `2 * flow + back`.
    directions: Vec<AckFilterDirection>,
    /// Directions in the order in which their held ACK times out; stale entries remain after a
    /// release.
    deadlines: VecDeque<(Instant, u32)>,
    /// Packets that leave at `ready_at`.
    ready: VecDeque<PacketId>,
    ready_at: Instant,
}

/// State of one direction of a connection.
#[derive(Debug, Clone, Copy, Default)]
struct AckFilterDirection {
    /// The newest acknowledgment number that has passed.
    passed: Option<SeqNum>,
    held: Option<HeldAck>,
}

#[derive(Debug, Clone, Copy)]
struct HeldAck {
    packet: PacketId,
    ack: SeqNum,
    until: Instant,
}

/// Bytes from `earlier` to `ack`; zero or negative if `ack` is no newer.
fn bytes_beyond(ack: SeqNum, earlier: SeqNum) -> i64 {
    i64::from(ack.0.wrapping_sub(earlier.0) as i32)
}

impl AckFilter {
    /// Passes one ACK per `bytes` newly acknowledged or `timeout`.
    pub const fn new(bytes: Bytes, timeout: Duration) -> Self {
        Self {
            bytes: bytes.get(),
            timeout,
            directions: Vec::new(),
            deadlines: VecDeque::new(),
            ready: VecDeque::new(),
            ready_at: Instant::ZERO,
        }
    }

    fn direction_index(&mut self, flow: FlowId, dir: Dir) -> usize {
        let number = 2 * flow.0 as usize + dir as usize;
        if self.directions.len() <= number {
            self.directions.resize_with(number + 1, AckFilterDirection::default);
        }
        number
    }

    /// Forwards a packet, queued after the packets that are ready to leave.
    fn forward(&mut self, packet: PacketId) -> PacketVerdict {
        if self.ready.is_empty() {
            return PacketVerdict::Forwarded;
        }
        self.ready.push_back(packet);
        PacketVerdict::Queued
    }

    /// Makes the direction's held ACK ready to leave.
    fn release(&mut self, now: Instant, way: usize) {
        let way = &mut self.directions[way];
        if let Some(held) = way.held.take() {
            way.passed = Some(held.ack);
            self.ready.push_back(held.packet);
            self.ready_at = now;
        }
    }

    /// Handles a bare ACK that acknowledges new data.
    fn on_new_ack(
        &mut self,
        now: Instant,
        way: usize,
        packet: PacketId,
        ack: SeqNum,
    ) -> PacketVerdict {
        let AckFilterDirection { passed, held } = self.directions[way];
        let enough = passed.is_none_or(|passed| bytes_beyond(ack, passed) as u64 >= self.bytes);
        if enough {
            self.directions[way] = AckFilterDirection { passed: Some(ack), held: None };
            let Some(held) = held else { return self.forward(packet) };
            self.ready.push_back(packet);
            self.ready_at = now;
            return PacketVerdict::Replaced(held.packet);
        }
        let until = held.map_or(now + self.timeout, |held| held.until);
        self.directions[way].held = Some(HeldAck { packet, ack, until });
        match held {
            Some(held) => PacketVerdict::Replaced(held.packet),
            None => {
                self.deadlines.push_back((until, way as u32));
                PacketVerdict::Queued
            }
        }
    }
}

impl Element for AckFilter {
    fn accept(&mut self, now: Instant, packet: PacketId, view: &PacketView) -> PacketVerdict {
        let way = self.direction_index(view.flow, view.dir);
        let AckFilterDirection { passed, held } = self.directions[way];
        let newest = held.map(|held| held.ack).or(passed);
        let news = |ack| newest.is_none_or(|newest| bytes_beyond(ack, newest) > 0);
        if let PacketAck::Pure(ack) = view.ack
            && news(ack)
        {
            return self.on_new_ack(now, way, packet, ack);
        }
        self.release(now, way);
        if let PacketAck::Piggybacked(ack) = view.ack
            && news(ack)
        {
            self.directions[way].passed = Some(ack);
        }
        self.forward(packet)
    }

    fn next_wake(&self) -> Option<Instant> {
        if self.ready.is_empty() {
            // The front entry may be stale; that wake-up then releases nothing.
            self.deadlines.front().map(|&(at, _)| at)
        } else {
            Some(self.ready_at)
        }
    }

    fn wake(&mut self, now: Instant) -> Option<PacketId> {
        while let Some(&(at, way)) = self.deadlines.front().filter(|&&(at, _)| at <= now) {
            self.deadlines.pop_front();
            if self.directions[way as usize].held.is_some_and(|held| held.until == at) {
                self.release(at, way as usize);
            }
        }
        self.ready.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{bare_ack, data, leave};

    const KEPT: &str = "Q";
    const THINNED: &str = "T";

    /// From golden trace b4_ackthin_reno (`ackthin=16:4000`, MSS 1448): `t_us` in tenths, `ack`,
    /// `fate`, and for ACKs that passed `sched_us` less the 20 ms of delay after the filter. The
    /// emulator wakes up to 50 us late for a timeout.
    const GOLDEN: &[(u64, u32, &str, u64)] = &[
        (605_641, 1_448, THINNED, 0),
        (606_373, 2_896, THINNED, 0),
        (607_891, 4_344, THINNED, 0),
        (609_203, 5_792, THINNED, 0),
        (610_071, 7_240, THINNED, 0),
        (611_470, 8_688, THINNED, 0),
        (612_623, 10_136, THINNED, 0),
        (613_844, 11_584, THINNED, 0),
        (615_111, 13_032, THINNED, 0),
        (616_246, 14_480, KEPT, 645_975),
        (1_050_759, 15_928, THINNED, 0),
        (1_051_873, 17_376, THINNED, 0),
        (1_052_227, 18_824, THINNED, 0),
        (1_053_266, 20_272, THINNED, 0),
        (1_054_631, 21_720, THINNED, 0),
        (1_055_496, 23_168, THINNED, 0),
        (1_056_730, 24_616, THINNED, 0),
        (1_058_285, 26_064, THINNED, 0),
        (1_059_103, 27_512, THINNED, 0),
        (1_060_641, 28_960, THINNED, 0),
        (1_061_493, 30_408, THINNED, 0),
        (1_062_866, 31_856, THINNED, 0),
        (1_065_243, 34_752, THINNED, 0),
        (1_067_660, 37_648, KEPT, 1_067_660),
        (1_070_176, 40_544, THINNED, 0),
        (1_072_759, 43_440, KEPT, 1_110_456),
    ];

    fn at(tenths: u64) -> Instant {
        Instant::from_nanos(tenths * 100)
    }

    /// A SYN-ACK that acknowledges all bytes before 0.
    fn syn_ack() -> PacketView {
        PacketView { ack: PacketAck::Piggybacked(SeqNum(0)), ..bare_ack(0) }
    }

    #[test]
    fn acks_are_thinned_as_in_the_golden_trace() {
        let mut thin = AckFilter::new(Bytes(16 * 1_448), Duration::from_millis(4));
        assert_eq!(thin.accept(at(201_323), PacketId(0), &syn_ack()), PacketVerdict::Forwarded);
        let mut kept: Vec<(u64, u32)> = Vec::new();
        let mut thinned = Vec::new();
        let waken = |thin: &mut AckFilter, kept: &mut Vec<_>, before| {
            while let Some(due) = thin.next_wake().filter(|due| *due < before) {
                kept.extend(leave(thin, due).iter().map(|&(ns, id)| (ns / 100, id)));
            }
        };
        for &(tenths, ack, ..) in GOLDEN {
            waken(&mut thin, &mut kept, at(tenths));
            match thin.accept(at(tenths), PacketId(ack), &bare_ack(ack)) {
                PacketVerdict::Forwarded => kept.push((tenths, ack)),
                PacketVerdict::Replaced(PacketId(old)) => thinned.push(old),
                verdict => assert_eq!(verdict, PacketVerdict::Queued),
            }
        }
        waken(&mut thin, &mut kept, at(2_000_000));
        let fate = |fate| GOLDEN.iter().filter(move |row| row.2 == fate);
        let expected: Vec<u32> = fate(THINNED).map(|row| row.1).collect();
        assert_eq!(thinned, expected);
        assert_eq!(kept.len(), fate(KEPT).count());
        for (&(left, ack), row) in kept.iter().zip(fate(KEPT)) {
            assert_eq!(ack, row.1);
            assert!(row.3.abs_diff(left) <= 500, "{left}, not {}", row.3);
        }
    }

    /// The held ACK and the one with SACK blocks leave at the same instant, in order: rows 1158 and
    /// 1159 of the same trace.
    #[test]
    fn a_passing_packet_releases_the_held_ack() {
        let mut thin = AckFilter::new(Bytes(16 * 1_448), Duration::from_millis(4));
        thin.accept(
            at(0),
            PacketId(0),
            &PacketView { ack: PacketAck::Piggybacked(SeqNum(1_925_840)), ..syn_ack() },
        );
        let held = thin.accept(at(4_019_417), PacketId(1), &bare_ack(1_937_424));
        assert_eq!(held, PacketVerdict::Queued);
        let sack = PacketView { ack: PacketAck::Piggybacked(SeqNum(1_937_424)), ..syn_ack() };
        assert_eq!(thin.accept(at(4_020_246), PacketId(2), &sack), PacketVerdict::Queued);
        assert_eq!(leave(&mut thin, at(4_020_246)), [(402_024_600, 1), (402_024_600, 2)]);
        // No ACK is held when the next one arrives.
        assert_eq!(thin.accept(at(4_021_609), PacketId(3), &sack), PacketVerdict::Forwarded);
        assert_eq!(leave(&mut thin, at(4_059_417)), []);
        assert_eq!(thin.next_wake(), None);
    }

    #[test]
    fn duplicates_and_data_pass() {
        let mut thin = AckFilter::new(Bytes(10_000), Duration::from_millis(4));
        assert_eq!(thin.accept(at(0), PacketId(0), &bare_ack(100)), PacketVerdict::Forwarded);
        assert_eq!(thin.accept(at(1), PacketId(1), &bare_ack(100)), PacketVerdict::Forwarded);
        assert_eq!(thin.accept(at(2), PacketId(2), &bare_ack(200)), PacketVerdict::Queued);
        let old = PacketView { dir: Dir::Reverse, ..data(1_500) };
        assert_eq!(thin.accept(at(3), PacketId(3), &old), PacketVerdict::Queued);
        assert_eq!(leave(&mut thin, at(3)), [(300, 2), (300, 3)]);
        assert_eq!(thin.accept(at(4), PacketId(4), &old), PacketVerdict::Forwarded);
    }

    /// Sequence numbers wrap; connections and their directions are independent.
    #[test]
    fn each_direction_has_its_own_count() {
        let mut thin = AckFilter::new(Bytes(1_000), Duration::from_millis(4));
        let of = |flow, ack| PacketView { flow: FlowId(flow), ..bare_ack(ack) };
        assert_eq!(thin.accept(at(0), PacketId(0), &of(0, u32::MAX)), PacketVerdict::Forwarded);
        assert_eq!(thin.accept(at(0), PacketId(1), &of(3, 5)), PacketVerdict::Forwarded);
        assert_eq!(thin.accept(at(1), PacketId(2), &of(0, 99)), PacketVerdict::Queued);
        assert_eq!(thin.accept(at(2), PacketId(3), &of(3, 1_005)), PacketVerdict::Forwarded);
        assert_eq!(
            thin.accept(at(3), PacketId(4), &of(0, 999)),
            PacketVerdict::Replaced(PacketId(2))
        );
        assert_eq!(leave(&mut thin, at(3)), [(300, 4)]);
    }
}
