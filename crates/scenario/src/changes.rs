//! Values that change during a run: `{ at = [["0s", "5Mbit/s"], ["2.5s", "10Mbit/s"]] }` in place of
//! a constant, with `ramp` for gradual changes and `period` for repeated ones.

use core::marker::PhantomData;

use serde_json::{Value as Json, json};
use sim::scenario::Schedule;
use toml_edit::Array;
use units::{Duration, Rate, Ratio};

use super::keys::{Key, KeyCodec, KeyType, Located, ScenarioReader, TableSpec};
use super::kinds::{BufferSizeType, DurationType, TableType, quantity, type_mismatch};
use super::source::SpannedError;
use super::table::{KeyTable, table};
use super::tree::{TomlNode, TomlValue};
use crate::units_text::{self, BufferSize, QuantityError, pattern};

/// Maximum steps of one value, those of its ramps included.
const MAX_STEPS: usize = 100_000;

/// A constant, or a table of changes.
#[derive(Debug, Clone, PartialEq)]
pub enum OverTime<T, C> {
    /// The same value during the whole run.
    Constant(T),
    /// Changes at given times.
    Changes(Box<C>),
}

impl<T, C> From<T> for OverTime<T, C> {
    fn from(value: T) -> Self {
        Self::Constant(value)
    }
}

/// A time and the value from then on.
pub type Step<T> = (Located<Duration>, Located<T>);

/// A value that may change.
pub(super) struct OverTimeType<S, C> {
    constant: S,
    section: &'static TableSpec,
    table: PhantomData<fn() -> C>,
}

impl<S, C> OverTimeType<S, C> {
    pub(super) const fn new(constant: S, section: &'static TableSpec) -> Self {
        Self { constant, section, table: PhantomData }
    }
}

impl<S: KeyType, C> KeyType for OverTimeType<S, C> {
    fn schema(&self) -> Json {
        json!({ "anyOf": [self.constant.schema(), self.section.schema()] })
    }

    fn type_name(&self) -> String {
        format!("{}, or changes", self.constant.type_name())
    }
}

impl<S: KeyCodec, C: KeyTable> KeyCodec for OverTimeType<S, C> {
    type Value = OverTime<S::Value, C>;

    fn read(&self, key: &str, node: &TomlNode, reader: &mut ScenarioReader) -> Option<Self::Value> {
        match node.value {
            TomlValue::Table(_) => {
                TableType::of(self.section).read(key, node, reader).map(OverTime::Changes)
            }
            _ => self.constant.read(key, node, reader).map(OverTime::Constant),
        }
    }

    fn write(&self, value: &Self::Value) -> toml_edit::Value {
        match value {
            OverTime::Constant(value) => self.constant.write(value),
            OverTime::Changes(table) => table.write().into(),
        }
    }
}

/// A list of times and values.
pub(super) struct StepsType<S>(pub(super) S);

const TIME: DurationType = DurationType { least: Duration::ZERO, default_unit: "s" };

impl<S: KeyType> KeyType for StepsType<S> {
    fn schema(&self) -> Json {
        let step = json!({
            "type": "array",
            "prefixItems": [TIME.schema(), self.0.schema()],
            "minItems": 2,
            "maxItems": 2,
        });
        json!({ "type": "array", "items": step, "minItems": 1 })
    }

    fn type_name(&self) -> String {
        format!("list of [time, {}]", self.0.type_name())
    }
}

impl<S: KeyCodec> KeyCodec for StepsType<S> {
    type Value = Vec<Step<S::Value>>;

    fn read(&self, key: &str, node: &TomlNode, reader: &mut ScenarioReader) -> Option<Self::Value> {
        let items = reader.list(key, node)?;
        if items.is_empty() {
            reader.report(SpannedError::new(node.span, format!("`{key}` is empty")));
            return None;
        }
        let steps: Vec<Option<Step<S::Value>>> = items
            .iter()
            .map(|item| {
                let TomlValue::List(pair) = &item.value else {
                    return type_mismatch(key, item, "a time and a value: [\"0s\", ...]", reader);
                };
                let [time, value] = &pair[..] else {
                    return type_mismatch(key, item, "two items: a time and a value", reader);
                };
                let at = TIME.read("time", time, reader);
                let value = Located { value: self.0.read(key, value, reader)?, span: value.span };
                Some((Located { value: at?, span: time.span }, value))
            })
            .collect();
        steps.into_iter().collect()
    }

