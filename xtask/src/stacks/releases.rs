//! Logs that releases of the stacks write: every field that the reader knows of a release is still there.
//!
//! A transfer with losses in both directions runs in virtual time, and both of its ends write their logs. The fields that
//! the analysis gets of them are compared with those of the pinned release (golden/quic/releases/fields.json): one that is
//! renamed is missing.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

use guest::kernel::Cache;
use guest::stack::StackProgram;
use guest::stack::build::{self, RECIPES, StackRecipe};
use ingest::inputs::quic_log_fields;
use lzma_rust2::{XzOptions, XzWriter};
use scenario::{Overrides, Stacks, load};

/// The roles, as the logs are named.
const ROLES: [&str; 2] = ["client", "server"];
/// The page of the ledger.
const PAGE: &str = "docs/ledger/quic-fields.md";

/// Fields by the name of the stack, and by role.
type FieldTable = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

/// Which releases are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Releases {
    /// Those that `ackclock stack build` has built.
    Pinned,
    /// The same, whose logs are recorded.
    Recorded,
    /// The newest of their registries, which are built.
    Newest,
}

/// The outcome of a release.
#[derive(Debug)]
struct ReleaseCheck {
    /// What was checked: a version, or why none was.
    release: String,
    /// By role: the number of fields, those missing, and those that are new.
    roles: Vec<(&'static str, usize, Vec<String>, Vec<String>)>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Checks the stack of this name, or all; false if a field is missing.
///
/// # Errors
/// Files that cannot be read or written, and runs that fail, as text.
pub(super) fn check(releases: Releases, name: Option<&str>) -> Result<bool, String> {
    let folder = root().join("golden/quic/releases");
    let table = folder.join("fields.json");
    let text = fs::read(&table).map_err(|error| format!("{}: {error}", table.display()))?;
    let expected: FieldTable =
        serde_json::from_slice(&text).map_err(|error| format!("{}: {error}", table.display()))?;
    let cache = Cache::of_user().ok_or("neither HOME nor XDG_CACHE_HOME is set")?;
    let asked = name.map(|name| build::find(name).ok_or(format!("there is no stack `{name}`")));
    let asked = asked.transpose()?.map(|recipe| recipe.name);
    let is_asked = |recipe: &&StackRecipe| asked.is_none_or(|name| name == recipe.name);
    let mut checks = Vec::new();
    for recipe in RECIPES.iter().filter(is_asked) {
        let found = match releases {
            Releases::Newest => build::build_newest(recipe, &cache)
                .map(|(built, version)| Some((built, version)))
                .map_err(|error| error.to_string()),
            Releases::Pinned | Releases::Recorded => build::built(&cache, recipe.name)
                .map(|built| built.map(|built| (built, recipe.source.to_owned())))
                .map_err(|error| error.to_string()),
        };
        let (built, release) = match found {
            Ok(Some(found)) => found,
            Ok(None) => continue,
            Err(error) => {
                checks.push((recipe.name, ReleaseCheck { release: error, roles: Vec::new() }));
                continue;
            }
        };
        if releases == Releases::Recorded {
            let program = built.stack().ok_or("a stack without a recipe")?;
            record_capture(recipe, program, &folder)?;
        }
        let program = built.stack().ok_or("a stack without a recipe")?;
        let mut roles = Vec::new();
        for (role, log) in ROLES.into_iter().zip(logs(recipe, program)?) {
            if releases == Releases::Recorded {
                let path = folder.join(format!("{}.{role}.sqlog.xz", recipe.name));
                record(&log, &path).map_err(|error| format!("{}: {error}", path.display()))?;
            }
            let fields = quic_log_fields(&log[..])
                .map_err(|error| format!("{} of {release}: {error}", recipe.name))?;
            let known = expected.get(recipe.name).and_then(|roles| roles.get(role));
            let known = known.cloned().unwrap_or_default();
            let less = |one: &BTreeSet<String>, other: &BTreeSet<String>| {
                one.difference(other).cloned().collect::<Vec<_>>()
            };
            roles.push((role, fields.len(), less(&known, &fields), less(&fields, &known)));
        }
        checks.push((recipe.name, ReleaseCheck { release, roles }));
    }
    if checks.is_empty() {
        return Err("no stack is built: `ackclock stack build` builds one".to_owned());
    }
    let lines = lines(&checks);
    print!("{lines}");
    if releases == Releases::Newest && name.is_none() {
        let page = root().join(PAGE);
        fs::write(&page, ledger(&lines)).map_err(|error| format!("{PAGE}: {error}"))?;
    }
    Ok(checks.iter().all(|(_, check)| check.roles.iter().all(|role| role.2.is_empty())))
}

fn record(log: &[u8], to: &Path) -> io::Result<()> {
    let mut packer = XzWriter::new(fs::File::create(to)?, XzOptions::with_preset(9))?;
    io::copy(&mut &*log, &mut packer)?;
    packer.finish().map(|_| ())
}

/// Records the log of a server, the capture at its host and the key log.
fn record_capture(
    recipe: &StackRecipe,
    program: StackProgram,
    folder: &Path,
) -> Result<(), String> {
    let from = run(recipe, &lossy_download(recipe), |logs| program.with_captures(logs))?;
    for (end, is_packed) in [("sqlog", true), ("pcap", true), ("keys", false)] {
        let read = from.join(format!("0-server.{end}"));
        let packed = if is_packed { ".xz" } else { "" };
        let path = folder.join(format!("{}.captured.{end}{packed}", recipe.name));
        let bytes = fs::read(&read).map_err(|error| format!("{}: {error}", read.display()))?;
        let written = if is_packed { record(&bytes, &path) } else { fs::write(&path, &bytes) };
        written.map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}

/// The hosts of a scenario, with this title.
fn hosts(recipe: &StackRecipe, title: &str) -> String {
    let mut text = format!("title = \"{title}\"\nseed = 1\nduration = \"60s\"\n");
    let (profile, name) = (recipe.profile, recipe.name);
    for role in ROLES {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "\n[host.{role}]\nprofile = \"{profile}\"\nstack = \"{name}\"");
    }
    text
}

/// A download of 90 kB over 100 ms, of which one in 13 packets is lost: far below the 10 Mbit/s of the path.
fn lossy_download(recipe: &StackRecipe) -> String {
    hosts(recipe, "a lossy download")
        + "\n[[path]]\nfrom = \"client\"\nto = \"server\"\nforward = [{ delay = \"50ms\" }]\n\
           return = [{ loss = { pass = 12 } }, { link = { rate = \"10Mbit/s\", buffer = \"100kB\" } }, { delay = \"50ms\" }]\n\n\
           [[flow]]\nname = \"download\"\nfrom = \"client\"\nto = \"server\"\n\n[flow.exchange]\n\n\
           [[flow.exchange.steps]]\nclient = \"200B\"\n\n[[flow.exchange.steps]]\nserver = \"90kB\"\n"
}

/// Two exchanges of 120 kB in either direction, of which one in 61 packets is lost.
fn transfer(recipe: &StackRecipe) -> String {
    let mut text = hosts(recipe, "fields of logs");
    let way = "[{ loss = { pass = 60 } }, { link = { rate = \"10Mbit/s\", buffer = \"60kB\" } }, { delay = \"15ms\" }]";
    let _ = write!(
        text,
        "\n[[path]]\nfrom = \"client\"\nto = \"server\"\nforward = {way}\nreturn = {way}\n\n\
         [[flow]]\nname = \"transfer\"\nfrom = \"client\"\nto = \"server\"\n\n[flow.exchange]\ncount = 2\n\n\
         [[flow.exchange.steps]]\nclient = \"120kB\"\n\n[[flow.exchange.steps]]\nserver = \"120kB\"\n"
    );
    text
}

/// The logs of both ends of the transfer.
fn logs(recipe: &StackRecipe, program: StackProgram) -> Result<[Vec<u8>; 2], String> {
    let folder = run(recipe, &transfer(recipe), |logs| program.with_logs(logs))?;
    let read = |role: &str| {
        let path = folder.join(format!("0-{role}.sqlog"));
        fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))
    };
    Ok([read(ROLES[0])?, read(ROLES[1])?])
}

