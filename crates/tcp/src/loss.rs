//! How losses are found and repaired, one file for each way: by duplicate acknowledgments alone
//! (`duplicates`, RFC 6582), as FreeBSD's base stack does (`base`, with the scoreboard in `holes`), by
//! the time packets were sent (`timed`, RACK-TLP), or as FreeBSD's RACK stack does (`rack`).

mod base;
mod duplicates;
mod holes;
mod rack;
mod timed;

use packet::Segment;
use recovery::dsack::Block;
use units::Offset;

pub(crate) use holes::HolesLoss;
pub(crate) use rack::RackLoss;
pub(crate) use timed::TimedLoss;

use crate::endpoint::Endpoint;
use crate::profile::{LossRule, Profile};

/// The way of one connection, with its state.
#[derive(Debug, Clone, serde::Deserialize, serde::Serialize)]
pub(crate) enum Repair {
    /// Where SACK was not agreed.
    Duplicates,
    /// FreeBSD's base stack, with and without SACK.
    Holes(Box<HolesLoss>),
    /// RACK-TLP.
    Timed(TimedLoss),
    /// FreeBSD's RACK stack.
    Rack(Box<RackLoss>),
}

impl Repair {
    /// The way of a connection for which SACK was agreed or not.
    pub(crate) fn new(profile: &Profile, sack: bool) -> Self {
        match profile.loss {
            LossRule::Holes(rule) => Self::Holes(Box::new(HolesLoss::new(rule))),
            LossRule::Timed(rule) if sack => Self::Timed(TimedLoss::new(rule, profile.hz)),
            LossRule::Rack(rule) if sack => Self::Rack(Box::new(RackLoss::new(rule))),
            LossRule::Timed(_) | LossRule::Rack(_) | LossRule::Duplicates => Self::Duplicates,
        }
    }
}

/// What an acknowledgment says, as offsets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Heard {
    /// All before this has arrived.
    pub(crate) th_ack: Offset,
    /// Window offered, in bytes.
    pub(crate) wnd: u64,
    /// ACKs an offload made one of.
    pub(crate) nsegs: u32,
    /// It carries data of its own.
    pub(crate) data: bool,
    /// It has the SACK option, and that was agreed (`TOF_SACK`).
    pub(crate) sacks: bool,
    blocks: [Block; 4],
    count: usize,
}

impl Heard {
    /// Blocks reported beyond `th_ack`, or below it for what arrived twice.
    pub(crate) fn blocks(&self) -> &[Block] {
        &self.blocks[..self.count]
    }
}

impl Endpoint {
    /// Is what a timeout took for lost still being repaired?
    pub(crate) fn repairs_timeout(&self) -> bool {
        matches!(&self.snd.repair, Repair::Timed(loss) if loss.repairs_timeout())
    }

    /// Reads an acknowledgment; blocks that lie beyond all sequence space are dropped.
    pub(crate) fn hear(&self, segment: &Segment, th_ack: Offset, wnd: u64) -> Heard {
        let mut heard = Heard {
            th_ack,
            wnd,
            nsegs: u32::from(segment.nsegs.max(1)),
            data: segment.payload > 0,
            sacks: self.link.sack && !segment.sack_blocks().is_empty(),
            blocks: [(Offset(0), Offset(0)); 4],
            count: 0,
        };
        if self.link.sack {
            for block in segment.sack_blocks() {
                let place = |seq: units::SeqNum| seq.near(self.cfg.isn, self.snd.una);
                if let Some(block) = place(block.left).zip(place(block.right)) {
                    heard.blocks[heard.count] = block;
                    heard.count += 1;
                }
            }
        }
        heard
    }
}
