//! What is kept of a run: one line of JSON.

use serde::{Deserialize, Serialize, Serializer};
use sim::Outcome;

use crate::run_report::FlowReport;
use crate::sharing::SharingReport;
use scenario::Study;

/// Version of the form of a row; a new field does not change it, a changed or missing one does.
pub const FORMAT: u32 = 1;

/// What one run set and measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Number of the run in its study, from 0.
    pub run: u64,
    /// Seed of every random stream.
    pub seed: u64,
    /// The keys of the axes with their values, in the order of the axes.
    #[serde(serialize_with = "as_map", deserialize_with = "from_map")]
    pub set: Vec<(String, String)>,
    /// Virtual time at which the run ended, in seconds.
    pub ended_s: f64,
    /// Data packets that the senders put on their paths, those sent again included.
    pub segments_simulated: u64,
    /// One for each flow, in the order of the scenario.
    pub flows: Vec<FlowReport>,
    /// How flows shared, and what lines did; of several flows and of managed queues.
    #[serde(flatten)]
    pub sharing: SharingReport,
}

impl Row {
    /// Of `run`, which ended so.
    pub fn new(study: &Study<'_>, run: u64, outcome: &Outcome, sharing: SharingReport) -> Self {
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

    /// As one line of JSON, with a newline at its end.
    pub fn to_line(&self) -> String {
        // No map with keys other than strings and no fallible serializer is in it.
        serde_json::to_string(self).unwrap_or_default() + "\n"
    }

    /// Reads a line that [`Row::to_line`] wrote; `None` if it is none, or not a whole one.
    pub fn from_line(line: &str) -> Option<Self> {
        serde_json::from_str(line.strip_suffix('\n')?).ok()
    }
}

fn as_map<S: Serializer>(set: &[(String, String)], to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(set.iter().map(|(key, value)| (key, value)))
}

fn from_map<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<(String, String)>, D::Error> {
    struct Pairs;
    impl<'de> serde::de::Visitor<'de> for Pairs {
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
    from.deserialize_map(Pairs)
}
