//! RFC 9743 section 5.1.3, protection against high packet loss that the sender itself causes, and
//! section 7.2, circuit breakers and policers, which act on such loss.

use units::Duration;

use super::{RELATIVE, SuiteCriterion};
use crate::evaluation::Margin;
use crate::world::{SuiteWorld, WorldFlow};

/// Three times the loss of the worst reference is of another kind than a congestion signal; below
/// 1 % it does no harm.
const LOSS: Margin = Margin::AtMost { factor: 3.0, free: 1.0 };

pub(super) const CRITERION: SuiteCriterion = SuiteCriterion {
    section: "5.1.3",
    title: "protection against high packet loss",
    limits: "loss after slow start at most three times that of the worst reference, and 1 % is free",
    source: RELATIVE,
    not_evaluated: None,
    evaluate: |evaluation| {
        let rtt = Duration::from_millis(40);
        for bdp in [0.1, 0.25, 0.5, 1.0, 1.5, 2.0] {
            let runs = evaluation.phases(|sender| {
                SuiteWorld::new(format!("shallow-{bdp}bdp"), 50.0, rtt, bdp)
                    .flow(WorldFlow::bulk("one", sender, rtt))
                    .flow(WorldFlow::bulk("two", sender, rtt))
            })?;
            evaluation.figure(&runs, "data packets lost", "%", LOSS, |run| run.loss(10));
        }
        Ok(())
    },
};

pub(super) const POLICER: SuiteCriterion = SuiteCriterion {
    section: "7.2",
    title: "network circuit breakers and policers",
    limits: "loss at most three times that of the worst reference, and 1 % is free; at least nine \
             tenths of the worst reference's goodput",
    source: RELATIVE,
    not_evaluated: None,
    evaluate: |evaluation| {
        let rtt = Duration::from_millis(40);
        let runs = evaluation.runs(|sender| {
            SuiteWorld::new("policer-10mbit", 100.0, rtt, 1.0)
                .element("{ policer = { rate = \"10Mbit/s\", burst = \"50kB\" } }")
                .flow(WorldFlow::bulk("upload", sender, rtt))
        })?;
        evaluation.figure(&runs, "data packets lost", "%", LOSS, |run| run.loss(10));
        let margin = Margin::AtLeast { factor: 0.9 };
        evaluation.figure(&runs, "goodput", "Mbit/s", margin, |run| run.goodput(0, 10));
        Ok(())
    },
};
