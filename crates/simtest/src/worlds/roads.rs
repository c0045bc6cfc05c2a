//! Roads by chance: elements of every kind in any order.

use toml::{Table, Value};

use super::luck::{Luck, size, span, table};

/// What is common to the roads of a world.
pub(super) struct Climate {
    /// The kinds of elements that occur. Few at a time meet more often than all at once
    /// (swarm testing: Groce et al., ISSTA 2012).
    kinds: Vec<Kind>,
    /// One world in eight has losses that no transfer need survive.
    wild: bool,
    /// IP bytes of the largest packet of any host: a smaller bucket never lets it pass.
    largest: u64,
}

/// Draws an element of one kind.
type Kind = fn(&Climate, &mut Luck) -> Value;

const KINDS: [Kind; 16] = [
    Climate::delay,
    Climate::delay,
    Climate::link,
    Climate::managed_link,
    Climate::jitter,
    Climate::loss,
    Climate::duplicate,
    Climate::corrupt,
    Climate::reverse,
    Climate::displace,
    Climate::swap,
    Climate::late,
    Climate::thin,
    Climate::outage,
    Climate::policer,
    Climate::shaper,
];

impl Climate {
    pub(super) fn draw(largest: u64, luck: &mut Luck) -> Self {
        let mut kinds = KINDS.to_vec();
        // Always some delay, so that a connection has a round trip to speak of.
        let rare = luck.within(1..=6);
        kinds.retain(|_| luck.once_in(rare));
        kinds.push(Self::delay);
        kinds.push(Self::link);
        Self { kinds, wild: luck.once_in(8), largest }
    }

    /// An element of any kind; `shared` ones cannot be sized by the delays of a path.
    pub(super) fn element(&self, luck: &mut Luck) -> Value {
        let kind = luck.pick(&self.kinds);
        kind(self, luck)
    }

    /// One road, through some of the shared elements.
    pub(super) fn road(&self, shared: &[&str], luck: &mut Luck) -> Vec<Value> {
        let length = luck.pick(&[0, 1, 2, 2, 3, 3, 4, 6]);
        let mut road: Vec<Value> = (0..length).map(|_| self.element(luck)).collect();
        for name in shared {
            if luck.once_in(2) {
                let place = luck.within(0..=road.len() as u64) as usize;
                road.insert(place, table([("shared", Value::from(*name))]));
            }
        }
        road
    }

    /// Writes the buffers of some queues as multiples of rate and round trip, on a path that has
    /// a delay to count with.
    pub(super) fn size_by_round_trip(&self, road: &mut [Value], luck: &mut Luck) {
        for element in road {
            let Some(element) = element.as_table_mut() else { continue };
            for (_, keys) in element.iter_mut() {
                let buffer = keys.as_table_mut().and_then(|keys| keys.get_mut("buffer"));
                if let Some(buffer) = buffer.filter(|_| luck.once_in(4)) {
                    *buffer = luck.pick(&["0.5bdp", "1bdp", "4bdp"]).into();
                }
            }
        }
    }

    fn delay(&self, luck: &mut Luck) -> Value {
        table([("delay", if luck.once_in(8) { span(0) } else { luck.span(1..=100_000) })])
    }

    fn jitter(&self, luck: &mut Luck) -> Value {
        table([("jitter", luck.span(1..=20_000))])
    }

    fn link(&self, luck: &mut Luck) -> Value {
        let buffer = self.buffer(luck);
        table([("link", table([("rate", luck.rate(500..=40_000_000)), ("buffer", buffer)]))])
    }

    fn managed_link(&self, luck: &mut Luck) -> Value {
        let (rate, buffer, queue) = (luck.rate(500..=1_000_000), self.buffer(luck), queue(luck));
        if luck.once_in(4) {
            let trace = luck.pick(&["preset:lte-down", "preset:lte-up"]).into();
            return table([("link", table([("trace", trace), ("buffer", buffer)]))]);
        }
        table([("link", table([("rate", rate), ("buffer", buffer), ("queue", queue)]))])
    }

