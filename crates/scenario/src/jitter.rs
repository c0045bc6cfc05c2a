//! `jitter`: a random delay of each packet, uniform or of a model.

use serde_json::{Value as Json, json};
use sim::scenario::{ElementSpec, Schedule};
use units::Duration;

use super::changes::{self, DelayChangesTable, OverTime, OverTimeType};
use super::keys::{Key, KeyCodec, KeyType, ScenarioReader};
use super::kinds::{DurationType, TableType};
use super::table::{KeyTable as _, table};
use super::tree::{TomlNode, TomlValue};

const MILLISECONDS: DurationType = DurationType { least: Duration::ZERO, default_unit: "ms" };

static WIFI: Key<OverTimeType<DurationType, DelayChangesTable>> = Key::required(
    "wifi",
    OverTimeType::new(MILLISECONDS, &changes::DELAY_CHANGES),
    "target average of the delay on a congested Wi-Fi channel (the model of Huitema's C4 tests): N1 \
     intervals of 1 ms less a part of one, N1 Poisson with mean 1, and for a fraction (average - 1 \
     ms) / 90 ms of the packets N2 intervals of 7.5 ms, N2 Poisson with mean 12",
);

table! {
    /// A random delay of a model.
    pub JitterTable: SECTION = "`jitter`" {
        wifi: OverTime<Duration, DelayChangesTable> = WIFI,
    }
    elsewhere: |key| match key {
        "uniform" | "most" | "max" => Some("a uniform delay needs no table: jitter = \"5ms\""),
        "reorder" | "distribution" | "correlation" | "delay" => Some(
            "a random delay that reorders packets is the element `netem`: { netem = { delay = \
             \"20ms\", jitter = \"5ms\" } }",
        ),
        "average" => Some("the average is the value of the model: { wifi = \"7ms\" }"),
        _ => None,
    },
}

/// A random delay per packet.
#[derive(Debug, Clone, PartialEq)]
pub enum JitterRule {
    /// Uniform from zero to this value.
    Uniform(Duration),
    /// Of a model.
    Model(Box<JitterTable>),
}

/// A longest delay, or a table.
pub(super) struct JitterType;

impl KeyType for JitterType {
    fn schema(&self) -> Json {
        json!({ "anyOf": [MILLISECONDS.schema(), SECTION.schema()] })
    }

    fn type_name(&self) -> String {
        format!("{} or a table", MILLISECONDS.type_name())
    }
}

impl KeyCodec for JitterType {
    type Value = JitterRule;

    fn read(&self, key: &str, node: &TomlNode, reader: &mut ScenarioReader) -> Option<JitterRule> {
        match node.value {
            TomlValue::Table(_) => {
                TableType::of(&SECTION).read(key, node, reader).map(JitterRule::Model)
            }
            _ => MILLISECONDS.read(key, node, reader).map(JitterRule::Uniform),
        }
    }

    fn write(&self, value: &JitterRule) -> toml_edit::Value {
        match value {
            JitterRule::Uniform(most) => MILLISECONDS.write(most),
            JitterRule::Model(table) => table.write().into(),
        }
    }
}

impl JitterRule {
    /// Converts to the simulator's element; `None` if a key is missing or invalid.
    pub(super) fn element(&self, reader: &mut ScenarioReader) -> Option<ElementSpec> {
        let table = match self {
            Self::Uniform(most) => return Some(ElementSpec::Jitter { most: *most }),
            Self::Model(table) => table,
        };
        let average = match &table.wifi.as_ref()?.value {
            OverTime::Constant(average) => {
                Schedule::new(vec![(Duration::ZERO, *average)], None).ok()?
            }
            OverTime::Changes(table) => {
                let DelayChangesTable { at, ramp, period } = &**table;
                changes::gradual(at.as_ref(), ramp.as_ref(), period.as_ref(), reader)?
            }
        };
        Some(ElementSpec::WifiJitter(average))
    }
}
