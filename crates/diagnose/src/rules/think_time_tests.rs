//! Tests of CC505 and CC506: sessions whose think times are known, captured at the client, between the
//! hosts and at the server.

use units::Duration;

use super::{Confidence, Finding, Neighbours, Severity};
use crate::tests::TestConnection;
use crate::{Analysis, Diagnosis};

/// Round trip, in microseconds.
const RTT: u64 = 40_000;
/// Where a capture is taken: the part of the round trip on the side of the client, in quarters.
pub(super) const POINTS: [u64; 3] = [0, 1, 4];
/// Bytes of a packet of a response.
const PART: u32 = 1_000;

/// A session of requests.
pub(super) struct RequestSession {
    /// Think times of the server before each response, and of the client before the request after it, in
    /// ms.
    pub(super) turns: Vec<(u64, u64)>,
    pub(super) request: u32,
    /// Packets of a response, and bytes of each.
    pub(super) response: (u64, u32),
    pub(super) has_opening: bool,
    /// The server acknowledges requests at once.
    pub(super) acks_requests: bool,
    /// The first turn whose messages have 30 bytes each.
    pub(super) small_from: usize,
}

impl RequestSession {
    pub(super) fn new(turns: &[(u64, u64)]) -> Self {
        Self {
            turns: turns.to_vec(),
            request: 200,
            response: (10, PART),
            has_opening: true,
            acks_requests: true,
            small_from: usize::MAX,
        }
    }

    /// As often the same turn.
    fn regular(turn: (u64, u64), count: usize) -> Self {
        Self::new(&vec![turn; count])
    }

    fn captured(&self, point: u64) -> Analysis {
        let (to_client, to_server) = (RTT * point / 4, RTT - RTT * point / 4);
        let mut connection = TestConnection::new();
        if self.has_opening {
            connection.open_between(to_server, to_client);
        }
        let (mut at, mut sent, mut answered) = (RTT, 0, 0);
        for (n, &(server, client)) in self.turns.iter().enumerate() {
            let is_small = n >= self.small_from;
            let request = if is_small { 30 } else { self.request };
            let (parts, part) = if is_small { (1, 30) } else { self.response };
            connection.sends_request(at, sent, request, answered);
            sent += u64::from(request);
            if self.acks_requests {
                connection.sends_response(at + to_server, sent, answered, 0);
            }
            at += to_server + server * 1_000;
            for n in 0..parts {
                connection.sends_response(at + n * 100, sent, answered, part);
                answered += u64::from(part);
            }
            at += parts * 100;
            connection.sends_request(at + to_client, sent, 0, answered);
            at += to_client + client * 1_000;
        }
        connection.finish()
    }

    pub(super) fn diagnosis(&self, point: u64) -> Diagnosis {
        Diagnosis::of(&self.captured(point), &Neighbours::default())
    }
}

pub(super) fn slow_host(diagnosis: &Diagnosis) -> Option<&Finding> {
    diagnosis.findings.iter().find(|found| ["CC505", "CC506"].contains(&found.code))
}

pub(super) fn evidence(found: &Finding, key: &str) -> String {
    let item = found.evidence.iter().find(|item| item.key == key);
    item.map(|item| item.text.clone()).unwrap_or_default()
}

#[test]
fn a_slow_server_is_named_at_any_capture_point() {
    for point in POINTS {
        let diagnosis = RequestSession::regular((300, 10), 5).diagnosis(point);
        assert_eq!(diagnosis.primary, Some("CC505"), "{point}: {:#?}", diagnosis.findings);
        let found = slow_host(&diagnosis).unwrap();
        assert_eq!(found.severity, Severity::Error);
        assert!(found.cost.as_nanos().abs_diff(1_500_000_000) < 5_000_000, "{}", found.cost);
        assert!(found.title.contains("300 ms on average before a response"), "{}", found.title);
        let thinks = evidence(found, "think_s");
        assert!(thinks.contains("before 5 responses, 300 ms on average"), "{thinks}");
        let expected = if point == 4 { Confidence::High } else { Confidence::Medium };
        assert_eq!(found.confidence, expected, "{point}");
        assert_eq!(found.unseen.contains("lost between the server"), point != 4, "{point}");
    }
}

/// Small responses, as of an interface for programs: no bulk data, and the server is slow all the same.
#[test]
fn a_slow_server_of_small_responses_is_named() {
    let session = RequestSession { response: (1, 300), ..RequestSession::regular((500, 10), 4) };
    for point in POINTS {
        let diagnosis = session.diagnosis(point);
        assert_eq!(diagnosis.primary, Some("CC505"), "{point}: {:#?}", diagnosis.findings);
    }
}

