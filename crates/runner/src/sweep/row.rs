//! The result of a run of a sweep: one line of JSON.

use serde::{Deserialize, Serialize, Serializer};
use sim::RunOutcome;
use sim::scenario::Scenario;

use crate::groups::grouped;
use crate::run_report::FlowReport;
use crate::sharing::SharingReport;
use scenario::Study;

/// Version of the format of a row; a new field does not change it, a changed or missing one does.
pub const FORMAT: u32 = 1;

/// Settings and results of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SweepRow {
    /// Number of the run in its study, from 0.
    pub run: u64,
    /// Seed of every random stream.
    pub seed: u64,
    /// The keys of the axes with their values, in the order of the axes.
    #[serde(serialize_with = "as_map", deserialize_with = "from_map")]
    pub set: Vec<(String, String)>,
    /// Virtual time at which the run ended, in seconds.
    pub ended_s: f64,
    /// Data packets sent, retransmissions included.
    pub segments_simulated: u64,
    /// One for each flow, in the order of the scenario.
    pub flows: Vec<FlowReport>,
    /// Fairness and link statistics, for several flows or managed queues.
    #[serde(flatten)]
    pub sharing: SharingReport,
}

impl SweepRow {
    /// The row of run `run` with this outcome.
    /// `scenario` is that of the run.
    pub fn new(
        study: &Study<'_>,
        run: u64,
        scenario: &Scenario,
        outcome: &RunOutcome,
        sharing: SharingReport,
    ) -> Self {
        let (_, outcome) = &grouped(scenario, outcome);
        Self {
            run,
            seed: study.seed(run),
            set: study.settings(run),
            ended_s: outcome.ended.as_secs_f64(),
            segments_simulated: outcome.segments,
            flows: outcome.flows.iter().map(FlowReport::new).collect(),
            sharing,
        }
    }

    /// The row as one line of JSON with a newline.
    pub fn to_line(&self) -> String {
        // No map with keys other than strings and no fallible serializer is in it.
        serde_json::to_string(self).unwrap_or_default() + "\n"
    }

    /// Parses a line of [`SweepRow::to_line`]; `None` if it is not a complete one.
    pub fn from_line(line: &str) -> Option<Self> {
        serde_json::from_str(line.strip_suffix('\n')?).ok()
    }
}

fn as_map<S: Serializer>(set: &[(String, String)], to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(set.iter().map(|(key, value)| (key, value)))
}

fn from_map<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<(String, String)>, D::Error> {
    struct PairsVisitor;
    impl<'de> serde::de::Visitor<'de> for PairsVisitor {
        type Value = Vec<(String, String)>;

        fn expecting(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
            f.write_str("keys with their values")
        }

        fn visit_map<A: serde::de::MapAccess<'de>>(
            self,
            mut map: A,
        ) -> Result<Self::Value, A::Error> {
            let mut pairs = Vec::new();
            while let Some(pair) = map.next_entry()? {
                pairs.push(pair);
            }
            Ok(pairs)
        }
    }
    from.deserialize_map(PairsVisitor)
}
