//! The layers of the workspace: every dependency must point to a lower one.
//!
//! It checks all manifests, including dev-dependencies and build-dependencies, in which cycles are
//! possible.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Every crate of the workspace and its layer.
const LAYERS: &[(&str, u8)] = &[
    ("ackclock-units", 0),
    ("ackclock-samples", 0),
    ("ackclock-cc", 1),
    ("ackclock-record", 1),
    ("ackclock-packet", 1),
    ("ackclock-theory", 1),
    ("ackclock-machine", 2),
    ("ackclock-trace", 2),
    ("ackclock-charts", 2),
    ("ackclock-diagnose", 2),
    ("ackclock-check", 2),
    ("ackclock-report", 2),
    ("ackclock-net", 3),
    ("ackclock-recovery", 3),
    ("ackclock-logs", 3),
    ("ackclock-tcp", 4),
    ("ackclock-quic", 4),
    ("ackclock-quinn-host", 5),
    ("ackclock-sim", 5),
    ("ackclock-script", 5),
    ("ackclock-scenario", 6),
    ("ackclock-wire-io", 6),
    ("ackclock-guest", 6),
    ("ackclock-fit", 7),
    ("ackclock-import-inet", 7),
    ("ackclock-runner", 7),
    ("ackclock-export", 8),
    ("ackclock-foreign-cc", 8),
    ("ackclock-ingest", 9),
    ("ackclock-pages", 10),
    ("ackclock-whatif", 10),
    ("ackclock-reproduce", 11),
    ("ackclock-suite", 11),
    ("ackclock-simtest", 11),
    ("ackclock-exam", 12),
    ("ackclock-hunt", 12),
    ("ackclock-quinn-check", 12),
    ("ackclock-qlog-check", 12),
    ("ackclock", 13),
    ("ackclock-python", 13),
    ("ackclock-wasm", 13),
    ("ackclock-fuzz", 13),
    ("xtask", 13),
];

const TABLES: [&str; 3] = ["dependencies", "dev-dependencies", "build-dependencies"];

/// A crate and its dependencies in the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Manifest {
    name: String,
    uses: Vec<(String, &'static str)>,
}

/// Reads all manifests under `root`; returns them and the violations.
pub(crate) fn survey(root: &Path) -> Result<(Vec<Manifest>, Vec<String>), String> {
    let names = workspace_names(&root.join("Cargo.toml"))?;
    let mut manifests = Vec::new();
    for place in member_manifests(root)? {
        manifests.push(read_manifest(&place, &names)?);
    }
    manifests.sort_by(|a, b| a.name.cmp(&b.name));
    let complaints = complaints(&manifests);
    Ok((manifests, complaints))
}

/// Formats a line per crate: its layer, name and dependencies.
pub(crate) fn describe(manifests: &[Manifest]) -> Vec<String> {
    let mut lines: Vec<_> = manifests
        .iter()
        .map(|manifest| {
            let uses: Vec<_> = manifest.uses.iter().map(|(name, _)| name.as_str()).collect();
            (layer(&manifest.name), manifest.name.clone(), uses.join(" "))
        })
        .collect();
    lines.sort();
    lines
        .into_iter()
        .map(|(layer, name, uses)| {
            let layer = layer.map_or("?".into(), |layer| layer.to_string());
            format!("layer {layer}  {name:<18} {uses}").trim_end().to_string()
        })
        .collect()
}

fn layer(name: &str) -> Option<u8> {
    LAYERS.iter().find(|(known, _)| *known == name).map(|&(_, layer)| layer)
}

fn complaints(manifests: &[Manifest]) -> Vec<String> {
    let mut complaints = Vec::new();
    for manifest in manifests {
        let Some(own) = layer(&manifest.name) else {
            complaints.push(format!("{} has no layer: add it to LAYERS", manifest.name));
            continue;
        };
        for (used, table) in &manifest.uses {
            if layer(used).is_none_or(|below| below >= own) {
                complaints.push(format!(
                    "{} (layer {own}) must not use {used} (layer {}) in [{table}]",
                    manifest.name,
                    layer(used).map_or("unknown".into(), |layer| layer.to_string()),
                ));
            }
        }
    }
    complaints
}

fn parse(place: &Path) -> Result<toml::Table, String> {
    let text = std::fs::read_to_string(place).map_err(|e| format!("{}: {e}", place.display()))?;
    text.parse().map_err(|e| format!("{}: {e}", place.display()))
}

