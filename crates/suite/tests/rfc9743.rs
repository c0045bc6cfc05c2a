//! The suite of RFC 9743.

use std::sync::atomic::AtomicBool;

use ackclock_suite::baseline::regressions;
use ackclock_suite::{
    self as suite, CriterionVerdict, RFC9743, SuiteCriterion, SuiteError, SuitePlan, SuiteReport,
    SuiteRequest, SuiteSender,
};

static NEVER: AtomicBool = AtomicBool::new(false);

fn sender(name: &str) -> SuiteSender {
    SuiteSender::read(name).unwrap()
}

fn criteria(sections: &[&str]) -> Vec<&'static SuiteCriterion> {
    RFC9743.criteria.iter().filter(|one| sections.contains(&one.section)).collect()
}

fn evaluate(name: &str, sections: &[&str], threads: usize) -> SuiteReport {
    evaluate_phases(name, sections, threads, 2)
}

fn evaluate_phases(name: &str, sections: &[&str], threads: usize, phases: u32) -> SuiteReport {
    evaluate_sender(sender(name), sections, threads, phases)
}

fn evaluate_sender(
    sender_under_test: SuiteSender,
    sections: &[&str],
    threads: usize,
    phases: u32,
) -> SuiteReport {
    let against = vec![sender("reno"), sender("cubic")];
    let request = SuiteRequest { suite: &RFC9743, sender: sender_under_test, against, phases };
    suite::run(&request, &criteria(sections), threads, &NEVER, &|_| ()).unwrap()
}

#[test]
fn the_criteria_are_in_the_order_of_the_document_and_unique() {
    let key = |one: &&SuiteCriterion| -> Vec<u32> {
        one.section.split('.').map(|part| part.parse().unwrap()).collect()
    };
    let sections: Vec<_> = RFC9743.criteria.iter().collect();
    assert!(sections.iter().map(key).is_sorted_by(|a, b| a < b));
}

/// RFC 9743 section 5.1.3 says it of BBR version 1: sustained loss where the queue is below about 1.5
/// bandwidth-delay products.
#[test]
fn bbr_version_1_keeps_losses_high_in_shallow_queues_only() {
    let report = evaluate_phases("bbr", &["5.1.3"], 2, 4);
    assert_eq!(report.criteria[0].verdict, CriterionVerdict::Fail);
    let beyond: Vec<_> = report.criteria[0].figures.iter().map(|one| one.holds).collect();
    // 0.1, 0.25, 0.5, 1, 1.5 and 2 products.
    assert_eq!(beyond[..3], [false; 3]);
    assert_eq!(beyond[4..], [true; 2]);
}

#[test]
fn a_reference_passes_against_itself() {
    let report = evaluate("reno", &["5.1.2", "6.1", "7.5"], 2);
    assert!(report.passes(), "{}", suite::text::render(&report, true));
}

#[test]
fn threads_do_not_change_the_report_and_it_survives_json() {
    let [one, two] = [1, 2].map(|threads| evaluate("newreno", &["5.1.1", "5.1.4", "7.6"], threads));
    assert_eq!(one.to_json(), two.to_json());
    let back = SuiteReport::from_json(&one.to_json()).unwrap();
    assert_eq!(back.to_json(), one.to_json());
    assert_eq!(back.criteria[2].verdict, CriterionVerdict::NotEvaluated);
}

#[test]
fn a_sender_that_is_worse_than_its_baseline_is_named_with_the_criterion() {
    let sections = ["5.1.2", "5.1.3"];
    let (before, now) = (evaluate("cubic", &sections, 2), evaluate("bbr", &sections, 2));
    let worse = regressions(&before, &now).unwrap();
    assert!(worse.iter().any(|one| one.section == "5.1.3"), "{worse:?}");
    assert!(worse.iter().all(|one| one.section != "5.1.2"), "{worse:?}");
    let sarif: serde_json::Value =
        serde_json::from_str(&suite::sarif::render(&now, &worse)).unwrap();
    let results = sarif["runs"][0]["results"].as_array().unwrap();
    assert!(results.iter().all(|result| result["ruleId"] == "5.1.3"), "{sarif}");
    assert!(results.len() > worse.len(), "{sarif}");
    assert_eq!(regressions(&before, &before).unwrap(), []);
    let other = SuiteReport { phases: 3, ..before };
    assert!(regressions(&other, &now).unwrap_err().to_string().contains("start phases"));
}

/// FreeBSD's NewReno keeps `beta` percent of the window after a loss.
#[test]
fn a_beta_of_80_instead_of_70_percent_is_named_with_the_criterion() {
    let sections = ["5.1.3", "5.2.1"];
    let kept = |percent: u32| {
        let knob = format!("net.inet.tcp.cc.newreno.beta={percent}");
        let sender = sender("newreno").with_knob(&knob).unwrap();
        evaluate_sender(sender, &sections, 2, 4)
    };
    let (before, now) = (kept(70), kept(80));
    assert!(now.sender.ends_with("/newreno net.inet.tcp.cc.newreno.beta=80"), "{}", now.sender);
    let worse = regressions(&before, &now).unwrap();
    let harm = worse.iter().find(|one| one.what.contains(": harm to the existing flow"));
    assert_eq!(harm.map(|one| one.section.as_str()), Some("5.2.1"), "{worse:?}");
    assert!(worse.iter().any(|one| one.section == "5.1.3"), "{worse:?}");
    // The other way round it is no regression.
    assert_eq!(regressions(&now, &before).unwrap(), []);
}

