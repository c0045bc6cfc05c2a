//! Random worlds; `cargo xtask worlds` runs more of them, faster.

use ackclock_simtest as simtest;
use simtest::worlds::{WorldStats, draw, judge, smallest};

/// Runs a number of worlds of a seed; the first failure is minimised.
fn run(seed: u64, count: u64) -> WorldStats {
    let mut passed = WorldStats::default();
    for number in 0..count {
        let text = draw(seed, number);
        match judge(&text) {
            Ok(world) => passed += world,
            Err(failure) => {
                let (small, failure) = smallest(&text, failure, || {});
                let repeated = format!("cargo xtask worlds --seed {seed} --world {number}");
                panic!("{repeated}\n{failure}\n\n{small}");
            }
        }
    }
    passed
}

/// Checks that the worlds had events of every kind.
fn assert_eventful(passed: &WorldStats) {
    // A flow that is reset or forgotten, or that keepalive may abort, need not deliver; worlds of several flows,
    // such as QUIC next to TCP, count only if all of theirs must.
    assert!(5 * passed.ended > passed.worlds, "{passed:?}");
    assert!(passed.segments > 100 * passed.worlds, "{passed:?}");
    for seen in [passed.retransmission, passed.recoveries, passed.timeouts, passed.lost] {
        assert!(2 * seen > passed.worlds, "{passed:?}");
    }
    for seen in [passed.copied, passed.damaged, passed.probes, passed.aborted] {
        assert!(seen > 0, "{passed:?}");
    }
}

// Two tests, to use two processors.

#[test]
fn worlds_of_one_seed_pass() {
    assert_eventful(&run(1, 4_000));
}

#[test]
fn worlds_of_another_seed_pass() {
    assert_eventful(&run(2, 4_000));
}
