//! Hosts by chance: any system, any controller, any card, any knob.

use cc::registry;
use tcp::knobs::{self, Kind, Knob};
use tcp::profile::{Family, NAMES, Profile};
use toml::{Table, Value};
use units::{Bytes, Duration};

use super::luck::{Luck, size, span, table};
use super::talks::SHORTEST_SILENCE;

/// The smallest packet that QUIC needs: 1,200 bytes and the headers of UDP and IPv4 (RFC 9000
/// section 14).
const QUIC_MTU: u64 = 1_228;
/// The smallest packet that IPv6 must be able to send (RFC 8200 section 5).
const IPV6_MTU: u64 = 1_280;

const BUFFER: u64 = 2_000_000;

/// A host, and what paths and flows must know of it.
pub(super) struct Machine {
    pub(super) name: &'static str,
    pub(super) keys: Table,
    /// IP bytes of its largest packet.
    pub(super) mtu: u64,
}

impl Machine {
    pub(super) fn draw(name: &'static str, luck: &mut Luck) -> Self {
        let system = luck.pick(&NAMES);
        let mut keys = Table::new();
        keys.insert("profile".into(), system.into());
        let mut machine = Self { name, keys, mtu: 1_500 };
        let Some(profile) = Profile::named(system) else { return machine };
        machine.mtu = u64::from(profile.mtu);
        if luck.once_in(3) {
            machine.set("cc", luck.pick(&controllers(&profile)).into());
        }
        machine.interface(luck);
        machine.card(profile.family, luck);
        machine.clocks(luck);
        let mut set = Table::new();
        // Buffers of a few segments close windows.
        let (rare, largest) = luck.pick(&[(2, 8_192), (2, BUFFER), (8, BUFFER), (20, BUFFER)]);
        for knob in knobs::of(&profile) {
            if luck.once_in(rare)
                && let Some(value) = setting(knob, &profile, largest, luck)
            {
                set.insert(knob.name.to_owned(), value);
            }
        }
        if !set.is_empty() {
            machine.set("knobs", Value::Table(set));
        }
        machine
    }

