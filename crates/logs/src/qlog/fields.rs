//! Takes the fields of a JSON object one by one; the rest is beyond the model.

use serde_json::{Map, Value};
use units::Duration;

use super::problem::{QlogProblemKind, short};

/// An object being read.
pub(super) struct FieldReader<'p> {
    pub(super) map: Map<String, Value>,
    pub(super) problems: &'p mut Vec<QlogProblemKind>,
    /// Nanoseconds per unit of time.
    pub(super) unit: f64,
}

impl FieldReader<'_> {
    /// Takes a field; null counts as absent.
    fn take(&mut self, name: &str) -> Option<Value> {
        self.map.remove(name).filter(|value| !value.is_null())
    }

    fn wrong<T>(&mut self, name: &'static str, value: &Value, expected: &'static str) -> Option<T> {
        let found = short(&value.to_string());
        self.problems.push(QlogProblemKind::Field { name, found, expected });
        None
    }

    /// Takes a 64-bit integer; the oldest versions have it as a string.
    pub(super) fn number(&mut self, name: &'static str) -> Option<u64> {
        let value = self.take(name)?;
        whole(&value).or_else(|| self.wrong(name, &value, "a whole number"))
    }

    /// Takes an integer in whose place a text says that there is none.
    pub(super) fn number_unless(&mut self, name: &'static str, none: &str) -> Option<u64> {
        if self.map.get(name).and_then(Value::as_str) == Some(none) {
            self.map.remove(name);
            return None;
        }
        self.number(name)
    }

    pub(super) fn text(&mut self, name: &'static str) -> Option<String> {
        match self.take(name)? {
            Value::String(text) => Some(text),
            value => self.wrong(name, &value, "a text"),
        }
    }

    pub(super) fn switch(&mut self, name: &'static str) -> Option<bool> {
        match self.take(name)? {
            Value::Bool(value) => Some(value),
            value => self.wrong(name, &value, "true or false"),
        }
    }

    pub(super) fn object(&mut self, name: &'static str) -> Option<Map<String, Value>> {
        match self.take(name)? {
            Value::Object(map) => Some(map),
            value => self.wrong(name, &value, "an object"),
        }
    }

    pub(super) fn list(&mut self, name: &'static str) -> Option<Vec<Value>> {
        match self.take(name)? {
            Value::Array(list) => Some(list),
            value => self.wrong(name, &value, "a list"),
        }
    }

    /// Takes a non-negative time in the trace's unit.
    pub(super) fn span(&mut self, name: &'static str) -> Option<Duration> {
        let value = self.take(name)?;
        nanos(&value, self.unit)
            .map(Duration::from_nanos)
            .or_else(|| self.wrong(name, &value, "a time"))
    }

    /// Reads fields of a nested object; its remaining fields are put back.
    pub(super) fn within<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&mut FieldReader<'_>) -> T,
    ) -> Option<T> {
        let map = self.object(name)?;
        let mut inner = FieldReader { map, problems: self.problems, unit: self.unit };
        let result = read(&mut inner);
        let map = inner.map;
        if !map.is_empty() {
            self.map.insert(name.to_owned(), map.into());
        }
        Some(result)
    }
}

/// Parses an integer from a number or a string.
pub(super) fn whole(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64().or_else(|| {
            let float = number.as_f64()?;
            let whole = float as u64;
            // Beyond 2^53 a fraction cannot be represented.
            let exact = (0.0..9e15).contains(&float) && whole as f64 >= float;
            exact.then_some(whole)
        }),
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
}

/// Parses a time in units of `unit` nanoseconds, from a number or a string.
pub(super) fn nanos(value: &Value, unit: f64) -> Option<u64> {
    let number = match value {
        Value::Number(number) => number.as_f64()?,
        Value::String(text) => text.parse().ok()?,
        _ => return None,
    };
    let nanos = (number * unit).round();
    // Half of the range of 64 bits, so that sums do not overflow: 292 years.
    (0.0..9.2e18).contains(&nanos).then_some(nanos as u64)
}
