//! Built-in paths, stored as scenario files whose directions a path can use, and generated traces.

mod lte;

use core::fmt;

use net::trace::LinkTrace;
use samples::Sample;

use super::keys::Located;
use super::nearest::{did_you_mean, nearest, one_of};
use super::source::{Sources, SpannedError};
use super::tree::{self, TomlNode, TomlValue};

/// A built-in trace: its name and generator.
type PresetTrace = (&'static str, fn() -> LinkTrace);

/// Traces by name.
pub(super) const TRACES: [PresetTrace; 2] = [("lte-down", lte::down), ("lte-up", lte::up)];

/// A name after `preset:` that no sample has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownSample {
    /// The name.
    pub name: String,
    /// The name of a sample that differs little from it.
    pub nearest: Option<&'static str>,
}

impl fmt::Display for UnknownSample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no preset {:?}", self.name)
    }
}

impl core::error::Error for UnknownSample {}

/// Returns the scenario of the program that `preset:NAME` names where a file can stand; `None` for any other text.
///
/// # Errors
/// No scenario has that name.
pub fn sample(argument: &str) -> Result<Option<&'static Sample>, UnknownSample> {
    let Some(name) = argument.strip_prefix(samples::PREFIX) else { return Ok(None) };
    // Its file's name in the repository is understood, too.
    let bare = name.strip_suffix(".toml").unwrap_or(name);
    let bare = bare.strip_prefix("presets/").unwrap_or(bare);
    let names = || samples::SAMPLES.iter().map(|sample| sample.name);
    samples::find(bare)
        .map(Some)
        .ok_or_else(|| UnknownSample { name: name.to_owned(), nearest: nearest(bare, names()) })
}

/// Names of all paths.
pub(super) const NAMES: [&str; samples::PATHS.len()] = samples::PATHS;

/// Returns both directions of a built-in path; all positions are that of the name.
///
/// # Errors
/// No preset has that name.
pub(super) fn preset_directions(
    preset: &Located<&'static str>,
) -> Result<[TomlNode; 2], SpannedError> {
    let Located { value: name, span: place } = *preset;
    let unknown = || {
        let fault = SpannedError::new(place, format!("there is no preset {name:?}"));
        fault.expected(one_of(NAMES)).hint(did_you_mean(name, NAMES))
    };
    let known = samples::find(name).filter(|sample| sample.is_path());
    let text = known.ok_or_else(unknown)?.text;
    let (_, source) = Sources::new(name, text);
    let root = tree::parse(text, source).map_err(|_| unknown())?;
    let Some(TomlValue::List(paths)) = root.get("path").map(|node| &node.value) else {
        return Err(unknown());
    };
    let route = |way| paths.first().and_then(|path| path.get(way)).cloned().ok_or_else(unknown);
    let mut routes = [route("forward")?, route("return")?];
    routes.iter_mut().for_each(|route| route.set_span(place));
    Ok(routes)
}
