//! The qlog of real runs, read by the public crate `qlog`, Cloudflare's types of the formats: 0.18
//! for the drafts, 0.15 for version 0.3. What they do not know is listed below, and nothing else may be
//! unknown to them.
//!
//!     cargo test --manifest-path tools/qlog-types/Cargo.toml
//!
//! The runs are those of `crates/qlog-check`.

use lab::kernel_log::Side;
use lab::qlog::Qlog;
use lab::scenario::{Overrides, load};
use serde_json::Value;
use sim::Watch;
use trace::qlog::Form;

const MATHIS: &str = include_str!("../../../scenarios/mathis.toml");
const EXAMPLE: &str = include_str!("../../../scenarios/example.toml");

/// Runs, and what is set in them: INET's sender; RFC 9002's with a handshake, pacing, an extension
/// and losses in both directions; and a TCP's in QUIC's words.
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

/// The logs of a run's sender in both forms.
fn logs(text: &str, set: &[&str]) -> [Vec<u8>; 2] {
    let set = set.iter().map(|set| (*set).to_owned()).collect();
    let loaded = load(text, "run", &Overrides { set, ..Overrides::default() });
    let loaded = loaded.unwrap_or_else(|errors| panic!("{errors:?}"));
    let mut scenario = loaded.scenario.clone();
    let side = Side::sender(&mut scenario, 0).unwrap();
    let log = |form| Qlog::new(&scenario, side, &loaded.sha256, form, Vec::new()).unwrap();
    let mut both = Watch(log(Form::Current), log(Form::Qvis));
    sim::run(&scenario, &mut both).unwrap_or_else(|error| panic!("{error:?}"));
    [both.0.finish().unwrap(), both.1.finish().unwrap()]
}

/// The records of a JSON text sequence: the header, then events.
fn records(log: &[u8]) -> Vec<Value> {
    let text = core::str::from_utf8(log).unwrap();
    let records = text.split('\x1e').skip(1);
    records.map(|record| serde_json::from_str(record).unwrap()).collect()
}

/// Names that Cloudflare's types do not have: the draft's events of simulations.
fn is_unknown_to_them(name: &str) -> bool {
    name.starts_with("simulation:")
}

/// Frames of an extension, of which qlog has none.
fn has_extension(event: &Value) -> bool {
    let frames = event["data"]["frames"].as_array();
    frames.is_some_and(|frames| frames.iter().any(|frame| frame["frame_type"] == "ack_frequency"))
}

#[test]
fn the_types_of_the_drafts_take_current() {
    for (name, text, set) in RUNS {
        let [current, _] = logs(text, set);
        let records = records(&current);
        let header: qlog_0_18::QlogSeq = serde_json::from_value(records[0].clone()).unwrap();
        assert_eq!(header.file_schema, "urn:ietf:params:qlog:file:sequential");
        let mut taken = 0;
        for record in &records[1..] {
            // Their triggers of states are those of 0.3; the drafts take any text.
            let mut record = record.clone();
            if record["name"] == "quic:congestion_state_updated" {
                record["data"].as_object_mut().unwrap().remove("trigger");
            }
            let event = record["name"].as_str().unwrap();
            if is_unknown_to_them(event) || has_extension(&record) {
                continue;
            }
            let read = serde_json::from_value::<qlog_0_18::events::Event>(record.clone());
            read.unwrap_or_else(|error| panic!("{name}: {record}: {error}"));
            taken += 1;
        }
        assert!(taken > 200, "{name}: {taken}");
    }
}

#[test]
fn the_types_of_0_3_take_qvis() {
    for (name, text, set) in RUNS {
        let [_, old] = logs(text, set);
        let mut document: Value = serde_json::from_slice(&old).unwrap();
        let events = document["traces"][0]["events"].as_array_mut().unwrap();
        events.retain(|event| {
            !is_unknown_to_them(event["name"].as_str().unwrap()) && !has_extension(event)
        });
        let count = events.len();
        assert!(count > 200, "{name}: {count}");
        let file = serde_json::from_value::<qlog_0_15::Qlog>(document);
        let file = file.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!((file.qlog_version.as_str(), file.traces[0].events.len()), ("0.3", count));
    }
}
