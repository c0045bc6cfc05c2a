//! RFC 9743 section 7.5, paths with high delay: a geostationary satellite.

use units::Duration;

use super::{RELATIVE, SuiteCriterion};
use crate::evaluation::Margin;
use crate::world::{SuiteWorld, WorldFlow};

pub(super) const CRITERION: SuiteCriterion = SuiteCriterion {
    section: "7.5",
    title: "paths with high delay",
    limits: "at least nine tenths of the worst reference",
    source: RELATIVE,
    not_evaluated: None,
    evaluate: |evaluation| {
        let rtt = Duration::from_millis(600);
        for (name, element) in
            [("satellite", None), ("satellite-loss", Some("{ loss = \"0.1%\" }"))]
        {
            let runs = evaluation.runs(|sender| {
                let world = SuiteWorld::new(name, 20.0, rtt, 1.0).lasts(Duration::from_secs(60));
                let world = match element {
                    Some(element) => world.drawn_element(element),
                    None => world,
                };
                world.flow(WorldFlow::bulk("upload", sender, rtt))
            })?;
            let margin = Margin::AtLeast { factor: 0.9 };
            evaluation.figure(&runs, "utilisation", "%", margin, |run| run.utilisation(0));
        }
        Ok(())
    },
};
