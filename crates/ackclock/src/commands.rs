//! One file for each command.

mod diagnose;
mod explain;
mod import_ini;
mod packetdrill;
mod read;
mod reproduce;
mod run;
mod scenario;
mod sweep;
mod table;
mod theory;
mod whatif;
mod wire;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ::scenario::{Files, Loaded, Overrides, decode, load};

use crate::cli::{Cli, Command, ScenarioArgs};
use crate::failure::Failure;
use crate::input;

/// Does what the arguments say.
pub(crate) fn run(cli: Cli) -> Result<ExitCode, Failure> {
    match cli.command {
        Command::Diagnose(args) => diagnose::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::WhatIf(args) => whatif::run(args),
        Command::Run(args) => run::run(args),
        Command::Scenario(command) => scenario::run(command),
        Command::Reproduce(args) => reproduce::run(&args),
        Command::Sweep(args) => sweep::run(args),
        Command::Table(args) => table::run(&args),
        Command::Read(args) => read::run(&args),
        Command::ImportIni(args) => import_ini::run(&args),
        Command::Theory(command) => theory::run(command),
        Command::Wire(command) => wire::run(command),
        Command::Packetdrill(args) => packetdrill::run(&args),
    }
}

/// Refuses what this build has no part for: Parquet and PNG are features, so that a first build is quick.
pub(crate) fn needs_features(parquet: bool, png: bool) -> Result<(), Failure> {
    let lacks = [
        ("--parquet", "parquet", parquet && !cfg!(feature = "parquet")),
        ("--png", "png", png && !cfg!(feature = "png")),
    ];
    match lacks.into_iter().find(|(.., lacks)| *lacks) {
        Some((option, feature, _)) => {
            Err(Failure::new(format!("{option}: this build is without the feature `{feature}`"))
                .hint("`cargo build --release --all-features` makes a program with it"))
        }
        None => Ok(()),
    }
}

/// The files that a scenario names: those beside it.
fn files_beside(scenario: &Path) -> Files {
    let dir = scenario.parent().unwrap_or(Path::new("")).to_owned();
    Files::new(move |name| input::read_named(&dir.join(name)))
}

/// The scenario the arguments name, with their changes.
fn load_scenario(args: ScenarioArgs) -> Result<(PathBuf, Loaded), Failure> {
    let Some(file) = args.file else {
        return Err(Failure::new("no scenario file given").hint("name it first: FILE.toml"));
    };
    let bytes = input::read(&file)?;
    let name = file.display().to_string();
    let text = decode(&bytes, &name).map_err(Failure::Scenario)?;
    let overrides = Overrides {
        set: args.set,
        seed: args.seed,
        files: files_beside(&file),
        ..Overrides::default()
    };
    let loaded = load(text, &name, &overrides).map_err(Failure::Scenario)?;
    Ok((file, loaded))
}
