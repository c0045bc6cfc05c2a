//! Passes the packets of captured datagrams on to be decrypted.

use std::sync::Arc;

use diagnose::quic::record::QuicPacketKind;
use packet::Dir;
use packet::quic::{LongHeader, LongPacketType};

use super::decryption::ProtectedPacket;
use super::{CapturedQuicTable, DatagramPosition, KeyLog};

impl CapturedQuicTable {
    /// Adds secrets, with which the packets of later connections are decrypted.
    pub(in crate::inputs) fn add_keys(&mut self, keys: KeyLog) {
        Arc::make_mut(&mut self.keys).extend(keys);
    }

    /// Passes a packet on to be decrypted.
    pub(super) fn decrypt(
        &mut self,
        index: u32,
        position: DatagramPosition,
        dir: Dir,
        kind: Option<LongPacketType>,
        (bytes, number_at): (&[u8], usize),
    ) {
        let at = position.time.as_nanos();
        let began = *self.began.get_or_insert(at);
        let open = &mut self.open[index as usize];
        let Some(decryption) = &mut open.decryption else { return };
        let at = (at.saturating_sub(began), position.frame);
        decryption.packet(&ProtectedPacket { at, dir, kind, bytes, number_at }, &self.keys);
        let interface = open.interface;
        for id in decryption.take_new_ids() {
            self.learn(index, interface, dir, id);
        }
    }

    /// Passes a packet with a short header on to be decrypted: its number begins after the connection ID.
    pub(super) fn decrypt_short(
        &mut self,
        index: u32,
        position: DatagramPosition,
        dir: Dir,
        bytes: &[u8],
    ) {
        if !self.keys.is_empty()
            && let Some(len) = self.open[index as usize].id_len[dir.reversed() as usize]
        {
            self.decrypt(index, position, dir, None, (bytes, 1 + len));
        }
    }

    /// Passes a packet with a long header on to be decrypted.
    pub(super) fn decrypt_long(
        &mut self,
        index: u32,
        position: DatagramPosition,
        dir: Dir,
        header: &LongHeader<'_>,
        bytes: &[u8],
    ) {
        let began = self.began.unwrap_or(position.time.as_nanos());
        let Some(decryption) = &mut self.open[index as usize].decryption else { return };
        let at = (position.time.as_nanos().saturating_sub(began), position.frame);
        let bare = match header.kind {
            LongPacketType::Retry => QuicPacketKind::Retry,
            LongPacketType::VersionNegotiation => QuicPacketKind::VersionNegotiation,
            LongPacketType::Initial | LongPacketType::ZeroRtt | LongPacketType::Handshake => {
                if dir == Dir::Forward && header.kind == LongPacketType::Initial {
                    decryption.begin(header.version, header.destination);
                }
                let Some(number_at) = header.number_at else { return };
                let bytes = &bytes[..header.len.min(bytes.len())];
                return self.decrypt(index, position, dir, Some(header.kind), (bytes, number_at));
            }
            LongPacketType::Unknown => return,
        };
        decryption.bare(at, dir, bare, header.len);
        decryption.restart();
    }

    /// Passes the packets that the ClientHello follows from on.
    pub(super) fn hello(&mut self, index: u32, dir: Dir, header: &LongHeader<'_>, packet: &[u8]) {
        let hello = &mut self.open[index as usize].hello;
        match (dir, header.kind) {
            (Dir::Forward, LongPacketType::Initial) => hello.push(packet, header),
            (Dir::Reverse, LongPacketType::Retry | LongPacketType::VersionNegotiation) => {
                hello.restart();
            }
            _ => {}
        }
    }
}
