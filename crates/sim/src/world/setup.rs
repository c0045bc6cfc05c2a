//! Connections as a scenario describes them, before anything happens.

use tcp::profile::SharedProfile;
use tcp::{Config, Endpoint, Keepalive, Side};
use units::{Duration, FlowId, SeqNum, Stream};

use crate::scenario::{Flow, Host, Scenario};
use crate::transport::Transport;

/// The end of a flow on one of its hosts, of TCP or QUIC.
pub(super) fn transport(
    scenario: &Scenario,
    index: usize,
    flow: &Flow,
    side: Side,
    (host, profile): (usize, &SharedProfile),
) -> Transport {
    let peer = if host == flow.from { flow.to } else { flow.from };
    let quic = |host: usize| scenario.hosts[host].quic;
    let (Some(own), Some(peer), Some(client)) = (quic(host), quic(peer), quic(flow.from)) else {
        let config = config(scenario, index, flow, side, (host, profile));
        return Transport::Tcp(Box::new(Endpoint::new(config)));
    };
    Transport::Quic(Box::new(quic::Endpoint::new(quic::Config {
        profile: own,
        peer: peer.parameters(),
        handshake: client.handshake,
        algorithm: scenario.hosts[host].cc,
        side: match side {
            Side::Client => quic::Side::Client,
            Side::Server => quic::Side::Server,
        },
        flow: FlowId(index as u32),
        ip: flow.ip,
    })))
}

/// The profiles of all hosts, equal ones shared: what every connection reads is in the cache.
pub(super) fn profiles(scenario: &Scenario) -> Vec<SharedProfile> {
    let mut different: Vec<SharedProfile> = Vec::new();
    let mut shared = |host: &Host| {
        // Where many differ, it does not matter that some are there twice.
        let known = different.iter().rev().take(8).find(|known| ***known == host.profile);
        let profile = known.cloned().unwrap_or_else(|| host.profile.clone().into());
        if known.is_none() {
            different.push(profile.clone());
        }
        profile
    };
    scenario.hosts.iter().map(&mut shared).collect()
}

fn config(
    scenario: &Scenario,
    index: usize,
    flow: &Flow,
    side: Side,
    (host, profile): (usize, &SharedProfile),
) -> Config {
    let host = &scenario.hosts[host];
    let owner = format!("flow {index} host {}", host.name);
    let stream = |purpose: &str| Stream::named(scenario.seed, &owner, purpose);
    let draw = |purpose: &str| stream(purpose).next_u32();
    Config {
        profile: profile.clone(),
        algorithm: host.cc,
        side,
        flow: FlowId(index as u32),
        ip: flow.ip,
        isn: SeqNum(host.isn.unwrap_or_else(|| draw("isn"))),
        timestamp: host.timestamp.unwrap_or_else(|| draw("timestamp")),
        clock_phase: host.clock_phase.min(Duration::from_secs(1)),
        tso: host.offload.tso,
        nodelay: flow.nodelay,
        draws: stream("controller"),
        keepalive: flow.keepalive.map(|wanted| {
            let own = host.profile.keepalive;
            Keepalive {
                idle: wanted.idle.unwrap_or(own.idle),
                interval: wanted.interval.unwrap_or(own.interval),
                count: wanted.count.unwrap_or(own.count),
            }
        }),
    }
}
