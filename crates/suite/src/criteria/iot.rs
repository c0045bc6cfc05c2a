//! RFC 9743 section 7.4, the Internet of Things: slow links with queues of a few packets.

use units::Duration;

use super::{RELATIVE, SuiteCriterion};
use crate::evaluation::Margin;
use crate::world::{SuiteWorld, WorldFlow};

pub(super) const CRITERION: SuiteCriterion = SuiteCriterion {
    section: "7.4",
    title: "Internet of Things",
    limits: "goodput at least nine tenths of the worst reference, loss at most three times as high, and \
             1 % is free",
    source: RELATIVE,
    not_evaluated: None,
    evaluate: |evaluation| {
        let rtt = Duration::from_millis(400);
        let runs = evaluation.runs(|sender| {
            SuiteWorld::new("iot-100kbit-400ms", 0.1, rtt, 1.0)
                .lasts(Duration::from_secs(120))
                .flow(WorldFlow::bulk("upload", sender, rtt))
        })?;
        let margin = Margin::AtLeast { factor: 0.9 };
        evaluation.figure(&runs, "utilisation", "%", margin, |run| run.utilisation(10));
        let margin = Margin::AtMost { factor: 3.0, free: 1.0 };
        evaluation.figure(&runs, "data packets lost", "%", margin, |run| run.loss(20));
        Ok(())
    },
};
