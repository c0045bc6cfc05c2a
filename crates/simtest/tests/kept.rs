//! Worlds whose violation is not explained yet. A passing test shows that one is no longer there.

use ackclock_simtest as simtest;
use simtest::worlds::judge;

/// FreeBSD 14.3 after a timeout, `snd_nxt` below `snd_max`: a recovery begins, PRR leaves a window below
/// a segment, and a segment leaves that ends beyond what was sent before. Either the window that
/// tcp_sack_adjust enlarges is modelled wrongly there, or the verifier lacks that rule.
#[test]
#[ignore = "the violation is not explained yet: 36 B in flight in recovery, the limit is 12 B"]
fn freebsd_sends_beyond_the_window_of_a_recovery_after_a_timeout() {
    let world = include_str!("worlds_kept/freebsd-timeout-in-recovery.toml");
    if let Err(failure) = judge(world) {
        panic!("{failure}");
    }
}
