//! What a table of a scenario may hold: declared once, for the reader, the schema and the
//! documentation alike.
//!
//! A [`Section`] lists its [`Key`]s. [`Fields::open`] checks a table against its section,
//! [`Fields::get`] reads one key; whatever is wrong is reported to the [`Reader`], and reading
//! goes on, so that one look shows all mistakes. [`super::table`] makes a type of a section, which
//! reads and writes it.

use cc::Outside;
use serde_json::{Map, Value as Json, json};

use super::Overrides;
use super::files::Files;
use super::nearest::{did_you_mean, nearest, one_of};
use super::source::{Fault, Place};
use super::tree::{Entry, Node, Value};

/// What stands behind a key.
pub(super) trait Shape: Sync {
    /// As JSON schema.
    fn schema(&self) -> Json;

    /// In words, for the documentation: `duration`.
    fn takes(&self) -> String;
}

/// A [`Shape`] with a reader and a writer.
pub(super) trait Kind: Shape {
    /// Type of the value.
    type Value;

    /// Reads `node`, the value of `key`; reports what is wrong.
    fn read(&self, key: &str, node: &Node, reader: &mut Reader) -> Option<Self::Value>;

    /// The value as a file has it; [`Kind::read`] returns the same from it.
    fn write(&self, value: &Self::Value) -> toml_edit::Value;
}

/// A key with its meaning.
pub(super) struct Key<S> {
    pub(super) name: &'static str,
    required: bool,
    /// What holds without it, in words; empty for a required one.
    default: &'static str,
    help: &'static str,
    shape: S,
}

/// A [`Key`] of any shape.
pub(super) trait AnyKey: Sync {
    fn name(&self) -> &'static str;
    fn required(&self) -> bool;
    fn default_words(&self) -> &'static str;
    fn help(&self) -> &'static str;
    fn shape(&self) -> &dyn Shape;
}

/// A table and its keys.
pub(super) struct Section {
    /// `a host`.
    pub(super) what: &'static str,
    /// In the order of the documentation.
    pub(super) keys: &'static [&'static dyn AnyKey],
    /// Of these keys, exactly one must be there; none of them is required by itself.
    pub(super) one_of: &'static [&'static str],
    /// Where a key belongs that people look for here.
    pub(super) elsewhere: fn(&str) -> Option<&'static str>,
    /// Reports keys that do not go together.
    pub(super) check: fn(&Fields<'_>, &mut Reader),
}

/// Collects what is wrong, and reads the files that tables name.
#[derive(Debug, Default)]
pub(super) struct Reader {
    pub(super) faults: Vec<Fault>,
    pub(super) files: Files,
    /// Congestion controllers that are known here beside those of the registry.
    pub(super) controllers: Vec<Outside>,
    /// Names of the keys whose values were wrong.
    misread: Vec<&'static str>,
}

impl Reader {
    /// One that knows what `overrides` bring along.
    pub(super) fn knowing(overrides: &Overrides) -> Self {
        let Overrides { files, controllers, .. } = overrides.clone();
        Self { files, controllers, ..Self::default() }
    }
}

/// A value with its position in the text that it was read from. Values are equal wherever they are.
#[derive(Debug, Clone, Copy)]
pub struct Located<T> {
    /// The value.
    pub value: T,
    pub(super) place: Place,
}

impl<T: PartialEq> PartialEq for Located<T> {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl<T: Eq> Eq for Located<T> {}

/// A value that no text holds.
impl<T> From<T> for Located<T> {
    fn from(value: T) -> Self {
        Self { value, place: Place::NOWHERE }
    }
}

/// A table that was checked against its section.
pub(super) struct Fields<'n> {
    pub(super) section: &'static Section,
    pub(super) place: Place,
    entries: &'n [Entry],
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

impl<S: Shape> AnyKey for Key<S> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn required(&self) -> bool {
        self.required
    }

    fn default_words(&self) -> &'static str {
        self.default
    }

    fn help(&self) -> &'static str {
        self.help
    }

    fn shape(&self) -> &dyn Shape {
        &self.shape
    }
}

impl Section {
    /// Without keys and rules, for those that leave some of them out.
    pub(super) const EMPTY: Self =
        Self { what: "", keys: &[], one_of: &[], elsewhere: |_| None, check: |_, _| {} };

    /// Is `name` one of its keys?
    pub(super) fn knows(&self, name: &str) -> bool {
        self.names().any(|known| known == name)
    }

    fn names(&self) -> impl Iterator<Item = &'static str> {
        self.keys.iter().map(|key| key.name())
    }

    /// As JSON schema.
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

impl Reader {
    pub(super) fn report(&mut self, fault: Fault) {
        self.faults.push(fault);
    }

