//! Recorded Linux transfers, fitted from their captures alone and simulated.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use ackclock_whatif as whatif;
use diagnose::AnalysisSettings;
use diagnose::rules::{LossProcess, ProvenCost};
use export::capture::{self, PcapngRecorder};
use fit::FitError;
use ingest::diagnosis::{Prediction, Validity};
use ingest::inputs::{self, CapturedConnection, InputFile};
use packet::{Flags, Segment};
use record::{Event, EventSource, Recorder, SenderState};
use runner::workers::Workers;
use scenario::{Overrides, load};
use sim::Observer;
use sim::scenario::TapPoint;
use units::Instant;
use whatif::{
    Alternative, MAX_EVENTS, TriedCures, TriedFinding, WhatIf, WhatIfError, WhatIfRequest,
    try_cures,
};

/// Scenarios of which two recordings differ by more than 5 % (golden/linux/README.md: queue
/// overflow, HyStart's timing, BBR, competition).
const DO_NOT_REPEAT: [&str; 5] = ["a2", "b3", "c5", "g1", "k1"];

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/linux")
}

fn read(capture: &Path) -> CapturedConnection {
    let bytes = Box::new(File::open(capture).unwrap());
    let source = InputFile { name: capture.display().to_string(), bytes };
    let settings = AnalysisSettings { packets: usize::MAX, turns: MAX_EVENTS };
    let reading = inputs::read(vec![source], settings).unwrap();
    let bytes = |stream: &CapturedConnection| stream.analysis().main().map_or(0, |flow| flow.bytes);
    reading.streams.into_iter().max_by_key(bytes).unwrap()
}

/// A capture has no windows: its page has the curves of bytes only.
#[test]
fn the_page_of_a_capture() {
    let stream = read(&golden().join("h1_rwnd_cubic/sender.pcap.xz"));
    let compare = vec!["freebsd-14.3".to_owned()];
    let request = WhatIfRequest { compare, ..WhatIfRequest::default() };
    let answer = WhatIf::of(&stream, &request).unwrap();
    let mut html = Vec::new();
    answer.page("sender.pcap").write(&mut html).unwrap();
    let html = String::from_utf8(html).unwrap();
    let predicted = format!("{:.3}", answer.alternatives[0].course.time_s);
    for text in ["freebsd-14.3", &predicted, "what-if", "the receiver advertised at most"] {
        assert!(html.contains(text), "{text}");
    }
}

#[test]
#[expect(clippy::print_stdout, reason = "prints the figures")]
fn recorded_transfers_are_matched_from_their_captures_alone() {
    let mut names: Vec<_> = std::fs::read_dir(golden())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| golden().join(name).is_dir())
        .collect();
    names.sort_unstable();
    let (mut repeating, mut matched, mut lines) = (0, 0, String::new());
    for name in &names {
        let stream = read(&golden().join(name).join("sender.pcap.xz"));
        let answer = WhatIf::of(&stream, &WhatIfRequest::default()).unwrap();
        let best = &answer.senders[0];
        let ratio = best.course.goodput_bps / answer.recorded.goodput_bps - 1.0;
        let counts = !DO_NOT_REPEAT.contains(&&name[..2]);
        let good = ratio.abs() <= 0.10;
        repeating += u32::from(counts);
        matched += u32::from(counts && good);
        lines += &format!(
            "{name:24} {:8.2} Mbit/s recorded {:8.2} {:+6.1} % {:18} timing error {:5.1} %{}{}\n",
            best.course.goodput_bps / 1e6,
            answer.recorded.goodput_bps / 1e6,
            ratio * 100.0,
            best.sender,
            best.misfit * 100.0,
            if counts { "" } else { "  does not repeat" },
            if good { "" } else { "  MISS" },
        );
    }
    println!("{lines}{matched} of {repeating} that repeat within 10 %");
    assert!(matched >= 18, "{lines}{matched} of {repeating} that repeat within 10 %");
    assert_eq!(repeating, 23);
}

