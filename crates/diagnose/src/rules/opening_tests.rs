//! Tests of the rules about the opening and the end of a connection.

use packet::{Dir, Flags, Segment};
use units::{Duration, SeqNum};

use super::{Finding, Neighbours, Severity};
use crate::tests::{ISN, TestConnection};
use crate::{Analysis, Diagnosis};

fn findings(analysis: &Analysis) -> Vec<Finding> {
    Diagnosis::of(analysis, &Neighbours::default()).findings
}

fn reset(dir: Dir, seq: u32) -> Segment {
    let ack = SeqNum(ISN.wrapping_add(1));
    Segment { dir, flags: Flags::RST | Flags::ACK, seq: SeqNum(seq), ack, ..Segment::default() }
}

/// One SYN at the end of a capture may be answered after it; a second later the client would have
/// repeated it.
#[test]
fn one_syn_at_the_end_of_a_capture_is_a_note() {
    for (silent_after, severity) in [(0, Severity::Note), (1, Severity::Error)] {
        let mut script = TestConnection::new();
        script.syn(0);
        let analysis =
            Analysis { silent_after: Duration::from_secs(silent_after), ..script.finish() };
        let all = findings(&analysis);
        assert_eq!(all.len(), 1, "{all:?}");
        assert_eq!((all[0].code, all[0].severity), ("CC002", severity));
    }
}

#[test]
fn syn_acks_without_an_ack_are_a_half_open_connection() {
    let mut script = TestConnection::new();
    let syn = script.syn(0);
    for us in [20_000, 1_020_000, 3_020_000] {
        let answer = Segment { flags: Flags::SYN | Flags::ACK, dir: Dir::Reverse, ..syn };
        script.push(us, answer, (0, 0));
    }
    let all = findings(&script.finish());
    assert_eq!((all[0].code, all[0].severity), ("CC002", Severity::Error), "{all:?}");
    assert_eq!(all[0].title, "3 SYN-ACKs in 3.02 s, none acknowledged");
}

/// A reset that acknowledges another number than that of the SYN is none of the server.
#[test]
fn a_reset_that_does_not_acknowledge_the_syn_is_foreign() {
    for (ack, kind) in [(ISN.wrapping_add(1), ""), (ISN.wrapping_sub(77), "foreign-reset")] {
        let mut script = TestConnection::new();
        script.syn(0);
        let refusal = Segment { ack: SeqNum(ack), ..reset(Dir::Reverse, 0) };
        script.push(500, refusal, (0, 0));
        let all = findings(&script.finish());
        assert_eq!((all[0].code, all[0].kind), ("CC001", kind), "{all:?}");
    }
}

/// Two SYNs, of which the second is answered a second later, as the first was before: by the same number or another.
#[test]
fn different_answers_to_syns_are_those_of_two_hosts() {
    for (second, kind) in [(5_000, "syn-lost"), (6_000, "two-answers")] {
        let mut script = TestConnection::new();
        let syn = script.syn(0);
        script.syn(1_000_000);
        let flags = Flags::SYN | Flags::ACK;
        for (us, number) in [(1_040_000, 5_000), (1_041_000, second)] {
            let answer = Segment { flags, dir: Dir::Reverse, seq: SeqNum(number), ..syn };
            script.push(us, answer, (0, 0));
        }
        script.push(1_042_000, Segment { flags: Flags::ACK, ..Segment::default() }, (0, 0));
        for n in 0..20 {
            script.data(1_043_000 + n * 20, n * 1_000, 1_000);
        }
        script.ack(1_083_400, 20_000, &[]);
        let all = findings(&script.finish());
        let opening = all.iter().find(|found| found.code == "CC204");
        assert_eq!(opening.map(|found| found.kind), Some(kind), "{all:?}");
    }
}

/// SYNs that nothing answers, of this number and with ECN or without, beside a connection of another client that is
/// answered after the first, at this port and with ECN or without.
#[test]
fn silence_beside_answers_is_the_servers() {
    let (port, other_port) = ("10.0.0.2:5001", "10.0.0.2:80");
    let cases = [
        (3, false, port, false, "backlog"),
        (3, true, port, true, "backlog"),
        (3, true, port, false, "syn-ecn"),
        (3, false, other_port, false, ""),
        (2, false, port, false, ""),
    ];
    for (count, asks, server, other_asks, kind) in cases {
        let ecn = |asks: bool| if asks { Flags::ECE | Flags::CWR } else { Flags::default() };
        let mut script = TestConnection::new();
        for n in 0..count {
            let syn =
                Segment { flags: Flags::SYN | ecn(asks), seq: SeqNum(ISN), ..Segment::default() };
            script.push(n * 1_000_000, syn, (0, 0));
        }
        let silent = script.finish();
        let mut script = TestConnection::new();
        let syn =
            Segment { flags: Flags::SYN | ecn(other_asks), seq: SeqNum(ISN), ..Segment::default() };
        script.push(500_000, syn, (0, 0));
        let flags = Flags::SYN | Flags::ACK;
        script.push(520_000, Segment { flags, dir: Dir::Reverse, ..syn }, (0, 0));
        let mut other = script.finish();
        (other.stream, other.ends.src, other.ends.dst) =
            (7, "10.0.0.9:40001".parse().unwrap(), server.parse().unwrap());
        let all = Diagnosis::of(&silent, &neighbours(&[&silent, &other])).findings;
        assert_eq!((all[0].code, all[0].kind), ("CC002", kind), "{count} {asks} {server}: {all:?}");
    }
}

