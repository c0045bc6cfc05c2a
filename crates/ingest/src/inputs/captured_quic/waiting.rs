//! Packets that wait for their secrets, which a later block of a capture may have.

use std::collections::VecDeque;

use diagnose::quic::record::QuicPacketKind;
use packet::Dir;
use packet::quic::{ConnectionId, LongPacketType, QuicVersion};

use super::decryption::{ProtectedPacket, QuicDecryption};
use super::key_log::KeyLog;

/// Most bytes of the packets of a file that wait.
pub(super) const MAX_WAITING: usize = 32 << 20;
/// Bytes of a packet beside its own.
const OVERHEAD: usize = size_of::<WaitingStep>();

/// What a decryption processes, in the order of the capture.
#[derive(Debug, Clone, Copy)]
pub(super) enum DecryptionStep<'a> {
    /// The version and the connection ID of a client's Initial.
    Begin { version: QuicVersion, first: ConnectionId },
    /// A Retry or a Version Negotiation of this number of bytes.
    Bare { at: (u64, u64), dir: Dir, kind: QuicPacketKind, bytes: usize },
    /// Any other packet.
    Packet(ProtectedPacket<'a>),
}

#[derive(Debug)]
enum WaitingStep {
    Begin {
        version: QuicVersion,
        first: ConnectionId,
    },
    Bare {
        at: (u64, u64),
        dir: Dir,
        kind: QuicPacketKind,
        bytes: usize,
    },
    Packet {
        at: (u64, u64),
        dir: Dir,
        kind: Option<LongPacketType>,
        bytes: Box<[u8]>,
        number_at: usize,
    },
}

impl WaitingStep {
    fn borrowed(&self) -> DecryptionStep<'_> {
        match *self {
            Self::Begin { version, first } => DecryptionStep::Begin { version, first },
            Self::Bare { at, dir, kind, bytes } => DecryptionStep::Bare { at, dir, kind, bytes },
            Self::Packet { at, dir, kind, ref bytes, number_at } => {
                DecryptionStep::Packet(ProtectedPacket { at, dir, kind, bytes, number_at })
            }
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Begin { .. } | Self::Bare { .. } => OVERHEAD,
            Self::Packet { bytes, .. } => OVERHEAD + bytes.len(),
        }
    }
}

impl DecryptionStep<'_> {
    fn owned(&self) -> WaitingStep {
        match *self {
            Self::Begin { version, first } => WaitingStep::Begin { version, first },
            Self::Bare { at, dir, kind, bytes } => WaitingStep::Bare { at, dir, kind, bytes },
            Self::Packet(ProtectedPacket { at, dir, kind, bytes, number_at }) => {
                WaitingStep::Packet { at, dir, kind, bytes: bytes.into(), number_at }
            }
        }
    }

    /// Whether it needs a secret that is not known yet.
    pub(super) fn lacks_secret(&self, decryption: &mut QuicDecryption, keys: &KeyLog) -> bool {
        match self {
            Self::Packet(packet) => decryption.lacks_secret(packet, keys),
            Self::Begin { .. } | Self::Bare { .. } => false,
        }
    }

    pub(super) fn run(&self, decryption: &mut QuicDecryption, keys: &KeyLog) {
        match *self {
            Self::Begin { version, first } => decryption.begin(version, first),
            Self::Bare { at, dir, kind, bytes } => {
                decryption.bare(at, dir, kind, bytes);
                decryption.restart();
            }
            Self::Packet(ref packet) => decryption.packet(packet, keys),
        }
    }

    /// Direction of a packet.
    pub(super) const fn dir(&self) -> Option<Dir> {
        match self {
            Self::Begin { .. } => None,
            Self::Bare { dir, .. } | Self::Packet(ProtectedPacket { dir, .. }) => Some(*dir),
        }
    }
}

/// The packets of a connection from the first that lacks its secret.
#[derive(Debug, Default)]
pub(super) struct WaitingPackets {
    steps: VecDeque<WaitingStep>,
    /// There was no room: nothing waits any longer.
    has_given_up: bool,
}

impl WaitingPackets {
    pub(super) fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    pub(super) const fn has_given_up(&self) -> bool {
        self.has_given_up
    }

    pub(super) const fn give_up(&mut self) {
        self.has_given_up = true;
    }

    /// Keeps a step; false if `room`, in bytes, does not suffice.
    pub(super) fn push(&mut self, step: &DecryptionStep<'_>, room: &mut usize) -> bool {
        let step = step.owned();
        let Some(left) = room.checked_sub(step.len()) else { return false };
        *room = left;
        self.steps.push_back(step);
        true
    }

    /// Runs the next step unless it lacks its secret and is not `forced`; its direction, or `None` if it did not run.
    pub(super) fn run_next(
        &mut self,
        decryption: &mut QuicDecryption,
        keys: &KeyLog,
        forced: bool,
        room: &mut usize,
    ) -> Option<Option<Dir>> {
        let first = self.steps.front()?;
        let step = first.borrowed();
        if !forced && step.lacks_secret(decryption, keys) {
            return None;
        }
        step.run(decryption, keys);
        let dir = step.dir();
        *room += first.len();
        self.steps.pop_front();
        Some(dir)
    }

    /// Drops all that waits.
    pub(super) fn clear(&mut self, room: &mut usize) {
        *room += self.steps.drain(..).map(|step| step.len()).sum::<usize>();
    }
}
