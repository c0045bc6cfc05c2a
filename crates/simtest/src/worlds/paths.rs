//! Random paths: elements of every kind in any order.

use toml::{Table, Value};

use super::random::{WorldRandom, size, span, table};

/// Parameters common to all paths of a world.
pub(super) struct PathGenerator {
    /// Kinds of elements in use. A subset makes combinations more frequent than all at once (swarm
    /// testing: Groce et al., ISSTA 2012).
    kinds: Vec<ElementGenerator>,
    /// Whether faults may exceed what a transfer survives: one world in eight.
    heavy_faults: bool,
    /// IP bytes of the largest packet of any host: a smaller bucket would block it.
    largest: u64,
}

/// Draws an element of one kind.
type ElementGenerator = fn(&PathGenerator, &mut WorldRandom) -> Value;

const KINDS: [ElementGenerator; 16] = [
    PathGenerator::delay,
    PathGenerator::delay,
    PathGenerator::link,
    PathGenerator::managed_link,
    PathGenerator::jitter,
    PathGenerator::loss,
    PathGenerator::duplicate,
    PathGenerator::corrupt,
    PathGenerator::reverse,
    PathGenerator::displace,
    PathGenerator::swap,
    PathGenerator::late,
    PathGenerator::thin,
    PathGenerator::outage,
    PathGenerator::policer,
    PathGenerator::shaper,
];

impl PathGenerator {
    pub(super) fn draw(largest: u64, random_source: &mut WorldRandom) -> Self {
        let mut kinds = KINDS.to_vec();
        // Always some delay, so that a connection has a round-trip time.
        let rare = random_source.within(1..=6);
        kinds.retain(|_| random_source.once_in(rare));
        kinds.push(Self::delay);
        kinds.push(Self::link);
        Self { kinds, heavy_faults: random_source.once_in(8), largest }
    }

    /// Draws an element of any kind; `shared` ones cannot be sized by the delays of a path.
    pub(super) fn element(&self, random_source: &mut WorldRandom) -> Value {
        let kind = random_source.pick(&self.kinds);
        kind(self, random_source)
    }

    /// Draws one direction, through some of the shared elements.
    pub(super) fn route(&self, shared: &[&str], random_source: &mut WorldRandom) -> Vec<Value> {
        let length = random_source.pick(&[0, 1, 2, 2, 3, 3, 4, 6]);
        let mut route: Vec<Value> = (0..length).map(|_| self.element(random_source)).collect();
        for name in shared {
            if random_source.once_in(2) {
                let place = random_source.within(0..=route.len() as u64) as usize;
                route.insert(place, table([("shared", Value::from(*name))]));
            }
        }
        route
    }

    /// Writes the buffers of some queues as multiples of the BDP, on a path that has a delay.
    pub(super) fn size_by_round_trip(&self, route: &mut [Value], random_source: &mut WorldRandom) {
        for element in route {
            let Some(element) = element.as_table_mut() else { continue };
            for (_, keys) in element.iter_mut() {
                let buffer = keys.as_table_mut().and_then(|keys| keys.get_mut("buffer"));
                if let Some(buffer) = buffer.filter(|_| random_source.once_in(4)) {
                    *buffer = random_source.pick(&["0.5bdp", "1bdp", "4bdp"]).into();
                }
            }
        }
    }

    fn delay(&self, random_source: &mut WorldRandom) -> Value {
        table([(
            "delay",
            if random_source.once_in(8) { span(0) } else { random_source.span(1..=100_000) },
        )])
    }

    fn jitter(&self, random_source: &mut WorldRandom) -> Value {
        table([("jitter", random_source.span(1..=20_000))])
    }

    fn link(&self, random_source: &mut WorldRandom) -> Value {
        let buffer = self.buffer(random_source);
        table([(
            "link",
            table([("rate", random_source.rate(500..=40_000_000)), ("buffer", buffer)]),
        )])
    }

    fn managed_link(&self, random_source: &mut WorldRandom) -> Value {
        let (rate, buffer, queue) =
            (random_source.rate(500..=1_000_000), self.buffer(random_source), queue(random_source));
        if random_source.once_in(4) {
            let trace = random_source.pick(&["preset:lte-down", "preset:lte-up"]).into();
            return table([("link", table([("trace", trace), ("buffer", buffer)]))]);
        }
        table([("link", table([("rate", rate), ("buffer", buffer), ("queue", queue)]))])
    }