    /// Was the key written with a wrong value, in any table?
    pub(super) fn has_misread<S>(&self, key: &Key<S>) -> bool {
        self.misread.contains(&key.name)
    }

    /// The entries of a table; anything else is reported.
    pub(super) fn table<'n>(&mut self, node: &'n Node, what: &str) -> Option<&'n [Entry]> {
        match &node.value {
            Value::Table(entries) => Some(entries),
            _ => {
                let fault = Fault::new(node.place, format!("{what} is a table"));
                self.report(fault.expected("{ key = value, ... }").found(node.describe()));
                None
            }
        }
    }

    /// The items of the list behind `key`; anything else is reported.
    pub(super) fn list<'n>(&mut self, key: &str, node: &'n Node) -> Option<&'n [Node]> {
        match &node.value {
            Value::List(items) => Some(items),
            _ => {
                let fault = Fault::new(node.place, format!("`{key}` is a list"));
                self.report(fault.expected("[ ... ]").found(node.describe()));
                None
            }
        }
    }
}

impl<'n> Fields<'n> {
    /// Checks which keys `node` has. `None` if it is no table at all.
    pub(super) fn open(
        section: &'static Section,
        node: &'n Node,
        reader: &mut Reader,
    ) -> Option<Self> {
        let entries = reader.table(node, section.what)?;
        let fields = Self { section, place: node.place, entries };
        let strangers: Vec<&Entry> =
            entries.iter().filter(|entry| !section.knows(&entry.key)).collect();
        strangers.iter().for_each(|entry| reader.report(unknown_key(section, entry)));
        for key in section.keys.iter().filter(|key| key.required()) {
            // A key that is only misspelt has its own report.
            let misspelt = |entry: &&Entry| nearest(&entry.key, [key.name()]).is_some();
            if fields.entry(key.name()).is_none() && !strangers.iter().any(misspelt) {
                let fault =
                    Fault::new(node.place, format!("{} needs `{}`", section.what, key.name()));
                reader.report(fault.hint(key.help().to_owned()));
            }
        }
        fields.check_alternatives(reader);
        (section.check)(&fields, reader);
        Some(fields)
    }

    fn check_alternatives(&self, reader: &mut Reader) {
        let mut present = self.section.one_of.iter().filter_map(|name| self.entry(name));
        match (present.next(), present.next()) {
            (None, _) if !self.section.one_of.is_empty() => {
                let one_of = one_of(self.section.one_of.iter().copied());
                let message = format!("{} needs {one_of}", self.section.what);
                // An unknown key may well be the misspelt one, which has its own report.
                if self.entries.iter().all(|entry| self.section.knows(&entry.key)) {
                    reader.report(Fault::new(self.place, message));
                }
            }
            (Some(first), Some(second)) => {
                let message = format!(
                    "{} has either `{}` or `{}`, not both",
                    self.section.what, first.key, second.key
                );
                reader.report(Fault::new(second.place, message));
            }
            _ => {}
        }
    }

    fn entry(&self, name: &str) -> Option<&'n Entry> {
        self.entries.iter().find(|entry| entry.key == name)
    }

    /// Is the key written, rightly or wrongly?
    pub(super) fn has<S>(&self, key: &Key<S>) -> bool {
        self.entry(key.name).is_some()
    }

    /// Does it have keys that it does not know, which have reports of their own?
    pub(super) fn has_strangers(&self) -> bool {
        self.entries.iter().any(|entry| !self.section.knows(&entry.key))
    }

    /// The value of a key as it stands.
    pub(super) fn node<S>(&self, key: &Key<S>) -> Option<&'n Node> {
        self.entry(key.name).map(|entry| &entry.node)
    }

    /// The value of a key; `None` if it is not written, or wrong, which is then reported.
    pub(super) fn get<K: Kind>(
        &self,
        key: &Key<K>,
        reader: &mut Reader,
    ) -> Option<Located<K::Value>> {
        let node = self.node(key)?;
        let value = key.shape.read(key.name, node, reader);
        if value.is_none() {
            reader.misread.push(key.name);
        }
        Some(Located { value: value?, place: node.place })
    }
}

impl<K: Kind> Key<K> {
    /// Adds the key with its value to a table.
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

fn unknown_key(section: &Section, entry: &Entry) -> Fault {
    let fault = Fault::new(entry.place, format!("{} has no key `{}`", section.what, entry.key));
    if let Some(advice) = (section.elsewhere)(&entry.key) {
        return fault.hint(advice.to_owned());
    }
    match did_you_mean(&entry.key, section.names()) {
        Some(guess) => fault.hint(guess),
        None => fault.expected(one_of(section.names())),
    }
}
