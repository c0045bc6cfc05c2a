//! `ackclock completions` and `ackclock man`: files that are made from the arguments.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use clap::{Command, CommandFactory};

use crate::cli::{Cli, CompletionsArgs, ManArgs};
use crate::failure::Failure;
use crate::output::{OutFile, print};
use crate::visible::ShownPath as _;

/// Prints the completions for a shell.
pub(super) fn completions(args: &CompletionsArgs) -> Result<ExitCode, Failure> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "ackclock", &mut text);
    print(&String::from_utf8_lossy(&text))?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the manual pages: `ackclock.1` and one for each command.
pub(super) fn man(args: &ManArgs) -> Result<ExitCode, Failure> {
    std::fs::create_dir_all(&args.dir)
        .map_err(|error| Failure::file("write", &args.dir, &error))?;
    let mut root = Cli::command().disable_help_subcommand(true);
    root.build();
    let mut names = Vec::new();
    page(&root, "ackclock", &args.dir, &mut names)?;
    print(&format!("{} manual pages in {}\n", names.len(), args.dir.shown()))?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the page of a command and those of its subcommands.
fn page(command: &Command, name: &str, dir: &Path, names: &mut Vec<String>) -> Result<(), Failure> {
    let path = dir.join(format!("{name}.1"));
    let failure = |error: &std::io::Error| Failure::file("write", &path, error);
    let mut text = Vec::new();
    let rendered = clap_mangen::Man::new(command.clone()).manual("Ackclock").render(&mut text);
    rendered.map_err(|error| failure(&error))?;
    let mut out = OutFile::create(&path)?;
    out.write_all(&text).map_err(|error| failure(&error))?;
    out.commit()?;
    names.push(name.to_owned());
    for sub in command.get_subcommands() {
        page(sub, &format!("{name}-{}", sub.get_name()), dir, names)?;
    }
    Ok(())
}