    fn buffer(&self, random_source: &mut WorldRandom) -> Value {
        if random_source.once_in(2) {
            return random_source.size(1_000..=10_000_000);
        }
        let unit = random_source.pick(&["p", "packets", "mss"]);
        format!("{}{unit}", random_source.magnitude(1..=1_000)).into()
    }

    fn loss(&self, random_source: &mut WorldRandom) -> Value {
        self.chosen("loss", random_source)
    }

    fn duplicate(&self, random_source: &mut WorldRandom) -> Value {
        self.chosen("duplicate", random_source)
    }

    fn corrupt(&self, random_source: &mut WorldRandom) -> Value {
        self.chosen("corrupt", random_source)
    }

    fn chosen(&self, kind: &str, random_source: &mut WorldRandom) -> Value {
        if random_source.once_in(6) {
            // Pure ACKs carry no bytes.
            return table([(kind, self.bytes(random_source))]);
        }
        let rule = self.rule(random_source);
        with_class(random_source, kind, rule)
    }

    /// Draws a rule that selects packets.
    fn rule(&self, random_source: &mut WorldRandom) -> Value {
        let most = if self.heavy_faults { 6_000 } else { 800 };
        match random_source.within(0..=4) {
            0 => random_source.share(1..=most),
            1 => table([(
                "every",
                random_source.count(if self.heavy_faults { 1 } else { 12 }..=200),
            )]),
            2 => {
                table([("pass", random_source.count(if self.heavy_faults { 1 } else { 12 }..=200))])
            }
            3 => {
                // The first packets of a connection are the most interesting.
                let number =
                    |random_source: &mut WorldRandom| random_source.magnitude(1..=64) as i64;
                let mut packets = [0; 4].map(|_: i64| number(random_source)).to_vec();
                packets.truncate(random_source.within(1..=4) as usize);
                packets.sort_unstable();
                packets.dedup();
                table([("packets", packets.into())])
            }
            _ => table([("gilbert_elliott", self.channel(random_source))]),
        }
    }

    /// Draws a range of bytes near the start of a stream.
    fn bytes(&self, random_source: &mut WorldRandom) -> Value {
        let from = random_source.pick(&[0, 1]) * random_source.magnitude(1..=100_000);
        let until = from + random_source.magnitude(1..=20_000);
        let mut keys = Table::new();
        keys.insert("bytes".into(), format!("{from}B..{until}B").into());
        if random_source.once_in(2) {
            keys.insert(
                "times".into(),
                random_source.count(1..=if self.heavy_faults { 16 } else { 3 }),
            );
        }
        Value::Table(keys)
    }

    fn channel(&self, random_source: &mut WorldRandom) -> Value {
        let mut keys = Table::new();
        keys.insert("p".into(), random_source.share(1..=1_000));
        let least = if self.heavy_faults { 500 } else { 7_000 };
        keys.insert("r".into(), random_source.share(least..=10_000));
        if random_source.once_in(2) {
            keys.insert("h".into(), random_source.share(1_000..=9_000));
        }
        if random_source.once_in(4) {
            keys.insert("k".into(), random_source.share(9_000..=10_000));
        }
        Value::Table(keys)
    }

    fn reverse(&self, random_source: &mut WorldRandom) -> Value {
        let mut keys = Table::new();
        keys.insert("reverse".into(), random_source.count(2..=16));
        if random_source.once_in(2) {
            keys.insert("gap".into(), random_source.span(1..=20_000));
        }
        if random_source.once_in(2) {
            keys.insert("timeout".into(), random_source.span(1..=5_000));
        }
        with_class(random_source, "reorder", Value::Table(keys))
    }

    fn displace(&self, random_source: &mut WorldRandom) -> Value {
        let places = random_source.count(1..=12);
        self.late_by("displace", places, random_source)
    }

    fn late(&self, random_source: &mut WorldRandom) -> Value {
        let by = random_source.span(1..=200_000);
        self.late_by("by", by, random_source)
    }

    fn late_by(&self, key: &str, value: Value, random_source: &mut WorldRandom) -> Value {
        let mut keys = Table::new();
        keys.insert(key.into(), value);
        match random_source.once_in(2) {
            true => keys.insert("fraction".into(), random_source.share(10..=3_000)),
            false => keys.insert("every".into(), random_source.count(2..=100)),
        };
        if key == "displace" && random_source.once_in(2) {
            keys.insert("timeout".into(), random_source.span(1..=50_000));
        }
        with_class(random_source, "reorder", Value::Table(keys))
    }

