//! The Common TCP Evaluation Suite.

use std::sync::atomic::AtomicBool;

use ackclock_suite::{
    self as suite, SuiteCriterion, SuiteReport, SuiteRequest, SuiteSender, TCPEVAL,
};

static NEVER: AtomicBool = AtomicBool::new(false);

fn evaluate(name: &str, sections: &[&str]) -> SuiteReport {
    let sender = |name| SuiteSender::read(name).unwrap();
    let request = SuiteRequest {
        suite: &TCPEVAL,
        sender: sender(name),
        against: vec![sender("reno")],
        ..SuiteRequest::new(&TCPEVAL, SuiteSender::read(name).unwrap())
    };
    let criteria: Vec<&'static SuiteCriterion> =
        TCPEVAL.criteria.iter().filter(|one| sections.contains(&one.section)).collect();
    suite::decide(&request, &criteria, 2, &NEVER, &|_, _| ()).unwrap()
}

#[test]
fn the_load_of_a_link_sets_its_use_and_its_queue() {
    let report = evaluate("cubic", &["4.4.6"]);
    let figures = &report.criteria[0].figures;
    let of = |name: &str| figures.iter().find(|figure| figure.name == name).unwrap().value.unwrap();
    let used = [60, 85, 110].map(|load| of(&format!("dial-up-{load}%: utilisation by goodput")));
    // Payload; the headers are 4 % and more of each packet.
    assert!((50.0..60.1).contains(&used[0]) && used[1] > used[0] && used[2] <= 97.0, "{used:?}");
    let loss = [60, 110].map(|load| of(&format!("dial-up-{load}%: packets lost at the queue")));
    assert!(loss[1] > loss[0], "{loss:?}");
    // A queue of 1250 ms, and the packet in transmission: 1500 bytes take 187.5 ms.
    assert!(of("dial-up-110%: queue delay p95") <= 1_437.5);
}

#[test]
fn every_section_is_evaluated() {
    assert!(TCPEVAL.criteria.iter().all(|one| one.not_evaluated.is_none()));
}

/// Section 4.4.5: one medium carries both directions, so that data and ACKs share 6 Mbit/s.
#[test]
fn a_wireless_medium_carries_less_data_than_its_rate() {
    let report = evaluate("reno", &["4.4.5"]);
    let used = value(&report, "wireless-lan-110%: utilisation by goodput");
    // Of each 1500 bytes 1448 are data, and an ACK of 52 bytes follows two of them at least.
    assert!((60.0..94.9).contains(&used), "{used}");
}

fn value(report: &SuiteReport, name: &str) -> f64 {
    let figures = report.criteria.iter().flat_map(|criterion| &criterion.figures);
    figures.into_iter().find(|figure| figure.name == name).unwrap().value.unwrap()
}

/// Section 5.3. A window that halved when the queue was full needs about half of the bandwidth-delay
/// product (862 packets) of round trips to be back.
#[test]
fn reno_takes_released_bandwidth_slowly() {
    let report = evaluate("reno", &["5.3"]);
    let [sixty, ninety] = [60, 90].map(|percent| {
        let name = format!("udp-75-to-0mbit: time until the window is {percent} % of its BDP");
        value(&report, &name)
    });
    assert!(sixty < ninety && (5.0..=100.0).contains(&ninety), "{sixty} {ninety}");
    let step = "udp-75-to-0mbit: largest growth of the window in a round trip until then";
    // RFC 5681: a segment in each round trip, and the rounds here begin at any of its ACKs.
    assert!(value(&report, step) <= 2.0, "{}", value(&report, step));
    let lost = value(&report, "udp-0-to-75mbit: packets of the other traffic lost in 100 s");
    // At 75 Mbit/s 625,000 datagrams are sent.
    assert!((1.0..62_500.0).contains(&lost), "{lost}");
}

/// Section 6.1: standard TCP beside itself is the baseline.
#[test]
fn standard_tcp_loses_nothing_to_itself() {
    let report = evaluate("reno", &["6.1"]);
    for figure in &report.criteria[0].figures {
        assert_eq!((figure.value, figure.reference), (Some(1.0), Some(1.0)), "{}", figure.name);
    }
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
    assert!(ratio.value.unwrap() < 1.0, "{figures:#?}");
    assert_eq!(ratio.value, ratio.reference);
}
