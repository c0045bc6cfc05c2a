//! Fields of a JSON object, taken out one by one; what is left is beyond the model.

use serde_json::{Map, Value};
use units::Duration;

use super::problem::{QlogProblemKind, short};

/// An object being read.
pub(super) struct Fields<'p> {
    pub(super) map: Map<String, Value>,
    pub(super) problems: &'p mut Vec<QlogProblemKind>,
    /// Nanoseconds in a unit of time.
    pub(super) unit: f64,
}

impl Fields<'_> {
    /// Takes a field; a null is none.
    fn take(&mut self, name: &str) -> Option<Value> {
        self.map.remove(name).filter(|value| !value.is_null())
    }

    fn wrong<T>(&mut self, name: &'static str, value: &Value, expected: &'static str) -> Option<T> {
        let found = short(&value.to_string());
        self.problems.push(QlogProblemKind::Field { name, found, expected });
        None
    }

    /// A whole number, of 64 bits; the oldest generations have it as text.
    pub(super) fn number(&mut self, name: &'static str) -> Option<u64> {
        let value = self.take(name)?;
        whole(&value).or_else(|| self.wrong(name, &value, "a whole number"))
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

    /// A time that cannot be negative, in the trace's unit.
    pub(super) fn span(&mut self, name: &'static str) -> Option<Duration> {
        let value = self.take(name)?;
        nanos(&value, self.unit)
            .map(Duration::from_nanos)
            .or_else(|| self.wrong(name, &value, "a time"))
    }

    /// Reads fields of an object within this one; what is left of it is put back.
    pub(super) fn within<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&mut Fields<'_>) -> T,
    ) -> Option<T> {
        let map = self.object(name)?;
        let mut inner = Fields { map, problems: self.problems, unit: self.unit };
        let result = read(&mut inner);
        let map = inner.map;
        if !map.is_empty() {
            self.map.insert(name.to_owned(), map.into());
        }
        Some(result)
    }
}

/// A whole number, as number or as text.
pub(super) fn whole(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64().or_else(|| {
            let float = number.as_f64()?;
            let whole = float as u64;
            // 2^53: beyond it a fraction cannot show.
            let exact = (0.0..9e15).contains(&float) && whole as f64 >= float;
            exact.then_some(whole)
        }),
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
}

/// A time in units of so many nanoseconds, as number or as text.
pub(super) fn nanos(value: &Value, unit: f64) -> Option<u64> {
    let number = match value {
        Value::Number(number) => number.as_f64()?,
        Value::String(text) => text.parse().ok()?,
        _ => return None,
    };
    let nanos = (number * unit).round();
    // Half of 64 bits, so that sums stay below them: 292 years.
    (0.0..9.2e18).contains(&nanos).then_some(nanos as u64)
}
