//! Connections in their initial state, from the scenario.

use quic::real::RealConfig;
use tcp::profile::{BurstRule, SharedProfile};
use tcp::{Keepalive, TcpConfig, TcpEndpoint, TcpSide};
use units::{Duration, FlowId, RandomStream, SeqNum};

use crate::real::RealTransport;
use crate::scenario::{App, HostSpec, QuicStack, RealQuicStack, Scenario, StackSpec, TcpStack};
use crate::transport::TransportEndpoint;
use crate::udp::DatagramEndpoint;

/// The profile of each TCP host; equal ones are shared, so that the one which every connection
/// reads stays in the cache.
pub(super) fn profiles(scenario: &Scenario) -> Vec<Option<SharedProfile>> {
    let mut different: Vec<SharedProfile> = Vec::new();
    let mut shared = |tcp: &TcpStack, tso: bool| {
        let mut wanted = tcp.profile.clone();
        if let BurstRule::Linux(bursts) = &mut wanted.burst {
            bursts.splits = !tso;
        }
        // Where many differ, some duplicates do not matter.
        let known = different.iter().rev().take(8).find(|known| ***known == wanted);
        let profile = known.cloned().unwrap_or_else(|| wanted.into());
        if known.is_none() {
            different.push(profile.clone());
        }
        profile
    };
    let hosts = scenario.hosts.iter();
    hosts.map(|host| host.stack.tcp().map(|tcp| shared(tcp, host.offload.tso))).collect()
}

/// Creates one end of flow number `index`; `profile` is that of its host, if it has TCP.
pub(super) fn transport(
    scenario: &Scenario,
    index: usize,
    side: TcpSide,
    profile: Option<&SharedProfile>,
) -> TransportEndpoint {
    let flow = &scenario.flows[index];
    if let App::Datagrams(spec) = &flow.app {
        let draws = || {
            let owner = format!("flow {}", flow.name);
            RandomStream::named(scenario.seed, &owner, "datagram")
        };
        return TransportEndpoint::Udp(Box::new(match side {
            TcpSide::Client => DatagramEndpoint::source(spec, draws()),
            TcpSide::Server => DatagramEndpoint::sink(spec),
        }));
    }
    let [client, server] = [flow.from, flow.to].map(|host| &scenario.hosts[host]);
    let (own, peer) = match side {
        TcpSide::Client => (client, server),
        TcpSide::Server => (server, client),
    };
    match (&own.stack, &peer.stack, profile) {
        (StackSpec::Tcp(tcp), _, Some(profile)) => {
            let config = tcp_config(scenario, index, side, (own, tcp, profile));
            TransportEndpoint::Tcp(Box::new(TcpEndpoint::new(config)))
        }
        (StackSpec::Quic(own), StackSpec::Quic(peer), _) => TransportEndpoint::Quic(Box::new(
            quic::QuicEndpoint::new(quic_config(scenario, index, side, own, peer)),
        )),
        (StackSpec::Real(own), StackSpec::Real(_), _) => {
            let real_config = real_config(scenario, index, side, own);
            TransportEndpoint::Real(Box::new(RealTransport::new(own.stack.endpoint(&real_config))))
        }
        // Setup rejects a flow that connects different transports.
        _ => TransportEndpoint::Outside,
    }
}

fn real_config(
    scenario: &Scenario,
    index: usize,
    side: TcpSide,
    own: &RealQuicStack,
) -> RealConfig {
    let flow = &scenario.flows[index];
    let (side, host) = match side {
        TcpSide::Client => (quic::QuicSide::Client, flow.from),
        TcpSide::Server => (quic::QuicSide::Server, flow.to),
    };
    let owner = format!("flow {index} host {}", scenario.hosts[host].name);
    let mut draws = RandomStream::named(scenario.seed, &owner, "real stack");
    let mut seed = [0; 32];
    for part in seed.chunks_exact_mut(8) {
        part.copy_from_slice(&draws.next_u64().to_be_bytes());
    }
    RealConfig { flow: index as u32, side, cc: own.cc, seed, mtu: own.mtu, ip: flow.ip }
}

fn quic_config(
    scenario: &Scenario,
    index: usize,
    side: TcpSide,
    own: &QuicStack,
    peer: &QuicStack,
) -> quic::QuicConfig {
    let flow = &scenario.flows[index];
    let (side, client, host) = match side {
        TcpSide::Client => (quic::QuicSide::Client, own, flow.from),
        TcpSide::Server => (quic::QuicSide::Server, peer, flow.to),
    };
    let owner = format!("flow {index} host {}", scenario.hosts[host].name);
    quic::QuicConfig {
        profile: own.profile,
        peer: peer.profile.parameters(),
        handshake: client.profile.handshake,
        cc: own.cc,
        side,
        flow: FlowId(index as u32),
        ip: flow.ip,
        draws: RandomStream::named(scenario.seed, &owner, "controller"),
    }
}

fn tcp_config(
    scenario: &Scenario,
    index: usize,
    side: TcpSide,
    (host, tcp, profile): (&HostSpec, &TcpStack, &SharedProfile),
) -> TcpConfig {
    let flow = &scenario.flows[index];
    let owner = format!("flow {index} host {}", host.name);
    let stream = |purpose: &str| RandomStream::named(scenario.seed, &owner, purpose);
    let draw = |purpose: &str| stream(purpose).next_u32();
    TcpConfig {
        profile: profile.clone(),
        algorithm: tcp.cc,
        side,
        flow: FlowId(index as u32),
        ip: flow.ip,
        isn: SeqNum(tcp.isn.unwrap_or_else(|| draw("isn"))),
        timestamp: tcp.timestamp.unwrap_or_else(|| draw("timestamp")),
        clock_phase: tcp.clock_phase.min(Duration::from_secs(1)),
        tso: host.offload.tso || profile.has_software_gso(),
        nodelay: flow.nodelay,
        draws: stream("controller"),
        keepalive: flow.keepalive.map(|wanted| {
            let own = tcp.profile.keepalive;
            Keepalive {
                idle: wanted.idle.unwrap_or(own.idle),
                interval: wanted.interval.unwrap_or(own.interval),
                count: wanted.count.unwrap_or(own.count),
            }
        }),
    }
}
