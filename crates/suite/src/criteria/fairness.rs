//! RFC 9743 section 5.1.4, fairness within the algorithm, with convergence and starvation.

use runner::sharing::jain;
use units::Duration;

use super::{RELATIVE, SuiteCriterion};
use crate::evaluation::Margin;
use crate::measure::RunMeasures;
use crate::world::{SuiteWorld, WorldFlow};

pub(super) const CRITERION: SuiteCriterion = SuiteCriterion {
    section: "5.1.4",
    title: "fairness within the algorithm",
    limits: "Jain's index of four flows with drawn start phases at least nine tenths of the worst \
             reference's; the least share of a flow in any ten seconds at least a tenth of the fair \
             one, or half of what it is for the worst reference; so is the share of a late flow; with \
             round trips of 20 and 80 ms the ratio of goodputs is at least half of the worst \
             reference's",
    source: RELATIVE,
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
        let runs = evaluation.phases(|sender| {
            SuiteWorld::new("round-trips-20-80ms", 20.0, rtt, 1.0)
                .lasts(Duration::from_secs(60))
                .flow(WorldFlow::bulk("short", sender, Duration::from_millis(20)))
                .flow(WorldFlow::bulk("long", sender, Duration::from_millis(80)))
        })?;
        let ratio = |run: &RunMeasures| run.goodput(1, 20) / run.goodput(0, 20);
        let what = "goodput with the longer round trip, over that with the shorter";
        evaluation.figure(&runs, what, "", Margin::AtLeast { factor: 0.5 }, ratio);
        let runs = evaluation.phases(|sender| {
            let world = SuiteWorld::new("late-comer", 20.0, rtt, 1.0)
                .lasts(Duration::from_secs(60))
                .flow(WorldFlow::bulk("first", sender, rtt))
                .flow(WorldFlow::bulk("second", sender, rtt));
            world.flow(WorldFlow::bulk("late", sender, rtt).start(Duration::from_secs(20)))
        })?;
        let late = |run: &RunMeasures| 100.0 * run.goodput(2, 35) / (20.0 / 3.0);
        evaluation.figure(&runs, "late flow from 15 s on", "% of fair", Margin::Starvation, late);
        Ok(())
    },
};
