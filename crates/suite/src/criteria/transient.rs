//! RFC 9743 sections 7.8, transient events, and 7.9, sudden changes in the path.

use units::Duration;

use super::{RELATIVE, SuiteCriterion};
use crate::evaluation::{Evaluation, Margin};
use crate::world::{SuiteWorld, WorldFlow};

pub(super) const OUTAGE: SuiteCriterion = SuiteCriterion {
    section: "7.8",
    title: "transient events",
    limits: "at least nine tenths of the worst reference in the ten seconds after the outage",
    source: RELATIVE,
    not_evaluated: None,
    evaluate: |evaluation| {
        let rtt = Duration::from_millis(40);
        for (name, hold) in [("outage-300ms-lost", false), ("outage-300ms-held", true)] {
            let runs = evaluation.runs(|sender| {
                SuiteWorld::new(name, 20.0, rtt, 1.0)
                    .element(format!(
                        "{{ outage = {{ from = \"10s\", until = \"10.3s\", hold = {hold} }} }}"
                    ))
                    .lasts(Duration::from_secs(20))
                    .flow(WorldFlow::bulk("upload", sender, rtt))
            })?;
            let margin = Margin::AtLeast { factor: 0.9 };
            evaluation.figure(&runs, "utilisation", "%", margin, |run| run.utilisation(10));
        }
        Ok(())
    },
};

pub(super) const CROSS_TRAFFIC: SuiteCriterion = SuiteCriterion {
    section: "7.9",
    title: "sudden changes in the path",
    limits: "goodput at least nine tenths of the worst reference, loss at most three times as high, and \
             1 % is free: twenty flows of each reference take the link for ten seconds; the link \
             has a fifth of its rate for ten seconds",
    source: RELATIVE,
    not_evaluated: None,
    evaluate: |evaluation: &mut Evaluation<'_>| {
        let rtt = Duration::from_millis(40);
        for other in evaluation.references() {
            let name = format!("twenty-{}-for-10s", other.cc);
            let runs = evaluation.phases(|sender| {
                let world = SuiteWorld::new(name.clone(), 50.0, rtt, 1.0)
                    .lasts(Duration::from_secs(40))
                    .flow(WorldFlow::bulk("upload", sender, rtt));
                (0..20).fold(world, |world, number| {
                    let flow = WorldFlow::bulk(&format!("cross{number}"), &other, rtt);
                    world.flow(flow.app("bulk = \"2500kB\"").start(Duration::from_secs(10)))
                })
            })?;
            let margin = Margin::AtLeast { factor: 0.9 };
            evaluation
                .figure(&runs, "goodput of the flow", "Mbit/s", margin, |run| run.goodput(0, 10));
            let margin = Margin::AtMost { factor: 3.0, free: 1.0 };
            evaluation.figure(&runs, "data packets lost", "%", margin, |run| run.loss(10));
        }
        let world = "rate-50-10-50mbit";
        let runs = evaluation.runs(|sender| {
            SuiteWorld::new(world, 50.0, rtt, 1.0)
                .rate_from(Duration::from_secs(15), 10)
                .rate_from(Duration::from_secs(25), 50)
                .lasts(Duration::from_secs(40))
                .flow(WorldFlow::bulk("upload", sender, rtt))
        })?;
        for (what, seconds) in
            [("goodput at the low rate", 15..25), ("goodput after it, from 25 s on", 25..40)]
        {
            let margin = Margin::AtLeast { factor: 0.9 };
            evaluation
                .figure(&runs, what, "Mbit/s", margin, |run| run.goodput_in(0, seconds.clone()));
        }
        let margin = Margin::AtMost { factor: 3.0, free: 1.0 };
        evaluation.figure(&runs, "data packets lost", "%", margin, |run| run.loss(15));
        Ok(())
    },
};
