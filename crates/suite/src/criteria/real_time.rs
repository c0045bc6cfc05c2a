//! RFC 9743 section 5.2.2, beside real-time congestion control: voice that shares the link.

use units::Duration;

use super::{RELATIVE, SuiteCriterion};
use crate::evaluation::{Evaluation, Margin};
use crate::measure::RunMeasures;
use crate::world::{SuiteWorld, WorldFlow};

pub(super) const CRITERION: SuiteCriterion = SuiteCriterion {
    section: "5.2.2",
    title: "real-time congestion control",
    limits: "p99 of the delay that the queue adds to packets of voice at most a tenth above the worst \
             reference, 5 ms are free; the voice flow keeps nine tenths of the rate that it keeps beside \
             the worst reference",
    source: RELATIVE,
    not_evaluated: None,
    evaluate: |evaluation: &mut Evaluation<'_>| {
        let rtt = Duration::from_millis(40);
        let Some(voice) = evaluation.references().into_iter().next() else { return Ok(()) };
        for (queue, bdp) in [("drop-tail", 1.0), ("drop-tail", 4.0), ("fq_codel", 4.0)] {
            let runs = evaluation.phases(|sender| {
                let mut world = SuiteWorld::new(format!("voice-{queue}-{bdp}bdp"), 10.0, rtt, bdp)
                    .queue(queue)
                    .flow(WorldFlow::bulk("long", sender, rtt))
                    .flow(
                        WorldFlow::bulk("voice", &voice, rtt)
                            .app("paced = { chunk = \"160B\", every = \"20ms\" }\nnodelay = true"),
                    );
                world.timed = Some(1);
                world
            })?;
            let margin = Margin::AtMost { factor: 1.1, free: 5.0 };
            evaluation.figure(
                &runs,
                "delay added to voice p99",
                "ms",
                margin,
                RunMeasures::added_delay_p99,
            );
            // 160 bytes every 20 ms are 64 kbit/s.
            let kept = |run: &RunMeasures| 100.0 * run.goodput(1, 10) / 0.064;
            let margin = Margin::AtLeast { factor: 0.9 };
            evaluation.figure(&runs, "rate that the voice flow keeps", "%", margin, kept);
        }
        Ok(())
    },
};
