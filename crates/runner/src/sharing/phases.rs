//! How far phases decide a run: flows over a drop-tail queue in which nothing is drawn.
//!
//! Floyd and Jacobson, "On Traffic Phase Effects in Packet-Switched Gateways", Internetworking: Research
//! and Experience 3, 1992. The same scenario runs again with the noise of hosts, from several seeds.

use record::NullRecorder;
use sim::scenario::{ElementSpec, Scenario};
use units::Duration;

use super::Sharing;

/// Runs with noise.
const DRAWS: u64 = 4;
/// A run with more segments is not repeated.
const MOST_SEGMENTS: u64 = 400_000;
/// Jain's indices that differ by less show no effect.
const LEAST_SPREAD: f64 = 0.01;

/// What runs with noise show beside one without.
#[derive(Debug, Clone, PartialEq)]
pub struct PhaseEffects {
    /// Longest processing time of a packet, uniform from zero.
    pub noise: Duration,
    /// Jain's index of each run with noise; empty if the run is too long to repeat.
    pub jain_indices: Vec<f64>,
}

/// The phase effects of a run that sent this number of segments; `None` if it has none: a single flow, no
/// drop-tail link, something that is drawn, or shares that noise does not change.
pub fn phase_effects(scenario: &Scenario, segments: u64) -> Option<PhaseEffects> {
    let noise = scenario::missing_noise(scenario)?;
    let paths = scenario.paths.iter().flat_map(|path| path.forward.iter().chain(&path.reverse));
    let shared = scenario.shared.iter().map(|shared| &shared.element);
    if !paths.chain(shared).any(|element| matches!(element, ElementSpec::Link { .. })) {
        return None;
    }
    let jain = |draw: u64| -> Option<f64> {
        let noisy = scenario::with_noise(scenario, noise, scenario.seed.wrapping_add(draw));
        let mut sharing = Sharing::new(&noisy);
        let outcome = super::run(&noisy, &mut sharing, &mut NullRecorder).ok()?;
        sharing.report(&noisy, &outcome).fairness.map(|fair| fair.jain_index)
    };
    if segments > MOST_SEGMENTS {
        return Some(PhaseEffects { noise, jain_indices: Vec::new() });
    }
    let jain_indices: Vec<_> = (0..DRAWS).filter_map(jain).collect();
    let least = jain_indices.iter().copied().fold(f64::INFINITY, f64::min);
    let most = jain_indices.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (most - least >= LEAST_SPREAD).then_some(PhaseEffects { noise, jain_indices })
}

impl core::fmt::Display for PhaseEffects {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "deterministic: the phases of these flows decide")?;
        let least = self.jain_indices.iter().copied().reduce(f64::min);
        let most = self.jain_indices.iter().copied().reduce(f64::max);
        if let (Some(least), Some(most)) = (least, most) {
            let (runs, noise) = (self.jain_indices.len(), self.noise);
            write!(
                f,
                "; Jain's index of {runs} runs with noise of {noise}: {least:.3} to {most:.3}"
            )?;
        }
        write!(f, "; `noise = \"{}\"` draws them", self.noise)
    }
}

#[cfg(test)]
mod tests {
    use scenario::{Overrides, load};

    use super::*;

    fn effects(head: &str, queue: &str) -> Option<PhaseEffects> {
        let mut text = format!(
            "{head}duration = \"10s\"\n[shared.line]\nlink = {{ rate = \"10Mbit/s\", buffer = \"30kB\"{queue} }}\n"
        );
        for (host, ms) in [("a", 10), ("b", 20)] {
            text += &format!(
                "[host.{host}]\nprofile = \"linux-6.18\"\ncc = \"reno\"\n[host.{host}2]\nprofile = \
                 \"linux-6.18\"\n[[path]]\nfrom = \"{host}\"\nto = \"{host}2\"\nforward = [{{ shared = \
                 \"line\" }}, {{ delay = \"{ms}ms\" }}]\nreturn = [{{ delay = \"{ms}ms\" }}]\n[[flow]]\nname = \
                 \"{host}\"\nfrom = \"{host}\"\nto = \"{host}2\"\nbulk = \"unlimited\"\n"
            );
        }
        let scenario = load(&text, "two.toml", &Overrides::default()).unwrap().scenario;
        phase_effects(&scenario, 0)
    }

    #[test]
    fn a_deterministic_run_of_two_flows_shows_how_far_phases_decide() {
        let found = effects("", "").unwrap();
        // 1500 bytes take 1.2 ms at 10 Mbit/s: the bound is 500 us.
        assert_eq!(found.noise, Duration::from_micros(500));
        assert_eq!(found.jain_indices.len(), DRAWS as usize);
        assert!(found.jain_indices.windows(2).any(|pair| (pair[0] - pair[1]).abs() > 1e-9));
        assert!(found.to_string().contains("Jain's index of 4 runs"));
    }

    #[test]
    fn noise_and_other_queues_have_no_note() {
        assert_eq!(effects("noise = \"300us\"\n", ""), None);
        assert_eq!(effects("", ", queue = \"codel\""), None);
    }
}
