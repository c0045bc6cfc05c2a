//! One connection of a capture, packet by packet.

use packet::wire::Endpoints;

use crate::analysis::Analysis;
use crate::{Packet, StateSample};

/// What the reader decides before the first packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Settings {
    /// Keep every packet in [`Analysis::packets`] (a list that grows with the connection), for who
    /// replays senders on its ACKs.
    pub keep_packets: bool,
}

/// A connection while its packets come in.
///
/// Packets come in the order of the capture; the first may be anything, not only a SYN.
#[derive(Debug)]
pub struct Connection {
    analysis: Analysis,
    settings: Settings,
}

impl Connection {
    /// A connection that runs from `ends.src` (who opened it, or was seen first) to `ends.dst`.
    /// `stream` is its number in the file, from 0, as Wireshark counts (`tcp.stream`).
    pub fn new(ends: Endpoints, stream: u32, settings: Settings) -> Self {
        Self { analysis: Analysis::new(ends, stream), settings }
    }

    /// The next packet.
    pub fn push(&mut self, packet: &Packet) {
        self.analysis.frames += 1;
        if self.settings.keep_packets {
            self.analysis.packets.push(*packet);
        }
    }

    /// The next word of a kernel's own log; in order of time among themselves, anywhere among
    /// the packets.
    pub fn push_state(&mut self, sample: &StateSample) {
        self.analysis.states += 1;
        let _ = sample;
    }

    /// The end of the capture.
    pub fn finish(self) -> Analysis {
        self.analysis
    }
}
