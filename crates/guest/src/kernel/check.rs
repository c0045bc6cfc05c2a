//! Checks a kernel: two instances transfer 1 MB, twice, and both runs must be identical.

use std::net::SocketAddr;
use std::path::Path;

use net::link::QueueLimit;
use packet::wire::Endpoints;
use packet::{IpVersion, Segment};
use record::{Event, EventSource, Recorder, SenderState};
use sha2::{Digest as _, Sha256};
use sim::Observer;
use sim::scenario::{
    App, Close, ElementSpec, FlowSpec, HostSpec, Offload, PathSpec as Route, Scenario, StackSpec,
    TapPoint, TapSpec, TcpStack,
};
use tcp::profile::TcpProfile;
use units::{Bytes, Duration, Instant, Rate};

use super::build::hex;
use crate::run::{GuestHost, GuestRun, Job, RunError, run};
use crate::uml::Protocol;

/// Bytes of the transfer.
pub const BYTES: u64 = 1_000_000;

/// The result of a check.
#[derive(Debug)]
pub struct Checked {
    /// SHA-256 of all packets with their times, for each run.
    pub digests: [String; 2],
    /// Packets of each run.
    pub packets: [u64; 2],
    /// The first run.
    pub run: GuestRun,
    /// Facts that depend on the kernel's build, as the kernel reports them.
    pub build: Vec<(String, String)>,
}

impl Checked {
    /// Returns whether both runs were identical and the transfer completed.
    pub fn is_good(&self) -> bool {
        self.digests[0] == self.digests[1] && self.run.outcome.flows[0].finished
    }
}

/// Hashes every packet that passes a tap.
#[derive(Debug, Default)]
pub struct PacketDigest {
    hash: Sha256,
    /// Packets.
    pub packets: u64,
}

impl PacketDigest {
    /// The digest, in hexadecimal.
    pub fn finish(self) -> String {
        hex(&self.hash.finalize())
    }
}

impl Recorder for PacketDigest {
    const ON: bool = false;

    fn record(&mut self, _: Instant, _: EventSource, _: Event, _: Option<&SenderState>) {}
}

impl Observer for PacketDigest {
    fn tap(&mut self, at: Instant, tap: usize, outbound: bool, segment: &Segment) {
        self.packets += 1;
        self.hash.update(format!("{} {tap} {outbound} {segment:?}\n", at.as_nanos()));
    }
}

/// Boots two instances of a kernel and transfers 1 MB at 100 Mbit/s and 20 ms, twice.
///
/// # Errors
/// [`RunError`].
pub fn check(kernel: &Path, init: &Path) -> Result<Checked, RunError> {
    let scenario = scenario();
    let guest = |host| GuestHost {
        host,
        kernel: kernel.to_owned(),
        init: init.to_owned(),
        memory: 64,
        sysctls: Vec::new(),
        facts: true,
        tcp_info: Duration::from_millis(10),
    };
    let guests = [guest(0), guest(1)];
    let endpoints = [Endpoints {
        src: SocketAddr::from(([10, 0, 0, 1], 49_152)),
        dst: SocketAddr::from(([10, 0, 0, 2], 5_001)),
    }];
    let job = Job {
        scenario: &scenario,
        guests: &guests,
        endpoints: &endpoints,
        protocol: Protocol::SharedMemory,
        programs: &[],
        states: false,
        pin: true,
    };
    let mut observers = [PacketDigest::default(), PacketDigest::default()];
    let first = run(&job, &mut observers[0])?;
    run(&job, &mut observers[1])?;
    let packets = [observers[0].packets, observers[1].packets];
    let build = first.hosts.first().map(|host| host.facts.clone()).unwrap_or_default();
    Ok(Checked { digests: observers.map(PacketDigest::finish), packets, run: first, build })
}

fn scenario() -> Scenario {
    let host = |name: &str| {
        let profile = TcpProfile::named("linux-6.18")?;
        let cc = profile.controller();
        Some(HostSpec {
            name: name.into(),
            stack: StackSpec::Tcp(TcpStack::new(profile, cc)),
            offload: Offload { tso: true, ..Offload::default() },
            delay: Duration::ZERO,
        })
    };
    let rate = Rate::from_bits_per_second(100_000_000);
    let link =
        rate.map(|rate| ElementSpec::Link { rate, limit: QueueLimit::Bytes(Bytes(1_000_000)) });
    let delay = ElementSpec::Delay(Duration::from_millis(10));
    Scenario {
        title: "kernel check".into(),
        seed: 1,
        duration: Duration::from_secs(60),
        hosts: ["sender", "sink"].into_iter().filter_map(host).collect(),
        paths: vec![Route {
            from: 0,
            to: 1,
            forward: link.into_iter().chain([delay.clone()]).collect(),
            reverse: vec![delay],
        }],
        shared: Vec::new(),
        flows: vec![FlowSpec {
            name: "transfer".into(),
            path: 0,
            from: 0,
            to: 1,
            start: Duration::ZERO,
            app: App::Bulk { bytes: Some(Bytes(BYTES)), write: None },
            ip: IpVersion::V4,
            nodelay: false,
            reads: None,
            close: Close::Fin,
            keepalive: None,
        }],
        groups: Vec::new(),
        taps: [0, 1].map(|host| TapSpec { host, place: TapPoint::Stack }).to_vec(),
    }
}
