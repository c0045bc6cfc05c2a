//! The result of analysing all packets of a connection.

use packet::Dir;
use packet::wire::Endpoints;
use units::{Duration, Instant};

use crate::capture_point::{CaptureDistances, CapturePoint};
use crate::connection_events::ConnectionEvents;
use crate::exchange::ExchangeBudget;
use crate::flow::FlowAnalysis;
use crate::state::{AccountedTransfer, KernelStateSummary};
use crate::{CapturedPacket, ObservedSyn, PathEstimate};

/// Data packets among which a host sends a bare ACK: RFC 9293 section 3.8.6.3 requires one for every
/// second full segment.
pub const MIN_DATA_PACKETS: u64 = 10;

/// The analysis of a connection.
#[derive(Debug, Clone)]
pub struct Analysis {
    /// The host that opened it (or was seen first) and the other.
    pub ends: Endpoints,
    /// Stream index in the file, from 0, as Wireshark counts (`tcp.stream`).
    pub stream: u32,
    /// Captured packets.
    pub frames: u64,
    /// Time of its first packet.
    pub first: Instant,
    /// Time of its last packet.
    pub last: Instant,
    /// Frame of its first packet.
    pub first_frame: u64,
    /// Frame of its last packet.
    pub last_frame: u64,
    /// The handshake (SYN, SYN-ACK, ACK) was captured.
    pub opened: bool,
    /// The last SYN of each host, by [`Dir`].
    pub observed_syns: [Option<ObservedSyn>; 2],
    /// SYNs without ACK.
    pub syns: u32,
    /// An RST was captured.
    pub reset: bool,
    /// Both hosts sent a FIN.
    pub closed: bool,
    /// Packets captured, by [`Dir`].
    pub seen: [u64; 2],
    /// ACKs without data, SYN, FIN or RST captured, by [`Dir`].
    pub bare_acks: [u64; 2],
    /// The whole capture has data of many packets and no bare ACK of any connection.
    pub of_filtered_capture: bool,
    /// Packets whose payload the capture truncated.
    pub cut: u64,
    /// Packets whose TCP options the capture truncated.
    pub options_cut: u64,
    /// The data of each direction, by [`Dir`]; `None` without data.
    pub flows: [Option<Box<FlowAnalysis>>; 2],
    /// Round-trip times from the capture point to the hosts.
    pub distances: CaptureDistances,
    /// How it was opened and how it ended.
    pub events: ConnectionEvents,
    /// What its time was spent on; `None` without data, or if the capture has one direction only.
    pub exchange: Option<Box<ExchangeBudget>>,
    /// Time from the end of an earlier connection between the same ports; `None` without one.
    pub after_previous: Option<Duration>,
    /// From its last packet to the end of the capture; 0 if that is unknown.
    pub silent_after: Duration,
    /// Summary of the kernels' own logs.
    pub states: KernelStateSummary,
    /// The first packets, at most [`AnalysisSettings::packets`](crate::AnalysisSettings::packets).
    pub packets: Vec<CapturedPacket>,
}

impl Analysis {
    /// The direction with more data, by the account of a kernel if there are no packets; forward if
    /// neither has any.
    pub fn main_dir(&self) -> Dir {
        if let Some(account) = self.account() {
            return account.dir;
        }
        let bytes = |dir: Dir| self.flows[dir as usize].as_ref().map_or(0, |flow| flow.bytes);
        if bytes(Dir::Reverse) > bytes(Dir::Forward) { Dir::Reverse } else { Dir::Forward }
    }

    /// What a kernel's account without packets has.
    fn account(&self) -> Option<AccountedTransfer> {
        (self.frames == 0).then(|| self.states.transfer()).flatten()
    }

    /// Payload of [`main_dir`](Self::main_dir).
    pub fn bytes(&self) -> u64 {
        match self.account() {
            Some(account) => account.bytes,
            None => self.main().map_or(0, |flow| flow.bytes),
        }
    }

    /// The data of [`main_dir`](Self::main_dir).
    pub fn main(&self) -> Option<&FlowAnalysis> {
        self.flows[self.main_dir() as usize].as_deref()
    }

    /// The capture point relative to the sender of a direction.
    pub fn capture_point(&self, dir: Dir) -> CapturePoint {
        self.distances.point(dir)
    }

    /// Path estimates from those data.
    pub fn path(&self) -> Option<PathEstimate> {
        self.main().map(PathEstimate::of)
    }

    /// Whether a filter took the bare ACKs out of the capture: both hosts sent packets, one of them
    /// many data (or the whole capture has many), and no bare ACK is there, not even that of the
    /// handshake.
    pub fn has_no_bare_acks(&self) -> bool {
        let data = self.main().map_or(0, |flow| flow.counts.new + flow.counts.retransmitted);
        let enough = data >= MIN_DATA_PACKETS || self.of_filtered_capture;
        enough && self.bare_acks == [0; 2] && !self.seen.contains(&0)
    }

    /// Goodput of the main direction from the first packet until the last delivery, in bytes per
    /// second.
    pub fn goodput(&self) -> f64 {
        let (bytes, time) = match (self.account(), self.main()) {
            (Some(account), _) => (account.bytes, account.time),
            (None, Some(flow)) => {
                // Data never acknowledged count as delivered at the last packet.
                let is_repaired = flow.episodes.last().is_none_or(|last| last.over);
                let is_all = flow.answered && (is_repaired || flow.more_episodes > 0);
                let last = if is_all { flow.last_delivery } else { self.last };
                (flow.bytes, last.since(self.first))
            }
            (None, None) => (0, Duration::ZERO),
        };
        if time.is_zero() { 0.0 } else { bytes as f64 * 1e9 / time.as_nanos() as f64 }
    }

    /// From its first packet to its last; without packets the time of a kernel's account.
    pub fn duration(&self) -> Duration {
        match self.account() {
            Some(account) => account.time,
            None => self.last.since(self.first),
        }
    }
}
