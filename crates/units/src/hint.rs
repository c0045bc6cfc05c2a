//! What seldom happens, told to the compiler: it puts that out of the way, so that what is left of a
//! long function lies together and fits into the instruction cache. Nothing else changes.

use core::hint::cold_path;

/// `is`, which it seldom is.
#[inline(always)]
pub const fn unlikely(is: bool) -> bool {
    if is {
        cold_path();
        true
    } else {
        false
    }
}
