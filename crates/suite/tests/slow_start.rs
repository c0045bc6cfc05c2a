//! The suite of slow start.

use std::sync::atomic::AtomicBool;

use ackclock_suite::{
    self as suite, SLOW_START, SuiteCriterion, SuiteReport, SuiteRequest, SuiteSender,
};

static NEVER: AtomicBool = AtomicBool::new(false);

fn evaluate(name: &str, against: &str, section: &str) -> SuiteReport {
    let sender = |name| SuiteSender::read(name).unwrap();
    let request = SuiteRequest {
        suite: &SLOW_START,
        sender: sender(name),
        against: vec![sender(against)],
        ..SuiteRequest::new(&SLOW_START, SuiteSender::read(name).unwrap())
    };
    let criteria: Vec<&'static SuiteCriterion> =
        SLOW_START.criteria.iter().filter(|one| one.section == section).collect();
    suite::decide(&request, &criteria, 2, &NEVER, &|_, _| ()).unwrap()
}

#[test]
fn the_paths_are_two_hundred() {
    assert_eq!(SLOW_START.criteria.len() * 25, 200);
}

/// Reno leaves slow start at a loss, after the queue is full; HyStart of Linux's CUBIC by the delay.
#[test]
fn cubic_leaves_slow_start_before_reno_and_both_do() {
    let report = evaluate("cubic", "reno", "0.5bdp");
    let figures = &report.criteria[0].figures;
    let of = |name: &str| figures.iter().find(|figure| figure.name.contains(name)).unwrap();
    let ends = of("ends within the run");
    assert!(ends.value >= Some(100.0) && ends.reference >= Some(100.0), "{ends:?}");
    let paths: Vec<_> = figures.iter().filter(|one| one.name.contains("mbit-")).collect();
    assert_eq!(paths.len(), 25);
    // The window of Reno has filled path and queue and doubles until the loss is detected.
    assert!(paths.iter().all(|path| (1.4..4.0).contains(&path.reference.unwrap())), "{figures:#?}");
    let earlier = paths.iter().filter(|path| path.value.unwrap() < path.reference.unwrap()).count();
    assert!(earlier > 20, "{figures:#?}");
    let text = suite::text::render(&report, false);
    assert!(
        text.starts_with("slow start over 200 paths: linux-6.18/cubic against linux-6.18/reno\n")
    );
}
