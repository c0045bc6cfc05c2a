//! Simulated transfers with one limit each, captured at a host: the fit explains the recorded time, and the time without
//! the limit is a figure within 10 %.

use ackclock_whatif as whatif;
use diagnose::AnalysisSettings;
use export::capture::{self, PcapngRecorder};
use ingest::diagnosis::Validity;
use ingest::inputs::{self, CapturedConnection, InputFile};
use packet::{Flags, Segment};
use record::{Event, EventSource, Recorder, SenderState};
use scenario::{Overrides, load};
use sim::Observer;
use sim::scenario::TapPoint;
use units::Instant;
use whatif::{Alternative, MAX_EVENTS, WhatIf, WhatIfRequest};

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
