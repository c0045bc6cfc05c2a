//! Validates the qlog of runs against the drafts and version 0.3: the public validator `cddl` with
//! `schema/*.cddl`, which restate the drafts' CDDL for the records that we write (their text is not
//! copied here). Also checks that both formats read back as the same events.

use cddl::ast::CDDL;
use cddl::cddl_from_str;
use cddl::validator::Validator as _;
use cddl::validator::json::JSONValidator;
use export::kernel_log::LoggedEndpoint;
use export::qlog::Qlog;
use logs::qlog::{QlogData, QlogEvent, QlogFormat, QlogItem, QlogReader};
use scenario::{Overrides, load};
use serde_json::{Value, json};
use sim::ObserverPair;

const MATHIS: &str = include_str!("../../../../scenarios/mathis.toml");
const EXAMPLE: &str = include_str!("../../../../scenarios/example.toml");
const CURRENT: &str = include_str!("../../schema/current.cddl");
const OLD: &str = include_str!("../../schema/0.3.cddl");

/// Runs with their overrides: INET's sender; that of RFC 9002 with a handshake, pacing, an
/// extension and losses in both directions; and a TCP sender mapped to the terms of QUIC.
const RUNS: [(&str, &str, &[&str]); 3] = [
    ("INET's QUIC", MATHIS, &["duration=2.15s"]),
    (
        "quic-rfc9002",
        MATHIS,
        &[
            "duration=2.4s",
            "host.client={ profile = \"quic-rfc9002\", knobs = { ack_eliciting_threshold = 3 } }",
            "host.server={ profile = \"quic-rfc9002\" }",
            "path.0.forward=[{ loss = \"3%\" }, { delay = \"10ms\" }]",
            "path.0.return=[{ loss = \"3%\" }, { delay = \"10ms\" }]",
            "flow.0.bulk=300kB",
        ],
    ),
    ("FreeBSD's TCP", EXAMPLE, &["duration=2s", "path.0.forward.0.link.buffer=20p"]),
];

/// The logs of a run's sender in both formats.
fn logs(text: &str, set: &[&str]) -> [Vec<u8>; 2] {
    let set = set.iter().map(|set| (*set).to_owned()).collect();
    let loaded = load(text, "run", &Overrides { set, ..Overrides::default() });
    let loaded = loaded.unwrap_or_else(|errors| panic!("{errors:?}"));
    let mut scenario = loaded.scenario.clone();
    let side = LoggedEndpoint::sender(&mut scenario, 0).unwrap();
    let log = |form| Qlog::new(&scenario, side, &loaded.sha256, form, Vec::new()).unwrap();
    let mut both = ObserverPair(log(QlogFormat::Current), log(QlogFormat::Qvis));
    sim::run(&scenario, &mut both).unwrap_or_else(|error| panic!("{error:?}"));
    [both.0.finish().unwrap(), both.1.finish().unwrap()]
}

fn read(log: &[u8]) -> Vec<QlogEvent> {
    let mut events = Vec::new();
    for item in QlogReader::new(log) {
        match item.unwrap() {
            QlogItem::Event(event) => events.push(event),
            QlogItem::Header(_) => {}
            QlogItem::Problem(problem) => panic!("{problem}"),
        }
    }
    events
}

/// The records of a JSON text sequence: the header, then events.
fn records(log: &[u8]) -> Vec<Value> {
    let text = core::str::from_utf8(log).unwrap();
    let records = text.split('\x1e').skip(1);
    records.map(|record| serde_json::from_str(record).unwrap()).collect()
}

/// A schema whose first rule is `rule`.
fn schema(rule: &str, rules: &str) -> String {
    format!("start = {rule}\n{rules}")
}

fn complaint(cddl: &CDDL<'_>, value: &Value) -> Option<String> {
    let mut validator = JSONValidator::new(cddl, value.clone(), None);
    validator.validate().err().map(|error| error.to_string())
}

fn validate(rule: &str, rules: &str, values: &[Value]) -> Result<(), String> {
    let text = schema(rule, rules);
    let cddl = cddl_from_str(&text, true)?;
    for value in values {
        if let Some(why) = complaint(&cddl, value) {
            return Err(format!("{value}\n{why}"));
        }
    }
    Ok(())
}

