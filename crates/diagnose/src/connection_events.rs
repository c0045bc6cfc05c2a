//! How a connection was opened and how it ended: SYNs and their answers, resets, the ICMP errors
//! about its packets.

use std::net::IpAddr;

use packet::wire::IcmpProblem;
use packet::{Dir, Flags};
use units::{Duration, Instant};

use crate::CapturedPacket;

/// Most resets and ICMP errors that are kept.
const MAX_KEPT: usize = 16;

/// Packets of one kind: their number, the time and the frame of the first and of the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketSpan {
    /// Number of packets.
    pub count: u64,
    /// The first.
    pub first: (Instant, u64),
    /// The last.
    pub last: (Instant, u64),
}

impl Default for PacketSpan {
    fn default() -> Self {
        Self { count: 0, first: (Instant::ZERO, 0), last: (Instant::ZERO, 0) }
    }
}

impl PacketSpan {
    fn add(&mut self, at: Instant, frame: u64) {
        if self.count == 0 {
            self.first = (at, frame);
        }
        self.last = (at, frame);
        self.count += 1;
    }
}

/// An RST.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResetSegment {
    /// Time and frame.
    pub at: (Instant, u64),
    /// Direction; its host is the source of the packet, which need not have sent it.
    pub dir: Dir,
    /// Time to live; 0 if it is unknown.
    pub ttl: u8,
    /// Silence before it.
    pub silence: Duration,
    /// The last packet before it came from the other host.
    pub is_answer: bool,
    /// Bytes of each host, by [`Dir`], that were captured and not acknowledged.
    pub unacknowledged: [u32; 2],
    /// New bytes of the other host that were captured after it.
    pub missed: u32,
    /// It names the server, the last data before it came from the client, and that had not closed: a
    /// request without a response.
    pub is_unanswered: bool,
    /// The last data of either host before it were full segments with more to follow (no PSH): a message was cut off.
    pub is_within_message: bool,
    /// It acknowledges the last SYN before it, as an answer to that does (RFC 9293 section 3.5.2).
    pub acks_syn: bool,
    /// Number of hosts that had sent a FIN.
    pub fins: u8,
    /// The host that it names had sent a FIN.
    pub has_closed: bool,
}

impl ResetSegment {
    /// Bytes of the other host that the reset took from the application: not acknowledged, or later.
    pub fn lost(&self) -> u32 {
        self.unacknowledged[self.dir.reversed() as usize].saturating_add(self.missed)
    }
}

/// An ICMP error about a packet of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IcmpNotice {
    /// Time and frame.
    pub at: (Instant, u64),
    /// The host that reports it.
    pub reporter: IpAddr,
    /// What it reports.
    pub problem: IcmpProblem,
    /// Direction of the packet that it is about.
    pub dir: Dir,
}

/// The opening and the end of a connection.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ConnectionEvents {
    /// SYNs of the client.
    pub syns: PacketSpan,
    /// Those among them that ask for ECN (RFC 3168 section 6.1.1).
    pub ecn_syns: PacketSpan,
    /// SYN-ACKs of the server.
    pub syn_acks: PacketSpan,
    /// ACKs of the server that acknowledge none of the SYNs before them: a connection between the
    /// same ports is still open or in TIME-WAIT there (RFC 9293 section 3.10.7.4, RFC 5961).
    pub foreign_acks: PacketSpan,
    /// Packets of each host, by [`Dir`], that are neither SYN nor RST.
    pub others: [PacketSpan; 2],
    /// The first resets.
    pub resets: Vec<ResetSegment>,
    /// Number of resets.
    pub reset_count: u64,
    /// Smallest and largest time to live of each host's packets but resets; `None` if unknown.
    pub ttl: [Option<(u8, u8)>; 2],
    /// The first ICMP errors about its packets.
    pub icmp: Vec<IcmpNotice>,
    /// Number of ICMP errors.
    pub icmp_count: u64,
    isn: u32,
    isn_of_server: Option<u32>,
    /// Its SYN-ACKs have different sequence numbers.
    pub has_two_answers: bool,
    /// Next sequence number of each host, and the highest acknowledged one.
    next: [Option<u32>; 2],
    acked: [Option<u32>; 2],
    last: Option<(Instant, Dir)>,
    last_data: Option<Dir>,
    /// The last data of each host had no PSH.
    unfinished: [bool; 2],
    fins: u8,
}

/// Whether the sequence number `one` is after `other`.
const fn is_after(one: u32, other: u32) -> bool {
    one.wrapping_sub(other).cast_signed() > 0
}

