//! The Common TCP Evaluation Suite.

use std::sync::atomic::AtomicBool;

use ackclock_suite::{
    self as suite, CriterionVerdict, SuiteCriterion, SuiteReport, SuiteRequest, SuiteSender,
    TCPEVAL,
};

static NEVER: AtomicBool = AtomicBool::new(false);

fn evaluate(name: &str, sections: &[&str]) -> SuiteReport {
    let sender = |name| SuiteSender::read(name).unwrap();
    let request = SuiteRequest {
        suite: &TCPEVAL,
        sender: sender(name),
        against: vec![sender("reno")],
        phases: 1,
    };
    let criteria: Vec<&'static SuiteCriterion> =
        TCPEVAL.criteria.iter().filter(|one| sections.contains(&one.section)).collect();
    suite::run(&request, &criteria, 2, &NEVER, &|_| ()).unwrap()
}

#[test]
fn the_load_of_a_link_sets_its_use_and_its_queue() {
    let report = evaluate("cubic", &["4.4.6"]);
    let figures = &report.criteria[0].figures;
    let of = |name: &str| figures.iter().find(|figure| figure.name == name).unwrap().value;
    let used = [60, 85, 110].map(|load| of(&format!("dial-up-{load}%: utilisation by goodput")));
    // Payload; the headers are 4 % and more of each packet.
    assert!((50.0..60.1).contains(&used[0]) && used[1] > used[0] && used[2] <= 97.0, "{used:?}");
    let loss = [60, 110].map(|load| of(&format!("dial-up-{load}%: packets lost at the queue")));
    assert!(loss[1] > loss[0], "{loss:?}");
    // A queue of 1250 ms, and the packet in transmission: 1500 bytes take 187.5 ms.
    assert!(of("dial-up-110%: queue delay p95") <= 1_437.5);
}

#[test]
fn what_is_not_modelled_has_its_reason() {
    let report = evaluate("cubic", &["4.4.5", "5.2", "5.3", "6.1", "6.2"]);
    assert_eq!(report.count(CriterionVerdict::NotEvaluated), 5);
    assert!(report.criteria.iter().all(|one| one.reason.is_some()));
}

/// Flows through three links lose at each of them.
#[test]
fn flows_through_three_links_get_less_at_full_load() {
    let report = evaluate("reno", &["6.3"]);
    let figures = &report.criteria[0].figures;
    let ratio = figures.iter().find(|figure| {
        figure.name == "parking-lot-100%: goodput through three links, over the mean through one"
    });
    let ratio = ratio.unwrap();
    assert!(ratio.value < 1.0, "{figures:#?}");
    assert_eq!(Some(ratio.value), ratio.reference);
}
