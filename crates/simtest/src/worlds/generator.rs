//! A random world, as the tree of a scenario file.

use toml::{Table, Value};
use units::RandomStream;

use super::hosts::DrawnHost;
use super::paths::PathGenerator;
use super::random::{WorldRandom, span, table};
use super::{changes, flows};

const HOSTS: [&str; 4] = ["a", "b", "c", "d"];
const SHARED: [&str; 2] = ["s", "t"];

/// A pair of QUIC hosts, after all other hosts.
const QUIC_HOSTS: [&str; 2] = ["q", "r"];

/// Transport stacks of the hosts of a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stacks {
    Tcp,
    Quic,
    /// All TCP except for one pair.
    Both,
}

fn host_name(number: usize) -> &'static str {
    match number.checked_sub(HOSTS.len()) {
        Some(of_quic) => QUIC_HOSTS[of_quic],
        None => HOSTS[number],
    }
}

/// Two hosts connected by a path.
struct HostPair {
    from: usize,
    to: usize,
    name: Option<String>,
}

/// Draws world `number` of `seed`.
pub(super) fn draw(seed: u64, number: u64) -> Table {
    let random_source = |purpose: &str| WorldRandom::new(seed, number, purpose);
    let mut frame = random_source("frame");
    let count = frame.pick(&[2, 2, 2, 3, 4]);
    // A separate stream, so that TCP-only worlds are the same as before QUIC was added.
    let stacks = random_source("stacks").pick(&[
        Stacks::Tcp,
        Stacks::Tcp,
        Stacks::Tcp,
        Stacks::Quic,
        Stacks::Both,
    ]);
    let machines: Vec<DrawnHost> = (0..count)
        .map(|host| {
            let mut random_source = random_source(&format!("host {host}"));
            match stacks {
                Stacks::Quic => DrawnHost::draw_quic(HOSTS[host], &mut random_source),
                Stacks::Tcp | Stacks::Both => DrawnHost::draw(HOSTS[host], &mut random_source),
            }
        })
        .collect();
    // An additional QUIC pair; it uses the shared elements too.
    let mut beside = random_source("quic");
    let pair = match stacks {
        Stacks::Both => QUIC_HOSTS.map(|name| DrawnHost::draw_quic(name, &mut beside)).into(),
        Stacks::Tcp | Stacks::Quic => Vec::new(),
    };
    let all = || machines.iter().chain(&pair);
    let largest = all().map(|machine| machine.mtu).max().unwrap_or(1_500);
    // The run may end before the flows finish, which may then write without end.
    let cut = frame.once_in(6);
    let endless = cut && frame.once_in(2);
    let duration = frame.magnitude(1_000..=if endless { 500_000 } else { 4_000_000 });

    let mut root = Table::new();
    root.insert("title".into(), format!("world {number} of seed {seed}").into());
    // Seeds of scenarios are signed in TOML.
    let rng_of_the_run = RandomStream::named(seed, &format!("world {number}"), "seed").next_u32();
    root.insert("seed".into(), Value::Integer(i64::from(rng_of_the_run)));
    if cut {
        root.insert("duration".into(), span(duration));
    }
    let climate = PathGenerator::draw(largest, &mut random_source("climate"));
    let names = &SHARED[..frame.pick(&[0, 0, 1, 2])];
    let joined = joined(count, &mut frame);
    let mut paths: Vec<Value> = (0..joined.len())
        .map(|path| {
            let mut random_source = random_source(&format!("path {path}"));
            self::path(&joined[path], &climate, names, endless, &mut random_source)
        })
        .collect();
    let mut flows: Vec<Value> = (0..frame.pick(&[1, 1, 1, 2, 2, 3, 4, 8]))
        .map(|number| {
            let mut random_source = random_source(&format!("flow {number}"));
            let path = random_source.pick(&(0..joined.len()).collect::<Vec<_>>());
            let path = &joined[path];
            let ipv6 = machines[path.from].takes_ipv6() && machines[path.to].takes_ipv6();
            let latest = if cut { duration - 1 } else { 1_000_000 };
            flow(number, path, (ipv6, stacks == Stacks::Quic), latest, endless, &mut random_source)
        })
        .collect();
    let mut hosts: Table =
        machines.into_iter().map(|m| (m.name.to_owned(), Value::Table(m.keys))).collect();
    if stacks == Stacks::Both {
        let random_source = &mut beside;
        let ipv6 = pair.iter().all(DrawnHost::takes_ipv6);
        hosts.extend(pair.into_iter().map(|m| (m.name.to_owned(), Value::Table(m.keys))));
        let joined = HostPair { from: HOSTS.len(), to: HOSTS.len() + 1, name: None };
        paths.push(path(&joined, &climate, names, endless, random_source));
        let latest = if cut { duration - 1 } else { 1_000_000 };
        let number = flows.len() as u64;
        flows.push(flow(number, &joined, (ipv6, true), latest, endless, random_source));
    }
    root.insert("host".into(), Value::Table(hosts));
    let mut random_source = random_source("shared");
    let shared = names.iter().map(|name| ((*name).to_owned(), climate.element(&mut random_source)));
    let shared: Table = shared.collect();
    if !shared.is_empty() {
        root.insert("shared".into(), Value::Table(shared));
    }
    // A stream of its own: the other worlds are the same as before paths could change.
    let mut varied = WorldRandom::new(seed, number, "changes");
    if varied.once_in(12) {
        let end = if cut { duration } else { 4_000_000 };
        paths.iter_mut().for_each(|path| changes::vary(path, end, &mut varied));
    }
    let mut netem = WorldRandom::new(seed, number, "netem");
    if netem.once_in(12) {
        paths.iter_mut().for_each(|path| super::netem::add(path, &mut netem));
    }
    // The same: worlds without such traffic are as before.
    let mut traffic = WorldRandom::new(seed, number, "traffic");
    if traffic.once_in(12) {
        let latest = if cut { duration - 1 } else { 1_000_000 };
        super::traffic::add(&mut flows, latest, &mut traffic);
        if traffic.once_in(6) {
            super::traffic::add_fabric(&mut root, &mut flows, latest, &mut traffic);
        }
    }
    let mut fetches = WorldRandom::new(seed, number, "pages and videos");
    if fetches.once_in(24) {
        let latest = if cut { duration - 1 } else { 1_000_000 };
        super::traffic::add_fetches(&mut flows, latest, cut, &mut fetches);
    }
    // A stream of its own, so that the other worlds stay as they are.
    let mut exchanges = WorldRandom::new(seed, number, "exchanges");
    if exchanges.once_in(32) && stacks != Stacks::Quic {
        let latest = if cut { duration - 1 } else { 1_000_000 };
        super::traffic::add_exchange(&mut flows, latest, &mut exchanges);
    }
    // Likewise the worlds without middleboxes and accept queues.
    let mut boxes = WorldRandom::new(seed, number, "middleboxes");
    if boxes.once_in(12) {
        super::middleboxes::insert(&mut paths, &mut boxes);
    }
    let mut queues = WorldRandom::new(seed, number, "accept queues");
    if queues.once_in(24)
        && let Some(hosts) = root.get_mut("host").and_then(Value::as_table_mut)
    {
        super::middleboxes::add_queues(hosts, &mut queues);
    }
    root.insert("path".into(), paths.into());
    root.insert("flow".into(), flows.into());
    if frame.once_in(8) && stacks != Stacks::Quic {
        let place = frame.pick(&["stack", "wire"]);
        let tap = table([("host", HOSTS[0].into()), ("at", place.into())]);
        root.insert("tap".into(), vec![tap].into());
    }
    root
}