#[test]
fn a_knob_is_read_and_refused_by_name_and_value() {
    let newreno = || sender("newreno");
    let error = |knob| newreno().with_knob(knob).unwrap_err().to_string();
    assert!(error("net.inet.tcp.cc.newreno.beta").contains("NAME=VALUE"));
    assert!(error("net.inet.tcp.cc.newreno.bets=80").contains("bets"));
    assert!(error("net.inet.tcp.cc.newreno.beta=many").contains("many"));
    // A socket buffer of the user takes the place of the suite's.
    let sender = newreno().with_knob("net.inet.tcp.sendbuf_max=1MiB").unwrap();
    assert!(sender.knobs().contains("\"net.inet.tcp.sendbuf_max\" = \"1MiB\""));
    assert_eq!(sender.knobs().matches("sendbuf_max").count(), 1);
}

#[test]
fn unknown_senders_are_refused_with_a_hint() {
    let error = |name| SuiteSender::read(name).unwrap_err();
    assert_eq!(error("newreon").hint, "did you mean `newreno`?");
    assert!(error("linux-6.18/newrenno").message.contains("unknown congestion control"));
    assert!(error("windows/cubic").message.contains("windows"));
    assert_eq!(sender("bbr3").to_string(), "linux-6.18/bbr3");
}

#[test]
fn a_stop_ends_the_runs() {
    let request =
        SuiteRequest { suite: &RFC9743, sender: sender("reno"), against: vec![], phases: 2 };
    let stop = AtomicBool::new(true);
    let result = suite::run(&request, &criteria(&["5.1.1"]), 1, &stop, &|_| ());
    assert!(matches!(result, Err(SuiteError::Run(..))));
}

#[test]
fn every_form_has_every_criterion_and_escapes_its_text() {
    let mut report = evaluate("reno", &["5.1.1", "7.6"], 2);
    report.sender = "<&\">".to_owned();
    let junit = suite::junit::render(&report);
    let sarif = suite::sarif::render(&report, &[]);
    assert!(junit.contains("&lt;&amp;&quot;&gt;") && junit.contains("<skipped message"));
    for text in
        [junit, sarif, suite::markdown::render(&report), suite::text::render(&report, false)]
    {
        assert!(text.contains("5.1.1") && text.contains("7.6"));
    }
    let mut page = Vec::new();
    suite::page::page(&report).write(&mut page).unwrap();
    assert!(String::from_utf8(page).unwrap().contains("misbehaving nodes"));
}

#[test]
fn every_figure_of_a_page_has_its_unit() {
    let text = r#"{"version": "0", "suite": "rfc9743", "sender": "s", "against": [], "phases": 2,
        "criteria": [{"section": "7.4", "title": "t", "verdict": "pass", "limits": "", "worlds": [],
            "figures": [{"name": "loss", "unit": "%", "value": 3.7, "reference": 3.5, "limit": 11.1,
                         "bound": "at_most", "holds": true}]}]}"#;
    let report = SuiteReport::from_json(text).unwrap();
    let mut page = Vec::new();
    suite::page::page(&report).write(&mut page).unwrap();
    let page = String::from_utf8(page).unwrap();
    for figure in ["3.70 %", "3.50 %", "at most 11.1 %"] {
        assert!(page.contains(figure), "{figure}");
    }
}

/// The results of the runs, made in any order by other processes, give the same report.
#[test]
fn runs_by_number_give_the_same_report() {
    let request = SuiteRequest {
        suite: &RFC9743,
        sender: sender("newreno"),
        against: vec![sender("reno")],
        phases: 2,
    };
    let criteria = criteria(&["5.1.5", "7.6", "7.9"]);
    let plan = SuitePlan::new(&request, &criteria);
    // Three sizes and two senders; a world of two phases and one of none, for two senders each.
    assert_eq!(plan.runs(), 6 + 4 + 2);
    let mut results = vec![String::new(); plan.runs()];
    for number in (0..plan.runs()).rev() {
        results[number] = SuitePlan::new(&request, &criteria).run(number, &NEVER).unwrap();
    }
    let report = plan.report(&results).unwrap();
    let whole = suite::run(&request, &criteria, 2, &NEVER, &|_| ()).unwrap();
    assert_eq!(report.to_json(), whole.to_json());
    assert_eq!(report.criteria[0].texts, whole.criteria[0].texts);
    assert!(matches!(plan.run(plan.runs(), &NEVER), Err(SuiteError::NoResult(_))));
    assert!(matches!(plan.report(&results[1..]), Err(SuiteError::NoResult(_))));
    results.swap(0, 11);
    results[0] = "{}".to_owned();
    assert!(matches!(plan.report(&results), Err(SuiteError::NoResult(_))));
}
