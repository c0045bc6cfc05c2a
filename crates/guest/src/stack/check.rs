//! Checks a stack: two hosts transfer 1 MB and answer requests, twice, and both runs must be identical.

use net::link::QueueLimit;
use packet::IpVersion;
use record::{Event, EventSource, PacketEvent, Recorder, SenderState};
use sha2::{Digest as _, Sha256};
use sim::scenario::{
    App, Close, ElementSpec, FlowSpec, HostSpec, Offload, PathSpec as Route, RealQuicStack,
    Scenario, StackSpec,
};
use sim::{Observer, RunError, RunOutcome};
use units::{Bytes, Duration, Instant, Rate};

use super::StackProgram;
use crate::kernel::build::hex;

/// Bytes of the transfer.
pub const BYTES: u64 = 1_000_000;

/// The result of a check.
#[derive(Debug)]
pub struct CheckedStack {
    /// SHA-256 of the times and sizes of all packets, for each run.
    pub digests: [String; 2],
    /// Packets of each run.
    pub packets: [u64; 2],
    /// The first run.
    pub outcome: RunOutcome,
}

impl CheckedStack {
    /// Returns whether both runs were identical and both flows completed.
    pub fn is_good(&self) -> bool {
        self.digests[0] == self.digests[1] && self.outcome.flows.iter().all(|flow| flow.finished)
    }
}

/// Hashes time, host, flow and size of every packet that a host sends.
#[derive(Debug, Default)]
struct SentDigest {
    hash: Sha256,
    packets: u64,
}

impl Recorder for SentDigest {
    const ON: bool = false;
    const PACKETS: bool = true;

    fn record(&mut self, _: Instant, _: EventSource, _: Event, _: Option<&SenderState>) {}

    fn record_packet(&mut self, at: Instant, movement: PacketEvent) {
        if let PacketEvent::Sent { host, flow, size, .. } = movement {
            self.packets += 1;
            self.hash.update(format!("{} {} {} {size}\n", at.as_nanos(), host.0, flow.0));
        }
    }
}

impl Observer for SentDigest {}

/// Transfers 1 MB and 20 responses of 20 kB at 50 Mbit/s and 20 ms, twice.
///
/// # Errors
/// [`RunError`].
pub fn check(stack: &'static StackProgram) -> Result<CheckedStack, RunError> {
    let scenario = scenario(stack);
    let mut observers = [SentDigest::default(), SentDigest::default()];
    let outcome = sim::run(&scenario, &mut observers[0])?;
    sim::run(&scenario, &mut observers[1])?;
    let packets = [observers[0].packets, observers[1].packets];
    let digests = observers.map(|observer| hex(&observer.hash.finalize()));
    Ok(CheckedStack { digests, packets, outcome })
}

fn scenario(stack: &'static StackProgram) -> Scenario {
    let cc = quic::real::RealStack::controllers(stack).first().copied().unwrap_or_default();
    let host = |name: &str| HostSpec {
        name: name.into(),
        stack: StackSpec::Real(RealQuicStack { stack, cc, mtu: 1_500 }),
        offload: Offload::default(),
        delay: Duration::ZERO,
    };
    let rate = Rate::from_bits_per_second(50_000_000);
    // A queue that slow start overflows.
    let link = rate.map(|rate| ElementSpec::Link { rate, limit: QueueLimit::Bytes(Bytes(60_000)) });
    let delay = ElementSpec::Delay(Duration::from_millis(10));
    let flow = |name: &str, app: App| FlowSpec {
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
    };
    Scenario {
        title: "stack check".into(),
        seed: 1,
        duration: Duration::from_secs(60),
        hosts: ["client", "server"].map(host).to_vec(),
        paths: vec![Route {
            from: 0,
            to: 1,
            forward: link.into_iter().chain([delay.clone()]).collect(),
            reverse: vec![delay],
        }],
        shared: Vec::new(),
        flows: vec![
            flow("transfer", App::Bulk { bytes: Some(Bytes(BYTES)), write: None }),
            flow(
                "requests",
                App::Requests {
                    request: Bytes(200),
                    response: Bytes(20_000),
                    think: Duration::ZERO,
                    count: Some(20),
                },
            ),
        ],
        groups: Vec::new(),
        taps: Vec::new(),
    }
}
