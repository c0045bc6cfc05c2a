//! `noise`: the time that hosts take for a packet, and a little difference between the starts of flows.
//!
//! Without it, the phases of flows over a drop-tail queue decide which of them loses packets (Floyd and
//! Jacobson, "On Traffic Phase Effects in Packet-Switched Gateways", Internetworking: Research and
//! Experience 3, 1992). They find the effects gone with a processing time drawn uniformly from zero to
//! the service time of a packet at the bottleneck; ns-2 has it as `overhead_`.

use sim::scenario::{ElementSpec, PathSpec, Scenario, SelectionRule};
use units::{Duration, RandomStream};

use super::keys::Key;
use super::kinds::DurationType;

pub(super) static NOISE: Key<DurationType> = Key::optional(
    "noise",
    DurationType { least: Duration::ZERO, default_unit: "us" },
    "none",
    "longest processing time of a packet in a host, uniform from 0, in order; each flow also starts \
     later by up to it",
);

/// The bound of the noise that hosts have at this rate of the bottleneck in bit/s and with this round
/// trip: the service time of a packet of 1500 bytes, within 50 and 500 us, but at most a tenth of the
/// round trip.
pub fn host_noise(rate: u64, rtt: Duration) -> Duration {
    let service = 12_000_u64 * 1_000_000_000 / rate.max(1);
    Duration::from_nanos(service.clamp(50_000, 500_000).min(rtt.as_nanos() / 10))
}

/// Adds the noise: a delay at the head of each direction of each path, and to the start of each flow.
pub(super) fn add(scenario: &mut Scenario, most: Duration) {
    if most.is_zero() {
        return;
    }
    for path in &mut scenario.paths {
        for route in [&mut path.forward, &mut path.reverse] {
            route.insert(0, ElementSpec::Jitter { most });
        }
    }
    let seed = scenario.seed;
    for flow in &mut scenario.flows {
        let mut draws = RandomStream::named(seed, &flow.name, "noise of the start");
        flow.start += Duration::from_nanos(draws.below(most.as_nanos()));
    }
}

/// The scenario with this noise, drawn from this seed.
pub fn with_noise(scenario: &Scenario, most: Duration, seed: u64) -> Scenario {
    let mut scenario = Scenario { seed, ..scenario.clone() };
    add(&mut scenario, most);
    scenario
}

/// The noise that repeated runs of a scenario need: several flows, and nothing that is drawn, so that
/// all runs would be the same and phases decide. `None` if it needs none.
pub fn missing_noise(scenario: &Scenario) -> Option<Duration> {
    let elements = || {
        let of =
            |path: &PathSpec| path.forward.iter().chain(&path.reverse).cloned().collect::<Vec<_>>();
        let shared = scenario.shared.iter().map(|shared| shared.element.clone());
        scenario.paths.iter().flat_map(of).chain(shared)
    };
    let is_alone = scenario.flows.len() < 2;
    if is_alone || !scenario.groups.is_empty() || elements().any(|one| is_drawn(&one)) {
        return None;
    }
    let rates = elements().filter_map(|element| match element {
        ElementSpec::Link { rate, .. } => Some(rate.bits_per_second()),
        _ => None,
    });
    // Without a link of a fixed rate the longest bound.
    let rate = rates.min().unwrap_or(1);
    let rtt = scenario.paths.iter().map(|path| {
        path.forward.iter().chain(&path.reverse).fold(
            Duration::ZERO,
            |sum, element| match element {
                ElementSpec::Delay(delay) => sum + *delay,
                _ => sum,
            },
        )
    });
    Some(host_noise(rate, rtt.min().unwrap_or(Duration::ZERO))).filter(|most| !most.is_zero())
}

/// True for elements whose effect is drawn from the seed.
fn is_drawn(element: &ElementSpec) -> bool {
    let draws = |rule: &SelectionRule| {
        !matches!(
            rule,
            SelectionRule::Every(_) | SelectionRule::Listed(_) | SelectionRule::Bytes(_)
        )
    };
    match element {
        ElementSpec::WifiJitter(_) | ElementSpec::Jitter { .. } | ElementSpec::Netem(_) => true,
        ElementSpec::Loss { rule, .. }
        | ElementSpec::Duplicate { rule, .. }
        | ElementSpec::Corrupt { rule, .. }
        | ElementSpec::Displace { rule, .. }
        | ElementSpec::Late { rule, .. } => draws(rule),
        _ => false,
    }
}
