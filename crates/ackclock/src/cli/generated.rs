//! Arguments of `completions`, `man` and `schema`.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  ackclock completions bash > ~/.local/share/bash-completion/completions/ackclock
  ackclock completions zsh > ~/.zfunc/_ackclock       with ~/.zfunc in fpath
  ackclock completions fish > ~/.config/fish/completions/ackclock.fish
  ackclock completions powershell >> $PROFILE";

/// Arguments of `completions`.
#[derive(Debug, Args)]
#[command(after_help = COMPLETIONS_EXAMPLES)]
pub(crate) struct CompletionsArgs {
    /// Shell to complete commands in
    #[arg(value_name = "SHELL")]
    pub(crate) shell: Shell,
}

const SCHEMA_EXAMPLES: &str = "\
Examples:
  ackclock schema                              the commands with a schema
  ackclock schema diagnose > diagnose.schema.json
  ackclock schema wire send                    that of all commands of `wire`

The schema of scenario files is printed by: ackclock scenario schema";

/// Arguments of `schema`.
#[derive(Debug, Args)]
#[command(after_help = SCHEMA_EXAMPLES)]
pub(crate) struct SchemaArgs {
    /// Command whose JSON the schema describes [default: a list of all]
    #[arg(value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

const MAN_EXAMPLES: &str = "\
Examples:
  ackclock man ~/.local/share/man/man1 && man ackclock-diagnose";

/// Arguments of `man`.
#[derive(Debug, Args)]
#[command(after_help = MAN_EXAMPLES)]
pub(crate) struct ManArgs {
    /// Directory of the pages, which is created
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
}
