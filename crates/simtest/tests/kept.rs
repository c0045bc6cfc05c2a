//! Worlds that random draws have found, kept for what they show.

use ackclock_simtest as simtest;
use simtest::worlds::judge;

/// FreeBSD 14.3 after a timeout, `snd_nxt` below `snd_max`: a recovery begins, PRR leaves a window of 12 B,
/// and a segment leaves that ends beyond what was sent before. tcp_sack_adjust enlarges the window by
/// `sacked_bytes`, which is 1,440 B although 1,404 B are SACKed (`recovery::holes` has the reason).
#[test]
fn freebsd_sends_by_sacked_bytes_in_a_recovery_after_a_timeout() {
    let world = include_str!("worlds_kept/freebsd-timeout-in-recovery.toml");
    if let Err(failure) = judge(world) {
        panic!("{failure}");
    }
}