#[test]
fn current_follows_the_drafts() {
    for (name, text, set) in RUNS {
        let [current, _] = logs(text, set);
        let records = records(&current);
        assert!(records.len() > 200, "{name}: {}", records.len());
        validate("header", CURRENT, &records[..1]).unwrap_or_else(|why| panic!("{name}: {why}"));
        validate("event", CURRENT, &records[1..]).unwrap_or_else(|why| panic!("{name}: {why}"));
        // "SHOULD be in the first 256 characters", for format detection.
        let head = &String::from_utf8_lossy(&current)[..256];
        assert!(head.contains("file_schema") && head.contains("serialization_format"), "{head}");
    }
}

#[test]
fn qvis_follows_version_0_3() {
    for (name, text, set) in RUNS {
        let [_, old] = logs(text, set);
        let mut document: Value = serde_json::from_slice(&old).unwrap();
        let events = document["traces"][0]["events"].as_array_mut().map(core::mem::take).unwrap();
        assert!(events.len() > 200, "{name}: {}", events.len());
        validate("file", OLD, &[document]).unwrap_or_else(|why| panic!("{name}: {why}"));
        validate("event", OLD, &events).unwrap_or_else(|why| panic!("{name}: {why}"));
    }
}

/// The schemas reject invalid records.
#[test]
fn the_schemas_reject_invalid_records() {
    let sent = json!({
        "time": 1.5, "name": "quic:packet_sent",
        "data": { "header": { "packet_type": "1RTT", "packet_number": 1 },
                  "frames": [{ "frame_type": "stream", "stream_id": 0, "offset": 0,
                               "raw": { "length": 5 } }] },
    });
    assert_eq!(validate("event", CURRENT, std::slice::from_ref(&sent)), Ok(()));
    let wrong: [(&str, Value); 7] = [
        ("/time", json!("1.5")),
        ("/name", json!("transport:packet_sent")),
        ("/data/header/packet_type", json!("short")),
        // The validator accepts negative numbers as `uint`.
        ("/data/header/packet_number", json!("1")),
        ("/data/frames/0/frame_type", json!("streams")),
        ("/data/frames/0/raw", json!(5)),
        ("/data/frames/0/stream_id", json!("0")),
    ];
    for (place, value) in wrong {
        let mut record = sent.clone();
        *record.pointer_mut(place).unwrap() = value;
        assert!(validate("event", CURRENT, &[record]).is_err(), "{place}");
    }
    // A length field next to the others is from the drafts before 12, and in 0.3.
    let mut old = sent.clone();
    old["data"]["frames"][0]["length"] = json!(5);
    assert!(validate("event", CURRENT, &[old]).is_err());
    let mut old = sent;
    old["name"] = json!("transport:packet_sent");
    assert!(validate("event", OLD, std::slice::from_ref(&old)).is_err());
    old["data"]["frames"][0] =
        json!({ "frame_type": "stream", "stream_id": 0, "offset": 0, "length": 5 });
    assert_eq!(validate("event", OLD, &[old]), Ok(()));
    let header = json!({ "file_schema": "urn:ietf:params:qlog:file:sequential" });
    assert!(validate("header", CURRENT, &[header]).is_err());
}

#[test]
fn both_forms_read_back_as_the_same_events() {
    for (name, text, set) in RUNS {
        let [current, old] = logs(text, set).map(|log| read(&log));
        assert_eq!(current.len(), old.len(), "{name}");
        for (one, other) in current.iter().zip(&old) {
            assert_eq!(one, other, "{name}");
        }
        let has = |what: fn(&QlogData) -> bool| current.iter().any(|event| what(&event.data));
        assert!(has(|data| matches!(data, QlogData::PacketSent(_))), "{name}");
        assert!(has(|data| matches!(data, QlogData::PacketReceived(_))), "{name}");
        assert!(has(|data| matches!(data, QlogData::PacketLost { .. })), "{name}");
        assert!(
            has(
                |data| matches!(data, QlogData::MetricsUpdated(metrics) if metrics.min_rtt.is_some())
            ),
            "{name}"
        );
    }
}
