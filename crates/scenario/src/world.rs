//! Reads the tables of a scenario file and builds a [`Scenario`] from them.

use std::collections::BTreeMap;

use packet::IpVersion;
use sim::SetupError;
use sim::scenario::{App, ElementSpec, FlowSpec, HostSpec, PathSpec, Scenario};
use units::{Bytes, Duration};

use super::arrivals::Replication;
use super::element::ElementTable;
use super::fabric::FabricTable;
use super::flow::{self, FlowTable, ParsedFlow};
use super::host::HostTable;
use super::hosts::Hosts;
use super::keys::{AnyKey as _, Key, Located, ScenarioReader};
use super::kinds::{
    DurationType, IntegerType, NamedTablesType, TableListType, TableType, TextType,
};
use super::noise::{self, NOISE};
use super::path::{self, PathTable};
use super::real_stacks::StackHost;
use super::routes::{self, Routes};
use super::setting::ByName;
use super::shared::SharedElements;
use super::source::{Sources, SpannedError, TextSpan};
use super::sweep::SweepTable;
use super::table::table;
use super::tap::TapTable;
use super::tree::TomlNode;
use super::{element, expand, fabric, host, kernel, real_stacks, sweep, tap};
use crate::units_text::MAX_DURATION;

static TITLE: Key<TextType> = Key::optional("title", TextType, "none", "title shown in reports");
static SEED: Key<IntegerType> = Key::optional(
    "seed",
    IntegerType { least: 0, most: i64::MAX as u64 },
    "1",
    "seed of all random streams; runs with the same seed are identical",
);
static DURATION: Key<DurationType> = Key::optional(
    "duration",
    DurationType { least: Duration::from_nanos(1), default_unit: "s" },
    "until all flows are finished",
    "simulated time at which the run stops, even if flows are unfinished",
);
static HOST: Key<NamedTablesType<HostTable>> =
    Key::required("host", NamedTablesType::of(&host::SECTION), "end hosts: [host.NAME]");
static SHARED: Key<NamedTablesType<ElementTable>> = Key::optional(
    "shared",
    NamedTablesType::of(&element::SHARED_ELEMENT),
    "none",
    "elements that several paths can include: [shared.NAME]",
);
static FABRIC: Key<TableType<FabricTable>> = Key::optional(
    "fabric",
    TableType::of(&fabric::SECTION),
    "none",
    "a leaf-spine network of the copies of one host: [fabric]",
);
static PATH: Key<TableListType<PathTable>> = Key::optional(
    "path",
    TableListType::some(&path::SECTION),
    "required without `fabric`",
    "paths between hosts: [[path]]",
);
static FLOW: Key<TableListType<FlowTable>> =
    Key::required("flow", TableListType::some(&flow::SECTION), "connections: [[flow]]");
static TAP: Key<TableListType<TapTable>> =
    Key::optional("tap", TableListType::any(&tap::SECTION), "none", "capture points: [[tap]]");

static SWEEP: Key<TableType<SweepTable>> = Key::optional(
    "sweep",
    TableType::of(&sweep::SECTION),
    "one run",
    "parameter grid of `ackclock sweep`: [sweep]; `ackclock run` runs the file's own values once",
);

/// Maximum connections of a scenario.
const MAX_CONNECTIONS: usize = 10_000_000;

/// Hosts have 16-bit numbers in a run.
const MAX_HOSTS: usize = 65_535;

