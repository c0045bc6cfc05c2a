//! A capture beside the log of a QUIC host: the same packets on the wire.
//!
//! The packet numbers of a capture are encrypted. Compared are packets with short headers, in order, by
//! their lengths and times: of several packets of one length the log's first is the capture's first, unless it is more
//! than four times later than usual and 5 ms. The numbers below are exact, and which packet it was is not. The log and the capture are of one
//! connection if the capture has the log's group (the original destination connection ID) as an ID that the client
//! chose, or if there is no other; and if most packets match.
//!
//! The times are aligned at the first Initial, and then at the shortest delay in each direction. Compared is the time
//! that both have: a capture may end before the log does.
//!
//! Memory: 24 bytes for each datagram, at most [`MAX_DATAGRAMS`] of all captures.

use std::collections::{BTreeMap, VecDeque};

use packet::Dir;

use super::both_ends::PacketTrace;
use super::{QuicConnection, QuicLogs};
use crate::inputs::CapturedQuicConnection;
use crate::inputs::transit::percentiles;

/// Most datagrams kept of all captures; later ones are not compared.
pub(in crate::inputs) const MAX_DATAGRAMS: usize = 2_000_000;
/// A packet passes the second point at most this many times later than usual, and [`JITTER`] more.
const LATER: i64 = 4;
/// Clocks of log and capture differ by less within a connection, in ns.
const JITTER: i64 = 5_000_000;
/// Most packets that one may overtake.
const MOST_OVERTAKEN: usize = 64;
/// Fewest packets that match.
const LEAST: u64 = 4;

/// A captured datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::inputs) struct SeenDatagram {
    pub(in crate::inputs) at: u64,
    pub(in crate::inputs) len: u32,
    pub(in crate::inputs) dir: Dir,
    /// It has a packet with a short header and no other.
    pub(in crate::inputs) is_short: bool,
}

/// A log and a capture of one connection.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QuicBeside {
    /// Index of the log in [`Reading::quic`](crate::inputs::Reading::quic).
    pub log: usize,
    /// Index in [`Reading::captured_quic`](crate::inputs::Reading::captured_quic).
    pub capture: usize,
    /// The log's group is a connection ID of the capture.
    pub same_id: bool,
    /// Packets that the host of the log sent.
    pub sent: PacketsBeside,
    /// Packets that it received.
    pub received: PacketsBeside,
    /// Sent packets declared lost that were captured: lost after the capture point, or late.
    pub lost_after: u64,
    /// Sent packets declared lost that were not captured.
    pub lost_before: u64,
}

/// Packets of one direction in the log and in the capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PacketsBeside {
    /// Packets of the log.
    pub logged: u64,
    /// Datagrams of the capture.
    pub captured: u64,
    /// Those that match.
    pub matched: u64,
    /// Of the matched, those that passed the second point after one that passed the first later.
    pub reordered: u64,
    /// Median, 99th percentile and maximum of the time from one to the other, above the least, in ns.
    pub delays: Option<[i64; 3]>,
}

impl PacketsBeside {
    /// Packets in the log that the capture lacks.
    pub const fn not_captured(&self) -> u64 {
        self.logged - self.matched
    }

    /// Datagrams of the capture that the log lacks.
    pub const fn not_logged(&self) -> u64 {
        self.captured - self.matched
    }
}

/// A packet at one of the two points.
#[derive(Debug, Clone, Copy)]
struct SeenPacket {
    at: i64,
    len: i64,
    is_lost: bool,
}

impl QuicLogs {
    /// Compares each log with a capture that has its connection.
    pub(in crate::inputs) fn beside(&self, captured: &[CapturedQuicConnection]) -> Vec<QuicBeside> {
        let mut found = Vec::new();
        for (index, (log, packets)) in self.logs.iter().enumerate() {
            let has_id = |one: &&(usize, &CapturedQuicConnection)| {
                let is = |id: &packet::quic::ConnectionId| {
                    id.to_string().eq_ignore_ascii_case(&log.group)
                };
                !log.group.is_empty() && one.1.ids.iter().flatten().any(is)
            };
            let all: Vec<_> = captured.iter().enumerate().collect();
            let by_id = all.iter().find(has_id).copied();
            let only = (self.logs.len() == 1 && all.len() == 1).then(|| all[0]);
            let Some((capture, one)) = by_id.or(only) else { continue };
            let beside = compare(log, packets, one);
            let pair = beside.map(|beside| QuicBeside {
                log: index,
                capture,
                same_id: by_id.is_some(),
                ..beside
            });
            found.extend(pair);
        }
        found
    }
}

