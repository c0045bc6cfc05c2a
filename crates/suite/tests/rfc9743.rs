//! The suite of RFC 9743.

use std::sync::atomic::AtomicBool;

use ackclock_suite::baseline::regressions;
use ackclock_suite::{
    self as suite, CriterionVerdict, HostNoise, RFC9743, SuiteCriterion, SuiteError, SuitePlan,
    SuiteReport, SuiteRequest, SuiteRun, SuiteSender,
};

static NEVER: AtomicBool = AtomicBool::new(false);

fn sender(name: &str) -> SuiteSender {
    SuiteSender::read(name).unwrap()
}

fn criteria(sections: &[&str]) -> Vec<&'static SuiteCriterion> {
    RFC9743.criteria.iter().filter(|one| sections.contains(&one.section)).collect()
}

fn evaluate(name: &str, sections: &[&str], threads: usize) -> SuiteReport {
    evaluate_sender(sender(name), sections, threads)
}

fn request(sender_under_test: SuiteSender) -> SuiteRequest {
    let against = vec![sender("reno"), sender("cubic")];
    SuiteRequest { against, budget: 16, ..SuiteRequest::new(&RFC9743, sender_under_test) }
}

fn evaluate_sender(
    sender_under_test: SuiteSender,
    sections: &[&str],
    threads: usize,
) -> SuiteReport {
    let request = request(sender_under_test);
    suite::decide(&request, &criteria(sections), threads, &NEVER, &|_, _| ()).unwrap()
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
    let report = evaluate("bbr", &["5.1.3"], 2);
    assert_eq!(report.criteria[0].verdict, CriterionVerdict::Fail);
    let figures = &report.criteria[0].figures;
    // 0.1, 0.25, 0.5, 1, 1.5 and 2 products. One that fails decides; others need no more draws.
    assert!(figures[..3].iter().all(|one| one.value > Some(1.0)), "{figures:#?}");
    assert!(figures[..4].iter().any(|one| !one.holds), "{figures:#?}");
    assert!(figures[4..].iter().all(|one| one.holds), "{figures:#?}");
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
    let sarif: serde_json::Value =
        serde_json::from_str(&suite::sarif::render(&now, &worse)).unwrap();
    let results = sarif["runs"][0]["results"].as_array().unwrap();
    let is_named = |rule: &str| worse.iter().any(|one| one.section == rule);
    assert!(results.iter().all(|one| one["ruleId"].as_str().is_some_and(is_named)), "{sarif}");
    assert!(results.len() > worse.len(), "{sarif}");
    assert_eq!(regressions(&before, &before).unwrap(), []);
    let other = SuiteReport { phases: 3, ..before };
    assert!(regressions(&other, &now).unwrap_err().to_string().contains("draws"));
}

/// FreeBSD's NewReno keeps `beta` percent of the window after a loss.
#[test]
fn a_beta_of_80_instead_of_70_percent_is_named_with_the_criterion() {
    let sections = ["5.1.3", "5.2.1"];
    let kept = |percent: u32| {
        let knob = format!("net.inet.tcp.cc.newreno.beta={percent}");
        let sender = sender("newreno").with_knob(&knob).unwrap();
        evaluate_sender(sender, &sections, 2)
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
    let of_quic = "write `PROFILE/CC`, such as `quic-rfc9002/bbr-quiche`";
    assert_eq!(error("bbr-quiche").hint, of_quic);
    assert_eq!(sender("bbr3").to_string(), "linux-6.18/bbr3");
}

#[test]
fn a_stop_ends_the_runs() {
    let stop = AtomicBool::new(true);
    let result =
        suite::decide(&request(sender("reno")), &criteria(&["5.1.1"]), 1, &stop, &|_, _| ());
    assert!(matches!(result, Err(SuiteError::Run(..))));
}

#[test]
fn the_references_are_those_of_the_same_stack() {
    for (name, references) in [
        ("linux-6.12/bbr3", ["linux-6.12/reno", "linux-6.12/cubic"]),
        ("freebsd-main/cubic", ["freebsd-main/newreno", "freebsd-main/cubic"]),
        ("rfc/cubic", ["rfc/newreno", "rfc/cubic"]),
    ] {
        let found = SuiteRequest::new(&RFC9743, sender(name)).against;
        assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>(), references);
    }
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
        against: vec![sender("reno")],
        phases: 2,
        budget: 4,
        ..request(sender("newreno"))
    };
    let criteria = criteria(&["5.1.5", "7.6", "7.9"]);
    let mut plan = SuitePlan::new(&request, &criteria);
    // Three sizes, two worlds, each with two senders and two draws.
    assert_eq!(plan.runs().len(), 12 + 8);
    let mut results: Vec<String> = Vec::new();
    loop {
        let new = plan.runs()[results.len()..].to_vec();
        let elsewhere = SuitePlan::new(&request, &criteria);
        let made = |run: &SuiteRun| {
            let run = SuiteRun::from_numbers(run.to_numbers());
            elsewhere.run(run, &NEVER).unwrap()
        };
        let mut round: Vec<String> = new.iter().rev().map(made).collect();
        round.reverse();
        results.extend(round);
        if !plan.add_round(&results).unwrap() {
            break;
        }
    }
    let report = plan.report(&results).unwrap();
    let whole = suite::decide(&request, &criteria, 2, &NEVER, &|_, _| ()).unwrap();
    assert_eq!(report.to_json(), whole.to_json());
    assert_eq!(report.criteria[0].texts, whole.criteria[0].texts);
    let none = SuiteRun::from_numbers([0, 99, 0, 0]);
    assert!(matches!(plan.run(none, &NEVER), Err(SuiteError::NoResult(_))));
    assert!(matches!(plan.report(&results[1..]), Err(SuiteError::NoResult(_))));
    results[0] = "{}".to_owned();
    assert!(matches!(plan.report(&results), Err(SuiteError::NoResult(_))));
}

/// Without noise a world of one flow is one run; with it, it has draws.
#[test]
fn noise_and_drawn_elements_decide_how_often_a_world_runs() {
    let runs = |noise, section| {
        let request = SuiteRequest { noise, against: vec![], ..request(sender("reno")) };
        SuitePlan::new(&request, &criteria(&[section])).runs().len()
    };
    // A tunnel.
    assert_eq!((runs(HostNoise::Off, "6.2"), runs(HostNoise::Hosts, "6.2")), (1, 4));
    // Three worlds with random losses or delays.
    assert_eq!((runs(HostNoise::Off, "6.4"), runs(HostNoise::Hosts, "6.4")), (30, 30));
}
