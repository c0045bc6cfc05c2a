//! Random flows: every application, small transfers.

use toml::{Table, Value};

use super::random::{WorldRandom, size, span, table};

/// Minimum keepalive idle time and interval, in microseconds: shorter ones only add millions of
/// probes to a slow, lossy transfer.
pub(super) const SHORTEST_SILENCE: u64 = 50_000;

/// Draws the key of an application and its value. An `endless` one writes until the run ends.
pub(super) fn application(endless: bool, random_source: &mut WorldRandom) -> (&'static str, Value) {
    match random_source.within(0..=5) {
        0 => paced(endless, random_source),
        1 => on_off(endless, random_source),
        2 => requests(endless, random_source),
        _ if endless => ("bulk", "unlimited".into()),
        _ => ("bulk", size(volume(random_source))),
    }
}

/// Bytes of one write call. Derived from the flow's number: a draw would change all worlds.
pub(super) fn write_size(number: u64) -> &'static str {
    ["64KiB", "1448B", "256KiB", "3kB"][(number / 2 % 4) as usize]
}

/// Draws the read pattern of the listening side.
pub(super) fn reads(random_source: &mut WorldRandom) -> Value {
    let mut keys = Table::new();
    match random_source.once_in(2) {
        true => keys.insert("chunk".into(), random_source.size(100..=100_000)),
        false => keys.insert("rate".into(), random_source.rate(100..=1_000_000)),
    };
    // Only a rate has a default interval.
    if keys.contains_key("chunk") || random_source.once_in(2) {
        keys.insert("every".into(), random_source.span(1_000..=100_000));
    }
    Value::Table(keys)
}

/// Draws keepalive settings: the hosts' defaults, long ones, or ones so short that a slow peer's
/// connection is aborted.
pub(super) fn keepalive(random_source: &mut WorldRandom) -> Value {
    if random_source.once_in(2) {
        return true.into();
    }
    let longest = random_source.pick(&[1_000_000, 4_000_000_000]);
    let mut keys = Table::new();
    keys.insert("idle".into(), random_source.span(SHORTEST_SILENCE..=longest));
    if random_source.once_in(2) {
        keys.insert("interval".into(), random_source.span(SHORTEST_SILENCE..=longest));
    }
    if random_source.once_in(2) {
        keys.insert("count".into(), random_source.count(1..=127));
    }
    Value::Table(keys)
}

/// From nothing to a thousand packets, mostly few.
fn volume(random_source: &mut WorldRandom) -> u64 {
    match random_source.within(0..=15) {
        0 => 0,
        1..=5 => random_source.within(1..=5_000),
        6..=14 => random_source.magnitude(1_000..=300_000),
        _ => random_source.magnitude(200_000..=2_000_000),
    }
}

fn paced(endless: bool, random_source: &mut WorldRandom) -> (&'static str, Value) {
    let chunk = random_source.magnitude(1..=20_000);
    let mut keys = Table::new();
    keys.insert("chunk".into(), size(chunk));
    keys.insert("every".into(), random_source.span(1..=100_000));
    if !endless {
        let chunks = random_source.pick(&[1, 10, 100]);
        keys.insert("bytes".into(), size(random_source.within(0..=chunks * chunk)));
    }
    ("paced", Value::Table(keys))
}

fn on_off(endless: bool, random_source: &mut WorldRandom) -> (&'static str, Value) {
    let on = random_source.magnitude(1..=50_000);
    let mut keys = Table::new();
    keys.insert(
        "on".into(),
        if random_source.once_in(3) { random_source.span(1..=50_000) } else { size(on) },
    );
    let off = random_source.magnitude(1..=1_000_000);
    let least = random_source.within(0..=off);
    let between = table([("least", span(least)), ("most", span(off))]);
    keys.insert("off".into(), if random_source.once_in(2) { between } else { span(off) });
    if !endless {
        keys.insert("bytes".into(), size(random_source.within(0..=10 * on)));
    }
    ("on_off", Value::Table(keys))
}

fn requests(endless: bool, random_source: &mut WorldRandom) -> (&'static str, Value) {
    let mut keys = Table::new();
    keys.insert("request".into(), random_source.size(1..=5_000));
    keys.insert("response".into(), random_source.size(1..=50_000));
    if random_source.once_in(2) {
        keys.insert("think".into(), random_source.span(1..=100_000));
    }
    if !endless {
        keys.insert("count".into(), random_source.count(1..=16));
    }
    ("requests", Value::Table(keys))
}
