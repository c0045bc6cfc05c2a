//! One file for each command.

mod cc;
mod compare;
mod demo;
mod diagnose;
mod emulator;
mod explain;
mod generated;
mod guests;
mod hunt;
mod import_ini;
mod interop;
mod kernel;
mod mcp;
mod new;
mod packetdrill;
pub(crate) mod pasted;
mod profiles;
mod read;
mod reproduce;
mod run;
mod scenario;
mod schema;
mod stack;
mod suite;
mod sweep;
mod table;
mod theory;
mod watch;
mod welcome;
mod whatif;
mod wire;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ::scenario::{Files, Loaded, Overrides, Stacks, decode, load};
use ingest::inputs::InputKind;

use crate::cli::{Cli, Command, ScenarioArgs};
use crate::failure::Failure;
use crate::file_kind::{FileKind, expect_kind};
use crate::input;
use crate::presets;
use crate::visible::ShownPath as _;

/// Runs the command of the arguments.
pub(crate) fn run(cli: Cli) -> Result<ExitCode, Failure> {
    let Some(command) = cli.command else { return welcome::run() };
    match command {
        Command::Demo(args) => demo::run(&args),
        Command::Diagnose(args) => diagnose::run(&args),
        Command::Watch(args) => watch::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::WhatIf(args) => whatif::run(args),
        Command::Run(args) => run::run(args),
        Command::Scenario(command) => scenario::run(command),
        Command::Reproduce(args) => reproduce::run(&args),
        Command::Suite(command) => suite::run(command),
        Command::Hunt(args) => hunt::run(&args),
        Command::Interop(args) => interop::run(args),
        Command::Sweep(args) => sweep::run(args),
        Command::Table(args) => table::run(&args),
        Command::Read(args) => read::run(&args),
        Command::ImportIni(args) => import_ini::run(&args),
        Command::Theory(command) => theory::run(command),
        Command::Wire(command) => wire::run(command),
        Command::Compare(args) => compare::run(args),
        Command::Kernel(command) => kernel::run(command),
        Command::Stack(command) => stack::run(command),
        Command::Cc(command) => cc::run(command),
        Command::Mcp(args) => mcp::run(&args),
        Command::Schema(args) => schema::run(&args),
        Command::Completions(args) => generated::completions(&args),
        Command::Man(args) => generated::man(&args),
        Command::Packetdrill(args) => packetdrill::run(&args),
    }
}

/// Returns an error for outputs whose feature is not compiled in: Parquet is not by default, so that
/// a first build is fast.
pub(crate) fn needs_features(parquet: bool, png: bool) -> Result<(), Failure> {
    let lacks = [
        ("--parquet", "parquet", parquet && !cfg!(feature = "parquet")),
        ("--png", "png", png && !cfg!(feature = "png")),
    ];
    match lacks.into_iter().find(|(.., lacks)| *lacks) {
        Some((option, feature, _)) => {
            Err(Failure::new(format!("{option}: this build lacks the feature `{feature}`"))
                .hint("build with: cargo build --release --all-features"))
        }
        None => Ok(()),
    }
}

/// Reads a sender of a suite or a hunt, a controller of the user's included.
fn sender(text: &str) -> Result<::suite::SuiteSender, Failure> {
    ::suite::SuiteSender::read_any(text)
        .map_err(|error| Failure::new(error.message).hint(error.hint))
}

/// Resolves the files that a scenario names relative to its directory.
fn files_beside(scenario: &Path) -> Files {
    let dir = scenario.parent().unwrap_or(Path::new("")).to_owned();
    let read = dir.clone();
    cc::with_libraries(Files::new(move |name| input::read_beside(&read, name)), &dir)
}

/// Loads the scenario of the arguments with its overrides; all its hosts are models.
fn load_scenario(args: ScenarioArgs) -> Result<(PathBuf, Loaded), Failure> {
    load_with(args, false, Stacks::Refused, true)
}

/// The scenario the arguments name, some of whose hosts may be real kernels or QUIC stacks.
fn load_with_kernels(args: ScenarioArgs, stacks: Stacks) -> Result<(PathBuf, Loaded), Failure> {
    load_with(args, true, stacks, true)
}

/// The error of a command without its scenario.
fn no_scenario() -> Failure {
    Failure::new("no scenario file given").hint(
        "name it first: FILE.toml, or one that the program has, listed by: ackclock scenario new --list",
    )
}

/// Reads a scenario: its name in messages, and its text. With `kinds` a file of another kind is
/// rejected by what it is, not by its first wrong byte.
fn scenario_text(file: &Path, kinds: bool) -> Result<(String, String), Failure> {
    if let Some(sample) = presets::named(file)? {
        return Ok((file.shown(), sample.text.to_owned()));
    }
    if kinds && file.is_dir() {
        expect_kind(file, "run", "a scenario")?;
    }
    let bytes = input::read(file)?;
    let name = match file == Path::new("-") {
        true => "standard input".to_owned(),
        false => file.shown(),
    };
    if let Some(kind @ (FileKind::Recording(_) | FileKind::Script | FileKind::Ini)) =
        FileKind::of_bytes(file, &bytes)
        && kinds
    {
        let message = format!("{name} is {}, not a scenario", kind.name());
        let mut advice = format!("for such files: ackclock {} {}", kind.command(), file.shown());
        if matches!(kind, FileKind::Recording(InputKind::Capture)) {
            advice += &format!("; a scenario of it: ackclock scenario from {}", file.shown());
        }
        return Err(Failure::new(message).hint(advice));
    }
    let text = decode(&bytes, &name).map_err(Failure::Scenario)?;
    Ok((name, text.to_owned()))
}

/// Loads a scenario; `kinds` rejects files of other kinds by what they are.
fn load_with(
    args: ScenarioArgs,
    kernels: bool,
    stacks: Stacks,
    kinds: bool,
) -> Result<(PathBuf, Loaded), Failure> {
    let Some(file) = args.file else {
        return Err(no_scenario());
    };
    let (name, text) = scenario_text(&file, kinds)?;
    let overrides = Overrides {
        set: args.set,
        seed: args.seed,
        files: files_beside(&file),
        kernels,
        stacks,
        ..Overrides::default()
    };
    let loaded = load(&text, &name, &overrides).map_err(Failure::Scenario)?;
    Ok((file, loaded))
}
