//! Proportional rate reduction: how much may be sent for each acknowledgment in recovery.
//!
//! Three specifications and two kernels differ in what they count and in what they bound; each has
//! its file: [`freebsd`] (the base stack), [`rack`] (FreeBSD's RACK stack), [`rfc6937`], [`rfc9937`],
//! [`linux`].

pub mod freebsd;
pub mod linux;
pub mod rack;
pub mod rfc6937;
pub mod rfc9937;

use units::ratio::scaled_up;

/// `prr_delivered * ssthresh / recover_fs`, rounded up, and less what was sent; nothing has a flight
/// of zero.
fn proportional(prr_delivered: u64, ssthresh: u64, recover_fs: u64, prr_out: u64) -> u64 {
    scaled_up(prr_delivered, ssthresh, recover_fs.max(1)).saturating_sub(prr_out)
}