    fn buffer(&self, luck: &mut Luck) -> Value {
        if luck.once_in(2) {
            return luck.size(1_000..=10_000_000);
        }
        let unit = luck.pick(&["p", "packets", "mss"]);
        format!("{}{unit}", luck.magnitude(1..=1_000)).into()
    }

    fn loss(&self, luck: &mut Luck) -> Value {
        self.chosen("loss", luck)
    }

    fn duplicate(&self, luck: &mut Luck) -> Value {
        self.chosen("duplicate", luck)
    }

    fn corrupt(&self, luck: &mut Luck) -> Value {
        self.chosen("corrupt", luck)
    }

    fn chosen(&self, kind: &str, luck: &mut Luck) -> Value {
        if luck.once_in(6) {
            // Bare ACKs carry no bytes.
            return table([(kind, self.bytes(luck))]);
        }
        let rule = self.rule(luck);
        concerning(luck, kind, rule)
    }

    /// Which packets something happens to.
    fn rule(&self, luck: &mut Luck) -> Value {
        let most = if self.wild { 6_000 } else { 800 };
        match luck.within(0..=4) {
            0 => luck.share(1..=most),
            1 => table([("every", luck.count(if self.wild { 1 } else { 12 }..=200))]),
            2 => table([("pass", luck.count(if self.wild { 1 } else { 12 }..=200))]),
            3 => {
                // The first packets of a connection are the interesting ones.
                let number = |luck: &mut Luck| luck.magnitude(1..=64) as i64;
                let mut packets = [0; 4].map(|_: i64| number(luck)).to_vec();
                packets.truncate(luck.within(1..=4) as usize);
                packets.sort_unstable();
                packets.dedup();
                table([("packets", packets.into())])
            }
            _ => table([("gilbert_elliott", self.channel(luck))]),
        }
    }

    /// Packets that begin in a range of bytes, up to a few at the beginning of a stream.
    fn bytes(&self, luck: &mut Luck) -> Value {
        let from = luck.pick(&[0, 1]) * luck.magnitude(1..=100_000);
        let until = from + luck.magnitude(1..=20_000);
        let mut keys = Table::new();
        keys.insert("bytes".into(), format!("{from}B..{until}B").into());
        if luck.once_in(2) {
            keys.insert("times".into(), luck.count(1..=if self.wild { 16 } else { 3 }));
        }
        Value::Table(keys)
    }

    fn channel(&self, luck: &mut Luck) -> Value {
        let mut keys = Table::new();
        keys.insert("p".into(), luck.share(1..=1_000));
        let least = if self.wild { 500 } else { 7_000 };
        keys.insert("r".into(), luck.share(least..=10_000));
        if luck.once_in(2) {
            keys.insert("h".into(), luck.share(1_000..=9_000));
        }
        if luck.once_in(4) {
            keys.insert("k".into(), luck.share(9_000..=10_000));
        }
        Value::Table(keys)
    }

    fn reverse(&self, luck: &mut Luck) -> Value {
        let mut keys = Table::new();
        keys.insert("reverse".into(), luck.count(2..=16));
        if luck.once_in(2) {
            keys.insert("gap".into(), luck.span(1..=20_000));
        }
        if luck.once_in(2) {
            keys.insert("timeout".into(), luck.span(1..=5_000));
        }
        concerning(luck, "reorder", Value::Table(keys))
    }

    fn displace(&self, luck: &mut Luck) -> Value {
        let places = luck.count(1..=12);
        self.late_by("displace", places, luck)
    }

    fn late(&self, luck: &mut Luck) -> Value {
        let by = luck.span(1..=200_000);
        self.late_by("by", by, luck)
    }

