//! RFC 9743 section 6, general use: tail-drop queues, tunnels, wired and wireless paths.

use units::Duration;

use super::{RELATIVE, SuiteCriterion};
use crate::SuiteError;
use crate::evaluation::{Evaluation, Margin};
use crate::world::{SuiteWorld, WorldFlow};

const GOODPUT: Margin = Margin::AtLeast { factor: 0.9 };
const LIMITS: &str = "at least nine tenths of the worst reference";

pub(super) const TAIL_DROP: SuiteCriterion = SuiteCriterion {
    section: "6.1",
    title: "paths with tail-drop queues",
    limits: LIMITS,
    source: RELATIVE,
    not_evaluated: None,
    evaluate: |evaluation| {
        for bdp in [0.25, 1.0, 4.0] {
            utilisation(evaluation, "tail-drop", 20.0, 40, bdp)?;
        }
        // ACKs that wait behind data of the other direction come in bursts.
        let rtt = Duration::from_millis(40);
        let Some(other) = evaluation.references().into_iter().next() else { return Ok(()) };
        let runs = evaluation.phases(|sender| {
            SuiteWorld::new("reverse-traffic", 20.0, rtt, 1.0)
                .flow(WorldFlow::bulk("upload", sender, rtt))
                .flow(WorldFlow::bulk("download", &other, rtt).reverse())
        })?;
        evaluation.figure(&runs, "goodput against it", "Mbit/s", GOODPUT, |run| run.goodput(0, 5));
        Ok(())
    },
};

pub(super) const WIRED: SuiteCriterion = SuiteCriterion {
    section: "6.3",
    title: "wired paths",
    limits: LIMITS,
    source: RELATIVE,
    not_evaluated: None,
    evaluate: |evaluation| {
        for (rate, ms) in [(5.0, 10), (5.0, 100), (100.0, 10), (100.0, 100), (1_000.0, 10)] {
            utilisation(evaluation, "wired", rate, ms, 1.0)?;
        }
        Ok(())
    },
};

fn utilisation(
    evaluation: &mut Evaluation<'_>,
    kind: &str,
    rate: f64,
    ms: u64,
    bdp: f64,
) -> Result<(), SuiteError> {
    let rtt = Duration::from_millis(ms);
    let runs = evaluation.runs(|sender| {
        SuiteWorld::new(format!("{kind}-{rate}mbit-{ms}ms-{bdp}bdp"), rate, rtt, bdp)
            .lasts(Duration::from_secs(20))
            .flow(WorldFlow::bulk("upload", sender, rtt))
    })?;
    evaluation.figure(&runs, "utilisation", "%", GOODPUT, |run| run.utilisation(5));
    Ok(())
}

pub(super) const TUNNELS: SuiteCriterion = SuiteCriterion {
    section: "6.2",
    title: "tunnels",
    limits: LIMITS,
    source: RELATIVE,
    not_evaluated: None,
    evaluate: |evaluation| {
        let rtt = Duration::from_millis(40);
        let runs = evaluation.runs(|sender| {
            let mut world = SuiteWorld::new("tunnel-mtu-1400", 20.0, rtt, 1.0)
                .flow(WorldFlow::bulk("upload", sender, rtt));
            world.mtu = Some(1_400);
            world
        })?;
        evaluation.figure(&runs, "utilisation", "%", GOODPUT, |run| run.utilisation(10));
        Ok(())
    },
};

pub(super) const WIRELESS: SuiteCriterion = SuiteCriterion {
    section: "6.4",
    title: "wireless paths",
    limits: LIMITS,
    source: RELATIVE,
    not_evaluated: None,
    evaluate: |evaluation| {
        let rtt = Duration::from_millis(30);
        let kinds = [
            ("random-loss", "{ loss = \"0.5%\", only = \"data\" }"),
            (
                "bursts-of-loss",
                "{ loss = { gilbert_elliott = { p = \"0.1%\", r = \"30%\", h = \"50%\" } } }",
            ),
            ("jitter", "{ jitter = \"8ms\" }"),
        ];
        for (kind, element) in kinds {
            let runs = evaluation.runs(|sender| {
                SuiteWorld::new(format!("wireless-{kind}"), 30.0, rtt, 2.0)
                    .drawn_element(element)
                    .flow(WorldFlow::bulk("upload", sender, rtt))
            })?;
            evaluation.figure(&runs, "goodput", "Mbit/s", GOODPUT, |run| run.goodput(0, 5));
        }
        Ok(())
    },
};