impl ConnectionEvents {
    /// Records the next packet.
    pub(crate) fn push(&mut self, packet: &CapturedPacket) {
        let segment = &packet.segment;
        let (at, frame) = (packet.at, packet.frame);
        let dir = segment.dir;
        let has = |flag: Flags| segment.flags.has(flag);
        if has(Flags::RST) {
            self.reset(packet);
        } else {
            if has(Flags::SYN) {
                if has(Flags::ACK) {
                    self.syn_acks.add(at, frame);
                    let first = *self.isn_of_server.get_or_insert(segment.seq.0);
                    self.has_two_answers |= segment.seq.0 != first;
                } else {
                    self.isn = segment.seq.0;
                    self.syns.add(at, frame);
                    if has(Flags::ECE) && has(Flags::CWR) {
                        self.ecn_syns.add(at, frame);
                    }
                }
            } else {
                let opening = self.syns.count > 0 && self.syn_acks.count == 0;
                let is_foreign = has(Flags::ACK) && !self.acks_syn(segment.ack.0);
                if opening && dir == Dir::Reverse && is_foreign {
                    self.foreign_acks.add(at, frame);
                }
                self.others[dir as usize].add(at, frame);
            }
            if packet.ttl > 0 {
                let (low, high) = self.ttl[dir as usize].unwrap_or((packet.ttl, packet.ttl));
                self.ttl[dir as usize] = Some((low.min(packet.ttl), high.max(packet.ttl)));
            }
            // A FIN is no data.
            let fin = u32::from(has(Flags::FIN));
            let end = segment.seq.0.wrapping_add(segment.seq_len().wrapping_sub(fin));
            let next = self.next[dir as usize].get_or_insert(end);
            if is_after(end, *next) {
                let new = end.wrapping_sub(*next).min(segment.payload);
                *next = end;
                for reset in self.resets.iter_mut().filter(|reset| reset.dir != dir) {
                    reset.missed = reset.missed.saturating_add(new);
                }
            }
            if has(Flags::ACK) {
                let acked = self.acked[dir.reversed() as usize].get_or_insert(segment.ack.0);
                if is_after(segment.ack.0, *acked) {
                    *acked = segment.ack.0;
                }
            }
            if segment.payload > 0 {
                self.last_data = Some(dir);
                self.unfinished[dir as usize] = !has(Flags::PSH) && !has(Flags::FIN);
            }
            self.fins |= u8::from(has(Flags::FIN)) << dir as u8;
        }
        self.last = Some((at, dir));
    }

    /// Whether this number acknowledges the last SYN, which may carry data.
    const fn acks_syn(&self, ack: u32) -> bool {
        ack.wrapping_sub(self.isn).wrapping_sub(1) <= 1 << 16
    }

    /// Whether a host has sent a FIN.
    const fn has_closed(&self, host: Dir) -> bool {
        self.fins & 1 << host as u8 != 0
    }

    fn reset(&mut self, packet: &CapturedPacket) {
        self.reset_count += 1;
        if self.resets.len() == MAX_KEPT {
            return;
        }
        let (at, dir) = (packet.at, packet.segment.dir);
        let unacknowledged = [0, 1].map(|host| match (self.next[host], self.acked[host]) {
            (Some(next), Some(acked)) if is_after(next, acked) => next.wrapping_sub(acked),
            _ => 0,
        });
        self.resets.push(ResetSegment {
            at: (at, packet.frame),
            dir,
            ttl: packet.ttl,
            silence: self.last.map_or(Duration::ZERO, |(last, _)| at.since(last)),
            is_answer: self.last.is_some_and(|(_, last)| last != dir),
            unacknowledged,
            missed: 0,
            is_unanswered: dir == Dir::Reverse
                && self.last_data == Some(Dir::Forward)
                && !self.has_closed(Dir::Forward),
            is_within_message: self.unfinished.contains(&true),
            acks_syn: packet.segment.flags.has(Flags::ACK) && self.acks_syn(packet.segment.ack.0),
            fins: self.fins.count_ones() as u8,
            has_closed: self.has_closed(dir),
        });
    }

    /// Records an ICMP error.
    pub(crate) fn push_icmp(&mut self, notice: IcmpNotice) {
        self.icmp_count += 1;
        if self.icmp.len() < MAX_KEPT {
            self.icmp.push(notice);
        }
    }

    /// The reset that refused the connection: it answers a SYN without a SYN-ACK.
    pub fn refusal(&self) -> Option<&ResetSegment> {
        let reset = self.resets.iter().find(|reset| reset.dir == Dir::Reverse)?;
        let unopened = self.syns.count > 0
            && self.syn_acks.count == 0
            && self.others.iter().all(|others| others.count == 0);
        unopened.then_some(reset)
    }

    /// Whether the client sent SYNs and the server not one packet: neither a capture of one
    /// direction, in which the client goes on, nor a refusal.
    pub fn is_unanswered(&self) -> bool {
        self.syns.count > 0
            && self.syn_acks.count == 0
            && self.reset_count == 0
            && self.others.iter().all(|others| others.count == 0)
    }

    /// Whether the server sent SYN-ACKs and the client never acknowledged one.
    pub fn is_half_open(&self) -> bool {
        self.syns.count > 0 && self.syn_acks.count > 0 && self.others[0].count == 0
    }

    /// Whether the handshake was seen to fail.
    pub fn never_opened(&self) -> bool {
        self.refusal().is_some() || self.is_unanswered() || self.is_half_open()
    }
}

/// Routers that a packet with this time to live has passed, if it began with the next of the usual
/// initial values (64: Linux, FreeBSD, macOS; 128: Windows; 255: routers).
pub fn hops(ttl: u8) -> u8 {
    [64, 128, 255].into_iter().find(|&initial| initial >= ttl).unwrap_or(255) - ttl
}
