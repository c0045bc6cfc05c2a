//! Random middleboxes, lost packets of handshakes, and accept queues.

use toml::{Table, Value};

use super::random::{WorldRandom, size, table};

/// Inserts elements into the routes of the paths. Heavy faults may be more than a transfer survives.
pub(super) fn insert(paths: &mut [Value], random_source: &mut WorldRandom) {
    let heavy = random_source.once_in(3);
    for route in paths.iter_mut().filter_map(Value::as_table_mut).flat_map(|path| {
        path.iter_mut().filter_map(|(key, route)| match key.as_str() {
            "forward" | "return" => route.as_array_mut(),
            _ => None,
        })
    }) {
        for _ in 0..random_source.within(0..=2) {
            let element = element(heavy, random_source);
            let place = random_source.within(0..=route.len() as u64) as usize;
            route.insert(place, element);
        }
    }
    for path in paths.iter_mut().filter_map(Value::as_table_mut) {
        if random_source.once_in(6) {
            strip_scaling(path);
        }
    }
}

/// Removes window scaling of both hosts. Of the SYN-ACK alone it leaves one of them with windows that may be too
/// small for ever: a sender then probes without end.
fn strip_scaling(path: &mut Table) {
    for direction in ["forward", "return"] {
        if let Some(route) = path.get_mut(direction).and_then(Value::as_array_mut) {
            route.push(table([("strip", vec![Value::from("window-scale")].into())]));
        }
    }
}

/// Gives hosts of Linux an accept queue.
pub(super) fn add_queues(hosts: &mut Table, random_source: &mut WorldRandom) {
    for (_, host) in hosts.iter_mut() {
        let Some(host) = host.as_table_mut() else { continue };
        let profile = host.get("profile").and_then(Value::as_str).unwrap_or_default();
        if profile.starts_with("linux-") && random_source.once_in(2) {
            let keys = [
                ("backlog", random_source.count(1..=8)),
                ("accept", random_source.span(1..=500_000)),
            ];
            host.insert("listen".into(), table(keys));
        }
    }
}

fn element(heavy: bool, random_source: &mut WorldRandom) -> Value {
    match random_source.within(0..=4) {
        0 => mtu(heavy, random_source),
        1 => handshake_loss(random_source),
        2 => forget(heavy, random_source),
        3 if heavy => reset(random_source),
        _ => table([("strip", offers(random_source))]),
    }
}

/// Every path carries packets of 1280 bytes of IPv6; a smaller MTU and a black hole are heavy faults.
fn mtu(heavy: bool, random_source: &mut WorldRandom) -> Value {
    let least = if heavy { 68 } else { 1_280 };
    let largest = size(random_source.within(least..=1_500));
    if random_source.once_in(2) {
        return table([("mtu", largest)]);
    }
    let mut keys = Table::new();
    keys.insert("size".into(), largest);
    if random_source.once_in(2) {
        keys.insert("icmp".into(), (!heavy || random_source.once_in(2)).into());
    }
    if random_source.once_in(2) {
        keys.insert("from".into(), random_source.span(1..=2_000_000));
    }
    table([("mtu", Value::Table(keys))])
}

fn handshake_loss(random_source: &mut WorldRandom) -> Value {
    let packets: Vec<i64> = (1..=random_source.within(1..=3) as i64).collect();
    let only = random_source.pick(&["syns", "syn-acks", "ecn-syns"]);
    table([("loss", table([("packets", packets.into())])), ("only", only.into())])
}

/// Only a heavy fault forgets a connection that has not been idle for a minute.
fn forget(heavy: bool, random_source: &mut WorldRandom) -> Value {
    let least = if heavy { 10_000 } else { 60_000_000 };
    let mut keys = Table::new();
    keys.insert("idle".into(), random_source.span(least..=3_600_000_000));
    if random_source.once_in(2) {
        keys.insert("answer".into(), random_source.pick(&["nothing", "reset"]).into());
    }
    table([("forget", Value::Table(keys))])
}

fn reset(random_source: &mut WorldRandom) -> Value {
    let when = match random_source.once_in(2) {
        true => ("bytes", random_source.size(1..=1_000_000)),
        false => ("at", random_source.span(1..=10_000_000)),
    };
    table([("reset", table([when]))])
}

/// Offers of a SYN other than window scaling, each with even odds.
fn offers(random_source: &mut WorldRandom) -> Value {
    let all = ["sack", "timestamps", "ecn"];
    let mut some: Vec<&str> = all.into_iter().filter(|_| random_source.once_in(2)).collect();
    if some.is_empty() {
        some.push(random_source.pick(&all));
    }
    some.into()
}
