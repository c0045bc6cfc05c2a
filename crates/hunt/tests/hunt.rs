//! The search for the worst case.

use std::sync::atomic::AtomicBool;

use ackclock_hunt::{self as hunt, HuntError, HuntGoal, HuntReport, HuntRequest, dimension_names};
use scenario::{Overrides, load};
use suite::SuiteSender;

static NEVER: AtomicBool = AtomicBool::new(false);

/// Numbers and parts that make long runs.
const SLOW: [&str; 3] = ["flows", "rate-change", "transfer"];

fn request(sender: &str, goal: HuntGoal, worlds: usize) -> HuntRequest {
    HuntRequest {
        sender: SuiteSender::read(sender).unwrap(),
        goal,
        limit: goal.default_limit(),
        without: Vec::new(),
        worlds,
        seed: 1,
    }
}

fn found(request: &HuntRequest, threads: usize) -> HuntReport {
    hunt::run(request, threads, &NEVER, &|_| ()).unwrap()
}

/// All but these.
fn without_all_but(kept: &[&str]) -> Vec<String> {
    dimension_names().filter(|name| !kept.contains(name)).map(str::to_owned).collect()
}

#[test]
fn threads_do_not_change_the_report() {
    let mut request = request("newreno", HuntGoal::Utilisation, 60);
    request.without = SLOW.map(str::to_owned).to_vec();
    let [one, three] = [1, 3].map(|threads| found(&request, threads).to_json());
    assert_eq!(one, three);
}

#[test]
fn a_case_is_a_scenario_without_what_it_does_not_need() {
    let mut request = request("freebsd-13.2/newreno", HuntGoal::Utilisation, 60);
    request.without = without_all_but(&["reversed-groups", "duplication", "round-trip"]);
    let report = found(&request, 2);
    assert_eq!(report.cases.len(), 1, "{}", report.to_text());
    let case = &report.cases[0];
    assert_eq!(case.causes, ["reversed-groups"]);
    assert!(case.value < 5.0 && case.retransmitted > 0, "{}", report.to_text());
    assert!(case.scenario.contains("reverse") && !case.scenario.contains("duplicate"));
    load(&case.scenario, "case", &Overrides::default()).unwrap();
}

#[test]
fn a_merging_receiver_starves_slow_start_without_a_retransmission() {
    let mut request = request("freebsd-13.2/newreno", HuntGoal::Utilisation, 120);
    request.without = without_all_but(&["receiver-merges", "rate", "round-trip"]);
    let report = found(&request, 2);
    let case = report.cases.iter().find(|case| case.causes.contains(&"receiver-merges".to_owned()));
    let case = case.unwrap_or_else(|| panic!("{}", report.to_text()));
    assert_eq!(case.retransmitted, 0);
    assert!(case.scenario.contains("lro"));
}

/// Version 3 takes more than 2 % of losses for a flight too large, which version 1 does not: no shallow buffer alone is
/// a case, with few flows.
#[test]
fn bbr_version_3_bounds_its_losses_in_shallow_buffers() {
    let mut request = request("bbr3", HuntGoal::Loss, 60);
    request.without = without_all_but(&["buffer", "flows"]);
    let report = found(&request, 2);
    let text = report.to_text();
    assert_eq!((report.single_changes, report.single_changes_beyond), (10, 0), "{text}");
    assert!(report.cases.iter().all(|case| case.causes.len() == 2), "{text}");
    report.cases.iter().for_each(|case| {
        assert!(case.scenario.contains("bbr3"));
        load(&case.scenario, "case", &Overrides::default()).unwrap();
    });
}

#[test]
fn bbr_version_1_loses_packets_in_shallow_buffers() {
    let mut request = request("bbr", HuntGoal::Loss, 60);
    request.without = without_all_but(&["buffer", "flows"]);
    let report = found(&request, 2);
    let text = report.to_text();
    let shallow = report.cases.iter().find(|case| case.causes == ["buffer"]);
    let shallow = shallow.unwrap_or_else(|| panic!("{text}"));
    assert!(shallow.numbers.contains("buffer 0.25 BDP"), "{text}");
    // Six other buffers, three other numbers of flows; alone each is a cause or none.
    assert_eq!(report.single_changes, 10, "{text}");
    assert!(report.single_changes_beyond >= 3, "{text}");
    // A case is bad for its cause.
    assert_eq!(shallow.ablation.len(), 1);
    assert!(shallow.ablation[0].value < 2.0 && shallow.value > 5.0, "{text}");
}

#[test]
fn a_space_with_nothing_bad_for_reno_ends_so() {
    let mut request = request("reno", HuntGoal::Utilisation, 40);
    request.without = without_all_but(&["duplication"]);
    let report = found(&request, 2);
    assert!(report.cases.is_empty(), "{}", report.to_text());
    assert_eq!((report.single_changes, report.single_changes_beyond), (3, 0));
    assert!(report.to_text().ends_with("nothing found within these limits\n"));
}

/// Each part and each side of a number that is bad alone is a case, whatever else the seed draws.
#[test]
fn a_single_change_is_found_with_every_seed() {
    for seed in 1..=5 {
        let mut request = request("reno", HuntGoal::Utilisation, 40);
        request.without = without_all_but(&["buffer", "duplication"]);
        request.seed = seed;
        let report = found(&request, 2);
        let causes: Vec<_> = report.cases.iter().map(|case| case.causes.join(", ")).collect();
        assert_eq!(causes, ["buffer"], "{}", report.to_text());
    }
}

/// Every level of every part makes a valid scenario with every kind of sender.
#[test]
fn every_system_has_worlds_for_every_goal() {
    for sender in ["rfc/newreno", "quic-rfc9002/newreno", "freebsd-rack-main/newreno", "cubic"] {
        for goal in HuntGoal::ALL {
            let mut request = request(sender, goal, 80);
            request.without = vec!["rate".to_owned(), "flows".to_owned()];
            request.limit = if goal.low_is_bad() { 1e-9 } else { 1e9 };
            let report = found(&request, 2);
            assert!(report.drawn > 20 && report.unchecked == 0);
        }
    }
}

#[test]
fn errors_name_what_is_unknown_and_a_stop_ends_the_hunt() {
    let mut request = request("reno", HuntGoal::Loss, 4);
    let stopped = hunt::run(&request, 1, &AtomicBool::new(true), &|_| ());
    assert!(matches!(stopped, Err(HuntError::World(_))));
    request.without = vec!["lost".to_owned()];
    let error = hunt::describe_space(&request).unwrap_err();
    assert_eq!(error, HuntError::Unknown("lost".to_owned()));
}
