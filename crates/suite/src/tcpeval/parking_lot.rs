//! Section 6.3 of the draft: flows through three links in a row, and others through one of them.

use super::compare;
use super::topology::{BACK, CENTRAL, Hop, TopologyText};
use super::traffic::{DrawnFlow, SIZES, drawn};
use crate::SuiteError;
use crate::evaluation::{Evaluation, Margin};
use crate::sender::SuiteSender;

/// Rate of each link in bit/s.
const RATE: u64 = 100_000_000;
const SECONDS: u64 = 30;
/// A queue of the product of rate and round trip; the draft names none.
const QUEUE: u64 = RATE / 8 * 60 / 1_000;

/// Loads of 60, 80 and 100 % on each link: each of the four sources offers half.
pub(super) fn evaluate(evaluation: &mut Evaluation<'_>) -> Result<(), SuiteError> {
    for load in [60_u64, 80, 100] {
        let name = format!("parking-lot-{load}%");
        let each = RATE as f64 / 8.0 * SECONDS as f64 * load as f64 / 200.0;
        let mut flows: Vec<DrawnFlow> = Vec::new();
        for route in 0..4 {
            let of = drawn(&format!("{name} {route}"), each, SECONDS, SIZES, 1);
            flows.extend(of.into_iter().map(|flow| DrawnFlow { route, ..flow }));
        }
        let runs = compare(
            evaluation,
            &name,
            |sender| scenario(&name, sender, &flows),
            // The first route passes all three links.
            |run| {
                let carried: f64 = run.goodput.iter().sum::<f64>()
                    + 2.0 * run.goodput.first().copied().unwrap_or(0.0);
                100.0 * carried / (3.0 * RATE as f64)
            },
        )?;
        let ratio: Vec<f64> = runs
            .iter()
            .map(|run| {
                let (first, others) = run.goodput.split_first().unwrap_or((&0.0, &[]));
                first / (others.iter().sum::<f64>() / others.len().max(1) as f64).max(1.0)
            })
            .collect();
        let what = "goodput through three links, over the mean through one";
        evaluation.compared(&name, what, "", Margin::AtLeast { factor: 0.9 }, &ratio);
    }
    Ok(())
}

/// Every route has a round trip of 60 ms: three links of 10 ms each way, or one with edges of 10 ms.
fn scenario(name: &str, sender: &SuiteSender, flows: &[DrawnFlow]) -> String {
    let mut text = TopologyText::new(name, SECONDS);
    for link in 0..3 {
        for key in [CENTRAL, BACK] {
            text.link(&format!("{key}{link}"), RATE, QUEUE);
        }
    }
    for route in 0..4_usize {
        let links: Vec<usize> = if route == 0 { vec![0, 1, 2] } else { vec![route - 1] };
        let way = |key: &str, links: &[usize]| {
            let mut hops = Vec::new();
            for link in links {
                hops.extend([Hop::Link(format!("{key}{link}")), Hop::Delay(10_000)]);
            }
            if links.len() == 1 {
                hops.push(Hop::Delay(20_000));
            }
            hops
        };
        let there = way(CENTRAL, &links);
        let back: Vec<usize> = links.into_iter().rev().collect();
        text.route(sender, &there, &way(BACK, &back));
    }
    text.transfers(0, flows);
    text.finish()
}
