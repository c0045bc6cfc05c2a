//! RFC 9743 section 5.1.4, fairness within the algorithm, with convergence and starvation.

use runner::sharing::jain;
use units::Duration;

use super::SuiteCriterion;
use crate::evaluation::Margin;
use crate::measure::RunMeasures;
use crate::world::{SuiteWorld, WorldFlow};

pub(super) const CRITERION: SuiteCriterion = SuiteCriterion {
    section: "5.1.4",
    title: "fairness within the algorithm",
    limits: "Jain's index of four flows with drawn start phases at least nine tenths of the worst \
             reference's; the least share of a flow in any ten seconds at least a tenth of the fair \
             one, or half of what it is for the worst reference",
    not_evaluated: None,
    evaluate: |evaluation| {
        let rtt = Duration::from_millis(40);
        for bdp in [0.5, 1.0, 4.0] {
            let runs = evaluation.phases(|sender| {
                let world = SuiteWorld::new(format!("four-flows-{bdp}bdp"), 40.0, rtt, bdp)
                    .lasts(Duration::from_secs(60));
                (0..4).fold(world, |world, number| {
                    world.flow(WorldFlow::bulk(&format!("flow{number}"), sender, rtt))
                })
            })?;
            let index = |run: &RunMeasures| jain(&[0, 1, 2, 3].map(|flow| run.goodput(flow, 20)));
            let margin = Margin::AtLeast { factor: 0.9 };
            evaluation.figure(&runs, "Jain's index from 20 s on", "", margin, index);
            let least = |run: &RunMeasures| {
                (0..4).map(|flow| run.least_share(flow, 20)).fold(f64::INFINITY, f64::min)
            };
            evaluation.starvation(&runs, least);
        }
        Ok(())
    },
};