/// The transfer of the freebsd-net post with a larger limit of RFC 3465: predicted from the capture
/// alone, and simulated.
#[test]
fn a_larger_limit_is_predicted_from_a_capture() {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/slow-start-lro.toml");
    let text = std::fs::read_to_string(place).unwrap();
    let loaded = load(&text, "slow-start-lro.toml", &Overrides::default()).unwrap();
    let mut seen = PcapngRecorder::new(&loaded.scenario, &[0], "", Vec::new()).unwrap();
    sim::run(&loaded.scenario, &mut seen).unwrap();
    let bytes = seen.finish().unwrap();
    let source = InputFile { name: "the post".into(), bytes: Box::new(bytes.as_slice()) };
    let reading = inputs::read(
        vec![source],
        AnalysisSettings { packets: usize::MAX, ..AnalysisSettings::default() },
    )
    .unwrap();
    let larger = "sender.knobs.net.inet.tcp.abc_l_var=45".to_owned();
    let question = WhatIfRequest { set: vec![larger.clone()], ..WhatIfRequest::default() };
    let answer = WhatIf::of(&reading.streams[0], &question).unwrap();
    // Its end is 11 % off, which is said.
    assert!(!answer.licensed);
    let overrides = Overrides { set: vec![larger], ..Overrides::default() };
    let direct = load(&text, "slow-start-lro.toml", &overrides).unwrap();
    let direct = sim::run(&direct.scenario, &mut record::NullRecorder).unwrap();
    // The capture was taken at the sender, which receives the last ACK half an RTT after the
    // delivery.
    let direct_s = direct.flows[0].duration.as_secs_f64() + 0.05;
    let off = answer.alternatives[0].course.time_s / direct_s - 1.0;
    // 11 % since the receiver and the sender follow their kernels in closed loop; the fit was not
    // changed.
    assert!(off.abs() <= 0.12, "{off:+.3}: {}", answer.to_text());
}

/// A capture without the packets of the handshake.
struct WithoutSyns<R>(R);

impl<R: Recorder> Recorder for WithoutSyns<R> {
    const ON: bool = R::ON;

    fn record(&mut self, at: Instant, who: EventSource, event: Event, state: Option<&SenderState>) {
        self.0.record(at, who, event, state);
    }
}

impl<R: Observer> Observer for WithoutSyns<R> {
    fn tap(&mut self, at: Instant, tap: usize, outbound: bool, segment: &Segment) {
        if !segment.flags.has(Flags::SYN) {
            self.0.tap(at, tap, outbound, segment);
        }
    }
}

/// Captures a transfer of 2 MB at a host, and reads the capture.
fn captured(application: &str, losses: &str, host: usize, with_syns: bool) -> CapturedConnection {
    let link = r#"{ link = { rate = "40Mbit/s", buffer = "1MB" } }"#;
    let elements = format!("{losses}{link}");
    read_back(&scenario_text([&elements, &elements], LINUX, LINUX, application), host, with_syns)
}

/// A host without limits.
const LINUX: &str = r#"profile = "linux-6.18""#;

/// A scenario of two hosts 13 ms apart: elements of the two directions, keys of the hosts, and the application.
fn scenario_text(elements: [&str; 2], a: &str, b: &str, application: &str) -> String {
    let [forward, back] = elements;
    format!(
        r#"
seed = 3
duration = "60s"
[host.a]
{a}
[host.b]
{b}
[[path]]
from = "a"
to = "b"
forward = [{forward}, {{ delay = "13ms" }}]
return = [{back}, {{ delay = "13ms" }}]
[[flow]]
name = "transfer"
from = "a"
to = "b"
{application}
"#
    )
}

