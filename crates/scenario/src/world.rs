//! The whole file: its tables read and joined into a [`Scenario`].

use std::collections::BTreeMap;

use packet::IpVersion;
use sim::SetupError;
use sim::scenario::{Element, Flow, Host, Path, Scenario};
use units::{Bytes, Duration};

use super::element::ElementTable;
use super::flow::{self, FlowRead, FlowTable};
use super::host::HostTable;
use super::hosts::Hosts;
use super::keys::{Key, Located, Reader};
use super::kinds::{Named, Span, Sub, Tables, Whole, Words};
use super::path::{self, PathTable};
use super::routes::{self, Routes};
use super::setting::ByName;
use super::shared::SharedElements;
use super::source::{Fault, Place, Sources};
use super::sweep::SweepTable;
use super::table::table;
use super::tap::TapTable;
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
static HOST: Key<Named<HostTable>> =
    Key::required("host", Named::of(&host::SECTION), "machines: [host.NAME]");
static SHARED: Key<Named<ElementTable>> = Key::optional(
    "shared",
    Named::of(&element::SHARED_ELEMENT),
    "none",
    "elements that several roads may lead through: [shared.NAME]",
);
static PATH: Key<Tables<PathTable>> =
    Key::required("path", Tables::some(&path::SECTION), "roads between hosts: [[path]]");
static FLOW: Key<Tables<FlowTable>> =
    Key::required("flow", Tables::some(&flow::SECTION), "connections: [[flow]]");
static TAP: Key<Tables<TapTable>> =
    Key::optional("tap", Tables::any(&tap::SECTION), "none", "capture points: [[tap]]");

static SWEEP: Key<Sub<SweepTable>> = Key::optional(
    "sweep",
    Sub::of(&sweep::SECTION),
    "one run",
    "a grid of runs for `ackclock sweep`: [sweep]; `ackclock run` takes the file as it stands",
);

/// Hosts have 16-bit numbers in a run.
const MAX_HOSTS: usize = 65_535;

table! {
    /// A scenario file: what its text says, table by table, with positions for errors.
    ///
    /// [`ScenarioFile::read`] makes it of a text and its `Display` a text of it;
    /// [`load`](crate::load) makes of it what runs.
    pub ScenarioFile: SECTION = "a scenario"
    also {
        /// Lines of the comment at the head of the file.
        comment: Vec<String>,
    }
    {
        title: String = TITLE,
        seed: u64 = SEED,
        duration: Duration = DURATION,
        host: ByName<HostTable> = HOST,
        shared: ByName<ElementTable> = SHARED,
        path: Vec<Located<PathTable>> = PATH,
        flow: Vec<Located<FlowTable>> = FLOW,
        tap: Vec<Located<TapTable>> = TAP,
        sweep: Box<SweepTable> = SWEEP,
    }
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
}

/// Reads the tree; `None` if anything was reported.
pub(super) fn read(root: &Node, sources: &Sources<'_>, reader: &mut Reader) -> Option<Scenario> {
    let file = Sub::<ScenarioFile>::of(&SECTION).table(root, reader)?;
    let scenario = scenario(&file, root, sources, reader);
    reader.faults.is_empty().then_some(scenario)
}

/// The scenario of a file; only what has no reports is as the file says.
fn scenario(
    file: &ScenarioFile,
    root: &Node,
    sources: &Sources<'_>,
    reader: &mut Reader,
) -> Scenario {
    let named = items(&file.host);
    let names = Hosts::new(named.iter().map(|(name, _)| name.value.clone()));
    let hosts: Vec<Host> =
        named.iter().filter_map(|(name, table)| host::host(&name.value, table, reader)).collect();
    let shared = SharedElements::of(items(&file.shared), reader);
    let mut routes = Routes::default();
    for table in items(&file.path) {
        let read = path::path(table, &names, &shared, reader);
        routes.add(read, table.place, &names, reader);
    }
    let flows: Vec<FlowRead> =
        items(&file.flow).iter().map(|table| flow::flow(table, &names, reader)).collect();
    check_flows(file, &flows, sources, reader);
    let endless: Vec<Option<Place>> = flows.iter().map(|flow| flow.endless).collect();
    let flows = join(&flows, &routes, &names, reader);
    let taps = tap::taps(items(&file.tap), &names, reader);
    if let Some(table) = &file.sweep {
        sweep::sweep(&table.value, root, reader);
    }
    let scenario = Scenario {
        title: file.title.as_ref().map(|title| title.value.clone()).unwrap_or_default(),
        seed: file.seed.map_or(1, |seed| seed.value),
        duration: file.duration.map_or(MAX_DURATION, |span| span.value),
        hosts,
        paths: routes.into_paths().into_iter().filter_map(|read| read.path).collect::<Vec<Path>>(),
        shared: shared.all(),
        flows,
        taps,
    };
    if reader.faults.is_empty() {
        check_sizes(&scenario, root.place, file, reader);
        check_quic(&scenario, file, reader);
    }
    if reader.faults.is_empty()
        && let Err(error) = sim::validate(&scenario)
    {
        reader.report(refused(&error, root.place, file, &endless));
    }
    scenario
}