    fn write(&self, value: &Self::Value) -> toml_edit::Value {
        let step = |(at, value): &Step<S::Value>| -> toml_edit::Value {
            [TIME.write(&at.value), self.0.write(&value.value)]
                .into_iter()
                .collect::<Array>()
                .into()
        };
        value.iter().map(step).collect::<Array>().into()
    }
}

/// A rate in bits per second that may be zero.
pub(super) struct ZeroRateType;

impl KeyType for ZeroRateType {
    fn schema(&self) -> Json {
        json!({ "type": "string", "pattern": pattern::RATE })
    }

    fn type_name(&self) -> String {
        "rate or `\"0bit/s\"`".into()
    }
}

impl KeyCodec for ZeroRateType {
    type Value = u64;

    fn read(&self, key: &str, node: &TomlNode, reader: &mut ScenarioReader) -> Option<u64> {
        quantity(key, node, rate_or_zero, "Mbit/s", reader)
    }

    fn write(&self, value: &u64) -> toml_edit::Value {
        match Rate::from_bits_per_second(*value) {
            Some(rate) => units_text::rate_text(rate).into(),
            None => "0bit/s".into(),
        }
    }
}

fn rate_or_zero(text: &str) -> Result<u64, QuantityError> {
    let unit = text.trim().trim_start_matches(['0', '.']);
    let is_zero = unit.len() < text.trim().len() && !unit.starts_with(|c: char| c.is_ascii_digit());
    if is_zero && units_text::rate(&format!("1{unit}")).is_ok() {
        return Ok(0);
    }
    units_text::rate(text).map(Rate::bits_per_second)
}

const RAMP_TYPE: DurationType =
    DurationType { least: Duration::from_micros(1), default_unit: "ms" };
const PERIOD_TYPE: DurationType =
    DurationType { least: Duration::from_micros(1), default_unit: "s" };

pub(super) static RAMP: Key<DurationType> = Key::optional(
    "ramp",
    RAMP_TYPE,
    "none",
    "changes linearly from each value to the next, in steps of this length",
);
pub(super) static PERIOD: Key<DurationType> =
    Key::optional("period", PERIOD_TYPE, "none", "repeats the list after this time");

static RATE_AT: Key<StepsType<ZeroRateType>> = Key::required(
    "at",
    StepsType(ZeroRateType),
    "times, the first `\"0s\"`, each with the rate from then on; `\"0bit/s\"` suspends the link",
);

table! {
    /// A rate that changes.
    pub RateChangesTable: RATE_CHANGES = "a changing rate" {
        at: Vec<Step<u64>> = RATE_AT,
        ramp: Duration = RAMP,
        period: Duration = PERIOD,
    }
    elsewhere: other_name,
}

static DELAY_AT: Key<StepsType<DurationType>> = Key::required(
    "at",
    StepsType(DurationType { least: Duration::ZERO, default_unit: "ms" }),
    "times, the first `\"0s\"`, each with the value for packets that arrive from then on",
);

table! {
    /// A delay that changes.
    pub DelayChangesTable: DELAY_CHANGES = "a changing delay" {
        at: Vec<Step<Duration>> = DELAY_AT,
        ramp: Duration = RAMP,
        period: Duration = PERIOD,
    }
    elsewhere: other_name,
}

static BUFFER_AT: Key<StepsType<BufferSizeType>> = Key::required(
    "at",
    StepsType(BufferSizeType),
    "times, the first `\"0s\"`, each with the capacity from then on",
);

table! {
    /// A buffer that changes.
    pub BufferChangesTable: BUFFER_CHANGES = "a changing buffer" {
        at: Vec<Step<BufferSize>> = BUFFER_AT,
        period: Duration = PERIOD,
    }
    elsewhere: |key| match key {
        "ramp" => Some("a buffer changes in steps only"),
        _ => other_name(key),
    },
}

fn other_name(key: &str) -> Option<&'static str> {
    match key {
        "every" | "repeat" | "loop" => Some("the time after which the list repeats is `period`"),
        "steps" | "times" | "values" => Some("the list of times and values is `at`"),
        "linear" | "interpolate" => Some("a gradual change is `ramp`, the length of its steps"),
        _ => None,
    }
}

/// A value between two others.
pub(super) trait Between: Copy {
    /// Returns the value at `num / den` of the way from `self` to `to`.
    fn between(self, to: Self, num: u64, den: u64) -> Self;
}