    fn late_by(&self, key: &str, value: Value, luck: &mut Luck) -> Value {
        let mut keys = Table::new();
        keys.insert(key.into(), value);
        match luck.once_in(2) {
            true => keys.insert("fraction".into(), luck.share(10..=3_000)),
            false => keys.insert("every".into(), luck.count(2..=100)),
        };
        if key == "displace" && luck.once_in(2) {
            keys.insert("timeout".into(), luck.span(1..=50_000));
        }
        concerning(luck, "reorder", Value::Table(keys))
    }

    fn swap(&self, luck: &mut Luck) -> Value {
        let swap = table([("swap", luck.share(10..=5_000))]);
        concerning(luck, "reorder", swap)
    }

    fn thin(&self, luck: &mut Luck) -> Value {
        let mut keys = Table::new();
        keys.insert("segments".into(), luck.count(1..=32));
        keys.insert("timeout".into(), luck.span(1..=20_000));
        if luck.once_in(3) {
            keys.insert("mss".into(), luck.size(100..=9_000));
        }
        table([("thin", Value::Table(keys))])
    }

    fn outage(&self, luck: &mut Luck) -> Value {
        let from = luck.magnitude(1..=2_000_000);
        let until = from + luck.magnitude(1..=if self.wild { 200_000_000 } else { 2_000_000 });
        let mut keys = Table::new();
        keys.insert("from".into(), span(from));
        keys.insert("until".into(), span(until));
        if luck.once_in(2) {
            keys.insert("hold".into(), true.into());
        }
        table([("outage", Value::Table(keys))])
    }

    fn burst(&self, luck: &mut Luck) -> Value {
        size(self.largest * luck.magnitude(1..=64))
    }

    fn policer(&self, luck: &mut Luck) -> Value {
        let burst = self.burst(luck);
        table([("policer", table([("rate", luck.rate(500..=1_000_000)), ("burst", burst)]))])
    }

    fn shaper(&self, luck: &mut Luck) -> Value {
        let (burst, buffer) = (self.burst(luck), self.buffer(luck));
        let keys = [("rate", luck.rate(500..=1_000_000)), ("burst", burst), ("buffer", buffer)];
        table([("shaper", table(keys))])
    }
}

/// An element of a kind that may concern only some packets.
fn concerning(luck: &mut Luck, kind: &str, value: Value) -> Value {
    let mut keys = Table::new();
    keys.insert(kind.to_owned(), value);
    if luck.once_in(2) {
        keys.insert("only".into(), luck.pick(&["data", "acks"]).into());
    }
    Value::Table(keys)
}

/// A discipline with its own settings, or others: short times make it busy.
fn queue(luck: &mut Luck) -> Value {
    let name = luck.pick(&["codel", "fq_codel", "pie", "red"]);
    if luck.once_in(3) {
        return name.into();
    }
    let mut keys = Table::new();
    let mut maybe = |luck: &mut Luck, key: &str, value: Value| {
        if luck.once_in(2) {
            keys.insert(key.to_owned(), value);
        }
    };
    let (target, interval) = (luck.span(1..=20_000), luck.span(1..=200_000));
    let ecn = luck.once_in(2).into();
    maybe(luck, "ecn", ecn);
    match name {
        "codel" | "fq_codel" => {
            maybe(luck, "target", target);
            maybe(luck, "interval", interval);
        }
        "pie" => {
            maybe(luck, "target", target);
            maybe(luck, "burst", interval);
            let update = luck.span(1_000..=50_000);
            maybe(luck, "update", update);
        }
        _ => {
            let (min, probability) = (luck.count(1..=5), luck.share(100..=10_000));
            maybe(luck, "min", min);
            let (max, weight) = (luck.count(6..=50), luck.share(1..=10_000));
            maybe(luck, "max", max);
            maybe(luck, "weight", weight);
            maybe(luck, "probability", probability);
            let gentle = luck.once_in(2).into();
            maybe(luck, "gentle", gentle);
        }
    }
    if name == "fq_codel" {
        let (quantum, flows) = (luck.size(100..=10_000), luck.count(1..=64));
        maybe(luck, "quantum", quantum);
        maybe(luck, "flows", flows);
    }
    table([(name, Value::Table(keys))])
}
