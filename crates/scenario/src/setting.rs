//! Values whose type is decided elsewhere: knobs by the host's profile, axes of a sweep by the keys
//! that they vary.

use serde_json::{Value as Json, json};
use toml_edit::InlineTable;
use units::{Bytes, Duration, Rate};

use super::keys::{KeyCodec, KeyType, Located, ScenarioReader};
use super::kinds::integer;
use super::source::{Sources, TextSpan};
use super::tree::{self, TomlNode, TomlValue};
use crate::units_text::{duration_text, rate_text, size_text};

/// An uninterpreted TOML value.
#[derive(Debug, Clone, PartialEq)]
pub struct RawValue(pub(super) TomlNode);

/// Values by name, in the order of the file.
pub type ByName<T> = Vec<(Located<String>, T)>;

/// Settings by name.
pub type RawValues = ByName<RawValue>;

impl RawValue {
    const fn of(value: TomlValue) -> Self {
        Self(TomlNode { span: TextSpan::NONE, value })
    }

    /// Converts a value written by a table.
    pub(super) fn from_toml(value: &toml_edit::Value) -> Self {
        let text = value.to_string();
        let (_, source) = Sources::new("", "");
        tree::parse_value(&text, source, 0).map_or_else(|| text.as_str().into(), Self)
    }

    pub(super) fn write(&self) -> toml_edit::Value {
        tree::toml_value(&self.0)
    }
}

impl From<&str> for RawValue {
    fn from(text: &str) -> Self {
        Self::of(TomlValue::Text(text.to_owned()))
    }
}

impl From<u64> for RawValue {
    fn from(number: u64) -> Self {
        Self::of(TomlValue::Integer(integer(number).to_string()))
    }
}

impl From<bool> for RawValue {
    fn from(on: bool) -> Self {
        Self::of(TomlValue::Switch(on))
    }
}

impl From<Bytes> for RawValue {
    fn from(size: Bytes) -> Self {
        size_text(size).as_str().into()
    }
}

impl From<Duration> for RawValue {
    fn from(span: Duration) -> Self {
        duration_text(span).as_str().into()
    }
}

impl From<Rate> for RawValue {
    fn from(rate: Rate) -> Self {
        rate_text(rate).as_str().into()
    }
}

impl<T: Into<Self>> From<Vec<T>> for RawValue {
    fn from(items: Vec<T>) -> Self {
        Self::of(TomlValue::List(items.into_iter().map(|item| item.into().0).collect()))
    }
}

/// The knobs of a host whose profile is not resolved yet.
pub(super) struct KnobsType;

impl KeyType for KnobsType {
    fn schema(&self) -> Json {
        json!({ "type": "object" })
    }

    fn type_name(&self) -> String {
        "table".into()
    }
}

impl KeyCodec for KnobsType {
    type Value = RawValues;

    fn read(&self, key: &str, node: &TomlNode, reader: &mut ScenarioReader) -> Option<RawValues> {
        let entries = reader.table(node, &format!("`{key}`"))?;
        let read = entries.iter().map(|entry| {
            let name = Located { value: entry.key.clone(), span: entry.place };
            (name, RawValue(entry.node.clone()))
        });
        Some(read.collect())
    }

    fn write(&self, value: &RawValues) -> toml_edit::Value {
        write_raw_values(value)
    }
}

/// The settings as one table.
pub(super) fn write_raw_values(settings: &RawValues) -> toml_edit::Value {
    let entries = settings.iter().map(|(name, value)| (name.value.clone(), value.write()));
    entries.collect::<InlineTable>().into()
}
