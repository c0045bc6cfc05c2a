//! Arguments of `cc`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// The subcommands of `cc`.
#[derive(Debug, Subcommand)]
pub(crate) enum CcCommand {
    /// Compile a controller of Linux (struct tcp_congestion_ops), or one with ackclock-cc.h, as a library
    #[command(after_help = BUILD_EXAMPLES)]
    Build(CcBuildArgs),
    /// Print what a library is: the controller's name and its operations
    Show(CcShowArgs),
    /// Print ackclock-cc.h, the interface of libraries in any language
    Header,
}

pub(crate) const CC_EXAMPLES: &str = "\
Examples:
  ackclock cc build tcp_mine.c
  ackclock suite rfc9743 --cc ./tcp_mine.so
  ackclock hunt --cc ./tcp_mine.so --goal loss
  ackclock run my.toml --set host.client.cc=./tcp_mine.so
  ackclock cc header

A library is named wherever a controller is; hosts with it have Linux's stack. It runs in a process of its own, so that a
crash or an endless loop in it is an error message; \"in-process:./tcp_mine.so\" runs it in this process, which is faster.
See docs/adding-a-controller.md.";

const BUILD_EXAMPLES: &str = "\
Examples:
  ackclock cc build tcp_mine.c
  ackclock cc build tcp_yeah.c tcp_vegas.c -o yeah.so
  ackclock cc build tcp_mine.c --hz 1000 --compiler clang

The file is compiled unchanged against headers of Ackclock's own. What it uses of the kernel that Ackclock does not have is
an error with the line.";

/// Arguments of `cc build`.
#[derive(Debug, Args)]
pub(crate) struct CcBuildArgs {
    /// The controller's file, and further files whose functions it calls
    #[arg(value_name = "FILE.c", required = true)]
    pub(crate) sources: Vec<PathBuf>,
    /// The library [default: FILE.so beside the file]
    #[arg(short, long, value_name = "FILE.so")]
    pub(crate) output: Option<PathBuf>,
    /// Ticks per second of the kernel (CONFIG_HZ), as the hosts have them
    #[arg(long, value_name = "N", default_value_t = 250, value_parser = clap::value_parser!(u32).range(24..=10_000))]
    pub(crate) hz: u32,
    /// The C compiler
    #[arg(long, value_name = "PROGRAM", default_value = "cc")]
    pub(crate) compiler: String,
}

/// Arguments of `cc show`.
#[derive(Debug, Args)]
pub(crate) struct CcShowArgs {
    /// The library
    #[arg(value_name = "FILE.so")]
    pub(crate) library: PathBuf,
}
