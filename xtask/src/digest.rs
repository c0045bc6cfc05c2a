//! Fingerprints of fixed runs.
//!
//! `make test` compares those of a debug and a release build: the same scenario gives the same
//! run whatever the compiler makes of it.

use std::path::Path;
use std::process::ExitCode;

use lab::scenario::{self, Overrides};
use record::Digest;

/// Runs beside the scenario files as they stand: a file, and what is set in it.
const VARIANTS: &[(&str, &[&str])] = &[
    ("slow-start-ramp.toml", &["duration=5s", "host.sender.lro=true", "host.sender.rx_budget=3"]),
    (
        "slow-start-ramp.toml",
        &["duration=5s", "path.0.forward.0.link={ rate = \"100Mbit/s\", buffer = \"100kB\" }"],
    ),
    ("slow-start-lro.toml", &["flow.0.ip=6", "host.sender.mtu=9000B", "host.sink.mtu=9000B"]),
];

pub(crate) fn run() -> ExitCode {
    match lines() {
        Ok(lines) => {
            lines.iter().for_each(|line| println!("{line}"));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

fn lines() -> Result<Vec<String>, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios");
    let listed = std::fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut names: Vec<String> = listed
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.ends_with(".toml"))
        .collect();
    names.sort();
    let plain = names.iter().map(|name| (name.as_str(), &[][..]));
    plain.chain(VARIANTS.iter().copied()).map(|(name, set)| line(&folder, name, set)).collect()
}

fn line(folder: &Path, name: &str, set: &[&str]) -> Result<String, String> {
    let text = std::fs::read_to_string(folder.join(name)).map_err(|e| format!("{name}: {e}"))?;
    let set = set.iter().map(|s| (*s).to_owned()).collect();
    let loaded = scenario::load(&text, name, &Overrides { set, seed: None })
        .map_err(|errors| errors.iter().map(|e| format!("{e}\n")).collect::<String>())?;
    let mut digest = Digest::default();
    sim::run(&loaded.scenario, &mut digest).map_err(|e| format!("{name}: {e:?}"))?;
    let (value, events) = (digest.value(), digest.events());
    Ok(format!("{value:016x} {events:>9} events  {name} {}", &loaded.sha256[..12]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_runs_give_the_same_fingerprints() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios");
        let once = |set: &[&str]| line(&folder, "slow-start-lro.toml", set).unwrap();
        assert_eq!(once(&[]), once(&[]));
        assert_ne!(once(&[]), once(&["host.sender.delay=201us"]));
    }
}