#[test]
fn a_slow_client_is_named_at_any_capture_point() {
    for point in POINTS {
        let diagnosis = RequestSession::regular((5, 200), 20).diagnosis(point);
        assert_eq!(diagnosis.primary, Some("CC506"), "{point}: {:#?}", diagnosis.findings);
        let found = slow_host(&diagnosis).unwrap();
        // There is no request after the last response.
        assert!(found.cost.as_nanos().abs_diff(19 * 200_000_000) < 20_000_000, "{}", found.cost);
        let expected = if point == 0 { Confidence::High } else { Confidence::Medium };
        assert_eq!(found.confidence, expected, "{point}");
        let application = diagnosis.findings.iter().find(|found| found.code == "CC501");
        assert!(application.is_none_or(|found| found.severity == Severity::Note), "{point}");
    }
}

/// Between bulk data many short waits cost as much as few long ones.
#[test]
fn a_client_with_short_waits_between_bulk_data_is_named() {
    let session = RequestSession { response: (20, 1_400), ..RequestSession::new(&[(5, 40); 30]) };
    let diagnosis = session.diagnosis(0);
    let found = slow_host(&diagnosis).expect("half of the time is the client's");
    assert_eq!((found.code, found.severity), ("CC506", Severity::Warning));
    // Small ones wait for a user.
    let session = RequestSession { response: (2, 100), ..RequestSession::new(&[(5, 40); 30]) };
    assert!(slow_host(&session.diagnosis(0)).is_none());
}

/// Without the SYNs, the port of a client shows who it is.
#[test]
fn a_slow_server_is_named_without_the_opening() {
    let session = RequestSession { has_opening: false, ..RequestSession::regular((300, 10), 5) };
    for point in POINTS {
        let diagnosis = session.diagnosis(point);
        assert_eq!(diagnosis.primary, Some("CC505"), "{point}: {:#?}", diagnosis.findings);
    }
}

/// Each host's share is its own, whatever the other's is.
#[test]
fn two_slow_hosts_are_both_named() {
    let diagnosis = RequestSession::regular((100, 100), 20).diagnosis(0);
    let codes: Vec<_> = diagnosis.findings.iter().map(|found| found.code).collect();
    assert!(codes.contains(&"CC505") && codes.contains(&"CC506"), "{codes:?}");
}

/// Where the budget is in doubt neither host is blamed.
#[test]
fn doubtful_waits_blame_no_host() {
    let irregular: Vec<_> = (0..30).map(|n| (5, 150 + (n * n * 397) % 3_000)).collect();
    let mut one_long = vec![(5, 5); 10];
    one_long[4].0 = 20_000;
    let small = |turn, count| RequestSession {
        request: 40,
        response: (1, 40),
        ..RequestSession::regular(turn, count)
    };
    let cases = [
        ("few turns", RequestSession::regular((400, 5), 2)),
        ("short waits", RequestSession::regular((20, 5), 20)),
        ("one long wait", RequestSession::new(&one_long)),
        ("a user", RequestSession::new(&irregular)),
        ("a user who takes seconds", RequestSession::regular((5, 4_000), 20)),
        ("keystrokes", small((5, 200), 100)),
        ("heartbeats", small((1_000, 0), 30)),
        ("long polls", RequestSession::regular((25_000, 0), 10)),
        ("polls", RequestSession { response: (1, 300), ..RequestSession::regular((5, 400), 30) }),
        ("round trips", RequestSession::regular((0, 0), 30)),
    ];
    no_host_is_slow(cases);
}

/// None of these sessions has a slow host, at any capture point.
pub(super) fn no_host_is_slow<const N: usize>(cases: [(&str, RequestSession); N]) {
    for (name, session) in cases {
        for point in POINTS {
            let diagnosis = session.diagnosis(point);
            let found = slow_host(&diagnosis);
            assert!(found.is_none(), "{name} at {point}: {found:#?}");
        }
    }
}

/// A queue delays each request for 80 ms: at the client that looks like a server that thinks.
#[test]
fn a_queue_is_no_think_time() {
    let delayed = RequestSession::regular((80, 0), 20);
    assert!(slow_host(&delayed.diagnosis(0)).is_some());
    let mut analysis = delayed.captured(0);
    for flow in analysis.flows.iter_mut().flatten() {
        let (min, _, max) =
            flow.rtt.unwrap_or((Duration::from_micros(RTT), Duration::ZERO, Duration::ZERO));
        let queued = min + Duration::from_millis(60);
        flow.rtt = Some((min, queued, max.max(queued)));
    }
    let diagnosis = Diagnosis::of(&analysis, &Neighbours::default());
    assert!(slow_host(&diagnosis).is_none(), "{:#?}", diagnosis.findings);
}
