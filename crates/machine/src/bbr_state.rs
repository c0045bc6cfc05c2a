//! BBR of the IETF draft as recorders see it, of TCP and of QUIC.

use cc::BbrDraft;
use cc::bbr_draft::BbrDraftPhase;
use record::{BbrPhase, BbrState};

/// The model of BBR of the draft, in the units of kernels.
#[cold]
pub fn bbr_draft_state(cc: &BbrDraft) -> BbrState {
    let model = cc.model();
    let phase = match model.state {
        BbrDraftPhase::Startup => BbrPhase::Startup,
        BbrDraftPhase::Drain => BbrPhase::Drain,
        BbrDraftPhase::Down => BbrPhase::Down,
        BbrDraftPhase::Cruise => BbrPhase::Cruise,
        BbrDraftPhase::Refill => BbrPhase::Refill,
        BbrDraftPhase::Up => BbrPhase::Up,
        BbrDraftPhase::ProbeRtt => BbrPhase::ProbeRtt,
    };
    BbrState::of_draft(
        phase,
        [Some(model.max_bw), model.bw_shortterm],
        [model.inflight_longterm, model.inflight_shortterm],
        model.gains,
        model.min_rtt,
    )
}
