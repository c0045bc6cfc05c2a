//! Scenarios and kernels for the tests of guests.
#![allow(dead_code, reason = "every test program uses a part of it")]

use std::net::SocketAddr;
use std::path::PathBuf;

use ackclock_guest::kernel::{Cache, build};
use ackclock_guest::{GuestHost, Job, uml::Protocol};
use net::link::QueueLimit;
use packet::IpVersion;
use packet::wire::Endpoints;
use sim::scenario::{
    App, Close, ElementSpec, FlowSpec, HostSpec, Offload, PathSpec, Scenario, StackSpec, TapPoint,
    TapSpec, TcpStack,
};
use units::{Bytes, Duration, Rate};

/// Returns a kernel and process 1; `None`, with a message, if there is no kernel.
///
/// # Panics
/// If there is no kernel and `ACKCLOCK_REQUIRE_KERNEL` is set, as in CI.
#[expect(clippy::disallowed_methods, clippy::print_stderr, reason = "which tests are skipped")]
pub(crate) fn kernel() -> Option<(PathBuf, PathBuf)> {
    let cache = Cache::of_user();
    let kernel = cache.as_ref().and_then(|cache| cache.kernel("linux-6.12").ok()).flatten();
    let found = kernel.zip(cache.and_then(|cache| build::init(&cache).ok()));
    let required = std::env::var_os("ACKCLOCK_REQUIRE_KERNEL").is_some();
    assert!(found.is_some() || !required, "no kernel: run `ackclock kernel build`");
    if found.is_none() {
        eprintln!("skipped: there is no kernel in the cache; `ackclock kernel build` makes one");
    }
    found.map(|(kernel, init)| (kernel.path, init))
}

/// Hosts that are kernels.
pub(crate) fn guests(kernel: &(PathBuf, PathBuf), hosts: &[usize]) -> Vec<GuestHost> {
    let guest = |&host| GuestHost {
        host,
        kernel: kernel.0.clone(),
        init: kernel.1.clone(),
        memory: 64,
        sysctls: Vec::new(),
        facts: false,
        tcp_info: Duration::from_millis(10),
    };
    hosts.iter().map(guest).collect()
}

/// A job without pinning: tests run concurrently.
pub(crate) fn job<'a>(
    scenario: &'a Scenario,
    guests: &'a [GuestHost],
    endpoints: &'a [Endpoints],
) -> Job<'a> {
    Job {
        scenario,
        guests,
        endpoints,
        protocol: Protocol::SharedMemory,
        programs: &[],
        states: false,
        pin: false,
    }
}

/// Two hosts with 10 Mbit/s and 20 ms between them, and a transfer of `bytes` bytes.
pub(crate) fn scenario(bytes: u64) -> Scenario {
    let host = |name: &str| {
        let profile = tcp::profile::TcpProfile::named("linux-6.18").unwrap();
        let cc = profile.controller();
        HostSpec {
            name: name.into(),
            stack: StackSpec::Tcp(TcpStack::new(profile, cc)),
            offload: Offload { tso: true, ..Offload::default() },
            delay: Duration::ZERO,
        }
    };
    let rate = Rate::from_bits_per_second(10_000_000).unwrap();
    let link = ElementSpec::Link { rate, limit: QueueLimit::Bytes(Bytes(60_000)) };
    let delay = ElementSpec::Delay(Duration::from_millis(10));
    Scenario {
        title: "two hosts".into(),
        seed: 7,
        duration: Duration::from_secs(30),
        hosts: ["sender", "sink"].map(host).to_vec(),
        paths: vec![PathSpec {
            from: 0,
            to: 1,
            forward: vec![link, delay.clone()],
            reverse: vec![delay],
        }],
        shared: Vec::new(),
        flows: vec![flow("up", App::Bulk { bytes: Some(Bytes(bytes)), write: None })],
        groups: Vec::new(),
        taps: [0, 1].map(|host| TapSpec { host, place: TapPoint::Stack }).to_vec(),
    }
}

/// A flow from the first host to the second.
pub(crate) fn flow(name: &str, app: App) -> FlowSpec {
    FlowSpec {
        name: name.into(),
        path: 0,
        from: 0,
        to: 1,
        start: Duration::ZERO,
        app,
        ip: IpVersion::V4,
        nodelay: false,
        reads: None,
        close: Close::Fin,
        keepalive: None,
    }
}

/// Addresses and ports of the flows of a scenario.
pub(crate) fn endpoints(scenario: &Scenario) -> Vec<Endpoints> {
    let of = |(number, flow): (usize, &FlowSpec)| {
        let end = |host: usize, port: u16| match flow.ip {
            IpVersion::V4 => SocketAddr::from(([10, 0, 0, host as u8 + 1], port)),
            IpVersion::V6 => SocketAddr::from(([0xfd00, 0, 0, 0, 0, 0, 0, host as u16 + 1], port)),
        };
        Endpoints { src: end(flow.from, 49_152 + number as u16), dst: end(flow.to, 5_001) }
    };
    scenario.flows.iter().enumerate().map(of).collect()
}
