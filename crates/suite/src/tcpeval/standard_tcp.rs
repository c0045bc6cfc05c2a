//! Section 6.1 of the draft: how much throughput standard TCP loses to another sender.
//!
//! Two camps have the same flows. Camp A uses standard TCP, which is the first reference here, camp B
//! the sender under test; the baseline has standard TCP in both.

use super::measure::{TcpevalRun, run};
use super::topology::{CentralLink, EDGES, ROUTES, TopologyText, bytes};
use super::traffic::{DrawnFlow, SIZES, drawn};
use crate::SuiteError;
use crate::evaluation::{Evaluation, Margin};
use crate::report::WorldText;
use crate::sender::SuiteSender;

/// Rates in bit/s, with names and the length of a run in seconds.
const CAPACITIES: [(&str, u64, u64); 2] =
    [("10mbit", 10_000_000, 120), ("1000mbit", 1_000_000_000, 10)];

/// Loads of 50 and 100 % of each capacity.
pub(super) fn evaluate(evaluation: &mut Evaluation<'_>) -> Result<(), SuiteError> {
    let Some(standard) = evaluation.references().into_iter().next() else { return Ok(()) };
    for (capacity, rate, seconds) in CAPACITIES {
        for load in [50_u64, 100] {
            let name = format!("standard-tcp-{capacity}-{load}%");
            let total = rate as f64 / 16.0 * seconds as f64 * load as f64 / 100.0;
            let flows = drawn(&name, total, seconds, SIZES, ROUTES);
            let world = |sender: &SuiteSender| {
                let text = scenario(&name, rate, seconds, &standard, sender, &flows);
                WorldText::new(name.clone(), text)
            };
            let runs = evaluation.each(world, run)?;
            // After the sender under test, the first reference is standard TCP in both camps.
            let camp = |run: &TcpevalRun, first: usize| {
                run.goodput.iter().skip(first).take(ROUTES).sum::<f64>()
            };
            let against_baseline = |first: usize| -> Vec<f64> {
                let baseline = runs.get(1).map_or(0.0, |run| camp(run, first)).max(1.0);
                runs.iter().map(|run| camp(run, first) / baseline).collect()
            };
            let margin = Margin::AtLeast { factor: 0.9 };
            let what = "throughput of standard TCP, over that beside itself (L)";
            evaluation.compared(&name, what, "", margin, &against_baseline(0));
            let what = "own throughput, over that of standard TCP in its place (G)";
            evaluation.compared(&name, what, "", Margin::Info, &against_baseline(ROUTES));
        }
    }
    Ok(())
}

/// Camp A has the first nine routes, camp B the others.
fn scenario(
    name: &str,
    rate: u64,
    seconds: u64,
    standard: &SuiteSender,
    sender: &SuiteSender,
    flows: &[DrawnFlow],
) -> String {
    let link = CentralLink::symmetric(rate, bytes(rate, 80));
    let mut text = TopologyText::new(name, seconds);
    link.add(&mut text);
    let camps = [standard, sender].map(|camp| link.dumbbell(&mut text, camp, 2_000, EDGES));
    for first in camps {
        text.transfers(first, flows);
    }
    text.finish()
}