/// A client that is refused at 0.5 ms, and another connection: its client and server, the milliseconds
/// of its SYN and of the answer, and how severe the refusal is.
#[test]
fn a_refusal_is_a_note_only_if_the_same_port_answers() {
    let (client, other_client) = ("10.0.0.1:40001", "10.0.0.9:40001");
    let cases = [
        ("another port of the server", client, "10.0.0.2:80", 1, 2, Severity::Error),
        ("the next port of the server", client, "10.0.0.2:5002", 1, 2, Severity::Error),
        ("the same port, tried again", client, "10.0.0.2:5001", 100, 120, Severity::Note),
        ("the same port, a second later", client, "10.0.0.2:5001", 1_500, 1_520, Severity::Error),
        ("the same port, before", client, "10.0.0.2:5001", 0, 0, Severity::Error),
        ("the same port, another client", other_client, "10.0.0.2:5001", 1, 2, Severity::Error),
        ("another address, beside it", client, "10.0.0.3:5001", 0, 40, Severity::Note),
        ("another address, then", client, "10.0.0.3:5001", 1, 21, Severity::Note),
        ("another address, later", client, "10.0.0.3:5001", 3_000, 3_020, Severity::Error),
        ("another address and port", client, "10.0.0.3:5002", 1, 21, Severity::Error),
        ("the other family", "[fd00::1]:40001", "[fd00::2]:5001", 1, 21, Severity::Note),
        ("the other family and port", "[fd00::1]:40001", "[fd00::2]:80", 1, 21, Severity::Error),
    ];
    for (name, from, to, syn, answer, severity) in cases {
        let mut script = TestConnection::new();
        script.syn(0);
        script.push(500, reset(Dir::Reverse, 0), (0, 0));
        let refused = script.finish();
        let mut script = TestConnection::new();
        script.open_at(syn * 1_000, (answer - syn) * 1_000);
        let mut other = script.finish();
        (other.stream, other.ends.src, other.ends.dst) =
            (7, from.parse().unwrap(), to.parse().unwrap());
        let neighbours = neighbours(&[&refused, &other]);
        let all = Diagnosis::of(&refused, &neighbours).findings;
        assert_eq!((all[0].code, all[0].severity), ("CC001", severity), "{name}: {all:?}");
        assert_eq!(all[0].is_failure, severity == Severity::Error, "{name}");
        let beside = all[0].evidence.iter().any(|one| one.key == "answered_by_connection");
        assert_eq!(beside, severity == Severity::Note, "{name}");
    }
}

fn neighbours(all: &[&Analysis]) -> Neighbours {
    let mut neighbours = Neighbours::default();
    all.iter().for_each(|one| neighbours.add(one));
    neighbours.sort();
    neighbours
}

/// Addresses of the other family are those of the same host only if the port has one client in each.
#[test]
fn another_client_of_the_other_family_answers_no_refusal() {
    let mut script = TestConnection::new();
    script.syn(0);
    script.push(500, reset(Dir::Reverse, 0), (0, 0));
    let refused = script.finish();
    let others = ["[fd00::1]:40001", "[fd00::9]:40001"].map(|client| {
        let mut script = TestConnection::new();
        script.open_at(1_000, 20_000);
        let mut other = script.finish();
        (other.ends.src, other.ends.dst) =
            (client.parse().unwrap(), "[fd00::2]:5001".parse().unwrap());
        other
    });
    let all = Diagnosis::of(&refused, &neighbours(&[&refused, &others[0], &others[1]])).findings;
    assert_eq!(all[0].severity, Severity::Error, "{all:?}");
}

