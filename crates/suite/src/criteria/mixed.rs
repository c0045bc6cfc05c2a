//! RFC 9743 section 5.2.1, beside existing general-purpose congestion control.
//!
//! Harm is the part of its goodput alone that a flow loses to another (Ware, Mukerjee, Seshan and
//! Sherry, HotNets 2019): a new algorithm is acceptable if it does no more harm to an existing one
//! than existing ones do to it.

use units::Duration;

use super::SuiteCriterion;
use crate::evaluation::{Evaluation, Margin, WorldRuns};
use crate::measure::RunMeasures;
use crate::world::{SuiteWorld, WorldFlow};

pub(super) const CRITERION: SuiteCriterion = SuiteCriterion {
    section: "5.2.1",
    title: "existing general-purpose congestion control",
    limits: "harm to a flow of each reference (the part of its goodput alone that it loses) at most a \
             tenth above the harm of the worst reference to it, and its fair share is free: beside one \
             flow, beside four, and at the end of a run of two to four minutes; its least share in any ten seconds \
             at least a tenth of the fair one, or half of what it is beside the worst reference",
    source: "harm: Ware, Mukerjee, Seshan and Sherry, HotNets 2019; the factors are this project's",
    not_evaluated: None,
    evaluate: |evaluation: &mut Evaluation<'_>| {
        let rtt = Duration::from_millis(40);
        for existing in evaluation.references() {
            for bdp in [0.5, 1.0, 4.0] {
                let name = format!("beside-{}-{bdp}bdp", existing.cc);
                let runs = evaluation.phases(|sender| {
                    SuiteWorld::new(name.clone(), 20.0, rtt, bdp)
                        .lasts(Duration::from_secs(60))
                        .flow(WorldFlow::bulk("existing", &existing, rtt))
                        .flow(WorldFlow::bulk("tested", sender, rtt))
                })?;
                harm(evaluation, &runs, 20.0, 50.0, |_| 20);
                evaluation.starvation(&runs, |run| run.least_share(0, 20));
            }
            let name = format!("four-beside-{}", existing.cc);
            let runs = evaluation.phases(|sender| {
                let world = SuiteWorld::new(name.clone(), 20.0, rtt, 1.0)
                    .lasts(Duration::from_secs(60))
                    .flow(WorldFlow::bulk("existing", &existing, rtt));
                (0..4).fold(world, |world, number| {
                    world.flow(WorldFlow::bulk(&format!("tested{number}"), sender, rtt))
                })
            })?;
            harm(evaluation, &runs, 20.0, 80.0, |_| 20);
            let name = format!("long-beside-{}", existing.cc);
            let runs = evaluation.phases(|sender| {
                SuiteWorld::new(name.clone(), 10.0, rtt, 1.0)
                    .lasts(Duration::from_secs(120))
                    .lasts_up_to(Duration::from_secs(120))
                    .flow(WorldFlow::bulk("existing", &existing, rtt))
                    .flow(WorldFlow::bulk("tested", sender, rtt))
            })?;
            harm(evaluation, &runs, 10.0, 50.0, |run| run.end() * 2 / 3);
        }
        Ok(())
    },
};

/// Adds the harm to the first flow, alone on a link of this rate in Mbit/s, from a second of the run
/// on; `free` is what a fair share costs it, in percent.
fn harm(
    evaluation: &mut Evaluation<'_>,
    runs: &WorldRuns,
    mbits: f64,
    free: f64,
    from: fn(&RunMeasures) -> u64,
) {
    // Alone it would have the link: TCP's share of 1500 bytes is 1448.
    let alone = mbits * 1_448.0 / 1_500.0;
    let harm = |run: &RunMeasures| 100.0 * (1.0 - run.goodput(0, from(run)) / alone);
    let margin = Margin::AtMost { factor: 1.1, free };
    evaluation.figure(runs, "harm to the existing flow", "%", margin, harm);
}
