//! Predictions from quinn-proto's own qlogs: a path is fitted to the log of a transfer, other controllers and other
//! paths are predicted with the profile, and quinn-proto itself is recorded there. The table is in the snapshot, and
//! in docs/ledger/whatif.md.

use std::fmt::Write as _;

use diagnose::AnalysisSettings;
use fit::QuicFit;
use ingest::inputs::{self, InputFile, QuicConnection, ReadMode};
use scenario::{Overrides, load};
use sim::Scenario;
use whatif::{WhatIf, WhatIfRequest};

use crate::quinn_world::{self, QuinnController};

/// Seeds of a second recording over a path with random loss or reordering.
const SEEDS: u8 = 5;

/// A path.
#[derive(Debug, Clone, Copy)]
struct RecordedPath {
    name: &'static str,
    rate: &'static str,
    buffer: &'static str,
    /// One way.
    delay: &'static str,
    /// Elements before the link and after it.
    before: &'static str,
    after: &'static str,
    bytes: u64,
}

const MEGABYTES: u64 = 1_000_000;

const fn path(
    name: &'static str,
    (rate, delay, buffer): (&'static str, &'static str, &'static str),
    (before, after): (&'static str, &'static str),
    bytes: u64,
) -> RecordedPath {
    RecordedPath { name, rate, buffer, delay, before, after, bytes }
}

const PATHS: [RecordedPath; 12] = [
    path("busy path", ("20Mbit/s", "20ms", "100kB"), ("", ""), 10 * MEGABYTES),
    path("short queue, long path", ("50Mbit/s", "40ms", "60kB"), ("", ""), 20 * MEGABYTES),
    path("deep queue", ("5Mbit/s", "20ms", "300kB"), ("", ""), 5 * MEGABYTES),
    path("short round trip", ("100Mbit/s", "2ms", "100kB"), ("", ""), 30 * MEGABYTES),
    path("slow path", ("2Mbit/s", "50ms", "50kB"), ("", ""), 2 * MEGABYTES),
    path("300 kB over 200 ms", ("100Mbit/s", "100ms", "1MB"), ("", ""), 300_000),
    path(
        "loss of 0.1 %",
        ("50Mbit/s", "20ms", "500kB"),
        ("{ loss = \"0.1%\" },", ""),
        20 * MEGABYTES,
    ),
    path(
        "loss of 0.5 %",
        ("50Mbit/s", "20ms", "500kB"),
        ("{ loss = \"0.5%\" },", ""),
        10 * MEGABYTES,
    ),
    path("loss of 2 %", ("50Mbit/s", "20ms", "500kB"), ("{ loss = \"2%\" },", ""), 5 * MEGABYTES),
    path(
        "bursts of losses",
        ("20Mbit/s", "30ms", "300kB"),
        (
            "{ loss = { gilbert_elliott = { p = \"0.2%\", r = \"30%\", h = \"0%\", k = \"100%\" } } },",
            "",
        ),
        5 * MEGABYTES,
    ),
    path(
        "reordering of 1 %",
        ("50Mbit/s", "20ms", "500kB"),
        ("", "{ reorder = { fraction = \"1%\", by = \"4ms\" } },"),
        10 * MEGABYTES,
    ),
    path(
        "an outage of a second",
        ("50Mbit/s", "20ms", "500kB"),
        ("", "{ outage = { from = \"1s\", until = \"2s\" } },"),
        15 * MEGABYTES,
    ),
];

/// A second recording: what changes, as keys of the fitted scenario, and the path and controller of quinn-proto.
struct SecondRecording {
    name: &'static str,
    set: &'static [&'static str],
    change: fn(RecordedPath) -> RecordedPath,
    cc: QuinnController,
}

const SECONDS: [SecondRecording; 4] = [
    SecondRecording {
        name: "newreno",
        set: &[],
        change: |path| path,
        cc: QuinnController::NewReno,
    },
    SecondRecording {
        name: "8 Mbit/s",
        set: &["path.forward.link.rate=8Mbit/s"],
        change: |path| RecordedPath { rate: "8Mbit/s", ..path },
        cc: QuinnController::Cubic,
    },
    SecondRecording {
        name: "60 ms each way",
        set: &["path.forward.delay=60ms", "path.return.delay=60ms"],
        change: |path| RecordedPath { delay: "60ms", ..path },
        cc: QuinnController::Cubic,
    },
    SecondRecording {
        name: "without loss",
        set: &["path.forward.loss=0%"],
        change: |path| RecordedPath { before: "", ..path },
        cc: QuinnController::Cubic,
    },
];

