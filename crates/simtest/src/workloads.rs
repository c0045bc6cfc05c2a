//! The worlds that speed is measured on: `cargo bench`, `cargo xtask count` and `bench/peers`.
//!
//! Pinned: sender `linux-6.18` with reno, segments of 1448 bytes, timestamps and SACK on, TSO and
//! LRO off, an ACK for every second segment. [`WORKLOADS`] are the five that speed figures are about;
//! the other functions make worlds of which one measure grows.

use core::fmt::Write as _;

/// A workload.
#[derive(Debug, Clone, Copy)]
pub struct Workload {
    /// `W1` to `W5`.
    pub name: &'static str,
    /// What it is, in a few words.
    pub title: &'static str,
    /// Text of the scenario that runs for so many times its usual duration.
    pub scenario: fn(f64) -> String,
    /// Runs of the scenario that one measurement consists of.
    pub runs: u32,
    /// What is aimed at, in nanoseconds of one core for a data segment with its ACKs, recording off.
    pub target_ns: Option<f64>,
}

/// The five workloads.
pub const WORKLOADS: &[Workload] = &[
    Workload {
        name: "W1",
        title: "1 flow, 1 Gbit/s, 40 ms, 1 BDP, 60 s",
        scenario: |scale| one_flow(&OneFlow { millis: millis(60_000, scale), ..OneFlow::W1 }),
        runs: 1,
        target_ns: Some(100.0),
    },
    Workload {
        name: "W2",
        title: "1 flow, 1 Gbit/s, 0.15 ms, 1 % random loss, 10 s",
        scenario: |scale| one_flow(&OneFlow { millis: millis(10_000, scale), ..OneFlow::W2 }),
        runs: 1,
        target_ns: Some(120.0),
    },
    Workload {
        name: "W3",
        title: "100 flows, dumbbell of 1 Gbit/s, 10 s",
        scenario: |scale| dumbbell(100, "1Gbit/s", millis(10_000, scale)),
        runs: 1,
        target_ns: Some(350.0),
    },
    Workload {
        name: "W4",
        title: "10,000 flows, dumbbell of 10 Gbit/s, 2 s",
        scenario: |scale| dumbbell(10_000, "10Gbit/s", millis(2_000, scale)),
        runs: 1,
        target_ns: Some(600.0),
    },
    Workload {
        name: "W5",
        title: "1,000 runs of 1 MB, 100 Mbit/s, 20 ms",
        scenario: |_| one_megabyte(),
        runs: 1_000,
        target_ns: None,
    },
];

fn millis(usual: u64, scale: f64) -> u64 {
    (usual as f64 * scale) as u64
}

/// One flow over one link.
#[derive(Debug, Clone, Copy)]
pub struct OneFlow {
    /// System of the sender.
    pub profile: &'static str,
    /// Its congestion control.
    pub cc: &'static str,
    /// Virtual time.
    pub millis: u64,
    /// Delay of either way, in microseconds.
    pub one_way_us: u64,
    /// Room in front of the link, as a scenario says it.
    pub buffer: &'static str,
    /// Data packets lost at random, in hundredths of a percent.
    pub loss: u32,
    /// Bytes under way for which the buffers of both hosts, then of Linux, have room; 0 for the usual
    /// buffers.
    pub flight: u64,
}

impl OneFlow {
    /// The first workload, of a minute.
    pub const W1: Self = Self {
        profile: "linux-6.18",
        cc: "reno",
        millis: 60_000,
        one_way_us: 20_000,
        buffer: "1bdp",
        loss: 0,
        flight: 0,
    };
    /// The second one, of ten seconds.
    pub const W2: Self =
        Self { millis: 10_000, one_way_us: 75, buffer: "100p", loss: 100, ..Self::W1 };
}

