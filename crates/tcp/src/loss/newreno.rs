//! Loss detection by duplicate acknowledgments alone: RFC 5681 section 3.2 and RFC 6582. FreeBSD's
//! base stack has its own order of steps, in `base`.

use cc::{AnyController, CongestionEvent, Controller, RecoveryEnd, WindowChange};
use record::Cause;
use units::{Bytes, Offset};

use super::DUP_THRESHOLD;
use crate::sender::Retransmission;

/// An acknowledgment, for this detector.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AckInput {
    /// Cumulative acknowledgment, and `snd_una` before it.
    pub(crate) ack: Offset,
    pub(crate) una: Offset,
    /// `snd_max`.
    pub(crate) max: Offset,
    /// Payload of a full segment without options.
    pub(crate) maxseg: u64,
    /// The loss, if the acknowledgment shows one.
    pub(crate) loss: CongestionEvent,
}

/// What follows from an acknowledgment.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct AckOutcome {
    /// A fast recovery began.
    pub(crate) recovery_began: bool,
    /// What happened to the window, to be recorded.
    pub(crate) window: Option<(WindowChange, Cause)>,
    /// The window was set by the recovery.
    pub(crate) recovering: bool,
    /// Something may be sent.
    pub(crate) output: bool,
}

/// RFC 6582 section 3.2: a full acknowledgment ends the recovery, a partial one shows the next loss.
pub(crate) fn on_new_ack(
    input: &AckInput,
    rexmt: &mut Retransmission,
    cc: &mut AnyController,
) -> AckOutcome {
    if !cc.in_recovery() {
        rexmt.dup_acks = 0;
        return AckOutcome::default();
    }
    if input.ack >= cc.recovery_point() {
        rexmt.dup_acks = 0;
        let pipe = input.max - input.ack;
        let change = cc.on_recovered(&RecoveryEnd { th_ack: input.ack, pipe });
        return AckOutcome { window: Some((change, Cause::Recovered)), ..AckOutcome::default() };
    }
    rexmt.head = Some(Cause::PartialAck);
    // tcp_newreno_partial_ack: deflate by the bytes acknowledged, add back one segment.
    let window = cc.control().window.get();
    let deflated = window.saturating_sub(input.ack - input.una) + input.maxseg;
    cc.override_window(Bytes(deflated));
    AckOutcome { recovering: true, ..AckOutcome::default() }
}

/// Processes a duplicate; `rexmt` has counted it.
pub(crate) fn on_dup_ack(
    input: &AckInput,
    rexmt: &mut Retransmission,
    cc: &mut AnyController,
) -> AckOutcome {
    let count = rexmt.dup_acks;
    if cc.in_recovery() {
        // Each one signals that a segment has left the network (RFC 5681 section 3.2, step 4).
        cc.override_window(cc.control().window + Bytes(input.maxseg));
        return AckOutcome { recovering: true, output: true, ..AckOutcome::default() };
    }
    if count != DUP_THRESHOLD {
        // Limited transmit: the duplicate may release a new segment (RFC 3042).
        rexmt.limited = count.min(2);
        return AckOutcome { output: true, ..AckOutcome::default() };
    }
    // RFC 6582 section 3.2 step 2: not for what an earlier recovery or timeout covers.
    let point = cc.recovery_point();
    if input.una <= point && point > Offset(1) {
        rexmt.dup_acks = 0;
        return AckOutcome::default();
    }
    rexmt.cwr_end = None;
    let change = cc.on_congested(&input.loss);
    rexmt.head = Some(Cause::FastRetransmit);
    let ssthresh = cc.control().ssthresh.map_or(0, Bytes::get);
    cc.override_window(Bytes(ssthresh + u64::from(DUP_THRESHOLD) * input.maxseg));
    AckOutcome {
        recovery_began: true,
        window: Some((change, Cause::FastRetransmit)),
        recovering: false,
        output: true,
    }
}
