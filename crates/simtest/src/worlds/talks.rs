//! Flows by chance: every application, small transfers.

use toml::{Table, Value};

use super::luck::{Luck, size, span, table};

/// Silence of a connection, in microseconds, before and between probes: shorter ones add nothing
/// but millions of probes while a lossy transfer crawls along.
pub(super) const SHORTEST_SILENCE: u64 = 50_000;

/// Draws the key of an application and what it holds. An `endless` one writes until the run ends.
pub(super) fn application(endless: bool, luck: &mut Luck) -> (&'static str, Value) {
    match luck.within(0..=5) {
        0 => paced(endless, luck),
        1 => on_off(endless, luck),
        2 => requests(endless, luck),
        _ if endless => ("bulk", "unlimited".into()),
        _ => ("bulk", size(volume(luck))),
    }
}

/// Bytes of one write call. It follows from the flow's number: a draw would change all worlds.
pub(super) fn write_size(number: u64) -> &'static str {
    ["64KiB", "1448B", "256KiB", "3kB"][(number / 2 % 4) as usize]
}

/// How the listening side reads.
pub(super) fn reads(luck: &mut Luck) -> Value {
    let mut keys = Table::new();
    match luck.once_in(2) {
        true => keys.insert("chunk".into(), luck.size(100..=100_000)),
        false => keys.insert("rate".into(), luck.rate(100..=1_000_000)),
    };
    // Only a rate has an interval of its own.
    if keys.contains_key("chunk") || luck.once_in(2) {
        keys.insert("every".into(), luck.span(1_000..=100_000));
    }
    Value::Table(keys)
}

/// Probes of a silent peer: with the times of the hosts, with long ones, or with some so short
/// that a peer which is slow to answer is given up.
pub(super) fn keepalive(luck: &mut Luck) -> Value {
    if luck.once_in(2) {
        return true.into();
    }
    let longest = luck.pick(&[1_000_000, 4_000_000_000]);
    let mut keys = Table::new();
    keys.insert("idle".into(), luck.span(SHORTEST_SILENCE..=longest));
    if luck.once_in(2) {
        keys.insert("interval".into(), luck.span(SHORTEST_SILENCE..=longest));
    }
    if luck.once_in(2) {
        keys.insert("count".into(), luck.count(1..=127));
    }
    Value::Table(keys)
}

/// From nothing to a thousand packets; most of them few.
fn volume(luck: &mut Luck) -> u64 {
    match luck.within(0..=15) {
        0 => 0,
        1..=5 => luck.within(1..=5_000),
        6..=14 => luck.magnitude(1_000..=300_000),
        _ => luck.magnitude(200_000..=2_000_000),
    }
}

fn paced(endless: bool, luck: &mut Luck) -> (&'static str, Value) {
    let chunk = luck.magnitude(1..=20_000);
    let mut keys = Table::new();
    keys.insert("chunk".into(), size(chunk));
    keys.insert("every".into(), luck.span(1..=100_000));
    if !endless {
        let chunks = luck.pick(&[1, 10, 100]);
        keys.insert("bytes".into(), size(luck.within(0..=chunks * chunk)));
    }
    ("paced", Value::Table(keys))
}

fn on_off(endless: bool, luck: &mut Luck) -> (&'static str, Value) {
    let on = luck.magnitude(1..=50_000);
    let mut keys = Table::new();
    keys.insert("on".into(), if luck.once_in(3) { luck.span(1..=50_000) } else { size(on) });
    let off = luck.magnitude(1..=1_000_000);
    let least = luck.within(0..=off);
    let between = table([("least", span(least)), ("most", span(off))]);
    keys.insert("off".into(), if luck.once_in(2) { between } else { span(off) });
    if !endless {
        keys.insert("bytes".into(), size(luck.within(0..=10 * on)));
    }
    ("on_off", Value::Table(keys))
}

fn requests(endless: bool, luck: &mut Luck) -> (&'static str, Value) {
    let mut keys = Table::new();
    keys.insert("request".into(), luck.size(1..=5_000));
    keys.insert("response".into(), luck.size(1..=50_000));
    if luck.once_in(2) {
        keys.insert("think".into(), luck.span(1..=100_000));
    }
    if !endless {
        keys.insert("count".into(), luck.count(1..=16));
    }
    ("requests", Value::Table(keys))
}
