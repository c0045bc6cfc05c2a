//! Declarations of the keys that a table of a scenario accepts; the reader, the JSON schema and the
//! reference are generated from them.
//!
//! A [`TableSpec`] lists its [`Key`]s. [`TableFields::open`] checks a table against its section,
//! [`TableFields::get`] reads one key. Errors are collected in the [`ScenarioReader`] and reading
//! continues, so that one pass reports all of them. [`super::table`] generates a type from a
//! section, which reads and writes it.

use cc::ExternalAlgorithm;
use serde_json::{Map, Value as Json, json};

use super::Overrides;
use super::files::Files;
use super::kernel::{KernelHost, ProgramHost};
use super::nearest::{did_you_mean, nearest, one_of};
use super::real_stacks::{StackHost, Stacks};
use super::source::{ReportedErrors, SpannedError, TextSpan};
use super::tree::{TomlEntry, TomlNode, TomlValue};

/// Type of a key's value, for the schema and the reference.
pub(super) trait KeyType: Sync {
    /// JSON schema of the type.
    fn schema(&self) -> Json;

    /// Name of the type in the reference, e.g. `duration`.
    fn type_name(&self) -> String;
}

/// A [`KeyType`] with a reader and a writer.
pub(super) trait KeyCodec: KeyType {
    /// Type of the value.
    type Value;

    /// Reads `node`, the value of `key`; errors go to `reader`.
    fn read(&self, key: &str, node: &TomlNode, reader: &mut ScenarioReader) -> Option<Self::Value>;

    /// Writes the value as TOML; [`KeyCodec::read`] returns the same value from it.
    fn write(&self, value: &Self::Value) -> toml_edit::Value;
}

/// A key with its type, default and help text.
pub(super) struct Key<S> {
    pub(super) name: &'static str,
    required: bool,
    /// Default as shown in the reference; empty for a required key.
    default: &'static str,
    help: &'static str,
    shape: S,
}

/// A [`Key`] of any type.
pub(super) trait AnyKey: Sync {
    fn name(&self) -> &'static str;
    fn required(&self) -> bool;
    fn default_text(&self) -> &'static str;
    fn help(&self) -> &'static str;
    fn shape(&self) -> &dyn KeyType;
}

/// A table and its keys.
pub(super) struct TableSpec {
    /// Noun for messages, e.g. `a host`.
    pub(super) what: &'static str,
    /// Keys in the order of the reference.
    pub(super) keys: &'static [&'static dyn AnyKey],
    /// Exactly one of these keys must be present; none of them is required by itself.
    pub(super) one_of: &'static [&'static str],
    /// Advice for a key that belongs elsewhere or has another name.
    pub(super) elsewhere: fn(&str) -> Option<&'static str>,
    /// Reports invalid combinations of keys.
    pub(super) check: fn(&TableFields<'_>, &mut ScenarioReader),
}

/// Collects errors and reads the files that tables refer to.
#[derive(Debug, Default)]
pub(super) struct ScenarioReader {
    pub(super) errors: ReportedErrors,
    pub(super) files: Files,
    /// External congestion controllers, in addition to the registry's.
    pub(super) controllers: Vec<ExternalAlgorithm>,
    /// Hosts may be real kernels.
    pub(super) allows_kernels: bool,
    /// Hosts that are real QUIC stacks.
    pub(super) stacks: Stacks,
    /// The hosts that are real kernels.
    pub(super) kernels: Vec<KernelHost>,
    /// Hosts that are other programs.
    pub(super) programs: Vec<ProgramHost>,
    /// Hosts that are real QUIC stacks, or modelled in their place.
    pub(super) stack_hosts: Vec<StackHost>,
    /// The end of the run, if the file states it.
    pub(super) end: Option<units::Duration>,
    /// Names of the keys with invalid values.
    invalid_keys: Vec<&'static str>,
}

impl ScenarioReader {
    /// Creates a reader with the files and controllers of `overrides`.
    pub(super) fn with_overrides(overrides: &Overrides) -> Self {
        let Overrides { files, controllers, kernels, stacks, .. } = overrides.clone();
        Self { files, controllers, allows_kernels: kernels, stacks, ..Self::default() }
    }
}

