//! Loss detection and recovery, one file for each kind: duplicate acknowledgments alone (`newreno`,
//! RFC 6582), FreeBSD's base stack (`base`, with the scoreboard in `sack`), RACK-TLP (`rack_tlp`),
//! and FreeBSD's RACK stack (`rack`).

mod base;
mod newreno;
mod rack;
mod rack_tlp;
mod sack;

use packet::Segment;
use recovery::dsack::SackRange;
use units::Offset;

pub(crate) use rack::FreeBsdRackState;
pub(crate) use rack_tlp::RackTlpState;
pub(crate) use sack::SackLossState;

use crate::endpoint::TcpEndpoint;
use crate::profile::{LossDetectionRule, RackTlpRule, TcpProfile};

/// Loss detection of a connection, with its state.
#[derive(Debug, Clone, serde::Deserialize, serde::Serialize)]
pub(crate) enum LossDetector {
    /// Without SACK.
    NewReno,
    /// FreeBSD's base stack, with and without SACK.
    Sack(Box<SackLossState>),
    /// RACK-TLP.
    RackTlp(RackTlpState),
    /// FreeBSD's RACK stack.
    FreeBsdRack(Box<FreeBsdRackState>),
}

impl LossDetector {
    /// Creates the loss detection of a connection; `sack`: SACK was negotiated.
    pub(crate) fn new(profile: &TcpProfile, sack: bool) -> Self {
        match profile.loss {
            LossDetectionRule::Sack(rule) => Self::Sack(Box::new(SackLossState::new(rule))),
            LossDetectionRule::RackTlp(rule) if sack || rule == RackTlpRule::Linux => {
                Self::RackTlp(RackTlpState::new(rule, !sack))
            }
            LossDetectionRule::FreeBsdRack(rule) if sack => {
                Self::FreeBsdRack(Box::new(FreeBsdRackState::new(rule, profile.newreno.hystart)))
            }
            LossDetectionRule::RackTlp(_)
            | LossDetectionRule::FreeBsdRack(_)
            | LossDetectionRule::NewReno => Self::NewReno,
        }
    }
}

/// The contents of an acknowledgment, as offsets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReceivedAck {
    /// The segment's sequence number.
    pub(crate) seq: Offset,
    /// Cumulative acknowledgment.
    pub(crate) th_ack: Offset,
    /// Window advertised, in bytes.
    pub(crate) wnd: u64,
    /// Number of ACKs merged by offload.
    pub(crate) nsegs: u32,
    /// The segment carries data.
    pub(crate) data: bool,
    /// It has a SACK option, and SACK was negotiated (`TOF_SACK`).
    pub(crate) sacks: bool,
    blocks: [SackRange; 4],
    count: usize,
}

impl ReceivedAck {
    /// SACK blocks beyond `th_ack`, or below it for duplicates (D-SACK).
    pub(crate) fn blocks(&self) -> &[SackRange] {
        &self.blocks[..self.count]
    }
}

impl TcpEndpoint {
    /// Is the flight lost in a timeout still being retransmitted?
    pub(crate) fn repairs_timeout(&self) -> bool {
        matches!(&self.snd.loss_detector, LossDetector::RackTlp(loss) if loss.repairs_timeout())
    }

    /// Parses an acknowledgment; blocks outside the sequence space are dropped.
    pub(crate) fn parse_ack(
        &self,
        segment: &Segment,
        (seq, th_ack): (Offset, Offset),
        wnd: u64,
    ) -> ReceivedAck {
        let mut received = ReceivedAck {
            seq,
            th_ack,
            wnd,
            nsegs: u32::from(segment.nsegs.max(1)),
            data: segment.payload > 0,
            sacks: self.negotiated.sack && !segment.sack_blocks().is_empty(),
            blocks: [(Offset(0), Offset(0)); 4],
            count: 0,
        };
        if self.negotiated.sack {
            for block in segment.sack_blocks() {
                let place = |seq: units::SeqNum| seq.near(self.cfg.isn, self.snd.una);
                if let Some(block) = place(block.left).zip(place(block.right)) {
                    received.blocks[received.count] = block;
                    received.count += 1;
                }
            }
        }
        received
    }
}
