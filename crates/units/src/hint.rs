//! Branch hints: the compiler moves unlikely code out of the hot path, which keeps the rest of a
//! long function together in the instruction cache. Behaviour is unaffected.

use core::hint::cold_path;

/// Returns `is` and marks the true branch as unlikely.
#[inline(always)]
pub const fn unlikely(is: bool) -> bool {
    if is {
        cold_path();
        true
    } else {
        false
    }
}
