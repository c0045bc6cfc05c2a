//! The phases in which ProbeBW of BBR version 1 may begin, which its kernel draws at random.

use sim::Scenario;
use sim::scenario::StackSpec;

/// The phases (`bbr_reset_probe_bw_mode`).
const PHASES: [u32; 7] = [0, 2, 3, 4, 5, 6, 7];

/// Every choice of them at the two hosts of one flow; nothing without BBR version 1.
pub(super) fn phases(scenario: &Scenario) -> Vec<[u32; 2]> {
    let flow = &scenario.flows[0];
    let choices = |host: usize| -> &[u32] {
        let StackSpec::Tcp(stack) = &scenario.hosts[host].stack else { return &[1] };
        if stack.cc == cc::Algorithm::Bbr { &PHASES } else { &[1] }
    };
    let [from, to] = [choices(flow.from), choices(flow.to)];
    if from.len() + to.len() == 2 {
        return Vec::new();
    }
    from.iter().flat_map(|&a| to.iter().map(move |&b| [a, b])).collect()
}

pub(super) fn with_phases(scenario: &Scenario, phases: [u32; 2]) -> Scenario {
    let mut scenario = scenario.clone();
    let hosts = [scenario.flows[0].from, scenario.flows[0].to];
    for (host, phase) in hosts.into_iter().zip(phases) {
        if let StackSpec::Tcp(stack) = &mut scenario.hosts[host].stack {
            stack.profile.bbr_phase = phase;
        }
    }
    scenario
}
