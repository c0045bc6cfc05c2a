//! The opening of a connection: SYNs that were lost, and options that were not negotiated.

use diagnose::Analysis;
use packet::{Dir, Flags};

/// What the handshake of a capture shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OpeningFit {
    /// SYNs, or their answers, that were lost.
    pub lost: u64,
    /// They asked for ECN, and the one that was answered did not.
    pub only_ecn: bool,
    /// Both hosts use ECN.
    pub ecn: bool,
    /// One of the SYNs has no window scale, and windows are those of the field.
    pub no_scaling: bool,
    /// One of the SYNs does not permit SACK.
    pub no_sack: bool,
}

impl OpeningFit {
    pub(crate) fn of(analysis: &Analysis) -> Self {
        if !analysis.opened {
            return Self::default();
        }
        let ecn = Flags::ECE | Flags::CWR;
        let mut syns = 0_u64;
        let (mut asked, mut last_asked, mut agreed) = (false, false, false);
        for packet in &analysis.packets {
            let (flags, dir) = (packet.segment.flags, packet.segment.dir);
            if packet.segment.payload > 0 && !flags.has(Flags::SYN) {
                break;
            }
            if !flags.has(Flags::SYN) {
                continue;
            }
            if dir == Dir::Forward && !flags.has(Flags::ACK) {
                syns += 1;
                last_asked = flags.has(ecn);
                asked |= last_asked;
            } else if dir == Dir::Reverse {
                agreed = flags.has(Flags::ECE) && !flags.has(Flags::CWR);
            }
        }
        let known = analysis.observed_syns.iter().flatten().filter(|syn| syn.is_complete);
        let known: Vec<_> = known.collect();
        let is_absent = |has: &dyn Fn(&packet::SynOptions) -> bool| {
            known.len() == 2 && known.iter().any(|syn| !has(&syn.options))
        };
        Self {
            // The client sends another for each, and for each answer that was lost; the server repeats its answers by a
            // timer of its own, too.
            lost: syns.saturating_sub(1),
            only_ecn: asked && !last_asked,
            ecn: last_asked && agreed,
            no_scaling: is_absent(&|syn| syn.window_scale.is_some()),
            no_sack: is_absent(&|syn| syn.sack_permitted),
        }
    }
}