/// A failure is before everything that only costs time, whatever that costs.
#[test]
fn a_reset_amid_the_data_is_before_slow_findings() {
    let mut script = TestConnection::new();
    script.open(60_000);
    let mut at = 60_020;
    let mut offset = 0;
    for window in [10_u64, 20, 40, 80] {
        for n in 0..window {
            script.data(at + n * 20, offset + n * 1_000, 1_000);
        }
        offset += window * 1_000;
        at += 60_020 + window * 20;
        script.ack(at - 10, offset, &[]);
    }
    script.data(at, offset, 1_000);
    script.push(at + 1_000, reset(Dir::Reverse, 1), (0, 0));
    let diagnosis = Diagnosis::of(&script.finish(), &Neighbours::default());
    let codes: Vec<_> = diagnosis.findings.iter().map(|found| found.code).collect();
    assert!(codes.contains(&"CC102"), "{codes:?}");
    assert_eq!((codes[0], diagnosis.primary), ("CC003", Some("CC003")), "{codes:?}");
    assert!(diagnosis.failed() && !diagnosis.cost().is_zero());
}

/// After both hosts have closed nothing can be lost, whoever sends the reset.
#[test]
fn a_reset_after_both_closed_is_a_note() {
    let mut script = TestConnection::new();
    script.ttl = [64, 57];
    script.open(20_000);
    script.data(20_020, 0, 1_000);
    script.ack(40_020, 1_000, &[]);
    let flags = Flags::FIN | Flags::ACK;
    let seq = SeqNum(ISN.wrapping_add(1_001));
    let fin = Segment { flags, seq, ack: SeqNum(1), ..Segment::default() };
    script.push(50_000, fin, (0, 0));
    let answer = Segment { dir: Dir::Reverse, seq: SeqNum(1), ack: seq, ..fin };
    script.push(60_000, answer, (0, 0));
    script.ttl[1] = 58;
    script.push(90_000, reset(Dir::Reverse, 2), (0, 0));
    let diagnosis = Diagnosis::of(&script.finish(), &Neighbours::default());
    let found = diagnosis.findings.iter().find(|found| found.code == "CC003").unwrap();
    assert_eq!((found.severity, found.is_failure), (Severity::Note, false), "{found:#?}");
}

/// The number of unanswered expiries at the end of the capture, and whether the connection failed.
#[test]
fn a_path_that_never_answers_again_is_a_failure() {
    for (expiries, answered, failed) in [(2, false, false), (3, false, true), (3, true, false)] {
        let mut script = TestConnection::new();
        script.open(20_000);
        script.data(20_020, 0, 1_000);
        script.ack(40_020, 1_000, &[]);
        for n in 0..5 {
            script.data(40_030 + n * 10, 1_000 + n * 1_000, 1_000);
        }
        let mut at = 40_100;
        for n in 0..expiries {
            at += 300_000 << n;
            script.data(at, 1_000, 1_000);
        }
        if answered {
            script.ack(at + 20_000, 6_000, &[]);
        }
        let diagnosis = Diagnosis::of(&script.finish(), &Neighbours::default());
        let found = diagnosis.findings.iter().find(|found| found.code == "CC204").unwrap();
        assert_eq!(found.is_failure, failed, "{expiries} {answered}: {found:#?}");
        assert_eq!(diagnosis.failed(), failed);
    }
}

/// The first data after a rest are never answered: what is on the path has forgotten the connection. Without the rest,
/// it may be dead.
#[test]
fn silence_after_a_rest_that_follows_the_handshake_is_a_forgotten_connection() {
    for (rest, kind) in [(0, ""), (2_000_000, "forgotten")] {
        let mut script = TestConnection::new();
        script.open(20_000);
        let mut at = 20_020 + rest;
        script.data(at, 0, 200);
        for n in 0..4 {
            at += 300_000 << n;
            script.data(at, 0, 200);
        }
        let diagnosis = Diagnosis::of(&script.finish(), &Neighbours::default());
        let found = diagnosis.findings.iter().find(|found| found.code == "CC204").unwrap();
        assert!(found.is_failure, "{found:#?}");
        assert_eq!(found.kind, kind);
    }
}

/// A connection between the same ports ended a second before.
#[test]
fn silence_after_an_earlier_connection_may_be_its_time_wait() {
    let mut script = TestConnection::new();
    script.syn(0);
    script.syn(1_000_000);
    let analysis = Analysis { after_previous: Some(Duration::from_secs(1)), ..script.finish() };
    let all = findings(&analysis);
    assert_eq!((all[0].code, all.len()), ("CC004", 1), "{all:?}");
}

