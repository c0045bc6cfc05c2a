//! Logs of both endpoints of a QUIC connection on one clock.
//!
//! Packet numbers are unique within a packet number space and direction (RFC 9000 section 12.3), so that a
//! packet that one log has as sent and the other as received is the same. The clocks are those of the day, if both
//! logs have it and no packet arrives before it was sent. Else they are aligned as for two captures: half of the
//! difference of the smallest differences of both directions.
//!
//! Two logs are of one connection if both name the same group (the original destination connection ID), or
//! if neither file has another connection that could be; and if the lengths of their common packets agree.
//!
//! Memory: 40 bytes for each packet, at most [`MAX_PACKETS`] of all logs; later ones are not compared.

use std::collections::{BTreeMap, BTreeSet};

use diagnose::quic::QuicPeerView;
use diagnose::quic::record::{QuicPacketRecord, QuicRecord};

use super::QuicConnection;
use crate::inputs::join::{self, ClockEstimate};
use crate::inputs::transit::percentiles;

/// Most packets kept of all logs.
pub(super) const MAX_PACKETS: usize = 2_000_000;
/// Fewest packets in common of logs that are joined.
const LEAST: usize = 2;
/// No time of day: a year after 1970, in ns.
const NO_DAY: u64 = 365 * 86_400 * 1_000_000_000;

/// A packet of a log: its packet number space and number.
type PacketId = (u8, u64);

#[derive(Debug, Clone, Copy, PartialEq)]
struct SentPacket {
    at: u64,
    bytes: u32,
    /// When it was declared lost.
    lost: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct ReceivedPacket {
    at: u64,
    bytes: u32,
    is_ack_eliciting: bool,
}

/// The packets of a log.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct PacketTrace {
    sent: BTreeMap<PacketId, SentPacket>,
    received: BTreeMap<PacketId, ReceivedPacket>,
    /// Largest number that each ACK sent acknowledges for the first time, with the time.
    acks: Vec<(PacketId, u64)>,
    largest_acked: [Option<u64>; 3],
    largest_received: [Option<u64>; 3],
    /// Packets received after one with a larger number of their space, in the order of the log.
    reordered: u64,
    /// Time of the last event.
    last: u64,
    /// Packets were left out, as there were too many.
    is_partial: bool,
    /// Time since 1970 of its time 0.
    epoch: Option<u64>,
}

impl PacketTrace {
    /// Takes the time since 1970 of time 0, if the first event at `first` is then at a time of day.
    pub(super) fn begins_at(&mut self, epoch: Option<u64>, first: u64) {
        self.epoch = epoch.filter(|epoch| epoch.saturating_add(first) > NO_DAY);
    }

    /// Takes an event; `left`: packets that may still be kept.
    pub(super) fn push(&mut self, at: u64, record: &QuicRecord<'_>, left: &mut usize) {
        self.last = self.last.max(at);
        match record {
            QuicRecord::Sent(packet) => {
                let Some(id) = id_of(packet) else { return };
                if !self.has_room(left) {
                    return;
                }
                let bytes = bytes_of(packet);
                self.sent.entry(id).or_insert(SentPacket { at, bytes, lost: None });
                let largest = packet.acked.iter().map(|range| range.1).max();
                let known = &mut self.largest_acked[usize::from(id.0)];
                if let Some(largest) = largest.filter(|new| known.is_none_or(|old| *new > old)) {
                    *known = Some(largest);
                    self.acks.push(((id.0, largest), at));
                }
            }
            QuicRecord::Received(packet) => {
                let Some(id) = id_of(packet) else { return };
                if !self.has_room(left) {
                    return;
                }
                let (bytes, is_ack_eliciting) = (bytes_of(packet), packet.is_ack_eliciting());
                let received = ReceivedPacket { at, bytes, is_ack_eliciting };
                self.received.entry(id).or_insert(received);
                let largest = &mut self.largest_received[usize::from(id.0)];
                self.reordered += u64::from(largest.is_some_and(|largest| largest > id.1));
                *largest = (*largest).max(Some(id.1));
            }
            QuicRecord::Lost { kind, number, .. } => {
                if let Some((space, number)) = kind.space().zip(*number)
                    && let Some(sent) = self.sent.get_mut(&(space as u8, number))
                {
                    sent.lost.get_or_insert(at);
                }
            }
            _ => {}
        }
    }

