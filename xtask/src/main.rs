//! The project's own chores.
//!
//! - `cargo xtask golden [DIR]` replays rows taken from the kernels' own functions and recorded
//!   transfers; `cargo xtask golden import DIR` takes such transfers into the project.
//! - `cargo xtask layers` lists the crates by layer and refuses an upward dependency.
//! - `cargo xtask digest` prints fingerprints of fixed runs: the same in debug and release.
//! - `cargo xtask worlds` runs random worlds and makes a failing one small.
//! - `cargo xtask count` counts the instructions of fixed transfers and compares them with those
//!   committed; `--write` commits to new ones, `--growths` tells what the cost of a segment grows with.
//! - `cargo xtask docs` draws the pictures, sets the README's trace and writes the pages that are generated;
//!   `--pictures` leaves out the pages.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a chore reports to its caller")]

mod count;
mod digest;
mod docs;
mod golden;
mod layers;
mod worlds;

use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask golden [DIR or FILE] | golden import DIR | layers | digest | docs [--pictures]
       cargo xtask count [--write | --growths]
       cargo xtask worlds [--count N] [--from K] [--seed S] [--jobs J] [--world K] [--out DIR]";

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let chore = arguments.first().and_then(|name| name.to_str());
    match (chore, &arguments[1.min(arguments.len())..]) {
        (Some("golden"), []) => golden::run_own_copy(),
        (Some("golden"), [import, from]) if import == "import" => golden::import(Path::new(from)),
        (Some("golden"), [place]) => golden::run(Path::new(place)),
        (Some("layers"), []) => list_layers(),
        (Some("digest"), []) => digest::run(),
        (Some("docs"), []) => docs::run(true),
        (Some("docs"), [pictures]) if pictures == "--pictures" => docs::run(false),
        (Some("count"), []) => count::run(false),
        (Some("count"), [write]) if write == "--write" => count::run(true),
        (Some("count"), [growths]) if growths == "--growths" => count::run_growths(),
        (Some("count"), [inside, name]) if inside == "--inside" => {
            count::run_inside(&name.to_string_lossy())
        }
        (Some("worlds"), options) => worlds::run(options),
        _ => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
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