/// Text of a scenario of one flow over a link of 1 Gbit/s.
pub fn one_flow(flow: &OneFlow) -> String {
    let OneFlow { millis, one_way_us, buffer, .. } = flow;
    let loss = match flow.loss {
        0 => String::new(),
        parts => format!("{{ loss = \"{}.{:02}%\", only = \"data\" }}, ", parts / 100, parts % 100),
    };
    let mut text = format!("title = \"one flow\"\nduration = \"{millis}ms\"\n");
    text += &hosts("sender", "sink", flow);
    let _ = write!(
        text,
        r#"
[[path]]
from = "sender"
to = "sink"
forward = [{loss}{{ link = {{ rate = "1Gbit/s", buffer = "{buffer}" }} }}, {{ delay = "{one_way_us}us" }}]
return = [{{ delay = "{one_way_us}us" }}]

[[flow]]
name = "bulk"
from = "sender"
to = "sink"
bulk = "unlimited"
"#
    );
    text
}

/// A sender and a sink.
fn hosts(sender: &str, sink: &str, flow: &OneFlow) -> String {
    let OneFlow { profile, cc, flight, .. } = flow;
    let (sink_profile, most) = if *flight > 0 { (*profile, 4 * flight) } else { ("rfc", 0) };
    let mut text = format!("\n[host.{sender}]\nprofile = \"{profile}\"\ncc = \"{cc}\"\n");
    if most > 0 {
        // A packet costs its host more than its payload.
        let _ = writeln!(text, "knobs.\"net.ipv4.tcp_wmem\" = [\"4KiB\", \"16KiB\", \"{most}B\"]");
    }
    let _ = write!(text, "\n[host.{sink}]\nprofile = \"{sink_profile}\"\n");
    if most > 0 {
        let _ =
            writeln!(text, "knobs.\"net.ipv4.tcp_rmem\" = [\"4KiB\", \"{most}B\", \"{most}B\"]");
    }
    text
}

fn one_megabyte() -> String {
    let mut text = "title = \"one megabyte\"\n".to_owned();
    text += &hosts("sender", "sink", &OneFlow::W1);
    text += r#"
[[path]]
from = "sender"
to = "sink"
forward = [{ link = { rate = "100Mbit/s", buffer = "1bdp" } }, { delay = "10ms" }]
return = [{ delay = "10ms" }]

[[flow]]
name = "bulk"
from = "sender"
to = "sink"
bulk = "1MB"
"#;
    text
}

/// Every flow has hosts and access links of its own, both ways; all share one link each way.
pub fn dumbbell(flows: u32, bottleneck: &str, millis: u64) -> String {
    let mut text = format!("title = \"dumbbell\"\nduration = \"{millis}ms\"\n\n");
    for name in ["there", "back"] {
        let _ = write!(
            text,
            "[shared.{name}]\nlink = {{ rate = \"{bottleneck}\", buffer = \"5000p\" }}\n\n"
        );
    }
    let link = r#"{ link = { rate = "1Gbit/s", buffer = "1000p" } }"#;
    for n in 0..flows {
        text += &hosts(&format!("a{n}"), &format!("b{n}"), &OneFlow::W1);
        let _ = write!(
            text,
            r#"
[[path]]
from = "a{n}"
to = "b{n}"
forward = [{link}, {{ shared = "there" }}, {link}, {{ delay = "20ms" }}]
return = [{link}, {{ shared = "back" }}, {link}, {{ delay = "20ms" }}]

[[flow]]
name = "{n}"
from = "a{n}"
to = "b{n}"
start = "{}us"
bulk = "unlimited"
"#,
            u64::from(n) * 10
        );
    }
    text
}

