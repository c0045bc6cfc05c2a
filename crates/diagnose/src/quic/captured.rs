//! What the datagrams of a QUIC connection show without its keys.
//!
//! A reader assigns datagrams to connections and pushes them into a [`CapturedQuicAnalyzer`];
//! [`CapturedQuicAnalyzer::finish`] returns the [`CapturedQuicAnalysis`]. Encrypted are packet numbers, ACKs
//! and all other frames, so that losses, retransmissions and windows cannot be seen (RFC 9312 section 2.4).
//!
//! Memory: about 1 kB per connection, at most 20 kB.

mod findings;
mod handshake;
mod rates;
mod sizes;
mod spin;
#[cfg(test)]
mod tests;

use packet::Dir;
use packet::quic::LongPacketType;

pub use findings::{CAPTURED_CODES, captured_findings};
pub use handshake::{CapturedHandshake, FirstFlight, HandshakeRoundTrip};
pub use rates::{BusiestInterval, Silences};
pub use sizes::{DatagramSizes, SizeStep};
pub use spin::{RoundTripSamples, SpinBit, SpinVerdict};

use super::bursts::{BurstMeter, QuicBursts};
use super::rates::RateHistory;
use handshake::HandshakeAnalyzer;
use rates::{BusyMeter, SilenceMeter};

/// Least UDP payload of a path (RFC 9000 section 14).
const MIN_DATAGRAM: u64 = 1_200;
use spin::SpinAnalyzer;

/// Kinds of packets that are counted: those with a long header by [`LongPacketType`], and 1-RTT.
pub const PACKET_KINDS: usize = 7;
/// Index of the packets with a short header.
pub const ONE_RTT: usize = 6;

/// Index of a type in the counts of [`CapturedQuicDirection::packets`].
pub const fn kind_index(kind: LongPacketType) -> usize {
    match kind {
        LongPacketType::Initial => 0,
        LongPacketType::ZeroRtt => 1,
        LongPacketType::Handshake => 2,
        LongPacketType::Retry => 3,
        LongPacketType::VersionNegotiation => 4,
        LongPacketType::Unknown => 5,
    }
}

/// A datagram of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CapturedQuicDatagram {
    /// Time in ns.
    pub at: u64,
    /// Frame of the capture.
    pub frame: u64,
    /// Forward: sent by the client.
    pub dir: Dir,
    /// Length of the UDP payload in bytes.
    pub len: u32,
    /// ECN bits of the IP header.
    pub ecn: u8,
    /// Packets in it, by kind.
    pub packets: [u16; PACKET_KINDS],
    /// Spin bit of the packet with a short header, if it has one.
    pub spin: Option<bool>,
}

impl CapturedQuicDatagram {
    const fn has(&self, kind: LongPacketType) -> bool {
        self.packets[kind_index(kind)] > 0
    }
}

/// The datagrams of one direction.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CapturedQuicDirection {
    /// Datagrams.
    pub datagrams: u64,
    /// Bytes of UDP payload.
    pub bytes: u64,
    /// Packets by kind; several may share a datagram, of which the capture may show only the first.
    pub packets: [u64; PACKET_KINDS],
    /// Datagrams by the ECN bits of the IP header: Not-ECT, ECT(1), ECT(0), CE.
    pub ecn: [u64; 4],
    /// Their sizes.
    pub sizes: DatagramSizes,
    /// The millisecond with most bytes.
    pub busiest: BusiestInterval,
    /// Milliseconds with many datagrams; frames instead of events.
    pub bursts: QuicBursts,
}

/// What a capture shows of a QUIC connection.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CapturedQuicAnalysis {
    /// Time of its first and last datagram, in ns.
    pub interval: (u64, u64),
    /// Frame of its first and last datagram.
    pub frames: (u64, u64),
    /// What each host sent, by [`Dir`].
    pub directions: [CapturedQuicDirection; 2],
    /// The handshake.
    pub handshake: CapturedHandshake,
    /// Rates over time.
    pub rates: RateHistory,
    /// Silences of both hosts.
    pub silences: Silences,
    /// The spin bit.
    pub spin: SpinBit,
}

