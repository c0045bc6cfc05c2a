//! RFC 9743 section 5.1.1, protection against congestion collapse: full back-off when nothing
//! arrives, and fewer packets under persistent loss.

use units::Duration;

use super::SuiteCriterion;
use crate::evaluation::Margin;
use crate::world::{SuiteWorld, WorldFlow};

/// Flows of the world with many: the path and its queue hold 66 packets of 1500 bytes.
const MANY: usize = 60;

pub(super) const CRITERION: SuiteCriterion = SuiteCriterion {
    section: "5.1.1",
    title: "protection against congestion collapse",
    limits: "at most five packets in the last ten seconds of an outage of twenty: retransmission \
             timeouts that double from 0.2 s (RFC 6298) leave two, and a probe may go with each; \
             under 30 % loss at most half of the link's rate is sent; of what many flows send, the \
             readers get at least nine tenths of the worst reference's share",
    source: "RFC 9743 section 5.1.1; timeouts that double: RFC 6298 section 5.5; the share of useful packets: \
             RFC 2914 section 3.1; the factors are this project's",
    not_evaluated: None,
    evaluate: |evaluation| {
        let rtt = Duration::from_millis(40);
        let outage = evaluation.runs(|sender| {
            SuiteWorld::new("outage-20s", 10.0, rtt, 1.0)
                .element("{ outage = { from = \"5s\", until = \"25s\" } }")
                .lasts(Duration::from_secs(40))
                .flow(WorldFlow::bulk("upload", sender, rtt))
        })?;
        let sent = |run: &crate::measure::RunMeasures| run.sent(15, 25) as f64;
        evaluation.figure(&outage, "packets in the last 10 s", "", Margin::Most(5.0), sent);
        let lossy = evaluation.runs(|sender| {
            SuiteWorld::new("loss-30", 10.0, rtt, 1.0)
                .drawn_element("{ loss = \"30%\", only = \"data\" }")
                .flow(WorldFlow::bulk("upload", sender, rtt))
        })?;
        // 10 Mbit/s are 833 packets of 1500 bytes a second.
        let share = |run: &crate::measure::RunMeasures| run.sent(10, 30) as f64 / 20.0 / 8.333;
        evaluation.figure(&lossy, "sent of the link's rate", "%", Margin::Most(50.0), share);
        // More flows than the path has room for packets: what is lost was sent in vain.
        let many = evaluation.phases(|sender| {
            let world = SuiteWorld::new(format!("{MANY}-flows"), 10.0, rtt, 1.0);
            (0..MANY).fold(world, |world, number| {
                world.flow(WorldFlow::bulk(&format!("flow{number}"), sender, rtt))
            })
        })?;
        let margin = Margin::AtLeast { factor: 0.9 };
        evaluation.figure(&many, "read of what is sent", "%", margin, |run| run.useful(10));
        Ok(())
    },
};