    /// Time of the first Initial packet.
    pub(super) fn first(&self) -> Option<u64> {
        let at =
            |sent: Option<u64>, received: Option<u64>| [sent, received].into_iter().flatten().min();
        let sent = self.sent.range((0, 0)..(1, 0)).next().map(|(_, packet)| packet.at);
        let received = self.received.range((0, 0)..(1, 0)).next().map(|(_, packet)| packet.at);
        at(sent, received)
    }

    /// Times of the first packet and the last event.
    pub(super) fn span(&self) -> Option<[u64; 2]> {
        let sent = self.sent.values().map(|packet| packet.at);
        let received = self.received.values().map(|packet| packet.at);
        Some([sent.chain(received).min()?, self.last])
    }

    /// Packets with short headers that were sent: time, length, and whether they were declared lost.
    pub(super) fn short_sent(&self) -> impl Iterator<Item = (u64, u32, bool)> {
        self.sent.range((2, 0)..).map(|(_, sent)| (sent.at, sent.bytes, sent.lost.is_some()))
    }

    /// Packets with short headers that were received, in the order of their times.
    pub(super) fn short_received(&self) -> impl Iterator<Item = (u64, u32, bool)> {
        let mut all: Vec<_> =
            self.received.range((2, 0)..).map(|(_, one)| (one.at, one.bytes, false)).collect();
        all.sort_by_key(|one| one.0);
        all.into_iter()
    }

    fn has_room(&mut self, left: &mut usize) -> bool {
        let has_room = *left > 0;
        self.is_partial |= !has_room;
        *left = left.saturating_sub(1);
        has_room
    }
}

fn id_of(packet: &QuicPacketRecord<'_>) -> Option<PacketId> {
    Some((packet.kind.space()? as u8, packet.number?))
}

fn bytes_of(packet: &QuicPacketRecord<'_>) -> u32 {
    packet.bytes.map_or(0, |bytes| u32::try_from(bytes).unwrap_or(u32::MAX))
}

/// Two logs of one connection.
#[derive(Debug, Clone, PartialEq)]
pub struct QuicPair {
    /// Indices of the client's and the server's log in [`Reading::quic`](crate::inputs::Reading::quic).
    pub logs: [usize; 2],
    /// Both name the same group.
    pub same_group: bool,
    /// The server's clock relative to the client's; `None` if packets of one direction only are in both
    /// logs.
    pub clock: Option<ClockEstimate>,
    /// What its times count from.
    pub origin: ClockOrigin,
    /// Packets of the client and of the server.
    pub transits: [QuicTransit; 2],
    /// Not all packets were compared, as there are too many.
    pub is_partial: bool,
}

impl QuicPair {
    /// What either log shows of the packets of the other: the index of that one, and the view of its peer.
    pub fn views(&self) -> [(usize, QuicPeerView); 2] {
        [0, 1].map(|sender| {
            let transit = &self.transits[sender];
            let view = QuicPeerView {
                declared_lost: transit.declared_lost + transit.falsely_declared,
                arrived: transit.falsely_declared,
                late: transit.late,
            };
            (self.logs[sender], view)
        })
    }
}

/// What the difference of two clocks is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockOrigin {
    /// Both logs have the time of day, and no packet contradicts it.
    TimeOfDay,
    /// Both logs have the time of day, but the hosts do not have the same.
    OtherTimeOfDay,
    /// What the log counts its times from.
    LogStart,
}

/// Outcomes of the packets of one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QuicTransit {
    /// Packets that the sender logged, less those of `open`.
    pub packets: u64,
    /// Those that the receiver's log lacks.
    pub lost: u64,
    /// Packets declared lost that the receiver's log lacks.
    pub declared_lost: u64,
    /// Packets declared lost that had arrived, or arrived later.
    pub falsely_declared: u64,
    /// Those of them that had arrived before they were declared lost: their ACK was late or lost.
    pub arrived_before: u64,
    /// Longest time in ns by which one arrived after it was declared lost.
    pub late: u64,
    /// Packets received after one with a larger number.
    pub reordered: u64,
    /// Packets that the receiver's log may lack because it ends.
    pub open: u64,
    /// Packets received that the sender's log lacks.
    pub unlogged: u64,
    /// Minimum, median, 99th percentile and maximum one-way delay, in ns.
    pub delays: Option<[i64; 4]>,
    /// Minimum, median, 99th percentile and maximum time from the arrival of an ack-eliciting packet to the
    /// first ACK of it or of a later one, at the receiver, in ns; of packets that were the largest acknowledged.
    pub ack_delays: Option<[i64; 4]>,
}

