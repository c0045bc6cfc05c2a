//! Proportional rate reduction: limits what recovery may send for each acknowledgment.
//!
//! Three specifications and two kernels differ in the counters and in the bounds; each has its
//! file: [`freebsd`] (the base stack), [`rack`] (FreeBSD's RACK stack), [`rfc6937`], [`rfc9937`],
//! [`linux`].

pub mod freebsd;
pub mod linux;
pub mod rack;
pub mod rfc6937;
pub mod rfc9937;

use units::ratio::scaled_up;

/// `prr_delivered * ssthresh / recover_fs`, rounded up, less `prr_out`; a flight of zero counts as
/// one.
fn proportional(prr_delivered: u64, ssthresh: u64, recover_fs: u64, prr_out: u64) -> u64 {
    scaled_up(prr_delivered, ssthresh, recover_fs.max(1)).saturating_sub(prr_out)
}
