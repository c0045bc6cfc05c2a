//! Recorded Linux transfers, diagnosed from the capture at either host: their limits and their
//! transmissions.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use ackclock_ingest as ingest;
use ingest::diagnosis::{DiagnosisReport, FileReport, TextStyle};
use ingest::inputs::InputFile;
use scenario::ReportStyle;

/// A transfer, the codes allowed as its limit, and a code that must be among its findings.
type Row = (&'static str, &'static [&'static str], Option<&'static str>);

/// The actual limit of each (golden/linux/README.md).
const TRANSFERS: &[Row] = &[
    ("a1_slowstart_cubic", &["CC102"], None),
    ("a2_slowstart_reno", &["CC103"], None),
    // BBR's startup overflowed the queue.
    ("a3_slowstart_bbr", &["CC102", "CC103", "CC202"], None),
    // Aggregation costs Linux nothing, but is detected.
    ("b1_lro45_cubic", &["CC102"], Some("CC402")),
    ("b2_lro45_reno", &["CC102"], Some("CC402")),
    ("b3_gro_cubic", &["CC102"], Some("CC402")),
    ("b4_ackthin_reno", &["CC102", "CC103", "CC202"], Some("CC402")),
    ("c1_loss1p_rtt2_reno", &["CC201"], None),
    ("c2_loss2r_rtt2_cubic", &["CC201"], None),
    ("c3_loss1r_rtt45_cubic", &["CC201"], None),
    ("c4_loss2p_rtt45_reno", &["CC201"], None),
    ("c5_loss2r_rtt45_bbr", &["CC201"], None),
    ("c6_loss2p_rtt2_reno", &["CC201"], None),
    ("d1_rev4_rtt45_cubic", &["CC301", "CC102"], Some("CC301")),
    ("d2_rev4_rtt45_reno", &["CC301", "CC302"], Some("CC302")),
    ("d3_delayed_rtt45_cubic", &["CC301", "CC102"], Some("CC301")),
    ("e1_tailloss_cubic", &["CC203"], None),
    ("f1_single_loss_reno", &["CC205", "CC102"], Some("CC205")),
    ("f2_few_losses_cubic", &["CC205", "CC102"], Some("CC205")),
    ("g1_rto_cubic", &["CC204"], None),
    ("g2_spurious_rto_cubic", &["CC303"], None),
    ("h1_rwnd_cubic", &["CC401"], None),
    ("h2_slowreader_reno", &["CC403"], None),
    ("i1_applimited_cubic", &["CC501"], None),
    ("i2_idle_restart_reno", &["CC502"], None),
    ("j1_bufferbloat_cubic", &["CC601"], None),
    ("k1_two_flows", &["CC602"], None),
    ("l1_healthy_cubic", &["CC603", "-"], None),
];

/// Known misses, and why.
const MISSES: &[(&str, &str)] = &[
    (
        "d2_rev4_rtt45_reno, sender: CC102",
        "the reordering cost 17 ms of 0.68 s, slow start ten times as much (reordering_cost_d2_little): its two \
         false recoveries come when all data are written, and Linux undoes each after 50 us",
    ),
    ("d2_rev4_rtt45_reno, receiver: CC102", "the same"),
    (
        "b4_ackthin_reno, receiver: no CC402",
        "the network filters these ACKs after the receiver, which sends one for every packet",
    ),
];

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/linux")
}

fn diagnose(transfer: &str, end: &str) -> DiagnosisReport {
    let path = golden().join(transfer).join(format!("{end}.pcap.xz"));
    let bytes = Box::new(File::open(&path).unwrap());
    DiagnosisReport::read(vec![InputFile { name: path.display().to_string(), bytes }], false)
        .unwrap()
}

fn file(report: &DiagnosisReport) -> &FileReport {
    &report.files[0]
}

#[test]
#[expect(clippy::print_stdout, reason = "known misses are printed each time")]
fn the_limit_of_each_transfer_is_found_or_is_a_known_miss() {
    let mut missed = Vec::new();
    for (transfer, allowed, among) in TRANSFERS {
        for end in ["sender", "receiver"] {
            let report = diagnose(transfer, end);
            for one in &file(&report).connections {
                let diagnosis = file(&report).diagnosis(one);
                let primary = diagnosis.primary.unwrap_or("-");
                assert_eq!((diagnosis.primary, diagnosis.primary_cost()), (one.primary, one.cost));
                if !allowed.contains(&primary) {
                    missed.push(format!("{transfer}, {end}: {primary}"));
                }
                let found = |code: &str| diagnosis.findings.iter().any(|f| f.code == code);
                if let Some(code) = among.filter(|code| !found(code)) {
                    missed.push(format!("{transfer}, {end}: no {code}"));
                }
            }
        }
    }
    for miss in &missed {
        let why = MISSES.iter().find(|(name, _)| name == miss).map_or("not explained", |m| m.1);
        println!("missed: {miss}: {why}");
    }
    let mut known: Vec<_> = MISSES.iter().map(|(name, _)| (*name).to_string()).collect();
    known.sort();
    missed.sort();
    assert_eq!(missed, known);
}

