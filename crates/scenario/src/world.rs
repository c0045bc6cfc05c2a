//! The whole file: its tables read and joined into a [`Scenario`].

use std::collections::BTreeMap;

use packet::IpVersion;
use sim::SetupError;
use sim::scenario::{Element, Flow, Host, Path, Scenario};
use units::{Bytes, Duration};

use super::flow::{self, FlowRead};
use super::hosts::Hosts;
use super::keys::{Fields, Key, Located, Reader, Section};
use super::kinds::{Named, Span, Sub, Tables, Whole, Words};
use super::path;
use super::routes::{self, Routes};
use super::shared::SharedElements;
use super::source::{Fault, Place, Sources};
use super::tree::Node;
use super::{element, host, sweep, tap};
use crate::units_text::MAX_DURATION;

static TITLE: Key<Words> = Key::optional("title", Words, "none", "what it shows, for people");
static SEED: Key<Whole> = Key::optional(
    "seed",
    Whole { least: 0, most: i64::MAX as u64 },
    "1",
    "seed of every random stream; the same seed gives the same run",
);
static DURATION: Key<Span> = Key::optional(
    "duration",
    Span { least: Duration::from_nanos(1), usual: "s" },
    "until all flows are done",
    "virtual time after which the run ends, finished or not",
);
static HOST: Key<Named> = Key::required("host", Named(&host::SECTION), "machines: [host.NAME]");
static SHARED: Key<Named> = Key::optional(
    "shared",
    Named(&element::SHARED_ELEMENT),
    "none",
    "elements that several roads may lead through: [shared.NAME]",
);
static PATH: Key<Tables> =
    Key::required("path", Tables(&path::SECTION), "roads between hosts: [[path]]");
static FLOW: Key<Tables> = Key::required("flow", Tables(&flow::SECTION), "connections: [[flow]]");
static TAP: Key<Tables> =
    Key::optional("tap", Tables(&tap::SECTION), "none", "capture points: [[tap]]");

static SWEEP: Key<Sub> = Key::optional(
    "sweep",
    Sub(&sweep::SECTION),
    "one run",
    "a grid of runs for `ackclock sweep`: [sweep]; `ackclock run` takes the file as it stands",
);

/// Hosts have 16-bit numbers in a run.
const MAX_HOSTS: usize = 65_535;

/// A scenario file.
pub(super) static SECTION: Section = Section {
    what: "a scenario",
    keys: &[&TITLE, &SEED, &DURATION, &HOST, &SHARED, &PATH, &FLOW, &TAP, &SWEEP],
    one_of: &[],
    elsewhere: |key| match key {
        "name" | "description" => Some("the name of a scenario is called `title`"),
        "hosts" => Some("hosts are tables: [host.NAME]"),
        "link" | "links" => {
            Some("an element of several roads is a table: [shared.NAME] link = { ... }")
        }
        "paths" => Some("every path is a table of its own: [[path]]"),
        "flows" => Some("every flow is a table of its own: [[flow]]"),
        "taps" => Some("every capture point is a table of its own: [[tap]]"),
        "profile" | "cc" | "knobs" | "mtu" | "lro" | "gro" | "tso" => {
            Some("this belongs to a host: [host.NAME]")
        }
        _ => None,
    },
};

