//! Scenario files: TOML text in, a [`sim::scenario::Scenario`] out, or all that is wrong with it.
//!
//! Three steps: the text becomes a tree in which every value has its position (`tree`), the tree a
//! [`ScenarioFile`] of typed tables, and that the scenario that runs (`world`). Programs that write
//! scenario files fill a [`ScenarioFile`], whose `Display` is the one writer ([`document`]).
//!
//! Reading order: `tree`, `overrides` (`--set`, with `shorthand` for its keys), `keys`, `kinds`,
//! `setting` and `table` (declaring, reading and writing tables), then the tables themselves, each with
//! what the engine gets of it: `world`, `host` with `knobs`
//! and `offload`, `path` with `element`, `queue`, `files`, `presets`, `chance`, `reorder` and `shared`, `flow` with `apps`
//! and `routes`, `tap`; and `sweep`, which makes many runs of one file. The declarations also give
//! the [`schema()`] for editors and the [`reference()`] for people; [`report()`] shows errors beside
//! the text. The format is described in docs/scenario.md.

mod apps;
mod chance;
pub mod document;
mod element;
mod error;
mod files;
mod flow;
mod host;
mod hosts;
mod keys;
mod kinds;
mod knobs;
mod nearest;
mod offload;
mod overrides;
mod path;
mod presets;
mod queue;
mod reference;
mod reorder;
mod report;
mod routes;
mod schema;
mod setting;
mod shared;
mod shorthand;
pub mod snippet;
mod source;
mod sweep;
mod syntax;
mod table;
mod tap;
mod tree;
pub mod units_text;
mod world;

#[cfg(test)]
mod tests;

use cc::Outside;
use sha2::{Digest, Sha256};
use sim::scenario::Scenario;
use toml_edit::{DocumentMut, TomlError};

use keys::Reader;
use overrides::Override;
use source::{Fault, Sources};
use tree::Node;

pub use document::ScenarioFile;
pub use error::ScenarioError;
pub use files::{Files, ReadFile};
pub use nearest::nearest;
pub use reference::reference;
pub use report::{Look, report};
pub use schema::schema;
pub use sweep::{Plan, Study, StudyOverrides};

/// Changes to a scenario that its file does not hold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Overrides {
    /// `KEY=VALUE`, applied in this order.
    pub set: Vec<String>,
    /// Seed, applied last.
    pub seed: Option<u64>,
    /// The files that the scenario names.
    pub files: Files,
    /// Congestion controllers that `cc` may name beside those of the registry.
    pub controllers: Vec<Outside>,
}

/// A scenario with the text it stands for.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// What to run.
    pub scenario: Scenario,
    /// SHA-256 of [`Loaded::text`] in lower-case hexadecimal; where it names files, that of the text
    /// with a line for each behind it: its SHA-256, two blanks and its name.
    pub sha256: String,
    /// The text with the overrides worked in; without any, the text of the file as it is.
    pub text: String,
}

/// Reads a scenario.
///
/// # Errors
/// All mistakes that can be told apart, in the order of the text; those of overrides last.
pub fn load(
    text: &str,
    file_name: &str,
    overrides: &Overrides,
) -> Result<Loaded, Vec<ScenarioError>> {
    let (mut sources, file) = Sources::new(file_name, text);
    let mut root = match tree::parse(text, file) {
        Ok(root) => root,
        Err(faults) => return Err(sources.errors(faults)),
    };
    let mut reader = Reader::knowing(overrides);
    let changes = changes(overrides, &root, &mut sources, &mut reader);
    for change in &changes {
        if let Err(fault) = change.apply(&mut root) {
            reader.report(fault);
        }
    }
    let composed = if changes.is_empty() { Ok(text.to_owned()) } else { compose(text, &changes) };
    let composed = composed.map_err(|error| {
        let place = file.place(error.span().unwrap_or(0..0));
        sources.errors(vec![Fault::new(place, format!("not valid TOML: {}", error.message()))])
    })?;
    if !changes.is_empty() {
        // What runs is what the composed text says; errors point at what the user wrote.
        let mut fresh = tree::parse(&composed, file).map_err(|faults| sources.errors(faults))?;
        fresh.take_places(&root);
        root = fresh;
    }
    match world::read(&root, &sources, &mut reader) {
        Some(scenario) => {
            let sha256 = digest(&composed, &reader.files);
            Ok(Loaded { scenario, sha256, text: composed })
        }
        None => Err(sources.errors(reader.faults)),
    }
}

/// The text of a scenario file.
///
/// # Errors
/// The place of the first byte that is not UTF-8.
pub fn decode<'t>(bytes: &'t [u8], file_name: &str) -> Result<&'t str, Vec<ScenarioError>> {
    std::str::from_utf8(bytes).map_err(|error| {
        let end = error.valid_up_to();
        let good = String::from_utf8_lossy(&bytes[..end]);
        let (sources, file) = Sources::new(file_name, &good);
        let fault = Fault::new(file.place(end..end), "this byte is not UTF-8 text");
        sources.errors(vec![fault.found(format!("0x{:02x}", bytes[end]))])
    })
}

/// Title of a scenario by its text; empty without one.
pub fn title_of(text: &str) -> String {
    let root = text.parse::<toml::Table>().unwrap_or_default();
    root.get("title").and_then(toml::Value::as_str).unwrap_or_default().to_owned()
}

/// The changes that the arguments ask for.
fn changes<'t>(
    overrides: &'t Overrides,
    root: &Node,
    sources: &mut Sources<'t>,
    reader: &mut Reader,
) -> Vec<Override> {
    let mut changes = Vec::new();
    for argument in &overrides.set {
        match Override::parse(argument, root, sources) {
            Ok(change) => changes.push(change),
            Err(fault) => reader.report(fault),
        }
    }
    changes.extend(overrides.seed.map(|seed| Override::seed(seed, sources)));
    changes
}

/// The text with all changes worked in.
fn compose(text: &str, changes: &[Override]) -> Result<String, TomlError> {
    let mut document: DocumentMut = text.parse()?;
    changes.iter().for_each(|change| change.compose(&mut document));
    Ok(document.to_string())
}

/// Of a text and the files that it names.
fn digest(text: &str, files: &Files) -> String {
    let lines = files.digests().into_iter().map(|(name, sha256)| format!("{sha256}  {name}\n"));
    hex(&Sha256::digest(text.to_owned() + &lines.collect::<String>()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
