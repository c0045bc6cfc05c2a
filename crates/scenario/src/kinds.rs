//! Values that stand on their own: names, numbers, quantities.

use serde_json::{Value as Json, json};
use units::{Bytes, Duration, Rate};

use super::keys::{Kind, Reader, Section, Shape};
use super::nearest::{did_you_mean, one_of};
use super::source::Fault;
use super::tree::{Node, Value};
use crate::units_text::{self, MAX_SIZE, Misread, Room, pattern};

/// Any text.
pub(super) struct Words;

/// `true` or `false`.
pub(super) struct Switch;

/// A whole number.
pub(super) struct Whole {
    pub(super) least: u64,
    pub(super) most: u64,
}

/// One of some names.
pub(super) struct OneOf {
    pub(super) names: &'static [&'static str],
}

/// A duration.
pub(super) struct Span {
    pub(super) least: Duration,
    /// Unit a bare number probably has.
    pub(super) usual: &'static str,
}

/// A size.
pub(super) struct Size {
    pub(super) least: Bytes,
    pub(super) most: Bytes,
}

/// A rate.
pub(super) struct Speed;

/// Room in a queue.
pub(super) struct Queue;

/// A table of its own.
pub(super) struct Sub(pub(super) &'static Section);

/// A list of tables.
pub(super) struct Tables(pub(super) &'static Section);

/// Tables by name.
pub(super) struct Named(pub(super) &'static Section);

impl Shape for Words {
    fn schema(&self) -> Json {
        json!({ "type": "string" })
    }

    fn takes(&self) -> String {
        "text".into()
    }
}

impl Kind for Words {
    type Value = String;

    fn read(&self, key: &str, node: &Node, reader: &mut Reader) -> Option<String> {
        match &node.value {
            Value::Text(text) => Some(text.clone()),
            _ => wrong_kind(key, node, "text in quotes", reader),
        }
    }
}

impl Shape for Switch {
    fn schema(&self) -> Json {
        json!({ "type": "boolean" })
    }

    fn takes(&self) -> String {
        "`true` or `false`".into()
    }
}

impl Kind for Switch {
    type Value = bool;

    fn read(&self, key: &str, node: &Node, reader: &mut Reader) -> Option<bool> {
        match node.value {
            Value::Switch(on) => Some(on),
            _ => wrong_kind(key, node, "`true` or `false`", reader),
        }
    }
}

impl Shape for Whole {
    fn schema(&self) -> Json {
        json!({ "type": "integer", "minimum": self.least, "maximum": self.most })
    }

    fn takes(&self) -> String {
        format!("whole number, {} to {}", self.least, self.most)
    }
}

impl Kind for Whole {
    type Value = u64;

    fn read(&self, key: &str, node: &Node, reader: &mut Reader) -> Option<u64> {
        let expected = format!("a whole number from {} to {}", self.least, self.most);
        let Value::Integer(digits) = &node.value else {
            return wrong_kind(key, node, &expected, reader);
        };
        match whole(digits) {
            Some(number) if (self.least..=self.most).contains(&number) => Some(number),
            _ => {
                let fault = Fault::new(node.place, format!("`{key}` is out of range"));
                reader.report(fault.expected(expected).found(node.describe()));
                None
            }
        }
    }
}

/// The number that TOML writes as `digits`, with its radix; `None` below 0 and above 64 bits.
pub(super) fn whole(digits: &str) -> Option<u64> {
    let radix = |prefix, radix| {
        digits.strip_prefix(prefix).map(|digits| u64::from_str_radix(digits, radix).ok())
    };
    radix("0x", 16)
        .or_else(|| radix("0o", 8))
        .or_else(|| radix("0b", 2))
        .unwrap_or_else(|| digits.parse().ok())
}

impl Shape for OneOf {
    fn schema(&self) -> Json {
        json!({ "enum": self.names })
    }

    fn takes(&self) -> String {
        let names: Vec<String> = self.names.iter().map(|name| format!("`\"{name}\"`")).collect();
        names.join(", ")
    }
}

impl Kind for OneOf {
    type Value = &'static str;

    fn read(&self, key: &str, node: &Node, reader: &mut Reader) -> Option<&'static str> {
        let expected = || one_of(self.names.iter().copied());
        let Value::Text(text) = &node.value else {
            return wrong_kind(key, node, &expected(), reader);
        };
        let found = self.names.iter().copied().find(|name| name == text);
        if found.is_none() {
            let fault = Fault::new(node.place, format!("`{key}` cannot be {}", node.describe()));
            let guess = did_you_mean(text, self.names.iter().copied());
            reader.report(fault.expected(expected()).hint(guess));
        }
        found
    }
}

impl Shape for Span {
    fn schema(&self) -> Json {
        json!({ "type": "string", "pattern": pattern::DURATION })
    }

    fn takes(&self) -> String {
        "duration".into()
    }
}

impl Kind for Span {
    type Value = Duration;

    fn read(&self, key: &str, node: &Node, reader: &mut Reader) -> Option<Duration> {
        let span = quantity(key, node, units_text::duration, self.usual, reader)?;
        if span < self.least {
            let fault = Fault::new(node.place, format!("`{key}` is too short"));
            reader
                .report(fault.expected(format!("at least {}", self.least)).found(node.describe()));
            return None;
        }
        Some(span)
    }
}

impl Shape for Size {
    fn schema(&self) -> Json {
        json!({ "type": "string", "pattern": pattern::SIZE })
    }

    fn takes(&self) -> String {
        "size".into()
    }
}

impl Kind for Size {
    type Value = Bytes;

    fn read(&self, key: &str, node: &Node, reader: &mut Reader) -> Option<Bytes> {
        let size = quantity(key, node, units_text::size, "B", reader)?;
        if !(self.least..=self.most).contains(&size) {
            let fault = Fault::new(node.place, format!("`{key}` is out of range"));
            let range = match self.most {
                MAX_SIZE => format!("at least {}", self.least),
                most => format!("{} to {most}", self.least),
            };
            reader.report(fault.expected(range).found(node.describe()));
            return None;
        }
        Some(size)
    }
}

impl Shape for Speed {
    fn schema(&self) -> Json {
        json!({ "type": "string", "pattern": pattern::RATE })
    }

    fn takes(&self) -> String {
        "rate".into()
    }
}

impl Kind for Speed {
    type Value = Rate;

    fn read(&self, key: &str, node: &Node, reader: &mut Reader) -> Option<Rate> {
        quantity(key, node, units_text::rate, "Mbit/s", reader)
    }
}

impl Shape for Queue {
    fn schema(&self) -> Json {
        json!({ "type": "string", "pattern": pattern::ROOM })
    }

    fn takes(&self) -> String {
        "size, packets (`\"100p\"`, `\"45mss\"`) or `\"1bdp\"`".into()
    }
}

impl Kind for Queue {
    type Value = Room;

    fn read(&self, key: &str, node: &Node, reader: &mut Reader) -> Option<Room> {
        quantity(key, node, units_text::room, "p", reader)
    }
}

impl Shape for Sub {
    fn schema(&self) -> Json {
        self.0.schema()
    }

    fn takes(&self) -> String {
        "table".into()
    }
}

impl Shape for Tables {
    fn schema(&self) -> Json {
        json!({ "type": "array", "items": self.0.schema() })
    }

    fn takes(&self) -> String {
        "list of tables".into()
    }
}

impl Shape for Named {
    fn schema(&self) -> Json {
        json!({ "type": "object", "additionalProperties": self.0.schema(), "minProperties": 1 })
    }

    fn takes(&self) -> String {
        "tables by name".into()
    }
}

/// Reads a quantity; a bare number is answered with the unit it probably has.
pub(super) fn quantity<T>(
    key: &str,
    node: &Node,
    read: fn(&str) -> Result<T, Misread>,
    usual: &str,
    reader: &mut Reader,
) -> Option<T> {
    let (number, mut misread) = match &node.value {
        Value::Text(text) => match read(text) {
            Ok(quantity) => return Some(quantity),
            Err(misread) => (text.trim(), misread),
        },
        Value::Integer(number) | Value::Float(number) => match read(number) {
            // The parser lets some of these pass for numbers: 10_000B.
            Ok(_) => {
                let fault = Fault::new(node.place, format!("`{key}` needs quotes"));
                reader.report(fault.hint(format!("write \"{number}\"")));
                return None;
            }
            Err(misread) => {
                let message = if number.starts_with('-') { "is negative" } else { "has no unit" };
                (number.as_str(), Misread { message: message.into(), hint: None, ..misread })
            }
        },
        _ => {
            let expected = read("").map_or_else(|misread| misread.expected, |_| "text".into());
            return wrong_kind(key, node, &expected, reader);
        }
    };
    misread.hint = units_text::bare(number, usual).or(misread.hint);
    let fault = Fault::new(node.place, format!("`{key}` {}", misread.message));
    reader.report(fault.expected(misread.expected).found(node.describe()).hint(misread.hint));
    None
}

/// Reports a value of another kind than expected.
pub(super) fn wrong_kind<T>(
    key: &str,
    node: &Node,
    expected: &str,
    reader: &mut Reader,
) -> Option<T> {
    let fault = Fault::new(node.place, format!("`{key}` has a value of the wrong kind"));
    reader.report(fault.expected(expected).found(node.describe()));
    None
}
