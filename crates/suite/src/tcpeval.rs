//! The Common TCP Evaluation Suite, draft-irtf-iccrg-tcpeval-01.
//!
//! Links, round trips, queues and loads are the draft's. Its traffic is not: the draft replays traces
//! of connections (Tmix); here each load is drawn flows of one transfer each (`traffic`).

mod links;
mod measure;
mod parking_lot;
mod standard_tcp;
mod test_flows;
mod topology;
mod traffic;
mod transients;

use crate::SuiteError;
use crate::criteria::{Suite, SuiteCriterion};
use crate::evaluation::{Evaluation, Margin};
use crate::report::WorldText;
use crate::sender::SuiteSender;
use measure::{TcpevalRun, run};

const LIMITS: &str = "utilisation at least nine tenths of the worst reference's; loss at most three \
                      times, 1 % is free; queue delay p95 at most a tenth above, 5 ms are free";

const SOURCE: &str = "the draft sets none; the factors are this project's";

/// The suite.
pub static TCPEVAL: Suite = Suite {
    name: "tcpeval",
    is_drawn: false,
    title: "Common TCP Evaluation Suite (draft-irtf-iccrg-tcpeval-01)",
    lead: "Links, round trips, queues and loads are the draft's; the traffic is drawn flows instead of \
           its traces of connections. The draft gives no limits: each is the worst reference with a \
           margin.",
    criteria: &[
        criterion("4.4.1", "data center", |evaluation| {
            links::loads(evaluation, &links::DATA_CENTER)
        }),
        criterion("4.4.2", "access link", |evaluation| links::loads(evaluation, &links::ACCESS)),
        criterion("4.4.3", "trans-oceanic link", |evaluation| {
            links::loads(evaluation, &links::TRANS_OCEANIC)
        }),
        criterion("4.4.4", "geostationary satellite", |evaluation| {
            links::loads(evaluation, &links::SATELLITE)
        }),
        criterion("4.4.5", "wireless LAN", |evaluation| links::loads(evaluation, &links::WIRELESS)),
        criterion("4.4.6", "dial-up link", |evaluation| links::loads(evaluation, &links::DIAL_UP)),
        criterion("5.1", "delay and throughput by the size of the queue", links::trade_off),
        SuiteCriterion {
            limits: "time until the new flow has received 15 kB and so on at most a fifth above the \
                     worst reference; with slow start (section 5.2.2.1), as only FreeBSD's host \
                     cache lets a flow start without it",
            ..criterion("5.2", "ramp-up time", test_flows::ramp_up)
        },
        SuiteCriterion {
            limits: "time until the window is a part of its BDP at most a fifth above the worst \
                     reference; lost packets of the other traffic at most three times as many",
            ..criterion("5.3", "transients", transients::evaluate)
        },
        SuiteCriterion {
            limits: "throughput of standard TCP (the first reference) beside the sender, over that \
                     beside itself, at least nine tenths of that beside the worst reference",
            ..criterion("6.1", "impact on standard TCP traffic", standard_tcp::evaluate)
        },
        SuiteCriterion {
            limits: "ratio of the goodputs of two flows at least nine tenths of the worst reference's; \
                     loss at most three times, 1 % is free",
            ..criterion("6.2", "fairness", test_flows::fairness)
        },
        criterion("6.3", "multiple bottlenecks", parking_lot::evaluate),
    ],
};

const fn criterion(
    section: &'static str,
    title: &'static str,
    evaluate: fn(&mut Evaluation<'_>) -> Result<(), SuiteError>,
) -> SuiteCriterion {
    SuiteCriterion { section, title, limits: LIMITS, source: SOURCE, not_evaluated: None, evaluate }
}

/// Runs a world with each sender and adds the three figures that the draft asks for.
fn compare(
    evaluation: &mut Evaluation<'_>,
    name: &str,
    text: impl Fn(&SuiteSender) -> String,
    utilisation: impl Fn(&TcpevalRun) -> f64,
) -> Result<Vec<TcpevalRun>, SuiteError> {
    let build = |sender: &SuiteSender| WorldText::new(name, text(sender));
    let runs = evaluation.each(build, run)?;
    let of = |measure: fn(&TcpevalRun) -> Option<f64>| runs.iter().map(measure).collect::<Vec<_>>();
    let margin = Margin::AtLeast { factor: 0.9 };
    let used: Vec<f64> = runs.iter().map(utilisation).collect();
    evaluation.compared(name, "utilisation by goodput", "%", margin, &used);
    let margin = Margin::AtMost { factor: 3.0, free: 1.0 };
    evaluation.compared(name, "packets lost at the queue", "%", margin, &of(|run| run.loss));
    let delay = of(|run| run.median_delay_ms);
    evaluation.compared(name, "median queue delay", "ms", Margin::Info, &delay);
    let margin = Margin::AtMost { factor: 1.1, free: 5.0 };
    evaluation.compared(name, "queue delay p95", "ms", margin, &of(|run| run.delay_p95_ms));
    Ok(runs)
}