/// Runs a scenario, captures it at a host, and reads the capture.
fn read_back(text: &str, host: usize, with_syns: bool) -> CapturedConnection {
    let mut scenario = load(text, "transfer", &Overrides::default()).unwrap().scenario;
    let tap = capture::tap(&mut scenario, host, TapPoint::Wire);
    let mut seen = PcapngRecorder::new(&scenario, &[tap], "", Vec::new()).unwrap();
    if with_syns {
        sim::run(&scenario, &mut seen).unwrap();
    } else {
        sim::run(&scenario, &mut WithoutSyns(&mut seen)).unwrap();
    }
    let bytes = seen.finish().unwrap();
    let source = InputFile { name: "transfer".into(), bytes: Box::new(bytes.as_slice()) };
    let settings = AnalysisSettings { packets: usize::MAX, turns: MAX_EVENTS };
    inputs::read(vec![source], settings).unwrap().streams.swap_remove(0)
}

/// A capture with a limit, its cure, and the same transfer cured.
struct CuredTransfer {
    limit: String,
    cure: &'static str,
    cured: String,
}

/// An upload of 2 MB over 40 Mbit/s with a queue of this size, and these knobs of the hosts.
fn upload(queue: &str, a: &str, b: &str) -> String {
    let link = format!(r#"{{ link = {{ rate = "40Mbit/s", buffer = "{queue}" }} }}"#);
    scenario_text([&link, &link], a, b, r#"bulk = "2MB""#)
}

/// Limits of a queue and of the buffers are distinguished, and the time without each is predicted, at either host.
#[test]
fn the_limit_of_a_transfer_is_fitted_and_can_be_changed() {
    let sender = |space: &str| {
        let knobs =
            format!("\"net.inet.tcp.sendspace\" = \"{space}\", \"net.inet.tcp.sendbuf_auto\" = 0");
        format!("profile = \"freebsd-14.3\"\nknobs = {{ {knobs} }}")
    };
    let small_receiver =
        format!("{LINUX}\nknobs = {{ \"net.ipv4.tcp_rmem\" = [\"4kB\", \"60kB\", \"60kB\"] }}");
    let cases = [
        CuredTransfer {
            limit: upload("10p", LINUX, LINUX),
            cure: "path.forward.link.buffer=200kB",
            cured: upload("200kB", LINUX, LINUX),
        },
        CuredTransfer {
            limit: upload("1MB", &sender("40kB"), LINUX),
            cure: "net.inet.tcp.sendspace=16777216",
            cured: upload("1MB", &sender("16777216B"), LINUX),
        },
        CuredTransfer {
            limit: upload("1MB", LINUX, &small_receiver),
            cure: "tcp_rmem=\"4096 131072 6291456\"",
            cured: upload("1MB", LINUX, LINUX),
        },
    ];
    for CuredTransfer { limit, cure, cured } in cases {
        for host in 0..2 {
            let request = WhatIfRequest { set: vec![cure.to_owned()], ..WhatIfRequest::default() };
            let answer = WhatIf::of(&read_back(&limit, host, true), &request).unwrap();
            let truth = WhatIf::of(&read_back(&cured, host, true), &WhatIfRequest::default());
            let truth = truth.unwrap().recorded.time_s;
            let Alternative { course, prediction, .. } = &answer.alternatives[0];
            assert!(answer.recorded.time_s > truth * 1.1, "{cure}: no limit");
            let (low, high) = match prediction.validity {
                Validity::Figure => (course.time_s, course.time_s),
                Validity::Range => (prediction.low_s, prediction.high_s),
                Validity::None => panic!("{cure}, host {host}: {}", answer.to_text()),
            };
            let is_right = low * 0.9 <= truth && truth <= high * 1.1;
            assert!(is_right, "{cure}, host {host}: {truth:.3} s: {}", answer.to_text());
        }
    }
}

/// What the fit lacks cannot be changed, and says so instead of a figure.
#[test]
fn a_change_of_what_the_path_does_not_have_is_no_figure() {
    let stream = read_back(&upload("10p", LINUX, LINUX), 0, true);
    let set = vec!["path.forward.loss=0%".to_owned()];
    let answer = WhatIf::of(&stream, &WhatIfRequest { set, ..WhatIfRequest::default() }).unwrap();
    let prediction = &answer.alternatives[0].prediction;
    assert_eq!(prediction.validity, Validity::None);
    assert!(prediction.why.contains("a full queue"), "{}", prediction.why);
}

/// Without its SYN a receiver is of the system whose knob is changed.
#[test]
fn a_knob_names_the_system_of_an_unknown_host() {
    let stream = captured(r#"bulk = "2MB""#, "", 0, false);
    for set in ["net.inet.tcp.recvspace=1048576", "tcp_rmem=4096 131072 6291456"] {
        let request = WhatIfRequest { set: vec![set.to_owned()], ..WhatIfRequest::default() };
        let answer = WhatIf::of(&stream, &request).unwrap_or_else(|error| panic!("{set}: {error}"));
        assert_eq!(answer.alternatives.len(), 1);
    }
}

/// A controller alone is tried with the recorded sender's system.
#[test]
fn a_bare_controller_is_compared() {
    let stream = captured(r#"bulk = "2MB""#, "", 0, true);
    let request = WhatIfRequest { compare: vec!["bbr".to_owned()], ..WhatIfRequest::default() };
    assert_eq!(WhatIf::of(&stream, &request).unwrap().alternatives[0].what, "linux-6.18/bbr");
}

/// The cures of a finding, with their gain, of a recording of a real kernel.
#[test]
fn cures_of_a_finding_are_tried() {
    let stream = read(&golden().join("h1_rwnd_cubic/sender.pcap.xz"));
    let of = |stream: &_, code| {
        try_cures(stream, &[], &[TriedFinding { code, kind: "" }], &Workers::one())
    };
    let TriedCures { cures, proof } = of(&stream, "CC401");
    let [cure] = cures.try_into().unwrap();
    let [ProvenCost { least, most, .. }] = proof.costs.try_into().unwrap();
    assert!(least == most && (2.4..2.7).contains(&least.as_secs_f64()), "{least} {most}");
    assert_eq!(cure.set, "net.ipv4.tcp_rmem=\"4096 131072 6291456\"");
    assert_eq!(cure.prediction.validity, Validity::Figure, "{cure:?}");
    assert!((0.7..0.8).contains(&cure.duration_s) && cure.recorded_s > 3.2, "{cure:?}");
    let stream = read(&golden().join("c1_loss1p_rtt2_reno/sender.pcap.xz"));
    let TriedCures { cures, .. } = of(&stream, "CC201");
    let sets: Vec<_> = cures.iter().map(|cure| cure.set.as_str()).collect();
    assert_eq!(sets, ["path.forward.loss=0%", "sender.cc=bbr"]);
    // A saturated path has no cure.
    let TriedCures { cures, proof } = of(&stream, "CC603");
    // The losses are a limit of the fit, whatever was asked.
    let codes: Vec<_> = proof.costs.iter().map(|cost| cost.code).collect();
    assert!(cures.is_empty() && codes == ["CC201"], "{proof:?}");
    assert!(matches!(proof.losses, Some(LossProcess::Single { .. })), "{proof:?}");
}

/// The time without losses is predicted from a capture with random losses, for uploads and
/// downloads, at either host, with the handshake and without.
#[test]
fn a_path_without_its_losses_is_predicted_in_both_directions() {
    let applications = [
        ("upload", r#"bulk = "2MB""#),
        (
            "download",
            r#"requests = { request = "300B", response = "2MB", think = "1s", count = 1 }"#,
        ),
    ];
    let losses = r#"{ loss = "1%", only = "data" }, "#;
    let mut lines = String::new();
    let mut wrong = 0;
    for (name, application) in applications {
        for host in 0..2 {
            for with_syns in [true, false] {
                let stream = captured(application, losses, host, with_syns);
                let set = vec!["path.forward.loss=0%".to_owned()];
                let request = WhatIfRequest { set, ..WhatIfRequest::default() };
                // Without the handshake and without data of the receiver, round trips are not visible there.
                let is_blind = !with_syns && host == usize::from(name == "upload");
                let answer = match WhatIf::of(&stream, &request) {
                    Err(WhatIfError::Fit(FitError::NoRoundTrip)) if is_blind => continue,
                    answer => answer.unwrap_or_else(|error| panic!("{name}, host {host}: {error}")),
                };
                let lossless = captured(application, "", host, with_syns);
                let truth = WhatIf::of(&lossless, &WhatIfRequest::default()).unwrap().recorded;
                let predicted = answer.alternatives[0].course.time_s;
                let off = predicted / truth.time_s - 1.0;
                wrong += u32::from(off.abs() > 0.1 || !answer.licensed);
                lines += &format!(
                    "{name}, host {host}, SYNs {with_syns}: {:.3} s with losses, timing error {:.1} %, \
                     {predicted:.3} s predicted, {:.3} s simulated\n",
                    answer.recorded.time_s,
                    answer.senders[0].misfit * 100.0,
                    truth.time_s
                );
            }
        }
    }
    assert_eq!(wrong, 0, "{lines}");
}

/// Transfers of real hosts with a known time without losses: 1.36 s and 1.09 s
/// (golden/captures/recorded/README.md).
#[test]
fn real_transfers_without_their_losses() {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/captures/recorded/whatif");
    for (name, truth) in [("download", 1.36), ("upload", 1.09)] {
        let mut bytes = Vec::new();
        File::open(place.join(format!("{name}.pcap.xz"))).unwrap().read_to_end(&mut bytes).unwrap();
        let source = InputFile { name: name.into(), bytes: Box::new(bytes.as_slice()) };
        let settings = AnalysisSettings { packets: usize::MAX, turns: MAX_EVENTS };
        let stream = inputs::read(vec![source], settings).unwrap().streams.swap_remove(0);
        let set = vec!["path.forward.loss=0%".to_owned()];
        let answer =
            WhatIf::of(&stream, &WhatIfRequest { set, ..WhatIfRequest::default() }).unwrap();
        let off = answer.alternatives[0].course.time_s / truth - 1.0;
        assert!(answer.licensed && off.abs() <= 0.1, "{off:+.3}: {}", answer.to_text());
    }
}

/// An upload beside one and two others over one link: what another controller of it brings is that of the same
/// transfers run with it, or within the range that chance allows.
#[test]
fn a_transfer_beside_others_of_its_capture_is_predicted() {
    let text = |others: usize, knobs: &str| {
        let mut text = format!(
            r#"
seed = 5
duration = "60s"
[host.a]
{LINUX}
[host.b]
{LINUX}
{knobs}
[[path]]
from = "a"
to = "b"
forward = [{{ link = {{ rate = "20Mbit/s", buffer = "150kB" }} }}, {{ delay = "20ms" }}]
return = [{{ delay = "20ms" }}]
[[flow]]
name = "transfer"
from = "a"
to = "b"
bulk = "4MB"
"#
        );
        for n in 0..others {
            let start = 300 * n;
            text += &format!(
                "[[flow]]\nname = \"other-{n}\"\nfrom = \"a\"\nto = \"b\"\nstart = \"{start}ms\"\nbulk = \"3MB\"\n"
            );
        }
        text
    };
    let read_all = |text: &str| {
        let mut scenario = load(text, "transfers", &Overrides::default()).unwrap().scenario;
        let tap = capture::tap(&mut scenario, 0, TapPoint::Wire);
        let mut seen = PcapngRecorder::new(&scenario, &[tap], "", Vec::new()).unwrap();
        sim::run(&scenario, &mut seen).unwrap();
        let bytes = seen.finish().unwrap();
        let source = InputFile { name: "transfers".into(), bytes: Box::new(bytes.as_slice()) };
        let settings = AnalysisSettings { packets: usize::MAX, turns: MAX_EVENTS };
        inputs::read(vec![source], settings).unwrap().streams
    };
    let cases = [
        // One flow of two or three gets another controller.
        (1, "", "sender.cc=reno", "reno"),
        (2, "", "sender.cc=reno", "reno"),
    ];
    let mut lines = String::new();
    let mut wrong = 0;
    for (others, knobs, set, cc) in cases {
        let recorded = text(others, knobs);
        let (stream, rest) = whatif::selected(read_all(&recorded), Some(0)).unwrap();
        assert_eq!(rest.len(), others);
        let rest: Vec<_> = rest.iter().collect();
        let request = WhatIfRequest { set: vec![set.to_owned()], ..WhatIfRequest::default() };
        let answer = WhatIf::beside(&stream, &rest, &request).unwrap();
        // The cured flow has hosts of its own, so that the others keep their controller.
        let own = recorded
            .replace(
                "[[path]]",
                &format!("[host.c]\n{LINUX}\ncc = \"{cc}\"\n[host.d]\n{LINUX}\n[[path]]"),
            )
            .replacen(
                "from = \"a\"\nto = \"b\"\nbulk = \"4MB\"",
                "from = \"c\"\nto = \"d\"\nbulk = \"4MB\"",
                1,
            );
        let link = r#"{ link = { rate = "20Mbit/s", buffer = "150kB" } }"#;
        let paths = own.replace(link, r#"{ shared = "link" }"#)
            + "[[path]]\nfrom = \"c\"\nto = \"d\"\nforward = [{ shared = \"link\" }, { delay = \"20ms\" }]\nreturn = [{ delay = \"20ms\" }]\n[shared.link]\nlink = { rate = \"20Mbit/s\", buffer = \"150kB\" }\n";
        let truth = {
            let mut scenario = load(&paths, "cured", &Overrides::default()).unwrap().scenario;
            let host = scenario.hosts.iter().position(|host| host.name == "c").unwrap();
            let tap = capture::tap(&mut scenario, host, TapPoint::Wire);
            let mut seen = PcapngRecorder::new(&scenario, &[tap], "", Vec::new()).unwrap();
            sim::run(&scenario, &mut seen).unwrap();
            let bytes = seen.finish().unwrap();
            let source = InputFile { name: "cured".into(), bytes: Box::new(bytes.as_slice()) };
            let settings = AnalysisSettings { packets: usize::MAX, turns: MAX_EVENTS };
            let stream = inputs::read(vec![source], settings).unwrap().streams.swap_remove(0);
            WhatIf::of(&stream, &WhatIfRequest::default()).unwrap().recorded
        };
        let predicted = &answer.alternatives[0];
        let off = predicted.course.time_s / truth.time_s - 1.0;
        let Prediction { validity, low_s, high_s, .. } = predicted.prediction;
        let is_right = match validity {
            Validity::Figure => off.abs() <= 0.1,
            Validity::Range => {
                (low_s * 0.95..=high_s * 1.05).contains(&truth.time_s) && high_s < low_s * 2.0
            }
            Validity::None => false,
        };
        let is_beside = answer.fitted.iter().any(|one| one.why.contains("which are simulated too"));
        let is_near = answer.senders[0].misfit <= 0.02;
        wrong += u32::from(!is_beside || !is_near || !is_right);
        lines += &format!(
            "{others} others, {set}: {:.3} s recorded, misfit {:.1} %, {:.3} s predicted ({low_s:.3} to {high_s:.3}: {}), {:.3} s simulated\n",
            answer.recorded.time_s,
            answer.senders[0].misfit * 100.0,
            predicted.course.time_s,
            predicted.prediction.why,
            truth.time_s
        );
        lines += &answer
            .fitted
            .iter()
            .map(|one| format!("    {}: {}\n", one.what, one.why))
            .collect::<String>();
    }
    assert_eq!(wrong, 0, "{lines}");
}
