//! Arguments that select and change a scenario, and arguments of `scenario`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::FromArgs;

/// A scenario file and its overrides.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ScenarioArgs {
    /// Scenario file (TOML; see docs/scenario.md), or one that the program has, such as preset:lte
    pub(crate) file: Option<PathBuf>,
    /// Set one key of the scenario: dotted as in TOML, list entries by index from 0; or abbreviated
    /// where unambiguous: sender.cc, path.delay, upload.bulk
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Set the seed of every random stream
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    pub(crate) seed: Option<u64>,
}

/// The subcommands of `scenario`.
#[derive(Debug, Subcommand)]
pub(crate) enum ScenarioCommand {
    /// Report all errors of a scenario file without running it
    Check(CheckArgs),
    /// Print a scenario with all overrides applied: the text that its SHA-256 covers
    #[command(after_help = SHOW_EXAMPLES, override_usage = "ackclock scenario show [OPTIONS] <FILE>")]
    Show(ScenarioArgs),
    /// Write a scenario to start from: one that the program has, or one fitted to a capture
    New(NewArgs),
    /// Fit a scenario to a transfer in a capture
    From(FromArgs),
    /// Print the path of a scenario as commands of an emulator: netem, tc or dummynet
    Export(ExportArgs),
    /// Read commands of tc or dummynet, and print a scenario with their path
    Import(ImportArgs),
    /// Print all keys of scenario files and all knobs of each system, as Markdown tables
    #[command(after_help = KEYS_EXAMPLES)]
    Keys,
    /// List the profiles of hosts, and what each was measured against
    Profiles(ProfilesArgs),
    /// Print the JSON schema of scenario files, for editors
    #[command(after_help = SCHEMA_EXAMPLES)]
    Schema,
}

pub(super) const SCENARIO_EXAMPLES: &str = "\
Examples:
  ackclock scenario new transfer.toml
  ackclock scenario check transfer.toml
  ackclock scenario keys
  ackclock scenario schema > ackclock.schema.json";

const KEYS_EXAMPLES: &str = "\
Examples:
  ackclock scenario keys
  ackclock scenario keys | grep sendbuf";

const CHECK_EXAMPLES: &str = "\
Examples:
  ackclock scenario check transfer.toml
  ackclock scenario check transfer.toml --set flow.0.bulk=10MB
  ackclock scenario check transfer.toml --json";

const SHOW_EXAMPLES: &str = "\
Examples:
  ackclock scenario show transfer.toml --set duration=10s --seed 7 > other.toml";

const SCHEMA_EXAMPLES: &str = "\
Examples:
  ackclock scenario schema > ackclock.schema.json
  (then, as the first line of a scenario, for editors with Taplo or Even Better TOML:)
  #:schema ./ackclock.schema.json";

/// Arguments of `scenario check`.
#[derive(Debug, Args)]
#[command(after_help = CHECK_EXAMPLES, override_usage = "ackclock scenario check [OPTIONS] <FILE>")]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArgs,
    /// Print the errors as JSON on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

const NEW_EXAMPLES: &str = "\
Examples:
  ackclock scenario new my.toml                        an upload of 20 MB, each line explained
  ackclock scenario new my.toml --from preset:lte      a line whose rate wanders
  ackclock scenario new my.toml --from slow.pcap       path, hosts and application of a captured transfer
  ackclock scenario new --list                         all that the program has";

/// Arguments of `scenario new`.
#[derive(Debug, Args)]
#[command(after_help = NEW_EXAMPLES, override_usage = "ackclock scenario new [OPTIONS] <FILE>")]
pub(crate) struct NewArgs {
    /// File to write; - is standard output
    #[arg(required_unless_present = "list")]
    pub(crate) file: Option<PathBuf>,
    /// What to start from: preset:NAME, or a capture, a qlog or pasted text as of scenario from
    #[arg(long, value_name = "SOURCE")]
    pub(crate) from: Option<PathBuf>,
    /// The connection of the capture, by Wireshark's number (tcp.stream) [default: the one with the most data]
    #[arg(long, value_name = "N", requires = "from")]
    pub(crate) flow: Option<u32>,
    /// Key log with which packets of QUIC in the capture are decrypted
    #[arg(long, value_name = "FILE", requires = "from")]
    pub(crate) keylog: Option<PathBuf>,
    /// Replace the file if it is there already
    #[arg(long)]
    pub(crate) force: bool,
    /// List the scenarios that the program has
    #[arg(long, conflicts_with_all = ["file", "from", "force"])]
    pub(crate) list: bool,
    /// Print the list as JSON
    #[arg(long, requires = "list")]
    pub(crate) json: bool,
}

const PROFILES_EXAMPLES: &str = "\
Examples:
  ackclock scenario profiles
  ackclock scenario profiles --json";

/// Arguments of `scenario profiles`.
#[derive(Debug, Args)]
#[command(after_help = PROFILES_EXAMPLES)]
pub(crate) struct ProfilesArgs {
    /// Print the list as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

const EXPORT_EXAMPLES: &str = "\
Examples:
  ackclock scenario export my.toml > path.sh                       for Linux: tc qdisc ... netem
  ackclock scenario export my.toml --to tc > path.sh               netem, tbf, htb with fq_codel and others
  ackclock scenario export my.toml --to dummynet --devices em0,em1   for FreeBSD
  ackclock scenario export my.toml --set path.delay=20ms

The first device is the one that packets of the direction `forward` leave through, the second that of `return`.
Elements that the emulator has not, such as an ACK filter, are an error.";

/// Arguments of `scenario export`.
#[derive(Debug, Args)]
#[command(after_help = EXPORT_EXAMPLES, override_usage = "ackclock scenario export [OPTIONS] <FILE>")]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArgs,
    /// Emulator
    #[arg(long, value_name = "EMULATOR", default_value = "netem", value_parser = ["netem", "tc", "dummynet"])]
    pub(crate) to: String,
    /// Index of the path, if there are several
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) path: usize,
    /// Devices of both directions
    #[arg(long, value_name = "FORWARD,RETURN", default_value = "eth0,eth1")]
    pub(crate) devices: String,
}

const IMPORT_EXAMPLES: &str = "\
Examples:
  ackclock scenario import path.sh > my.toml
  tc qdisc show | ackclock scenario import - > my.toml

The first device or pipe is the direction `forward`, the second `return`; without a second, `return` has no elements.
Hosts and transfer are an example. A word that no scenario can represent, such as `cake`, is an error.";

/// Arguments of `scenario import`.
#[derive(Debug, Args)]
#[command(after_help = IMPORT_EXAMPLES)]
pub(crate) struct ImportArgs {
    /// File with commands of tc, ip or ipfw, or what `tc qdisc show` printed; - is standard input
    pub(crate) file: PathBuf,
}
