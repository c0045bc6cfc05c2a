//! Passes the packets of captured datagrams on to be decrypted.

use std::sync::Arc;

use diagnose::quic::record::QuicPacketKind;
use packet::Dir;
use packet::quic::{LongHeader, LongPacketType};

use super::decryption::{ProtectedPacket, QuicDecryption};
use super::waiting::DecryptionStep;
use super::{CapturedQuicTable, DatagramPosition, KeyLog};

impl CapturedQuicTable {
    /// Adds secrets, with which packets are decrypted, also those that wait.
    pub(in crate::inputs) fn add_keys(&mut self, keys: KeyLog) {
        if keys.is_empty() {
            return;
        }
        let is_first = self.keys.is_empty();
        Arc::make_mut(&mut self.keys).extend(keys);
        self.counts.secrets = self.keys.len() as u64;
        if is_first {
            for open in &mut self.open {
                open.decryption = Some(QuicDecryption::keeping(self.keeps_data));
            }
        }
        for index in self.waiting.clone() {
            self.release(index, false);
        }
    }

    /// Later blocks of the capture may have secrets.
    pub(in crate::inputs) const fn expect_secrets(&mut self) {
        self.expects_secrets = true;
    }

    /// No secrets follow: decrypts what waits, as far as possible.
    pub(super) fn end_secrets(&mut self) {
        for index in core::mem::take(&mut self.waiting) {
            if let Some(decryption) = &mut self.open[index as usize].decryption {
                decryption.try_again();
            }
            self.release(index, true);
        }
    }

    /// Decrypts the packets of a connection that wait, up to the first that still lacks its secret, or all.
    fn release(&mut self, index: u32, all: bool) {
        loop {
            let open = &mut self.open[index as usize];
            let Some(decryption) = &mut open.decryption else {
                if all {
                    open.waiting.clear(&mut self.waiting_room);
                }
                break;
            };
            let room = &mut self.waiting_room;
            let Some(dir) = open.waiting.run_next(decryption, &self.keys, all, room) else { break };
            self.learn_new(index, dir);
        }
        if self.open[index as usize].waiting.is_empty() {
            self.waiting.remove(&index);
        }
    }

    /// Decrypts a packet, or lets it wait for its secret.
    fn step(&mut self, index: u32, step: &DecryptionStep<'_>) {
        let open = &mut self.open[index as usize];
        let may_wait = self.expects_secrets && !open.waiting.has_given_up();
        let waits = may_wait
            && match &mut open.decryption {
                None => true,
                Some(decryption) => {
                    !open.waiting.is_empty() || step.lacks_secret(decryption, &self.keys)
                }
            };
        if waits {
            if open.waiting.push(step, &mut self.waiting_room) {
                self.waiting.insert(index);
                return;
            }
            open.waiting.give_up();
            self.release(index, true);
        }
        let open = &mut self.open[index as usize];
        let Some(decryption) = &mut open.decryption else { return };
        step.run(decryption, &self.keys);
        self.learn_new(index, step.dir());
    }

    /// Connection IDs in the last packet that its sender chose for itself.
    fn learn_new(&mut self, index: u32, dir: Option<Dir>) {
        let open = &mut self.open[index as usize];
        let (Some(decryption), Some(dir)) = (&mut open.decryption, dir) else { return };
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
        if !self.keys.is_empty() || self.expects_secrets {
            let Some(len) = self.open[index as usize].id_len[dir.reversed() as usize] else {
                return;
            };
            let at = self.since_first(position);
            let packet = ProtectedPacket { at, dir, kind: None, bytes, number_at: 1 + len };
            self.step(index, &DecryptionStep::Packet(packet));
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
        if self.keys.is_empty() && !self.expects_secrets {
            return;
        }
        let at = self.since_first(position);
        let bare = match header.kind {
            LongPacketType::Retry => QuicPacketKind::Retry,
            LongPacketType::VersionNegotiation => QuicPacketKind::VersionNegotiation,
            LongPacketType::Initial | LongPacketType::ZeroRtt | LongPacketType::Handshake => {
                if dir == Dir::Forward && header.kind == LongPacketType::Initial {
                    let (version, first) = (header.version, header.destination);
                    self.step(index, &DecryptionStep::Begin { version, first });
                }
                let Some(number_at) = header.number_at else { return };
                let bytes = &bytes[..header.len.min(bytes.len())];
                let kind = Some(header.kind);
                let packet = ProtectedPacket { at, dir, kind, bytes, number_at };
                return self.step(index, &DecryptionStep::Packet(packet));
            }
            LongPacketType::Unknown => return,
        };
        self.step(index, &DecryptionStep::Bare { at, dir, kind: bare, bytes: header.len });
    }

    /// Time of a datagram since the first, in ns, and its frame.
    fn since_first(&mut self, position: DatagramPosition) -> (u64, u64) {
        let at = position.time.as_nanos();
        let began = *self.began.get_or_insert(at);
        (at.saturating_sub(began), position.frame)
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
