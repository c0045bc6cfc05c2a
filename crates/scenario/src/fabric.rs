//! `[fabric]`: a leaf-spine network of the copies of one host, written out as shared links and a
//! path for each flow.
//!
//! A flow takes one spine in each direction, selected by a hash of its name as ECMP selects by a
//! hash of the addresses and ports.

use std::collections::BTreeMap;

use units::{Duration, RandomStream};

use super::changes::OverTime;
use super::element::{self, ElementTable, LinkTable};
use super::keys::{Key, Located, ScenarioReader};
use super::kinds::{DurationType, IntegerType, TableType, TextType};
use super::path::PathTable;
use super::source::SpannedError;
use super::table::table;
use super::world::ScenarioFile;

static HOSTS: Key<TextType> = Key::required(
    "hosts",
    TextType,
    "the host with `count` whose copies are attached to the leaves",
);
static LEAVES: Key<IntegerType> = Key::required(
    "leaves",
    IntegerType { least: 1, most: 1_000 },
    "leaf switches; each has the same number of hosts, in their order",
);
static SPINES: Key<IntegerType> = Key::required(
    "spines",
    IntegerType { least: 1, most: 1_000 },
    "spine switches, each connected to all leaves",
);
static HOST_LINK: Key<TableType<LinkTable>> = Key::required(
    "host_link",
    TableType::of(&element::LINK_SECTION),
    "each link between a host and its leaf, in either direction, with the queue ahead of it",
);
static SPINE_LINK: Key<TableType<LinkTable>> = Key::required(
    "spine_link",
    TableType::of(&element::LINK_SECTION),
    "each link between a leaf and a spine, in either direction, with the queue ahead of it",
);
static DELAY: Key<DurationType> = Key::optional(
    "delay",
    DurationType { least: Duration::ZERO, default_unit: "us" },
    "1us",
    "propagation delay of each link",
);

table! {
    /// A leaf-spine network.
    pub FabricTable: SECTION = "`fabric`" {
        hosts: String = HOSTS,
        leaves: u64 = LEAVES,
        spines: u64 = SPINES,
        host_link: Box<LinkTable> = HOST_LINK,
        spine_link: Box<LinkTable> = SPINE_LINK,
        delay: Duration = DELAY,
    }
}

/// Adds the links of the fabric and the path of each flow between its hosts to a file whose hosts are
/// replicated; `count` is the number of copies of each host by name.
pub(super) fn write_out(
    file: &mut ScenarioFile,
    counts: &BTreeMap<String, u64>,
    reader: &mut ScenarioReader,
) {
    let Some(table) = file.fabric.take() else { return };
    let fabric = &table.value;
    let (Some(hosts), Some(leaves), Some(spines)) = (&fabric.hosts, fabric.leaves, fabric.spines)
    else {
        return;
    };
    let Some(&count) = counts.get(&hosts.value) else {
        let message = format!("{:?} is not a host with `count`", hosts.value);
        let fault = SpannedError::new(hosts.span, message);
        reader.report(fault.hint("write count = 32 in [host.NAME]".to_owned()));
        return;
    };
    if !count.is_multiple_of(leaves.value) {
        let message = format!("{count} hosts do not fill {} leaves equally", leaves.value);
        reader.report(SpannedError::new(leaves.span, message));
        return;
    }
    let mut links = FabricLinks { fabric, used: Vec::new() };
    let number = |name: &Located<String>| -> Option<u64> {
        let number = name.value.strip_prefix(&hosts.value)?.strip_prefix('-')?.parse().ok()?;
        (number < count).then_some(number)
    };
    let per_leaf = count / leaves.value;
    let mut paths = Vec::new();
    for flow in file.flow.iter_mut().flat_map(|flows| &mut flows.value) {
        let flow_table = &mut flow.value;
        let (Some(from), Some(to), Some(name)) =
            (&flow_table.from, &flow_table.to, &flow_table.name)
        else {
            continue;
        };
        let (Some(source), Some(target)) = (number(from), number(to)) else { continue };
        if flow_table.path.is_some() || source == target {
            continue;
        }
        let leaf = |host: u64| host / per_leaf;
        let mut draws = RandomStream::named(0, &format!("flow {}", name.value), "ecmp");
        let mut route = |from: u64, to: u64| {
            let mut names = vec![format!("host {from} up")];
            if leaf(from) != leaf(to) {
                let spine = draws.below(spines.value);
                names.push(format!("leaf {} to spine {spine}", leaf(from)));
                names.push(format!("spine {spine} to leaf {}", leaf(to)));
            }
            names.push(format!("host {to} down"));
            links.route(names)
        };
        let (forward, back) = (route(source, target), route(target, source));
        let located = |value| Some(Located { value, span: flow.span });
        paths.push(Located {
            value: PathTable {
                name: located(format!("fabric {}", name.value)),
                from: Some(from.clone()),
                to: Some(to.clone()),
                preset: None,
                forward: located_list(forward, flow.span),
                return_: located_list(back, flow.span),
            },
            span: flow.span,
        });
        flow_table.path = located(format!("fabric {}", name.value));
    }
    let shared = links.used.into_iter().map(|(name, link)| {
        let link = Some(Located { value: link, span: table.span });
        let element = ElementTable { link, ..ElementTable::default() };
        (Located { value: name, span: table.span }, element)
    });
    let known = Located { value: Vec::new(), span: table.span };
    file.shared.get_or_insert(known).value.extend(shared);
    let known = Located { value: Vec::new(), span: table.span };
    file.path.get_or_insert(known).value.extend(paths);
}

fn located_list(
    elements: Vec<ElementTable>,
    span: super::source::TextSpan,
) -> Option<Located<Vec<Located<ElementTable>>>> {
    let value = elements.into_iter().map(|value| Located { value, span }).collect();
    Some(Located { value, span })
}

/// The links that flows use, in the order of their first use.
struct FabricLinks<'f> {
    fabric: &'f FabricTable,
    used: Vec<(String, Box<LinkTable>)>,
}

impl FabricLinks<'_> {
    /// The elements of a route through these links.
    fn route(&mut self, names: Vec<String>) -> Vec<ElementTable> {
        let delay = self.fabric.delay.map_or(Duration::from_micros(1), |delay| delay.value);
        let mut route = Vec::new();
        for name in names {
            let link = match name.starts_with("host ") {
                true => &self.fabric.host_link,
                false => &self.fabric.spine_link,
            };
            let Some(link) = link else { continue };
            if !self.used.iter().any(|(known, _)| *known == name) {
                self.used.push((name.clone(), link.value.clone()));
            }
            let shared = Some(Located { value: name, span: link.span });
            route.push(ElementTable { shared, ..ElementTable::default() });
            if !delay.is_zero() {
                let delay = Some(Located { value: OverTime::Constant(delay), span: link.span });
                route.push(ElementTable { delay, ..ElementTable::default() });
            }
        }
        route
    }
}