fn compare(
    log: &QuicConnection,
    packets: &PacketTrace,
    captured: &CapturedQuicConnection,
) -> Option<QuicBeside> {
    let out = if log.analysis.client? { Dir::Forward } else { Dir::Reverse };
    // The client's first Initial is the first packet of both.
    let begins = captured.datagrams.first().filter(|first| first.dir == Dir::Forward)?.at;
    let shift = difference(packets.first()?, begins);
    let datagrams = |dir: Dir| {
        let all = captured.datagrams.iter().filter(|one| one.dir == dir && one.is_short);
        let seen = |one: &SeenDatagram| SeenPacket {
            at: one.at.cast_signed(),
            len: i64::from(one.len),
            is_lost: false,
        };
        all.map(seen).collect::<Vec<_>>()
    };
    let logged = |all: &mut dyn Iterator<Item = (u64, u32, bool)>| {
        let seen = |(at, bytes, is_lost): (u64, u32, bool)| SeenPacket {
            at: at.saturating_add_signed(shift).cast_signed(),
            len: i64::from(bytes),
            is_lost,
        };
        all.map(seen).collect::<Vec<_>>()
    };
    let log_span = packets.span().map(|span| span.map(|at| at.saturating_add_signed(shift)))?;
    let capture_span = [begins, captured.datagrams.last()?.at];
    let log_span = log_span.map(u64::cast_signed);
    let capture_span = capture_span.map(u64::cast_signed);
    let (sent, lost) = follow_common(
        (&logged(&mut packets.short_sent()), log_span),
        (&datagrams(out), capture_span),
    );
    let arrived = datagrams(out.reversed());
    let (received, _) =
        follow_common((&arrived, capture_span), (&logged(&mut packets.short_received()), log_span));
    // The first point of received packets is the capture.
    let received =
        PacketsBeside { logged: received.captured, captured: received.logged, ..received };
    let matched = sent.matched + received.matched;
    let all = sent.logged.min(sent.captured) + received.logged.min(received.captured);
    (matched >= LEAST && matched * 2 >= all).then_some(QuicBeside {
        log: 0,
        capture: 0,
        same_id: false,
        sent,
        received,
        lost_after: lost.0,
        lost_before: lost.1,
    })
}

fn difference(from: u64, to: u64) -> i64 {
    to.cast_signed().wrapping_sub(from.cast_signed())
}

/// Follows packets over the time that both points have, [`Followed::all`] over their whole times: one that passes a point
/// while the other does not record is left out, unless it was found there.
fn follow_common(
    first: (&[SeenPacket], [i64; 2]),
    second: (&[SeenPacket], [i64; 2]),
) -> (PacketsBeside, (u64, u64)) {
    let Followed { mut all, lost, delays, pairs } = follow(first.0, second.0);
    let [least, most] = delays.unwrap_or([0; 2]);
    let mut is_matched = [vec![false; second.0.len()], vec![false; first.0.len()]];
    for (index, number) in pairs {
        (is_matched[0][index], is_matched[1][number]) = (true, true);
    }
    // When packets that the other point records pass this one.
    let [from, to] = second.1;
    let is_open = |packet: &SeenPacket| packet.at < from - least || packet.at > to - most;
    let open: Vec<&SeenPacket> =
        unmatched(first.0, &is_matched[1]).filter(|one| is_open(one)).collect();
    let [from, to] = first.1;
    let is_early_or_late = |packet: &&SeenPacket| packet.at < from + least || packet.at > to + most;
    let others = unmatched(second.0, &is_matched[0]).filter(is_early_or_late).count() as u64;
    let open_lost = open.iter().filter(|packet| packet.is_lost).count() as u64;
    all.logged -= open.len() as u64;
    all.captured -= others;
    (all, (lost.0, lost.1 - open_lost))
}

fn unmatched<'a>(
    packets: &'a [SeenPacket],
    is_matched: &'a [bool],
) -> impl Iterator<Item = &'a SeenPacket> {
    packets.iter().zip(is_matched).filter(|(_, is_matched)| !**is_matched).map(|(packet, _)| packet)
}

/// Packets that were followed from one point to another.
struct Followed {
    /// Its counts are `logged` at the first and `captured` at the second point.
    all: PacketsBeside,
    /// Of those lost, how many are at the second point and how many are not.
    lost: (u64, u64),
    /// Shortest and longest delay.
    delays: Option<[i64; 2]>,
    /// Indices at the second and the first point.
    pairs: Vec<(usize, usize)>,
}

/// Follows packets from `first` to `second`.
fn follow(first: &[SeenPacket], second: &[SeenPacket]) -> Followed {
    // Some stacks log a length without the tag of the encryption, or with other headers.
    let more = longest(second) - longest(first);
    let more = if more.abs() <= 64 { more } else { 0 };
    let mut out = PacketsBeside {
        logged: first.len() as u64,
        captured: second.len() as u64,
        ..PacketsBeside::default()
    };
    let mut lost = (0, 0);
    // Packets of the second point that are not matched, in order.
    let mut open: VecDeque<(usize, SeenPacket)> = VecDeque::new();
    let mut pairs = Vec::new();
    let (mut next, mut usual) = (0, 0);
    for (number, packet) in first.iter().enumerate() {
        while open.front().is_some_and(|(_, seen)| seen.at + JITTER < packet.at) {
            open.pop_front();
        }
        while next < second.len() && open.len() < MOST_OVERTAKEN {
            if second[next].at + JITTER >= packet.at {
                open.push_back((next, second[next]));
            }
            next += 1;
        }
        let fits = |(_, seen): &(usize, SeenPacket)| {
            seen.len == packet.len + more && seen.at - packet.at <= LATER * usual + JITTER
        };
        let found = open.iter().position(fits).and_then(|position| open.remove(position));
        match found {
            Some((index, seen)) => {
                out.matched += 1;
                let delay = seen.at - packet.at;
                usual = if pairs.is_empty() { delay } else { (7 * usual + delay) / 8 };
                pairs.push((index, number));
                lost.0 += u64::from(packet.is_lost);
            }
            None => lost.1 += u64::from(packet.is_lost),
        }
    }
    let delays = percentiles(certain_delays(first, second, &pairs));
    out.delays =
        delays.map(|[least, median, late, most]| [median - least, late - least, most - least]);
    pairs.sort_unstable();
    let mut latest = 0;
    for &(_, number) in &pairs {
        out.reordered += u64::from(number < latest);
        latest = latest.max(number);
    }
    let delays = delays.map(|[least, .., most]| [least, most]);
    Followed { all: out, lost, delays, pairs }
}

