//! qlog: written logs read back; every version is read; damage is reported with its position.

use ackclock_logs as logs;
use logs::qlog::{
    Container, FileInfo, Metrics, PacketHeader, QlogData, QlogEvent, QlogFormat, QlogFrame,
    QlogGeneration, QlogItem, QlogPacket, QlogParameters, QlogProblem, QlogReader, QlogStats,
    QlogWriter, RecoveryParameters, Trace, Vantage,
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use units::Duration;

#[derive(Debug, Default)]
struct QlogRead {
    headers: Vec<FileInfo>,
    events: Vec<QlogEvent>,
    problems: Vec<QlogProblem>,
    loss: QlogStats,
}

impl QlogRead {
    fn problems(&self) -> Vec<String> {
        self.problems.iter().map(ToString::to_string).collect()
    }
}

fn read(log: impl AsRef<[u8]>) -> QlogRead {
    let mut reported = QlogRead::default();
    let mut reader = QlogReader::new(log.as_ref());
    for item in reader.by_ref() {
        match item.unwrap() {
            QlogItem::Header(header) => reported.headers.push(*header),
            QlogItem::Event(event) => reported.events.push(event),
            QlogItem::Problem(problem) => reported.problems.push(problem),
        }
    }
    reported.loss = *reader.loss();
    reported
}

fn write(trace: &Trace, events: &[QlogEvent], form: QlogFormat) -> Vec<u8> {
    let mut writer = QlogWriter::new(Vec::new(), trace, form).unwrap();
    for event in events {
        writer.event(event).unwrap();
    }
    writer.finish().unwrap()
}

fn whole(log: impl AsRef<[u8]>) -> QlogRead {
    let reported = read(log);
    assert_eq!(reported.problems(), Vec::<String>::new());
    reported
}

fn trace() -> Trace {
    Trace {
        title: String::new(),
        description: String::new(),
        vantage: Vantage::Client,
        vantage_name: "sender".to_owned(),
        group_id: "upload".to_owned(),
        protocols: vec!["QUIC".to_owned()],
        epoch: Some(Duration::from_secs(1_682_985_600)),
    }
}

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// One of each kind.
fn events() -> Vec<QlogEvent> {
    let header = |number| PacketHeader { packet_type: "1RTT".into(), packet_number: Some(number) };
    let sent = QlogPacket {
        header: header(7),
        length: Some(1_252),
        frames: vec![
            QlogFrame::Stream { stream_id: 4, offset: 12_310, length: 1_231, fin: true },
            QlogFrame::Other(json!({ "frame_type": "ping" }).as_object().unwrap().clone()),
        ],
        trigger: Some("retransmit_reordered".into()),
    };
    let received = QlogPacket {
        header: header(3),
        length: None,
        frames: vec![
            QlogFrame::Ack { ranges: vec![(0, 4), (6, 6)], delay: Some(Duration::from_micros(8)) },
            QlogFrame::MaxData { maximum: 4_294_967_295 },
            QlogFrame::MaxStreamData { stream_id: 4, maximum: 99 },
        ],
        trigger: None,
    };
    let metrics = Metrics {
        min_rtt: Some(ms(2)),
        smoothed_rtt: Some(Duration::from_nanos(2_000_100)),
        latest_rtt: Some(ms(3)),
        rtt_variance: Some(ms(1)),
        pto_count: Some(1),
        congestion_window: Some(12_520),
        bytes_in_flight: Some(11_268),
        ssthresh: Some(6_260),
        packets_in_flight: Some(9),
        pacing_rate: Some(50_000_000),
    };
    let data = [
        QlogData::Scenario {
            name: "mathis".into(),
            details: Map::from_iter([("p".into(), json!(0.02))]),
        },
        QlogData::ParametersSet(QlogParameters {
            owner: Some("remote".into()),
            initial_max_data: Some(4_294_967_295),
            max_ack_delay: Some(25),
            ..QlogParameters::default()
        }),
        QlogData::RecoveryParametersSet(RecoveryParameters {
            reordering_threshold: Some(3),
            timer_granularity: Some(1),
            initial_rtt: Some(ms(333)),
            ..RecoveryParameters::default()
        }),
        QlogData::PacketSent(sent),
        QlogData::PacketReceived(received),
        QlogData::MetricsUpdated(metrics),
        QlogData::PacketLost { header: header(5), trigger: Some("reordering_threshold".into()) },
        QlogData::CongestionStateUpdated { old: None, new: "recovery".into(), trigger: None },
        QlogData::LossTimerUpdated {
            timer_type: Some("pto".into()),
            event_type: "set".into(),
            delta: Some(ms(28)),
        },
        QlogData::Marker { kind: Some("note".into()), message: Some("a \"quote\"\n".into()) },
        QlogData::Other { name: "quic:ecn_state_updated".into() },
    ];
    let mut events: Vec<QlogEvent> = data
        .into_iter()
        .enumerate()
        .map(|(n, data)| QlogEvent::new(Duration::from_nanos(1_234_567 * n as u64), data))
        .collect();
    events[3].more.insert("datagram_id".into(), json!(17));
    events[10].more.insert("new".into(), json!("capable"));
    events
}

#[test]
fn both_formats_read_back() {
    for (form, generation, container) in [
        (QlogFormat::Current, QlogGeneration::Current, Container::Sequence),
        (QlogFormat::Qvis, QlogGeneration::V0_3, Container::Document),
    ] {
        let reported = whole(write(&trace(), &events(), form));
        assert_eq!(reported.events, events());
        assert_eq!(
            (reported.headers[0].generation, reported.headers[0].container),
            (generation, container)
        );
        assert_eq!(reported.headers[0].trace, trace());
        assert_eq!((reported.loss.events, reported.loss.unknown_events), (11, 1));
    }
}

#[test]
fn written_logs_have_the_fields_of_the_drafts() {
    let text = |form| String::from_utf8(write(&trace(), &events()[4..7], form)).unwrap();
    let records = text(QlogFormat::Current);
    let mut records = records.split('\x1e').skip(1).map(|record| {
        assert!(record.ends_with('\n'));
        serde_json::from_str::<Value>(record).unwrap()
    });
    let header = records.next().unwrap();
    assert_eq!(header["file_schema"], "urn:ietf:params:qlog:file:sequential");
    assert_eq!(header["serialization_format"], "application/qlog+json-seq");
    let clock = &header["trace"]["common_fields"]["reference_time"];
    assert_eq!(clock["epoch"], "2023-05-02T00:00:00.000Z");
    let names: Vec<Value> = records.map(|record| record["name"].clone()).collect();
    assert_eq!(
        names,
        ["quic:packet_received", "quic:recovery_metrics_updated", "quic:packet_lost"]
    );
    let document: Value = serde_json::from_str(&text(QlogFormat::Qvis)).unwrap();
    assert_eq!(document["qlog_version"], "0.3");
    let trace = &document["traces"][0];
    assert_eq!(trace["common_fields"]["reference_time"], 1_682_985_600_000_u64);
    assert_eq!(trace["events"][0]["name"], "transport:packet_received");
    assert_eq!(trace["events"][0]["data"]["frames"][0]["acked_ranges"], json!([[0, 4], [6]]));
    assert_eq!(trace["events"][1]["name"], "recovery:metrics_updated");
    assert_eq!(trace["events"][1]["data"]["smoothed_rtt"], 2.0001);
    // Version and format are in the first 256 bytes, as the draft requires.
    assert!(text(QlogFormat::Qvis)[..256].contains("\"qlog_format\":\"JSON\""));
    assert!(text(QlogFormat::Current)[..256].contains("\"serialization_format\""));
}

/// Differences of the drafts since 12 from 0.3: lengths in `raw`, `initiator`, one event for
/// timers; and triggers of states that 0.3 lacks.
#[test]
fn the_formats_have_different_names() {
    let crypto = QlogFrame::Crypto { offset: 5, length: 300 };
    let trigger = Some("packet_loss".to_owned());
    let mut all = events();
    let QlogData::PacketSent(packet) = &mut all[3].data else { panic!("{:?}", all[3]) };
    packet.frames.push(crypto);
    all[7].data = QlogData::CongestionStateUpdated { old: None, new: "recovery".into(), trigger };
    let [current, old] = [QlogFormat::Current, QlogFormat::Qvis].map(|form| {
        let log = write(&trace(), &all, form);
        assert_eq!(whole(&log).events, all);
        String::from_utf8(log).unwrap()
    });
    for text in [
        r#""frame_type":"stream","offset":12310,"raw":{"length":1231},"stream_id":4"#,
        r#""frame_type":"crypto","offset":5,"raw":{"length":300}"#,
        r#""initiator":"remote""#,
        r#""name":"quic:timer_updated""#,
        r#""new":"recovery","trigger":"packet_loss""#,
    ] {
        assert!(current.contains(text), "{text} in {current}");
    }
    for text in [
        r#""frame_type":"stream","length":1231,"offset":12310,"stream_id":4"#,
        r#""frame_type":"crypto","length":300,"offset":5"#,
        r#""owner":"remote""#,
        r#""name":"recovery:loss_timer_updated""#,
        r#""cause":"packet_loss","new":"recovery""#,
    ] {
        assert!(old.contains(text), "{text} in {old}");
    }
}

/// The same two events in each version, as its draft writes them.
fn generations() -> Vec<(QlogGeneration, Container, String)> {
    let list = |version: &str, fields: &str, names: [&str; 2], cwnd: &str| {
        format!(
            r#"{{"qlog_version":"{version}","title":"t","traces":[{{"vantage_point":{{"type":"server"}},
"configuration":{{"time_units":"us"}},"common_fields":{{"group_id":"g","reference_time":"1682985600000000"}},
"event_fields":{fields},"events":[
[2500,"{}",{{"packet_type":"1RTT","header":{{"packet_number":"7","packet_size":1252}},"frames":[]}}],
[3000,"{}",{{"{cwnd}":12520,"min_rtt":2000}}]]}}]}}"#,
            names[0], names[1],
        )
    };
    let objects = |version: &str, names: [&str; 2]| {
        format!(
            r#"{{"qlog_version":"{version}","qlog_format":"JSON","traces":[{{"vantage_point":{{"type":"server"}},
"common_fields":{{"ODCID":"g","time_format":"relative","reference_time":1682985600000}},"events":[
{{"time":2.5,"name":"{}","data":{{"header":{{"packet_type":"1RTT","packet_number":7}},"raw":{{"length":1252}}}}}},
{{"time":3,"name":"{}","data":{{"congestion_window":12520,"min_rtt":2}}}}]}}]}}"#,
            names[0], names[1],
        )
    };
    let old = ["transport:packet_sent", "recovery:metrics_updated"];
    let new = ["quic:packet_sent", "quic:recovery_metrics_updated"];
    let lines = |separator: &str, header: &str, names: [&str; 2]| {
        format!(
            "{separator}{header}\n\
             {separator}{{\"time\":2.5,\"name\":\"{}\",\"data\":{{\"header\":{{\"packet_type\":\"1RTT\",\
             \"packet_number\":7}},\"raw\":{{\"length\":1252}}}}}}\n\
             {separator}{{\"time\":3,\"name\":\"{}\",\"data\":{{\"congestion_window\":12520,\"min_rtt\":2}}}}\n",
            names[0], names[1],
        )
    };
    let common = r#"{"group_id":"g","time_format":"relative","reference_time":1682985600000}"#;
    let seq = |format: &str, version: &str| {
        format!(
            r#"{{"qlog_format":"{format}","qlog_version":"{version}","trace":{{"common_fields":{common},"vantage_point":{{"type":"server"}}}}}}"#
        )
    };
    let epoch = r#"{"group_id":"g","time_format":"relative_to_epoch","reference_time":{"clock_type":"system","epoch":"2023-05-02T00:00:00.000Z"}}"#;
    let drafts = format!(
        r#"{{"file_schema":"urn:ietf:params:qlog:file:sequential","serialization_format":"application/qlog+json-seq","trace":{{"common_fields":{epoch},"vantage_point":{{"type":"server"}},"event_schemas":["urn:ietf:params:qlog:events:quic-12"]}}}}"#
    );
    let contained = objects("0.3", new)
        .replace(r#""qlog_version":"0.3","qlog_format":"JSON""#, r#""file_schema":"urn:ietf:params:qlog:file:contained","serialization_format":"application/qlog+json""#)
        .replace(r#"{"ODCID":"g","time_format":"relative","reference_time":1682985600000}"#, epoch);
    vec![
        (
            QlogGeneration::Draft00,
            Container::Document,
            list(
                "draft-00",
                r#"["relative_time","CATEGORY","EVENT_TYPE","DATA"]"#,
                ["TRANSPORT\",\"PACKET_SENT", "RECOVERY\",\"METRIC_UPDATE"],
                "cwnd",
            ),
        ),
        (
            QlogGeneration::Draft01,
            Container::Document,
            list(
                "draft-01",
                r#"["relative_time","category","event","data"]"#,
                ["transport\",\"packet_sent", "recovery\",\"metrics_updated"],
                "cwnd",
            ),
        ),
        (QlogGeneration::Draft02, Container::Document, objects("draft-02-wip", old)),
        (QlogGeneration::Draft02, Container::Document, objects("draft-02", old)),
        (QlogGeneration::Draft02, Container::Document, objects("draft-02-RC1", old)),
        (QlogGeneration::V0_3, Container::Document, objects("qlog-03-WIP", old)),
        (QlogGeneration::V0_3, Container::Document, objects("0.3", old)),
        (QlogGeneration::V0_3, Container::Lines, lines("", &seq("NDJSON", "0.3"), old)),
        (QlogGeneration::V0_3, Container::Sequence, lines("\x1e", &seq("JSON-SEQ", "0.3"), old)),
        (
            QlogGeneration::V0_4,
            Container::Sequence,
            lines(
                "\x1e",
                &seq("JSON-SEQ", "0.4"),
                ["quic:packet_sent", "recovery:metrics_updated"],
            ),
        ),
        (QlogGeneration::Current, Container::Sequence, lines("\x1e", &drafts, new)),
        (QlogGeneration::Current, Container::Document, contained),
    ]
}

#[test]
fn every_generation_reads_as_the_same_log() {
    let sent = QlogPacket {
        header: PacketHeader { packet_type: "1RTT".into(), packet_number: Some(7) },
        length: Some(1_252),
        ..QlogPacket::default()
    };
    let metrics =
        Metrics { congestion_window: Some(12_520), min_rtt: Some(ms(2)), ..Metrics::default() };
    let expected = [
        QlogEvent::new(Duration::from_micros(2_500), QlogData::PacketSent(sent)),
        QlogEvent::new(ms(3), QlogData::MetricsUpdated(metrics)),
    ];
    for (generation, container, log) in generations() {
        let reported = whole(&log);
        assert_eq!(reported.events, expected, "{log}");
        let header = &reported.headers[0];
        assert_eq!((header.generation, header.container), (generation, container), "{log}");
        assert_eq!(header.trace.vantage, Vantage::Server);
        assert_eq!(header.trace.group_id, "g", "{log}");
        assert_eq!(header.trace.epoch, Some(Duration::from_secs(1_682_985_600)), "{log}");
    }
}

#[test]
fn times_in_every_format() {
    let log = |format: &str, times: [&str; 3]| {
        let events = times.map(|time| format!(r#"{{"time":{time},"name":"a:b","data":{{}}}}"#));
        let header = format!(
            r#"{{"qlog_version":"0.3","trace":{{"common_fields":{{"time_format":"{format}","reference_time":1000}}}}}}"#
        );
        format!("{header}\n{}", events.join("\n"))
    };
    let at = |format, times| -> Vec<u64> {
        whole(log(format, times)).events.iter().map(|event| event.at.as_micros()).collect()
    };
    let expected = [1_000, 1_500, 4_000];
    assert_eq!(at("relative", ["1", "1.5", "4"]), expected);
    assert_eq!(at("absolute", ["1001", "1001.5", "1004"]), expected);
    assert_eq!(at("delta", ["1", "0.5", "2.5"]), expected);
    assert_eq!(at("relative_to_previous_event", ["1", "0.5", "2.5"]), expected);
    let reported = read(log("absolute", ["1001", "999", "-1"]));
    assert_eq!((reported.loss.events, reported.loss.bad_events), (1, 2));
    assert_eq!(reported.problems.len(), 4, "{:?}", reported.problems());
}

#[test]
fn unknown_versions_and_events_are_reported() {
    let log = r#"{"qlog_version":"0.9","trace":{"common_fields":{}}}
{"time":1,"name":"mvfst:pacing","data":{"rate":5},"tuple":"x"}
"#;
    let reported = read(log);
    assert_eq!(
        reported.problems(),
        [r#"line 1, byte 50: qlog_version: unknown version "0.9", read as 0.3"#]
    );
    assert_eq!(reported.events[0].data, QlogData::Other { name: "mvfst:pacing".into() });
    let more = Map::from_iter([("rate".into(), json!(5)), ("event.tuple".into(), json!("x"))]);
    assert_eq!(reported.events[0].more, more);
    assert_eq!(reported.loss.unknown_events, 1);
    let schema = r#"{"file_schema":"https://example.com/log","trace":{"common_fields":{}}}"#;
    assert!(
        read(schema).problems()[0]
            .contains("file_schema: unknown version \"https://example.com/log\"")
    );
}

#[test]
fn invalid_fields_are_reported() {
    let log = r#"{"qlog_version":"0.3","trace":{}}
{"time":1,"name":"recovery:metrics_updated","data":{"congestion_window":"many","min_rtt":-2,"ssthresh":null}}
{"name":"recovery:metrics_updated","data":{}}
{"time":2,"name":"recovery:metrics_updated","data":7}
"#;
    let reported = read(log);
    assert_eq!(
        reported.problems(),
        [
            "line 2, byte 34: min_rtt: expected a time, found -2",
            "line 2, byte 34: congestion_window: expected a whole number, found \"many\"",
            "line 3, byte 144: an event without a time",
            "line 4, byte 190: an event without data that is an object",
        ]
    );
    assert_eq!((reported.loss.events, reported.loss.bad_events), (1, 2));
}

/// Number of events of `all` that were read, in order.
fn kept(all: &[QlogEvent], reported: &QlogRead) -> usize {
    let (mut from, mut kept) = (0, 0);
    for event in &reported.events {
        if let Some(at) = all[from..].iter().position(|one| one == event) {
            from += at + 1;
            kept += 1;
        }
    }
    kept
}

/// A log of some length.
fn long(form: QlogFormat) -> (Vec<QlogEvent>, Vec<u8>) {
    let mut all = Vec::new();
    for n in 0..16 {
        let shift = |mut event: QlogEvent| {
            event.at += ms(100 * n);
            event
        };
        all.extend(events().into_iter().map(shift));
    }
    let log = write(&trace(), &all, form);
    (all, log)
}

#[test]
fn a_log_cut_anywhere_loses_only_its_end() {
    for form in [QlogFormat::Current, QlogFormat::Qvis] {
        let (all, log) = long(form);
        for cut in (300..log.len() - 8).step_by(97) {
            let reported = read(&log[..cut]);
            assert!(all.starts_with(&reported.events), "{form:?} cut at {cut}");
            // One event per line, after the header; the truncated one may be complete.
            let lines = log[..cut].iter().filter(|&&byte| byte == b'\n').count();
            let whole = lines.saturating_sub(1);
            let read = reported.events.len();
            assert!((whole..=whole + 1).contains(&read), "{form:?} cut at {cut}: {read} {whole}");
            // A cut between two records loses nothing.
            let ends = [log[cut - 1], log[cut]];
            let between = ends[0] == b'\n' || ends[0] == 0x1e || ends[1] == b'\n';
            let expected = form == QlogFormat::Qvis || !between;
            assert_eq!(!reported.problems.is_empty(), expected, "{form:?} cut at {cut}");
            assert!(reported.problems.iter().all(|problem| problem.offset <= cut as u64));
        }
    }
}

#[test]
fn bytes_missing_in_the_middle_cost_the_events_around_them() {
    for form in [QlogFormat::Current, QlogFormat::Qvis] {
        let (all, log) = long(form);
        for begin in (1_000..log.len() - 1_000).step_by(61) {
            for length in [1, 7, 40, 300] {
                let mut damaged = log.clone();
                damaged.drain(begin..begin + length);
                let reported = read(&damaged);
                let kept = kept(&all, &reported);
                assert!(kept + 8 >= all.len(), "{form:?}: {kept} after {length} from {begin}");
            }
        }
    }
}

#[test]
fn bytes_overwritten_cost_the_events_around_them() {
    for form in [QlogFormat::Current, QlogFormat::Qvis] {
        let (all, log) = long(form);
        for (n, begin) in (1_000..log.len() - 1_000).step_by(211).enumerate() {
            let mut damaged = log.clone();
            let byte = b"\0{}[]\"\\:,\x1e\n"[n % 11];
            damaged[begin..begin + 9].fill(byte);
            let reported = read(&damaged);
            let kept = kept(&all, &reported);
            assert!(kept + 8 >= all.len(), "{form:?}: {kept} after {byte} at {begin}");
            // Bytes that fit into a string change nothing else.
            assert!(!reported.problems.is_empty() || reported.events.len() == all.len());
        }
    }
}

#[test]
fn several_traces_and_those_that_failed() {
    let trace = |cwnd: u32| {
        format!(
            r#"{{"vantage_point":{{"type":"client"}},"events":[{{"time":1,"name":"recovery:metrics_updated","data":{{"congestion_window":{cwnd}}}}}],"title":"late"}}"#
        )
    };
    let log = format!(
        r#"{{"qlog_version":"0.3","traces":[{},{{"error_description":"no such file"}},{}],"summary":{{}}}}"#,
        trace(1),
        trace(2),
    );
    let reported = read(&log);
    assert_eq!((reported.headers.len(), reported.events.len()), (2, 2));
    let problems = reported.problems();
    assert_eq!(problems.len(), 3, "{problems:?}");
    assert!(problems[0].ends_with("title follows the events that it describes"), "{problems:?}");
    assert!(problems[1].ends_with("no trace: no such file"), "{problems:?}");
}

#[test]
fn other_files_have_no_events() {
    for text in ["", "hello", "{}", "[]", "{\"a\":1}\n{\"b\":2}\n", "\x1e\x1e\x1e", "\u{feff}{}"] {
        assert_eq!(read(text).loss.events, 0, "{text}");
    }
    // A header alone.
    assert_eq!(read("{\"qlog_version\":\"0.3\",\"traces\":[]}").problems, []);
}

fn any_event() -> impl Strategy<Value = QlogEvent> {
    let number = || prop::option::of(0..=u64::MAX);
    let span = || prop::option::of((0..1_u64 << 50).prop_map(Duration::from_nanos));
    let metrics = (span(), span(), number(), number(), number()).prop_map(
        |(min_rtt, smoothed_rtt, congestion_window, bytes_in_flight, ssthresh)| {
            QlogData::MetricsUpdated(Metrics {
                min_rtt,
                smoothed_rtt,
                congestion_window,
                bytes_in_flight,
                ssthresh,
                ..Metrics::default()
            })
        },
    );
    let stream = (0..=u64::MAX, 0..=u64::MAX, any::<bool>())
        .prop_map(|(offset, length, fin)| QlogFrame::Stream { stream_id: 0, offset, length, fin });
    let crypto = (0..=u64::MAX, 0..=u64::MAX)
        .prop_map(|(offset, length)| QlogFrame::Crypto { offset, length });
    let ack = (prop::collection::vec((0..1_u64 << 40, 0..9_u64), 0..4), span()).prop_map(
        |(ranges, delay)| QlogFrame::Ack {
            ranges: ranges.into_iter().map(|(from, more)| (from, from + more)).collect(),
            delay,
        },
    );
    let frames = prop::collection::vec(prop_oneof![stream, crypto, ack], 0..4);
    let packet = (number(), number(), frames, any::<bool>()).prop_map(
        |(packet_number, length, frames, sent)| {
            let header = PacketHeader { packet_type: "1RTT".into(), packet_number };
            let packet = QlogPacket { header, length, frames, trigger: None };
            if sent { QlogData::PacketSent(packet) } else { QlogData::PacketReceived(packet) }
        },
    );
    let state = (".*", prop::option::of(".*"))
        .prop_map(|(new, trigger)| QlogData::CongestionStateUpdated { old: None, new, trigger });
    let data = prop_oneof![metrics, packet, state];
    (0..1_u64 << 50, data).prop_map(|(at, data)| QlogEvent::new(Duration::from_nanos(at), data))
}

proptest! {
    #[test]
    fn any_events_read_back(events in prop::collection::vec(any_event(), 0..20)) {
        for form in [QlogFormat::Current, QlogFormat::Qvis] {
            let reported = whole(write(&trace(), &events, form));
            prop_assert_eq!(&reported.events, &events);
        }
    }

    #[test]
    fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let reported = read(&bytes);
        prop_assert!(reported.problems.iter().all(|problem| problem.offset <= bytes.len() as u64));
    }
}

/// The lean reader has the same events at the same times, with the data of the model.
#[test]
fn the_lean_reader_has_the_same_data() {
    for (_, _, log) in generations() {
        let log = log.as_bytes();
        let data = |reader: QlogReader<&[u8]>| -> Vec<_> {
            reader
                .filter_map(|item| match item.unwrap() {
                    QlogItem::Event(event) => Some((event.at, event.data)),
                    _ => None,
                })
                .collect()
        };
        let lean = data(QlogReader::lean(log));
        assert!(!lean.is_empty());
        assert_eq!(lean, data(QlogReader::new(log)));
    }
}

/// Lengths where stacks write them: of the data of a frame beside its fields, in `raw.length` or, without
/// the header of the frame, in `raw.payload_length` (quiche since 0.30); of a packet in `raw` or its header.
#[test]
fn lengths_are_read_where_stacks_write_them() {
    let frame = |fields: Value| {
        let mut frame = json!({ "frame_type": "stream", "stream_id": 0, "offset": 905 });
        frame.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        frame
    };
    let packet = |more: Value, frame: Value| {
        let mut data =
            json!({ "header": { "packet_type": "1RTT", "packet_number": 7 }, "frames": [frame] });
        data.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({ "time": 1.5, "name": "quic:packet_sent", "data": data })
    };
    let header = r#"{"file_schema":"urn:ietf:params:qlog:file:sequential",
        "serialization_format":"application/qlog+json-seq","trace":{"vantage_point":{"type":"server"}}}"#;
    let one = |event: &Value| -> QlogPacket {
        let log = format!("\x1e{}\n\x1e{event}\n", header.replace('\n', ""));
        let read = whole(&log);
        let [QlogEvent { data: QlogData::PacketSent(packet), .. }] = &read.events[..] else {
            panic!("{:?}", read.events)
        };
        packet.clone()
    };
    let raw = json!({ "raw": { "length": 1350 } });
    for fields in [
        json!({ "length": 1310 }),
        json!({ "raw": { "length": 1310 } }),
        json!({ "raw": { "payload_length": 1310 } }),
    ] {
        let QlogFrame::Stream { length, .. } = &one(&packet(raw.clone(), frame(fields))).frames[0]
        else {
            panic!()
        };
        assert_eq!(*length, 1_310);
    }
    // Of two lengths none is dropped.
    let both = frame(json!({ "raw": { "length": 1316, "payload_length": 1310 } }));
    let kept = QlogFrame::Other(both.as_object().unwrap().clone());
    assert_eq!(one(&packet(raw.clone(), both)).frames, [kept]);
    let ping = json!({ "frame_type": "ping" });
    for (more, length) in [
        (raw, Some(1_350)),
        (json!({ "raw": { "length": 1350, "payload_length": 1330 } }), Some(1_350)),
        (json!({ "raw": { "payload_length": 1330 } }), Some(1_330)),
        (json!({ "packet_size": 1350 }), Some(1_350)),
        (json!({}), None),
    ] {
        assert_eq!(one(&packet(more.clone(), ping.clone())).length, length, "{more}");
    }
}