/// Runs a scenario with a stack that writes its logs; returns their directory.
fn run(
    recipe: &StackRecipe,
    text: &str,
    logging: impl FnOnce(&Path) -> StackProgram,
) -> Result<PathBuf, String> {
    let folder = root().join(format!("target/release-logs/{}", recipe.name));
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let stack: &'static dyn quic::real::RealStack = logging(&folder).leak();
    let find = move |_: &str| Ok(stack);
    let overrides = Overrides { stacks: Stacks::programs(find), ..Overrides::default() };
    let loaded = load(text, "transfer", &overrides)
        .map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))?;
    let outcome = sim::run(&loaded.scenario, &mut record::NullRecorder)
        .map_err(|error| format!("{}: {error}", recipe.name))?;
    match outcome.flows.first() {
        Some(flow) if flow.finished => Ok(folder),
        _ => Err(format!("{}: the transfer is not complete", recipe.name)),
    }
}

/// A line for each role of each release, and those for the fields that differ.
fn lines(checks: &[(&str, ReleaseCheck)]) -> String {
    let mut text = String::new();
    for (name, check) in checks {
        if check.roles.is_empty() {
            let why = check.release.lines().next().unwrap_or_default();
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name:<14} not checked: {why}");
        }
        for (role, count, missing, new) in &check.roles {
            let release = &check.release;
            let _ = writeln!(
                text,
                "{name:<14} {release:<38} {role:<7} {count:>3} fields, {} missing, {} new",
                missing.len(),
                new.len()
            );
            for (what, fields) in [("missing", missing), ("new", new)] {
                if !fields.is_empty() {
                    let _ = writeln!(text, "    {what}: {}", fields.join(", "));
                }
            }
        }
    }
    text
}

fn ledger(lines: &str) -> String {
    format!(
        "<!-- cargo xtask stacks --latest writes this page -->\n\n# Logs of the newest QUIC stacks\n\nMachine: any: virtual time.\n\n\
         Two exchanges of 120 kB in either direction over 10 Mbit/s and 30 ms, one in 61 packets lost. Fields are those that\n\
         the analysis gets of both logs, beside those of the pinned release.\n\n```text\n$ cargo xtask stacks --latest\n{lines}```\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_transfers_are_scenarios() {
        for recipe in &RECIPES {
            for text in [transfer(recipe), lossy_download(recipe)] {
                let text = text.replace(&format!("stack = \"{}\"", recipe.name), "");
                let loaded = load(&text, "transfer", &Overrides::default());
                assert!(loaded.is_ok(), "{text}\n{:?}", loaded.err());
            }
        }
    }
}