/// A value with its position in the source text. Comparison ignores the position.
#[derive(Debug, Clone, Copy)]
pub struct Located<T> {
    /// The value.
    pub value: T,
    pub(super) span: TextSpan,
}

impl<T: PartialEq> PartialEq for Located<T> {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl<T: Eq> Eq for Located<T> {}

/// Wraps a value without a source position.
impl<T> From<T> for Located<T> {
    fn from(value: T) -> Self {
        Self { value, span: TextSpan::NONE }
    }
}

/// A table whose keys were checked against its section.
pub(super) struct TableFields<'n> {
    pub(super) section: &'static TableSpec,
    pub(super) span: TextSpan,
    entries: &'n [TomlEntry],
}

impl<S> Key<S> {
    pub(super) const fn required(name: &'static str, shape: S, help: &'static str) -> Self {
        Self { name, required: true, default: "", help, shape }
    }

    pub(super) const fn optional(
        name: &'static str,
        shape: S,
        default: &'static str,
        help: &'static str,
    ) -> Self {
        Self { name, required: false, default, help, shape }
    }
}

impl<S: KeyType> AnyKey for Key<S> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn required(&self) -> bool {
        self.required
    }

    fn default_text(&self) -> &'static str {
        self.default
    }

    fn help(&self) -> &'static str {
        self.help
    }

    fn shape(&self) -> &dyn KeyType {
        &self.shape
    }
}

impl TableSpec {
    /// A section without keys and rules: the default of omitted fields.
    pub(super) const EMPTY: Self =
        Self { what: "", keys: &[], one_of: &[], elsewhere: |_| None, check: |_, _| {} };

    /// Returns whether `name` is one of the keys.
    pub(super) fn has_key(&self, name: &str) -> bool {
        self.names().any(|known| known == name)
    }

    fn names(&self) -> impl Iterator<Item = &'static str> {
        self.keys.iter().map(|key| key.name())
    }

    /// JSON schema of the table.
    pub(super) fn schema(&self) -> Json {
        let properties: Map<String, Json> = self
            .keys
            .iter()
            .map(|key| {
                let mut schema = key.shape().schema();
                if let Some(schema) = schema.as_object_mut() {
                    schema.insert("description".into(), key.help().into());
                }
                (key.name().to_owned(), schema)
            })
            .collect();
        let required: Vec<&str> =
            self.keys.iter().filter(|key| key.required()).map(|key| key.name()).collect();
        let mut schema = json!({
            "type": "object",
            "properties": properties,
            "additionalProperties": false,
        });
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        if !self.one_of.is_empty() {
            schema["oneOf"] =
                self.one_of.iter().map(|name| json!({ "required": [name] })).collect();
        }
        schema
    }
}

impl ScenarioReader {
    pub(super) fn report(&mut self, fault: SpannedError) {
        self.errors.push(fault);
    }

    /// Returns whether an error needs a suggestion: of many errors only the first are shown.
    pub(super) const fn suggests(&self) -> bool {
        !self.errors.are_many()
    }

    fn note_invalid(&mut self, key: &'static str) {
        if !self.invalid_keys.contains(&key) {
            self.invalid_keys.push(key);
        }
    }

    /// Returns whether the key had an invalid value in any table.
    pub(super) fn was_invalid<S>(&self, key: &Key<S>) -> bool {
        self.invalid_keys.contains(&key.name)
    }

    /// Returns the entries of a table; reports any other type.
    pub(super) fn table<'n>(&mut self, node: &'n TomlNode, what: &str) -> Option<&'n [TomlEntry]> {
        match &node.value {
            TomlValue::Table(entries) => Some(entries),
            _ => {
                let fault = SpannedError::new(node.span, format!("{what} must be a table"));
                self.report(fault.expected("{ key = value, ... }").found(node.describe()));
                None
            }
        }
    }

    /// Returns the items of the list at `key`; reports any other type.
    pub(super) fn list<'n>(&mut self, key: &str, node: &'n TomlNode) -> Option<&'n [TomlNode]> {
        match &node.value {
            TomlValue::List(items) => Some(items),
            _ => {
                let fault = SpannedError::new(node.span, format!("`{key}` must be a list"));
                self.report(fault.expected("[ ... ]").found(node.describe()));
                None
            }
        }
    }
}

