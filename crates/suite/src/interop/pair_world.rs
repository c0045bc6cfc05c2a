//! A scenario in which one or two flows use the path of another.

use packet::IpVersion;
use sim::Scenario;
use sim::scenario::{
    App, Close, ElementSpec, FlowSpec, HostSpec, Offload, PathSpec, SharedElement, StackSpec,
};
use units::Duration;

/// A flow without end.
pub(super) struct PairFlow<'a> {
    pub(super) sender: &'a StackSpec,
    pub(super) receiver: &'a StackSpec,
    pub(super) start: Duration,
}

/// The scenario of these flows over the path of the first flow of `of`: all pass the same elements. Hosts alternate,
/// the sender and the receiver of each flow.
pub(super) fn scenario(
    of: &Scenario,
    flows: &[PairFlow<'_>],
    duration: Duration,
    seed: u64,
) -> Scenario {
    let mut shared = of.shared.clone();
    let first = of.flows.first();
    let path = first.and_then(|flow| of.paths.get(flow.path));
    let turned = first.zip(path).is_some_and(|(flow, path)| path.from != flow.from);
    let mut route = |elements: &[ElementSpec], direction: &str| -> Vec<ElementSpec> {
        let numbered = elements.iter().enumerate();
        numbered
            .map(|(number, element)| match element {
                ElementSpec::Shared(index) => ElementSpec::Shared(*index),
                own => {
                    let name = format!("{direction} {number}");
                    shared.push(SharedElement { name, element: own.clone() });
                    ElementSpec::Shared(shared.len() - 1)
                }
            })
            .collect()
    };
    let (forward, reverse) = match path {
        Some(path) if turned => (route(&path.reverse, "forward"), route(&path.forward, "return")),
        Some(path) => (route(&path.forward, "forward"), route(&path.reverse, "return")),
        None => (Vec::new(), Vec::new()),
    };
    let host = |name: String, stack: &StackSpec| HostSpec {
        name,
        stack: stack.clone(),
        offload: Offload::default(),
        delay: Duration::ZERO,
    };
    let numbered = || flows.iter().enumerate();
    let hosts = numbered().flat_map(|(number, flow)| {
        [
            host(format!("sender-{number}"), flow.sender),
            host(format!("receiver-{number}"), flow.receiver),
        ]
    });
    let paths = numbered().map(|(number, _)| PathSpec {
        from: 2 * number,
        to: 2 * number + 1,
        forward: forward.clone(),
        reverse: reverse.clone(),
    });
    let specs = numbered().map(|(number, flow)| FlowSpec {
        name: format!("flow-{number}"),
        path: number,
        from: 2 * number,
        to: 2 * number + 1,
        start: flow.start,
        app: App::Bulk { bytes: None, write: None },
        ip: first.map_or(IpVersion::V4, |flow| flow.ip),
        nodelay: false,
        reads: None,
        close: Close::Fin,
        keepalive: None,
    });
    Scenario {
        title: of.title.clone(),
        seed,
        duration,
        hosts: hosts.collect(),
        paths: paths.collect(),
        shared,
        flows: specs.collect(),
        groups: Vec::new(),
        taps: Vec::new(),
    }
}
