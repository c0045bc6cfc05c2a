//! Simulated QUIC transfers whose limit is known by construction, diagnosed from the qlog of the
//! sender in both formats.

use ackclock_ingest as ingest;
use export::kernel_log::LoggedEndpoint;
use export::qlog::Qlog;
use ingest::diagnosis::{DiagnosisReport, FileReport, TextStyle};
use ingest::inputs::InputFile;
use logs::qlog::QlogFormat;
use packet::Dir;
use scenario::{Overrides, ReportStyle, load};
use sim::ObserverPair;
use sim::scenario::TapPoint;
use units::HostId;

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
                assert!(found.cost.as_nanos() <= analysis.duration(), "{name}: {}", found.code);
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

/// Reordering in groups of eight, and nothing is dropped on the path. The first group after the ClientHello is
/// three packets of the handshake and five with data: reversed, the server cannot decrypt those.
#[test]
fn the_extent_of_reordering_is_measured() {
    let (_, set, ..) = TRANSFERS.iter().find(|(name, ..)| *name == "reordering").unwrap();
    let [log, _] = logs(set);
    let report = diagnosed("a", &log);
    let analysis = &only(&report).connection.analysis;
    assert_eq!(analysis.all_lost() - analysis.spurious, 5, "{:?}", analysis.lost);
    assert!(analysis.spurious > 100);
    assert!(analysis.reordering.packets <= 7, "{:?}", analysis.reordering);
    // The default threshold (RFC 9002 section 6.1.1) was reached.
    assert!(analysis.reordering.packets >= 3, "{:?}", analysis.reordering);
}

/// The logs of the client and the server.
fn logs_of_both_ends(set: &[&str]) -> [Vec<u8>; 2] {
    let set = set.iter().map(|set| (*set).to_owned()).collect();
    let loaded = load(BASE, "run", &Overrides { set, ..Overrides::default() });
    let loaded = loaded.unwrap_or_else(|errors| panic!("{errors:?}"));
    let mut scenario = loaded.scenario.clone();
    let client = LoggedEndpoint::sender(&mut scenario, 0).unwrap();
    let tap = export::capture::tap(&mut scenario, 1, TapPoint::Stack);
    let server = LoggedEndpoint { host: HostId(1), out: Dir::Reverse, tap, ..client };
    let log =
        |side| Qlog::new(&scenario, side, &loaded.sha256, QlogFormat::Current, Vec::new()).unwrap();
    let mut both = ObserverPair(log(client), log(server));
    sim::run(&scenario, &mut both).unwrap_or_else(|error| panic!("{error:?}"));
    [both.0.finish().unwrap(), both.1.finish().unwrap()]
}

/// The diagnosis of both logs, and its JSON about both.
fn both_ends(set: &[&str]) -> (DiagnosisReport, serde_json::Value) {
    let [client, server] = logs_of_both_ends(set);
    let source = |name: &str, bytes| InputFile { name: name.to_owned(), bytes };
    let files = vec![
        source("client.sqlog", Box::new(&client[..])),
        source("server.sqlog", Box::new(&server[..])),
    ];
    let report = DiagnosisReport::read(files, false).unwrap();
    let json: serde_json::Value = serde_json::from_str(&report.json(9)).unwrap();
    let joined = json[0]["joined_quic"][0].clone();
    assert_eq!(joined, json[1]["joined_quic"][0]);
    (report, joined)
}

/// Nothing is dropped on the path: all packets that were declared lost arrived.
#[test]
fn logs_of_both_ends_separate_false_losses_from_real_ones() {
    let (_, set, ..) = TRANSFERS.iter().find(|(name, ..)| *name == "reordering").unwrap();
    let (report, joined) = both_ends(set);
    let analysis = &report.files[0].quic[0].connection.analysis;
    let up = &joined["from_client"];
    assert_eq!((&up["lost"], &up["declared_lost"]), (&0.into(), &0.into()));
    assert_eq!(up["falsely_declared_lost"], analysis.all_lost());
    assert!(up["reordered"].as_u64().unwrap() > 100, "{up}");
    let text = report.text(TextStyle { limit: 1, look: ReportStyle::Plain });
    assert!(
        text.contains("connection 0 of client.sqlog is connection 0 of server.sqlog"),
        "{text}"
    );
}

/// One clock in both logs, 20 ms each way, and 0.1 ms for a packet of 1,252 bytes at 100 Mbit/s.
#[test]
fn logs_of_both_ends_have_the_delays_of_the_path() {
    let (_, set, ..) = TRANSFERS.iter().find(|(name, ..)| *name == "random loss").unwrap();
    let (report, joined) = both_ends(set);
    let analysis = &report.files[0].quic[0].connection.analysis;
    let number = |value: &serde_json::Value| value.as_f64().unwrap();
    assert!(number(&joined["clock_ahead_s"]).abs() < 0.0001, "{joined}");
    let round_trip = number(&joined["round_trip_s"]);
    assert!((0.040..0.0402).contains(&round_trip), "{round_trip}");
    for way in ["from_client", "from_server"] {
        let least = number(&joined[way]["delays_s"][0]);
        assert!((0.0199..0.0202).contains(&least), "{way}: {least}");
    }
    let up = &joined["from_client"];
    let real = analysis.all_lost() - analysis.spurious;
    assert!(real > 50 && up["declared_lost"] == real, "{up}");
    // An ACK for every second packet, or after max_ack_delay.
    let ack_delay = number(&up["ack_delays_s"][3]);
    assert!(ack_delay <= 0.0251, "{ack_delay}");
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

/// The samples of docs/quic.md: an upload of 60 kB over 10 Mbit/s and 20 ms each way, 2 % of the packets lost.
#[test]
#[ignore = "writes docs/samples/both-ends.client.sqlog and both-ends.server.sqlog"]
fn samples_of_both_ends() {
    let set = [
        "flow.0.bulk=60kB",
        "path.0.forward=[{ loss = \"2%\" }, { link = { rate = \"10Mbit/s\", buffer = \"60kB\" } }, { delay = \"20ms\" }]",
    ];
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/samples");
    for (name, log) in ["client", "server"].iter().zip(logs_of_both_ends(&set)) {
        std::fs::write(folder.join(format!("both-ends.{name}.sqlog")), log).unwrap();
    }
}
