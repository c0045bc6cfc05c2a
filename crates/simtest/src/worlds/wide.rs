//! Random worlds as wide as the net, of Linux hosts for comparisons with their kernels.
//!
//! Where those of [`draw`](super::draw) put many rules into few packets, these have the rates, round trips, buffers and
//! durations of real transfers, each drawn by doublings.

use toml::{Table, Value};

use super::random::{WorldRandom, size, span, table};

/// Rates of the bottleneck, in kbit/s: 10^5.5 to 10^9.3 bit/s.
const RATES: core::ops::RangeInclusive<u64> = 316..=1_995_262;
/// Round trips without queues, in microseconds.
const ROUND_TRIPS: core::ops::RangeInclusive<u64> = 200..=1_000_000;
/// Seconds that the data takes at the rate of the bottleneck.
const SECONDS: core::ops::RangeInclusive<u64> = 3..=60;
/// Maximum bytes of a world: 40,000 packets.
const MOST_BYTES: u64 = 40_000 * 1_448;
/// Maximum flows of a world.
const MOST_FLOWS: u64 = 20;

/// The path of a world, and how much it carries.
struct WidePath {
    kbits: u64,
    round_trip_us: u64,
    /// Bytes of all flows.
    bytes: u64,
    /// Seconds that they take at least.
    seconds: u64,
}

/// Returns the world with this number as the text of a scenario: Linux hosts with this profile, each with the `knobs`;
/// a single flow, or up to twenty.
pub fn wide(seed: u64, number: u64, profile: &str, one_flow: bool, knobs: &Table) -> String {
    let mut random = WorldRandom::new(seed, number, "wide path");
    let path = WidePath::drawn(&mut random);
    let mut root = Table::new();
    root.insert("seed".into(), Value::Integer((seed ^ number) as i64 & i64::from(u32::MAX)));
    // Room for losses, opening and the queue.
    let seconds = 3 * path.seconds + 20 + 40 * path.round_trip_us / 1_000_000;
    root.insert("duration".into(), format!("{seconds}s").into());
    let mut hosts = Table::new();
    let mut random = WorldRandom::new(seed, number, "wide hosts");
    for name in ["sender", "receiver"] {
        hosts.insert(name.into(), host(profile, &path, knobs, &mut random));
    }
    root.insert("host".into(), Value::Table(hosts));
    let mut random = WorldRandom::new(seed, number, "wide elements");
    root.insert("path".into(), vec![path.table(&mut random)].into());
    let mut random = WorldRandom::new(seed, number, "wide flows");
    let count = if one_flow { 1 } else { random.magnitude(2..=MOST_FLOWS) };
    let flows: Vec<_> = (0..count).map(|n| flow(n, count, &path, &mut random)).collect();
    root.insert("flow".into(), flows.into());
    root.to_string()
}

impl WidePath {
    fn drawn(random: &mut WorldRandom) -> Self {
        let kbits = random.magnitude(RATES);
        let round_trip_us = random.magnitude(ROUND_TRIPS);
        let seconds = random.magnitude(SECONDS);
        let bytes = (kbits * 125 * seconds).min(MOST_BYTES);
        Self { kbits, round_trip_us, bytes, seconds: bytes.div_ceil(kbits * 125) }
    }

    /// Bytes of one bandwidth-delay product.
    fn product(&self) -> u64 {
        self.kbits * self.round_trip_us / 8_000
    }

    fn table(&self, random: &mut WorldRandom) -> Value {
        let one_way = self.round_trip_us / 2;
        // A delay that is no multiple of a packet's time leaves no two events at one instant.
        let odd = random.within(0..=self.round_trip_us / 20 + 7);
        let mut forward = self.elements(random);
        forward.push(self.link(self.kbits, random));
        forward.push(table([("delay", span(one_way + odd))]));
        // The way back carries ACKs, and now and then data: as fast, or up to 64 times slower.
        let mut back = if random.once_in(4) { self.elements(random) } else { Vec::new() };
        let kbits = if random.once_in(3) { self.kbits / random.within(2..=64) } else { self.kbits };
        back.push(self.link(kbits.max(64), random));
        back.push(table([("delay", span(self.round_trip_us - one_way + 3))]));
        table([
            ("from", "sender".into()),
            ("to", "receiver".into()),
            ("forward", forward.into()),
            ("return", back.into()),
        ])
    }

    fn link(&self, kbits: u64, random: &mut WorldRandom) -> Value {
        let product = self.kbits.max(kbits) * self.round_trip_us / 8_000;
        // A tenth of the product to ten times as much, at least two packets.
        let bytes = (product * random.magnitude(10..=1_000) / 100).clamp(3_100, 400_000_000);
        let buffer = match random.once_in(3) {
            true => format!("{}p", (bytes / 1_500).max(2)).into(),
            false => size(bytes),
        };
        let mut link = Table::new();
        link.insert("rate".into(), format!("{kbits}kbit/s").into());
        link.insert("buffer".into(), buffer);
        if random.once_in(6) {
            let queue = random.pick(&["codel", "fq_codel", "pie"]);
            link.insert("queue".into(), queue.into());
        }
        table([("link", Value::Table(link))])
    }