impl QuicTransit {
    /// How much the 99th percentile of the delay is above the minimum, in ns: the queue.
    pub fn queue(&self) -> Option<i64> {
        self.delays.map(|[least, _, late, _]| late - least)
    }
}

/// Finds the connections that two logs have.
pub(super) fn join(logs: &[(QuicConnection, PacketTrace)]) -> Vec<QuicPair> {
    // Servers that have no client yet, by group and file.
    let mut servers: BTreeMap<&str, BTreeMap<usize, BTreeSet<usize>>> = BTreeMap::new();
    for (index, (log, _)) in logs.iter().enumerate() {
        if log.analysis.client == Some(false) {
            servers.entry(&log.group).or_default().entry(log.file).or_default().insert(index);
        }
    }
    let mut pairs = Vec::new();
    let mut clients = Vec::new();
    for (client, (log, packets)) in logs.iter().enumerate() {
        if log.analysis.client != Some(true) {
            continue;
        }
        let of_group = servers.get_mut(&*log.group).filter(|_| !log.group.is_empty());
        let server = of_group.and_then(|files| {
            let (file, first) = files
                .iter()
                .filter(|(file, _)| **file != log.file)
                .find_map(|(file, free)| Some((*file, *free.first()?)))?;
            let pair = compare([client, first], [packets, &logs[first].1], true)?;
            let free = files.get_mut(&file)?;
            free.remove(&first);
            if free.is_empty() {
                files.remove(&file);
            }
            Some(pair)
        });
        match server {
            Some(pair) => pairs.push(pair),
            None => clients.push(client),
        }
    }
    // Without a common name only one may come into question, of only one client.
    if let [client] = clients[..] {
        let (log, packets) = &logs[client];
        let mut others = servers
            .values()
            .flat_map(|files| files.iter().filter(|(file, _)| **file != log.file))
            .flat_map(|(_, free)| free);
        if let (Some(&server), None) = (others.next(), others.next()) {
            pairs.extend(compare([client, server], [packets, &logs[server].1], false));
        }
    }
    pairs
}

fn compare(
    logs: [usize; 2],
    [client, server]: [&PacketTrace; 2],
    same_group: bool,
) -> Option<QuicPair> {
    // Times at the client, and the differences to the times at the server.
    let forward = common(client, server).map(|(sent, received)| (sent, difference(sent, received)));
    let backward =
        common(server, client).map(|(sent, received)| (received, difference(received, sent)));
    let sorted = |mut all: Vec<(u64, i64)>| {
        all.sort_unstable();
        all
    };
    let (forward, backward) = (sorted(forward.collect()), sorted(backward.collect()));
    if forward.len() + backward.len() < LEAST
        || !lengths_agree(client, server)
        || !lengths_agree(server, client)
    {
        return None;
    }
    let least = join::offset(&forward, &backward);
    let days = client.epoch.zip(server.epoch).map(|(client, server)| difference(server, client));
    // A delay below 0 shows that the hosts have other times of day.
    let is_possible = |ahead: i64| {
        forward.iter().all(|one| one.1 >= ahead) && backward.iter().all(|one| one.1 <= ahead)
    };
    let same_day = days.filter(|ahead| is_possible(*ahead));
    let ahead = same_day.or(least.map(|clock| clock.ahead)).or_else(
        // One direction alone: assumes that its fastest packet took no time.
        || forward.iter().map(|one| one.1).min().or(backward.iter().map(|one| one.1).max()),
    )?;
    let drift = least.filter(|_| same_day.is_none()).and_then(|clock| clock.drift);
    let begin = forward.iter().chain(&backward).map(|one| one.0).min()?;
    let aligned = Alignment { ahead, drift: drift.unwrap_or(0.0), begin };
    let one_way = least.map_or(0, |clock| clock.round_trip.max(0) / 2);
    let at_client = |at: u64| at.cast_signed();
    let at_server = |at: u64| aligned.at_server(at);
    let transits = [
        transit(client, server, one_way, &at_server, &at_client),
        transit(server, client, one_way, &at_client, &at_server),
    ];
    let origin = match (days, same_day) {
        (_, Some(_)) => ClockOrigin::TimeOfDay,
        (Some(_), None) => ClockOrigin::OtherTimeOfDay,
        (None, None) => ClockOrigin::LogStart,
    };
    let clock = least.map(|clock| ClockEstimate {
        ahead: ahead.saturating_sub(days.unwrap_or(0)),
        drift,
        ..clock
    });
    let is_partial = client.is_partial || server.is_partial;
    Some(QuicPair { logs, same_group, clock, origin, transits, is_partial })
}

