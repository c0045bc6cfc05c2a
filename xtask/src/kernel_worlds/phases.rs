//! The phases in which ProbeBW of BBR version 1 begins, which its kernel draws at random: inferred from the packets of a
//! world of one flow.
//!
//! Each draw is one of seven phases, and a model with another differs from the kernel within a cycle. So the draws are
//! found one after the other, those with which the packets are equal for longest.

use std::fmt::Write as _;

use guest::compare::PacketRecord;
use sim::Scenario;
use sim::scenario::StackSpec;
use units::Duration;

use super::draws::first_difference;
use super::linux::modelled;

/// The phases (`bbr_reset_probe_bw_mode`).
const PHASES: [u8; 7] = [0, 2, 3, 4, 5, 6, 7];
/// Maximum draws of a host that are inferred.
const MOST_DRAWS: usize = 64;
/// Maximum candidates followed at once, equal for equally long.
const MOST_EQUAL: usize = 3;
/// Difference of packet times at which a run stops being equal to the kernel's: a phase changes the spacing of packets,
/// by microseconds where round trips are short.
const TOLERANCE: Duration = Duration::from_micros(2);
/// Maximum runs of a world.
const MOST_RUNS: u32 = 400;

/// The model with the inferred draws.
pub(super) struct InferredPhases {
    pub(super) model: PacketRecord,
    /// The draws used, as text: `HOST PHASE PHASE ...`.
    pub(super) draws: String,
}

/// Draws of every host that has BBR, by the index of the host among them.
type Draws = Vec<Vec<u8>>;

/// A run with given draws, and the time until which it is equal to the kernel's.
struct PhaseTrial {
    draws: Draws,
    model: PacketRecord,
    reach: u64,
}

/// The hosts of a world of one flow that have BBR version 1.
pub(super) fn senders(scenario: &Scenario) -> Vec<usize> {
    let [flow] = scenario.flows.as_slice() else { return Vec::new() };
    let mut hosts = vec![flow.from, flow.to];
    hosts.retain(|&host| {
        let StackSpec::Tcp(stack) = &scenario.hosts[host].stack else { return false };
        stack.cc == cc::Algorithm::Bbr
    });
    hosts
}

/// Runs the models of a world with the draws with which they are equal to `real` for longest; `None` without BBR
/// version 1.
///
/// # Errors
/// The model does not run the scenario.
pub(super) fn inferred(
    scenario: &Scenario,
    real: &PacketRecord,
) -> Result<Option<InferredPhases>, String> {
    let hosts = senders(scenario);
    if hosts.is_empty() {
        return Ok(None);
    }
    let mut runs = 0;
    let mut run = |draws: Draws| {
        runs += 1;
        let model = modelled(&mut with_phases(scenario, &hosts, &draws))?;
        let first = first_difference(scenario, &model, real, TOLERANCE);
        let reach = first.map_or(u64::MAX, |first| first.at);
        Ok::<_, String>((runs < MOST_RUNS, PhaseTrial { draws, model, reach }))
    };
    let mut best = vec![run(vec![Vec::new(); hosts.len()])?.1];
    'draws: while best[0].reach < u64::MAX {
        for host in 0..hosts.len() {
            let mut trials = Vec::new();
            for trial in best.iter().filter(|trial| trial.draws[host].len() < MOST_DRAWS) {
                for phase in PHASES {
                    let mut draws = trial.draws.clone();
                    draws[host].push(phase);
                    let (goes_on, trial) = run(draws)?;
                    trials.push(trial);
                    if !goes_on {
                        break 'draws;
                    }
                }
            }
            let reaches = || trials.iter().map(|trial| trial.reach);
            let (least, most) = (reaches().min().unwrap_or(0), reaches().max().unwrap_or(0));
            // A draw without effect was made after the difference, or never.
            if least < most && most >= best[0].reach {
                trials.retain(|trial| trial.reach == most);
                trials.truncate(MOST_EQUAL);
                best = trials;
                continue 'draws;
            }
        }
        break;
    }
    let PhaseTrial { draws, model, .. } = best.swap_remove(0);
    let mut text = String::new();
    for (&host, draws) in hosts.iter().zip(&draws).filter(|(_, draws)| !draws.is_empty()) {
        let space = if text.is_empty() { "" } else { " " };
        let _ = write!(text, "{space}{}", scenario.hosts[host].name);
        draws.iter().for_each(|phase| {
            let _ = write!(text, " {phase}");
        });
    }
    Ok(Some(InferredPhases { model, draws: text }))
}

fn with_phases(scenario: &Scenario, hosts: &[usize], draws: &Draws) -> Scenario {
    let mut scenario = scenario.clone();
    for (&host, draws) in hosts.iter().zip(draws) {
        if let StackSpec::Tcp(stack) = &mut scenario.hosts[host].stack {
            let mut phases = draws.clone();
            // Later ones are the same in each run.
            phases.resize(phases.len().max(MOST_DRAWS), PHASES[0]);
            // A few hundred runs of a development tool.
            stack.profile.bbr_phases = Box::leak(phases.into_boxed_slice());
        }
    }
    scenario
}

#[cfg(test)]
mod tests {
    use scenario::{Overrides, load};

    use super::*;

    /// A model in place of the kernel: its draws are found from its packets alone.
    #[test]
    fn phases_are_inferred_from_packets() {
        let text = r#"
            seed = 7
            duration = "60s"
            host.receiver = { profile = "linux-6.12" }
            host.sender = { profile = "linux-6.12", cc = "bbr" }
            [[path]]
            from = "sender"
            to = "receiver"
            forward = [{ link = { rate = "5Mbit/s", buffer = "150KB" } }, { delay = "20ms" }]
            return = [{ delay = "20ms" }]
            [[flow]]
            name = "transfer"
            from = "sender"
            to = "receiver"
            bulk = "15MB"
            "#;
        let scenario = load(text, "world", &Overrides::default()).unwrap().scenario;
        let hosts = senders(&scenario);
        assert_eq!(hosts, [scenario.flows[0].from]);
        let mut drawn = with_phases(&scenario, &hosts, &vec![vec![5, 3, 6]]);
        let real = modelled(&mut drawn).unwrap();
        let inferred = inferred(&scenario, &real).unwrap().unwrap();
        assert_eq!(first_difference(&scenario, &inferred.model, &real, TOLERANCE), None);
        assert_eq!(inferred.draws, "sender 5 3 6");
    }

    #[test]
    fn no_other_controller_draws() {
        let text = r#"
            duration = "1s"
            host.receiver = { profile = "linux-6.12" }
            host.sender = { profile = "linux-6.12", cc = "cubic" }
            [[path]]
            from = "sender"
            to = "receiver"
            forward = [{ delay = "20ms" }]
            return = [{ delay = "20ms" }]
            [[flow]]
            name = "transfer"
            from = "sender"
            to = "receiver"
            bulk = "1MB"
            "#;
        let mut scenario = load(text, "world", &Overrides::default()).unwrap().scenario;
        let real = modelled(&mut scenario).unwrap();
        assert!(inferred(&scenario, &real).unwrap().is_none());
    }
}
