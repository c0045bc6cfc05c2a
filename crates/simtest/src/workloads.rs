//! The worlds of the performance measurements: `cargo bench`, `cargo xtask count` and
//! `bench/peers`.
//!
//! Fixed: sender `linux-6.18` with reno, segments of 1448 bytes, timestamps and SACK on, TSO and
//! LRO off, an ACK for every second segment. [`WORKLOADS`] are the five of the published figures;
//! the other functions make series of worlds with one growing parameter.

use net::selection::PacketClass;
use scenario::document::{
    ElementTable, FlowTable, HostTable, LinkTable, PacketRule, PathTable, RawValue, ScenarioFile,
    TransferSize, given, named, tables,
};
use scenario::units_text::BufferSize;
use units::{Bytes, Duration, Rate, Ratio};

/// A workload.
#[derive(Debug, Clone, Copy)]
pub struct Workload {
    /// `W1` to `W5`.
    pub name: &'static str,
    /// Short description.
    pub title: &'static str,
    /// Text of the scenario that runs for this multiple of its usual duration.
    pub scenario: fn(f64) -> String,
    /// Runs of the scenario per measurement.
    pub runs: u32,
    /// Target, in nanoseconds of one core per data segment with its ACKs, recording off.
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
        scenario: |scale| dumbbell(100, GIGABIT, millis(10_000, scale)),
        runs: 1,
        target_ns: Some(350.0),
    },
    Workload {
        name: "W4",
        title: "10,000 flows, dumbbell of 10 Gbit/s, 2 s",
        scenario: |scale| dumbbell(10_000, mbps(10_000), millis(2_000, scale)),
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

const GIGABIT: Rate = mbps(1_000);
const ONE_BDP: BufferSize = BufferSize::Bdp(Ratio::new(1, 1).unwrap());

const fn mbps(n: u64) -> Rate {
    Rate::from_bits_per_second(n * 1_000_000).unwrap()
}

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
    /// One-way delay, in microseconds.
    pub one_way_us: u64,
    /// Buffer of the link.
    pub buffer: BufferSize,
    /// Random loss of data packets, in hundredths of a percent.
    pub loss: u32,
    /// Bytes in flight for which the buffers of both hosts, then both Linux, are sized; 0 for the
    /// default buffers.
    pub flight: u64,
}

impl OneFlow {
    /// The first workload, one minute long.
    pub const W1: Self = Self {
        profile: "linux-6.18",
        cc: "reno",
        millis: 60_000,
        one_way_us: 20_000,
        buffer: ONE_BDP,
        loss: 0,
        flight: 0,
    };
    /// The second workload, ten seconds long.
    pub const W2: Self = Self {
        millis: 10_000,
        one_way_us: 75,
        buffer: BufferSize::Packets(100),
        loss: 100,
        ..Self::W1
    };
}

/// Text of a scenario of one flow over a link of 1 Gbit/s.
pub fn one_flow(flow: &OneFlow) -> String {
    let delay = Duration::from_micros(flow.one_way_us);
    let loss = Ratio::new(flow.loss.into(), 10_000).filter(|_| flow.loss > 0);
    let loss = loss.map(|share| ElementTable {
        loss: given(PacketRule::Share(share)),
        only: given(PacketClass::Data),
        ..ElementTable::default()
    });
    let forward = [link(GIGABIT, flow.buffer), self::delay(delay)];
    let file = ScenarioFile {
        title: given("one flow"),
        duration: given(Duration::from_millis(flow.millis)),
        host: named(hosts("sender", "sink", flow)),
        path: tables([path(
            "sender",
            "sink",
            loss.into_iter().chain(forward),
            [self::delay(delay)],
        )]),
        flow: tables([self::flow("bulk", "sender", "sink", TransferSize::Unlimited)]),
        ..ScenarioFile::default()
    };
    file.to_string()
}

/// A sender and a sink.
fn hosts<'n>(sender: &'n str, sink: &'n str, flow: &OneFlow) -> [(&'n str, HostTable); 2] {
    let OneFlow { profile, cc, flight, .. } = *flow;
    // A packet is charged more than its payload.
    let most = (flight > 0).then_some(4 * flight);
    let room = |name, sizes: [u64; 3]| named([(name, RawValue::from(sizes.map(Bytes).to_vec()))]);
    let sender_room = most.and_then(|most| room("net.ipv4.tcp_wmem", [4 << 10, 16 << 10, most]));
    let sink_room = most.and_then(|most| room("net.ipv4.tcp_rmem", [4 << 10, most, most]));
    let sink_profile = if flight > 0 { profile } else { "rfc" };
    let sending = HostTable {
        profile: given(profile),
        cc: given(cc),
        knobs: sender_room,
        ..HostTable::default()
    };
    let reading =
        HostTable { profile: given(sink_profile), knobs: sink_room, ..HostTable::default() };
    [(sender, sending), (sink, reading)]
}

fn link(rate: Rate, buffer: BufferSize) -> ElementTable {
    let link = LinkTable { rate: given(rate), buffer: given(buffer), ..LinkTable::default() };
    ElementTable { link: given(link), ..ElementTable::default() }
}

