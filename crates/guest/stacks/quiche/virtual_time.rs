//! The clock and the random bytes of this process.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Seconds of the clock at the start of a run: a date between those of the certificate.
const START: u64 = 1_800_000_000;

static NOW: AtomicU64 = AtomicU64::new(0);
static DRAWN: Mutex<[u64; 4]> = Mutex::new([1, 2, 3, 4]);

/// Sets the time in nanoseconds of virtual time.
pub fn set(now: u64) {
    NOW.store(now, Ordering::Relaxed);
}

/// Returns nanoseconds of virtual time.
pub fn nanos_of(at: Instant) -> u64 {
    let now = Instant::now();
    let nanos = |span: Duration| span.as_nanos() as u64;
    let base = NOW.load(Ordering::Relaxed);
    match at.checked_duration_since(now) {
        Some(ahead) => base + nanos(ahead),
        None => base.saturating_sub(nanos(now.duration_since(at))),
    }
}

/// Sets the seed of all random bytes.
pub fn seed(seed: [u8; 32]) {
    if let Ok(mut state) = DRAWN.lock() {
        for (word, bytes) in state.iter_mut().zip(seed.chunks_exact(8)) {
            *word = bytes.iter().fold(1, |word, &byte| word << 8 | u64::from(byte));
        }
    }
}

/// The C library's function, which the standard library and quiche call.
///
/// # Safety
/// `time` is that of the caller.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_gettime(_: libc::clockid_t, time: *mut libc::timespec) -> libc::c_int {
    let now = NOW.load(Ordering::Relaxed);
    unsafe {
        (*time).tv_sec = (START + now / 1_000_000_000) as libc::time_t;
        (*time).tv_nsec = (now % 1_000_000_000) as libc::c_long;
    }
    0
}

/// BoringSSL's function, by the linker's option `--wrap`: xoshiro256++ with the seed.
///
/// # Safety
/// `bytes` has `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap_RAND_bytes(bytes: *mut u8, length: usize) -> libc::c_int {
    let Ok(mut state) = DRAWN.lock() else { return 0 };
    for at in 0..length {
        let drawn = state[0].wrapping_add(state[3]).rotate_left(23).wrapping_add(state[0]);
        let shifted = state[1] << 17;
        state[2] ^= state[0];
        state[3] ^= state[1];
        state[1] ^= state[2];
        state[0] ^= state[3];
        state[2] ^= shifted;
        state[3] = state[3].rotate_left(45);
        unsafe { *bytes.add(at) = (drawn >> 56) as u8 };
    }
    1
}
