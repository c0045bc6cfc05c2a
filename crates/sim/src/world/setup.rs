//! Connections as a scenario describes them, before anything happens.

use tcp::profile::SharedProfile;
use tcp::{Config, Endpoint, Keepalive, Side};
use units::{Duration, FlowId, SeqNum, Stream};

use crate::scenario::{Flow, Host, QuicStack, Scenario, Stack, TcpStack};
use crate::transport::Transport;

/// The profile of each host with TCP; equal ones are shared, so that the one which every connection
/// reads stays in the cache.
pub(super) fn profiles(scenario: &Scenario) -> Vec<Option<SharedProfile>> {
    let mut different: Vec<SharedProfile> = Vec::new();
    let mut shared = |tcp: &TcpStack| {
        // Where many differ, it does not matter that some are there twice.
        let known = different.iter().rev().take(8).find(|known| ***known == tcp.profile);
        let profile = known.cloned().unwrap_or_else(|| tcp.profile.clone().into());
        if known.is_none() {
            different.push(profile.clone());
        }
        profile
    };
    scenario.hosts.iter().map(|host| host.stack.tcp().map(&mut shared)).collect()
}

/// One end of flow number `index`; `profile` is that of its host, if that has TCP.
pub(super) fn transport(
    scenario: &Scenario,
    index: usize,
    side: Side,
    profile: Option<&SharedProfile>,
) -> Transport {
    let flow = &scenario.flows[index];
    let [client, server] = [flow.from, flow.to].map(|host| &scenario.hosts[host]);
    let (own, peer) = match side {
        Side::Client => (client, server),
        Side::Server => (server, client),
    };
    match (&own.stack, &peer.stack, profile) {
        (Stack::Tcp(tcp), _, Some(profile)) => {
            let config = tcp_config(scenario, index, side, (own, tcp, profile));
            Transport::Tcp(Box::new(Endpoint::new(config)))
        }
        (Stack::Quic(own), Stack::Quic(peer), _) => Transport::Quic(Box::new(quic::Endpoint::new(
            quic_config(flow, index, side, own, peer),
        ))),
        // A flow that joins TCP and QUIC is refused.
        _ => Transport::Outside,
    }
}

fn quic_config(
    flow: &Flow,
    index: usize,
    side: Side,
    own: &QuicStack,
    peer: &QuicStack,
) -> quic::Config {
    let (side, client) = match side {
        Side::Client => (quic::Side::Client, own),
        Side::Server => (quic::Side::Server, peer),
    };
    quic::Config {
        profile: own.profile,
        peer: peer.profile.parameters(),
        handshake: client.profile.handshake,
        cc: own.cc,
        side,
        flow: FlowId(index as u32),
        ip: flow.ip,
    }
}

fn tcp_config(
    scenario: &Scenario,
    index: usize,
    side: Side,
    (host, tcp, profile): (&Host, &TcpStack, &SharedProfile),
) -> Config {
    let flow = &scenario.flows[index];
    let owner = format!("flow {index} host {}", host.name);
    let stream = |purpose: &str| Stream::named(scenario.seed, &owner, purpose);
    let draw = |purpose: &str| stream(purpose).next_u32();
    Config {
        profile: profile.clone(),
        algorithm: tcp.cc,
        side,
        flow: FlowId(index as u32),
        ip: flow.ip,
        isn: SeqNum(tcp.isn.unwrap_or_else(|| draw("isn"))),
        timestamp: tcp.timestamp.unwrap_or_else(|| draw("timestamp")),
        clock_phase: tcp.clock_phase.min(Duration::from_secs(1)),
        tso: host.offload.tso,
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
