//! A bill of materials in CycloneDX 1.5 (JSON): the crates that are linked into the binary, from
//! `cargo metadata` and Cargo.lock.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

/// A crate of the binary.
#[derive(Debug, Clone)]
pub(super) struct LinkedPackage {
    /// Name on crates.io.
    pub(super) name: String,
    /// Version.
    pub(super) version: String,
    /// Licence as an SPDX expression.
    pub(super) license: String,
    /// Folder of its source.
    pub(super) folder: PathBuf,
    /// Whether it is a crate of this project.
    pub(super) is_own: bool,
}

/// What the binary is made of.
pub(super) struct Materials {
    /// The crates, by name and version.
    pub(super) packages: Vec<LinkedPackage>,
    /// The bill of materials.
    pub(super) json: String,
}

/// Resolves the crates that a crate of the workspace is linked from for `target`, with all features.
pub(super) fn of(root: &Path, package: &str, target: &str) -> Result<Materials, String> {
    let mut command = Command::new("cargo");
    command.current_dir(root).args(["metadata", "--format-version", "1", "--locked"]);
    command.args(["--all-features", "--filter-platform", target]);
    let output = command.output().map_err(|error| format!("cargo metadata: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let metadata: Value = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("cargo metadata: {error}"))?;
    let lock = std::fs::read_to_string(root.join("Cargo.lock"))
        .map_err(|error| format!("Cargo.lock: {error}"))?;
    from_metadata(&metadata, &lock, package)
}

/// The crates that a crate of the workspace is linked from for `target`, with the features of a build of
/// this crate alone.
pub(super) fn linked(
    root: &Path,
    package: &str,
    target: &str,
) -> Result<Vec<LinkedPackage>, String> {
    let mut command = Command::new("cargo");
    command.current_dir(root).args(["tree", "--locked", "--package", package, "--target", target]);
    command.args(["--edges", "normal", "--prefix", "none", "--format", "{p}"]);
    let output = command.output().map_err(|error| format!("cargo tree: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo tree: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let listed = String::from_utf8_lossy(&output.stdout);
    // "name vVERSION", and a folder or a mark behind it.
    let named = |line: &str| -> Option<(String, String)> {
        let mut words = line.split(' ');
        Some((words.next()?.to_owned(), words.next()?.strip_prefix('v')?.to_owned()))
    };
    let listed: BTreeSet<(String, String)> = listed.lines().filter_map(named).collect();
    let mut packages = of(root, package, target)?.packages;
    packages.retain(|one| listed.contains(&(one.name.clone(), one.version.clone())));
    Ok(packages)
}

fn from_metadata(metadata: &Value, lock: &str, package_name: &str) -> Result<Materials, String> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let packages: BTreeMap<String, Value> = list(&metadata["packages"])
        .into_iter()
        .map(|package| (word(&package["id"]), package))
        .collect();
    let nodes: BTreeMap<String, Value> = list(&metadata["resolve"]["nodes"])
        .into_iter()
        .map(|node| (word(&node["id"]), node))
        .collect();
    let start = packages.iter().find(|(_, package)| package["name"] == package_name);
    let (start, _) = start.ok_or_else(|| format!("cargo metadata: no package `{package_name}`"))?;
    // Normal dependencies only: those of builds and tests are not in the binary.
    let normal = |id: &str| -> Vec<String> {
        let deps = nodes.get(id).map(|node| list(&node["deps"])).unwrap_or_default();
        let is_normal =
            |dep: &Value| list(&dep["dep_kinds"]).iter().any(|kind| kind["kind"].is_null());
        deps.iter().filter(|dep| is_normal(dep)).map(|dep| word(&dep["pkg"])).collect()
    };
    let mut reached = BTreeSet::from([start.clone()]);
    let mut open = vec![start.clone()];
    while let Some(id) = open.pop() {
        open.extend(normal(&id).into_iter().filter(|dep| reached.insert(dep.clone())));
    }
    let sums = checksums(lock);
    let name = |id: &str| {
        let package = &packages[id];
        format!("pkg:cargo/{}@{}", word(&package["name"]), word(&package["version"]))
    };
    let mut linked = Vec::new();
    let (mut components, mut dependencies) = (Vec::new(), Vec::new());
    for id in &reached {
        let package = &packages[id];
        let (crate_name, version) = (word(&package["name"]), word(&package["version"]));
        let license = word(&package["license"]);
        dependencies.push(json!({
            "ref": name(id),
            "dependsOn": normal(id).iter().map(|dep| name(dep)).collect::<BTreeSet<_>>(),
        }));
        if id != start {
            let mut component = json!({
                "type": "library", "bom-ref": name(id), "purl": name(id),
                "name": crate_name, "version": version,
                "licenses": [{ "expression": license.replace('/', " OR ") }],
            });
            if let Some(sum) = sums.get(&(crate_name.clone(), version.clone())) {
                component["hashes"] = json!([{ "alg": "SHA-256", "content": sum }]);
            }
            components.push(component);
        }
        let is_own = package["source"].is_null();
        let manifest = PathBuf::from(word(&package["manifest_path"]));
        let folder = manifest.parent().map(Path::to_owned).unwrap_or_default();
        linked.push(LinkedPackage { name: crate_name, version, license, folder, is_own });
    }
    linked.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
    let bill = json!({
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "metadata": {
            "authors": [{ "name": "The Ackclock authors" }],
            "component": {
                "type": "application", "bom-ref": name(start), "purl": name(start),
                "name": package_name, "version": word(&packages[start]["version"]),
                "licenses": [{ "expression": word(&packages[start]["license"]) }],
            },
        },
        "components": components,
        "dependencies": dependencies,
    });
    Ok(Materials { packages: linked, json: format!("{bill:#}\n") })
}

/// The checksums Cargo.lock holds, by name and version.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let value = |block: &str, key: &str| -> Option<String> {
        let line = block.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = \""))?;
        line.strip_suffix('"').map(str::to_owned)
    };
    lock.split("[[package]]")
        .filter_map(|block| {
            let of = |key| value(block, key);
            Some(((of("name")?, of("version")?), of("checksum")?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_alone_has_fewer_features() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let packages = linked(&root, "ackclock-wasm", "wasm32-unknown-unknown").unwrap();
        let names: Vec<&str> = packages.iter().map(|one| one.name.as_str()).collect();
        assert!(names.contains(&"serde_json") && names.contains(&"ackclock-tcp"), "{names:?}");
        // A feature of packages, and an argument parser.
        assert!(!names.contains(&"parquet") && !names.contains(&"clap"), "{names:?}");
    }

    #[test]
    fn the_bill_has_what_is_linked_and_its_checksums() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let materials = of(&root, "ackclock", "x86_64-unknown-linux-gnu").unwrap();
        let names: Vec<&str> = materials.packages.iter().map(|one| one.name.as_str()).collect();
        assert!(names.contains(&"clap") && names.contains(&"ackclock-tcp"), "{names:?}");
        // Used by tests only.
        assert!(!names.contains(&"insta") && !names.contains(&"proptest"), "{names:?}");
        let bill: Value = serde_json::from_str(&materials.json).unwrap();
        let components = bill["components"].as_array().unwrap();
        assert_eq!(components.len() + 1, names.len());
        for component in components {
            let name = component["name"].as_str().unwrap();
            assert!(!component["licenses"][0]["expression"].as_str().unwrap().is_empty(), "{name}");
            let is_own = name.starts_with("ackclock");
            assert_eq!(component["hashes"].is_null(), is_own, "{name}");
        }
    }
}
