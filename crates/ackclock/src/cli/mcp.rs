//! Arguments of `mcp`.

use std::path::PathBuf;

use clap::Args;
use scenario::units_text;
use units::{Bytes, Duration};

use super::theory::words;

const EXAMPLES: &str = "\
Examples:
  ackclock mcp --allow ~/captures
  ackclock mcp --allow ~/captures --allow ~/scenarios --time-limit 20s --file-limit 50MB
  (a client starts it, for example with this entry of its configuration:)
  { \"mcpServers\": { \"ackclock\": { \"command\": \"ackclock\", \"args\": [\"mcp\", \"--allow\", \"/srv/captures\"] } } }

Tools: diagnose, flow, explain, whatif, run, theory, compare. They read files of the allowed folders and below,
and write none. Each call is a process of its own that ends after --time-limit. Requests and answers are
JSON-RPC 2.0, a line each, on standard input and output (Model Context Protocol, 2024-11-05 to 2025-11-25).";

/// Arguments of `mcp`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct McpArgs {
    /// Folder whose files the tools may read, with all folders in it; may be given several times
    #[arg(long, value_name = "DIR", required = true)]
    pub(crate) allow: Vec<PathBuf>,
    /// Longest time of a call
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = time)]
    pub(crate) time_limit: Duration,
    /// Largest file that is read
    #[arg(long, value_name = "SIZE", default_value = "256MB", value_parser = size)]
    pub(crate) file_limit: Bytes,
    /// Most memory of a call; on Linux only
    #[arg(long, value_name = "SIZE", default_value = "4GB", value_parser = size)]
    pub(crate) memory_limit: Bytes,
    /// Longest answer
    #[arg(long, value_name = "SIZE", default_value = "60kB", value_parser = size)]
    pub(crate) answer_limit: Bytes,
}

pub(super) fn time(text: &str) -> Result<Duration, String> {
    units_text::duration(text).map_err(words)
}

pub(super) fn size(text: &str) -> Result<Bytes, String> {
    units_text::size(text).map_err(words)
}