    /// What else the path does: nothing in half of the worlds.
    fn elements(&self, random: &mut WorldRandom) -> Vec<Value> {
        let mut elements = Vec::new();
        if random.once_in(2) {
            return elements;
        }
        elements.push(match random.within(0..=9) {
            0..=4 => table([("loss", random.share(1..=300))]),
            5 => {
                let p = random.share(1..=100);
                let channel = table([("p", p), ("r", random.share(1_000..=5_000))]);
                table([("loss", table([("gilbert_elliott", channel)]))])
            }
            6 => {
                let by = span(random.magnitude(100..=self.round_trip_us.max(200)));
                table([("reorder", table([("fraction", random.share(1..=100)), ("by", by)]))])
            }
            7 => {
                let rate = format!("{}kbit/s", (self.kbits * random.within(50..=95) / 100).max(64));
                let burst = size((self.product() * random.magnitude(10..=200) / 100).max(15_000));
                table([("policer", table([("rate", rate.into()), ("burst", burst)]))])
            }
            8 => {
                let from = random.magnitude(200..=self.seconds * 1_000);
                let until = from + random.magnitude(20..=2_000);
                let millis = |n: u64| -> Value { format!("{n}ms").into() };
                table([("outage", table([("from", millis(from)), ("until", millis(until))]))])
            }
            _ => table([("jitter", span(random.magnitude(10..=self.round_trip_us / 8 + 20)))]),
        });
        elements
    }
}

fn host(profile: &str, path: &WidePath, knobs: &Table, random: &mut WorldRandom) -> Value {
    let mut host = Table::new();
    host.insert("profile".into(), profile.into());
    host.insert("cc".into(), random.pick(&["cubic", "cubic", "reno", "bbr"]).into());
    host.insert("tso".into(), Value::Boolean(!random.once_in(3)));
    host.insert("gro".into(), Value::Boolean(!random.once_in(3)));
    if random.once_in(3) {
        host.insert("interrupt_moderation".into(), span(random.magnitude(5..=200)));
    }
    host.insert("clock_phase".into(), span(random.within(0..=3_999)));
    let mut knobs = knobs.clone();
    // The sysctls that people set.
    if random.once_in(2) {
        let most = (path.product() * random.magnitude(1..=8)).clamp(262_144, 16_777_216);
        let sizes = ["4KiB".into(), "128KiB".into(), size(most)];
        knobs.insert("net.ipv4.tcp_rmem".into(), sizes.to_vec().into());
    }
    if random.once_in(3) {
        let most = (path.product() * random.magnitude(1..=8)).clamp(131_072, 16_777_216);
        let sizes = ["4KiB".into(), "16KiB".into(), size(most)];
        knobs.insert("net.ipv4.tcp_wmem".into(), sizes.to_vec().into());
    }
    if random.once_in(8) {
        knobs.insert("net.ipv4.tcp_notsent_lowat".into(), random.count(16_384..=262_144));
    }
    for (name, one_in, value) in [
        ("net.ipv4.tcp_slow_start_after_idle", 6, Value::Boolean(false)),
        ("net.ipv4.tcp_sack", 10, Value::Boolean(false)),
        ("net.ipv4.tcp_timestamps", 8, Value::Boolean(false)),
        ("net.ipv4.tcp_ecn", 6, Value::Integer(1)),
    ] {
        if random.once_in(one_in) {
            knobs.insert(name.into(), value);
        }
    }
    host.insert("knobs".into(), Value::Table(knobs));
    Value::Table(host)
}

fn flow(n: u64, count: u64, path: &WidePath, random: &mut WorldRandom) -> Value {
    let mut flow = Table::new();
    flow.insert("name".into(), format!("flow-{n}").into());
    let back = n > 0 && random.once_in(4);
    let ends = if back { ["receiver", "sender"] } else { ["sender", "receiver"] };
    flow.insert("from".into(), ends[0].into());
    flow.insert("to".into(), ends[1].into());
    if n > 0 {
        flow.insert("start".into(), span(random.magnitude(100..=path.seconds * 500_000)));
    }
    let bytes = (path.bytes / count).max(3_000);
    let (app, what) = match random.within(0..=9) {
        0 => {
            let requests = random.magnitude(2..=40);
            let response = size((bytes / requests).max(500));
            let mut keys = table([("request", random.size(100..=4_000)), ("response", response)]);
            if let Value::Table(keys) = &mut keys {
                keys.insert("count".into(), Value::Integer(requests as i64));
                if random.once_in(2) {
                    keys.insert("think".into(), span(random.magnitude(1_000..=500_000)));
                }
            }
            ("requests", keys)
        }
        1 => {
            let bursts = random.magnitude(2..=20);
            let off = span(random.magnitude(10_000..=2_000_000));
            let on = size((bytes / bursts).max(500));
            ("on_off", table([("on", on), ("off", off), ("bytes", size(bytes))]))
        }
        _ => ("bulk", size(bytes)),
    };
    flow.insert(app.into(), what);
    Value::Table(flow)
}