/// A star around one host, and occasionally a second path between two.
fn joined(hosts: usize, frame: &mut WorldRandom) -> Vec<HostPair> {
    let mut joined: Vec<HostPair> = (0..hosts)
        .filter(|&host| host != 1)
        .map(|host| {
            let (from, to) = if frame.once_in(2) { (host, 1) } else { (1, host) };
            HostPair { from, to, name: None }
        })
        .collect();
    if frame.once_in(4) {
        joined[0].name = Some("one".into());
        let HostPair { from, to, .. } = joined[0];
        let (from, to) = if frame.once_in(2) { (from, to) } else { (to, from) };
        joined.push(HostPair { from, to, name: Some("two".into()) });
    }
    joined
}

fn path(
    joined: &HostPair,
    climate: &PathGenerator,
    shared: &[&str],
    endless: bool,
    random_source: &mut WorldRandom,
) -> Value {
    let mut keys = Table::new();
    if let Some(name) = &joined.name {
        keys.insert("name".into(), name.clone().into());
    }
    keys.insert("from".into(), host_name(joined.from).into());
    keys.insert("to".into(), host_name(joined.to).into());
    let mut routes = [climate.route(shared, random_source), climate.route(shared, random_source)];
    if endless {
        // Unlimited flows need a rate limit.
        for route in &mut routes {
            let keys = [
                ("rate", random_source.rate(100..=20_000)),
                ("buffer", random_source.size(1_500..=100_000)),
            ];
            route.push(table([("link", table(keys))]));
        }
    }
    if random_source.once_in(2) {
        routes[0].push(table([("delay", random_source.span(1_000..=100_000))]));
        for route in &mut routes {
            climate.size_by_round_trip(route, random_source);
        }
    }
    if !endless && random_source.once_in(40) {
        let preset = random_source.pick(&["lte", "datacenter", "home-wifi", "transatlantic"]);
        keys.insert("preset".into(), preset.into());
        return Value::Table(keys);
    }
    let [forward, back] = routes;
    keys.insert("forward".into(), forward.into());
    keys.insert("return".into(), back.into());
    Value::Table(keys)
}

fn flow(
    number: u64,
    path: &HostPair,
    (ipv6, quic): (bool, bool),
    latest: u64,
    endless: bool,
    random_source: &mut WorldRandom,
) -> Value {
    let (from, to) =
        if random_source.once_in(2) { (path.from, path.to) } else { (path.to, path.from) };
    let mut keys = Table::new();
    keys.insert("name".into(), format!("f{number}").into());
    keys.insert("from".into(), host_name(from).into());
    keys.insert("to".into(), host_name(to).into());
    if let Some(name) = &path.name {
        keys.insert("path".into(), name.clone().into());
    }
    if random_source.once_in(2) {
        keys.insert("start".into(), random_source.span(1..=latest));
    }
    let endless = endless && random_source.once_in(2);
    let (app, what) = flows::application(endless, random_source);
    keys.insert(app.into(), what);
    if app == "bulk" && number % 2 == 1 {
        keys.insert("write".into(), flows::write_size(number).into());
    }
    // Both sides of a request-response exchange read all available data.
    if app != "requests" && random_source.once_in(6) {
        keys.insert("reads".into(), flows::reads(random_source));
    }
    if random_source.once_in(16) {
        keys.insert("close".into(), random_source.pick(&["reset", "reset", "reset", "fin"]).into());
    }
    if random_source.once_in(8) && !quic {
        keys.insert("keepalive".into(), flows::keepalive(random_source));
    }
    if ipv6 && random_source.once_in(3) {
        keys.insert("ip".into(), 6.into());
    }
    if random_source.once_in(4) && !quic {
        keys.insert("nodelay".into(), true.into());
    }
    Value::Table(keys)
}
