//! FreeBSD's CUBIC in fixed point, eight fraction bits.
//!
//! Source: cc_cubic.h (cubic_k, cubic_cwnd, tf_cwnd). The cube root is the one of Apple's
//! technical report KT-32. Signed arithmetic wraps, as in the kernel's build.

/// `CUBIC_SHIFT`: fraction bits.
const SHIFT: u32 = 8;
/// `CUBIC_BETA`: fraction of the window kept at a loss, 179/256 (0.699).
pub const BETA: u64 = 179;
/// `CUBIC_FC_FACTOR`: fast convergence, 217/256 (0.848).
pub const FC_FACTOR: u64 = 217;
/// `CUBIC_C_FACTOR`: steepness, 102/256 (0.398).
const C_FACTOR: i64 = 102;
/// `ONE_SUB_CUBIC_BETA`.
const ONE_SUB_BETA: u64 = 77;
/// `THREE_X_PT3` and `TWO_SUB_PT3`: growth of the TCP-friendly window, 231/435 (0.531).
const FRIENDLY: (u64, i32) = (231, 435);
/// `CUBED_ROOT_MAX_ULONG`: beyond this distance from the plateau the cube would overflow.
const CUBE_FITS: i64 = 448_845;

/// `window * factor / 256`.
pub fn share(window: u64, factor: u64) -> u64 {
    window.wrapping_mul(factor) >> SHIFT
}

/// `cubic_k` up to D46546: seconds (eight fraction bits) from 0.7 of `wmax_segs` segments back to
/// all of them. For zero segments it is 98/256 s, the constant of the approximation.
pub fn cubic_k(wmax_segs: u64) -> i64 {
    let wmax_segs = wmax_segs as i64;
    // In 64 bits: a window has far fewer segments.
    root((wmax_segs.wrapping_mul(ONE_SUB_BETA as i64) << SHIFT) / C_FACTOR)
}

/// `cubic_k` of the RFC 9438 follow-up: seconds (eight fraction bits) from `epoch_segs` segments to
/// `wmax_segs`; 0 if that is not larger. The difference is shifted in 32 bits, so 65,536 segments
/// and more lose their upper bits.
pub fn cubic_k_from(wmax_segs: u32, epoch_segs: u32) -> i64 {
    if wmax_segs <= epoch_segs {
        return 0;
    }
    root(i64::from((wmax_segs - epoch_segs) << (2 * SHIFT)) / C_FACTOR)
}

/// Cube root of `s` with eight fraction bits: normalised to between 1/8 and 1, then a parabola.
fn root(mut s: i64) -> i64 {
    let mut p = 0;
    while s >= 256 {
        s >>= 3;
        p += 1;
    }
    ((((s * 275) >> SHIFT) + 98) - (((s * s * 120) >> SHIFT) >> SHIFT)) << p
}

/// `cubic_cwnd` in bytes: `C (t - K)^3 + wmax`, with `t` in units of 1/`unit` s. It changes in
/// whole segments of `smss`, rounded down.
pub fn cubic_cwnd(t: i32, wmax: u64, smss: u32, k: i64, unit: i64) -> u64 {
    let distance = ((i64::from(t) << SHIFT).wrapping_sub(k.wrapping_mul(unit))) / unit;
    if distance > CUBE_FITS {
        return i32::MAX as u64;
    }
    if distance < -CUBE_FITS {
        return 0;
    }
    let cube = distance * distance * distance;
    let segments = cube.wrapping_mul(C_FACTOR) >> (4 * SHIFT);
    let cwnd = segments.wrapping_mul(i64::from(smss)).wrapping_add(wmax as i64);
    cwnd.max(0) as u64
}

/// `tf_cwnd` before D46546 (RFC 8312 equation 4) in bytes: `0.7 wmax + 0.53 (t / rtt)` segments,
/// with `t` and `rtt` in the same unit.
pub fn tf_cwnd(t: i32, rtt: i32, wmax: u64, smss: u32) -> u64 {
    let kept = wmax.wrapping_mul(BETA);
    // Time and RTT become unsigned longs, the latter after it was multiplied as an int.
    let grown = FRIENDLY.0.wrapping_mul(i64::from(t) as u64).wrapping_mul(u64::from(smss)) << SHIFT;
    let per = (i64::from(FRIENDLY.1.wrapping_mul(rtt)) as u64).max(1);
    kept.wrapping_add(grown / per) >> SHIFT
}
