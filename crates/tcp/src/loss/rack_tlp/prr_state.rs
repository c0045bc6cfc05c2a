//! Proportional rate reduction: limits how much a recovery may send.

use recovery::prr::linux::{self, PrrLinux};
use recovery::prr::rfc9937::{self, Prr9937};
use recovery::sendmap::SendMapCounters;

/// PRR counters of a recovery.
#[derive(Debug, Clone, serde::Deserialize, serde::Serialize)]
pub(super) enum PrrState {
    /// No recovery.
    None,
    /// A rate-based controller sets the window itself.
    Controller,
    /// RFC 9937.
    Rfc(Prr9937),
    /// Linux, in packets.
    Linux(PrrLinux),
}

/// An acknowledgment in recovery, as PRR counts it.
#[derive(Debug, Clone, Copy)]
pub(super) struct PrrInput {
    /// Bytes and packets delivered.
    pub(super) bytes: u64,
    pub(super) packets: u64,
    /// It advances `snd_una`.
    pub(super) advances: bool,
    /// It revealed losses.
    pub(super) newly_lost: bool,
    pub(super) ssthresh: u64,
    pub(super) mss: u64,
}

impl PrrState {
    /// Counts an acknowledgment; returns the new congestion window in bytes, if PRR sets it.
    pub(super) fn on_ack(&mut self, ack: &PrrInput, sums: &SendMapCounters) -> Option<u64> {
        match self {
            Self::None | Self::Controller => None,
            Self::Rfc(prr) => prr.on_ack(&rfc9937::Prr9937Input {
                delivered: ack.bytes,
                inflight: sums.pipe(),
                safe: ack.advances && !ack.newly_lost,
                ssthresh: ack.ssthresh,
                smss: ack.mss,
            }),
            Self::Linux(prr) => {
                let window = prr.on_ack(&linux::PrrLinuxInput {
                    acked: ack.packets,
                    in_flight: sums.packets_in_flight(),
                    una_advanced: ack.advances,
                    newly_lost: ack.newly_lost,
                    ssthresh: ack.ssthresh / ack.mss,
                });
                window.map(|packets| packets * ack.mss)
            }
        }
    }

    /// Counts data sent, new or retransmitted.
    pub(super) fn on_sent(&mut self, bytes: u64, packets: u64) {
        match self {
            Self::None | Self::Controller => {}
            Self::Rfc(prr) => prr.on_sent(bytes),
            Self::Linux(prr) => prr.on_sent(packets),
        }
    }

    /// Has a recovery begun that has sent nothing yet?
    pub(super) const fn untouched(&self) -> bool {
        match self {
            Self::None | Self::Controller => false,
            Self::Rfc(prr) => prr.prr_out == 0,
            Self::Linux(prr) => prr.prr_out == 0,
        }
    }
}
