//! Random hosts: any system, controller, card and knob.

use cc::registry;
use tcp::knobs::{self, Knob, KnobKind};
use tcp::profile::{Family, TcpProfile};
use toml::{Table, Value};
use units::{Bytes, Duration};

use super::flows::SHORTEST_SILENCE;
use super::random::{WorldRandom, size, span, table};

/// Minimum MTU for QUIC: 1,200 bytes and the headers of UDP and IPv4 (RFC 9000 section 14).
const QUIC_MTU: u64 = 1_228;
/// Minimum MTU for IPv6 (RFC 8200 section 5).
const IPV6_MTU: u64 = 1_280;

const BUFFER: u64 = 2_000_000;
/// Knobs of the machines on which kernels were recorded. With their coarse clock a packet leaves after the event that
/// sent it, which the laws of packets do not allow; recorded transfers test them.
pub(super) const OF_GUESTS: [&str; 2] = ["driver.clock_step", "driver.recorder"];
/// Systems drawn. Half the hosts of Linux 6.12 become 6.1, so that worlds drawn before there was 6.1 remain.
const SYSTEMS: [&str; 9] = [
    "freebsd-13.0",
    "freebsd-13.2",
    "freebsd-14.3",
    "freebsd-main",
    "freebsd-rack-14.3",
    "freebsd-rack-main",
    "linux-6.12",
    "linux-6.18",
    "rfc",
];

/// A host, and the properties that paths and flows depend on.
pub(super) struct DrawnHost {
    pub(super) name: &'static str,
    pub(super) keys: Table,
    /// IP bytes of its largest packet.
    pub(super) mtu: u64,
}

impl DrawnHost {
    pub(super) fn draw(name: &'static str, random_source: &mut WorldRandom) -> Self {
        let system = random_source.pick(&SYSTEMS);
        let mut keys = Table::new();
        keys.insert("profile".into(), system.into());
        let mut machine = Self { name, keys, mtu: 1_500 };
        let Some(profile) = TcpProfile::named(system) else { return machine };
        machine.mtu = u64::from(profile.mtu);
        if random_source.once_in(3) {
            machine.set("cc", random_source.pick(&controllers(&profile)).into());
        }
        machine.interface(random_source);
        machine.card(profile.family, random_source);
        machine.clocks(random_source);
        let mut set = Table::new();
        // Buffers of a few segments close windows.
        let (rare, largest) =
            random_source.pick(&[(2, 8_192), (2, BUFFER), (8, BUFFER), (20, BUFFER)]);
        for knob in knobs::of(&profile).filter(|knob| !OF_GUESTS.contains(&knob.name)) {
            if random_source.once_in(rare)
                && let Some(value) = setting(knob, &profile, largest, random_source)
            {
                set.insert(knob.name.to_owned(), value);
            }
        }
        if !set.is_empty() {
            machine.set("knobs", Value::Table(set));
        }
        if system == "linux-6.12" && machine.keys.len().is_multiple_of(2) {
            machine.set("profile", "linux-6.1".into());
        }
        machine
    }

    /// Draws a QUIC host.
    pub(super) fn draw_quic(name: &'static str, random_source: &mut WorldRandom) -> Self {
        let mut keys = Table::new();
        let profile = random_source.pick(&quic_profiles());
        keys.insert("profile".into(), profile.into());
        let own = quic::QuicProfile::named(profile);
        let mtu = own.as_ref().map_or(1_500, |own| u64::from(own.mtu));
        // A sender that stays below the window sends nothing into one of a single datagram.
        let below = own.is_some_and(|own| own.send == quic::profile::SendRule::Below);
        let least = if below { 2 } else { 1 };
        let mut machine = Self { name, keys, mtu };
        if random_source.once_in(3) {
            let offered: Vec<&str> = quic::CongestionControl::names().collect();
            machine.set("cc", random_source.pick(&offered).into());
        }
        if random_source.once_in(3) {
            let other = random_source.magnitude(QUIC_MTU..=9_216);
            machine.mtu = random_source.pick(&[QUIC_MTU, IPV6_MTU, 1_492, 9_000, other]);
            machine.set("mtu", format!("{}B", machine.mtu).into());
        }
        if random_source.once_in(2) {
            machine.set("delay", random_source.span(1..=300_000));
        }
        // It merges only TCP.
        machine.card(Family::Rfc, random_source);
        let mut set = Table::new();
        let (rare, largest) =
            random_source.pick(&[(2, 8_192), (2, BUFFER), (8, BUFFER), (20, BUFFER)]);
        for knob in quic::knobs::KNOBS {
            if random_source.once_in(rare) {
                set.insert(
                    knob.name.to_owned(),
                    quic_setting(knob, (least, largest), random_source),
                );
            }
        }
        if !set.is_empty() {
            machine.set("knobs", Value::Table(set));
        }
        machine
    }

