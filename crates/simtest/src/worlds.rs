//! Random worlds: scenarios drawn over everything a scenario file can say, run under the eyes of
//! the verifier, and made small where they fail.
//!
//! A world is a text like any other: it goes through the ordinary parser, and the file that shows
//! a failure is the scenario itself. It is drawn from (seed, number) alone, each part from a
//! stream of its own. Systems, controllers and knobs are taken from the lists of the crates that
//! have them, so a new one is drawn as soon as it is listed.
//!
//! What is demanded of every world: the run breaks none of the laws of [`check`] (nothing early,
//! nothing from thin air, bytes read once and in order, no more under way than the windows allow,
//! nothing sent again without a reason), it does not panic, and it comes to an end. And of those
//! whose faults leave a chance (see `demands`): every flow ends, with every byte read.
//!
//! Reading order: `luck` (numbers and quantities by chance), `machines`, `roads`, `talks` (hosts,
//! paths and applications), `draft` (the whole), `demands`, `verdict` (the
//! run), `shrink`. `cargo xtask worlds` runs any number of them.

mod demands;
mod draft;
mod luck;
mod machines;
mod roads;
mod shrink;
mod talks;
mod verdict;

#[cfg(test)]
mod tests;

use scenario::ScenarioFile;
use toml::Table;

pub use shrink::shrink;
pub use verdict::{Passed, WorldFailure, judge};

/// The scenario file of world `number` of the worlds of `seed`.
pub fn draw(seed: u64, number: u64) -> String {
    written(&draft::draw(seed, number))
}

/// The text of a tree as scenario files have it; a tree that is no scenario as TOML has it.
fn written(root: &Table) -> String {
    let text = root.to_string();
    ScenarioFile::read(&text, "world").map_or(text, |file| file.to_string())
}

/// Steps of all runs of one search for the smallest scenario.
const MOST_STEPS: u64 = 100 * verdict::MOST_STEPS;

/// The smallest scenario found that fails as `text` did, and its failure. `tried` is called before
/// each run of the search, which ends after a number of steps, not after a time: it finds the same
/// on every machine.
pub fn smallest(text: &str, failure: WorldFailure, tried: impl FnMut()) -> (String, WorldFailure) {
    smallest_by(text, failure, sim::audit::describe, tried)
}

fn smallest_by(
    text: &str,
    failure: WorldFailure,
    laws: verdict::Laws,
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
        let (verdict, taken) = verdict::judge_by(text, laws);
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
