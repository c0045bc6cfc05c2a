//! Simulated QUIC transfers whose limit is known by construction, diagnosed from the qlog of the
//! sender in both formats.

use ackclock_ingest as ingest;
use export::kernel_log::LoggedEndpoint;
use export::qlog::Qlog;
use ingest::diagnosis::{DiagnosisReport, FileReport, TextStyle};
use ingest::inputs::InputFile;
use logs::qlog::QlogFormat;
use scenario::{Overrides, ReportStyle, load};
use sim::ObserverPair;

const BASE: &str = r#"
title = "a QUIC transfer"
seed = 3
duration = "30s"

[host.client]
profile = "quic-rfc9002"
cc = "newreno"

[host.server]
profile = "quic-rfc9002"
cc = "newreno"

[host.server.knobs]
initial_max_data = "1GB"
initial_max_stream_data = "1GB"

[[path]]
from = "client"
to = "server"
forward = [{ link = { rate = "100Mbit/s", buffer = "2MB" } }, { delay = "20ms" }]
return = [{ delay = "20ms" }]

[[flow]]
name = "upload"
from = "client"
to = "server"
bulk = "20MB"
"#;

/// The logs of the sender in both formats.
fn logs(set: &[&str]) -> [Vec<u8>; 2] {
    let set = set.iter().map(|set| (*set).to_owned()).collect();
    let loaded = load(BASE, "run", &Overrides { set, ..Overrides::default() });
    let loaded = loaded.unwrap_or_else(|errors| panic!("{errors:?}"));
    let mut scenario = loaded.scenario.clone();
    let side = LoggedEndpoint::sender(&mut scenario, 0).unwrap();
    let log = |form| Qlog::new(&scenario, side, &loaded.sha256, form, Vec::new()).unwrap();
    let mut both = ObserverPair(log(QlogFormat::Current), log(QlogFormat::Qvis));
    sim::run(&scenario, &mut both).unwrap_or_else(|error| panic!("{error:?}"));
    [both.0.finish().unwrap(), both.1.finish().unwrap()]
}

fn diagnosed(name: &str, log: &[u8]) -> DiagnosisReport {
    let source = InputFile { name: name.to_owned(), bytes: Box::new(log) };
    DiagnosisReport::read(vec![source], false).unwrap()
}

fn only(report: &DiagnosisReport) -> &ingest::diagnosis::QuicReport {
    let [FileReport { quic, .. }] = &report.files[..] else { panic!("one file") };
    let [one] = &quic[..] else { panic!("one connection") };
    one
}

/// Transfers, what is changed, the codes allowed as the limit, and a code among the findings.
const TRANSFERS: &[(&str, &[&str], &[&str], &str)] = &[
    ("healthy", &[], &["CC835"], "CC835"),
    (
        "random loss",
        &[
            "path.0.forward=[{ loss = \"1%\" }, { link = { rate = \"100Mbit/s\", buffer = \"2MB\" } }, { delay = \"20ms\" }]",
        ],
        &["CC811"],
        "CC811",
    ),
    (
        // Groups of eight arrive last first: seven overtake, the threshold is three.
        "reordering",
        &[
            "path.0.forward=[{ link = { rate = \"100Mbit/s\", buffer = \"2MB\" } }, { delay = \"20ms\" }, { reorder = { reverse = 8, gap = \"0s\", timeout = \"2ms\" } }]",
        ],
        &["CC812"],
        "CC812",
    ),
    (
        // 64 kB in 40 ms are 12.8 Mbit/s of 100.
        "connection flow control",
        &["host.server.knobs.initial_max_data=64kB"],
        &["CC821"],
        "CC821",
    ),
    (
        "stream flow control",
        &["host.server.knobs.initial_max_stream_data=64kB"],
        &["CC822"],
        "CC822",
    ),
    (
        // 10 kB every 100 ms.
        "a slow application",
        &[
            "flow.0={ name = \"upload\", from = \"client\", to = \"server\", paced = { chunk = \"10kB\", every = \"100ms\", bytes = \"1MB\" } }",
        ],
        &["CC831"],
        "CC831",
    ),
    (
        // 300 kB from a window of 12 kB over 200 ms: five doublings.
        "a short transfer over a long path",
        &["flow.0.bulk=300kB", "path.0.return=[{ delay = \"180ms\" }]"],
        &["CC834"],
        "CC834",
    ),
    (
        // Three seconds in which nothing passes.
        "an outage",
        &[
            "path.0.forward=[{ link = { rate = \"100Mbit/s\", buffer = \"2MB\" } }, { delay = \"20ms\" }, { outage = { from = \"500ms\", until = \"3500ms\" } }]",
        ],
        &["CC813"],
        "CC813",
    ),
    ("no path", &["path.0.forward=[{ loss = \"100%\" }]"], &["CC803"], "CC803"),
    (
        // The first packets of the client are lost until 800 ms.
        "a late handshake",
        &[
            "flow.0.bulk=100kB",
            "path.0.forward=[{ link = { rate = \"100Mbit/s\", buffer = \"2MB\" } }, { delay = \"20ms\" }, { outage = { from = \"0s\", until = \"800ms\" } }]",
        ],
        &["CC801"],
        "CC801",
    ),
];

