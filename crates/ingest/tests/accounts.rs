//! What limited a transfer by its kernel's own account: polls of ss next to captures of the same
//! transfers, and the output of iperf3.

use std::fs::File;
use std::path::Path;

use ackclock_ingest::diagnosis::{DiagnosisReport, TextStyle};
use ackclock_ingest::inputs::InputFile;
use scenario::ReportStyle;
use serde_json::Value;

fn golden(name: &str) -> InputFile<'static> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/linux").join(name);
    InputFile { name: name.to_owned(), bytes: Box::new(File::open(path).unwrap()) }
}

fn connection(source: InputFile<'_>) -> Value {
    let report = DiagnosisReport::read(vec![source], false).unwrap();
    let json: Value = serde_json::from_str(&report.json(1)).unwrap();
    json["connections"][0].clone()
}

/// What the kernel says of a transfer, by the code that the capture of the same transfer has.
const KINDS: [(&str, &[&str]); 4] = [
    ("receive_window", &["CC401", "CC403"]),
    ("application", &["CC501"]),
    ("loss", &["CC201", "CC203", "CC204", "CC205"]),
    ("queue", &["CC601", "CC602", "CC603"]),
];

/// All recorded transfers whose capture names one of these kinds: 12 of 15 agree. Not those in slow
/// start, which polls do not show.
#[test]
fn polls_of_ss_name_the_limit_of_the_capture() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/linux");
    let mut names: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().join("ss.txt.gz").exists())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    names.sort();
    let mut compared = Vec::new();
    for name in names {
        let capture = connection(golden(&format!("{name}/sender.pcap.xz")));
        let primary = capture["primary"].clone();
        let kind = KINDS.iter().find(|(_, codes)| codes.iter().any(|code| primary == *code));
        let Some((limit, _)) = kind else { continue };
        let account = connection(golden(&format!("{name}/ss.txt.gz")));
        let said = account["kernels"][0]["limit"].clone();
        compared.push((name, said == *limit, said, primary));
    }
    let equal = compared.iter().filter(|one| one.1).count();
    assert_eq!(compared.len(), 15, "{compared:#?}");
    assert!(equal * 10 >= compared.len() * 8, "{equal}: {compared:#?}");
}

const IPERF3: &str = r#"{"start": {"connected": [{"socket": 5, "local_host": "10.0.0.1", "local_port": 40000,
 "remote_host": "10.0.0.2", "remote_port": 5201}], "version": "iperf 3.16", "timestamp": {"timesecs": 1795662000},
 "tcp_mss_default": 1448, "test_start": {"protocol": "TCP", "target_bitrate": TARGET}},
 "intervals": [{"streams": [{"socket": 5, "end": 1.0, "bytes": 1000000, "retransmits": RETRANS, "snd_cwnd": 400000,
 "snd_wnd": WINDOW, "rtt": 40500, "sender": true}]}], "end": {"streams": [{"sender": {"socket": 5, "min_rtt": 40100,
 "mean_rtt": MEAN}}]}}"#;

#[test]
fn the_output_of_iperf3_has_a_verdict() {
    for (target, retrans, window, mean, limit) in [
        (0, 0, 65_536, 40_600, "receive_window"),
        (0, 0, 900_000, 40_600, "congestion_window"),
        (0, 30, 900_000, 40_600, "loss"),
        (0, 30, 900_000, 95_000, "queue"),
        (8_000_000, 0, 900_000, 40_600, "application"),
    ] {
        let text = IPERF3
            .replace("TARGET", &target.to_string())
            .replace("RETRANS", &retrans.to_string())
            .replace("WINDOW", &window.to_string())
            .replace("MEAN", &mean.to_string());
        let source = InputFile { name: "iperf3.json".to_owned(), bytes: Box::new(text.as_bytes()) };
        let report = DiagnosisReport::read(vec![source], false).unwrap();
        let json: Value = serde_json::from_str(&report.json(1)).unwrap();
        assert_eq!(json["connections"][0]["kernels"][0]["limit"], limit, "{json:#}");
        let text = report.text(TextStyle { limit: 1, look: ReportStyle::Plain });
        assert!(text.contains("  kernel of 10.0.0.1:40000: limited by: "), "{text}");
        let (answer, rest) = text.split_once("\n\n").unwrap();
        assert!(answer.starts_with("by the account of its kernel: "), "{answer}");
        assert!(rest.starts_with("iperf3.json: the output of iperf3, 1 frame"), "{rest}");
    }
}

