//! Simulated transfers with one limit each, captured at a host: the fit explains the recorded time, and the time without
//! the limit is a figure within 10 %.

use ackclock_whatif as whatif;
use diagnose::AnalysisSettings;
use diagnose::rules::LossProcess;
use export::capture::{self, PcapngRecorder};
use ingest::diagnosis::Validity;
use ingest::inputs::{self, CapturedConnection, InputFile};
use packet::{Flags, Segment};
use record::{Event, EventSource, Recorder, SenderState};
use runner::workers::Workers;
use scenario::{Overrides, load};
use sim::Observer;
use sim::scenario::TapPoint;
use units::Instant;
use whatif::{Alternative, MAX_EVENTS, WhatIf, WhatIfRequest, try_cures};

/// Largest error of a prediction.
const NEAR: f64 = 0.1;

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

/// A transfer from `a` to `b` over 40 ms.
#[derive(Clone, Copy)]
struct Transfer {
    /// Keys of the hosts.
    hosts: [&'static str; 2],
    /// Elements of both directions.
    forward: &'static str,
    back: &'static str,
    /// Keys of the flow.
    flow: &'static str,
}

const LINUX: &str = r#"profile = "linux-6.18""#;
const FREEBSD: &str = r#"profile = "freebsd-14.3""#;
const LINK: &str = r#"{ link = { rate = "20Mbit/s", buffer = "200kB" } }"#;
const PLAIN: Transfer =
    Transfer { hosts: [LINUX, LINUX], forward: "", back: "", flow: r#"bulk = "2MB""# };

impl Transfer {
    fn text(&self) -> String {
        let Self { hosts: [a, b], forward, back, flow } = self;
        format!(
            "seed = 3\nduration = \"120s\"\n[host.a]\n{a}\n[host.b]\n{b}\n[[path]]\nfrom = \"a\"\nto = \"b\"\n\
             forward = [{forward}{LINK}, {{ delay = \"20ms\" }}]\nreturn = [{back}{{ delay = \"20ms\" }}]\n\
             [[flow]]\nname = \"transfer\"\nfrom = \"a\"\nto = \"b\"\n{flow}\n"
        )
    }

    /// The capture at a host.
    fn captured(&self, host: usize, with_syns: bool) -> CapturedConnection {
        let mut scenario = load(&self.text(), "transfer", &Overrides::default()).unwrap().scenario;
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
}

/// Asks what `set` would gain at this host, and compares with the transfer `cured`, captured there.
fn is_predicted(limited: &Transfer, set: &str, cured: &Transfer, host: usize, with_syns: bool) {
    let request = WhatIfRequest { set: vec![set.to_owned()], ..WhatIfRequest::default() };
    let answer = WhatIf::of(&limited.captured(host, with_syns), &request).unwrap();
    let truth = WhatIf::of(&cured.captured(host, with_syns), &WhatIfRequest::default()).unwrap();
    let truth = truth.recorded.time_s;
    let Alternative { course, prediction, .. } = &answer.alternatives[0];
    assert!(answer.recorded.time_s > truth * 1.1, "{set}: nothing to gain: {}", answer.to_text());
    let text = format!("{set}, host {host}: {truth:.3} s: {}", answer.to_text());
    assert_eq!(prediction.validity, Validity::Figure, "{text}");
    assert!((course.time_s / truth - 1.0).abs() <= NEAR, "{text}");
}

/// The client waits 400 ms before its only request.
#[test]
fn the_wait_before_the_first_message_is_one_of_the_client() {
    let flow = |wait: &str| -> &'static str {
        let steps =
            format!("{{ client = \"300kB\", after = \"{wait}\" }}, {{ server = \"200B\" }}");
        Box::leak(format!("nodelay = true\nexchange = {{ steps = [{steps}] }}").into_boxed_str())
    };
    let limited = Transfer { flow: flow("400ms"), ..PLAIN };
    let cured = Transfer { flow: flow("0ms"), ..PLAIN };
    for host in 0..2 {
        is_predicted(&limited, "application.client_waits=0s", &cured, host, true);
    }
}

/// Two answers to SYNs are lost: the third leaves by a timer of the server.
#[test]
fn answers_to_syns_that_were_lost_are_fitted() {
    let back = r#"{ loss = { packets = [1, 2] }, only = "syn-acks" }, "#;
    let limited = Transfer { back, ..PLAIN };
    for host in 0..2 {
        is_predicted(&limited, "path.opening.loss=0%", &PLAIN, host, true);
    }
}

/// A reader of 4 Mbit/s, whose buffer holds a part of the data at the end.
#[test]
fn a_slow_reader_reads_at_the_rate_that_takes_the_recorded_time() {
    let flow = "bulk = \"2MB\"\nreads = { rate = \"4Mbit/s\", every = \"20ms\" }";
    let limited = Transfer { flow, ..PLAIN };
    for host in 0..2 {
        is_predicted(&limited, "flow.reads.rate=100Gbit/s", &PLAIN, host, true);
    }
}

/// Without its SYN, the field of the receive window has no scale.
#[test]
fn a_window_without_its_scale_is_fitted() {
    let small = "profile = \"freebsd-14.3\"\nknobs = { \"net.inet.tcp.recvspace\" = \"40kB\", \"net.inet.tcp.recvbuf_auto\" = 0 }";
    let limited = Transfer { hosts: [LINUX, small], ..PLAIN };
    let cured = Transfer { hosts: [LINUX, FREEBSD], ..PLAIN };
    is_predicted(&limited, "net.inet.tcp.recvspace=16777216", &cured, 0, false);
}

/// The recorded transfer filled a queue that a shorter one could not have held.
#[test]
fn a_queue_holds_what_the_recorded_transfer_put_into_it() {
    let steps = r#"{ client = "1MB", after = "500ms" }, { server = "200B" }"#;
    let flow: &'static str = Box::leak(
        format!("nodelay = true\nexchange = {{ steps = [{steps}], count = 3 }}").into_boxed_str(),
    );
    let cured = flow.replace("500ms", "0ms");
    let cured = Transfer { flow: Box::leak(cured.into_boxed_str()), ..PLAIN };
    let limited = Transfer { flow, ..PLAIN };
    is_predicted(&limited, "application.client_waits=0s", &cured, 0, true);
}

/// Codes of the limits that no rule named, with the cost that is proven of each in seconds.
fn found(limited: &Transfer, host: usize, with_syns: bool) -> Vec<(&'static str, f64)> {
    let proof = try_cures(&limited.captured(host, with_syns), &[], &[], &Workers::one()).proof;
    let cost =
        |code| proof.costs.iter().find(|cost| cost.code == code).unwrap().least.as_secs_f64();
    proof.found.iter().map(|limit| (limit.code, cost(limit.code))).collect()
}

/// Whatever the fit needs to take the recorded time is named, as a window whose scale was not captured. The transfer alone
/// takes 0.95 s.
#[test]
fn a_limit_that_the_fit_has_is_named() {
    let small = "profile = \"freebsd-14.3\"\nknobs = { \"net.inet.tcp.recvspace\" = \"40kB\", \"net.inet.tcp.recvbuf_auto\" = 0 }";
    let limited = Transfer { hosts: [LINUX, small], ..PLAIN };
    for host in 0..2 {
        let limits = found(&limited, host, false);
        let [(named, cost)] = limits[..] else { panic!("{host}: {limits:?}") };
        assert!(named == "CC401" && (0.8..1.6).contains(&cost), "{host}: {limits:?}");
    }
}

/// Replayed losses take the recorded time better than a simulated bucket, which does not change what dropped them.
#[test]
fn a_policer_that_the_packets_show_is_the_cause() {
    let forward = r#"{ policer = { rate = "5Mbit/s", burst = "20kB" } }, "#;
    let limited = Transfer { forward, ..PLAIN };
    // At the receiver the times of lost packets are not known.
    for host in 0..1 {
        let proof = try_cures(&limited.captured(host, true), &[], &[], &Workers::one()).proof;
        let is_one = matches!(
            proof.losses,
            Some(LossProcess::Policer { rate_bps: 4_700_000..=5_300_000, .. })
        );
        assert!(is_one, "{host}: {:?}", proof.losses);
    }
}

/// An outage of 900 ms, and one of 300.
#[test]
fn a_shorter_outage_is_predicted() {
    let forward = |until: &str| -> &'static str {
        Box::leak(
            format!("{{ outage = {{ from = \"400ms\", until = \"{until}\" }} }}, ")
                .into_boxed_str(),
        )
    };
    let [limited, cured] =
        ["1300ms", "700ms"].map(|until| Transfer { forward: forward(until), ..PLAIN });
    is_predicted(&limited, "path.forward.outage=300ms", &cured, 0, true);
}

/// Fewer losses take less time, more take more; a part that was not fitted cannot be changed.
#[test]
fn the_rate_of_losses_can_be_changed() {
    let forward = r#"{ loss = "1%", only = "data" }, "#;
    let capture = Transfer { forward, ..PLAIN }.captured(0, true);
    let ask = |set: &str| {
        let request = WhatIfRequest { set: vec![set.to_owned()], ..WhatIfRequest::default() };
        WhatIf::of(&capture, &request).unwrap().alternatives.swap_remove(0)
    };
    let time = |rate: &str| ask(&format!("path.forward.loss={rate}")).course.time_s;
    let times = ["0.1%", "1%", "4%"].map(time);
    assert!(times[0] < times[1] && times[1] < times[2], "{times:?}");
    let refused = ask("path.forward.policer.rate=10Mbit/s").prediction;
    assert!(
        refused.validity == Validity::None && refused.why.contains("no policer"),
        "{refused:?}"
    );
}
