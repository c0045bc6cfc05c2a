//! netem on a random path: delays that reorder packets, and losses that depend on each other.

use toml::{Table, Value};

use super::random::{WorldRandom, table};

/// Adds elements of netem to a path.
pub(super) fn add(path: &mut Value, random_source: &mut WorldRandom) {
    let Some(path) = path.as_table_mut() else { return };
    for direction in ["forward", "return"] {
        let Some(route) = path.get_mut(direction).and_then(Value::as_array_mut) else { continue };
        if random_source.once_in(2) {
            let place = random_source.within(0..=route.len() as u64) as usize;
            route.insert(place, table([("netem", queue(random_source))]));
        }
        if random_source.once_in(3) {
            let place = random_source.within(0..=route.len() as u64) as usize;
            let kind = random_source.pick(&["loss", "corrupt"]);
            route.insert(place, table([(kind, rule(random_source))]));
        }
    }
}

fn queue(random_source: &mut WorldRandom) -> Value {
    let mut keys = Table::new();
    keys.insert("delay".into(), random_source.span(1..=100_000));
    if random_source.once_in(2) {
        keys.insert("jitter".into(), random_source.span(1..=100_000));
        if random_source.once_in(2) {
            let names = ["uniform", "normal", "pareto", "paretonormal"];
            keys.insert("distribution".into(), random_source.pick(&names).into());
        }
        if random_source.once_in(3) {
            keys.insert("correlation".into(), random_source.share(1..=10_000));
        }
    }
    if random_source.once_in(4) {
        keys.insert("reorder".into(), random_source.share(1..=10_000));
        if random_source.once_in(2) {
            keys.insert("gap".into(), random_source.count(1..=20));
        }
        if random_source.once_in(3) {
            keys.insert("reorder_correlation".into(), random_source.share(1..=10_000));
        }
    }
    if random_source.once_in(3) {
        keys.insert("rate".into(), random_source.rate(500..=1_000_000));
        if random_source.once_in(2) {
            keys.insert("overhead".into(), random_source.count(1..=60));
        }
        if random_source.once_in(4) {
            keys.insert("cell".into(), random_source.count(1..=1_000));
            keys.insert("cell_overhead".into(), random_source.count(1..=20));
        }
    }
    if random_source.once_in(2) {
        keys.insert("limit".into(), random_source.count(1..=2_000));
    }
    Value::Table(keys)
}

fn rule(random_source: &mut WorldRandom) -> Value {
    if random_source.once_in(2) {
        let share = random_source.share(1..=800);
        return table([("share", share), ("correlation", random_source.share(1..=9_900))]);
    }
    let mut keys = Table::new();
    keys.insert("p13".into(), random_source.share(1..=800));
    if random_source.once_in(2) {
        keys.insert("p31".into(), random_source.share(1_000..=10_000));
        keys.insert("p32".into(), random_source.share(1..=1_000));
        keys.insert("p23".into(), random_source.share(1_000..=10_000));
        keys.insert("p14".into(), random_source.share(1..=500));
    }
    table([("four_state", Value::Table(keys))])
}