    pub(super) const fn takes_ipv6(&self) -> bool {
        self.mtu >= IPV6_MTU
    }

    fn set(&mut self, key: &str, value: Value) {
        self.keys.insert(key.to_owned(), value);
    }

    fn interface(&mut self, random_source: &mut WorldRandom) {
        if random_source.once_in(3) {
            let other = random_source.magnitude(576..=9_216);
            self.mtu = random_source.pick(&[576, IPV6_MTU, 1_492, 9_000, other]);
            self.set("mtu", format!("{}B", self.mtu).into());
        }
        if random_source.once_in(2) {
            // Slow readers let windows close.
            self.set("delay", random_source.span(1..=300_000));
        }
    }

    fn card(&mut self, family: Family, random_source: &mut WorldRandom) {
        if random_source.once_in(2) {
            self.set("tso", true.into());
        }
        let lro = match family {
            Family::FreeBsd => true,
            Family::Linux => false,
            // The RFC profile takes either.
            Family::Rfc => random_source.once_in(2),
        };
        if random_source.once_in(2) {
            let (key, params) =
                if lro { ("lro", lro_table(random_source)) } else { ("gro", gro(random_source)) };
            self.set(key, if random_source.once_in(2) { true.into() } else { params });
        }
        if random_source.once_in(4) {
            self.set("rx_budget", random_source.count(1..=64));
        }
        if random_source.once_in(8) {
            self.set("interrupt_moderation", random_source.span(1..=1_000));
        }
    }

    fn clocks(&mut self, random_source: &mut WorldRandom) {
        if random_source.once_in(2) {
            self.set("clock_phase", random_source.span(1..=10_000));
        }
        // So near the wrap that a small transfer wraps around.
        for key in ["isn", "timestamp"] {
            if random_source.once_in(3) {
                let before = random_source.magnitude(1..=100_000);
                self.set(key, Value::Integer((1 << 32) - before as i64));
            }
        }
    }
}

/// Names of the controllers that the system accepts.
fn controllers(profile: &TcpProfile) -> Vec<&'static str> {
    let takes = |name: &&str| profile.algorithm(name).is_ok();
    registry::NAMES.into_iter().filter(takes).collect()
}

/// The profiles of QUIC that random worlds draw.
pub(super) fn quic_profiles() -> Vec<&'static str> {
    quic::profile::NAMES.to_vec()
}

/// Draws a subset of the entries, each with probability 1/2.
fn some_of<const N: usize>(random_source: &mut WorldRandom, entries: [(&str, Value); N]) -> Value {
    let Value::Table(mut all) = table(entries) else { return Value::Table(Table::new()) };
    all.retain(|_, _| random_source.once_in(2));
    Value::Table(all)
}

fn lro_table(random_source: &mut WorldRandom) -> Value {
    let entries = [
        ("ack_limit", random_source.count(1..=64)),
        ("length_limit", random_source.size(1..=65_535)),
        ("counts_pure_acks", random_source.once_in(2).into()),
        ("entries", random_source.count(1..=4)),
        ("rss_hash", rss_hash(random_source)),
        ("flush", random_source.span(1..=1_000)),
    ];
    some_of(random_source, entries)
}

/// Draws a valid or invalid hash rule.
fn rss_hash(random_source: &mut WorldRandom) -> Value {
    let constant = table([("constant", random_source.count(1..=u64::from(u32::MAX)))]);
    let decreasing = table([("decreasing", random_source.count(1..=64))]);
    random_source.pick(&["flow".into(), "random".into(), constant, decreasing])
}

