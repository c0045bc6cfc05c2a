//! Arguments of `kernel`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// The subcommands of `kernel`.
#[derive(Debug, Subcommand)]
pub(crate) enum KernelCommand {
    /// Build a kernel from Debian's source package, an archive or a tree
    #[command(after_help = BUILD_EXAMPLES)]
    Build(BuildArgs),
    /// List the kernels that scenarios can name
    List(ListArgs),
    /// Boot a kernel, transfer 1 MB twice, and compare the packets of both transfers
    #[command(after_help = CHECK_EXAMPLES)]
    Check(KernelCheckArgs),
}

pub(crate) const KERNEL_EXAMPLES: &str = "\
Examples:
  ackclock kernel build
  ackclock kernel check
  ackclock kernel build --source ~/src/linux --name my-patch
  ackclock run my.toml --set host.sender.kernel=linux-6.12 --pcap kernel.pcapng

A kernel is User-Mode Linux: the Linux kernel as an ordinary program, without root. As a host of a
scenario it runs in virtual time. Kernels are kept in ~/.cache/ackclock. See docs/kernels.md.

Exit status: 0 all is well; 1 the runs of a check differ; 2 a mistake, or a tool that is missing.";

const BUILD_EXAMPLES: &str = "\
Examples:
  ackclock kernel build
  ackclock kernel build 6.1
  ackclock kernel build --source linux-6.18.tar.xz
  ackclock kernel build --source linux-source-7.2_7.2.13-1_all.deb
  ackclock kernel build --source ~/src/linux --name my-patch --hz 1000

It needs gcc, make, flex, bison, bc and libc's static library. The first build takes about seven
minutes of processor time, one after a changed line about ten seconds. A tree is left as it is.";

const CHECK_EXAMPLES: &str = "\
Examples:
  ackclock kernel check
  ackclock kernel check my-patch --json";

/// Arguments of `kernel build`.
#[derive(Debug, Args)]
pub(crate) struct BuildArgs {
    /// Version of Debian's package linux-source-VERSION
    #[arg(value_name = "VERSION", default_value = "6.12", conflicts_with = "source")]
    pub(crate) version: String,
    /// Build this instead: a tarball, a Debian package with one, or a tree
    #[arg(long, value_name = "PATH")]
    pub(crate) source: Option<PathBuf>,
    /// Name of the kernel [default: linux-VERSION; of a tree, its directory]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Ticks of the kernel clock per second (CONFIG_HZ)
    #[arg(long, value_name = "HZ", default_value_t = 250, value_parser = clap::value_parser!(u32).range(24..=1_000))]
    pub(crate) hz: u32,
    /// Concurrent compilations [default: the number of processors]
    #[arg(short = 'j', long, value_name = "COUNT")]
    pub(crate) jobs: Option<usize>,
}

/// Arguments of `kernel list`.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Print the kernels as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `kernel check`.
#[derive(Debug, Args)]
pub(crate) struct KernelCheckArgs {
    /// Kernel to check [default: all]
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
}