/// golden/linux/fates.csv has the outcome of the packets, counted by the emulator.
#[test]
fn transmissions_at_the_sender_match_the_emulator() {
    let text = std::fs::read_to_string(golden().join("fates.csv")).unwrap();
    let mut rows = text.lines();
    assert_eq!(rows.next().unwrap(), "transfer,port,packets,retransmitted,spurious,lost");
    let mut seen: BTreeMap<(String, u16), [u64; 4]> = BTreeMap::new();
    for (transfer, ..) in TRANSFERS {
        for one in &file(&diagnose(transfer, "sender")).connections {
            let counts = one.stream.analysis().main().unwrap().counts;
            let figures = [
                counts.new + counts.retransmitted,
                counts.retransmitted,
                counts.spurious,
                counts.needed(),
            ];
            seen.insert((transfer.to_string(), one.stream.analysis().ends.src.port()), figures);
        }
    }
    let mut checked = 0;
    for row in rows {
        let cells: Vec<_> = row.split(',').collect();
        let key = (cells[0].to_string(), cells[1].parse().unwrap());
        let reported: Vec<u64> = cells[2..].iter().map(|cell| cell.parse().unwrap()).collect();
        assert_eq!(seen[&key].to_vec(), reported, "{key:?}");
        checked += 1;
    }
    assert_eq!((checked, seen.len()), (29, 29));
}

#[test]
fn a_healthy_transfer_has_only_notes() {
    for end in ["sender", "receiver"] {
        let report = diagnose("l1_healthy_cubic", end);
        for found in &file(&report).diagnosis(&file(&report).connections[0]).findings {
            assert_eq!(found.severity.name(), "note", "{end}: {found:?}");
        }
    }
}

/// Reordering did not limit d2: its cost, estimated in three ways.
///
/// Its slow start sends 10, 17, 34, 56, 124, ... while that of f1, the same system with the same
/// controller and RTT without reordering, sends 10, 20, 40, 80, 160, ...; a packet takes 60 us at
/// 200 Mbit/s. CC301 computes the same from d2 alone. And the path fitted to d2, without its
/// reordering, is hardly faster.
#[test]
#[expect(clippy::print_stdout, reason = "prints the figures")]
fn reordering_cost_d2_little() {
    let report = diagnose("d2_rev4_rtt45_reno", "sender");
    let one = &file(&report).connections[0];
    let analysis = one.analysis();
    let flow = analysis.main().unwrap();
    let diagnosis = file(&report).diagnosis(one);
    let control = diagnose("f1_single_loss_reno", "sender");
    let control = file(&control).connections[0].stream.analysis().main().unwrap().clone();
    // The first round in which the queue never runs empty; both are still in slow start then.
    let base = flow.rtt.unwrap().0;
    let full = flow.rounds.iter().position(|round| round.min_rtt > base * 9 / 8).unwrap();
    let doubled: Vec<u64> = (0..6).map(|round| 10 << round).collect();
    let packets = |flow: &diagnose::FlowAnalysis, rounds: usize| -> Vec<u64> {
        flow.rounds[..rounds].iter().map(|round| round.sent / flow.mss).collect()
    };
    assert_eq!(packets(&control, 6), doubled);
    let sent: u64 = packets(flow, full).iter().sum();
    let without: u64 = (0..full).map(|round| 10_u64 << round).sum();
    let by_control = (without - sent) * 60;
    let reported = |code: &str| {
        diagnosis.findings.iter().find(|found| found.code == code).unwrap().cost.as_micros()
    };
    let (reordering, slow_start) = (reported("CC301") + reported("CC302"), reported("CC102"));
    let mut fitted = fit::PathFit::of(&whole("d2_rev4_rtt45_reno").analysis()).unwrap();
    assert!(fitted.late.is_some());
    let with = simulated(&fitted);
    fitted.late = None;
    let by_simulation = with - simulated(&fitted);
    println!(
        "d2, reordering: {by_control} us by the kernel's own slow start without it, {reordering} us by CC301 and \
         CC302, {by_simulation} us of {with} us by simulation; slow start: {slow_start} us by CC102"
    );
    assert!(
        by_control * 10 < slow_start
            && reordering * 5 < slow_start
            && by_simulation * 10 < slow_start as i64
    );
}