/// Returns the short names of the workspace table with their packages.
fn workspace_names(place: &Path) -> Result<BTreeMap<String, String>, String> {
    let manifest = parse(place)?;
    let table = manifest["workspace"]["dependencies"].as_table().cloned().unwrap_or_default();
    let local = table.iter().filter(|(_, value)| value.get("path").is_some());
    Ok(local.map(|(short, value)| (short.clone(), package_of(short, value))).collect())
}

fn package_of(short: &str, value: &toml::Value) -> String {
    value.get("package").and_then(|name| name.as_str()).unwrap_or(short).to_string()
}

fn member_manifests(root: &Path) -> Result<Vec<PathBuf>, String> {
    let crates = root.join("crates");
    let entries = std::fs::read_dir(&crates).map_err(|e| format!("{}: {e}", crates.display()))?;
    let mut places: Vec<_> =
        entries.filter_map(|entry| Some(entry.ok()?.path().join("Cargo.toml"))).collect();
    let others = ["bindings/python", "bindings/wasm", "fuzz", "xtask"];
    places.extend(others.map(|folder| root.join(folder).join("Cargo.toml")));
    places.retain(|place| place.is_file());
    places.sort();
    Ok(places)
}

fn read_manifest(place: &Path, names: &BTreeMap<String, String>) -> Result<Manifest, String> {
    let manifest = parse(place)?;
    let name = manifest["package"]["name"].as_str().unwrap_or_default().to_string();
    let mut uses = Vec::new();
    let targets = manifest.get("target").and_then(|target| target.as_table());
    let mut roots: Vec<&toml::Table> = vec![&manifest];
    roots.extend(targets.into_iter().flatten().filter_map(|(_, target)| target.as_table()));
    for root in roots {
        for table in TABLES {
            let listed = root.get(table).and_then(|table| table.as_table());
            for (short, value) in listed.into_iter().flatten() {
                let ours = names
                    .get(short)
                    .cloned()
                    .or_else(|| value.get("path").map(|_| package_of(short, value)));
                uses.extend(ours.map(|package| (package, table)));
            }
        }
    }
    Ok(Manifest { name, uses })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
    }

    #[test]
    fn every_dependency_points_to_a_lower_layer() {
        let (manifests, complaints) = survey(&root()).unwrap();
        assert!(manifests.len() >= 12, "only {} manifests found", manifests.len());
        assert!(complaints.is_empty(), "{complaints:#?}");
    }

    fn one(name: &str, uses: &str, table: &'static str) -> Vec<String> {
        complaints(&[Manifest { name: name.into(), uses: vec![(uses.into(), table)] }])
    }

    #[test]
    fn an_upward_or_sideways_dependency_is_rejected_in_every_table() {
        assert!(one("ackclock-net", "ackclock-packet", "dependencies").is_empty());
        for table in TABLES {
            assert_eq!(one("ackclock-net", "ackclock-sim", table).len(), 1);
            assert_eq!(one("ackclock-net", "ackclock-recovery", table).len(), 1);
            assert_eq!(one("ackclock-net", "ackclock-net", table).len(), 1);
        }
    }

    #[test]
    fn a_crate_without_a_layer_is_rejected() {
        assert_eq!(one("ackclock-attic", "ackclock-units", "dependencies").len(), 1);
        assert_eq!(one("ackclock-net", "ackclock-attic", "dependencies").len(), 1);
    }

    /// The list of ARCHITECTURE.md names every crate, under its layer.
    #[test]
    fn architecture_lists_every_crate() {
        let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
        let mut listed: BTreeMap<u8, String> = BTreeMap::new();
        let mut present = None;
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("    layer ") {
                present = rest.split_whitespace().next().and_then(|number| number.parse().ok());
            }
            let Some(layer) = present.filter(|_| line.starts_with("    ")) else { continue };
            let words = line.split([' ', ',', '/']).map(|word| format!("{word} "));
            listed.entry(layer).or_default().extend(words);
        }
        for (name, layer) in LAYERS {
            let short = name.strip_prefix("ackclock-").unwrap_or(name);
            let words = listed.get(layer).map_or("", String::as_str);
            let found = words.split_whitespace().any(|word| word == short);
            assert!(found, "layer {layer} of ARCHITECTURE.md does not name {short}");
        }
    }

    #[test]
    fn every_crate_obeys_the_workspace_lints() {
        // The fuzz targets are a workspace of their own.
        let fuzz = root().join("fuzz/Cargo.toml");
        for place in member_manifests(&root()).unwrap().iter().filter(|place| **place != fuzz) {
            let manifest = parse(place).unwrap();
            let lints = manifest.get("lints").and_then(|lints| lints.get("workspace"));
            assert_eq!(lints.and_then(toml::Value::as_bool), Some(true), "{}", place.display());
        }
    }
}