/// Bytes that iperf3 itself prints at the end: `sum_sent` of hosts that send, `sum_received` of others.
const SUMS: [(&str, u64); 8] = [
    ("plain.client", 704_512_000),
    ("reverse.client", 583_794_688),
    ("reverse.server", 586_547_200),
    ("bidir.client", 319_946_752 + 301_072_384),
    ("parallel.client", 732_561_408),
    ("limited.client", 1_048_576),
    ("omit.client", 689_438_720),
    ("window.client", 826_840_464),
];

/// The output of iperf3 3.12, recorded: see `golden/captures/recorded/README.md`.
fn iperf3(name: &str) -> Result<Value, String> {
    let source = golden(&format!("../captures/recorded/iperf3/{name}.json.gz"));
    let report = DiagnosisReport::read(vec![source], false).map_err(|error| error.to_string())?;
    Ok(serde_json::from_str(&report.json(10)).unwrap())
}

/// Limit and bytes of each connection, in the order of limits.
fn accounts(json: &Value) -> Vec<(String, u64)> {
    let all = json["connections"].as_array().unwrap().iter().map(|one| {
        let kernel = &one["kernels"][0];
        (kernel["limit"].as_str().unwrap().to_owned(), kernel["bytes"].as_u64().unwrap())
    });
    let mut all: Vec<_> = all.collect();
    all.sort();
    all
}

/// Bytes are those of iperf3's own sums. Limits by options are known: `-b` limits the application, `-w` the
/// window; the host that receives knows only that its peer sends. The parts of the time are not in the
/// output.
#[test]
fn recorded_outputs_of_iperf3_are_read() {
    for (name, limits) in [
        ("plain.client", &["congestion_window"][..]),
        ("reverse.client", &["peer"]),
        ("reverse.server", &["congestion_window"]),
        ("bidir.client", &["peer", "queue"]),
        ("parallel.client", &["queue"; 4]),
        ("limited.client", &["application"]),
        ("omit.client", &["congestion_window"]),
        ("window.client", &["receive_window"]),
    ] {
        let json = iperf3(name).unwrap();
        let all = accounts(&json);
        let found: Vec<_> = all.iter().map(|one| one.0.as_str()).collect();
        assert_eq!(found, limits, "{name}: {json:#}");
        assert_eq!(json["problems"], Value::Array(Vec::new()), "{name}");
        let sum: u64 = all.iter().map(|one| one.1).sum();
        let expected = SUMS.iter().find(|one| one.0 == name).unwrap().1;
        assert_eq!(sum, expected, "{name}");
        let kernel = &json["connections"][0]["kernels"][0];
        if kernel["limit"] != "peer" {
            assert_eq!(kernel["application_s"], 0.0, "{name}: {kernel:#}");
        }
    }
}

