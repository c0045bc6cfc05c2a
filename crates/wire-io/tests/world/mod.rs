//! A scenario of two hosts, one flow and one path.
#![allow(dead_code, reason = "each test file uses its part")]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::AtomicBool;

use packet::IpVersion;
use packet::wire::Endpoints;
use sim::Observer;
use sim::scenario::{
    App, Close, ElementSpec, FlowSpec, HostSpec, Offload, PathSpec, Scenario, SelectionRule,
    StackSpec, TcpStack,
};
use tcp::profile::{Family, TcpProfile};
use units::{Bytes, Duration, Ratio};
use wire_io::{HostWorkload, Job, WireOutcome, namespace, run};

use ackclock_wire_io as wire_io;

pub(crate) struct World {
    pub(crate) scenario: Scenario,
}

/// Prints why the tests skip, and returns whether they must.
pub(crate) fn skipped() -> bool {
    let why = namespace::unavailable();
    if let Some(why) = &why {
        say(&format!("skipped: {why}"));
    }
    why.is_some()
}

#[expect(clippy::print_stderr, reason = "a skipped test must say so")]
pub(crate) fn say(text: &str) {
    eprintln!("{text}");
}

pub(crate) fn share(of: u64, hundred: u64) -> SelectionRule {
    SelectionRule::Share(Ratio::new(of, hundred).unwrap())
}

fn address(host: usize, ip: IpVersion) -> IpAddr {
    match ip {
        IpVersion::V4 => Ipv4Addr::new(10, 0, 0, host as u8 + 1).into(),
        IpVersion::V6 => Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, host as u16 + 1).into(),
    }
}

impl World {
    /// Creates a transfer of `bytes` from host 0 to host 1; simulated hosts have this profile.
    pub(crate) fn new(profile: &str, bytes: u64) -> Self {
        let profile = TcpProfile::named(profile).unwrap();
        let cc = match profile.family {
            Family::Linux => cc::Algorithm::Reno,
            _ => cc::Algorithm::NewReno,
        };
        let host = |name: &str| HostSpec {
            name: name.into(),
            stack: StackSpec::Tcp(TcpStack::new(profile.clone(), cc)),
            offload: Offload { tso: true, ..Offload::default() },
            delay: Duration::ZERO,
        };
        let scenario = Scenario {
            title: String::new(),
            seed: 1,
            duration: Duration::from_secs(60),
            hosts: vec![host("a"), host("b")],
            paths: vec![PathSpec { from: 0, to: 1, forward: vec![], reverse: vec![] }],
            shared: vec![],
            flows: vec![FlowSpec {
                name: "bulk".into(),
                path: 0,
                from: 0,
                to: 1,
                start: Duration::ZERO,
                app: App::Bulk { bytes: Some(Bytes(bytes)), write: None },
                ip: IpVersion::V4,
                nodelay: false,
                reads: None,
                close: Close::Fin,
                keepalive: None,
            }],
            groups: Vec::new(),
            taps: vec![],
        };
        Self { scenario }
    }

    /// Sets the elements of both directions.
    pub(crate) fn route(&mut self, elements: Vec<ElementSpec>) {
        self.scenario.paths[0].forward.clone_from(&elements);
        self.scenario.paths[0].reverse = elements;
    }

    /// The simulated endpoint sends to the kernel, or receives from it.
    pub(crate) fn run<O: Observer>(&self, send: bool, observer: &mut O) -> WireOutcome<Vec<u8>> {
        self.with(if send { &[1] } else { &[0] }, observer)
    }

    pub(crate) fn run_between_kernels<O: Observer>(
        &self,
        observer: &mut O,
    ) -> WireOutcome<Vec<u8>> {
        self.with(&[0, 1], observer)
    }

    fn with<O: Observer>(&self, outside: &[usize], observer: &mut O) -> WireOutcome<Vec<u8>> {
        let ip = self.scenario.flows[0].ip;
        let endpoints = Endpoints {
            src: SocketAddr::new(address(0, ip), 49_152),
            dst: SocketAddr::new(address(1, ip), 5_001),
        };
        let pair = |&host: &usize| (address(host, IpVersion::V4), address(host, IpVersion::V6));
        let addresses: Vec<_> = outside.iter().map(pair).collect();
        run(
            Job {
                scenario: &self.scenario,
                outside,
                play: HostWorkload::Flows(&[endpoints]),
                addresses: &addresses,
                congestion: None,
                poll: Duration::from_millis(5),
                capture: None,
                stop: &AtomicBool::new(false),
            },
            observer,
        )
        .unwrap()
    }
}

/// Asserts that all bytes arrived as written.
pub(crate) fn assert_whole(done: &WireOutcome<Vec<u8>>, bytes: u64, what: &str) {
    let flow = &done.flows[0];
    assert!(flow.errors.is_empty(), "{what}: {:?}", flow.errors);
    assert!(done.outcome.flows[0].finished, "{what}: not finished: {:?}", done.outcome);
    assert_eq!(flow.read, bytes, "{what}");
    assert!(flow.equal(), "{what}: {flow:?}");
    let counts = &done.counts;
    assert_eq!((counts.unverified, counts.damaged, counts.refused), (0, 0, 0), "{what}");
}
