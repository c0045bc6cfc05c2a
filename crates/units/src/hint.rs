//! Hints to compiler and processor: the compiler moves unlikely code out of the hot path, which keeps
//! the rest of a long function together in the instruction cache; the processor fetches from memory
//! what is needed soon. Behaviour is unaffected.

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

/// Starts to fetch the first cache line of `place`, and does not wait for it.
#[inline(always)]
#[cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "an intrinsic that only affects caches, on a valid reference")
)]
pub fn prefetch<T>(place: &T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has SSE, and a prefetch has no effect but on caches.
    unsafe {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(core::ptr::from_ref(place).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}
