//! Detects how the application writes, if it limits the sender.

use diagnose::CapturedPacket;
use packet::Dir;

use crate::losses::SequenceUnwrapper;

/// Pauses must exceed the total time divided by this to count as a write pattern.
const HABIT: u64 = 10;

/// Fewest ends of writes that show a pattern.
const FEWEST_ENDS: u64 = 12;

/// Write pattern of the application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WritePattern {
    /// All at once.
    Bulk,
    /// A chunk at fixed intervals: bytes, and the interval in ns.
    Paced(u64, u64),
}

/// Bytes written together.
#[derive(Debug, Clone, Copy)]
struct WriteBurst {
    begin: u64,
    end: u64,
    bytes: u64,
}

impl WritePattern {
    /// Whether pauses of `paused` ns in a `time` of ns are a pattern.
    pub(crate) const fn is_habit(paused: u64, time: u64) -> bool {
        paused.saturating_mul(HABIT) >= time
    }

    /// Detects the pattern from the new data of direction `dir`, captured at a point `to_sender` ns
    /// (round trip) from the sender. A write starts with data more than `pause` ns after the sender
    /// ran out of data: everything was acknowledged, or the last segment was shorter than `mss`.
    pub(crate) fn of(
        packets: &[CapturedPacket],
        dir: Dir,
        mss: u64,
        pause: u64,
        to_sender: u64,
    ) -> Self {
        let mut stream = SequenceUnwrapper::default();
        let mut writes: Vec<WriteBurst> = Vec::new();
        let (mut top, mut acked, mut acked_at, mut short) = (0, 0, 0, false);
        for packet in packets {
            let segment = &packet.segment;
            if segment.dir != dir {
                let Some(ack) = segment.acknowledgment() else { continue };
                let ack = stream.place(ack.0);
                if ack > acked {
                    (acked, acked_at) = (ack, packet.at.as_nanos() + to_sender);
                }
                continue;
            }
            let start = stream.place(segment.seq.0);
            let end = start + u64::from(segment.payload);
            if segment.payload == 0 || end <= top {
                continue;
            }
            let fresh = end - start.max(top);
            let at = packet.at.as_nanos();
            let since = |last: &WriteBurst| match (short, acked >= top) {
                // What an ACK releases is no write of its own.
                (true, _) if acked_at <= at => Some(last.end.max(acked_at)),
                (true, _) => Some(last.end),
                // Data released by an ACK follow immediately at the sender, and a round trip to it
                // later here.
                (false, true) => Some(last.end.max(acked_at)),
                (false, false) => None,
            };
            match writes.last_mut() {
                Some(last) if since(last).is_none_or(|since| at.saturating_sub(since) <= pause) => {
                    last.end = at;
                    last.bytes += fresh;
                }
                _ => writes.push(WriteBurst { begin: at, end: at, bytes: fresh }),
            }
            top = end;
            short = !u64::from(segment.payload).is_multiple_of(mss.max(1));
        }
        let (Some(first), Some(last)) = (writes.first(), writes.last()) else { return Self::Bulk };
        let paused: u64 =
            writes.windows(2).map(|pair| pair[1].begin.saturating_sub(pair[0].end)).sum();
        // Two pauses are no pattern; the last write may be shorter.
        if writes.len() < 4 || !Self::is_habit(paused, last.end - first.begin) {
            return Self::Bulk;
        }
        let bytes = median(writes[..writes.len() - 1].iter().map(|write| write.bytes));
        let every = median(writes.windows(2).map(|pair| pair[1].begin - pair[0].begin));
        Self::Paced(bytes, every)
    }
}

impl WritePattern {
    /// The pattern that the ends of writes show in the new data of direction `dir`: short segments after as many bytes each
    /// time, at shorter intervals than round trips of `rtt` ns: a buffer of the sender waits for ACKs.
    pub(crate) fn by_ends(
        packets: &[CapturedPacket],
        dir: Dir,
        mss: u64,
        rtt: u64,
    ) -> Option<Self> {
        let mut stream = SequenceUnwrapper::default();
        let mut top = 0;
        // Ends of short segments, with their times.
        let mut ends: Vec<(u64, u64)> = Vec::new();
        for packet in packets.iter().filter(|packet| packet.segment.dir == dir) {
            let payload = u64::from(packet.segment.payload);
            let end = stream.place(packet.segment.seq.0) + payload;
            if payload == 0 || end <= top {
                continue;
            }
            top = end;
            if !payload.is_multiple_of(mss.max(1)) {
                ends.push((end, packet.at.as_nanos()));
            }
        }
        let sizes = ends.windows(2).map(|pair| pair[1].0 - pair[0].0);
        let chunk = median(sizes.clone());
        let (first, last) = (ends.first()?, ends.last()?);
        let writes = (ends.len() - 1) as u64;
        let same = sizes.filter(|&size| size == chunk).count() as u64;
        if writes < FEWEST_ENDS || same * 4 < writes * 3 {
            return None;
        }
        let every = last.1.saturating_sub(first.1) / writes;
        (every > 0 && every * 5 <= rtt * 4).then_some(Self::Paced(chunk, every))
    }
}

