//! Scenarios made by hand, for all tests of this crate.

#![allow(dead_code, reason = "each test uses its own part")]

use ackclock_sim as sim;
use net::link::Limit;
use packet::IpVersion;
use record::{Event, Recorder, SenderState, Who};
use sim::Observer;
use sim::scenario::{
    App, Close, Element, Flow, Host, Offload, Path, Scenario, Stack, Tap, TapPlace, TcpStack,
};
use tcp::profile::{Family, Profile};
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

pub(crate) fn link(bits_per_second: u64, limit: Limit) -> Element {
    Element::Link { rate: Rate::from_bits_per_second(bits_per_second).unwrap(), limit }
}

/// A line with room for every packet, then a delay.
pub(crate) fn road(bits_per_second: u64, delay: Duration) -> Vec<Element> {
    vec![link(bits_per_second, Limit::Packets(1_000_000)), Element::Delay(delay)]
}

/// A host of that profile with the controller of its family, offloads off, no delay of its own.
pub(crate) fn host(name: &str, profile: &str) -> Host {
    let profile = Profile::named(profile).unwrap();
    let cc = match profile.family {
        Family::Linux => cc::Algorithm::Reno,
        _ => cc::Algorithm::NewReno,
    };
    Host {
        name: name.into(),
        stack: Stack::Tcp(TcpStack::new(profile, cc)),
        offload: Offload::default(),
        delay: Duration::ZERO,
    }
}

/// The TCP of a host.
pub(crate) fn tcp_of(host: &Host) -> &TcpStack {
    host.stack.tcp().expect("a host with TCP")
}

/// As [`tcp_of`], to be changed.
pub(crate) fn tcp(host: &mut Host) -> &mut TcpStack {
    host.stack.tcp_mut().expect("a host with TCP")
}

/// A flow over path 0 from host 0 to host 1 that writes `bytes` and closes.
pub(crate) fn bulk(bytes: u64) -> Flow {
    Flow {
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
    hosts: [Host; 2],
    forward: Vec<Element>,
    reverse: Vec<Element>,
    flow: Flow,
) -> Scenario {
    Scenario {
        title: String::new(),
        seed: 1,
        duration: Duration::from_secs(3_600),
        hosts: hosts.into(),
        paths: vec![Path { from: 0, to: 1, forward, reverse }],
        shared: Vec::new(),
        flows: vec![flow],
        taps: Vec::new(),
    }
}

/// Both taps of every host: number `2 * host` on the wire, `2 * host + 1` at the stack.
pub(crate) fn all_taps(hosts: usize) -> Vec<Tap> {
    let both = |host| [TapPlace::Wire, TapPlace::Stack].map(|place| Tap { host, place });
    (0..hosts).flat_map(both).collect()
}

/// Counts turns of a run, in lots of 65,536.
pub(crate) struct Lots(pub(crate) u64);

impl Recorder for Lots {
    const ON: bool = false;

    fn record(&mut self, _: Instant, _: Who, _: Event, _: Option<&SenderState>) {}
}

impl Observer for Lots {
    fn progress(&mut self, _: Instant) -> core::ops::ControlFlow<()> {
        self.0 += 1;
        core::ops::ControlFlow::Continue(())
    }
}