impl<'n> TableFields<'n> {
    /// Checks the keys of `node`; returns `None` if it is not a table.
    pub(super) fn open(
        section: &'static TableSpec,
        node: &'n TomlNode,
        reader: &mut ScenarioReader,
    ) -> Option<Self> {
        let entries = reader.table(node, section.what)?;
        let fields = Self { section, span: node.span, entries };
        let unknown: Vec<&TomlEntry> =
            entries.iter().filter(|entry| !section.has_key(&entry.key)).collect();
        unknown.iter().for_each(|entry| reader.report(unknown_key(section, entry)));
        for key in section.keys.iter().filter(|key| key.required()) {
            // A misspelt key has its own error.
            let misspelt = |entry: &&TomlEntry| nearest(&entry.key, [key.name()]).is_some();
            if fields.entry(key.name()).is_none() && !unknown.iter().any(misspelt) {
                let fault = SpannedError::new(
                    node.span,
                    format!("{} needs `{}`", section.what, key.name()),
                );
                reader.report(fault.hint(key.help().to_owned()));
            }
        }
        fields.check_alternatives(reader);
        (section.check)(&fields, reader);
        Some(fields)
    }

    fn check_alternatives(&self, reader: &mut ScenarioReader) {
        let mut present = self.section.one_of.iter().filter_map(|name| self.entry(name));
        match (present.next(), present.next()) {
            (None, _) if !self.section.one_of.is_empty() => {
                let one_of = one_of(self.section.one_of.iter().copied());
                let message = format!("{} needs {one_of}", self.section.what);
                // An unknown key may be the misspelt one and has its own error.
                if self.entries.iter().all(|entry| self.section.has_key(&entry.key)) {
                    reader.report(SpannedError::new(self.span, message));
                }
            }
            (Some(first), Some(second)) => {
                let message = format!(
                    "{} has either `{}` or `{}`, not both",
                    self.section.what, first.key, second.key
                );
                reader.report(SpannedError::new(second.place, message));
            }
            _ => {}
        }
    }

    fn entry(&self, name: &str) -> Option<&'n TomlEntry> {
        self.entries.iter().find(|entry| entry.key == name)
    }

    /// Returns whether the key is present, with a valid value or not.
    pub(super) fn has<S>(&self, key: &Key<S>) -> bool {
        self.entry(key.name).is_some()
    }

    /// Returns whether the table has unknown keys, which have their own errors.
    pub(super) fn has_unknown_keys(&self) -> bool {
        self.entries.iter().any(|entry| !self.section.has_key(&entry.key))
    }

    /// Returns the unparsed value of a key.
    pub(super) fn node<S>(&self, key: &Key<S>) -> Option<&'n TomlNode> {
        self.entry(key.name).map(|entry| &entry.node)
    }

    /// Returns the value of a key; `None` if it is absent or invalid (reported).
    pub(super) fn get<K: KeyCodec>(
        &self,
        key: &Key<K>,
        reader: &mut ScenarioReader,
    ) -> Option<Located<K::Value>> {
        let node = self.node(key)?;
        let value = key.shape.read(key.name, node, reader);
        if value.is_none() {
            reader.note_invalid(key.name);
        }
        Some(Located { value: value?, span: node.span })
    }
}

impl<K: KeyCodec> Key<K> {
    /// Adds the key and its value to a table.
    pub(super) fn write(
        &self,
        value: Option<&Located<K::Value>>,
        table: &mut toml_edit::InlineTable,
    ) {
        if let Some(value) = value {
            table.insert(self.name.to_owned(), self.shape.write(&value.value));
        }
    }
}

fn unknown_key(section: &TableSpec, entry: &TomlEntry) -> SpannedError {
    let fault =
        SpannedError::new(entry.place, format!("{} has no key `{}`", section.what, entry.key));
    if let Some(advice) = (section.elsewhere)(&entry.key) {
        return fault.hint(advice.to_owned());
    }
    match did_you_mean(&entry.key, section.names()) {
        Some(guess) => fault.hint(guess),
        None => fault.expected(one_of(section.names())),
    }
}
