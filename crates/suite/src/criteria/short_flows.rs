//! RFC 9743 section 5.1.5, short flows, and section 5.2.3, short flows beside long ones.

use units::Duration;

use super::{RELATIVE, SuiteCriterion};
use crate::evaluation::{Evaluation, Margin};
use crate::world::{SuiteWorld, WorldFlow};

/// Number of short flows, one a second.
const SHORT: u64 = 20;
const MARGIN: Margin = Margin::AtMost { factor: 1.2, free: 0.0 };

pub(super) const CRITERION: SuiteCriterion = SuiteCriterion {
    section: "5.1.5",
    title: "short flows",
    limits: "mean completion time of 20 short flows on an idle link at most a fifth above the worst \
             reference",
    source: RELATIVE,
    not_evaluated: None,
    evaluate: |evaluation| {
        for kilobytes in [15, 150, 1_000] {
            let rtt = Duration::from_millis(40);
            let runs = evaluation.runs(|sender| {
                let world = SuiteWorld::new(format!("short-{kilobytes}kB"), 50.0, rtt, 1.0);
                (0..SHORT).fold(world, |world, number| {
                    let flow = WorldFlow::bulk(&format!("short{number}"), sender, rtt);
                    let app = format!("bulk = \"{kilobytes}kB\"");
                    world.flow(flow.app(app).start(Duration::from_secs(number)))
                })
            })?;
            evaluation.figure(&runs, "mean completion time", "ms", MARGIN, |run| {
                run.mean_completion(0..SHORT as usize)
            });
        }
        Ok(())
    },
};

pub(super) const BESIDE_LONG: SuiteCriterion = SuiteCriterion {
    section: "5.2.3",
    title: "short and long flows",
    limits: "mean completion time of short flows of each reference beside a long flow at most a \
             fifth above that beside the worst reference",
    source: RELATIVE,
    not_evaluated: None,
    evaluate: |evaluation: &mut Evaluation<'_>| {
        let rtt = Duration::from_millis(40);
        for short in evaluation.references() {
            for bdp in [1.0, 4.0] {
                let name = format!("short-{}-beside-long-{bdp}bdp", short.cc);
                let runs = evaluation.phases(|sender| {
                    let world = SuiteWorld::new(name.clone(), 20.0, rtt, bdp)
                        .flow(WorldFlow::bulk("long", sender, rtt));
                    (0..SHORT).fold(world, |world, number| {
                        let flow = WorldFlow::bulk(&format!("short{number}"), &short, rtt);
                        let start = Duration::from_secs(5 + number);
                        world.flow(flow.app("bulk = \"50kB\"").start(start))
                    })
                })?;
                evaluation.figure(&runs, "mean completion time", "ms", MARGIN, |run| {
                    run.mean_completion(1..SHORT as usize + 1)
                });
            }
        }
        Ok(())
    },
};
