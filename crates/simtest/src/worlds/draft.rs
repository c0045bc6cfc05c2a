//! A whole world by chance, as the tree of a scenario file.

use toml::{Table, Value};
use units::Stream;

use super::luck::{Luck, span, table};
use super::machines::Machine;
use super::roads::Climate;
use super::talks;

const HOSTS: [&str; 4] = ["a", "b", "c", "d"];
const SHARED: [&str; 2] = ["s", "t"];

/// A pair with QUIC, behind all other hosts.
const QUIC_HOSTS: [&str; 2] = ["q", "r"];

/// What the hosts of a world have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stacks {
    Tcp,
    Quic,
    /// All TCP but one pair.
    Both,
}

fn host_name(number: usize) -> &'static str {
    match number.checked_sub(HOSTS.len()) {
        Some(of_quic) => QUIC_HOSTS[of_quic],
        None => HOSTS[number],
    }
}

/// Two hosts with a path between them.
struct Joined {
    from: usize,
    to: usize,
    name: Option<String>,
}

/// Draws world `number` of the worlds of `seed`.
pub(super) fn draw(seed: u64, number: u64) -> Table {
    let luck = |purpose: &str| Luck::new(seed, number, purpose);
    let mut frame = luck("frame");
    let count = frame.pick(&[2, 2, 2, 3, 4]);
    // Draws of its own, so that worlds of TCP alone are what they were before there was QUIC.
    let stacks =
        luck("stacks").pick(&[Stacks::Tcp, Stacks::Tcp, Stacks::Tcp, Stacks::Quic, Stacks::Both]);
    let machines: Vec<Machine> = (0..count)
        .map(|host| {
            let mut luck = luck(&format!("host {host}"));
            match stacks {
                Stacks::Quic => Machine::draw_quic(HOSTS[host], &mut luck),
                Stacks::Tcp | Stacks::Both => Machine::draw(HOSTS[host], &mut luck),
            }
        })
        .collect();
    // A pair with QUIC beside them; what is shared, they share.
    let mut beside = luck("quic");
    let pair = match stacks {
        Stacks::Both => QUIC_HOSTS.map(|name| Machine::draw_quic(name, &mut beside)).into(),
        Stacks::Tcp | Stacks::Quic => Vec::new(),
    };
    let all = || machines.iter().chain(&pair);
    let largest = all().map(|machine| machine.mtu).max().unwrap_or(1_500);
    // Cut short before the flows are done, which then may write without end.
    let cut = frame.once_in(6);
    let endless = cut && frame.once_in(2);
    let duration = frame.magnitude(1_000..=if endless { 500_000 } else { 4_000_000 });

    let mut root = Table::new();
    root.insert("title".into(), format!("world {number} of seed {seed}").into());
    // Seeds of scenarios are signed in TOML.
    let luck_of_the_run = Stream::named(seed, &format!("world {number}"), "seed").next_u32();
    root.insert("seed".into(), Value::Integer(i64::from(luck_of_the_run)));
    if cut {
        root.insert("duration".into(), span(duration));
    }
    let climate = Climate::draw(largest, &mut luck("climate"));
    let names = &SHARED[..frame.pick(&[0, 0, 1, 2])];
    let joined = joined(count, &mut frame);
    let mut paths: Vec<Value> = (0..joined.len())
        .map(|path| {
            let mut luck = luck(&format!("path {path}"));
            self::path(&joined[path], &climate, names, endless, &mut luck)
        })
        .collect();
    let mut flows: Vec<Value> = (0..frame.pick(&[1, 1, 1, 2, 2, 3, 4, 8]))
        .map(|number| {
            let mut luck = luck(&format!("flow {number}"));
            let path = luck.pick(&(0..joined.len()).collect::<Vec<_>>());
            let path = &joined[path];
            let ipv6 = machines[path.from].takes_ipv6() && machines[path.to].takes_ipv6();
            let latest = if cut { duration - 1 } else { 1_000_000 };
            flow(number, path, (ipv6, stacks == Stacks::Quic), latest, endless, &mut luck)
        })
        .collect();
    let mut hosts: Table =
        machines.into_iter().map(|m| (m.name.to_owned(), Value::Table(m.keys))).collect();
    if stacks == Stacks::Both {
        let luck = &mut beside;
        let ipv6 = pair.iter().all(Machine::takes_ipv6);
        hosts.extend(pair.into_iter().map(|m| (m.name.to_owned(), Value::Table(m.keys))));
        let joined = Joined { from: HOSTS.len(), to: HOSTS.len() + 1, name: None };
        paths.push(path(&joined, &climate, names, endless, luck));
        let latest = if cut { duration - 1 } else { 1_000_000 };
        let number = flows.len() as u64;
        flows.push(flow(number, &joined, (ipv6, true), latest, endless, luck));
    }
    root.insert("host".into(), Value::Table(hosts));
    let mut luck = luck("shared");
    let shared = names.iter().map(|name| ((*name).to_owned(), climate.element(&mut luck)));
    let shared: Table = shared.collect();
    if !shared.is_empty() {
        root.insert("shared".into(), Value::Table(shared));
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

/// A star around one host, and now and then a second path between two.
fn joined(hosts: usize, frame: &mut Luck) -> Vec<Joined> {
    let mut joined: Vec<Joined> = (0..hosts)
        .filter(|&host| host != 1)
        .map(|host| {
            let (from, to) = if frame.once_in(2) { (host, 1) } else { (1, host) };
            Joined { from, to, name: None }
        })
        .collect();
    if frame.once_in(4) {
        joined[0].name = Some("one".into());
        let Joined { from, to, .. } = joined[0];
        let (from, to) = if frame.once_in(2) { (from, to) } else { (to, from) };
        joined.push(Joined { from, to, name: Some("two".into()) });
    }
    joined
}

fn path(
    joined: &Joined,
    climate: &Climate,
    shared: &[&str],
    endless: bool,
    luck: &mut Luck,
) -> Value {
    let mut keys = Table::new();
    if let Some(name) = &joined.name {
        keys.insert("name".into(), name.clone().into());
    }
    keys.insert("from".into(), host_name(joined.from).into());
    keys.insert("to".into(), host_name(joined.to).into());
    let mut roads = [climate.road(shared, luck), climate.road(shared, luck)];
    if endless {
        // Something must set a pace to what has no end.
        for road in &mut roads {
            let keys = [("rate", luck.rate(100..=20_000)), ("buffer", luck.size(1_500..=100_000))];
            road.push(table([("link", table(keys))]));
        }
    }
    if luck.once_in(2) {
        roads[0].push(table([("delay", luck.span(1_000..=100_000))]));
        for road in &mut roads {
            climate.size_by_round_trip(road, luck);
        }
    }
    if !endless && luck.once_in(40) {
        let preset = luck.pick(&["lte", "datacenter", "home-wifi", "transatlantic"]);
        keys.insert("preset".into(), preset.into());
        return Value::Table(keys);
    }
    let [forward, back] = roads;
    keys.insert("forward".into(), forward.into());
    keys.insert("return".into(), back.into());
    Value::Table(keys)
}

fn flow(
    number: u64,
    path: &Joined,
    (ipv6, quic): (bool, bool),
    latest: u64,
    endless: bool,
    luck: &mut Luck,
) -> Value {
    let (from, to) = if luck.once_in(2) { (path.from, path.to) } else { (path.to, path.from) };
    let mut keys = Table::new();
    keys.insert("name".into(), format!("f{number}").into());
    keys.insert("from".into(), host_name(from).into());
    keys.insert("to".into(), host_name(to).into());
    if let Some(name) = &path.name {
        keys.insert("path".into(), name.clone().into());
    }
    if luck.once_in(2) {
        keys.insert("start".into(), luck.span(1..=latest));
    }
    let endless = endless && luck.once_in(2);
    let (app, what) = talks::application(endless, luck);
    keys.insert(app.into(), what);
    if app == "bulk" && number % 2 == 1 {
        keys.insert("write".into(), talks::write_size(number).into());
    }
    // Both sides of a dialogue read all there is.
    if app != "requests" && luck.once_in(6) {
        keys.insert("reads".into(), talks::reads(luck));
    }
    if luck.once_in(16) {
        keys.insert("close".into(), luck.pick(&["reset", "reset", "reset", "fin"]).into());
    }
    if luck.once_in(8) && !quic {
        keys.insert("keepalive".into(), talks::keepalive(luck));
    }
    if ipv6 && luck.once_in(3) {
        keys.insert("ip".into(), 6.into());
    }
    if luck.once_in(4) && !quic {
        keys.insert("nodelay".into(), true.into());
    }
    Value::Table(keys)
}
