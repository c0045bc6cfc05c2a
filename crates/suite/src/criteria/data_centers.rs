//! RFC 9743 section 7.11, data centers: many senders answer at once (incast).

use units::Duration;

use super::{RELATIVE, SuiteCriterion};
use crate::evaluation::Margin;
use crate::world::{SuiteWorld, WorldFlow};

/// Senders that answer at once.
const SENDERS: usize = 16;

pub(super) const CRITERION: SuiteCriterion = SuiteCriterion {
    section: "7.11",
    title: "data centers",
    limits: "mean completion time at most a fifth above the worst reference",
    source: RELATIVE,
    not_evaluated: None,
    evaluate: |evaluation| {
        let rtt = Duration::from_micros(100);
        for kilobytes in [64, 1_000] {
            let runs = evaluation.runs(|sender| {
                let mut world =
                    SuiteWorld::new(format!("incast-{kilobytes}kB"), 10_000.0, rtt, 2.0)
                        .lasts(Duration::from_secs(5));
                for number in 0..SENDERS {
                    let flow = WorldFlow::bulk(&format!("worker{number}"), sender, rtt);
                    world = world.flow(flow.app(format!("bulk = \"{kilobytes}kB\"")));
                }
                world
            })?;
            let margin = Margin::AtMost { factor: 1.2, free: 0.0 };
            evaluation.figure(&runs, "mean completion time", "ms", margin, |run| {
                run.mean_completion(0..SENDERS)
            });
            evaluation.figure(&runs, "timeouts", "", Margin::Info, |run| run.timeouts as f64);
        }
        Ok(())
    },
};
