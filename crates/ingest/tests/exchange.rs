//! Network, client or server: recorded requests and responses whose think times are known, captured at
//! the client and at the server. See `golden/captures/recorded/README.md`.

use std::fs::File;
use std::path::Path;

use ackclock_ingest::diagnosis::{ConnectionFilter, DiagnosisReport, FilterExpression, TextStyle};
use ackclock_ingest::inputs::InputFile;
use scenario::ReportStyle;
use serde_json::Value;

#[path = "../examples/many_connections.rs"]
mod many_connections;

/// A recorded capture and what is true of it, times in ms.
struct Recorded {
    name: &'static str,
    largest: &'static str,
    requests: u64,
    server: f64,
    client: f64,
}

const RECORDED: [Recorded; 7] = [
    Recorded { name: "server", largest: "server", requests: 10, server: 150.0, client: 20.0 },
    Recorded { name: "client", largest: "client", requests: 10, server: 5.0, client: 300.0 },
    Recorded { name: "network", largest: "network", requests: 10, server: 0.0, client: 0.0 },
    Recorded { name: "transfer", largest: "transfer", requests: 2, server: 10.0, client: 10.0 },
    Recorded { name: "pieces", largest: "server", requests: 5, server: 100.0, client: 20.0 },
    Recorded { name: "single", largest: "server", requests: 1, server: 3_000.0, client: 0.0 },
    Recorded { name: "lost", largest: "network", requests: 30, server: 20.0, client: 20.0 },
];

fn json(name: &str, point: &str) -> Value {
    let folder =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/captures/recorded/requests");
    let file = format!("{name}.{point}.pcap.gz");
    let bytes = Box::new(File::open(folder.join(&file)).unwrap());
    let report = DiagnosisReport::read(vec![InputFile { name: file, bytes }], false).unwrap();
    serde_json::from_str(&report.json(1)).unwrap()
}

/// Mean of the waits of a host; 0 without any.
fn think(connection: &Value, host: &str) -> f64 {
    let waits = &connection["exchange"][host];
    if waits["count"] == 0 { 0.0 } else { waits["mean_s"].as_f64().unwrap() * 1e3 }
}

/// At most 2 ms less (the handshake takes that much longer than the path) to 4 ms more at the host that
/// thinks: sleeps are late. At the other host 14 or 30 ms more: the queue of the path delays the data
/// that an answer waits for.
#[test]
fn both_capture_points_show_who_takes_the_time() {
    for one in RECORDED {
        for point in ["client", "server"] {
            let json = json(one.name, point);
            let connection = &json["connections"][0];
            let exchange = &connection["exchange"];
            let what = format!("{} at the {point}: {exchange:#}", one.name);
            assert_eq!(exchange["requests"], one.requests, "{what}");
            // At the server the lost request was never captured: see the next test.
            let is_hidden = one.name == "lost" && point == "server";
            if !is_hidden {
                assert_eq!(exchange["largest"], one.largest, "{what}");
            }
            let server = think(connection, "server_think") - one.server;
            let margin = if point == "server" { 4.0 } else { 14.0 };
            assert!((-2.0..margin).contains(&server), "{what}");
            let client = think(connection, "client_think") - one.client;
            let margin = if point == "client" { 4.0 } else { 30.0 };
            assert!((-2.0..margin).contains(&client) || is_hidden, "{what}");
            // The path has a round trip of 40 ms.
            let first_byte = exchange["first_byte"]["mean_s"].as_f64().unwrap() * 1e3;
            assert!((38.0..60.0).contains(&(first_byte - one.server)), "{what}");
            let budget = exchange["budget"].as_object().unwrap().values();
            let sum: f64 = budget.map(|part| part.as_f64().unwrap()).sum();
            let duration = connection["duration_s"].as_f64().unwrap();
            assert!((sum - duration).abs() < 1e-6, "{what}");
        }
    }
}

/// The host that takes most of the time is the primary finding; where the network or the transfer
/// does, no host is blamed, also not where a lost request looks like a client that waits.
#[test]
fn the_slow_host_is_the_primary_finding() {
    for (name, slow) in [
        ("server", Some("CC505")),
        ("pieces", Some("CC505")),
        ("single", Some("CC505")),
        ("client", Some("CC506")),
        ("network", None),
        ("transfer", None),
        ("lost", None),
    ] {
        for point in ["client", "server"] {
            let json = json(name, point);
            let connection = &json["connections"][0];
            let findings = connection["findings"].as_array().unwrap();
            let blamed: Vec<_> = findings
                .iter()
                .filter_map(|found| found["code"].as_str())
                .filter(|code| ["CC505", "CC506"].contains(code))
                .collect();
            assert_eq!(blamed, Vec::from_iter(slow), "{name} at the {point}: {connection:#}");
            if let Some(slow) = slow {
                assert_eq!(connection["primary"], slow, "{name} at the {point}: {connection:#}");
            }
        }
    }
}

/// A request that is lost before the capture point looks as if it had been sent later: both captures
/// agree on the duration and on the server, and the one at the server blames the client.
#[test]
fn a_loss_before_the_capture_point_is_hidden() {
    let [client, server] = ["client", "server"].map(|point| json("lost", point));
    let spent = |json: &Value, part: &str| {
        json["connections"][0]["exchange"]["budget"][part].as_f64().unwrap()
    };
    let moved = spent(&client, "network_s") - spent(&server, "network_s");
    let blamed = spent(&server, "client_s") - spent(&client, "client_s");
    assert!(moved > 0.5 && (moved - blamed).abs() < 0.1, "{moved} {blamed}");
}

#[test]
fn servers_are_summarised_and_filtered() {
    let mut capture = Vec::new();
    let kind = many_connections::CaptureKind::Mixed;
    many_connections::write_capture(kind, 1_000, &mut capture).unwrap();
    let source = InputFile { name: "many.pcap".to_owned(), bytes: Box::new(&capture[..]) };
    let mut report = DiagnosisReport::read(vec![source], false).unwrap();
    let text = report.text(TextStyle { limit: 0, look: ReportStyle::Plain });
    assert!(text.contains("requests: what the time was spent on, by server\n"), "{text}");
    let json: Value = serde_json::from_str(&report.json(0)).unwrap();
    let servers = json["servers"].as_array().unwrap();
    let of = |address: &str| servers.iter().find(|one| one["server"] == address).unwrap();
    assert_eq!(of("192.168.0.1:389")["connections"], 30);
    // 30 connections, of which each waits 3 s for its SYN: that is the network's time.
    let network = of("192.168.0.1:389")["spent"]["network_s"].as_f64().unwrap();
    assert!((91.0..93.0).contains(&network), "{network}");
    let first_byte = of("192.168.0.5:443")["first_byte_s"].as_f64().unwrap();
    assert!((0.019..0.021).contains(&first_byte), "{first_byte}");
    let expression = Some(FilterExpression::parse("network-time > 1s").unwrap());
    let filter = ConnectionFilter { expression, ..ConnectionFilter::default() };
    assert_eq!(report.retain(&filter), 30);
}
