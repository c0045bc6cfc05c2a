//! Whether a scenario can be run, found out before anything runs.
//!
//! Two ways lead here: [`validate`], for whoever reads a scenario and wants to point at a mistake, and
//! [`run`](crate::run), which refuses the same scenarios.

use core::fmt;

use tcp::profile::{Family, ReceiveBufferRule, SendBufferRule};
use units::{Bytes, Duration};

use crate::road;
use crate::scenario::{App, Burst, Element, Flow, Host, Path, Pause, Scenario, Stack};

/// Segments of one flow that no link holds back, at most: more than an hour of computing. What a
/// link or an application limits may take as long as it likes.
const MOST_SEGMENTS: f64 = 1e10;

/// Why a scenario cannot be run. The text form reports these with their line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetupError {
    /// Flow number `flow` names a host or path that is not there, or that does not fit.
    Route {
        /// Index of the flow.
        flow: usize,
    },
    /// Flow number `flow` joins a host with TCP and one with QUIC.
    Transport {
        /// Index of the flow.
        flow: usize,
    },
    /// Host number `host` has a congestion control that its TCP does not offer: BBR without Linux's.
    Controller {
        /// Index of the host.
        host: usize,
    },
    /// Path number `path` names a host or a shared element that is not there, or one of its
    /// directions has more than 65,534 elements.
    Path {
        /// Index of the path.
        path: usize,
    },
    /// Shared element number `shared` refers to another.
    Shared {
        /// Index of the shared element.
        shared: usize,
    },
    /// Nothing limits the rate of flow number `flow`: it writes without end over a path without a
    /// link, and its round trip is so short that the run would not come to its end.
    Endless {
        /// Index of the flow.
        flow: usize,
        /// The round trip of its path.
        round_trip: Duration,
    },
    /// Tap number `tap` names a host that is not there.
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
                write!(f, "flow {flow} joins a host with TCP and one with QUIC")
            }
            Self::Controller { host } => {
                write!(f, "host {host} has a congestion control that its TCP does not offer")
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

/// Whether [`run`](crate::run) accepts a scenario.
///
/// # Errors
/// The first thing wrong with it.
pub fn validate(scenario: &Scenario) -> Result<(), SetupError> {
    road::build(scenario)?;
    check(scenario, &[])
}

/// All that the building of the paths does not find; the stacks of the hosts in `outside` are real,
/// and a real host takes its time.
pub(crate) fn check(scenario: &Scenario, outside: &[usize]) -> Result<(), SetupError> {
    let hosts = &scenario.hosts;
    if let Some(tap) = scenario.taps.iter().position(|tap| tap.host >= hosts.len()) {
        return Err(SetupError::Tap { tap });
    }
    let offers = |host: &Host| match &host.stack {
        Stack::Tcp(tcp) => tcp.cc != cc::Algorithm::Bbr || tcp.profile.family == Family::Linux,
        Stack::Quic(_) => true,
    };
    if let Some(host) = hosts.iter().position(|host| !offers(host)) {
        return Err(SetupError::Controller { host });
    }
    for (index, flow) in scenario.flows.iter().enumerate() {
        let joined = |path: &&Path| {
            [(path.from, path.to), (path.to, path.from)].contains(&(flow.from, flow.to))
        };
        let Some(path) = scenario.paths.get(flow.path).filter(joined) else {
            return Err(SetupError::Route { flow: index });
        };
        let stacks = [flow.from, flow.to].map(|host| &hosts[host].stack);
        if let [Stack::Tcp(_), Stack::Quic(_)] | [Stack::Quic(_), Stack::Tcp(_)] = stacks {
            return Err(SetupError::Transport { flow: index });
        }
        let is_real = outside.contains(&flow.from) || outside.contains(&flow.to);
        if !is_real && segments(scenario, flow, path) > MOST_SEGMENTS {
            let round_trip = round_trip(scenario, flow, path);
            return Err(SetupError::Endless { flow: index, round_trip });
        }
    }
    Ok(())
}

/// Segments that a flow sends until the run ends, if it writes without end and its windows are as
/// large as they can be; none if a link or the number of its bytes limits them.
fn segments(scenario: &Scenario, flow: &Flow, path: &Path) -> f64 {
    let time = seconds(scenario.duration.saturating_sub(flow.start));
    let mtu = f64::from(scenario.hosts[flow.from].stack.mtu());
    let per_round = (largest_window(scenario, flow) / mtu).max(1.0);
    let limited = elements(scenario, path).any(|element| {
        matches!(
            element,
            Element::Link { .. }
                | Element::ManagedLink { .. }
                | Element::Policer { .. }
                | Element::Shaper { .. }
        )
    });
    let round_trip = seconds(round_trip(scenario, flow, path));
    // A quotient by no time is infinite.
    let by_window = if limited { 0.0 } else { time / round_trip * per_round };
    match flow.app {
        App::Bulk { bytes: None, .. } => by_window,
        // An application that acts at intervals of no time acts for ever in its first instant.
        App::Paced { every: Duration::ZERO, bytes: None, .. } => f64::INFINITY,
        App::Paced { chunk, every, bytes: None } => {
            by_window.min(time / seconds(every) * bytes_in(chunk) / mtu)
        }
        App::OnOff { on, off, bytes: None } => {
            let pause = match off {
                Pause::Fixed(span) => seconds(span),
                Pause::Between { least, most } => (seconds(least) + seconds(most)) / 2.0,
            };
            match on {
                Burst::For(Duration::ZERO) if pause == 0.0 => f64::INFINITY,
                Burst::For(Duration::ZERO) => 0.0,
                Burst::For(span) => by_window * (seconds(span) / (seconds(span) + pause)),
                Burst::Bytes(bytes) => by_window.min(time / pause * bytes_in(bytes) / mtu),
            }
        }
        App::Requests { request, response, think, count: None } if !limited => {
            let bytes = bytes_in(request) + bytes_in(response);
            by_window.min(time / (round_trip + seconds(think)) * (bytes / mtu).max(2.0))
        }
        _ => 0.0,
    }
}

/// The shortest round trip of a flow: fixed delays, the mean of random ones, and what hosts take.
fn round_trip(scenario: &Scenario, flow: &Flow, path: &Path) -> Duration {
    let delays = elements(scenario, path).map(|element| match element {
        Element::Delay(span) => *span,
        Element::Jitter { most } => Duration::from_nanos(most.as_nanos() / 2),
        _ => Duration::ZERO,
    });
    let hosts = [flow.from, flow.to].map(|host| scenario.hosts[host].delay);
    delays.chain(hosts).fold(Duration::ZERO, |sum, span| sum + span)
}

/// The elements of both directions, shared ones among them.
fn elements<'a>(scenario: &'a Scenario, path: &'a Path) -> impl Iterator<Item = &'a Element> {
    path.forward.iter().chain(&path.reverse).filter_map(|element| match element {
        Element::Shared(index) => scenario.shared.get(*index).map(|shared| &shared.element),
        own => Some(own),
    })
}

/// The bytes that a flow can have in flight.
fn largest_window(scenario: &Scenario, flow: &Flow) -> f64 {
    let [from, to] = [flow.from, flow.to].map(|host| &scenario.hosts[host].stack);
    largest_send_buffer(from).min(largest_receive_buffer(to))
}

fn largest_send_buffer(stack: &Stack) -> f64 {
    bytes_in(match stack {
        Stack::Quic(quic) => quic.profile.send_buffer,
        Stack::Tcp(tcp) => match tcp.profile.send_buffer {
            SendBufferRule::FreeBsd { space, auto: true, max, .. } => max.max(space),
            SendBufferRule::FreeBsd { space, .. } | SendBufferRule::Fixed { space } => space,
            SendBufferRule::Linux { wmem } => wmem[2],
        },
    })
}

fn largest_receive_buffer(stack: &Stack) -> f64 {
    bytes_in(match stack {
        Stack::Quic(quic) => {
            let windows = quic.profile.windows;
            Bytes(windows.connection.min(windows.stream))
        }
        Stack::Tcp(tcp) => match tcp.profile.receive_buffer {
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

    fn unlimited(forward: Vec<Element>) -> Scenario {
        let mut scenario = two_hosts(forward, Vec::new(), Vec::new());
        scenario.duration = Duration::from_secs(1);
        scenario.flows.push(Flow {
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

    /// 1 s has 10^7 round trips of 100 ns; with FreeBSD's largest window of 2 MiB (`sendbuf_max`), 1398
    /// packets of 1500 B, that is 1.4 * 10^10 packets.
    #[test]
    fn what_nothing_limits_is_refused_by_its_round_trip() {
        let refused =
            |nanos: u64| validate(&unlimited(vec![Element::Delay(Duration::from_nanos(nanos))]));
        for nanos in [0, 1, 100] {
            let round_trip = Duration::from_nanos(nanos);
            assert_eq!(refused(nanos), Err(SetupError::Endless { flow: 0, round_trip }));
        }
        assert_eq!(refused(1_000), Ok(()));
        let rate = units::Rate::from_bits_per_second(1_000).unwrap();
        let policer = Element::Policer { rate, burst: Bytes(9_000) };
        assert_eq!(validate(&unlimited(vec![policer])), Ok(()));
    }

    #[test]
    fn a_real_host_takes_its_own_time() {
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