fn gro(random_source: &mut WorldRandom) -> Value {
    let entries = [
        ("max_size", random_source.size(1..=262_144)),
        ("max_packets", random_source.count(1..=64)),
        ("ends_at_push", random_source.once_in(2).into()),
        ("same_timestamps", random_source.once_in(2).into()),
        ("flush", random_source.span(1..=1_000)),
    ];
    some_of(random_source, entries)
}

/// Returns a value that the system accepts for the knob, if a few draws find one.
fn setting(
    knob: &Knob,
    profile: &TcpProfile,
    largest: u64,
    random_source: &mut WorldRandom,
) -> Option<Value> {
    (0..4).find_map(|_| {
        let (value, text) = value(knob, largest, random_source);
        knob.set(&mut profile.clone(), value).ok().map(|()| text)
    })
}

/// Draws a value of a QUIC knob, with a window of at least `least` datagrams and at most `largest` bytes of a size.
fn quic_setting(
    knob: &quic::knobs::QuicKnob,
    (least, largest): (u64, u64),
    random_source: &mut WorldRandom,
) -> Value {
    use quic::knobs::QuicKnobKind;
    match knob.kind() {
        QuicKnobKind::Switch => random_source.once_in(2).into(),
        QuicKnobKind::Size => random_source.size(2_048..=largest),
        QuicKnobKind::Time => match knob.name {
            // Ten probes that start with a shorter one are exhausted before a slow line answers.
            "kInitialRtt" => random_source.span(20_000..=1_000_000),
            _ => random_source.span(100..=1_000_000),
        },
        QuicKnobKind::Count => match knob.name {
            "time_threshold_eighths" => random_source.pick(&[0, 1, 8, 9, 16, 800]).into(),
            "kPacketThreshold" => random_source.pick(&[1, 2, 3, 10, 100]).into(),
            "loss_reduction_percent" => random_source.count(1..=100),
            "minimum_window" => random_source.count(least..=16),
            "initial_window" => random_source.count(least..=100),
            "max_ack_ranges" => random_source.pick(&[1, 2, 32, 1_024]).into(),
            name if name.starts_with("pacing_gain") => {
                random_source.pick(&[25, 100, 120, 200, 1_000]).into()
            }
            _ => random_source.pick(&[1, 2, 3, 10, 100]).into(),
        },
    }
}

fn value(knob: &Knob, largest: u64, random_source: &mut WorldRandom) -> (knobs::KnobValue, Value) {
    match knob.kind() {
        KnobKind::Count => {
            let other = random_source.magnitude(1..=1_000);
            let n = match knob.name {
                // A connection that aborts early does not survive the faults.
                name if name.contains("retries") => random_source.within(6..=20),
                name if name.ends_with("linear_timeouts") => random_source.within(0..=4),
                _ => random_source.pick(&[0, 1, 2, 3, 10, 100, 250, other]),
            };
            (knobs::KnobValue::Count(n), Value::Integer(n as i64))
        }
        KnobKind::Switch => {
            let on = random_source.once_in(2);
            (knobs::KnobValue::Switch(on), on.into())
        }
        KnobKind::Size => {
            let bytes = match knob.name {
                // A packet that takes more than the buffer leaves a window of a few bytes.
                "driver.truesize" => random_source.within(512..=4_096),
                _ => random_source.magnitude(2_048..=largest),
            };
            (knobs::KnobValue::Size(Bytes(bytes)), size(bytes))
        }
        KnobKind::Time => {
            let millis = match knob.name {
                // With a timeout that stays short a connection aborts before the faults are over.
                name if name.ends_with("maxrto") => random_source.within(4_000..=60_000),
                name if name.contains("keep") => {
                    random_source.magnitude(SHORTEST_SILENCE / 1_000..=1_000)
                }
                _ => random_source.magnitude(1..=1_000),
            };
            (knobs::KnobValue::Time(Duration::from_millis(millis)), span(1_000 * millis))
        }
        KnobKind::Sizes => {
            let mut sizes = [0; 3].map(|_: u64| random_source.magnitude(2_048..=largest));
            sizes.sort_unstable();
            let text = sizes.map(size).to_vec();
            (knobs::KnobValue::Sizes(sizes.map(Bytes)), text.into())
        }
    }
}
