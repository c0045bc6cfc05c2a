//! A connection that is being captured: which packets belong to it, and which begin another one between the same
//! addresses (RFC 9293 section 3.6.1 allows reuse of ports).

use diagnose::connection_events::IcmpNotice;
use diagnose::{CapturedPacket, ConnectionRecorder};
use packet::{Dir, Flags};

use super::connection_key::CaptureSource;
use super::transit::PacketRecord;

/// A connection, with the state that distinguishes it from the next between the same addresses.
#[derive(Debug)]
pub(super) struct OpenConnection {
    pub(super) point: CaptureSource,
    /// The host that opened it has the lower address.
    pub(super) client_is_low: bool,
    /// Initial sequence number of each host, if captured.
    pub(super) isn: [Option<u32>; 2],
    /// Data in the SYN of each host (RFC 7413), in bytes: its answer may acknowledge them.
    pub(super) syn_data: [u32; 2],
    /// The previous connection between the same addresses, [`NONE`] without one.
    pub(super) before: u32,
    /// Its packets were added to those of another capture point.
    pub(super) is_merged: bool,
    pub(super) record: ConnectionRecorder,
    /// What few connections have.
    pub(super) extra: Option<Box<ExtraState>>,
}

// A million connections are kept at a time.
const _: () = assert!(size_of::<OpenConnection>() <= 112);

/// Index of no connection.
pub(super) const NONE: u32 = u32::MAX;

/// State that connections of a single capture without names do not have.
#[derive(Debug, Default)]
pub(super) struct ExtraState {
    pub(super) names: Option<[String; 2]>,
    /// Packets of each direction, if captures are compared.
    pub(super) seen: [Vec<PacketRecord>; 2],
    /// ICMP errors about its packets, the first of them.
    pub(super) icmp: Vec<IcmpNotice>,
}

/// Most ICMP errors of a connection that are kept.
pub(super) const MAX_ICMP: usize = 10_000;

impl OpenConnection {
    /// Direction of a packet, whose sender has the lower address or not.
    pub(super) const fn dir(&self, src_is_low: bool) -> Dir {
        if src_is_low == self.client_is_low { Dir::Forward } else { Dir::Reverse }
    }

    /// Whether this packet begins another connection between the same addresses.
    pub(super) fn is_new_connection(&self, src_is_low: bool, packet: &CapturedPacket) -> bool {
        let segment = &packet.segment;
        if !segment.flags.has(Flags::SYN) {
            return false;
        }
        let dir = self.dir(src_is_low);
        let (own, peer) = (self.isn[dir as usize], self.isn[dir.reversed() as usize]);
        if segment.flags.has(Flags::ACK) {
            // A server that lost its state answers the same SYN with another ISN.
            let answers = segment.ack.0.wrapping_sub(1);
            let data = self.syn_data[dir.reversed() as usize];
            !self.is_stray(dir, packet) && peer.is_some_and(|isn| answers.wrapping_sub(isn) > data)
        } else {
            // Without an ISN, the earlier packets belong to a connection whose SYN was not
            // captured.
            own != Some(segment.seq.0)
        }
    }

    /// Whether this is a SYN-ACK that acknowledges the SYN of its own host.
    fn is_stray(&self, dir: Dir, packet: &CapturedPacket) -> bool {
        let own = self.isn[dir as usize];
        let segment = &packet.segment;
        segment.flags.has(Flags::SYN | Flags::ACK) && own == Some(segment.ack.0.wrapping_sub(1))
    }

    /// Whether this packet is a SYN-ACK that answers the SYN of this connection.
    pub(super) fn is_answered_by(&self, src_is_low: bool, packet: &CapturedPacket) -> bool {
        let segment = &packet.segment;
        let peer = self.dir(src_is_low).reversed();
        segment.flags.has(Flags::SYN | Flags::ACK)
            && self.isn[peer as usize] == Some(segment.ack.0.wrapping_sub(1))
    }

    /// Whether no ISN of `other`, a part of the connection, contradicts this one's.
    pub(super) fn has_isns_of(&self, other: &Self, is_reversed: bool) -> bool {
        [0, 1].into_iter().all(|host| {
            let theirs = other.isn[if is_reversed { 1 - host } else { host }];
            self.isn[host].zip(theirs).is_none_or(|(one, other)| one == other)
        })
    }

    /// Takes over what the state of `other` knows in addition.
    pub(super) fn take_state_of(&mut self, other: &mut Self, is_reversed: bool) {
        for host in [0, 1] {
            let theirs = if is_reversed { 1 - host } else { host };
            self.isn[host] = self.isn[host].or(other.isn[theirs]);
            self.syn_data[host] = self.syn_data[host].max(other.syn_data[theirs]);
            if let Some(extra) = &mut other.extra {
                let seen = &mut self.extra.get_or_insert_default().seen[host];
                seen.append(&mut extra.seen[theirs]);
                seen.sort_by_key(|packet| packet.at);
            }
        }
        if let Some(extra) = other.extra.as_mut().filter(|extra| !extra.icmp.is_empty()) {
            let icmp = &mut self.extra.get_or_insert_default().icmp;
            icmp.append(&mut extra.icmp);
            icmp.sort_by_key(|notice| notice.at);
        }
    }

    pub(super) fn record_isn(&mut self, dir: Dir, packet: &CapturedPacket) {
        let segment = &packet.segment;
        if segment.flags.has(Flags::SYN) && !self.is_stray(dir, packet) {
            self.isn[dir as usize] = Some(segment.seq.0);
            self.syn_data[dir as usize] = self.syn_data[dir as usize].max(segment.payload);
            if segment.flags.has(Flags::ACK) {
                self.isn[dir.reversed() as usize].get_or_insert(segment.ack.0.wrapping_sub(1));
            }
        }
    }
}
