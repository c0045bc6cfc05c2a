//! Values of which another table decides the type: knobs, whose systems know what they take, and
//! axes of a sweep, which have values of other keys.

use serde_json::{Value as Json, json};
use toml_edit::InlineTable;
use units::{Bytes, Duration, Rate};

use super::keys::{Kind, Located, Reader, Shape};
use super::kinds::integer;
use super::source::{Place, Sources};
use super::tree::{self, Node, Value};
use crate::units_text::{duration_text, rate_text, size_text};

/// A value as TOML has it.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting(pub(super) Node);

/// Values by name, in the order of the file.
pub type ByName<T> = Vec<(Located<String>, T)>;

/// Settings by name.
pub type Settings = ByName<Setting>;

impl Setting {
    const fn of(value: Value) -> Self {
        Self(Node { place: Place::NOWHERE, value })
    }

    /// A value that a table writes.
    pub(super) fn of_toml(value: &toml_edit::Value) -> Self {
        let text = value.to_string();
        let (_, source) = Sources::new("", "");
        tree::parse_value(&text, source, 0).map_or_else(|| text.as_str().into(), Self)
    }

    pub(super) fn write(&self) -> toml_edit::Value {
        tree::toml_value(&self.0)
    }
}

impl From<&str> for Setting {
    fn from(text: &str) -> Self {
        Self::of(Value::Text(text.to_owned()))
    }
}

impl From<u64> for Setting {
    fn from(number: u64) -> Self {
        Self::of(Value::Integer(integer(number).to_string()))
    }
}

impl From<bool> for Setting {
    fn from(on: bool) -> Self {
        Self::of(Value::Switch(on))
    }
}

impl From<Bytes> for Setting {
    fn from(size: Bytes) -> Self {
        size_text(size).as_str().into()
    }
}

impl From<Duration> for Setting {
    fn from(span: Duration) -> Self {
        duration_text(span).as_str().into()
    }
}

impl From<Rate> for Setting {
    fn from(rate: Rate) -> Self {
        rate_text(rate).as_str().into()
    }
}

impl<T: Into<Self>> From<Vec<T>> for Setting {
    fn from(items: Vec<T>) -> Self {
        Self::of(Value::List(items.into_iter().map(|item| item.into().0).collect()))
    }
}

/// The knobs of a host, before its system is known.
pub(super) struct Knobs;

impl Shape for Knobs {
    fn schema(&self) -> Json {
        json!({ "type": "object" })
    }

    fn takes(&self) -> String {
        "table".into()
    }
}

impl Kind for Knobs {
    type Value = Settings;

    fn read(&self, key: &str, node: &Node, reader: &mut Reader) -> Option<Settings> {
        let entries = reader.table(node, &format!("`{key}`"))?;
        let read = entries.iter().map(|entry| {
            let name = Located { value: entry.key.clone(), place: entry.place };
            (name, Setting(entry.node.clone()))
        });
        Some(read.collect())
    }

    fn write(&self, value: &Settings) -> toml_edit::Value {
        write_settings(value)
    }
}

/// The settings as one table.
pub(super) fn write_settings(settings: &Settings) -> toml_edit::Value {
    let entries = settings.iter().map(|(name, value)| (name.value.clone(), value.write()));
    entries.collect::<InlineTable>().into()
}
