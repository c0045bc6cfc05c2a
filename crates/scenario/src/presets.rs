//! Paths that come with the program: scenario files of which a path can take the roads, and
//! recordings made by rule.

mod lte;

use net::trace::Schedule;

use super::keys::Located;
use super::nearest::{did_you_mean, one_of};
use super::source::{Fault, Sources};
use super::tree::{self, Node, Value};

/// A recording that comes with the program.
type Recording = (&'static str, fn() -> Schedule);

/// Recordings by name.
pub(super) const TRACES: [Recording; 2] = [("lte-down", lte::down), ("lte-up", lte::up)];

/// Paths by name, each a scenario of its own.
const PATHS: [(&str, &str); 5] = [
    ("satellite", include_str!("../../../scenarios/presets/satellite.toml")),
    ("lte", include_str!("../../../scenarios/presets/lte.toml")),
    ("datacenter", include_str!("../../../scenarios/presets/datacenter.toml")),
    ("home-wifi", include_str!("../../../scenarios/presets/home-wifi.toml")),
    ("transatlantic", include_str!("../../../scenarios/presets/transatlantic.toml")),
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

/// The two roads of the path of that name, as written in its file; every place is that of the name.
///
/// # Errors
/// There is none of that name.
pub(super) fn roads(preset: &Located<&'static str>) -> Result<[Node; 2], Fault> {
    let Located { value: name, place } = *preset;
    let unknown = || {
        let fault = Fault::new(place, format!("there is no preset {name:?}"));
        fault.expected(one_of(NAMES)).hint(did_you_mean(name, NAMES))
    };
    let (_, text) = PATHS.iter().find(|(known, _)| *known == name).ok_or_else(unknown)?;
    let (_, source) = Sources::new(name, text);
    let root = tree::parse(text, source).map_err(|_| unknown())?;
    let Some(Value::List(paths)) = root.get("path").map(|node| &node.value) else {
        return Err(unknown());
    };
    let road = |way| paths.first().and_then(|path| path.get(way)).cloned().ok_or_else(unknown);
    let mut roads = [road("forward")?, road("return")?];
    roads.iter_mut().for_each(|road| road.stand_at(place));
    Ok(roads)
}