/// Reads the tree; `None` if anything was reported.
pub(super) fn read(root: &Node, sources: &Sources<'_>, reader: &mut Reader) -> Option<Scenario> {
    let fields = Fields::open(&SECTION, root, reader)?;
    let title = fields.get(&TITLE, reader);
    let seed = fields.get(&SEED, reader);
    let duration = fields.get(&DURATION, reader);
    let (hosts, names) = hosts(&fields, reader);
    let shared = fields.node(&SHARED).and_then(|node| reader.table(node, "`shared`"));
    let shared = SharedElements::read(shared.unwrap_or(&[]), reader);
    let path_nodes = tables(&fields, &PATH, reader);
    let mut routes = Routes::default();
    for node in path_nodes {
        let read = path::read(node, &names, &shared, reader);
        routes.add(read, node, &names, reader);
    }
    let flow_nodes = tables(&fields, &FLOW, reader);
    let flows: Vec<FlowRead> =
        flow_nodes.iter().filter_map(|node| flow::read(node, &names, reader)).collect();
    check_flows(&fields, &flows, duration, sources, reader);
    let endless: Vec<Option<Place>> = flows.iter().map(|flow| flow.endless).collect();
    let flows = join(&flows, &routes, &names, reader);
    let tap_nodes = fields.node(&TAP).and_then(|node| reader.list(TAP.name, node)).unwrap_or(&[]);
    let taps = tap::read_all(tap_nodes, &names, reader);
    if let Some(node) = fields.node(&SWEEP) {
        sweep::read(node, root, reader);
    }
    let scenario = Scenario {
        title: title.map(|title| title.value).unwrap_or_default(),
        seed: seed.map_or(1, |seed| seed.value),
        duration: duration.map_or(MAX_DURATION, |span| span.value),
        hosts,
        paths: routes.into_paths().into_iter().filter_map(|read| read.path).collect::<Vec<Path>>(),
        shared: shared.all(),
        flows,
        taps,
    };
    if reader.faults.is_empty() {
        check_sizes(&scenario, root, path_nodes, flow_nodes, reader);
        check_quic(&scenario, flow_nodes, tap_nodes, reader);
    }
    if reader.faults.is_empty()
        && let Err(error) = sim::validate(&scenario)
    {
        reader.report(refused(&error, root, path_nodes, flow_nodes, &endless));
    }
    reader.faults.is_empty().then_some(scenario)
}

/// What only the whole shows to be too large or too small.
fn check_sizes(
    scenario: &Scenario,
    root: &Node,
    paths: &[Node],
    flows: &[Node],
    reader: &mut Reader,
) {
    if scenario.hosts.len() > MAX_HOSTS {
        reader.report(Fault::new(root.place, format!("more than {MAX_HOSTS} hosts")));
    }
    for (flow, node) in scenario.flows.iter().zip(flows) {
        let small = [flow.from, flow.to].into_iter().map(|host| &scenario.hosts[host]).find(
            // RFC 8200 section 5.
            |host| flow.ip == IpVersion::V6 && host.stack.mtu() < 1_280,
        );
        if let Some(host) = small {
            let message = format!("IPv6 needs an MTU of at least 1280 B, {:?} has less", host.name);
            reader.report(Fault::new(node.place, message));
        }
    }
    for (path, node) in scenario.paths.iter().zip(paths) {
        let mtu = |host: usize| scenario.hosts[host].stack.mtu();
        let largest = Bytes(u64::from(mtu(path.from).max(mtu(path.to))));
        let burst = |element: &Element| match element {
            Element::Policer { burst, .. } | Element::Shaper { burst, .. } => Some(*burst),
            _ => None,
        };
        let through = |element| match element {
            &Element::Shared(index) => burst(&scenario.shared[index].element),
            element => burst(element),
        };
        let smallest = path.forward.iter().chain(&path.reverse).filter_map(through).min();
        if let Some(burst) = smallest.filter(|burst| *burst < largest) {
            let message = format!(
                "a bucket of {burst} on this path never lets a packet of {largest} pass, the MTU"
            );
            reader.report(Fault::new(node.place, message));
        }
    }
}

/// What QUIC does not have.
fn check_quic(scenario: &Scenario, flows: &[Node], taps: &[Node], reader: &mut Reader) {
    let name = |host: usize| &scenario.hosts[host].name;
    let has_quic = |host: usize| scenario.hosts[host].stack.quic().is_some();
    for (flow, node) in scenario.flows.iter().zip(flows) {
        let (from, to) = (flow.from, flow.to);
        if has_quic(from) != has_quic(to) {
            let (quic, tcp) = if has_quic(from) { (from, to) } else { (to, from) };
            let message = format!("{:?} has QUIC and {:?} has TCP", name(quic), name(tcp));
            let hint = format!("give {:?} a profile such as \"quic-rfc9002\" too", name(tcp));
            reader.report(Fault::new(node.place, message).hint(hint));
        } else if has_quic(from) && (flow.nodelay || flow.keepalive.is_some()) {
            let message = "`nodelay` and `keepalive` are options of TCP, this flow is of QUIC";
            reader.report(Fault::new(node.place, message));
        }
    }
    for (tap, node) in scenario.taps.iter().zip(taps).filter(|(tap, _)| has_quic(tap.host)) {
        let message = format!("{:?} has QUIC, of which no capture is written", name(tap.host));
        reader.report(Fault::new(node.place, message));
    }
}

