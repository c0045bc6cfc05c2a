//! Checks whether a scenario can be run, before anything runs.
//!
//! There are two entry points: [`validate`], for callers that report mistakes to the user, and
//! [`run`](crate::run), which rejects the same scenarios.

use core::fmt;

use tcp::profile::{ReceiveBufferRule, SendBufferRule};
use units::{Bytes, Duration};

use crate::routes;
use crate::scenario::{
    App, DatagramInterval, DatagramSpec, ElementSpec, FlowSpec, HostSpec, OnPeriod, PathSpec,
    Pause, Scenario, StackSpec,
};

/// Maximum number of segments of one flow that no link limits: more than an hour of computing.
/// Flows that a link or an application limits may take any time.
const MAX_SEGMENTS: f64 = 1e10;

/// An upper estimate of the bytes in flight of a real implementation, whose limits are its own.
const REAL_WINDOW: Bytes = Bytes(10_000_000);

/// Reason why a scenario cannot be run. The text form reports these with their line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetupError {
    /// Flow number `flow` names a host or path that does not exist or does not match.
    Route {
        /// Index of the flow.
        flow: usize,
    },
    /// Flow number `flow` connects different transports (TCP, a model of QUIC, a real implementation of it),
    /// or is UDP, a video or a web page of an external host.
    Transport {
        /// Index of the flow.
        flow: usize,
    },
    /// Host number `host` has a congestion control that its stack does not offer, such as BBR on a TCP
    /// other than Linux's.
    Controller {
        /// Index of the host.
        host: usize,
    },
    /// Path number `path` names a host or a shared element that does not exist, or one of its
    /// directions has more than 65,534 elements.
    Path {
        /// Index of the path.
        path: usize,
    },
    /// Shared element number `shared` refers to another shared element.
    Shared {
        /// Index of the shared element.
        shared: usize,
    },
    /// Nothing limits the rate of flow number `flow`: it writes without end over a path without a
    /// link, and its round trip is so short that the run would not end.
    Endless {
        /// Index of the flow.
        flow: usize,
        /// The round trip of its path.
        round_trip: Duration,
    },
    /// Tap number `tap` names a host that does not exist.
    Tap {
        /// Index of the tap.
        tap: usize,
    },
}

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Route { flow } => write!(f, "flow {flow} has no path between its hosts"),
            Self::Transport { flow } => {
                write!(
                    f,
                    "flow {flow} joins hosts of different transports (TCP, QUIC, a real \
                     implementation of QUIC), or is UDP, a video or a web page of a real host"
                )
            }
            Self::Controller { host } => {
                write!(f, "host {host} has a congestion control that its stack does not offer")
            }
            Self::Path { path } => write!(
                f,
                "path {path} names a host or shared element that does not exist, or has more than \
                 65534 elements in one direction"
            ),
            Self::Shared { shared } => write!(f, "shared element {shared} refers to another"),
            Self::Endless { flow, round_trip } => write!(
                f,
                "nothing limits the rate of flow {flow}: it writes without end over a path without \
                 a link, with a round trip of {round_trip}"
            ),
            Self::Tap { tap } => write!(f, "tap {tap} names a host that does not exist"),
        }
    }
}

impl core::error::Error for SetupError {}

/// Checks whether [`run`](crate::run) accepts a scenario.
///
/// # Errors
/// The first error found.
pub fn validate(scenario: &Scenario) -> Result<(), SetupError> {
    routes::build(scenario)?;
    check(scenario, &[])
}

/// Checks everything that the construction of the paths does not; the stacks of the hosts in
/// `outside` are real, and bound by real time.
pub(crate) fn check(scenario: &Scenario, outside: &[usize]) -> Result<(), SetupError> {
    let hosts = &scenario.hosts;
    if let Some(tap) = scenario.taps.iter().position(|tap| tap.host >= hosts.len()) {
        return Err(SetupError::Tap { tap });
    }
    let offers = |host: &HostSpec| match &host.stack {
        StackSpec::Tcp(tcp) => tcp.profile.runs(tcp.cc),
        StackSpec::Quic(_) => true,
        StackSpec::Real(real) => real.stack.controllers().contains(&real.cc),
    };
    if let Some(host) = hosts.iter().position(|host| !offers(host)) {
        return Err(SetupError::Controller { host });
    }
    for (index, flow) in scenario.flows.iter().enumerate() {
        let joined = |path: &&PathSpec| {
            [(path.from, path.to), (path.to, path.from)].contains(&(flow.from, flow.to))
        };
        let Some(path) = scenario.paths.get(flow.path).filter(joined) else {
            return Err(SetupError::Route { flow: index });
        };
        let stacks = [flow.from, flow.to].map(|host| &hosts[host].stack);
        let is_udp = matches!(flow.app, App::Datagrams(_));
        let is_real = outside.contains(&flow.from) || outside.contains(&flow.to);
        // The peer of a real host does not know the size of each response.
        let is_modelled = is_udp || matches!(flow.app, App::Video(_) | App::Page { .. });
        if is_modelled && is_real {
            return Err(SetupError::Transport { flow: index });
        }
        if !is_udp && !stacks[0].speaks_with(stacks[1]) {
            return Err(SetupError::Transport { flow: index });
        }
        if !is_real && segments(scenario, flow, path) > MAX_SEGMENTS {
            let round_trip = round_trip(scenario, flow, path);
            return Err(SetupError::Endless { flow: index, round_trip });
        }
    }
    Ok(())
}