/// Converts times of the client's clock to the server's.
struct Alignment {
    ahead: i64,
    /// In ns per second, since `begin` on the client's clock.
    drift: f64,
    begin: u64,
}

impl Alignment {
    /// Before the begin of the server's log it is negative.
    fn at_server(&self, at: u64) -> i64 {
        let since = at.saturating_sub(self.begin) as f64 / 1e9;
        let ahead = self.ahead.saturating_add((self.drift * since) as i64);
        at.cast_signed().saturating_add(ahead)
    }
}

fn difference(from: u64, to: u64) -> i64 {
    to.cast_signed().wrapping_sub(from.cast_signed())
}

/// Times of the packets that one log has as sent and the other as received.
fn common(from: &PacketTrace, to: &PacketTrace) -> impl Iterator<Item = (u64, u64)> {
    from.sent.iter().filter_map(|(id, sent)| Some((sent.at, to.received.get(id)?.at)))
}

/// Whether the common packets have the same length in both logs, as far as known: all but one in ten, since
/// stacks count padding and headers differently.
fn lengths_agree(from: &PacketTrace, to: &PacketTrace) -> bool {
    let lengths = from.sent.iter().filter_map(|(id, sent)| {
        let received = to.received.get(id)?;
        (sent.bytes > 0 && received.bytes > 0).then_some(sent.bytes == received.bytes)
    });
    let (equal, all) =
        lengths.fold((0_u64, 0_u64), |(equal, all), one| (equal + u64::from(one), all + 1));
    equal * 10 >= all * 9
}

/// Follows the packets of one direction. `sent_at` and `received_at` convert the times of either log to one
/// clock.
fn transit(
    from: &PacketTrace,
    to: &PacketTrace,
    one_way: i64,
    sent_at: &dyn Fn(u64) -> i64,
    received_at: &dyn Fn(u64) -> i64,
) -> QuicTransit {
    let mut out = QuicTransit::default();
    let end = received_at(to.last);
    let mut delays = Vec::new();
    for (id, sent) in &from.sent {
        let left = sent_at(sent.at);
        let received = to.received.get(id);
        if received.is_none() && left.saturating_add(one_way) >= end {
            out.open += 1;
            continue;
        }
        out.packets += 1;
        out.lost += u64::from(received.is_none());
        match (sent.lost, received) {
            (Some(_), None) => out.declared_lost += 1,
            (Some(declared), Some(received)) => {
                out.falsely_declared += 1;
                let late = received_at(received.at).saturating_sub(sent_at(declared));
                out.arrived_before += u64::from(late <= 0);
                out.late = out.late.max(u64::try_from(late).unwrap_or(0));
            }
            _ => {}
        }
        if let Some(received) = received {
            delays.push(received_at(received.at).saturating_sub(left));
        }
    }
    out.delays = percentiles(delays);
    out.unlogged = to.received.keys().filter(|id| !from.sent.contains_key(*id)).count() as u64;
    out.reordered = to.reordered;
    // The receiver's ACKs are on its own clock.
    let waits = to.acks.iter().filter_map(|(id, at)| {
        let received = to.received.get(id).filter(|received| received.is_ack_eliciting)?;
        Some(difference(received.at, *at))
    });
    out.ack_delays = percentiles(waits.collect());
    out
}

#[cfg(test)]
mod tests;
