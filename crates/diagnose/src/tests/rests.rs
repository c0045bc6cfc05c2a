//! Connections that rest between answers.

use super::TestConnection;
use crate::rules::Neighbours;
use crate::{Diagnosis, Limiter};

/// Answers of two packets after rests, captured at the receiver: each was sent at once, and its last round
/// trip is the time of any window.
#[test]
fn answers_that_fit_the_window_after_a_rest_lose_nothing() {
    let mut script = TestConnection::new();
    script.open_between(10, 180_000);
    let (mut place, mut at) = (0, 200_000);
    for packets in [5, 2, 3, 2] {
        for n in 0..packets {
            let push = if n + 1 == packets { TestConnection::pushed } else { TestConnection::data };
            push(&mut script, at + n * 1_900, place, 1_000);
            place += 1_000;
        }
        script.ack(at + packets * 1_900, place, &[]);
        script.request(at + 2_000_000, place);
        at += 2_180_000;
    }
    let analysis = script.finish();
    let diagnosis = Diagnosis::of(&analysis, &Neighbours::default());
    assert!(diagnosis.course.budget.of(Limiter::Idle).as_nanos() > 5_000_000_000);
    let restart = diagnosis.findings.iter().find(|found| found.code == "CC502");
    assert_eq!(restart, None);
}