/// The world in which quinn-proto takes the place of its two hosts.
fn world(path: RecordedPath, seed: u8) -> Scenario {
    let RecordedPath { rate, buffer, delay, before, after, .. } = path;
    let text = format!(
        r#"
seed = {seed}
duration = "300s"

[host.client]
profile = "rfc"
cc = "cubic"

[host.server]
profile = "rfc"
cc = "cubic"

[[path]]
from = "client"
to = "server"
forward = [
    {before}
    {{ link = {{ rate = "{rate}", buffer = "{buffer}" }} }},
    {after}
    {{ delay = "{delay}" }},
]
return = [{{ delay = "{delay}" }}]

[[flow]]
name = "upload"
from = "client"
to = "server"
bulk = "unlimited"
"#
    );
    let loaded = load(&text, "quinn-check", &Overrides::default());
    loaded.unwrap_or_else(|errors| panic!("{errors:?}")).scenario
}

fn record(path: RecordedPath, cc: QuinnController, seed: u8) -> Vec<u8> {
    quinn_world::qlog(&world(path, seed), cc, seed, path.bytes)
}

fn read(log: &[u8]) -> QuicConnection {
    let source = InputFile { name: "quinn.sqlog".into(), bytes: Box::new(log) };
    let mode = ReadMode { keeps_quic: true, ..ReadMode::default() };
    let reading = inputs::read_with(vec![source], AnalysisSettings::default(), mode)
        .unwrap_or_else(|error| panic!("{error}"));
    reading.quic.into_iter().next().unwrap_or_else(|| panic!("no connection"))
}

/// Seconds from the first packet with data to the acknowledgment of the last byte.
fn seconds(log: &[u8]) -> f64 {
    let fitted = QuicFit::of(&read(log).analysis);
    fitted.unwrap_or_else(|error| panic!("{error}")).time as f64 / 1e9
}

#[test]
fn second_recordings_of_quinn_are_predicted_from_its_own_qlog() {
    let (mut table, mut matched, mut all) = (String::new(), 0, 0);
    let mut row = |name: &str, second: &str, predicted: f64, recorded: f64, note: &str| {
        let off = predicted / recorded - 1.0;
        let _ = writeln!(
            table,
            "{name:<24} {second:<16} {predicted:8.3} s, recorded {recorded:8.3} s {:+6.1} %{note}",
            off * 100.0
        );
        off.abs() <= 0.1
    };
    for path in PATHS {
        let is_random = !path.before.is_empty() || path.after.contains("reorder");
        let first = read(&record(path, QuinnController::Cubic, 1));
        let mut lines = Vec::new();
        for second in SECONDS {
            if second.name == "without loss" && path.before.is_empty() {
                continue;
            }
            let (compare, set) = match second.cc {
                QuinnController::NewReno => (vec!["quinn-0.11/newreno".to_owned()], Vec::new()),
                _ => (Vec::new(), second.set.iter().map(|&set| set.to_owned()).collect()),
            };
            let request = WhatIfRequest { compare, set, sender: None };
            let answer = WhatIf::of_quic(&first, &request)
                .unwrap_or_else(|error| panic!("{}: {error}", path.name));
            if lines.is_empty() {
                let best = &answer.senders[0];
                let note = format!(", timing error {:4.1} %", best.misfit * 100.0);
                row(path.name, "as recorded", best.course.time_s, answer.recorded.time_s, &note);
            }
            let changed = (second.change)(path);
            let is_random = is_random && !(changed.before.is_empty() && changed.after.is_empty());
            let seeds = if is_random { SEEDS } else { 1 };
            let times = (11..11 + seeds).map(|seed| seconds(&record(changed, second.cc, seed)));
            let recorded = times.sum::<f64>() / f64::from(seeds);
            let predicted = answer.alternatives[0].course.time_s;
            lines.push(second.name);
            all += 1;
            let name = path.name;
            let (least, most) = answer.alternatives[0].spread_s;
            let note = match answer.alternatives[0].runs {
                1 => String::new(),
                _ => format!(", seeds {least:.3} to {most:.3} s"),
            };
            matched += u32::from(row(name, second.name, predicted, recorded, &note));
        }
    }
    let _ = writeln!(table, "{matched} of {all} within 10 %");
    insta::assert_snapshot!(table);
    assert!(matched >= 32 && all == 40, "{table}");
}
