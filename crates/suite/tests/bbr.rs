//! The test cases of the draft of BBR, on one path.

use std::sync::atomic::AtomicBool;

use ackclock_suite::SuiteSender;
use ackclock_suite::bbr::{BbrReport, BbrRequest, BbrVerdict, CASES, PATHS, read_log};

fn request(sender: &str, cases: &[&str]) -> BbrRequest {
    BbrRequest {
        sender: SuiteSender::read(sender).unwrap(),
        cases: CASES.iter().filter(|case| cases.is_empty() || cases.contains(&case.id)).collect(),
        paths: PATHS.iter().filter(|path| path.name == "10M-40ms").collect(),
        seed: 1,
    }
}

fn report(request: &BbrRequest, threads: usize) -> BbrReport {
    request.run(threads, &AtomicBool::new(false), &|_| {}).unwrap().0
}

/// Every case passes, or the draft's own rules prevent what it asks for.
#[test]
fn no_case_of_the_draft_fails_on_quic_and_on_tcp() {
    for sender in ["quic-rfc9002/bbr-draft", "rfc/bbr-draft"] {
        let report = report(&request(sender, &[]), 2);
        assert_eq!(report.results.len(), CASES.len());
        assert_eq!(report.count(BbrVerdict::Fail), 0, "{}", report.to_text(false));
        assert!(report.count(BbrVerdict::Pass) >= 14, "{}", report.to_text(false));
    }
}

/// s2n-quic's dialect has no end of Drain by time, and none of ProbeBW_UP by a plateau.
#[test]
fn a_dialect_fails_where_it_departs_from_the_draft() {
    let report = report(&request("s2n-quic-1.88/bbr-s2n", &["drain-time", "up-plateau"]), 1);
    assert_eq!(report.count(BbrVerdict::Fail), 2, "{}", report.to_text(false));
}

#[test]
fn the_report_does_not_depend_on_threads_and_the_reference_holds_itself() {
    let request = request("quic-rfc9002/bbr-draft", &["probe-rtt", "startup-plateau"]);
    assert_eq!(report(&request, 1), report(&request, 2));
    let (_, references) = request.run(1, &AtomicBool::new(false), &|_| {}).unwrap();
    let probe = references.iter().find(|reference| reference.case == "probe-rtt").unwrap();
    let log = read_log(&probe.qlog().unwrap()).unwrap();
    let path = PATHS.iter().find(|path| path.name == probe.path);
    let checks = log.judge(path, Some(&probe.course));
    assert!(checks.len() >= 7 && checks.iter().all(|check| check.holds), "{checks:?}");
    let columns = probe.csv().lines().next().unwrap().split(',').count();
    assert!(probe.csv().lines().all(|line| line.split(',').count() == columns));
}
