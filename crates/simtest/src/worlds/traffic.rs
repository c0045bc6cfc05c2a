//! Random traffic besides single connections: datagrams, echo requests, groups of connections.

use toml::{Table, Value};

use super::random::{WorldRandom, span, table};

/// Adds a flow of datagrams or makes a flow a group of connections; the new flow is between the hosts
/// of the first one. Starts are below `latest`, in microseconds.
pub(super) fn add(flows: &mut Vec<Value>, latest: u64, random_source: &mut WorldRandom) {
    match random_source.within(0..=3) {
        0 | 1 => {
            let Some(mut keys) = beside_first(flows, "datagrams") else { return };
            if random_source.once_in(2) {
                keys.insert("start".into(), random_source.span(1..=latest));
            }
            let (app, what) = match random_source.once_in(2) {
                true => ("udp", udp(random_source)),
                false => ("ping", ping(random_source)),
            };
            keys.insert(app.into(), what);
            flows.push(Value::Table(keys));
        }
        _ => {
            let finite = |flow: &&mut Value| {
                let bulk = flow.as_table().and_then(|keys| keys.get("bulk"));
                bulk.is_some_and(|bytes| bytes.as_str() != Some("unlimited"))
            };
            let Some(keys) = flows.iter_mut().find(finite).and_then(Value::as_table_mut) else {
                return;
            };
            if random_source.once_in(2) {
                keys.remove("bulk");
                let sizes = match random_source.once_in(4) {
                    true => ("cdf", "preset:hadoop".into()),
                    false => ("mean", random_source.size(1..=20_000)),
                };
                keys.insert("transfer".into(), table([sizes]));
            }
            keys.insert("count".into(), random_source.count(1..=8));
            if random_source.once_in(2) {
                let law = random_source.pick(&["poisson", "every"]);
                let interval = random_source.span(1..=50_000);
                keys.insert("arrivals".into(), table([(law, interval)]));
            }
        }
    }
}

/// A flow of that name between the hosts of the first one, without an application.
fn beside_first(flows: &[Value], name: &str) -> Option<Table> {
    let first = flows.first().and_then(Value::as_table)?;
    let ends = first.iter().filter(|(key, _)| ["from", "to", "path", "ip"].contains(&key.as_str()));
    let mut keys: Table = ends.map(|(key, value)| (key.clone(), value.clone())).collect();
    keys.insert("name".into(), name.into());
    Some(keys)
}

/// Adds a video or web pages, of one client or several; the new flow is between the hosts of the first
/// one. Starts are below `latest`, in microseconds. The run is `cut` if it may end before the flows.
pub(super) fn add_fetches(
    flows: &mut Vec<Value>,
    latest: u64,
    cut: bool,
    random_source: &mut WorldRandom,
) {
    let Some(mut keys) = beside_first(flows, "fetches") else { return };
    if random_source.once_in(2) {
        keys.insert("start".into(), random_source.span(1..=latest));
    }
    let ends = !(cut && random_source.once_in(2));
    let (app, what) = match random_source.once_in(2) {
        true => ("video", video(ends, random_source)),
        false => ("page", page(ends, random_source)),
    };
    keys.insert(app.into(), what);
    if random_source.once_in(3) {
        keys.insert("count".into(), random_source.count(1..=4));
        if random_source.once_in(2) {
            let interval = random_source.span(1..=50_000);
            keys.insert("arrivals".into(), table([("poisson", interval)]));
        }
    }
    // A flow that is reset need not deliver: only where none must.
    if cut && random_source.once_in(4) {
        keys.insert("close".into(), "reset".into());
    }
    flows.push(Value::Table(keys));
}

/// Adds an exchange between the hosts of the first flow. It starts before `latest`, in microseconds.
pub(super) fn add_exchange(flows: &mut Vec<Value>, latest: u64, random_source: &mut WorldRandom) {
    let Some(mut keys) = beside_first(flows, "exchange") else { return };
    if random_source.once_in(2) {
        keys.insert("start".into(), random_source.span(1..=latest));
    }
    let mut steps = |most: u64| -> Value {
        let steps = random_source.within(1..=most);
        (0..steps).map(|_| exchange_step(random_source)).collect::<Vec<_>>().into()
    };
    let (opening, repeated) = (steps(3), steps(4));
    let mut exchange = Table::new();
    exchange.insert("steps".into(), repeated);
    if random_source.once_in(2) {
        exchange.insert("opening".into(), opening);
    }
    if random_source.once_in(2) {
        exchange.insert("count".into(), random_source.count(1..=8));
    }
    for side in ["client_reads", "server_reads"] {
        if random_source.once_in(6) {
            exchange.insert(side.into(), super::flows::reads(random_source));
        }
    }
    keys.insert("exchange".into(), Value::Table(exchange));
    flows.push(Value::Table(keys));
}

