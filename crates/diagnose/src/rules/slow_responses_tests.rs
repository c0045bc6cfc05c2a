//! Tests of CC505 about one or two slow responses, captured at the client, between the hosts and at the
//! server.

use packet::{Flags, Segment};
use units::SeqNum;

use super::think_time_tests::{POINTS, RequestSession, evidence, no_host_is_slow, slow_host};
use super::{Confidence, Neighbours, Severity};
use crate::Diagnosis;
use crate::tests::{ISN, TestConnection};

/// One request that the server answers after this many milliseconds.
fn single(millis: u64) -> RequestSession {
    RequestSession::new(&[(millis, 0)])
}

/// A slow response amid twenty fast ones, between which a user rests for about as long as this.
fn amid_others(millis: u64, rest: u64) -> RequestSession {
    let mut turns: Vec<_> = (0..20).map(|n| (5, rest / 2 + n * rest / 20)).collect();
    turns[7].0 = millis;
    RequestSession::new(&turns)
}

#[test]
fn a_single_slow_response_is_named_at_any_capture_point() {
    for (name, session) in [("single", single(3_000)), ("amid others", amid_others(3_000, 900))] {
        for point in POINTS {
            let diagnosis = session.diagnosis(point);
            let what = format!("{name} at {point}: {:#?}", diagnosis.findings);
            assert_eq!(diagnosis.primary, Some("CC505"), "{what}");
            let found = slow_host(&diagnosis).unwrap();
            assert_eq!(found.severity, Severity::Warning, "{what}");
            assert!(
                found.title.starts_with("the server is slow: a response takes 3.00 s, "),
                "{what}"
            );
            assert!(found.cost.as_nanos().abs_diff(3_000_000_000) < 2_000_000, "{what}");
            let first_byte = evidence(found, "first_byte_s");
            assert!(first_byte.starts_with("3.04 s after the request"), "{what}");
            let expected = if point == 4 { Confidence::High } else { Confidence::Medium };
            assert_eq!(found.confidence, expected, "{what}");
            assert_eq!(found.unseen.contains("sent before, and lost"), point != 4, "{what}");
        }
    }
    // Less than a tenth of the time, most of which the user rests.
    let rare = amid_others(3_000, 4_000).diagnosis(0);
    assert_eq!((rare.primary, slow_host(&rare).unwrap().severity), (None, Severity::Note));
    let two = RequestSession::new(&[(2_000, 5), (2_000, 0)]).diagnosis(0);
    let title = &slow_host(&two).unwrap().title;
    assert!(title.contains("2 responses take 4.00 s"), "{title}");
}

/// The ACK of the request is the evidence: without it the request may have been lost. A wait of less than half a
/// second, or one as long as those of long polls, is none, nor is one between small messages.
#[test]
fn doubtful_single_waits_blame_no_server() {
    let cases = [
        ("no ACK", RequestSession { acks_requests: false, ..single(3_000) }),
        ("a short wait", single(450)),
        ("a long poll", single(25_000)),
        ("a long poll beside a slow response", RequestSession::new(&[(3_000, 5), (25_000, 0)])),
        ("small messages", RequestSession { request: 40, response: (1, 60), ..single(3_000) }),
        (
            "small messages after larger ones",
            RequestSession { small_from: 1, ..RequestSession::new(&[(5, 5), (3_000, 0)]) },
        ),
        (
            "little of the time",
            RequestSession::new(&[vec![(1_100, 0)], vec![(40, 0); 400]].concat()),
        ),
    ];
    no_host_is_slow(cases);
}

/// A closing alert that is lost and repeated after seconds answers no request (zeek's `tls/ssl.v3.pcap`).
#[test]
fn data_after_a_fin_are_no_response() {
    let mut connection = TestConnection::new();
    connection.open(20_000);
    connection.sends_request(20_020, 0, 500, 0);
    connection.sends_response(40_020, 500, 0, 0);
    connection.sends_response(41_000, 500, 0, 1_400);
    connection.sends_request(41_010, 500, 0, 1_400);
    connection.sends_request(100_000, 500, 200, 1_400);
    let offset = |bytes: u32| SeqNum(ISN.wrapping_add(1).wrapping_add(bytes));
    let (seq, ack) = (offset(700), offset(1_400));
    let flags = Flags::FIN | Flags::ACK;
    connection.push(100_010, Segment { flags, seq, ack, ..Segment::default() }, (0, 0));
    connection.sends_response(120_000, 700, 1_400, 0);
    connection.sends_response(3_100_000, 700, 1_400, 30);
    let analysis = connection.finish();
    assert_eq!(analysis.exchange.as_deref().unwrap().slow_responses.count, 0);
    let diagnosis = Diagnosis::of(&analysis, &Neighbours::default());
    assert!(slow_host(&diagnosis).is_none(), "{:#?}", diagnosis.findings);
}

/// A server of TLS 1.3 answers the last message of the handshake with session tickets, and the request in the
/// next packet after seconds. A page whose begin is there at once, or one that is lost, is no such wait.
#[test]
fn session_tickets_are_no_response() {
    for (name, tickets, is_named) in [("tickets", 510, true), ("a page", 5_000, false)] {
        for point in POINTS {
            let (to_client, to_server) = (20_000 * point / 4, 20_000 - 20_000 * point / 4);
            let mut connection = TestConnection::new();
            connection.open_between(to_server, to_client);
            connection.sends_request(40_000, 0, 500, 0);
            connection.sends_response(40_000 + to_server, 500, 0, 1_300);
            connection.sends_request(41_000 + to_server + to_client, 500, 80, 1_300);
            connection.sends_request(41_010 + to_server + to_client, 580, 100, 1_300);
            let at = 41_010 + 2 * to_server + to_client;
            connection.sends_response(at, 680, 1_300, tickets);
            let begun = 1_300 + u64::from(tickets);
            connection.sends_request(at + to_client, 680, 0, begun);
            connection.sends_response(at + 3_000_000, 680, begun, 1_000);
            connection.sends_request(at + 3_000_000 + to_client, 680, 0, begun + 1_000);
            let diagnosis = Diagnosis::of(&connection.finish(), &Neighbours::default());
            let found = slow_host(&diagnosis);
            assert_eq!(found.is_some(), is_named, "{name} at {point}: {:#?}", diagnosis.findings);
            if let Some(found) = found {
                assert_eq!(found.confidence, Confidence::Low);
                assert!(
                    found.cost.as_nanos().abs_diff(3_000_000_000) < 25_000_000,
                    "{}",
                    found.cost
                );
            }
        }
    }
}