/// Many flows between two hosts over one link that gives each of them 1 Mbit/s, 40 ms away; they
/// begin within the first second.
fn many_flows(flows: u32, millis: u64) -> String {
    let mut text = format!("title = \"many flows\"\nduration = \"{millis}ms\"\n");
    text += &hosts("sender", "sink", &OneFlow::W1);
    let _ = write!(
        text,
        r#"
[[path]]
from = "sender"
to = "sink"
forward = [{{ link = {{ rate = "{flows}Mbit/s", buffer = "{}p" }} }}, {{ delay = "20ms" }}]
return = [{{ delay = "20ms" }}]
"#,
        10 * u64::from(flows)
    );
    for n in 0..u64::from(flows) {
        let start = n * 1_000_000 / u64::from(flows);
        let _ = write!(
            text,
            "\n[[flow]]\nname = \"{n}\"\nfrom = \"sender\"\nto = \"sink\"\nstart = \"{start}us\"\n\
             bulk = \"unlimited\"\n"
        );
    }
    text
}

/// Worlds of which one measure grows.
#[derive(Debug, Clone)]
pub struct Growth {
    /// What grows, one word first.
    pub title: &'static str,
    /// How far it has grown in each world, and the text of that.
    pub worlds: Vec<(String, String)>,
}

/// What the cost of a segment may grow with; worlds last `share` of their usual time.
pub fn growths(share: f64) -> Vec<Growth> {
    let mut all = Vec::new();
    let mut add = |title, worlds: Vec<(String, String)>| all.push(Growth { title, worlds });
    let flows = [1_u32, 10, 100, 1_000, 10_000, 100_000].map(|flows| {
        let usual = (3_000_000 / u64::from(flows)).clamp(2_000, 300_000);
        (format!("{flows}"), many_flows(flows, millis(usual, share).max(2_000)))
    });
    add("flows, 1 Mbit/s each", flows.into());
    let flights = [10_u64, 100, 1_000, 10_000, 100_000].map(|flight| {
        // 1 Gbit/s are 83,333 packets a second: 12 us each.
        let one_way_us = flight * 12 / 2;
        let millis = millis((flight * 12 * 60 / 1_000).max(10_000), share);
        let room = (2 * flight * 1_448).max(1 << 20);
        let flow = OneFlow { millis, one_way_us, flight: room, ..OneFlow::W1 };
        (format!("{flight}"), one_flow(&flow))
    });
    add("flight (BDP), segments", flights.into());
    let losses = [0_u32, 1, 10, 100, 300, 1_000].map(|loss| {
        let label = format!("{}.{:02} %", loss / 100, loss % 100);
        let millis = millis(OneFlow::W2.millis, share);
        (label, one_flow(&OneFlow { millis, loss, ..OneFlow::W2 }))
    });
    add("loss at random", losses.into());
    let durations = [1_u64, 10, 60, 600].map(|seconds| {
        let flow = OneFlow { millis: millis(1_000 * seconds, share), ..OneFlow::W1 };
        (format!("{seconds}"), one_flow(&flow))
    });
    add("duration (W1), s", durations.into());
    let senders = [
        ("linux-6.18", "reno"),
        ("linux-6.18", "cubic"),
        ("freebsd-14.3", "newreno"),
        ("freebsd-14.3", "cubic"),
        ("freebsd-rack-14.3", "newreno"),
        ("rfc", "newreno"),
    ];
    let senders = senders.map(|(profile, cc)| {
        let flow = OneFlow { profile, cc, millis: millis(10_000, share), ..OneFlow::W1 };
        (format!("{profile} {cc}"), one_flow(&flow))
    });
    add("sender (W1, 10 s)", senders.into());
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use scenario::{Overrides, load};

    #[test]
    fn every_workload_is_a_scenario() {
        let mut texts: Vec<String> =
            WORKLOADS.iter().map(|workload| (workload.scenario)(0.1)).collect();
        // The largest one takes long to read.
        let small = growths(0.1).into_iter().flat_map(|growth| growth.worlds);
        texts.extend(small.map(|(_, text)| text).filter(|text| text.len() < 1_000_000));
        for text in texts {
            let loaded = load(&text, "workload", &Overrides::default());
            assert!(loaded.is_ok(), "{}\n{text}", loaded.unwrap_err()[0]);
        }
    }
}