fn exchange_step(random_source: &mut WorldRandom) -> Value {
    let side = random_source.pick(&["client", "server"]);
    let mut keys = table([(side, random_source.size(1..=30_000))]);
    let Value::Table(step) = &mut keys else { return keys };
    if random_source.once_in(2) {
        step.insert("after".into(), random_source.span(1..=100_000));
    }
    if random_source.once_in(4) {
        step.insert("window".into(), random_source.size(1_000..=100_000));
    }
    keys
}

/// A video of at most eight chunks, if it `ends`.
fn video(ends: bool, random_source: &mut WorldRandom) -> Value {
    let chunk = random_source.magnitude(1_000..=300_000);
    let mut rate = random_source.magnitude(50..=1_000);
    let rates = random_source.pick(&[1, 2, 3, 6]);
    let ladder: Vec<Value> = (0..rates)
        .map(|_| {
            let text = format!("{rate}kbit/s");
            rate += random_source.magnitude(1..=1_000);
            text.into()
        })
        .collect();
    let chunks = random_source.within(1..=5);
    let mut keys = table([
        ("ladder", ladder.into()),
        ("chunk", span(chunk)),
        ("buffer", span(chunk * chunks)),
    ]);
    let Value::Table(table) = &mut keys else { return keys };
    if ends {
        table.insert("length".into(), span(chunk * random_source.within(1..=8)));
    }
    if random_source.once_in(2) {
        table.insert("startup".into(), span(chunk * random_source.within(1..=chunks)));
    }
    if random_source.once_in(2) {
        table.insert("rule".into(), "buffer".into());
        if random_source.once_in(2) {
            let half = (chunk * chunks / 2).max(1_000);
            table.insert("reservoir".into(), random_source.span(1_000..=half));
            table.insert("cushion".into(), random_source.span(1_000..=chunk));
        }
    }
    keys
}

/// One to three pages, if they `end`.
fn page(end: bool, random_source: &mut WorldRandom) -> Value {
    let objects = random_source.pick(&[0, 1, 3, 10, 30]);
    let mut keys = table([
        ("html", random_source.size(1..=30_000)),
        ("objects", Value::Integer(objects)),
        ("connections", random_source.count(1..=objects.clamp(1, 6) as u64)),
        ("streams", random_source.count(1..=8)),
        (
            "object",
            match random_source.pick(&[0, 1, 2]) {
                0 => random_source.size(1..=20_000),
                1 => table([("mean", random_source.size(1..=10_000))]),
                _ => table([("cdf", "preset:hadoop".into())]),
            },
        ),
    ]);
    let Value::Table(table) = &mut keys else { return keys };
    if end {
        table.insert("count".into(), random_source.count(1..=3));
    }
    if random_source.once_in(2) {
        table.insert("think".into(), random_source.span(1..=100_000));
    }
    keys
}

/// Adds a leaf-spine network of four hosts, and a transfer from one of them to each other.
pub(super) fn add_fabric(
    root: &mut Table,
    flows: &mut Vec<Value>,
    latest: u64,
    random_source: &mut WorldRandom,
) {
    let Some(hosts) = root.get_mut("host").and_then(Value::as_table_mut) else { return };
    let profile = random_source.pick(&["linux-6.18", "freebsd-14.3", "rfc"]);
    hosts.insert("w".into(), table([("profile", profile.into()), ("count", 4.into())]));
    let mut link = || {
        table([
            ("rate", random_source.rate(1_000..=1_000_000)),
            ("buffer", random_source.size(9_000..=200_000)),
        ])
    };
    let (host_link, spine_link) = (link(), link());
    let fabric = table([
        ("hosts", "w".into()),
        ("leaves", 2.into()),
        ("spines", random_source.count(1..=3)),
        ("host_link", host_link),
        ("spine_link", spine_link),
        ("delay", random_source.span(1..=1_000)),
    ]);
    root.insert("fabric".into(), fabric);
    flows.push(table([
        ("name", "incast".into()),
        ("from", "w".into()),
        ("to", "w-0".into()),
        ("start", random_source.span(1..=latest)),
        ("bulk", random_source.size(1..=100_000)),
    ]));
}

/// Datagrams fit into the smallest MTU of a world.
fn udp(random_source: &mut WorldRandom) -> Value {
    let law = random_source.pick(&["every", "poisson"]);
    table([
        ("size", random_source.size(1..=400)),
        (law, random_source.span(10..=50_000)),
        ("count", random_source.count(1..=200)),
    ])
}

fn ping(random_source: &mut WorldRandom) -> Value {
    table([
        ("size", random_source.size(1..=400)),
        ("every", random_source.span(10..=50_000)),
        ("count", random_source.count(1..=50)),
    ])
}
