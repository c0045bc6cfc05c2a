//! Types of values: names, numbers, quantities, tables and lists of tables.

use core::marker::PhantomData;

use serde_json::{Value as Json, json};
use toml_edit::{Array, InlineTable};
use units::{Bytes, Duration, Rate};

use super::keys::{KeyCodec, KeyType, Located, ScenarioReader, TableFields, TableSpec};
use super::nearest::{did_you_mean, one_of};
use super::setting::ByName;
use super::source::SpannedError;
use super::table::KeyTable;
use super::tree::{TomlEntry, TomlNode, TomlValue};
use crate::units_text::{self, BufferSize, MAX_SIZE, QuantityError, pattern};

/// Any string.
pub(super) struct TextType;

/// `true` or `false`.
pub(super) struct BoolType;

/// The largest integer of 32 bits.
const ALL_32_BITS: u64 = u32::MAX as u64;

/// An integer in a range.
pub(super) struct IntegerType {
    pub(super) least: u64,
    pub(super) most: u64,
}

/// One of several names, each with the value it selects.
pub(super) struct EnumType<T: 'static = &'static str> {
    pub(super) names: &'static [(&'static str, T)],
}

/// Pairs each name with itself.
pub(super) const fn self_named<const N: usize>(
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

/// A duration of at least `least`.
pub(super) struct DurationType {
    pub(super) least: Duration,
    /// Unit suggested for a number without one.
    pub(super) default_unit: &'static str,
}

/// A size in a range.
pub(super) struct SizeType {
    pub(super) least: Bytes,
    pub(super) most: Bytes,
}

/// A rate.
pub(super) struct RateType;

/// Capacity of a queue.
pub(super) struct BufferSizeType;

/// A table of one section.
pub(super) struct TableType<T>(&'static TableSpec, PhantomData<fn() -> T>);

/// A list of tables.
pub(super) struct TableListType<T> {
    section: &'static TableSpec,
    may_be_empty: bool,
    table: PhantomData<fn() -> T>,
}

/// Named tables, in the order of the file.
pub(super) struct NamedTablesType<T>(&'static TableSpec, PhantomData<fn() -> T>);

impl<T> TableType<T> {
    pub(super) const fn of(section: &'static TableSpec) -> Self {
        Self(section, PhantomData)
    }
}

impl<T> TableListType<T> {
    pub(super) const fn some(section: &'static TableSpec) -> Self {
        Self { section, may_be_empty: false, table: PhantomData }
    }

    pub(super) const fn any(section: &'static TableSpec) -> Self {
        Self { section, may_be_empty: true, table: PhantomData }
    }
}

impl<T> NamedTablesType<T> {
    pub(super) const fn of(section: &'static TableSpec) -> Self {
        Self(section, PhantomData)
    }
}

impl KeyType for TextType {
    fn schema(&self) -> Json {
        json!({ "type": "string" })
    }

    fn type_name(&self) -> String {
        "string".into()
    }
}

impl KeyCodec for TextType {
    type Value = String;

    fn read(&self, key: &str, node: &TomlNode, reader: &mut ScenarioReader) -> Option<String> {
        match &node.value {
            TomlValue::Text(text) => Some(text.clone()),
            _ => type_mismatch(key, node, "a quoted string", reader),
        }
    }

    fn write(&self, value: &String) -> toml_edit::Value {
        value.as_str().into()
    }
}

impl KeyType for BoolType {
    fn schema(&self) -> Json {
        json!({ "type": "boolean" })
    }

    fn type_name(&self) -> String {
        "switch".into()
    }
}

impl KeyCodec for BoolType {
    type Value = bool;

    fn read(&self, key: &str, node: &TomlNode, reader: &mut ScenarioReader) -> Option<bool> {
        match node.value {
            TomlValue::Switch(on) => Some(on),
            _ => type_mismatch(key, node, "`true` or `false`", reader),
        }
    }

    fn write(&self, value: &bool) -> toml_edit::Value {
        (*value).into()
    }
}

impl KeyType for IntegerType {
    fn schema(&self) -> Json {
        json!({ "type": "integer", "minimum": self.least, "maximum": self.most })
    }

    fn type_name(&self) -> String {
        match self.most {
            ALL_32_BITS => format!("integer from {}", self.least),
            most => format!("integer, {} to {most}", self.least),
        }
    }
}

impl KeyCodec for IntegerType {
    type Value = u64;

    fn read(&self, key: &str, node: &TomlNode, reader: &mut ScenarioReader) -> Option<u64> {
        let expected = format!("a whole number from {} to {}", self.least, self.most);
        let TomlValue::Integer(digits) = &node.value else {
            return type_mismatch(key, node, &expected, reader);
        };
        match whole(digits) {
            Some(number) if (self.least..=self.most).contains(&number) => Some(number),
            _ => {
                let fault = SpannedError::new(node.span, format!("`{key}` is out of range"));
                reader.report(fault.expected(expected).found(node.describe()));
                None
            }
        }
    }

    fn write(&self, value: &u64) -> toml_edit::Value {
        integer(*value)
    }
}

/// Writes an integer; TOML integers end at 2^63 - 1.
pub(super) fn integer(n: u64) -> toml_edit::Value {
    i64::try_from(n).unwrap_or(i64::MAX).into()
}

/// Parses a TOML integer with its radix prefix; `None` below 0 and above 64 bits.
pub(super) fn whole(digits: &str) -> Option<u64> {
    let radix = |prefix, radix| {
        digits.strip_prefix(prefix).map(|digits| u64::from_str_radix(digits, radix).ok())
    };
    radix("0x", 16)
        .or_else(|| radix("0o", 8))
        .or_else(|| radix("0b", 2))
        .unwrap_or_else(|| digits.parse().ok())
}

impl<T: Sync> KeyType for EnumType<T> {
    fn schema(&self) -> Json {
        json!({ "enum": self.texts().collect::<Vec<_>>() })
    }

    fn type_name(&self) -> String {
        let names: Vec<String> = self.texts().map(|name| format!("`\"{name}\"`")).collect();
        names.join(", ")
    }
}

impl<T> EnumType<T> {
    fn texts(&self) -> impl Iterator<Item = &'static str> + Clone {
        self.names.iter().map(|(name, _)| *name)
    }
}

impl<T: Copy> EnumType<T> {
    /// Reads the value; the error for another name has the hint `advice`.
    pub(super) fn read_or(
        &self,
        key: &str,
        node: &TomlNode,
        reader: &mut ScenarioReader,
        advice: impl FnOnce(&str) -> Option<String>,
    ) -> Option<T> {
        let expected = || one_of(self.texts());
        let TomlValue::Text(text) = &node.value else {
            return type_mismatch(key, node, &expected(), reader);
        };
        let found = self.names.iter().find(|(name, _)| name == text);
        if found.is_none() {
            let fault =
                SpannedError::new(node.span, format!("`{key}` cannot be {}", node.describe()));
            reader.report(fault.expected(expected()).hint(advice(text)));
        }
        found.map(|(_, meaning)| *meaning)
    }
}

impl<T: Copy + PartialEq + Sync> KeyCodec for EnumType<T> {
    type Value = T;

    fn read(&self, key: &str, node: &TomlNode, reader: &mut ScenarioReader) -> Option<T> {
        self.read_or(key, node, reader, |text| did_you_mean(text, self.texts()))
    }

    fn write(&self, value: &T) -> toml_edit::Value {
        let name = self.names.iter().find(|(_, meaning)| meaning == value);
        name.map_or("", |(name, _)| name).into()
    }
}

impl KeyType for DurationType {
    fn schema(&self) -> Json {
        json!({ "type": "string", "pattern": pattern::DURATION })
    }

    fn type_name(&self) -> String {
        "duration".into()
    }
}

impl KeyCodec for DurationType {
    type Value = Duration;

    fn read(&self, key: &str, node: &TomlNode, reader: &mut ScenarioReader) -> Option<Duration> {
        let span = quantity(key, node, units_text::duration, self.default_unit, reader)?;
        if span < self.least {
            let fault = SpannedError::new(node.span, format!("`{key}` is too short"));
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

impl KeyType for SizeType {
    fn schema(&self) -> Json {
        json!({ "type": "string", "pattern": pattern::SIZE })
    }

    fn type_name(&self) -> String {
        "size".into()
    }
}

impl KeyCodec for SizeType {
    type Value = Bytes;

    fn read(&self, key: &str, node: &TomlNode, reader: &mut ScenarioReader) -> Option<Bytes> {
        let size = quantity(key, node, units_text::size, "B", reader)?;
        if !(self.least..=self.most).contains(&size) {
            let fault = SpannedError::new(node.span, format!("`{key}` is out of range"));
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

impl KeyType for RateType {
    fn schema(&self) -> Json {
        json!({ "type": "string", "pattern": pattern::RATE })
    }

    fn type_name(&self) -> String {
        "rate".into()
    }
}

impl KeyCodec for RateType {
    type Value = Rate;

    fn read(&self, key: &str, node: &TomlNode, reader: &mut ScenarioReader) -> Option<Rate> {
        quantity(key, node, units_text::rate, "Mbit/s", reader)
    }

    fn write(&self, value: &Rate) -> toml_edit::Value {
        units_text::rate_text(*value).into()
    }
}

impl KeyType for BufferSizeType {
    fn schema(&self) -> Json {
        json!({ "type": "string", "pattern": pattern::ROOM })
    }

    fn type_name(&self) -> String {
        "queue size".into()
    }
}

impl KeyCodec for BufferSizeType {
    type Value = BufferSize;

    fn read(&self, key: &str, node: &TomlNode, reader: &mut ScenarioReader) -> Option<BufferSize> {
        quantity(key, node, units_text::room, "p", reader)
    }

    fn write(&self, value: &BufferSize) -> toml_edit::Value {
        units_text::buffer_size_text(*value).into()
    }
}

impl<T> KeyType for TableType<T> {
    fn schema(&self) -> Json {
        self.0.schema()
    }

    fn type_name(&self) -> String {
        "table".into()
    }
}

impl<T: KeyTable> TableType<T> {
    /// Reads the table.
    pub(super) fn table(&self, node: &TomlNode, reader: &mut ScenarioReader) -> Option<T> {
        let fields = TableFields::open(self.0, node, reader)?;
        Some(T::read(&fields, reader))
    }
}

/// Boxed, because most optional tables are absent.
impl<T: KeyTable> KeyCodec for TableType<T> {
    type Value = Box<T>;

    fn read(&self, _: &str, node: &TomlNode, reader: &mut ScenarioReader) -> Option<Box<T>> {
        self.table(node, reader).map(Box::new)
    }

    fn write(&self, value: &Box<T>) -> toml_edit::Value {
        value.write().into()
    }
}

impl<T> KeyType for TableListType<T> {
    fn schema(&self) -> Json {
        json!({ "type": "array", "items": self.section.schema() })
    }

    fn type_name(&self) -> String {
        "list of tables".into()
    }
}

/// An item that is not a table is reported and read as an empty table, so that the others keep
/// their indices.
impl<T: KeyTable> KeyCodec for TableListType<T> {
    type Value = Vec<Located<T>>;

    fn read(&self, key: &str, node: &TomlNode, reader: &mut ScenarioReader) -> Option<Self::Value> {
        let nodes = reader.list(key, node)?;
        if nodes.is_empty() && !self.may_be_empty {
            reader.report(SpannedError::new(node.span, format!("`{key}` is empty")));
        }
        let table = TableType::of(self.section);
        let read = nodes.iter().map(|node| {
            let value = table.table(node, reader).unwrap_or_default();
            Located { value, span: node.span }
        });
        Some(read.collect())
    }

    fn write(&self, value: &Self::Value) -> toml_edit::Value {
        value.iter().map(|table| table.value.write()).collect::<Array>().into()
    }
}

impl<T> KeyType for NamedTablesType<T> {
    fn schema(&self) -> Json {
        json!({ "type": "object", "additionalProperties": self.0.schema(), "minProperties": 1 })
    }

    fn type_name(&self) -> String {
        "named tables".into()
    }
}

/// As in [`TableListType`], an item that is not a table is read as an empty table.
impl<T: KeyTable> KeyCodec for NamedTablesType<T> {
    type Value = ByName<T>;

    fn read(&self, key: &str, node: &TomlNode, reader: &mut ScenarioReader) -> Option<Self::Value> {
        let table = TableType::of(self.0);
        let entries = reader.table(node, &format!("`{key}`"))?;
        let read = entries.iter().map(|entry| {
            let TomlEntry { key: name, place, node } = entry;
            let name = Located { value: name.clone(), span: *place };
            (name, table.table(node, reader).unwrap_or_default())
        });
        Some(read.collect())
    }

    fn write(&self, value: &Self::Value) -> toml_edit::Value {
        let tables = value.iter().map(|(name, table)| (name.value.clone(), table.write()));
        tables.collect::<InlineTable>().into()
    }
}

/// Reads a quantity; for a number without a unit, the error suggests one.
pub(super) fn quantity<T>(
    key: &str,
    node: &TomlNode,
    read: fn(&str) -> Result<T, QuantityError>,
    usual: &str,
    reader: &mut ScenarioReader,
) -> Option<T> {
    let (number, mut misread) = match &node.value {
        TomlValue::Text(text) => match read(text) {
            Ok(quantity) => return Some(quantity),
            Err(misread) => (text.trim(), misread),
        },
        TomlValue::Integer(number) | TomlValue::Float(number) => match read(number) {
            // The TOML parser reads some of these as numbers: 10_000B.
            Ok(_) => {
                let fault = SpannedError::new(node.span, format!("`{key}` needs quotes"));
                reader.report(fault.hint(format!("write \"{number}\"")));
                return None;
            }
            Err(misread) => {
                let message = if number.starts_with('-') { "is negative" } else { "has no unit" };
                (number.as_str(), QuantityError { message: message.into(), hint: None, ..misread })
            }
        },
        _ => {
            let expected = read("").map_or_else(|misread| misread.expected, |_| "a string".into());
            return type_mismatch(key, node, &expected, reader);
        }
    };
    misread.hint = units_text::bare(number, usual).or(misread.hint);
    let fault = SpannedError::new(node.span, format!("`{key}` {}", misread.message));
    reader.report(fault.expected(misread.expected).found(node.describe()).hint(misread.hint));
    None
}

/// Reports a value of an unexpected type.
pub(super) fn type_mismatch<T>(
    key: &str,
    node: &TomlNode,
    expected: &str,
    reader: &mut ScenarioReader,
) -> Option<T> {
    let fault = SpannedError::new(node.span, format!("`{key}` has a value of the wrong type"));
    reader.report(fault.expected(expected).found(node.describe()));
    None
}
