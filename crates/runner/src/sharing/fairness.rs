//! Fairness: Jain's index over the whole run and per second, and the convergence time.
//!
//! Jain's index of n rates is the square of their sum over n times the sum of their squares (Jain,
//! Chiu and Hawe, DEC Research Report TR-301, 1984): 1 if all are equal, 1/n if one flow has
//! everything.
//!
//! Only flows that are alike have an index: bulk transfers, which take all they can get, or flows of
//! the same application with the same settings. A flow that its application limits is not treated
//! unfairly if it gets less (RFC 9743 section 5.1.4).
//!
//! Flows have converged at the end of the first whole second in which the index of all active flows
//! is at least 1/(1 + d^2), with d = 0.1. For two flows at one bottleneck these are shares of 55
//! and 45 %, the delta-fair shares of (1 +- d)/2 by which RFC 5166 section 2.3.2 measures
//! convergence times (Bansal, Balakrishnan, Floyd and Shenker, SIGCOMM 2001).

use serde::{Deserialize, Serialize};
use sim::RunOutcome;
use sim::scenario::{App, Scenario};
use units::{Duration, Instant};

use super::over_time::QueueSeconds;

/// The d of delta-fair shares.
pub const DELTA: f64 = 0.1;

const SECOND: u64 = 1_000_000_000;

/// Fairness of several flows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FairnessReport {
    /// Names of the flows that are compared; empty if these are all flows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<String>,
    /// Jain's index of the goodputs of the compared flows, each over its own time.
    pub jain_index: f64,
    /// Mean of Jain's index over all whole seconds with at least two active flows.
    pub mean_jain_index: Option<f64>,
    /// Minimum of Jain's index over these seconds.
    pub min_jain_index: Option<f64>,
    /// From the start of the last flow to the end of the first second in which all active flows
    /// shared fairly, [`DELTA`]; `None` if there was none, or if that is not visible.
    pub convergence_s: Option<f64>,
    /// Whether the seconds are unknown, since a compared flow has no visible reads. Omitted otherwise.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub seconds_not_visible: bool,
}

/// Rates and fairness per second.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SecondsReport {
    /// Goodput of each flow in each second of the run, in bit/s; `None` for a flow whose reads are not
    /// visible.
    pub goodput_bps: Vec<Option<Vec<f64>>>,
    /// Jain's index of the compared flows active during the whole second; `None` for fewer than two.
    pub jain_index: Vec<Option<f64>>,
    /// Length and delay of each queue.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<QueueSeconds>,
}

/// Do two flows compete for the same: may their goodputs be compared?
fn alike(one: &App, other: &App) -> bool {
    matches!((one, other), (App::Bulk { .. }, App::Bulk { .. })) || one == other
}

/// Indices of the single flows that are alike, group by group, in the order of the scenario.
pub fn alike_flows(scenario: &Scenario) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let is_group = |flow: usize| scenario.groups.iter().any(|group| group.flows.contains(&flow));
    for (flow, spec) in scenario.flows.iter().enumerate() {
        // A group is several flows.
        if is_group(flow) {
            continue;
        }
        let same = |group: &&mut Vec<usize>| alike(&scenario.flows[group[0]].app, &spec.app);
        match groups.iter_mut().find(same) {
            Some(group) => group.push(flow),
            None => groups.push(vec![flow]),
        }
    }
    groups
}

/// Indices of the flows that are compared: the largest group of flows that are alike, of two or
/// more; the first of several of one size.
pub fn compared(scenario: &Scenario) -> Vec<usize> {
    let groups = alike_flows(scenario).into_iter().rev().filter(|group| group.len() > 1);
    groups.max_by_key(Vec::len).unwrap_or_default()
}

/// Jain's index; 1 if there are no rates or all are 0: all are equal.
pub fn jain(rates: &[f64]) -> f64 {
    let sum: f64 = rates.iter().sum();
    let squares: f64 = rates.iter().map(|rate| rate * rate).sum();
    if squares > 0.0 { sum * sum / (rates.len() as f64 * squares) } else { 1.0 }
}

/// Bytes that each flow's application read in each second.
#[derive(Debug, Clone)]
pub(super) struct BytesPerSecond {
    flows: Vec<Vec<u64>>,
    /// Whether the reads of a flow are not visible.
    hidden: Vec<bool>,
}

impl BytesPerSecond {
    pub(super) fn new(flows: usize) -> Self {
        Self { flows: vec![Vec::new(); flows], hidden: vec![false; flows] }
    }

    /// The reads of a flow are not visible.
    pub(super) fn hide(&mut self, flow: usize) {
        self.hidden[flow] = true;
    }

    fn is_hidden(&self, flow: usize) -> bool {
        self.hidden.get(flow).is_some_and(|hidden| *hidden)
    }