/// A queue that marks instead of dropping, on a path with a long RTT: the lost time is attributed
/// to marks at either host, and no finding is a loss.
#[test]
fn a_window_reduction_for_marks_is_not_a_loss() {
    for (profile, cc, knob) in [
        ("linux-6.18", "reno", "net.ipv4.tcp_ecn"),
        ("freebsd-14.3", "newreno", "net.inet.tcp.ecn.enable"),
    ] {
        let text = format!(
            r#"
title = "marks"
duration = "30s"
[host.sender]
profile = "{profile}"
cc = "{cc}"
knobs = {{ "{knob}" = 1 }}
[host.receiver]
profile = "linux-6.18"
[[path]]
from = "sender"
to = "receiver"
forward = [{{ link = {{ rate = "50Mbit/s", buffer = "2000packets", queue = {{ codel = {{ ecn = true }} }} }} }}, {{ delay = "40ms" }}]
return = [{{ delay = "40ms" }}]
[[flow]]
name = "upload"
from = "sender"
to = "receiver"
bulk = "40MB"
[[tap]]
host = "sender"
at = "stack"
[[tap]]
host = "receiver"
at = "stack"
"#
        );
        let loaded = scenario::load(&text, "marks.toml", &Default::default()).unwrap();
        for tap in [0, 1] {
            let mut seen =
                export::capture::PcapngRecorder::new(&loaded.scenario, &[tap], "", Vec::new())
                    .unwrap();
            sim::run(&loaded.scenario, &mut seen).unwrap();
            let bytes = Box::new(std::io::Cursor::new(seen.finish().unwrap()));
            let source = InputFile { name: "marks".to_owned(), bytes };
            let report = DiagnosisReport::read(vec![source], false).unwrap();
            let one = &file(&report).connections[0];
            let findings = file(&report).diagnosis(one).findings;
            // A note on FreeBSD: without marks the transfer takes 7.08 s in place of 7.54 s.
            assert_eq!(findings[0].code, "CC206", "{profile}, tap {tap}: {findings:#?}");
            let others = findings.iter().filter(|found| found.code.starts_with("CC2"));
            assert_eq!(others.count(), 1, "{profile}, tap {tap}: {findings:#?}");
            let analysis = one.analysis();
            let flow = analysis.main().unwrap();
            assert_eq!((flow.counts.retransmitted, flow.marked > 0), (0, tap == 1));
        }
    }
}

/// Reads a transfer with all its packets.
fn whole(transfer: &str) -> ingest::inputs::CapturedConnection {
    let path = golden().join(transfer).join("sender.pcap.xz");
    let source =
        InputFile { name: transfer.to_owned(), bytes: Box::new(File::open(path).unwrap()) };
    let settings = diagnose::AnalysisSettings { packets: usize::MAX, ..Default::default() };
    ingest::inputs::read(vec![source], settings).unwrap().streams.swap_remove(0)
}

/// Microseconds that a Linux reno sender takes over the fitted path.
fn simulated(fitted: &fit::PathFit) -> i64 {
    let text = fitted.scenario("linux-6.18", Some("reno"), fit::LossPattern::Same, 1);
    let loaded = scenario::load(&text, "fitted", &scenario::Overrides::default()).unwrap();
    let run = sim::run(&loaded.scenario, &mut record::NullRecorder).unwrap();
    (run.flows[0].duration.as_nanos() / 1_000) as i64
}

/// Every moment has one limiter: the times add up to the duration, from the first packet to the
/// last.
#[test]
fn the_time_budget_adds_up() {
    for (transfer, ..) in TRANSFERS {
        for end in ["sender", "receiver"] {
            let report = diagnose(transfer, end);
            for one in &file(&report).connections {
                let whole = file(&report).diagnosis(one).course.budget.whole();
                assert_eq!(whole, one.stream.analysis().duration(), "{transfer}, {end}");
            }
        }
    }
}

/// The packets lost between the captures are those that the emulator lost (fates.csv). Packets are
/// compared as captured: bursts that the sender's offload leaves whole are one packet each, so only
/// transfers with loss and without bursts match the emulator's count.
#[test]
fn two_captures_show_the_losses_between_them() {
    let fates = std::fs::read_to_string(golden().join("fates.csv")).unwrap();
    let mut reported = Vec::new();
    for row in fates.lines().skip(1) {
        let cells: Vec<_> = row.split(',').collect();
        let (name, lost) = (cells[0], cells[5]);
        if name == "k1_two_flows" {
            continue;
        }
        let source = |side: &str| {
            let path = golden().join(name).join(side);
            InputFile { name: side.to_owned(), bytes: Box::new(File::open(path).unwrap()) }
        };
        let sources = vec![source("sender.pcap.xz"), source("receiver.pcap.xz")];
        let report = DiagnosisReport::read(sources, false).unwrap();
        let json: serde_json::Value = serde_json::from_str(&report.json(9)).unwrap();
        let joined = &json[0]["joined"][0];
        assert_eq!(json[1]["joined"], json[0]["joined"]);
        let way = &joined["from_client"];
        reported.push((
            name.to_owned(),
            way["lost"].to_string(),
            way["lost_in_part"].to_string(),
            lost.to_owned(),
        ));
        let view = TextStyle { limit: 0, look: ReportStyle::Plain };
        let text = report.text(view);
        assert!(text.contains("flow 0 of sender.pcap.xz is flow 0 of receiver.pcap.xz"), "{text}");
    }
    let wrong: Vec<_> = reported.iter().filter(|(_, lost, _, fate)| lost != fate).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}
