//! What a connection tells of itself (`struct tcp_info`): what an application or a test may ask.

use cc::Controller;
use cc::outside::Gone;
use record::Purpose;
use units::{Bytes, Duration, Instant};

use crate::endpoint::{Endpoint, State};
use crate::loss::Repair;

/// Congestion states of Linux (`enum tcp_ca_state`), in their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum CaState {
    /// All is well.
    Open = 0,
    /// Something was reported or acknowledged twice.
    Disorder = 1,
    /// The window is being lowered without a loss to repair.
    Cwr = 2,
    /// A fast recovery.
    Recovery = 3,
    /// After a timeout.
    Loss = 4,
}

/// The sender's counters, in packets where the kernel counts packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Info {
    /// State of the connection.
    pub state: State,
    /// State of its congestion control.
    pub ca_state: CaState,
    /// Congestion window.
    pub snd_cwnd: u64,
    /// Slow-start threshold; `None` while unset.
    pub snd_ssthresh: Option<u64>,
    /// Packets sent and not acknowledged.
    pub unacked: u64,
    /// Of these, reported to have arrived; without SACK, duplicate acknowledgments.
    pub sacked: u64,
    /// Of these, taken for lost.
    pub lost: u64,
    /// Of these, under way again.
    pub retrans: u64,
    /// Payload of a full segment.
    pub snd_mss: u64,
    /// Timeouts in a row.
    pub backoff: u32,
    /// Window probes in a row.
    pub probes: u32,
    /// Retransmission timeout in force.
    pub rto: Duration,
    /// Smoothed round trip.
    pub rtt: Option<Duration>,
    /// Least round trip.
    pub min_rtt: Option<Duration>,
    /// Bytes that lie ready to be read.
    pub unread: u64,
    /// Bytes written and not acknowledged, and those of them never sent.
    pub unsent: (u64, u64),
    /// Window the peer offers.
    pub window: Bytes,
    /// How far apart, in packets, the network has been seen to deliver (`tp->reordering`).
    pub reordering: u32,
    /// Times it was seen to reorder.
    pub reord_seen: u32,
    /// Duplicates reported.
    pub dsack_dups: u32,
}

impl Endpoint {
    /// What a user-defined congestion controller failed with, if it did.
    pub fn controller_failure(&self) -> Option<&Gone> {
        self.cc.failure()
    }

    /// The counters as they stand.
    pub fn info(&self) -> Info {
        let control = self.cc.control();
        let mss = self.mss().max(1);
        let sums = self.snd.map.sums();
        let sacked = match self.snd.repair {
            Repair::Duplicates => u64::from(self.snd.dup_acks),
            Repair::Holes(_) | Repair::Timed(_) | Repair::Rack(_) => sums.sacked.packets,
        };
        let written = self.snd.buffer.used();
        let sent = self.snd.max.min(self.data_end()).since(self.snd.una).get();
        Info {
            state: self.state,
            ca_state: self.ca_state(sacked),
            snd_cwnd: control.window.get() / mss,
            snd_ssthresh: control.ssthresh.map(|bytes| bytes.get() / mss),
            unacked: sums.all.packets,
            sacked,
            lost: sums.lost.packets,
            retrans: sums.resent.packets,
            snd_mss: mss,
            backoff: self.snd.shift,
            probes: self.snd.asked.probes,
            rto: self.rtt.rto(),
            rtt: self.rtt.srtt(),
            min_rtt: self.totals.min_rtt,
            unread: self.rcv.window.unread(),
            unsent: (written, written.saturating_sub(sent)),
            window: Bytes(self.snd.wnd),
            reordering: self.reordering().metric(),
            reord_seen: self.reordering().seen(),
            dsack_dups: self.reordering().dsack_dups(),
        }
    }

    fn ca_state(&self, sacked: u64) -> CaState {
        if self.snd.shift > 0 || self.repairs_timeout() {
            CaState::Loss
        } else if self.snd.ecn_episode.is_some() {
            CaState::Cwr
        } else if self.cc.in_recovery() {
            CaState::Recovery
        } else if sacked > 0 {
            CaState::Disorder
        } else {
            CaState::Open
        }
    }

    /// When the next deadline of that kind is.
    pub fn deadline(&self, purpose: Purpose) -> Option<Instant> {
        self.timers.at(purpose)
    }
}
