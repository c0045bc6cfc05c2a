//! Random worlds; `cargo xtask worlds` runs more of them, faster.

use ackclock_simtest as simtest;
use simtest::worlds::{Passed, draw, judge, smallest};

/// Runs so many worlds of a seed; the first that fails is made small.
fn run(seed: u64, count: u64) -> Passed {
    let mut passed = Passed::default();
    for number in 0..count {
        let text = draw(seed, number);
        match judge(&text) {
            Ok(world) => passed += world,
            Err(failure) => {
                let (small, failure) = smallest(&text, failure, || {});
                let again = format!("cargo xtask worlds --seed {seed} --world {number}");
                panic!("{again}\n{failure}\n\n{small}");
            }
        }
    }
    passed
}

/// Nothing is proved by worlds in which nothing happens.
fn assert_eventful(passed: &Passed) {
    // A flow that is reset, or that keepalive may give up, need not deliver; worlds of several flows,
    // as those with QUIC beside TCP are, count if all of theirs must.
    assert!(4 * passed.ended > passed.worlds, "{passed:?}");
    assert!(passed.segments > 100 * passed.worlds, "{passed:?}");
    for seen in [passed.resent, passed.recoveries, passed.timeouts, passed.lost] {
        assert!(2 * seen > passed.worlds, "{passed:?}");
    }
    for seen in [passed.copied, passed.damaged, passed.probes, passed.aborted] {
        assert!(seen > 0, "{passed:?}");
    }
}

// Two tests, so that two processors have something to do.

#[test]
fn worlds_of_one_seed_obey() {
    assert_eventful(&run(1, 4_000));
}

#[test]
fn worlds_of_another_seed_obey() {
    assert_eventful(&run(2, 4_000));
}
