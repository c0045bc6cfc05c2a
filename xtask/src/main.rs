//! Tasks of the project.
//!
//! - `cargo xtask golden [DIR]` replays rows recorded from kernel functions and recorded transfers;
//!   `cargo xtask golden import DIR` imports such transfers into the project.
//! - `cargo xtask layers` lists the crates by layer and rejects an upward dependency.
//! - `cargo xtask circles` lists the import circles within the crates, the largest first.
//! - `cargo xtask parts [DIR]` lists the methods that may change a whole TCP endpoint, and rejects steps that
//!   change more than two of its parts.
//! - `cargo xtask words` rejects phrases of the former private dialect (`words.toml`), in the guide dates
//!   and histories too, and counts words that are right in one sense only.
//! - `cargo xtask digest` prints digests of fixed runs: the same in debug and release.
//! - `cargo xtask worlds` runs random scenarios and minimizes a failing one.
//! - `cargo xtask zoo` evaluates broken and sound senders and rejects criteria that fail none of the first or
//!   one of the second.
//! - `cargo xtask exam` draws transfers with faults, runs each with and without, and judges what the program
//!   says of them.
//! - `cargo xtask stacks` runs transfers over drawn paths with models of a QUIC stack and with the stack itself.
//! - `cargo xtask scripts` runs random and mutated packet scripts on the model and on a real kernel.
//! - `cargo xtask count` counts the instructions of fixed transfers and compares them with the
//!   committed counts; `--write` updates those, `--growths` shows how the cost of a segment scales.
//! - `cargo xtask growth [--sample] [CASE...]` runs the program with n, 2n, 4n and 8n of one thing and rejects
//!   costs that grow faster than the input.
//! - `cargo xtask soak --hours H` runs random worlds, mutated inputs, kills and power cuts, and keeps what fails.
//! - `cargo xtask release` makes the packages of a release below `target/release-files`; of a
//!   program that is built already if one is given, without wheels.
//! - `cargo xtask licences CRATE TARGET` prints the licences of what a crate is linked from.
//! - `cargo xtask pgo` builds the program with a profile of the workloads: `target/pgo/ackclock`;
//!   `--compare` shows what that saves.
//! - `cargo xtask docs` draws the pictures, updates the trace of docs/stories.md, writes the pages of
//!   docs/ledger and fills the table of README.md; `--pictures` omits what needs a build of the program.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a task reports to its caller")]

