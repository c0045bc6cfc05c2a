//! Built-in paths, stored as scenario files whose directions a path can use, and generated traces.

mod lte;

use net::trace::LinkTrace;

use super::keys::Located;
use super::nearest::{did_you_mean, one_of};
use super::source::{Sources, SpannedError};
use super::tree::{self, TomlNode, TomlValue};

/// A built-in trace: its name and generator.
type PresetTrace = (&'static str, fn() -> LinkTrace);

/// Traces by name.
pub(super) const TRACES: [PresetTrace; 2] = [("lte-down", lte::down), ("lte-up", lte::up)];

/// Paths by name, each with its scenario file.
const PATHS: [(&str, &str); 5] = [
    ("satellite", include_str!("../data/satellite.toml")),
    ("lte", include_str!("../data/lte.toml")),
    ("datacenter", include_str!("../data/datacenter.toml")),
    ("home-wifi", include_str!("../data/home-wifi.toml")),
    ("transatlantic", include_str!("../data/transatlantic.toml")),
];

/// Names of all paths.
pub(super) const NAMES: [&str; PATHS.len()] = {
    let mut names = [""; PATHS.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = PATHS[at].0;
        at += 1;
    }
    names
};

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
    let (_, text) = PATHS.iter().find(|(known, _)| *known == name).ok_or_else(unknown)?;
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