/// Segments that a flow sends until the run ends, if it writes without end and its windows are at
/// their maximum; 0 if a link or its byte count limits it.
fn segments(scenario: &Scenario, flow: &FlowSpec, path: &PathSpec) -> f64 {
    let time = seconds(scenario.duration.saturating_sub(flow.start));
    let mtu = f64::from(scenario.hosts[flow.from].stack.mtu());
    let per_round = (largest_window(scenario, flow) / mtu).max(1.0);
    let limited = elements(scenario, path).any(|element| {
        matches!(
            element,
            ElementSpec::Link { .. }
                | ElementSpec::LinkWithQdisc { .. }
                | ElementSpec::Policer { .. }
                | ElementSpec::Shaper { .. }
        )
    });
    let round_trip = seconds(round_trip(scenario, flow, path));
    // Division by zero time gives infinity.
    let cwnd_limited_time = if limited { 0.0 } else { time / round_trip * per_round };
    match flow.app {
        App::Bulk { bytes: None, .. } => cwnd_limited_time,
        // An application with intervals of zero never leaves its first instant.
        App::Paced { every: Duration::ZERO, bytes: None, .. } => f64::INFINITY,
        App::Paced { chunk, every, bytes: None, .. } => {
            cwnd_limited_time.min(time / seconds(every) * bytes_in(chunk) / mtu)
        }
        App::OnOff { on, off, bytes: None } => {
            let pause = match off {
                Pause::Fixed(span) => seconds(span),
                Pause::Between { least, most } => (seconds(least) + seconds(most)) / 2.0,
            };
            match on {
                OnPeriod::For(Duration::ZERO) if pause == 0.0 => f64::INFINITY,
                OnPeriod::For(Duration::ZERO) => 0.0,
                OnPeriod::For(span) => {
                    cwnd_limited_time * (seconds(span) / (seconds(span) + pause))
                }
                OnPeriod::Bytes(bytes) => {
                    cwnd_limited_time.min(time / pause * bytes_in(bytes) / mtu)
                }
            }
        }
        App::Datagrams(DatagramSpec { interval, count: None, .. }) => {
            let (DatagramInterval::Fixed(mean) | DatagramInterval::Poisson(mean)) = interval;
            time / seconds(mean)
        }
        App::Video(ref video) if video.chunks.is_none() => {
            let top = video.ladder.last().map_or(0, |rate| rate.bits_per_second());
            (time + seconds(video.buffer)) * top as f64 / 8.0 / mtu
        }
        App::Page { ref page, .. } if page.count.is_none() && !limited => {
            let objects = f64::from(page.objects);
            let packets = (bytes_in(page.html) + objects * page.sizes.mean()) / mtu + objects;
            time / (round_trip * 2.0 + seconds(page.think)) * packets.max(2.0)
        }
        App::Requests { request, response, think, count: None } if !limited => {
            let bytes = bytes_in(request) + bytes_in(response);
            cwnd_limited_time.min(time / (round_trip + seconds(think)) * (bytes / mtu).max(2.0))
        }
        _ => 0.0,
    }
}

/// The minimum round-trip time of a flow: fixed delays, the mean of random ones, and host delays.
fn round_trip(scenario: &Scenario, flow: &FlowSpec, path: &PathSpec) -> Duration {
    let delays = elements(scenario, path).map(|element| match element {
        ElementSpec::Delay(span) => *span,
        // The least delay at any time: a run must end whichever holds longest.
        ElementSpec::ChangingDelay(span) => {
            span.steps().iter().map(|&(_, span)| span).min().unwrap_or_default()
        }
        ElementSpec::Jitter { most } => Duration::from_nanos(most.as_nanos() / 2),
        // Its least: packets may leave earlier than the mean.
        ElementSpec::Netem(params) if params.reorder.is_none() => params.shortest_delay(),
        _ => Duration::ZERO,
    });
    let hosts = [flow.from, flow.to].map(|host| scenario.hosts[host].delay);
    delays.chain(hosts).fold(Duration::ZERO, |sum, span| sum + span)
}

