//! Values of one kind each: names, numbers, quantities, tables and lists of them.

use core::marker::PhantomData;

use serde_json::{Value as Json, json};
use toml_edit::{Array, InlineTable};
use units::{Bytes, Duration, Rate};

use super::keys::{Fields, Kind, Located, Reader, Section, Shape};
use super::nearest::{did_you_mean, one_of};
use super::setting::ByName;
use super::source::Fault;
use super::table::Table;
use super::tree::{Entry, Node, Value};
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

/// One of some names, each with its meaning.
pub(super) struct OneOf<T: 'static = &'static str> {
    pub(super) names: &'static [(&'static str, T)],
}

/// Names that mean themselves.
pub(super) const fn themselves<const N: usize>(
    names: [&'static str; N],
) -> [(&'static str, &'static str); N] {
    let mut pairs = [("", ""); N];
    let mut at = 0;
    while at < N {
        pairs[at] = (names[at], names[at]);
        at += 1;
    }
    pairs
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

/// A table of the section.
pub(super) struct Sub<T>(&'static Section, PhantomData<fn() -> T>);

/// A list of tables.
pub(super) struct Tables<T> {
    section: &'static Section,
    may_be_empty: bool,
    table: PhantomData<fn() -> T>,
}

/// Tables by name, in the order of the file.
pub(super) struct Named<T>(&'static Section, PhantomData<fn() -> T>);

impl<T> Sub<T> {
    pub(super) const fn of(section: &'static Section) -> Self {
        Self(section, PhantomData)
    }
}

impl<T> Tables<T> {
    pub(super) const fn some(section: &'static Section) -> Self {
        Self { section, may_be_empty: false, table: PhantomData }
    }

    pub(super) const fn any(section: &'static Section) -> Self {
        Self { section, may_be_empty: true, table: PhantomData }
    }
}

impl<T> Named<T> {
    pub(super) const fn of(section: &'static Section) -> Self {
        Self(section, PhantomData)
    }
}

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

    fn write(&self, value: &String) -> toml_edit::Value {
        value.as_str().into()
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

    fn write(&self, value: &bool) -> toml_edit::Value {
        (*value).into()
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

    fn write(&self, value: &u64) -> toml_edit::Value {
        integer(*value)
    }
}

/// A whole number, which TOML has up to 2^63 - 1.
pub(super) fn integer(n: u64) -> toml_edit::Value {
    i64::try_from(n).unwrap_or(i64::MAX).into()
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

impl<T: Sync> Shape for OneOf<T> {
    fn schema(&self) -> Json {
        json!({ "enum": self.texts().collect::<Vec<_>>() })
    }

    fn takes(&self) -> String {
        let names: Vec<String> = self.texts().map(|name| format!("`\"{name}\"`")).collect();
        names.join(", ")
    }
}

impl<T> OneOf<T> {
    fn texts(&self) -> impl Iterator<Item = &'static str> + Clone {
        self.names.iter().map(|(name, _)| *name)
    }
}

impl<T: Copy + PartialEq + Sync> Kind for OneOf<T> {
    type Value = T;

    fn read(&self, key: &str, node: &Node, reader: &mut Reader) -> Option<T> {
        let expected = || one_of(self.texts());
        let Value::Text(text) = &node.value else {
            return wrong_kind(key, node, &expected(), reader);
        };
        let found = self.names.iter().find(|(name, _)| name == text);
        if found.is_none() {
            let fault = Fault::new(node.place, format!("`{key}` cannot be {}", node.describe()));
            let guess = did_you_mean(text, self.texts());
            reader.report(fault.expected(expected()).hint(guess));
        }
        found.map(|(_, meaning)| *meaning)
    }

    fn write(&self, value: &T) -> toml_edit::Value {
        let name = self.names.iter().find(|(_, meaning)| meaning == value);
        name.map_or("", |(name, _)| name).into()
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

    fn write(&self, value: &Duration) -> toml_edit::Value {
        units_text::duration_text(*value).into()
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

    fn write(&self, value: &Bytes) -> toml_edit::Value {
        units_text::size_text(*value).into()
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

    fn write(&self, value: &Rate) -> toml_edit::Value {
        units_text::rate_text(*value).into()
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

    fn write(&self, value: &Room) -> toml_edit::Value {
        units_text::room_text(*value).into()
    }
}

impl<T> Shape for Sub<T> {
    fn schema(&self) -> Json {
        self.0.schema()
    }

    fn takes(&self) -> String {
        "table".into()
    }
}

impl<T: Table> Sub<T> {
    /// The table itself.
    pub(super) fn table(&self, node: &Node, reader: &mut Reader) -> Option<T> {
        let fields = Fields::open(self.0, node, reader)?;
        Some(T::read(&fields, reader))
    }
}

/// In a box: most tables have few of the tables that they may have.
impl<T: Table> Kind for Sub<T> {
    type Value = Box<T>;

    fn read(&self, _: &str, node: &Node, reader: &mut Reader) -> Option<Box<T>> {
        self.table(node, reader).map(Box::new)
    }

    fn write(&self, value: &Box<T>) -> toml_edit::Value {
        value.write().into()
    }
}

impl<T> Shape for Tables<T> {
    fn schema(&self) -> Json {
        json!({ "type": "array", "items": self.section.schema() })
    }

    fn takes(&self) -> String {
        "list of tables".into()
    }
}

/// One that is no table at all has its report, and counts as one without keys: the others keep their
/// numbers.
impl<T: Table> Kind for Tables<T> {
    type Value = Vec<Located<T>>;

    fn read(&self, key: &str, node: &Node, reader: &mut Reader) -> Option<Self::Value> {
        let nodes = reader.list(key, node)?;
        if nodes.is_empty() && !self.may_be_empty {
            reader.report(Fault::new(node.place, format!("`{key}` is empty")));
        }
        let table = Sub::of(self.section);
        let read = nodes.iter().map(|node| {
            let value = table.table(node, reader).unwrap_or_default();
            Located { value, place: node.place }
        });
        Some(read.collect())
    }

    fn write(&self, value: &Self::Value) -> toml_edit::Value {
        value.iter().map(|table| table.value.write()).collect::<Array>().into()
    }
}

impl<T> Shape for Named<T> {
    fn schema(&self) -> Json {
        json!({ "type": "object", "additionalProperties": self.0.schema(), "minProperties": 1 })
    }

    fn takes(&self) -> String {
        "tables by name".into()
    }
}

/// As of [`Tables`], one that is no table counts as one without keys.
impl<T: Table> Kind for Named<T> {
    type Value = ByName<T>;

    fn read(&self, key: &str, node: &Node, reader: &mut Reader) -> Option<Self::Value> {
        let table = Sub::of(self.0);
        let entries = reader.table(node, &format!("`{key}`"))?;
        let read = entries.iter().map(|entry| {
            let Entry { key: name, place, node } = entry;
            let name = Located { value: name.clone(), place: *place };
            (name, table.table(node, reader).unwrap_or_default())
        });
        Some(read.collect())
    }

    fn write(&self, value: &Self::Value) -> toml_edit::Value {
        let tables = value.iter().map(|(name, table)| (name.value.clone(), table.write()));
        tables.collect::<InlineTable>().into()
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
