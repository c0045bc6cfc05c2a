//! Arguments of `hunt`.

use std::path::PathBuf;

use clap::Args;
use hunt::HuntGoal;

const HUNT_EXAMPLES: &str = "\
Examples:
  ackclock hunt --cc bbr --goal loss                 where Linux's BBR version 1 loses packets
  ackclock hunt --cc freebsd-13.2/newreno --goal utilisation --out cases
  ackclock hunt --cc cubic --goal starvation --without round-trip-ratio
  ackclock hunt --cc cubic --goal delay --limit 4 --seed 2 --json
  ackclock hunt --cc mine.py:Mine --goal loss        a controller of your own
  ackclock hunt --cc ./tcp_mine.so --goal loss       a kernel's own file (ackclock cc build)
  ackclock hunt --cc cubic --goal delay --space      what the worlds are made of

Exit status: 0 nothing found within the limits; 1 a case was found; 2 an error in arguments or
files.";

/// Arguments of `hunt`.
#[derive(Debug, Args)]
#[command(after_help = HUNT_EXAMPLES)]
pub(crate) struct HuntArgs {
    /// The sender: PROFILE/CC, or reno, cubic, bbr, bbr3 (Linux), newreno (FreeBSD), or one of your own:
    /// FILE.py:CLASS in Python, FILE.so of `ackclock cc build`, or these after PROFILE/
    #[arg(long, value_name = "SENDER")]
    pub(crate) cc: String,
    /// What makes a world bad: starvation, utilisation, delay, loss
    #[arg(long, value_name = "GOAL")]
    pub(crate) goal: HuntGoal,
    /// Figure beyond which a world counts [default: starvation 10 %, utilisation 50 %, delay 2
    /// round trips, loss 2 %]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) limit: Option<f64>,
    /// Numbers and parts of the search space to leave out
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) without: Vec<String>,
    /// Worlds to run, half of them drawn at random
    #[arg(long, value_name = "COUNT", default_value_t = 4_000, value_parser = worlds)]
    pub(crate) worlds: usize,
    /// Seed of the search
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Threads [default: as many as processors]
    #[arg(short = 'j', long, value_name = "N")]
    pub(crate) jobs: Option<usize>,
    /// Write the scenario file of each case into this directory
    #[arg(short = 'o', long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Print the report as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Print the search space without running it: its numbers and parts with their levels
    #[arg(long, conflicts_with_all = ["out", "json"])]
    pub(crate) space: bool,
}

fn worlds(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(worlds) if (2..=10_000_000).contains(&worlds) => Ok(worlds),
        _ => Err("expected a number of worlds from 2 to 10000000".to_owned()),
    }
}