/// The time to live of the resets, of the server's other packets, and what is reported.
#[test]
fn a_reset_with_another_time_to_live_is_not_the_hosts() {
    for (ttl, sequel, by) in [
        (57, false, "by the server"),
        (58, false, "in the server's name, by something between the hosts"),
        // 121 of 128: as many routers.
        (121, false, "by the server, or in its name"),
        (0, false, "by the server, or in its name"),
        (57, true, "in the server's name, by something between the hosts"),
    ] {
        let mut script = TestConnection::new();
        script.ttl = [64, 57];
        script.open(20_000);
        script.data(20_020, 0, 1_000);
        script.ack(40_020, 1_000, &[]);
        script.data(50_020, 1_000, 1_000);
        script.ttl[1] = ttl;
        script.push(60_000, reset(Dir::Reverse, 1), (0, 0));
        script.ttl[1] = 57;
        if sequel {
            script.ack(70_020, 2_000, &[]);
        }
        let all = findings(&script.finish());
        let found = all.iter().find(|found| found.code == "CC003").unwrap();
        assert_eq!(found.title, format!("the connection was reset {by}"), "{ttl}");
        assert!(found.severity >= Severity::Warning);
    }
}

/// The end of a connection, with what the public captures have that it is made from. A reset costs
/// nothing if all data were acknowledged: browsers close so.
#[test]
fn a_reset_after_all_data_is_a_note() {
    // Data of the client and of the server, which of them sent a FIN, data of the peer after that, and who
    // resets.
    let cases = [
        ("the client, after the response", [100, 5_000], None, 0, Dir::Forward, Severity::Note),
        (
            "the client, after the server's FIN",
            [100, 5_000],
            Some(Dir::Reverse),
            0,
            Dir::Forward,
            Severity::Note,
        ),
        (
            "the server, after the client's FIN",
            [100, 0],
            Some(Dir::Forward),
            0,
            Dir::Reverse,
            Severity::Note,
        ),
        (
            "the server, after its own FIN",
            [100, 5_000],
            Some(Dir::Reverse),
            0,
            Dir::Reverse,
            Severity::Note,
        ),
        ("a closing alert", [100, 5_000], Some(Dir::Forward), 31, Dir::Forward, Severity::Note),
        (
            "a response after the client's FIN",
            [100, 5_000],
            Some(Dir::Forward),
            2_000,
            Dir::Forward,
            Severity::Warning,
        ),
        ("the server, without a response", [100, 0], None, 0, Dir::Reverse, Severity::Warning),
        ("the client, amid data", [100, 5_000], None, 2_000, Dir::Forward, Severity::Warning),
    ];
    for (name, [request, response], fin, late, by, severity) in cases {
        let mut script = TestConnection::new();
        script.open(20_000);
        script.sends_request(20_020, 0, request, 0);
        script.sends_response(40_020, request.into(), 0, response);
        script.sends_request(40_030, request.into(), 0, response.into());
        let offset = |dir: Dir| if dir == Dir::Forward { request } else { response };
        let seq = |dir: Dir| SeqNum(ISN.wrapping_add(1).wrapping_add(offset(dir)));
        if let Some(dir) = fin {
            let (seq, ack) = (seq(dir), seq(dir.reversed()));
            let flags = Flags::FIN | Flags::ACK;
            script.push(50_000, Segment { dir, flags, seq, ack, ..Segment::default() }, (0, 0));
        }
        if late > 0 {
            script.sends_response(60_000, request.into(), response.into(), late);
        }
        script.push(70_000, reset(by, seq(by).0), (0, 0));
        let all = findings(&script.finish());
        let found = all.iter().find(|found| found.code == "CC003").unwrap();
        assert_eq!(found.severity, severity, "{name}: {found:#?}");
    }
}

/// A server whose queue of new connections is full drops the first data three times, and its application accepts the
/// connection 1.5 s after it has them.
#[test]
fn a_connection_that_is_taken_late_is_one_finding() {
    let mut script = TestConnection::new();
    script.open(10_000);
    for us in [10_100, 220_000, 640_000, 1_480_000] {
        script.data(us, 0, 1_000);
    }
    script.ack(1_490_000, 1_000, &[]);
    let mut response = Segment {
        dir: Dir::Reverse,
        payload: 500,
        flags: Flags::ACK | Flags::PSH,
        ..Segment::default()
    };
    response.seq = SeqNum(ISN.wrapping_add(1));
    response.ack = SeqNum(ISN.wrapping_add(1_001));
    script.push(2_990_000, response, (2_990, 1_480));
    let all = findings(&script.finish());
    let found =
        all.iter().find(|found| found.kind == "backlog").unwrap_or_else(|| panic!("{all:#?}"));
    assert_eq!(found.code, "CC204");
    assert!(found.cost >= Duration::from_millis(2_800), "{found:#?}");
    assert!(!all.iter().any(|found| found.code == "CC505"), "{all:#?}");
}