/// Delays of the packets that are certainly the same: between two matches of packets of another length than
/// most, both points have as many. `pairs` has the indices at the second and the first point.
fn certain_delays(
    first: &[SeenPacket],
    second: &[SeenPacket],
    pairs: &[(usize, usize)],
) -> Vec<i64> {
    let mut lengths = BTreeMap::<i64, u64>::new();
    for packet in first {
        *lengths.entry(packet.len).or_default() += 1;
    }
    let usual = lengths.into_iter().max_by_key(|one| one.1).map_or(0, |one| one.0);
    let (mut delays, mut open) = (Vec::new(), Vec::new());
    let mut before = (0, 0);
    for &(index, number) in pairs.iter().chain([&(second.len(), first.len())]) {
        let packet = first.get(number);
        if packet.is_none_or(|packet| packet.len != usual) {
            if index.wrapping_sub(before.0) == number - before.1 {
                delays.append(&mut open);
            }
            open.clear();
            before = (index, number);
        }
        open.extend(packet.zip(second.get(index)).map(|(packet, seen)| seen.at - packet.at));
    }
    delays.append(&mut open);
    delays
}

/// The largest length, which full packets have.
fn longest(packets: &[SeenPacket]) -> i64 {
    packets.iter().map(|packet| packet.len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    fn packets(all: &[(i64, i64)]) -> Vec<SeenPacket> {
        all.iter().map(|&(at, len)| SeenPacket { at: at * MS, len, is_lost: false }).collect()
    }

    #[test]
    fn packets_that_do_not_leave_are_counted_and_those_lost_are_on_a_side() {
        let mut log: Vec<_> = (0..100).map(|n| (n * 10, 1_200 - n % 7)).collect();
        log.push((1_000, 40));
        let mut logged = packets(&log);
        for lost in [3, 20, 50] {
            logged[lost].is_lost = true;
        }
        // 16 bytes of a tag, 2 ms; the packets 20 and 21 do not leave, 60 leaves twice.
        let wire = log.iter().enumerate().filter(|(n, _)| *n != 20 && *n != 21);
        let mut wire: Vec<_> = wire.map(|(_, &(at, len))| (at + 2, len + 16)).collect();
        let twice = wire[58];
        wire.insert(59, twice);
        let Followed { all: out, lost, .. } = follow(&logged, &packets(&wire));
        assert_eq!((out.logged, out.captured, out.matched), (101, 100, 99));
        assert_eq!((out.not_captured(), out.not_logged(), out.reordered), (2, 1, 0));
        assert_eq!(lost, (2, 1));
        assert_eq!(out.delays, Some([0, 0, 0]));
    }

    #[test]
    fn a_packet_that_is_overtaken_in_the_host_is_reordered() {
        let log: Vec<_> = (0..50).map(|n| (n, 1_000 + n)).collect();
        let mut wire = log.clone();
        // The tenth leaves after the thirteenth, 4 ms late.
        let (at, len) = wire.remove(10);
        wire.insert(13, (at + 4, len));
        let out = follow(&packets(&log), &packets(&wire)).all;
        assert_eq!((out.matched, out.reordered), (50, 1));
    }

    #[test]
    fn packets_after_the_end_of_the_capture_are_not_compared() {
        let log: Vec<_> = (0..100).map(|n| (n * 10, 1_200 - n % 7)).collect();
        let wire: Vec<_> = log.iter().take(40).map(|&(at, len)| (at + 2, len)).collect();
        let (log, wire) = (packets(&log), packets(&wire));
        let span = |from: i64, to: i64| [from * MS, to * MS];
        let (out, _) = follow_common((&log, span(0, 1_000)), (&wire, span(0, 395)));
        assert_eq!((out.logged, out.captured, out.matched), (40, 40, 40));
        // The other way round: the log begins late, and one packet is lost before it.
        let late = |packet: &SeenPacket| SeenPacket { at: packet.at + 4 * MS, ..*packet };
        let log: Vec<_> = log[20..30].iter().chain(&log[31..]).map(late).collect();
        let (out, _) = follow_common((&wire, span(0, 395)), (&log, span(200, 1_000)));
        assert_eq!((out.logged, out.captured, out.matched), (20, 19, 19));
    }
}