    fn swap(&self, random_source: &mut WorldRandom) -> Value {
        let swap = table([("swap", random_source.share(10..=5_000))]);
        with_class(random_source, "reorder", swap)
    }

    fn thin(&self, random_source: &mut WorldRandom) -> Value {
        let mut keys = Table::new();
        keys.insert("segments".into(), random_source.count(1..=32));
        keys.insert("timeout".into(), random_source.span(1..=20_000));
        if random_source.once_in(3) {
            keys.insert("mss".into(), random_source.size(100..=9_000));
        }
        table([("thin", Value::Table(keys))])
    }

    fn outage(&self, random_source: &mut WorldRandom) -> Value {
        let from = random_source.magnitude(1..=2_000_000);
        let until = from
            + random_source.magnitude(1..=if self.heavy_faults { 200_000_000 } else { 2_000_000 });
        let mut keys = Table::new();
        keys.insert("from".into(), span(from));
        keys.insert("until".into(), span(until));
        if random_source.once_in(2) {
            keys.insert("hold".into(), true.into());
        }
        table([("outage", Value::Table(keys))])
    }

    fn burst(&self, random_source: &mut WorldRandom) -> Value {
        size(self.largest * random_source.magnitude(1..=64))
    }

    fn policer(&self, random_source: &mut WorldRandom) -> Value {
        let burst = self.burst(random_source);
        table([(
            "policer",
            table([("rate", random_source.rate(500..=1_000_000)), ("burst", burst)]),
        )])
    }

    fn shaper(&self, random_source: &mut WorldRandom) -> Value {
        let (burst, buffer) = (self.burst(random_source), self.buffer(random_source));
        let mut keys = Table::new();
        keys.insert("rate".into(), random_source.rate(500..=1_000_000));
        keys.insert("buffer".into(), buffer);
        if random_source.once_in(3) {
            // The bucket holds a packet in cells of 48 bytes.
            let burst = self.largest * random_source.magnitude(2..=64) + 1_000;
            keys.insert("burst".into(), size(burst));
            for (key, value) in [("header", 14), ("mpu", 64), ("cell", 48), ("cell_overhead", 5)] {
                if random_source.once_in(2) {
                    keys.insert(key.into(), value.into());
                }
            }
        } else {
            keys.insert("burst".into(), burst);
        }
        table([("shaper", Value::Table(keys))])
    }
}

/// Creates an element that may be limited to a class of packets.
fn with_class(random_source: &mut WorldRandom, kind: &str, value: Value) -> Value {
    let mut keys = Table::new();
    keys.insert(kind.to_owned(), value);
    if random_source.once_in(2) {
        keys.insert("only".into(), random_source.pick(&["data", "acks"]).into());
    }
    Value::Table(keys)
}

/// Draws a queue discipline with default or other parameters: short times make it active.
fn queue(random_source: &mut WorldRandom) -> Value {
    let name = random_source.pick(&["codel", "fq_codel", "pie", "red"]);
    if random_source.once_in(3) {
        return name.into();
    }
    let mut keys = Table::new();
    let mut maybe = |random_source: &mut WorldRandom, key: &str, value: Value| {
        if random_source.once_in(2) {
            keys.insert(key.to_owned(), value);
        }
    };
    let (target, interval) = (random_source.span(1..=20_000), random_source.span(1..=200_000));
    let ecn = random_source.once_in(2).into();
    maybe(random_source, "ecn", ecn);
    match name {
        "codel" | "fq_codel" => {
            maybe(random_source, "target", target);
            maybe(random_source, "interval", interval);
        }
        "pie" => {
            maybe(random_source, "target", target);
            maybe(random_source, "burst", interval);
            let update = random_source.span(1_000..=50_000);
            maybe(random_source, "update", update);
        }
        _ => {
            let (min, probability) =
                (random_source.count(1..=5), random_source.share(100..=10_000));
            maybe(random_source, "min", min);
            let (max, weight) = (random_source.count(6..=50), random_source.share(1..=10_000));
            maybe(random_source, "max", max);
            maybe(random_source, "weight", weight);
            maybe(random_source, "probability", probability);
            let gentle = random_source.once_in(2).into();
            maybe(random_source, "gentle", gentle);
        }
    }
    if name == "fq_codel" {
        let (quantum, flows) = (random_source.size(100..=10_000), random_source.count(1..=64));
        maybe(random_source, "quantum", quantum);
        maybe(random_source, "flows", flows);
    }
    table([(name, Value::Table(keys))])
}