impl CapturedQuicAnalysis {
    /// Duration without the silences of both hosts, in ns.
    pub const fn active(&self) -> u64 {
        self.duration().saturating_sub(self.silences.ns)
    }

    /// Duration in ns.
    pub const fn duration(&self) -> u64 {
        self.interval.1 - self.interval.0
    }

    /// The direction with more bytes.
    pub const fn main_dir(&self) -> Dir {
        if self.directions[0].bytes >= self.directions[1].bytes {
            Dir::Forward
        } else {
            Dir::Reverse
        }
    }

    /// Bytes of both directions.
    pub const fn bytes(&self) -> u64 {
        self.directions[0].bytes + self.directions[1].bytes
    }
}

/// Analyses a connection datagram by datagram.
#[derive(Debug)]
pub struct CapturedQuicAnalyzer {
    analysis: CapturedQuicAnalysis,
    busy: [BusyMeter; 2],
    bursts: [BurstMeter; 2],
    silence: SilenceMeter,
    handshake: HandshakeAnalyzer,
    spin: SpinAnalyzer,
    is_empty: bool,
}

impl Default for CapturedQuicAnalyzer {
    fn default() -> Self {
        Self::new()
    }
}

impl CapturedQuicAnalyzer {
    /// An analyser without datagrams.
    pub fn new() -> Self {
        Self {
            analysis: CapturedQuicAnalysis::default(),
            busy: Default::default(),
            bursts: Default::default(),
            silence: SilenceMeter::default(),
            handshake: HandshakeAnalyzer::default(),
            spin: SpinAnalyzer::default(),
            is_empty: true,
        }
    }

    /// Adds a datagram. A time before that of the datagram before counts as that.
    pub fn push(&mut self, datagram: &CapturedQuicDatagram) {
        let mut datagram = *datagram;
        let analysis = &mut self.analysis;
        if self.is_empty {
            self.is_empty = false;
            analysis.interval = (datagram.at, datagram.at);
            analysis.frames.0 = datagram.frame;
        }
        datagram.at = datagram.at.max(analysis.interval.1);
        let dir = datagram.dir as usize;
        self.handshake.push(&datagram);
        self.silence.push(&datagram, analysis.interval.1, self.handshake.round_trip());
        analysis.interval.1 = datagram.at;
        analysis.frames.1 = datagram.frame;
        let direction = &mut analysis.directions[dir];
        direction.datagrams += 1;
        direction.bytes += u64::from(datagram.len);
        direction.ecn[usize::from(datagram.ecn & 3)] += 1;
        for (sum, count) in direction.packets.iter_mut().zip(datagram.packets) {
            *sum += u64::from(count);
        }
        direction.sizes.push(&datagram);
        let since = datagram.at - analysis.interval.0;
        self.busy[dir].push(since, datagram.len);
        analysis.rates.push(since, dir, u64::from(datagram.len));
        let size = u64::from(datagram.len);
        let place = (datagram.at, datagram.frame);
        self.bursts[dir].push(place, (size, MIN_DATAGRAM), None, &mut direction.bursts);
        if let Some(spin) = datagram.spin {
            self.spin.push(datagram.dir, spin, datagram.at);
        }
    }

    /// The analysis of all datagrams; `None` without any.
    pub fn finish(self) -> Option<CapturedQuicAnalysis> {
        if self.is_empty {
            return None;
        }
        let mut analysis = self.analysis;
        for (direction, busy) in analysis.directions.iter_mut().zip(self.busy) {
            direction.busiest = busy.finish();
        }
        for (direction, mut bursts) in analysis.directions.iter_mut().zip(self.bursts) {
            bursts.close(&mut direction.bursts);
        }
        analysis.silences = self.silence.finish();
        analysis.handshake = self.handshake.finish();
        analysis.spin = self.spin.finish();
        Some(analysis)
    }
}
