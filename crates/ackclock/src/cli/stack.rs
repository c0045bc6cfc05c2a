//! Arguments of `stack`.

use clap::{Args, Subcommand};

/// The subcommands of `stack`.
#[derive(Debug, Subcommand)]
pub(crate) enum StackCommand {
    /// Build a QUIC stack from the registry of its language, and check it
    #[command(after_help = BUILD_EXAMPLES)]
    Build(StackBuildArgs),
    /// List the stacks that are built, and those that can be
    List,
    /// Run a stack twice, and compare the packets of both runs
    Check(StackCheckArgs),
}

pub(crate) const STACK_EXAMPLES: &str = "\
Examples:
  ackclock stack build quic-go@v0.65
  ackclock stack check
  ackclock run my.toml --set host.client.stack=quic-go-0.65 --set host.server.stack=quic-go-0.65

A stack is a real implementation of QUIC, with a small program around it whose clock is the simulator's. As the hosts
of a scenario it runs in virtual time: equal runs send equal packets. Stacks are kept in ~/.cache/ackclock. See
docs/stacks.md.

Exit status: 0 all is well; 1 the runs of a check differ; 2 a mistake, or a tool that is missing.";

const BUILD_EXAMPLES: &str = "\
Examples:
  ackclock stack build quic-go@v0.65
  ackclock stack build quinn-proto@0.11.19

quic-go needs Go 1.26 or later, stacks in Rust need Cargo, aioquic needs Python; each fetches its stack from the registry
of its language.";

/// Arguments of `stack build`.
#[derive(Debug, Args)]
pub(crate) struct StackBuildArgs {
    /// The stack and its version (see: ackclock stack list)
    #[arg(value_name = "STACK@VERSION")]
    pub(crate) name: String,
}

/// Arguments of `stack check`.
#[derive(Debug, Args)]
pub(crate) struct StackCheckArgs {
    /// Stack to check [default: all that are built]
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
}