impl Between for u64 {
    fn between(self, to: Self, num: u64, den: u64) -> Self {
        let part = |n: u64| units::ratio::scaled(n, num, den);
        if to >= self { self + part(to - self) } else { self - part(self - to) }
    }
}

impl Between for Duration {
    fn between(self, to: Self, num: u64, den: u64) -> Self {
        Self::from_nanos(self.as_nanos().between(to.as_nanos(), num, den))
    }
}

/// In billionths.
impl Between for Ratio {
    fn between(self, to: Self, num: u64, den: u64) -> Self {
        const BILLION: u64 = 1_000_000_000;
        let share = self.of(BILLION).between(to.of(BILLION), num, den);
        Self::new(share, BILLION).unwrap_or(self)
    }
}

/// Returns the steps of a list as a schedule, with ramps between them; reports invalid times.
pub(super) fn gradual<T: Between>(
    at: Option<&Located<Vec<Step<T>>>>,
    ramp: Option<&Located<Duration>>,
    period: Option<&Located<Duration>>,
    reader: &mut ScenarioReader,
) -> Option<Schedule<T>> {
    let steps = &at?.value;
    check_times(steps, period, reader)?;
    let Some(ramp) = ramp else { return schedule(steps, period) };
    let mut all: Vec<(Duration, T)> = Vec::new();
    for (index, (from, value)) in steps.iter().enumerate() {
        all.push((from.value, value.value));
        let next = match steps.get(index + 1) {
            Some((until, next)) => Some((until.value, next.value)),
            None => period.map(|period| (period.value, steps[0].1.value)),
        };
        let Some((until, next)) = next else { continue };
        let length = until.saturating_sub(from.value).as_nanos();
        let parts = length.div_ceil(ramp.value.as_nanos());
        if parts > (MAX_STEPS - all.len().min(MAX_STEPS)) as u64 {
            let message = format!("this ramp has more than {MAX_STEPS} steps");
            reader.report(SpannedError::new(ramp.span, message).expected("longer steps"));
            return None;
        }
        for part in 1..parts {
            let into = part * ramp.value.as_nanos();
            let value = value.value.between(next, into, length);
            all.push((from.value + Duration::from_nanos(into), value));
        }
    }
    Schedule::new(all, period.map(|period| period.value)).ok()
}

/// Returns the steps of a list as a schedule; reports invalid times.
pub(super) fn stepwise<T: Copy>(
    at: Option<&Located<Vec<Step<T>>>>,
    period: Option<&Located<Duration>>,
    reader: &mut ScenarioReader,
) -> Option<Schedule<Located<T>>> {
    let steps = &at?.value;
    check_times(steps, period, reader)?;
    let steps = steps.iter().map(|&(at, value)| (at.value, value)).collect();
    Schedule::new(steps, period.map(|period| period.value)).ok()
}

fn schedule<T: Copy>(steps: &[Step<T>], period: Option<&Located<Duration>>) -> Option<Schedule<T>> {
    let steps = steps.iter().map(|(at, value)| (at.value, value.value)).collect();
    Schedule::new(steps, period.map(|period| period.value)).ok()
}

/// Reports the times that are not in order, or beyond the period or the end of the run.
fn check_times<T>(
    steps: &[Step<T>],
    period: Option<&Located<Duration>>,
    reader: &mut ScenarioReader,
) -> Option<()> {
    let known = reader.errors.len();
    let mut before: Option<Duration> = None;
    for (at, _) in steps {
        let wrong = match before {
            None if !at.value.is_zero() => Some((
                "the first time is not 0s",
                "a value for the start: [\"0s\", ...]".to_owned(),
            )),
            Some(before) if at.value <= before => {
                Some(("this time is not after the one before it", format!("a time after {before}")))
            }
            _ => None,
        };
        let ends = [
            ("beyond the period of this list", period.map(|period| period.value)),
            ("beyond the end of the run", reader.end),
        ];
        let beyond = ends.into_iter().find_map(|(message, end)| {
            let end = end.filter(|end| at.value >= *end)?;
            Some((message, end))
        });
        if let Some((message, expected)) = wrong {
            reader.report(SpannedError::new(at.span, message).expected(expected));
        } else if let Some((message, end)) = beyond {
            let fault = SpannedError::new(at.span, format!("this time is {message}"));
            reader.report(fault.expected(format!("a time before {end}")));
        }
        before = Some(at.value);
    }
    (reader.errors.len() == known).then_some(())
}
