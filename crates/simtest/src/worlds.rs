//! Random worlds: scenarios drawn over the complete scenario format, run with the verifier, and
//! minimised on failure.
//!
//! A world is a scenario text: it passes through the ordinary parser, and the file that reproduces
//! a failure is the scenario itself. It depends only on (seed, number), with a random stream per
//! part. Systems, controllers and knobs are taken from the lists of the crates that define them, so
//! a new one is drawn as soon as it is listed.
//!
//! Every world must satisfy these conditions: the run violates no invariant of [`check`] (no packet
//! early or unsent, bytes read once and in order, no more in flight than the windows allow, no
//! unjustified retransmission), it does not panic, and it ends. In worlds with survivable faults
//! (see `oracle`) every flow must also finish, with every byte read.
//!
//! Reading order: `random` (random numbers and quantities), `hosts`, `paths`, `flows` (hosts,
//! paths and applications), `generator` (the whole scenario), `oracle` (which flows must finish),
//! `verdict` (the run), `shrink`. `cargo xtask worlds` runs any number of them.

mod changes;
mod flows;
mod generator;
mod hosts;
mod middleboxes;
mod netem;
mod oracle;
mod paths;
mod random;
mod shrink;
mod traffic;
mod verdict;
mod wide;

#[cfg(test)]
mod tests;

use scenario::ScenarioFile;
use toml::Table;

pub use shrink::shrink;
pub use verdict::{WorldFailure, WorldStats, judge};
pub use wide::wide;

/// Returns the scenario file of world `number` of `seed`.
pub fn draw(seed: u64, number: u64) -> String {
    written(&generator::draw(seed, number))
}

/// Returns a tree in the format of scenario files; an invalid scenario as plain TOML.
fn written(root: &Table) -> String {
    let text = root.to_string();
    ScenarioFile::read(&text, "world").map_or(text, |file| file.to_string())
}

/// Step limit for all runs of one search for a minimal scenario.
const MOST_STEPS: u64 = 100 * verdict::MOST_STEPS;

/// Finds a minimal scenario that fails as `text` did, and returns it with its failure. `tried` is
/// called before each run of the search, which is limited by steps, not by time: the result is the
/// same on every machine.
pub fn smallest(text: &str, failure: WorldFailure, tried: impl FnMut()) -> (String, WorldFailure) {
    smallest_by(text, failure, sim::audit::describe, tried)
}

fn smallest_by(
    text: &str,
    failure: WorldFailure,
    laws: verdict::InvariantsOf,
    mut tried: impl FnMut(),
) -> (String, WorldFailure) {
    let kind = failure.kind();
    let mut last = failure;
    let mut steps = 0;
    let small = shrink(text, |text| {
        if steps >= MOST_STEPS {
            return false;
        }
        tried();
        let (verdict, taken) = verdict::check_world_against(text, laws);
        steps += taken;
        match verdict {
            Err(failure) if failure.kind() == kind => {
                last = failure;
                true
            }
            _ => false,
        }
    });
    (small, last)
}