/// The items of a list that may not be there.
fn items<T>(list: &Option<Located<Vec<T>>>) -> &[T] {
    list.as_ref().map_or(&[], |list| &list.value)
}

/// What only the whole shows to be too large or too small.
fn check_sizes(scenario: &Scenario, root: Place, file: &ScenarioFile, reader: &mut Reader) {
    if scenario.hosts.len() > MAX_HOSTS {
        reader.report(Fault::new(root, format!("more than {MAX_HOSTS} hosts")));
    }
    for (flow, table) in scenario.flows.iter().zip(items(&file.flow)) {
        let small = [flow.from, flow.to].into_iter().map(|host| &scenario.hosts[host]).find(
            // RFC 8200 section 5.
            |host| flow.ip == IpVersion::V6 && host.stack.mtu() < 1_280,
        );
        if let Some(host) = small {
            let message = format!("IPv6 needs an MTU of at least 1280 B, {:?} has less", host.name);
            reader.report(Fault::new(table.place, message));
        }
    }
    for (path, table) in scenario.paths.iter().zip(items(&file.path)) {
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
            reader.report(Fault::new(table.place, message));
        }
    }
}

/// What QUIC does not have.
fn check_quic(scenario: &Scenario, file: &ScenarioFile, reader: &mut Reader) {
    let name = |host: usize| &scenario.hosts[host].name;
    let has_quic = |host: usize| scenario.hosts[host].stack.quic().is_some();
    for (flow, table) in scenario.flows.iter().zip(items(&file.flow)) {
        let (from, to) = (flow.from, flow.to);
        if has_quic(from) != has_quic(to) {
            let (quic, tcp) = if has_quic(from) { (from, to) } else { (to, from) };
            let message = format!("{:?} has QUIC and {:?} has TCP", name(quic), name(tcp));
            let hint = format!("give {:?} a profile such as \"quic-rfc9002\" too", name(tcp));
            reader.report(Fault::new(table.place, message).hint(hint));
        } else if has_quic(from) && (flow.nodelay || flow.keepalive.is_some()) {
            let message = "`nodelay` and `keepalive` are options of TCP, this flow is of QUIC";
            reader.report(Fault::new(table.place, message));
        }
    }
    let taps = scenario.taps.iter().zip(items(&file.tap));
    for (tap, table) in taps.filter(|(tap, _)| has_quic(tap.host)) {
        let message = format!("{:?} has QUIC, of which no capture is written", name(tap.host));
        reader.report(Fault::new(table.place, message));
    }
}

/// What a run would refuse, at its place; `endless` says of each flow where it writes without end.
fn refused(
    error: &SetupError,
    root: Place,
    file: &ScenarioFile,
    endless: &[Option<Place>],
) -> Fault {
    let (paths, flows) = (items(&file.path), items(&file.flow));
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
            Fault::new(root, error.to_string())
        }
    }
}

/// What is wrong among the flows, taken together.
fn check_flows(
    file: &ScenarioFile,
    flows: &[FlowRead],
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
        if let (Some(start), Some(duration)) = (flow.start, file.duration)
            && start.value >= duration.value
        {
            let message = "this flow starts when the run is over";
            let end = format!("a start before {}", duration.value);
            reader.report(Fault::new(start.place, message).expected(end));
        }
        if let Some(place) = flow.endless
            && file.duration.is_none()
            && !reader.has_misread(&DURATION)
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