table! {
    /// A scenario file as typed tables, with the positions of values for errors.
    ///
    /// [`ScenarioFile::read`] parses a text and `Display` writes one; [`load`](crate::load) builds
    /// the runnable scenario.
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
        fabric: Box<FabricTable> = FABRIC,
        path: Vec<Located<PathTable>> = PATH,
        flow: Vec<Located<FlowTable>> = FLOW,
        tap: Vec<Located<TapTable>> = TAP,
        sweep: Box<SweepTable> = SWEEP,
        noise: Duration = NOISE,
    }
    check: |fields, reader| {
        if !fields.has(&PATH) && !fields.has(&FABRIC) && !fields.has_unknown_keys() {
            let fault = SpannedError::new(fields.span, "a scenario needs `path`");
            reader.report(fault.hint(PATH.help().to_owned()));
        }
    },
    elsewhere: |key| match key {
        "name" | "description" => Some("the name of a scenario is its `title`"),
        "hosts" => Some("hosts are tables: [host.NAME]"),
        "link" | "links" => {
            Some("an element of several paths is a table: [shared.NAME] link = { ... }")
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

/// Reads the tree; returns `None` if any error was reported.
pub(super) fn read(
    root: &TomlNode,
    sources: &Sources<'_>,
    reader: &mut ScenarioReader,
) -> Option<Scenario> {
    let file = TableType::<ScenarioFile>::of(&SECTION).table(root, reader)?;
    let file = expand::replicated(&file, reader);
    let scenario = scenario(&file, root, sources, reader);
    reader.errors.is_empty().then_some(scenario)
}

/// Builds the scenario; it is valid only if no error was reported.
fn scenario(
    file: &ScenarioFile,
    root: &TomlNode,
    sources: &Sources<'_>,
    reader: &mut ScenarioReader,
) -> Scenario {
    reader.end = file.duration.map(|duration| duration.value);
    let named = items(&file.host);
    let names = Hosts::new(named.iter().map(|(name, _)| name.value.clone()));
    let hosts: Vec<HostSpec> =
        named.iter().filter_map(|(name, table)| host::host(&name.value, table, reader)).collect();
    for (host, (_, table)) in named.iter().enumerate() {
        kernel::kernel(host, table, reader);
        if let Some(stack) = &table.stack {
            let stack = stack.value.clone();
            reader.stack_hosts.push(StackHost { host, stack });
        }
    }
    let shared = SharedElements::of(items(&file.shared), reader);
    let mut routes = Routes::default();
    for table in items(&file.path) {
        let read = path::path(table, &names, &shared, reader);
        routes.add(read, table.span, &names, reader);
    }
    let flows: Vec<ParsedFlow> =
        items(&file.flow).iter().map(|table| flow::flow(table, &names, reader)).collect();
    check_flows(file, &flows, sources, reader);
    let endless: Vec<Option<TextSpan>> = flows.iter().map(|flow| flow.endless).collect();
    let replications: Vec<_> =
        flows.iter().map(|flow| (flow.replication.clone(), flow.span)).collect();
    let flows = join(&flows, &routes, &names, reader);
    let taps = tap::taps(items(&file.tap), &names, reader);
    if let Some(table) = &file.sweep {
        sweep::sweep(&table.value, root, reader);
    }
    let mut scenario = Scenario {
        title: file.title.as_ref().map(|title| title.value.clone()).unwrap_or_default(),
        seed: file.seed.map_or(1, |seed| seed.value),
        duration: file.duration.map_or(MAX_DURATION, |span| span.value),
        hosts,
        paths: routes
            .into_paths()
            .into_iter()
            .filter_map(|read| read.path)
            .collect::<Vec<PathSpec>>(),
        shared: shared.all(),
        flows,
        groups: Vec::new(),
        taps,
    };
    if reader.errors.is_empty() {
        check_sizes(&scenario, root.span, file, reader);
        check_quic(&scenario, file, reader);
    }
    if reader.errors.is_empty()
        && let Err(error) = sim::validate(&scenario)
    {
        reader.report(refused(&error, root.span, file, &endless));
    }
    if reader.errors.is_empty() {
        if let Some(most) = file.noise {
            noise::add(&mut scenario, most.value);
        }
        replicate(&mut scenario, replications, reader);
    }
    scenario
}

/// Replaces each flow with `count` or `arrivals` by its connections.
fn replicate(
    scenario: &mut Scenario,
    replications: Vec<(Option<Replication>, TextSpan)>,
    reader: &mut ScenarioReader,
) {
    let count = |one: &(Option<Replication>, _)| {
        one.0.as_ref().map_or(1, |one| one.count.saturating_mul(one.connections))
    };
    if replications.iter().map(count).sum::<usize>() > MAX_CONNECTIONS {
        let last = replications.iter().rfind(|(replication, _)| replication.is_some());
        let message = format!("the scenario has more than {MAX_CONNECTIONS} connections");
        reader.report(SpannedError::new(last.map_or(TextSpan::NONE, |(_, span)| *span), message));
        return;
    }
    let mut index = 0;
    for (replication, _) in replications {
        let Some(Replication { count, arrivals, sizes, .. }) = replication else {
            index += 1;
            continue;
        };
        index += scenario.replicate(index, count, arrivals, sizes);
    }
}

/// Returns the items of an optional list.
fn items<T>(list: &Option<Located<Vec<T>>>) -> &[T] {
    list.as_ref().map_or(&[], |list| &list.value)
}

/// Checks limits that involve several tables: number of hosts, IPv6 MTU, bucket sizes.
fn check_sizes(
    scenario: &Scenario,
    root: TextSpan,
    file: &ScenarioFile,
    reader: &mut ScenarioReader,
) {
    if scenario.hosts.len() > MAX_HOSTS {
        reader.report(SpannedError::new(root, format!("more than {MAX_HOSTS} hosts")));
    }
    for (flow, table) in scenario.flows.iter().zip(items(&file.flow)) {
        let small = [flow.from, flow.to].into_iter().map(|host| &scenario.hosts[host]).find(
            // RFC 8200 section 5.
            |host| flow.ip == IpVersion::V6 && host.stack.mtu() < 1_280,
        );
        if let Some(host) = small {
            let message = format!("IPv6 needs an MTU of at least 1280 B, {:?} has less", host.name);
            reader.report(SpannedError::new(table.span, message));
        }
    }
    for (path, table) in scenario.paths.iter().zip(items(&file.path)) {
        let mtu = |host: usize| scenario.hosts[host].stack.mtu();
        let largest = Bytes(u64::from(mtu(path.from).max(mtu(path.to))));
        let burst = |element: &ElementSpec| match element {
            ElementSpec::Policer { burst, .. } | ElementSpec::Shaper { burst, .. } => Some(*burst),
            _ => None,
        };
        let through = |element| match element {
            &ElementSpec::Shared(index) => burst(&scenario.shared[index].element),
            element => burst(element),
        };
        let smallest = path.forward.iter().chain(&path.reverse).filter_map(through).min();
        if let Some(burst) = smallest.filter(|burst| *burst < largest) {
            let message = format!(
                "a token bucket of {burst} on this path is below the MTU: {largest} never pass"
            );
            reader.report(SpannedError::new(table.span, message));
        }
    }
}

/// Rejects combinations that QUIC does not support.
fn check_quic(scenario: &Scenario, file: &ScenarioFile, reader: &mut ScenarioReader) {
    let name = |host: usize| &scenario.hosts[host].name;
    let stack = |host: usize| &scenario.hosts[host].stack;
    let has_quic = |host: usize| stack(host).is_quic();
    for (flow, table) in scenario.flows.iter().zip(items(&file.flow)) {
        let (from, to) = (flow.from, flow.to);
        if let App::Datagrams(spec) = &flow.app {
            let headers = u64::from(flow.ip.header_len()) + 8;
            let mtu = scenario.hosts[from].stack.mtu().min(scenario.hosts[to].stack.mtu());
            if spec.size.get() + headers > u64::from(mtu) {
                let message = format!(
                    "a datagram of {} needs a packet above the MTU of {mtu} B; packets are not \
                     fragmented",
                    spec.size
                );
                let most =
                    format!("a size of at most {} B", u64::from(mtu).saturating_sub(headers));
                reader.report(SpannedError::new(table.span, message).expected(most));
            }
            continue;
        }
        if has_quic(from) != has_quic(to) {
            let (quic, tcp) = if has_quic(from) { (from, to) } else { (to, from) };
            let message = format!("{:?} has QUIC and {:?} has TCP", name(quic), name(tcp));
            let hint = format!("give {:?} a profile such as \"quic-rfc9002\" too", name(tcp));
            reader.report(SpannedError::new(table.span, message).hint(hint));
        } else if has_quic(from) && !stack(from).speaks_with(stack(to)) {
            let real = if stack(from).real().is_some() { from } else { to };
            let profile = stack(real).profile_name();
            let other = name(if real == from { to } else { from });
            let peer = if stack(from).real().is_some() && stack(to).real().is_some() {
                "another, and only implementations with TLS read the packets of others"
            } else {
                "a model, whose packets it cannot read"
            };
            let message = format!(
                "{:?} has {profile}, a real implementation, and {other:?} {peer}",
                name(real)
            );
            let hint = format!("give {other:?} {} too", real_stacks::setting(profile));
            reader.report(SpannedError::new(table.span, message).hint(hint));
        } else if has_quic(from) && (flow.nodelay || flow.keepalive.is_some()) {
            let message = "`nodelay` and `keepalive` are options of TCP; this flow uses QUIC";
            reader.report(SpannedError::new(table.span, message));
        }
    }
    let taps = scenario.taps.iter().zip(items(&file.tap));
    for (tap, table) in taps.filter(|(tap, _)| has_quic(tap.host)) {
        let message = format!("cannot tap {:?}: QUIC hosts have no captures", name(tap.host));
        reader.report(SpannedError::new(table.span, message));
    }
}

/// Converts a setup error of the simulator. `endless` holds the position of each flow that never
/// stops writing.
fn refused(
    error: &SetupError,
    root: TextSpan,
    file: &ScenarioFile,
    endless: &[Option<TextSpan>],
) -> SpannedError {
    let (paths, flows) = (items(&file.path), items(&file.flow));
    match *error {
        SetupError::Endless { flow, round_trip } => {
            let message = format!(
                "nothing limits the rate of this flow: its path has no link, and its round trip takes \
                 {round_trip}"
            );
            let hint = "put { link = { rate = \"1Gbit/s\", buffer = \"1bdp\" } } on its path, or give \
                        the flow a number of bytes";
            SpannedError::new(endless[flow].unwrap_or(flows[flow].span), message)
                .hint(hint.to_owned())
        }
        SetupError::Path { path } => {
            let message = "a direction of this path has more than 65534 elements";
            SpannedError::new(paths[path].span, message)
        }
        SetupError::Route { flow } | SetupError::Transport { flow } => {
            SpannedError::new(flows[flow].span, error.to_string())
        }
        // The readers of these tables reject them before.
        SetupError::Controller { .. } | SetupError::Shared { .. } | SetupError::Tap { .. } => {
            SpannedError::new(root, error.to_string())
        }
    }
}

/// Checks names, start times and termination of the flows.
fn check_flows(
    file: &ScenarioFile,
    flows: &[ParsedFlow],
    sources: &Sources<'_>,
    reader: &mut ScenarioReader,
) {
    let mut seen: BTreeMap<&str, TextSpan> = BTreeMap::new();
    for flow in flows {
        if let Some(name) = &flow.name {
            if let Some(first) = seen.get(name.value.as_str()) {
                let message = format!("duplicate flow name {:?}", name.value);
                let hint = format!("the first is on line {}", sources.line(*first));
                reader.report(SpannedError::new(name.span, message).hint(hint));
            }
            seen.entry(&name.value).or_insert(name.span);
        }
        if let (Some(start), Some(duration)) = (flow.start, file.duration)
            && start.value >= duration.value
        {
            let message = "this flow starts after the end of the run";
            let end = format!("a start before {}", duration.value);
            reader.report(SpannedError::new(start.span, message).expected(end));
        }
        if let Some(place) = flow.endless
            && file.duration.is_none()
            && !reader.was_invalid(&DURATION)
        {
            let message = "the run would never end: unlimited bytes and no duration";
            let hint = "write duration = \"60s\" at the top of the file".to_owned();
            reader.report(SpannedError::new(place, message).hint(hint));
        }
    }
}

/// Resolves the path of each flow.
fn join(
    flows: &[ParsedFlow],
    routes: &Routes,
    hosts: &Hosts,
    reader: &mut ScenarioReader,
) -> Vec<FlowSpec> {
    let joined = flows.iter().filter_map(|flow| {
        let (from, to) = flow.ends?;
        let path = routes::find(flow, (from, to), routes, hosts, reader);
        Some(FlowSpec {
            name: flow.name.as_ref()?.value.clone(),
            path: path?,
            from,
            to,
            start: flow.start.map_or(Duration::ZERO, |start| start.value),
            app: flow.app.clone()?,
            ip: flow.ip,
            nodelay: flow.nodelay,
            reads: flow.reads,
            close: flow.close,
            keepalive: flow.keepalive,
        })
    });
    joined.collect()
}
