//! Builds the newest release of a stack that its registry has, beside the pinned one.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::toolchain::Tools;
use super::{
    BuiltStack, Cache, StackBuildError, StackInfo, StackRecipe, Toolchain, output, sha256, with,
    write_source,
};

/// Builds the newest release; returns it with its version. The tool of the language asks its registry.
///
/// # Errors
/// [`StackBuildError`]; [`StackBuildError::MissingTool`] of a library of the system, which has no registry.
pub fn build_newest(
    recipe: &StackRecipe,
    cache: &Cache,
) -> Result<(BuiltStack, String), StackBuildError> {
    let Some(package) = recipe.package else {
        return Err(StackBuildError::MissingTool("a library of the system has no newer release"));
    };
    let tools = Tools::find(recipe.toolchain)?;
    let directory = cache.path().join("stacks").join(format!("{}-newest", recipe.name));
    let source = directory.join("source");
    write_source(recipe, &source)?;
    unpin(&tools, recipe, package, &source)?;
    let path = directory.join("host");
    tools.build(&directory, &source, &path)?;
    let version = version(&tools, recipe.toolchain, package, (&directory, &source))?;
    let info = StackInfo {
        name: recipe.name.to_owned(),
        key: String::new(),
        sha256: sha256(&path)?,
        source: format!("{package} {version}"),
        compiler: tools.compiler,
    };
    Ok((BuiltStack { info, path }, version))
}

/// Replaces the pinned versions by the newest ones.
fn unpin(
    tools: &Tools,
    recipe: &StackRecipe,
    package: &str,
    source: &Path,
) -> Result<(), StackBuildError> {
    let run = |arguments: &[&str], step| {
        let mut command = Command::new(&tools.program);
        output(command.args(arguments).current_dir(source), step).map(|_| ())
    };
    match recipe.toolchain {
        Toolchain::Go => {
            run(&["get", &format!("{package}@latest")], "go get")?;
            run(&["mod", "tidy"], "go mod tidy")
        }
        Toolchain::Cargo => {
            let manifest = source.join("Cargo.toml");
            let text = fs::read_to_string(&manifest).map_err(with(&manifest))?;
            fs::write(&manifest, without_pin(&text)).map_err(with(&manifest))?;
            let lock = source.join("Cargo.lock");
            fs::remove_file(&lock).map_err(with(&lock))?;
            run(&["generate-lockfile"], "cargo generate-lockfile")
        }
        Toolchain::Python => {
            let requirements = source.join("requirements.txt");
            fs::write(&requirements, format!("{package}\n")).map_err(with(&requirements))
        }
        Toolchain::C => Ok(()),
    }
}

/// The manifest with any version in place of exact ones.
fn without_pin(manifest: &str) -> String {
    let line = |line: &str| match line.split_once("version = \"=") {
        Some((before, after)) => {
            let rest = after.split_once('"').map_or("", |(_, rest)| rest);
            format!("{before}version = \"*\"{rest}\n")
        }
        None => format!("{line}\n"),
    };
    manifest.lines().map(line).collect()
}

/// The version that was built.
fn version(
    tools: &Tools,
    toolchain: Toolchain,
    package: &str,
    (directory, source): (&Path, &Path),
) -> Result<String, StackBuildError> {
    let found = match toolchain {
        Toolchain::Go => {
            let mut command = Command::new(&tools.program);
            command.args(["list", "-m", "-f", "{{.Version}}", package]).current_dir(source);
            Some(output(&mut command, "go list")?.trim().to_owned())
        }
        Toolchain::Cargo => {
            let lock = source.join("Cargo.lock");
            let text = fs::read_to_string(&lock).map_err(with(&lock))?;
            locked_version(&text, package)
        }
        Toolchain::Python => {
            let mut command = Command::new(directory.join("environment/bin/pip"));
            let text = output(command.args(["show", package]), "pip show")?;
            text.lines().find_map(|line| line.strip_prefix("Version: ")).map(str::to_owned)
        }
        Toolchain::C => None,
    };
    found.ok_or_else(|| StackBuildError::Failed {
        step: "looking for the version",
        output: format!("{package} is not among the packages"),
    })
}

/// The version of a package in `Cargo.lock`.
fn locked_version(lock: &str, package: &str) -> Option<String> {
    let name = format!("name = \"{package}\"");
    let mut lines = lock.lines().skip_while(|line| *line != name).skip(1);
    let version = lines.next()?.strip_prefix("version = \"")?;
    Some(version.trim_end_matches('"').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pins_and_locked_versions_are_found() {
        let manifest = "[dependencies]\nbytes = \"1\"\nquinn-proto = { version = \"=0.11.19\", features = [\"qlog\"] }\n";
        let free = without_pin(manifest);
        assert!(
            free.contains("quinn-proto = { version = \"*\", features = [\"qlog\"] }"),
            "{free}"
        );
        assert!(free.contains("bytes = \"1\""), "{free}");
        let lock = "[[package]]\nname = \"quinn\"\nversion = \"0.1.0\"\n\n[[package]]\nname = \"quinn-proto\"\nversion = \"0.12.1\"\n";
        assert_eq!(locked_version(lock, "quinn-proto").as_deref(), Some("0.12.1"));
        assert_eq!(locked_version(lock, "quiche"), None);
    }
}
