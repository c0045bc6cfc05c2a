//! Goodput and timeouts of long runs (`long-runs.csv`): 1 Gbit/s, 45 us one-way delay, unlimited
//! data.

use std::fs;
use std::path::Path;

use super::run::run_text;
use crate::golden::own_copy;

/// A row of the table.
#[derive(Debug)]
struct LongRun {
    profile: &'static str,
    title: String,
    scenario: String,
    seconds: f64,
    mbits: f64,
    timeouts: u64,
}

/// Number of rows of a version that match the recording.
#[derive(Debug, Default, Clone, Copy)]
struct Same {
    all: u32,
    goodput: u32,
    timeouts: u32,
    both: u32,
}

/// Runs each row and prints the rows that differ and a summary for each version; returns false if a
/// row cannot be read or run.
pub(super) fn compare(place: &Path) -> bool {
    let rows = fs::read_to_string(place.join("long-runs.csv")).map_err(|error| error.to_string());
    let lists = fs::read_to_string(own_copy("published").join("cubic-hz-losses.txt"));
    let (Ok(rows), Ok(lists)) = (rows, lists) else {
        eprintln!("{}: cannot read the long runs and their losses", place.display());
        return false;
    };
    let runs: Option<Vec<LongRun>> =
        rows.lines().skip(1).map(|row| LongRun::read(row, &lists)).collect();
    let Some(runs) = runs else {
        eprintln!("{}: a row of long-runs.csv makes no sense", place.display());
        return false;
    };
    for version in ["freebsd-13.0", "freebsd-14.3", "freebsd-main"] {
        let mut same = Same::default();
        for row in runs.iter().filter(|row| row.profile == version) {
            if let Err(error) = row.compare(&mut same) {
                eprintln!("{version} {}: {error}", row.title);
                return false;
            }
        }
        println!(
            "{version} long runs {}: goodput within 1 % {}, timeouts equal {}, both {}",
            same.all, same.goodput, same.timeouts, same.both
        );
    }
    true
}

impl LongRun {
    /// Parses `version,cc,hz,loss,seed,seconds,mbit_per_s,rtos,…`.
    fn read(row: &str, lists: &str) -> Option<Self> {
        let mut cells = row.split(',');
        let mut next = || cells.next();
        let profile = match next()? {
            "f13" => "freebsd-13.0",
            "r14" => "freebsd-14.3",
            "main" => "freebsd-main",
            _ => return None,
        };
        let (name, hz, loss, seed) = (next()?, next()?, next()?, next()?);
        let title = format!("{name}, hz {hz}, {loss} {seed}");
        let cc = match (name, profile) {
            ("cubic", "freebsd-13.0") => "cubic-ticks",
            ("cubic", _) => "cubic-usec",
            ("d46546", _) => "cubic-d46546",
            (other, _) => other,
        };
        let loss = match loss.split_once(' ')? {
            ("every", n) => format!("every = {n}"),
            (_, share) => {
                let head = format!("{share} {seed}: ");
                let numbers = lists.lines().find_map(|line| line.strip_prefix(&head))?;
                format!("packets = [{}]", numbers.replace(' ', ", "))
            }
        };
        let (seconds, mbits, timeouts) = (next()?, next()?.parse().ok()?, next()?.parse().ok()?);
        let host = |which: &str| {
            format!(
                "[host.{which}]\nprofile = \"{profile}\"\ncc = \"{cc}\"\ntso = true\n\
                 knobs = {{ \"kern.hz\" = {hz} }}\n"
            )
        };
        let way = "{ link = { rate = \"1Gbit/s\", buffer = \"1MB\" } }";
        let scenario = format!(
            "seed = 1\nduration = \"{seconds}s\"\n{}{}\
             [[path]]\nfrom = \"sender\"\nto = \"sink\"\n\
             forward = [{way}, {{ loss = {{ {loss} }}, only = \"data\" }}, {{ delay = \"45us\" }}]\n\
             return = [{way}, {{ delay = \"45us\" }}]\n\
             [[flow]]\nname = \"f\"\nfrom = \"sender\"\nto = \"sink\"\nbulk = \"unlimited\"\n",
            host("sender"),
            host("sink"),
        );
        Some(Self { profile, title, scenario, seconds: seconds.parse().ok()?, mbits, timeouts })
    }

    /// Runs the row and prints differences.
    fn compare(&self, same: &mut Same) -> Result<(), String> {
        let run = run_text(&self.scenario, &[])?;
        let mbits = run.read as f64 * 8.0 / self.seconds / 1e6;
        let goodput = (mbits / self.mbits - 1.0).abs() <= 0.01;
        let timeouts = run.timeouts == self.timeouts;
        same.all += 1;
        same.goodput += u32::from(goodput);
        same.timeouts += u32::from(timeouts);
        same.both += u32::from(goodput && timeouts);
        if !(goodput && timeouts) {
            println!(
                "  {} long run {}: Mbit/s {:.3} ({:.3}), timeouts {} ({})",
                self.profile, self.title, mbits, self.mbits, run.timeouts, self.timeouts
            );
        }
        Ok(())
    }
}