/// Sender, bytes and seconds of a stream, as iperf3 states them.
type StatedStream = (&'static str, u64, f64);

/// Who sends to whom, what and for how long, as iperf3 itself prints it: `sender`, the bytes of each stream
/// in `end`, and the end of its last interval. The client is the host that opened the connections,
/// whoever wrote the output.
#[test]
fn connections_of_iperf3_have_direction_bytes_and_duration() {
    const CLIENT: &str = "10.9.0.1:";
    const SERVER: &str = "10.9.0.2:5201";
    let expected: [(&str, &[StatedStream]); 5] = [
        ("plain.client", &[("client", 704_512_000, 2.001_638)]),
        ("reverse.client", &[("server", 583_794_688, 2.007_713)]),
        ("reverse.server", &[("server", 586_547_200, 2.024_771)]),
        ("bidir.client", &[("server", 301_072_384, 2.020_029), ("client", 319_946_752, 2.020_018)]),
        (
            "several.server",
            &[("client", 416_677_888, 1.015_101), ("client", 1_067_581_440, 2.003_089)],
        ),
    ];
    for (name, streams) in expected {
        let json = iperf3(name).unwrap();
        let mut all = json["connections"].as_array().unwrap().clone();
        all.sort_by_key(|one| one["bytes"].as_u64());
        assert_eq!(all.len(), streams.len(), "{name}: {json:#}");
        for (one, &(sender, bytes, seconds)) in all.iter().zip(streams) {
            assert_eq!(one["sender"], sender, "{name}: {one:#}");
            assert!(one["client"].as_str().unwrap().starts_with(CLIENT), "{name}: {one:#}");
            assert_eq!(one["server"], SERVER, "{name}");
            assert_eq!(one["bytes"], bytes, "{name}");
            let duration = one["duration_s"].as_f64().unwrap();
            assert!((duration - seconds).abs() < 1e-6, "{name}: {duration}");
            let goodput = one["goodput_bps"].as_f64().unwrap() * duration / 8.0;
            assert!((goodput / bytes as f64 - 1.0).abs() < 1e-6, "{name}: {goodput}");
        }
    }
}

/// The text and the table have them too, and so does an account of ss.
#[test]
fn tables_of_accounts_have_bytes_and_arrows() {
    let text = |name: &str| {
        let report = DiagnosisReport::read(vec![golden(name)], false).unwrap();
        report.text(TextStyle { limit: 10, look: ReportStyle::Plain })
    };
    let reverse = text("../captures/recorded/iperf3/reverse.client.json.gz");
    let line = "flow 0  10.9.0.2:5201 > 10.9.0.1:33326  583.79 MB in 2.01 s, 2.3 Gbit/s\n";
    assert!(reverse.contains(line), "{reverse}");
    let bidir = text("../captures/recorded/iperf3/bidir.client.json.gz");
    let row = |arrow: &str, size: &str| {
        bidir
            .lines()
            .any(|line| line.contains(arrow) && line.contains(size) && line.contains("kernel: "))
    };
    assert!(row("10.9.0.1:", " 319.95 MB "), "{bidir}");
    assert!(row("10.9.0.2:5201 > 10.9.0.1:", " 301.07 MB "), "{bidir}");
    assert!(!bidir.contains("no data"), "{bidir}");
    let polls = text("h1_rwnd_cubic/ss.txt.gz");
    assert!(polls.contains("10.83.77.1:40001 > 10.83.77.2:47101  4.00 MB in "), "{polls}");
}

/// A test that a signal ended has what it measured; a server has one connection for each of its tests.
#[test]
fn iperf3_that_ends_with_an_error_says_which() {
    for (name, count, problem) in [
        (
            "interrupted.client",
            1,
            "the test ended with an error: interrupt - the client has terminated",
        ),
        ("several.server", 2, "a test of UDP, not of TCP"),
    ] {
        let json = iperf3(name).unwrap();
        let all = accounts(&json);
        assert_eq!(all.len(), count, "{name}: {json:#}");
        assert_eq!(json["problems"][0], problem, "{name}");
        assert!(all.iter().all(|one| one.1 > 100_000_000), "{all:?}");
    }
    for (name, part) in [
        ("refused.client", "unable to connect to server: Connection refused"),
        ("busy.client", "the server is busy running a test"),
        ("udp.client", "a test of UDP, not of TCP"),
    ] {
        let error = iperf3(name).unwrap_err();
        assert!(error.contains(part), "{name}: {error}");
    }
}
