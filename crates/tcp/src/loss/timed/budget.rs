//! How much may be sent in a recovery: proportional rate reduction, by whose rules.

use recovery::prr::linux::{self, PrrLinux};
use recovery::prr::rfc9937::{self, Prr9937};
use recovery::sendmap::Sums;

/// The counters of a recovery.
#[derive(Debug, Clone, serde::Deserialize, serde::Serialize)]
pub(super) enum Budget {
    /// None runs.
    None,
    /// The controller sets the window itself.
    Controller,
    /// RFC 9937: sets the window.
    Rfc(Prr9937),
    /// Linux: sets the window, in packets.
    Linux(PrrLinux),
}

/// An acknowledgment in recovery.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ack {
    /// What it delivered.
    pub(super) bytes: u64,
    pub(super) packets: u64,
    /// It moves `snd_una`.
    pub(super) advances: bool,
    /// Losses were found with it.
    pub(super) newly_lost: bool,
    pub(super) ssthresh: u64,
    pub(super) mss: u64,
}

impl Budget {
    /// Counts an acknowledgment; tells the window in bytes, where it is by the window that sending
    /// is held back.
    pub(super) fn on_ack(&mut self, ack: &Ack, sums: &Sums) -> Option<u64> {
        match self {
            Self::None | Self::Controller => None,
            Self::Rfc(prr) => prr.on_ack(&rfc9937::PrrAck {
                delivered: ack.bytes,
                inflight: sums.pipe(),
                safe: ack.advances && !ack.newly_lost,
                ssthresh: ack.ssthresh,
                smss: ack.mss,
            }),
            Self::Linux(prr) => {
                let window = prr.on_ack(&linux::PrrAck {
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

    /// `bytes` left, new or again, as so many packets.
    pub(super) fn on_sent(&mut self, bytes: u64, packets: u64) {
        match self {
            Self::None | Self::Controller => {}
            Self::Rfc(prr) => prr.on_sent(bytes),
            Self::Linux(prr) => prr.on_sent(packets),
        }
    }

    /// Has a recovery begun in which nothing was sent yet?
    pub(super) const fn untouched(&self) -> bool {
        match self {
            Self::None | Self::Controller => false,
            Self::Rfc(prr) => prr.prr_out == 0,
            Self::Linux(prr) => prr.prr_out == 0,
        }
    }
}