    pub(super) fn add(&mut self, flow: usize, at: Instant, bytes: u64) {
        let second = (at.as_nanos() / SECOND) as usize;
        let Some(seconds) = self.flows.get_mut(flow) else { return };
        if seconds.len() <= second {
            seconds.resize(second + 1, 0);
        }
        seconds[second] += bytes;
    }

    /// Bytes of a flow in a second.
    fn bytes(&self, flow: usize, second: usize) -> u64 {
        self.flows[flow].get(second).copied().unwrap_or(0)
    }

    /// Jain's index of each whole second among `compared`; `None` with fewer than two active flows, or
    /// if one has no visible reads.
    fn indices(
        &self,
        scenario: &Scenario,
        outcome: &RunOutcome,
        compared: &[usize],
    ) -> Vec<Option<f64>> {
        let span = |&flow: &usize| {
            let begin = scenario.flows[flow].start.as_nanos();
            (flow, begin, begin + outcome.flows[flow].duration.as_nanos())
        };
        let spans: Vec<(usize, u64, u64)> = compared.iter().map(span).collect();
        let whole = outcome.ended.as_nanos() / SECOND;
        let is_visible = !compared.iter().any(|&flow| self.is_hidden(flow));
        let index = |second: u64| {
            let (from, until) = (second * SECOND, (second + 1) * SECOND);
            let rates: Vec<f64> = spans
                .iter()
                .filter(|(_, begin, end)| *begin <= from && *end >= until)
                .map(|(flow, ..)| self.bytes(*flow, second as usize) as f64)
                .collect();
            (rates.len() > 1 && is_visible).then(|| jain(&rates))
        };
        (0..whole).map(index).collect()
    }

    pub(super) fn report(
        &self,
        scenario: &Scenario,
        outcome: &RunOutcome,
    ) -> Option<FairnessReport> {
        let compared = compared(scenario);
        if compared.len() < 2 {
            return None;
        }
        let of = |flow: &usize| outcome.flows[*flow].goodput_bps();
        let goodputs: Vec<f64> = compared.iter().map(of).collect();
        let indices = self.indices(scenario, outcome, &compared);
        let known: Vec<f64> = indices.iter().copied().flatten().collect();
        let starts = compared.iter().map(|&flow| scenario.flows[flow].start);
        let last = starts.max().unwrap_or(Duration::ZERO);
        let all = compared.len() == scenario.flows.len();
        let named = compared.iter().filter(|_| !all);
        let first = last.as_nanos().div_ceil(SECOND) as usize;
        let fair = 1.0 / (1.0 + DELTA * DELTA);
        let later = indices.iter().enumerate().skip(first);
        let converged = later.clone().find(|(_, index)| index.is_some_and(|index| index >= fair));
        Some(FairnessReport {
            flows: named.map(|&flow| scenario.flows[flow].name.clone()).collect(),
            jain_index: jain(&goodputs),
            mean_jain_index: (!known.is_empty())
                .then(|| known.iter().sum::<f64>() / known.len() as f64),
            min_jain_index: known.iter().copied().reduce(f64::min),
            convergence_s: converged.map(|(second, _)| (second + 1) as f64 - last.as_secs_f64()),
            seconds_not_visible: compared.iter().any(|&flow| self.is_hidden(flow)),
        })
    }

    pub(super) fn by_second(
        &self,
        scenario: &Scenario,
        outcome: &RunOutcome,
        links: Vec<QueueSeconds>,
    ) -> Option<SecondsReport> {
        if self.flows.len() < 2 && links.is_empty() {
            return None;
        }
        let count = outcome.ended.as_nanos().div_ceil(SECOND) as usize;
        let of = |flow| {
            let seconds = (0..count).map(|second| self.bytes(flow, second) as f64 * 8.0);
            (!self.is_hidden(flow)).then(|| seconds.collect())
        };
        Some(SecondsReport {
            goodput_bps: (0..self.flows.len()).map(of).collect(),
            jain_index: self.indices(scenario, outcome, &compared(scenario)),
            links,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of the report's section 2: a share of k in n gives k/n.
    #[test]
    fn tr_301_the_index_is_the_share_of_those_served() {
        let is =
            |rates: &[f64], index: f64| assert!((jain(rates) - index).abs() < 1e-15, "{rates:?}");
        is(&[1.0, 1.0, 1.0, 1.0], 1.0);
        is(&[5.0, 0.0, 0.0, 0.0], 0.25);
        is(&[3.0, 3.0, 0.0, 0.0, 0.0], 0.4);
        // The scale does not matter.
        is(&[1e6, 2e6, 3e6], jain(&[1.0, 2.0, 3.0]));
        is(&[], 1.0);
    }

    #[test]
    fn rfc_5166_delta_fair_shares_of_two_flows_are_55_and_45_percent() {
        let fair = 1.0 / (1.0 + DELTA * DELTA);
        assert!((jain(&[0.55, 0.45]) - fair).abs() < 1e-12);
        assert!(jain(&[0.56, 0.44]) < fair && jain(&[0.54, 0.46]) > fair);
    }
}