/// The elements of both directions, shared ones included.
fn elements<'a>(
    scenario: &'a Scenario,
    path: &'a PathSpec,
) -> impl Iterator<Item = &'a ElementSpec> {
    path.forward.iter().chain(&path.reverse).filter_map(|element| match element {
        ElementSpec::Shared(index) => scenario.shared.get(*index).map(|shared| &shared.element),
        own => Some(own),
    })
}

/// Maximum bytes that a flow can have in flight.
fn largest_window(scenario: &Scenario, flow: &FlowSpec) -> f64 {
    let [from, to] = [flow.from, flow.to].map(|host| &scenario.hosts[host].stack);
    largest_send_buffer(from).min(largest_receive_buffer(to))
}

fn largest_send_buffer(stack: &StackSpec) -> f64 {
    bytes_in(match stack {
        StackSpec::Quic(quic) => quic.profile.send_buffer,
        StackSpec::Real(_) => REAL_WINDOW,
        StackSpec::Tcp(tcp) => match tcp.profile.send_buffer {
            SendBufferRule::FreeBsd { space, auto: true, max, .. } => max.max(space),
            SendBufferRule::FreeBsd { space, .. } | SendBufferRule::Fixed { space } => space,
            SendBufferRule::Linux { wmem, .. } => wmem[2],
        },
    })
}

fn largest_receive_buffer(stack: &StackSpec) -> f64 {
    bytes_in(match stack {
        StackSpec::Quic(quic) => {
            let windows = quic.profile.windows;
            Bytes(windows.connection.min(windows.stream))
        }
        StackSpec::Real(_) => REAL_WINDOW,
        StackSpec::Tcp(tcp) => match tcp.profile.receive_buffer {
            ReceiveBufferRule::FreeBsd { space, auto: true, max, .. } => max.max(space),
            ReceiveBufferRule::FreeBsd { space, .. } | ReceiveBufferRule::Fixed { space } => space,
            ReceiveBufferRule::Linux { rmem, auto, .. } => rmem[if auto { 2 } else { 1 }],
        },
    })
}

fn seconds(span: Duration) -> f64 {
    span.as_nanos() as f64 / 1e9
}

fn bytes_in(bytes: Bytes) -> f64 {
    bytes.get() as f64
}

#[cfg(test)]
mod tests {
    use packet::IpVersion;

    use super::*;
    use crate::scenario::Close;
    use crate::scenario::tests::two_hosts;

    fn unlimited(forward: Vec<ElementSpec>) -> Scenario {
        let mut scenario = two_hosts(forward, Vec::new(), Vec::new());
        scenario.duration = Duration::from_secs(1);
        scenario.flows.push(FlowSpec {
            name: "up".into(),
            path: 0,
            from: 0,
            to: 1,
            start: Duration::ZERO,
            app: App::Bulk { bytes: None, write: None },
            ip: IpVersion::V4,
            nodelay: false,
            reads: None,
            close: Close::Fin,
            keepalive: None,
        });
        scenario
    }

    /// 1 s has 10^7 round trips of 100 ns; with FreeBSD's largest window of 2 MiB (`sendbuf_max`),
    /// 1398 packets of 1500 B, that is 1.4 * 10^10 packets.
    #[test]
    fn unlimited_flows_are_rejected_by_their_round_trip() {
        let refused = |nanos: u64| {
            validate(&unlimited(vec![ElementSpec::Delay(Duration::from_nanos(nanos))]))
        };
        for nanos in [0, 1, 100] {
            let round_trip = Duration::from_nanos(nanos);
            assert_eq!(refused(nanos), Err(SetupError::Endless { flow: 0, round_trip }));
        }
        assert_eq!(refused(1_000), Ok(()));
        let rate = units::Rate::from_bits_per_second(1_000).unwrap();
        let policer = ElementSpec::Policer { rate, burst: Bytes(9_000) };
        assert_eq!(validate(&unlimited(vec![policer])), Ok(()));
    }

    #[test]
    fn external_hosts_are_not_limited() {
        let scenario = unlimited(Vec::new());
        assert_eq!(check(&scenario, &[1]), Ok(()));
        assert!(check(&scenario, &[]).is_err());
    }

    #[test]
    fn messages_name_the_flow() {
        let error = validate(&unlimited(Vec::new())).unwrap_err();
        assert!(error.to_string().starts_with("nothing limits the rate of flow 0"), "{error}");
    }
}