fn median(values: impl Iterator<Item = u64>) -> u64 {
    let mut all: Vec<u64> = values.collect();
    all.sort_unstable();
    all.get(all.len() / 2).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use packet::{Flags, Segment};
    use units::{Instant, SeqNum};

    use super::*;

    fn packet(millis: u64, dir: Dir, seq: u32, ack: u32, payload: u32) -> CapturedPacket {
        let (flags, seq, ack) = (Flags::ACK, SeqNum(seq), SeqNum(ack));
        let segment = Segment { flags, dir, seq, ack, payload, ..Segment::default() };
        let at = Instant::from_nanos(millis * 1_000_000);
        CapturedPacket {
            at,
            frame: 1,
            segment,
            captured: payload,
            id: 0,
            ttl: 0,
            options_cut: false,
        }
    }

    #[test]
    fn paced_writes_are_detected_and_ack_clocking_is_not() {
        let mut paced = Vec::new();
        let mut clocked = Vec::new();
        for n in 0..10_u32 {
            // A chunk of 3,000 B each 50 ms, acknowledged after 20 ms.
            let (at, seq) = (50 * u64::from(n), 3_000 * n);
            paced.push(packet(at, Dir::Forward, seq, 0, 1_000));
            paced.push(packet(at, Dir::Forward, seq + 1_000, 0, 1_000));
            paced.push(packet(at, Dir::Forward, seq + 2_000, 0, 1_000));
            paced.push(packet(at + 20, Dir::Reverse, 0, seq + 3_000, 0));
            // The same amount per round trip of 50 ms, clocked by ACKs.
            clocked.push(packet(at, Dir::Forward, seq, 0, 3_000));
            clocked.push(packet(at + 50, Dir::Reverse, 0, seq + 3_000, 0));
        }
        let of = |packets: &[CapturedPacket], to_sender| {
            WritePattern::of(packets, Dir::Forward, 1_000, 5_000_000, to_sender)
        };
        assert_eq!(of(&paced, 0), WritePattern::Paced(3_000, 50_000_000));
        assert_eq!(of(&clocked, 0), WritePattern::Bulk);
    }

    /// 2,500 B each 6 ms over 20 ms, sent as they are written; and as much each time that a buffer is free again.
    #[test]
    fn short_segments_at_their_own_intervals_end_writes() {
        let writes = |every: u64| {
            let packets: Vec<_> = (0..60_u32)
                .map(|n| {
                    let sizes = [1_000, 1_000, 500];
                    let (write, part) = (n / 3, n as usize % 3);
                    packet(
                        every * u64::from(write),
                        Dir::Forward,
                        2_500 * write + 1_000 * (n % 3),
                        0,
                        sizes[part],
                    )
                })
                .collect();
            WritePattern::by_ends(&packets, Dir::Forward, 1_000, 20_000_000)
        };
        assert_eq!(writes(6), Some(WritePattern::Paced(2_500, 6_000_000)));
        assert_eq!(writes(21), None);
        assert_eq!(writes(40), None);
    }

    /// At the receiver everything is acknowledged at once, and the data that an ACK releases arrive
    /// a round trip later.
    #[test]
    fn at_the_receiver_flights_of_the_window_are_no_writes() {
        let mut flights = vec![syn(u32::MAX / 3)];
        for n in 0..10_u32 {
            let (at, seq) = (50 * u64::from(n), 3_000 * n);
            flights.push(packet(at, Dir::Forward, seq, 0, 3_000));
            flights.push(packet(at, Dir::Reverse, 0, seq + 3_000, 0));
        }
        let writes = WritePattern::of(&flights, Dir::Forward, 1_000, 12_500_000, 50_000_000);
        assert_eq!(writes, WritePattern::Bulk);
        // Nearer to the sender, the same are its pauses.
        let writes = WritePattern::of(&flights, Dir::Forward, 1_000, 12_500_000, 20_000_000);
        assert_eq!(writes, WritePattern::Paced(3_000, 50_000_000));
    }

    /// The acknowledgment number of a SYN without the ACK flag means nothing.
    #[test]
    fn a_syn_acknowledges_nothing() {
        let mut clocked = vec![syn(1 << 30)];
        for n in 0..10_u32 {
            let (at, seq) = (50 * u64::from(n), 3_000 * n);
            clocked.push(packet(at, Dir::Forward, seq, 0, 3_000));
            clocked.push(packet(at + 50, Dir::Reverse, 0, seq + 3_000, 0));
        }
        let writes = WritePattern::of(&clocked, Dir::Forward, 1_000, 5_000_000, 0);
        assert_eq!(writes, WritePattern::Bulk);
    }

    /// A SYN of the receiver with this number in the field of the acknowledgment.
    fn syn(ack: u32) -> CapturedPacket {
        let mut syn = packet(0, Dir::Reverse, 0, ack, 0);
        syn.segment.flags = Flags::SYN;
        syn
    }
}
