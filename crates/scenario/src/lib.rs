//! Scenario files: parses TOML text into a [`sim::scenario::Scenario`] and reports all errors.
//!
//! Three steps: the text is parsed into a tree with positions (`tree`), the tree is read into a
//! [`ScenarioFile`] of typed tables, and that is converted to the runnable scenario (`world`).
//! Programs that write scenario files fill a [`ScenarioFile`], whose `Display` is the only writer
//! ([`document`]).
//!
//! Reading order: `tree`, `overrides` (`--set`, with `shorthand` for its keys), `keys`, `kinds`,
//! `setting` and `table` (declaring, reading and writing tables), then the tables themselves, each
//! with its conversion for the simulator: `world`, `host` with `knobs` and `offload`, `path` with
//! `element`, `queue`, `files`, `presets`, `chance`, `reorder` and `shared`, `flow` with `apps` and
//! `routes`, `tap`; and `sweep`, which expands a file to many runs. The declarations also give the
//! [`schema()`] for editors and the [`reference()`] for users; [`report()`] shows errors beside the
//! text. The format is described in docs/scenario.md.

mod apps;
mod arrivals;
mod bucket;
mod chance;
mod changes;
pub mod document;
mod element;
mod error;
mod exchange;
mod expand;
mod fabric;
mod files;
mod flow;
mod host;
mod hosts;
mod jitter;
mod kernel;
mod keys;
mod kinds;
mod knobs;
mod listen;
mod middlebox;
mod nearest;
mod netem;
mod noise;
pub mod not_modelled;
mod offload;
mod overrides;
mod page;
mod path;
mod presets;
mod queue;
mod real_stacks;
mod reference;
mod reorder;
mod report;
mod routes;
mod schema;
mod setting;
mod shared;
mod shorthand;
mod slot;
pub mod snippet;
mod source;
mod sweep;
mod syntax;
mod table;
mod tap;
mod tree;
pub mod units_text;
mod unresolved;
mod video;
mod world;

#[cfg(test)]
mod tests;

use cc::ExternalAlgorithm;
use sha2::{Digest, Sha256};
use sim::scenario::Scenario;
use toml_edit::{DocumentMut, TomlError};

use keys::ScenarioReader;
use overrides::Override;
use source::{Sources, SpannedError};
use tree::TomlNode;

pub use document::ScenarioFile;
pub use error::ScenarioError;
pub use files::{Files, LoadController, ReadFile};
pub use kernel::{KernelHost, ProgramHost, TCP_INFO_INTERVAL};
pub use nearest::nearest;
pub use noise::{host_noise, missing_noise, with_noise};
pub use presets::{UnknownSample, sample};
pub use real_stacks::{FindStack, MissingStack, StackHost, Stacks};
pub use reference::reference;
pub use report::{ReportStyle, report};
pub use schema::schema;
pub use sweep::{SeriesPlan, Study, StudyOverrides};

/// Changes to a scenario that its file does not contain.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Overrides {
    /// `KEY=VALUE`, applied in this order.
    pub set: Vec<String>,
    /// Seed, applied last.
    pub seed: Option<u64>,
    /// Reads the files that the scenario names.
    pub files: Files,
    /// External congestion controllers that `cc` accepts in addition to the registry's.
    pub controllers: Vec<ExternalAlgorithm>,
    /// Hosts may be real kernels: for programs that can run them.
    pub kernels: bool,
    /// Hosts that are real QUIC stacks.
    pub stacks: Stacks,
}

/// Names of the keys and tables at the top of a scenario file.
pub fn top_level_keys() -> impl Iterator<Item = &'static str> {
    world::SECTION.keys.iter().map(|key| key.name())
}

/// A scenario with its source text.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// The scenario to run.
    pub scenario: Scenario,
    /// The hosts that are real kernels, in the order of hosts.
    pub kernels: Vec<KernelHost>,
    /// Hosts that are other programs.
    pub programs: Vec<ProgramHost>,
    /// Hosts that are real QUIC stacks, or modelled in their place.
    pub stacks: Vec<StackHost>,
    /// SHA-256 of [`Loaded::text`] in lower-case hexadecimal. If the scenario names files, a line
    /// per file (SHA-256, two spaces, name) is appended to the text before hashing.
    pub sha256: String,
    /// The text with the overrides applied; without overrides, the unchanged text of the file.
    pub text: String,
}

/// Reads a scenario.
///
/// # Errors
/// All independent errors, in the order of the text; errors in overrides last.
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
    let mut reader = ScenarioReader::with_overrides(overrides);
    let changes = changes(overrides, &root, &mut sources, &mut reader);
    for change in &changes {
        if let Err(fault) = change.apply(&mut root) {
            reader.report(fault);
        }
    }
    let composed = if changes.is_empty() { Ok(text.to_owned()) } else { compose(text, &changes) };
    let composed = composed.map_err(|error| {
        let place = file.span(error.span().unwrap_or(0..0));
        sources
            .errors(vec![SpannedError::new(place, format!("not valid TOML: {}", error.message()))])
    })?;
    if !changes.is_empty() {
        // The composed text is what runs; errors point at the user's text.
        let mut fresh = tree::parse(&composed, file).map_err(|faults| sources.errors(faults))?;
        fresh.take_spans(&root);
        root = fresh;
    }
    match world::read(&root, &sources, &mut reader) {
        Some(scenario) => {
            let sha256 = digest(&composed, &reader.files);
            let (kernels, programs) = (reader.kernels, reader.programs);
            let stacks = reader.stack_hosts;
            Ok(Loaded { scenario, kernels, programs, stacks, sha256, text: composed })
        }
        None => Err(sources.errors(reader.errors)),
    }
}

/// Decodes the text of a scenario file.
///
/// # Errors
/// The position of the first byte that is not UTF-8.
pub fn decode<'t>(bytes: &'t [u8], file_name: &str) -> Result<&'t str, Vec<ScenarioError>> {
    std::str::from_utf8(bytes).map_err(|error| {
        let end = error.valid_up_to();
        let good = String::from_utf8_lossy(&bytes[..end]);
        let (sources, file) = Sources::new(file_name, &good);
        let fault = SpannedError::new(file.span(end..end), "this byte is not UTF-8 text");
        sources.errors(vec![fault.found(format!("0x{:02x}", bytes[end]))])
    })
}

/// Returns the title in the text of a scenario; empty without one.
pub fn title_of(text: &str) -> String {
    let root = text.parse::<toml::Table>().unwrap_or_default();
    root.get("title").and_then(toml::Value::as_str).unwrap_or_default().to_owned()
}

/// Parses the changes of the arguments.
fn changes<'t>(
    overrides: &'t Overrides,
    root: &TomlNode,
    sources: &mut Sources<'t>,
    reader: &mut ScenarioReader,
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

/// Applies all changes to the text.
fn compose(text: &str, changes: &[Override]) -> Result<String, TomlError> {
    let mut document: DocumentMut = text.parse()?;
    changes.iter().for_each(|change| change.compose(&mut document));
    Ok(document.to_string())
}

/// Returns the SHA-256 of a text and the files that it names.
fn digest(text: &str, files: &Files) -> String {
    let lines = files.digests().into_iter().map(|(name, sha256)| format!("{sha256}  {name}\n"));
    hex(&Sha256::digest(text.to_owned() + &lines.collect::<String>()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