#[test]
fn the_limit_of_each_transfer_is_found() {
    let mut wrong = String::new();
    for (name, set, primary, among) in TRANSFERS {
        let mut of_format = Vec::new();
        for log in logs(set) {
            let report = diagnosed(name, &log);
            let one = only(&report);
            let codes: Vec<_> = one.diagnosis.findings.iter().map(|found| found.code).collect();
            let limit = one.diagnosis.primary.unwrap_or("-");
            if !primary.contains(&limit) || !codes.contains(among) {
                let text = report.text(TextStyle { limit: 1, look: ReportStyle::Plain });
                wrong.push_str(&format!("{name}: {limit} of {codes:?}\n{text}\n"));
            }
            // The budget is the whole log, and costs are parts of it.
            let analysis = &one.connection.analysis;
            assert_eq!(analysis.budget.whole(), analysis.duration(), "{name}");
            for found in &one.diagnosis.findings {
                assert!(found.cost <= analysis.duration(), "{name}: {}", found.code);
                assert!(found.frames.0 <= found.frames.1 && found.frames.1 <= analysis.range.1);
                assert!(found.interval.0 <= found.interval.1, "{name}: {}", found.code);
            }
            let codes = one.diagnosis.findings.iter().map(|found| (found.code, found.cost));
            of_format.push(codes.collect::<Vec<_>>());
        }
        assert_eq!(of_format[0], of_format[1], "{name}: the formats differ");
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Reordering in groups of eight, and nothing is dropped on the path. The first group has the packet
/// that completes the handshake last: the server cannot decrypt the seven before it.
#[test]
fn the_extent_of_reordering_is_measured() {
    let (_, set, ..) = TRANSFERS.iter().find(|(name, ..)| *name == "reordering").unwrap();
    let [log, _] = logs(set);
    let report = diagnosed("a", &log);
    let analysis = &only(&report).connection.analysis;
    assert_eq!(analysis.all_lost() - analysis.spurious, 7, "{:?}", analysis.lost);
    assert!(analysis.spurious > 100);
    assert!(analysis.reordering.packets <= 7, "{:?}", analysis.reordering);
    // The default threshold (RFC 9002 section 6.1.1) was reached.
    assert!(analysis.reordering.packets >= 3, "{:?}", analysis.reordering);
}

#[test]
fn damage_is_reported_with_its_event_and_byte() {
    let [log, _] = logs(&["flow.0.bulk=20kB"]);
    let text = String::from_utf8(log).unwrap();
    let third = text.match_indices('\u{1e}').nth(3).unwrap().0;
    let mut damaged = text;
    damaged.replace_range(third + 1..third + 3, "%%");
    let report = diagnosed("a", damaged.as_bytes());
    let problems = &report.files[0].file.problems;
    let first = problems.first.first().unwrap();
    // The header is the first record.
    assert!(first.starts_with("event 3, line 4, byte "), "{first}");
    assert!(only(&report).connection.analysis.events > 10);
}

#[test]
fn the_text_and_the_json_have_the_findings() {
    let (_, set, ..) = TRANSFERS[3];
    let [log, _] = logs(set);
    let report = diagnosed("upload.sqlog", &log);
    let text = report.text(TextStyle { limit: 1, look: ReportStyle::Plain });
    for part in [
        "1 connection of QUIC",
        "CC821",
        "events ",
        "help: quinn: receiver: TransportConfig::receive_window",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert!(!text.contains("tcp.stream"), "{text}");
    let plain = only(&report).plain_text("upload.sqlog");
    assert!(plain.starts_with("connection 0  ") && text.ends_with(&plain), "{plain}");
    let json: serde_json::Value = serde_json::from_str(&report.json(9)).unwrap();
    assert_eq!(json["quic"][0]["primary"], "CC821");
    assert!(json["quic"][0]["findings"][0]["filter"].is_null());
    assert!(json["connections"].as_array().unwrap().is_empty());
}
