//! Hand-written scenarios, shared by all tests of this crate.

#![allow(dead_code, reason = "each test uses its own part")]

use ackclock_sim as sim;
use net::link::QueueLimit;
use packet::IpVersion;
use record::{Event, EventSource, Recorder, SenderState};
use sim::Observer;
use sim::scenario::{
    App, Close, ElementSpec, FlowSpec, HostSpec, Offload, PathSpec, Scenario, StackSpec, TapPoint,
    TapSpec, TcpStack,
};
use tcp::profile::{Family, TcpProfile};
use units::{Bytes, Duration, Instant, Rate};

pub(crate) const KBIT: u64 = 1_000;
pub(crate) const MBIT: u64 = 1_000 * KBIT;
pub(crate) const GBIT: u64 = 1_000 * MBIT;

pub(crate) const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

pub(crate) const fn us(n: u64) -> Duration {
    Duration::from_micros(n)
}

pub(crate) fn link(bits_per_second: u64, limit: QueueLimit) -> ElementSpec {
    ElementSpec::Link { rate: Rate::from_bits_per_second(bits_per_second).unwrap(), limit }
}

/// A line with an unlimited queue, then a delay.
pub(crate) fn route(bits_per_second: u64, delay: Duration) -> Vec<ElementSpec> {
    vec![link(bits_per_second, QueueLimit::Packets(1_000_000)), ElementSpec::Delay(delay)]
}

/// A host of that profile with the controller of its family, offloads off, no host delay.
pub(crate) fn host(name: &str, profile: &str) -> HostSpec {
    let profile = TcpProfile::named(profile).unwrap();
    let cc = match profile.family {
        Family::Linux => cc::Algorithm::Reno,
        _ => cc::Algorithm::NewReno,
    };
    HostSpec {
        name: name.into(),
        stack: StackSpec::Tcp(TcpStack::new(profile, cc)),
        offload: Offload::default(),
        delay: Duration::ZERO,
    }
}

/// The TCP stack of a host.
pub(crate) fn tcp_of(host: &HostSpec) -> &TcpStack {
    host.stack.tcp().expect("a host with TCP")
}

/// The TCP stack of a host for modification; see [`tcp_of`].
pub(crate) fn tcp(host: &mut HostSpec) -> &mut TcpStack {
    host.stack.tcp_mut().expect("a host with TCP")
}

/// A flow over path 0 from host 0 to host 1 that writes `bytes` and closes.
pub(crate) fn bulk(bytes: u64) -> FlowSpec {
    FlowSpec {
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
    }
}

/// Two hosts and a path between them.
pub(crate) fn pair(
    hosts: [HostSpec; 2],
    forward: Vec<ElementSpec>,
    reverse: Vec<ElementSpec>,
    flow: FlowSpec,
) -> Scenario {
    Scenario {
        title: String::new(),
        seed: 1,
        duration: Duration::from_secs(3_600),
        hosts: hosts.into(),
        paths: vec![PathSpec { from: 0, to: 1, forward, reverse }],
        shared: Vec::new(),
        flows: vec![flow],
        groups: Vec::new(),
        taps: Vec::new(),
    }
}

/// Both taps of every host: number `2 * host` on the wire, `2 * host + 1` at the stack.
pub(crate) fn all_taps(hosts: usize) -> Vec<TapSpec> {
    let both = |host| [TapPoint::Wire, TapPoint::Stack].map(|place| TapSpec { host, place });
    (0..hosts).flat_map(both).collect()
}

/// Counts the progress calls of a run, one per 65,536 steps.
pub(crate) struct Lots(pub(crate) u64);

impl Recorder for Lots {
    const ON: bool = false;

    fn record(&mut self, _: Instant, _: EventSource, _: Event, _: Option<&SenderState>) {}
}

impl Observer for Lots {
    fn progress(&mut self, _: Instant) -> core::ops::ControlFlow<()> {
        self.0 += 1;
        core::ops::ControlFlow::Continue(())
    }
}
