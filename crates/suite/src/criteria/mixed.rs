//! RFC 9743 section 5.2.1, beside existing general-purpose congestion control.
//!
//! Harm is the part of its goodput alone that a flow loses to another (Ware, Mukerjee, Seshan and
//! Sherry, HotNets 2019): a new algorithm is acceptable if it does no more harm to an existing one
//! than existing ones do to it.

use units::Duration;

use super::SuiteCriterion;
use crate::evaluation::{Evaluation, Margin};
use crate::measure::RunMeasures;
use crate::world::{SuiteWorld, WorldFlow};

pub(super) const CRITERION: SuiteCriterion = SuiteCriterion {
    section: "5.2.1",
    title: "existing general-purpose congestion control",
    limits: "harm to a flow of each reference (the part of its goodput alone that it loses) at most a \
             tenth above the harm of the worst reference to it; its least share in any ten seconds \
             at least a tenth of the fair one, or half of what it is beside the worst reference",
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
                // Alone it would have the link: TCP's share of 1500 bytes is 1448.
                let alone = 20.0 * 1_448.0 / 1_500.0;
                let harm = move |run: &RunMeasures| 100.0 * (1.0 - run.goodput(0, 20) / alone);
                let margin = Margin::AtMost { factor: 1.1, free: 50.0 };
                evaluation.figure(&runs, "harm to the existing flow", "%", margin, harm);
                evaluation.starvation(&runs, |run| run.least_share(0, 20));
            }
        }
        Ok(())
    },
};