/// What a run would refuse, at its place; `endless` says of each flow where it writes without end.
fn refused(
    error: &SetupError,
    root: &Node,
    paths: &[Node],
    flows: &[Node],
    endless: &[Option<Place>],
) -> Fault {
    match *error {
        SetupError::Endless { flow, round_trip } => {
            let message = format!(
                "nothing limits the rate of this flow: its path has no link, and its round trip takes \
                 {round_trip}"
            );
            let hint = "put { link = { rate = \"1Gbit/s\", buffer = \"1bdp\" } } on its path, or give \
                        the flow a number of bytes";
            Fault::new(endless[flow].unwrap_or(flows[flow].place), message).hint(hint.to_owned())
        }
        SetupError::Path { path } => {
            let message = "a direction of this path has more than 65534 elements";
            Fault::new(paths[path].place, message)
        }
        SetupError::Route { flow } | SetupError::Transport { flow } => {
            Fault::new(flows[flow].place, error.to_string())
        }
        // The readers of these tables have refused them.
        SetupError::Controller { .. } | SetupError::Shared { .. } | SetupError::Tap { .. } => {
            Fault::new(root.place, error.to_string())
        }
    }
}

/// The hosts that are right, and the names of all.
fn hosts(fields: &Fields<'_>, reader: &mut Reader) -> (Vec<Host>, Hosts) {
    let Some(node) = fields.node(&HOST) else { return (Vec::new(), Hosts::new([])) };
    let entries = reader.table(node, "`host`").unwrap_or(&[]);
    let hosts =
        entries.iter().filter_map(|entry| host::read(&entry.key, &entry.node, reader)).collect();
    (hosts, Hosts::new(entries.iter().map(|entry| entry.key.clone())))
}

/// The tables of a list that must not be empty.
fn tables<'n>(fields: &Fields<'n>, key: &Key<Tables>, reader: &mut Reader) -> &'n [Node] {
    let Some(node) = fields.node(key) else { return &[] };
    let nodes = reader.list(key.name, node);
    if nodes.is_some_and(<[Node]>::is_empty) {
        reader.report(Fault::new(node.place, format!("`{}` is empty", key.name)));
    }
    nodes.unwrap_or(&[])
}

/// What is wrong among the flows, taken together.
fn check_flows(
    fields: &Fields<'_>,
    flows: &[FlowRead],
    duration: Option<Located<Duration>>,
    sources: &Sources<'_>,
    reader: &mut Reader,
) {
    let mut seen: BTreeMap<&str, Place> = BTreeMap::new();
    for flow in flows {
        if let Some(name) = &flow.name {
            if let Some(first) = seen.get(name.value.as_str()) {
                let message = format!("a second flow of the name {:?}", name.value);
                let hint = format!("the first is on line {}", sources.line(*first));
                reader.report(Fault::new(name.place, message).hint(hint));
            }
            seen.entry(&name.value).or_insert(name.place);
        }
        if let (Some(start), Some(duration)) = (flow.start, duration)
            && start.value >= duration.value
        {
            let message = "this flow starts when the run is over";
            let end = format!("a start before {}", duration.value);
            reader.report(Fault::new(start.place, message).expected(end));
        }
        if let Some(place) = flow.endless
            && !fields.has(&DURATION)
        {
            let message = "the run would never end: unlimited bytes, and no duration";
            let hint = "write duration = \"60s\" at the top of the file".to_owned();
            reader.report(Fault::new(place, message).hint(hint));
        }
    }
}

/// Finds the path of each flow.
fn join(flows: &[FlowRead], routes: &Routes, hosts: &Hosts, reader: &mut Reader) -> Vec<Flow> {
    let joined = flows.iter().filter_map(|flow| {
        let (from, to) = flow.ends?;
        let path = routes::find(flow, (from, to), routes, hosts, reader);
        Some(Flow {
            name: flow.name.as_ref()?.value.clone(),
            path: path?,
            from,
            to,
            start: flow.start.map_or(Duration::ZERO, |start| start.value),
            app: flow.app?,
            ip: flow.ip,
            nodelay: flow.nodelay,
            reads: flow.reads,
            close: flow.close,
            keepalive: flow.keepalive,
        })
    });
    joined.collect()
}