fn delay(delay: Duration) -> ElementTable {
    ElementTable { delay: given(delay), ..ElementTable::default() }
}

fn path(
    from: &str,
    to: &str,
    forward: impl IntoIterator<Item = ElementTable>,
    back: impl IntoIterator<Item = ElementTable>,
) -> PathTable {
    PathTable {
        from: given(from),
        to: given(to),
        forward: tables(forward),
        return_: tables(back),
        ..PathTable::default()
    }
}

fn flow(name: &str, from: &str, to: &str, bulk: TransferSize) -> FlowTable {
    FlowTable {
        name: given(name),
        from: given(from),
        to: given(to),
        bulk: given(bulk),
        ..FlowTable::default()
    }
}

fn one_megabyte() -> String {
    let delay = || delay(Duration::from_millis(10));
    let file = ScenarioFile {
        title: given("one megabyte"),
        host: named(hosts("sender", "sink", &OneFlow::W1)),
        path: tables([path("sender", "sink", [link(mbps(100), ONE_BDP), delay()], [delay()])]),
        flow: tables([flow("bulk", "sender", "sink", TransferSize::Bytes(Bytes(1_000_000)))]),
        ..ScenarioFile::default()
    };
    file.to_string()
}

/// Every flow has hosts and access links of its own; all share one link per direction.
pub fn dumbbell(flows: u32, bottleneck: Rate, millis: u64) -> String {
    let access = || link(GIGABIT, BufferSize::Packets(1_000));
    let direction = |shared: &str| {
        let shared = ElementTable { shared: given(shared), ..ElementTable::default() };
        [access(), shared, access(), delay(Duration::from_millis(20))]
    };
    let pairs: Vec<[String; 2]> = (0..flows).map(|n| [format!("a{n}"), format!("b{n}")]).collect();
    let paths = pairs.iter().map(|[a, b]| path(a, b, direction("there"), direction("back")));
    let connections = pairs.iter().zip(0..).map(|([a, b], n)| FlowTable {
        start: given(Duration::from_micros(n * 10)),
        ..flow(&n.to_string(), a, b, TransferSize::Unlimited)
    });
    let file = ScenarioFile {
        title: given("dumbbell"),
        duration: given(Duration::from_millis(millis)),
        host: named(pairs.iter().flat_map(|[a, b]| hosts(a, b, &OneFlow::W1))),
        shared: named(
            ["there", "back"].map(|name| (name, link(bottleneck, BufferSize::Packets(5_000)))),
        ),
        path: tables(paths),
        flow: tables(connections),
        ..ScenarioFile::default()
    };
    file.to_string()
}

/// Many flows between two hosts over one link with 1 Mbit/s per flow and a round trip of 40 ms;
/// they start within the first second.
fn many_flows(flows: u32, millis: u64) -> String {
    let count = u64::from(flows);
    let delay = || delay(Duration::from_millis(20));
    let bottleneck = link(mbps(count), BufferSize::Packets(10 * flows));
    let connections = (0..count).map(|n| FlowTable {
        start: given(Duration::from_micros(n * 1_000_000 / count)),
        ..flow(&n.to_string(), "sender", "sink", TransferSize::Unlimited)
    });
    let file = ScenarioFile {
        title: given("many flows"),
        duration: given(Duration::from_millis(millis)),
        host: named(hosts("sender", "sink", &OneFlow::W1)),
        path: tables([path("sender", "sink", [bottleneck, delay()], [delay()])]),
        flow: tables(connections),
        ..ScenarioFile::default()
    };
    file.to_string()
}

/// A series of worlds with one growing parameter.
#[derive(Debug, Clone)]
pub struct GrowthSeries {
    /// The parameter, one word first.
    pub title: &'static str,
    /// The value in each world, and the text of the world.
    pub worlds: Vec<(String, String)>,
}

/// Parameters that may affect the cost of a segment; worlds last `share` of their usual time.
pub fn growths(share: f64) -> Vec<GrowthSeries> {
    let mut all = Vec::new();
    let mut add = |title, worlds: Vec<(String, String)>| all.push(GrowthSeries { title, worlds });
    let flows = [1_u32, 10, 100, 1_000, 10_000, 100_000].map(|flows| {
        let usual = (3_000_000 / u64::from(flows)).clamp(2_000, 300_000);
        (format!("{flows}"), many_flows(flows, millis(usual, share).max(2_000)))
    });
    add("flows, 1 Mbit/s each", flows.into());
    let flights = [10_u64, 100, 1_000, 10_000, 100_000].map(|flight| {
        // 1 Gbit/s are 83,333 packets per second: 12 us each.
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
        // The largest world takes long to parse.
        let small = growths(0.1).into_iter().flat_map(|growth| growth.worlds);
        texts.extend(small.map(|(_, text)| text).filter(|text| text.len() < 1_000_000));
        for text in texts {
            let loaded = load(&text, "workload", &Overrides::default());
            assert!(loaded.is_ok(), "{}\n{text}", loaded.unwrap_err()[0]);
        }
    }
}
