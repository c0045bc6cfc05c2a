//! Fingerprints of a fixed set of runs: equal on every machine and in every build.
//!
//! `cargo xtask digest` prints them from a debug and a release build, bindings/wasm from
//! WebAssembly; `make digest` compares.

use record::Digest;

use scenario::{self, Overrides};

const EXAMPLE: &str = include_str!("../../../scenarios/example.toml");
const TRACE: &str = include_str!("../../../scenarios/slow-start-lro.toml");
const MATHIS: &str = include_str!("../../../scenarios/mathis.toml");
const RAMP: &str = include_str!("../../../scenarios/slow-start-ramp.toml");

/// A run: its name, its text, and its overrides.
type DigestRun = (&'static str, &'static str, &'static [&'static str]);

const RUNS: &[DigestRun] = &[
    ("example", EXAMPLE, &[]),
    ("trace of the mail", TRACE, &[]),
    ("ramp", RAMP, &["duration=12s"]),
    (
        "ramp, ACKs merged by three",
        RAMP,
        &["duration=12s", "host.sender.lro=true", "host.sender.rx_budget=3"],
    ),
    (
        "ramp into a full queue",
        RAMP,
        &["duration=5s", "path.0.forward.0.link={ rate = \"100Mbit/s\", buffer = \"100kB\" }"],
    ),
    ("IPv6, jumbo frames", TRACE, &["flow.0.ip=6", "host.sender.mtu=9000B", "host.sink.mtu=9000B"]),
    (
        "Linux sender",
        RAMP,
        &["duration=5s", "host.sender={ profile = \"linux-6.18\", cc = \"reno\" }"],
    ),
    ("textbook sender", RAMP, &["duration=5s", "host.sender={ profile = \"rfc\" }"]),
    ("QUIC of INET", MATHIS, &["duration=3s"]),
];

/// Returns one line per run: fingerprint, number of events, name.
///
/// # Errors
/// The errors of a scenario of the set.
pub fn lines() -> Result<Vec<String>, String> {
    RUNS.iter().map(|&(name, text, set)| line(name, text, set)).collect()
}

fn line(name: &str, text: &str, set: &[&str]) -> Result<String, String> {
    let set = set.iter().map(|s| (*s).to_owned()).collect();
    let loaded = scenario::load(text, name, &Overrides { set, ..Overrides::default() })
        .map_err(|errors| errors.iter().map(|e| format!("{e}\n")).collect::<String>())?;
    let mut digest = Digest::default();
    sim::run(&loaded.scenario, &mut digest).map_err(|e| format!("{name}: {e}"))?;
    Ok(format!("{:016x} {:>9} events  {name}", digest.value(), digest.events()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_are_repeatable_and_depend_on_the_scenario() {
        let once = |set: &[&str]| line("trace", TRACE, set).unwrap();
        assert_eq!(once(&[]), once(&[]));
        assert_ne!(once(&[]), once(&["host.sender.delay=201us"]));
    }
}