mod circles;
mod count;
mod digest;
mod docs;
mod exam;
mod gallery;
mod golden;
#[cfg(target_os = "linux")]
mod growth;
mod kernel_scripts;
mod kernel_worlds;
mod layers;
mod ledger;
mod loop_picture;
mod parts;
mod pgo;
mod probe_draws;
mod processors;
mod readme;
mod release;
#[cfg(target_os = "linux")]
mod soak;
mod stacks;
mod types;
mod words;
mod worlds;
mod zoo;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask release [BINARY] [--require|--publish]
       cargo xtask golden [DIR or FILE] | golden import DIR | layers | circles | words | digest | docs [--pictures]
       cargo xtask parts [DIR]
       cargo xtask licences CRATE TARGET
       cargo xtask count [--write | --growths]
       cargo xtask growth [--sample] [CASE...]
       cargo xtask soak [--hours H | --rounds N] [--seed S] [--from K] [--out DIR]
       cargo xtask pgo [--compare]
       cargo xtask scripts [--random N] [--mutants N] [--seed S] [--kernel NAME] [--out DIR] [FILE...]
       cargo xtask stacks [--count N] [--seed S] [--path K] [--stack NAME] [--profile NAME] [--ledger]
       cargo xtask exam [--count N] [--seed S] [--draw K] [--keep DIR] [--json] [--strict]
       cargo xtask worlds [--count N] [--from K] [--seed S] [--jobs J] [--world K] [--out DIR]
       cargo xtask zoo [--sample] [--sender NAME,...] [--criterion SECTION,...] [--figures]";

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let chore = arguments.first().and_then(|name| name.to_str());
    match (chore, &arguments[1.min(arguments.len())..]) {
        (Some("golden"), []) => golden::run_own_copy(),
        (Some("golden"), [import, from]) if import == "import" => golden::import(Path::new(from)),
        (Some("golden"), [place]) => golden::run(Path::new(place)),
        (Some("release"), rest) => release::run(rest),
        (Some("licences"), [package, target]) => {
            release::licences(&package.to_string_lossy(), &target.to_string_lossy())
        }
        (Some("layers"), []) => list_layers(),
        (Some("circles"), []) => list_circles(),
        (Some("parts"), []) => list_parts(&own_sources()),
        (Some("parts"), [sources]) => list_parts(Path::new(sources)),
        (Some("words"), []) => list_words(),
        (Some("digest"), []) => digest::run(),
        (Some("docs"), []) => docs::run(true),
        (Some("docs"), [findings]) if findings == "--findings" => docs::run_findings(),
        (Some("docs"), [pictures]) if pictures == "--pictures" => docs::run(false),
        (Some("count"), []) => count::run(false),
        (Some("count"), [write]) if write == "--write" => count::run(true),
        (Some("count"), [growths]) if growths == "--growths" => count::run_growths(),
        (Some("count"), [inside, name]) if inside == "--inside" => {
            count::run_inside(&name.to_string_lossy())
        }
        (Some("pgo"), []) => pgo::run(false),
        (Some("pgo"), [compare]) if compare == "--compare" => pgo::run(true),
        (Some("scripts"), options) => kernel_scripts::run(options),
        #[cfg(target_os = "linux")]
        (Some("growth"), options) => growth::run(options),
        #[cfg(target_os = "linux")]
        (Some("soak"), options) => soak::run(options),
        (Some("exam"), options) => exam::run(options),
        (Some("stacks"), options) => stacks::run(options),
        (Some("worlds"), options) => worlds::run(options),
        (Some("zoo"), options) => zoo::run(options),
        _ => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn list_words() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    match words::survey(&root) {
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
        Ok(survey) => {
            for (word, files) in &survey.counts {
                let total: usize = files.iter().map(|(count, _)| count).sum();
                let most: Vec<_> = files
                    .iter()
                    .take(3)
                    .map(|(count, file)| format!("{} {count}", file.display()))
                    .collect();
                println!("{word}: {total} in {} files, most in {}", files.len(), most.join(", "));
            }
            survey.complaints.iter().for_each(|complaint| eprintln!("{complaint}"));
            ExitCode::from(u8::from(!survey.complaints.is_empty()))
        }
    }
}

fn list_circles() -> ExitCode {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
    let folders = std::fs::read_dir(&crates).into_iter().flatten().flatten();
    let mut names: Vec<_> = folders.map(|folder| folder.file_name()).collect();
    names.sort();
    for name in names {
        match circles::of(&crates.join(&name).join("src")) {
            Ok(found) => found.iter().for_each(|circle| {
                println!("{}: {} modules, {}", name.display(), circle.len(), circle.join(", "));
            }),
            Err(error) => {
                eprintln!("{error}");
                return ExitCode::from(2);
            }
        }
    }
    ExitCode::SUCCESS
}

/// The sources of the TCP endpoint.
fn own_sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/tcp/src")
}

fn list_parts(sources: &Path) -> ExitCode {
    match parts::survey(sources) {
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
        Ok(survey) => {
            parts::describe(&survey).iter().for_each(|line| println!("{line}"));
            let types = types::complaints(&sources.join("../.."));
            let complaints = types.map(|types| [survey.complaints, types].concat());
            complaints.map_or_else(
                |error| {
                    eprintln!("{error}");
                    ExitCode::from(2)
                },
                |complaints| {
                    complaints.iter().for_each(|complaint| eprintln!("{complaint}"));
                    ExitCode::from(u8::from(!complaints.is_empty()))
                },
            )
        }
    }
}

fn list_layers() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    match layers::survey(&root) {
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
        Ok((manifests, complaints)) => {
            layers::describe(&manifests).iter().for_each(|line| println!("{line}"));
            complaints.iter().for_each(|complaint| eprintln!("{complaint}"));
            ExitCode::from(u8::from(!complaints.is_empty()))
        }
    }
}
