//! Tests of the rules about the opening and the end of a connection.

use packet::{Dir, Flags, Segment};
use units::{Duration, Instant, SeqNum};

use super::{Finding, Severity, TransferSummary};
use crate::tests::TestConnection;
use crate::{Analysis, Diagnosis};

fn findings(analysis: &Analysis) -> Vec<Finding> {
    Diagnosis::of(analysis, &[]).findings
}

fn reset(dir: Dir, seq: u32) -> Segment {
    Segment { dir, flags: Flags::RST, seq: SeqNum(seq), ..Segment::default() }
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

/// A client that tries two ports of a server and uses the one that answers loses nothing by the other's
/// refusal; where none answers, or only later, it is an error.
#[test]
fn a_refusal_beside_a_connection_that_works_is_a_note() {
    for (begin, severity) in
        [(None, Severity::Error), (Some(30), Severity::Note), (Some(1_900), Severity::Error)]
    {
        let mut script = TestConnection::new();
        script.syn(0);
        script.push(500, reset(Dir::Reverse, 0), (0, 0));
        let analysis = script.finish();
        let hosts = (analysis.ends.dst.ip(), analysis.ends.src.ip());
        let time = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
        let other = begin.map(|begin: u64| TransferSummary {
            stream: 7,
            hosts,
            span: (time(begin), time(begin + 1_000)),
            bytes: 10_000,
        });
        let neighbours: Vec<_> = other.into_iter().collect();
        let all = Diagnosis::of(&analysis, &neighbours).findings;
        assert_eq!((all[0].code, all[0].severity), ("CC001", severity), "{begin:?} {all:?}");
        let beside = all[0].evidence.iter().any(|one| one.key == "answered_by_connection");
        assert_eq!(beside, severity == Severity::Note);
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
        let seq = |dir: Dir| SeqNum(crate::tests::ISN.wrapping_add(1).wrapping_add(offset(dir)));
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