    /// A host with QUIC.
    pub(super) fn draw_quic(name: &'static str, luck: &mut Luck) -> Self {
        let mut keys = Table::new();
        let profile = luck.pick(&quic::profile::NAMES);
        keys.insert("profile".into(), profile.into());
        let mut machine = Self { name, keys, mtu: 1_500 };
        if luck.once_in(3) {
            let offered: Vec<&str> = quic::CongestionControl::names().collect();
            machine.set("cc", luck.pick(&offered).into());
        }
        if luck.once_in(3) {
            let other = luck.magnitude(QUIC_MTU..=9_216);
            machine.mtu = luck.pick(&[QUIC_MTU, IPV6_MTU, 1_492, 9_000, other]);
            machine.set("mtu", format!("{}B", machine.mtu).into());
        }
        if luck.once_in(2) {
            machine.set("delay", luck.span(1..=300_000));
        }
        // Merges nothing that is not TCP.
        machine.card(Family::Rfc, luck);
        let mut set = Table::new();
        let (rare, largest) = luck.pick(&[(2, 8_192), (2, BUFFER), (8, BUFFER), (20, BUFFER)]);
        for knob in quic::knobs::KNOBS {
            if luck.once_in(rare) {
                set.insert(knob.name.to_owned(), quic_setting(knob, largest, luck));
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

    fn interface(&mut self, luck: &mut Luck) {
        if luck.once_in(3) {
            let other = luck.magnitude(576..=9_216);
            self.mtu = luck.pick(&[576, IPV6_MTU, 1_492, 9_000, other]);
            self.set("mtu", format!("{}B", self.mtu).into());
        }
        if luck.once_in(2) {
            // Slow readers let windows close.
            self.set("delay", luck.span(1..=300_000));
        }
    }

    fn card(&mut self, family: Family, luck: &mut Luck) {
        if luck.once_in(2) {
            self.set("tso", true.into());
        }
        let lro = match family {
            Family::FreeBsd => true,
            Family::Linux => false,
            // The textbook takes either.
            Family::Rfc => luck.once_in(2),
        };
        if luck.once_in(2) {
            let (key, params) = if lro { ("lro", lro_table(luck)) } else { ("gro", gro(luck)) };
            self.set(key, if luck.once_in(2) { true.into() } else { params });
        }
        if luck.once_in(4) {
            self.set("rx_budget", luck.count(1..=64));
        }
        if luck.once_in(8) {
            self.set("interrupt_moderation", luck.span(1..=1_000));
        }
    }

    fn clocks(&mut self, luck: &mut Luck) {
        if luck.once_in(2) {
            self.set("clock_phase", luck.span(1..=10_000));
        }
        // So near the end of the numbers that a small transfer comes round.
        for key in ["isn", "timestamp"] {
            if luck.once_in(3) {
                let before = luck.magnitude(1..=100_000);
                self.set(key, Value::Integer((1 << 32) - before as i64));
            }
        }
    }
}

/// Names of the controllers that the system takes.
fn controllers(profile: &Profile) -> Vec<&'static str> {
    let takes = |name: &&str| profile.algorithm(name).is_ok();
    registry::NAMES.into_iter().filter(takes).collect()
}

/// Each limit in one table of two.
fn some_of<const N: usize>(luck: &mut Luck, entries: [(&str, Value); N]) -> Value {
    let Value::Table(mut all) = table(entries) else { return Value::Table(Table::new()) };
    all.retain(|_, _| luck.once_in(2));
    Value::Table(all)
}

fn lro_table(luck: &mut Luck) -> Value {
    let entries = [
        ("ack_limit", luck.count(1..=64)),
        ("length_limit", luck.size(1..=65_535)),
        ("counts_pure_acks", luck.once_in(2).into()),
        ("entries", luck.count(1..=4)),
        ("rss_hash", rss_hash(luck)),
        ("flush", luck.span(1..=1_000)),
    ];
    some_of(luck, entries)
}

/// Good or bad.
fn rss_hash(luck: &mut Luck) -> Value {
    let constant = table([("constant", luck.count(1..=u64::from(u32::MAX)))]);
    let decreasing = table([("decreasing", luck.count(1..=64))]);
    luck.pick(&["flow".into(), "random".into(), constant, decreasing])
}

fn gro(luck: &mut Luck) -> Value {
    let entries = [
        ("max_size", luck.size(1..=262_144)),
        ("max_packets", luck.count(1..=64)),
        ("ends_at_push", luck.once_in(2).into()),
        ("same_timestamps", luck.once_in(2).into()),
        ("flush", luck.span(1..=1_000)),
    ];
    some_of(luck, entries)
}

/// A value that the system takes for the knob, if a few draws find one.
fn setting(knob: &Knob, profile: &Profile, largest: u64, luck: &mut Luck) -> Option<Value> {
    (0..4).find_map(|_| {
        let (value, text) = value(knob, largest, luck);
        knob.set(&mut profile.clone(), value).ok().map(|()| text)
    })
}

/// A value of a knob of QUIC.
fn quic_setting(knob: &quic::knobs::Knob, largest: u64, luck: &mut Luck) -> Value {
    use quic::knobs::Kind;
    match knob.kind() {
        Kind::Switch => luck.once_in(2).into(),
        Kind::Size => luck.size(2_048..=largest),
        Kind::Time => match knob.name {
            // Ten probes that begin with a shorter one are over before a slow line answers.
            "kInitialRtt" => luck.span(20_000..=1_000_000),
            _ => luck.span(100..=1_000_000),
        },
        Kind::Count => match knob.name {
            "time_threshold_eighths" => luck.pick(&[0, 1, 8, 9, 16, 800]).into(),
            "kPacketThreshold" => luck.pick(&[1, 2, 3, 10, 100]).into(),
            "loss_reduction_percent" => luck.count(1..=100),
            "minimum_window" => luck.count(1..=16),
            "initial_window" => luck.count(1..=100),
            "max_ack_ranges" => luck.pick(&[1, 2, 32, 1_024]).into(),
            _ => luck.pick(&[1, 2, 3, 10, 100]).into(),
        },
    }
}

fn value(knob: &Knob, largest: u64, luck: &mut Luck) -> (knobs::Value, Value) {
    match knob.kind() {
        Kind::Count => {
            let other = luck.magnitude(1..=1_000);
            let n = match knob.name {
                // Who gives up early does not outlast the faults.
                name if name.contains("retries") => luck.within(6..=20),
                name if name.ends_with("linear_timeouts") => luck.within(0..=4),
                _ => luck.pick(&[0, 1, 2, 3, 10, 100, 250, other]),
            };
            (knobs::Value::Count(n), Value::Integer(n as i64))
        }
        Kind::Switch => {
            let on = luck.once_in(2);
            (knobs::Value::Switch(on), on.into())
        }
        Kind::Size => {
            let bytes = luck.magnitude(2_048..=largest);
            (knobs::Value::Size(Bytes(bytes)), size(bytes))
        }
        Kind::Time => {
            let millis = match knob.name {
                // A timeout that stays short gives a connection up before the faults are over.
                name if name.ends_with("maxrto") => luck.within(4_000..=60_000),
                name if name.contains("keep") => luck.magnitude(SHORTEST_SILENCE / 1_000..=1_000),
                _ => luck.magnitude(1..=1_000),
            };
            (knobs::Value::Time(Duration::from_millis(millis)), span(1_000 * millis))
        }
        Kind::Sizes => {
            let mut sizes = [0; 3].map(|_: u64| luck.magnitude(2_048..=largest));
            sizes.sort_unstable();
            let text = sizes.map(size).to_vec();
            (knobs::Value::Sizes(sizes.map(Bytes)), text.into())
        }
    }
}
