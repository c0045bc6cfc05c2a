//! What is known of a connection when all its packets have been seen.

use packet::Dir;
use packet::wire::Endpoints;
use units::{Duration, Instant};

use crate::flow::Flow;
use crate::state::States;
use crate::{Opening, Packet, Path};

/// A connection, analysed.
#[derive(Debug, Clone)]
pub struct Analysis {
    /// Who opened it (or was seen first) and who answered.
    pub ends: Endpoints,
    /// Its number in the file, from 0, as Wireshark counts (`tcp.stream`).
    pub stream: u32,
    /// Packets of it in the capture.
    pub frames: u64,
    /// Time of its first packet.
    pub first: Instant,
    /// Time of its last packet.
    pub last: Instant,
    /// Frame of its first packet.
    pub first_frame: u64,
    /// Frame of its last packet.
    pub last_frame: u64,
    /// The opening (SYN, SYN-ACK, ACK) is in the capture.
    pub opened: bool,
    /// The last SYN of each end, by [`Dir`].
    pub openings: [Option<Opening>; 2],
    /// SYNs without ACK.
    pub syns: u32,
    /// An RST ended it.
    pub reset: bool,
    /// Both ends sent a FIN.
    pub closed: bool,
    /// Packets seen from the end that opened, and from the other.
    pub seen: [u64; 2],
    /// Packets with payload whose payload is not whole in the capture.
    pub cut: u64,
    /// The data of each direction, by [`Dir`]; `None` where none were sent.
    pub flows: [Option<Box<Flow>>; 2],
    /// What kernels' own logs said.
    pub states: States,
    /// Its packets, the first [`Settings::packets`](crate::Settings::packets) of them.
    pub packets: Vec<Packet>,
}

impl Analysis {
    /// The direction that carried more data; forward where both carried none.
    pub fn main_dir(&self) -> Dir {
        let bytes = |dir: Dir| self.flows[dir as usize].as_ref().map_or(0, |flow| flow.bytes);
        if bytes(Dir::Reverse) > bytes(Dir::Forward) { Dir::Reverse } else { Dir::Forward }
    }

    /// The data of that direction.
    pub fn main(&self) -> Option<&Flow> {
        self.flows[self.main_dir() as usize].as_deref()
    }

    /// The path of those data, as far as their traffic shows it.
    pub fn path(&self) -> Option<Path> {
        self.main().map(Path::of)
    }

    /// From its first packet to its last.
    pub fn duration(&self) -> Duration {
        self.last.since(self.first)
    }
}
