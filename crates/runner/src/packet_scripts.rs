//! Packet scripts: parsed, run against a profile, and reported as a table, as JSON, or as
//! compiler-style diagnostics.

mod against;
mod junit;
mod summary;
mod text;

use std::net::{IpAddr, Ipv4Addr};

use script::{Definitions, Diagnostic, RunOptions, ScriptVerdict, parse_with, run};
use serde::Serialize;
use tcp::profile::{Family, NAMES, TcpProfile};
use units::Duration;

pub use against::{Compared, compared_json, compared_table};
pub use junit::junit;
pub use script::real;
pub use script::{NonFatal, ScriptOverrides, ScriptPacketSeen};
pub use summary::summary;
pub use text::{details, table};

/// Default profile of a script.
pub const DEFAULT_PROFILE: &str = "linux-6.18";

/// How scripts are run.
#[derive(Clone, Copy)]
pub struct ScriptSettings<'a> {
    /// Profile of all scripts, overriding theirs.
    pub profile: Option<&'a str>,
    /// Ignore the PSH flag in comparisons.
    pub relaxed_psh: bool,
    /// Return all packets of the runs.
    pub packets: bool,
    /// Words that scripts use, with their values.
    pub definitions: &'a [(String, String)],
    /// Values of options that replace the scripts'.
    pub overrides: ScriptOverrides,
    /// Reads a file that a script's commands name.
    pub files: &'a dyn Fn(&str) -> Option<String>,
    /// Starts a real host that runs the scripts in place of the model.
    pub real: Option<real::Boot<'a>>,
}

/// The outcome of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// All events matched.
    Passed,
    /// The first difference.
    Failed(Diagnostic),
    /// It uses an unsupported feature.
    Unsupported(Diagnostic),
    /// It cannot be parsed.
    Unreadable(Diagnostic),
}

/// A script and its outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptResult {
    /// Its file as given.
    pub file: String,
    /// The profile it was run against.
    pub profile: String,
    /// The outcome.
    pub ending: Ending,
    /// Number of events run.
    pub events: usize,
    /// Elapsed virtual time.
    pub time: Duration,
    /// Commands of the script that were not run.
    pub notes: Vec<String>,
    /// All packets, sent and received, if they were asked for.
    pub packets: Vec<String>,
    /// The same as segments.
    pub segments: Vec<ScriptPacketSeen>,
    /// Addresses of the host and of the peer.
    pub addresses: (IpAddr, IpAddr),
}

/// Number of scripts by outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct ScriptTotals {
    /// Scripts that passed.
    pub passed: usize,
    /// Scripts that failed.
    pub failed: usize,
    /// Scripts that use unsupported features.
    pub unsupported: usize,
    /// Scripts that cannot be parsed.
    pub unreadable: usize,
}

impl ScriptTotals {
    /// Counts the outcomes.
    pub fn of<'a>(results: impl IntoIterator<Item = &'a ScriptResult>) -> Self {
        let mut totals = Self::default();
        for one in results {
            *match one.ending {
                Ending::Passed => &mut totals.passed,
                Ending::Failed(_) => &mut totals.failed,
                Ending::Unsupported(_) => &mut totals.unsupported,
                Ending::Unreadable(_) => &mut totals.unreadable,
            } += 1;
        }
        totals
    }

    /// The number of scripts.
    pub const fn all(&self) -> usize {
        self.passed + self.failed + self.unsupported + self.unreadable
    }
}

/// Checks that a profile exists.
///
/// # Errors
/// The names of all profiles, if it does not.
pub fn check_profile(name: &str) -> Result<(), &'static [&'static str]> {
    if NAMES.contains(&name) { Ok(()) } else { Err(&NAMES) }
}

/// The profile that a script names in a comment: `// profile: freebsd-14.3`.
fn named_profile(text: &str) -> Option<&str> {
    text.lines()
        .take_while(|line| line.trim_start().starts_with("//") || line.trim().is_empty())
        .find_map(|line| line.trim_start().strip_prefix("//")?.trim().strip_prefix("profile:"))
        .map(str::trim)
}

/// Parses and runs a script.
pub fn run_script(file: &str, text: &str, settings: &ScriptSettings<'_>) -> ScriptResult {
    let name = settings.profile.or(named_profile(text)).unwrap_or(DEFAULT_PROFILE);
    let mut results = ScriptResult {
        file: file.to_owned(),
        profile: name.to_owned(),
        ending: Ending::Passed,
        events: 0,
        time: Duration::ZERO,
        notes: Vec::new(),
        packets: Vec::new(),
        segments: Vec::new(),
        addresses: (Ipv4Addr::UNSPECIFIED.into(), Ipv4Addr::UNSPECIFIED.into()),
    };
    let Some(profile) = TcpProfile::named(name) else {
        results.ending = Ending::Unreadable(unknown_profile(text, name));
        return results;
    };
    let mut definitions = Definitions::default();
    // packetdrill defines the name of its system.
    definitions.define(if profile.family == Family::FreeBsd { "FreeBSD" } else { "Linux" }, "");
    for (name, value) in settings.definitions {
        definitions.define(name, value);
    }
    let script = match parse_with(text, &definitions) {
        Ok(script) => script,
        Err(diagnostic) => {
            results.ending = Ending::Unreadable(diagnostic);
            return results;
        }
    };
    let options = RunOptions {
        profile: &profile,
        relaxed_psh: settings.relaxed_psh,
        packets: settings.packets,
        overrides: settings.overrides,
        files: settings.files,
        real: settings.real,
    };
    let outcome = run(text, &script, &options);
    results.ending = match outcome.verdict {
        ScriptVerdict::Passed => Ending::Passed,
        ScriptVerdict::Failed(diagnostic) => Ending::Failed(diagnostic),
        ScriptVerdict::Unsupported(diagnostic) => Ending::Unsupported(diagnostic),
    };
    results.events = outcome.events;
    results.time = outcome.time;
    results.notes = outcome.notes;
    results.packets = outcome.packets;
    results.segments = outcome.segments;
    results.addresses = outcome.addresses;
    results
}

fn unknown_profile(text: &str, name: &str) -> Diagnostic {
    let at = text.lines().position(|line| line.contains("profile:") && line.contains(name));
    let line = at.unwrap_or(0);
    let source_line = text.lines().nth(line).unwrap_or_default();
    let byte = source_line.rfind(name).unwrap_or(0);
    Diagnostic {
        line: line + 1,
        column: source_line[..byte].chars().count() + 1,
        width: name.chars().count(),
        source_line: source_line.into(),
        message: "there is no such profile".into(),
        expected: Some(NAMES.join(", ").into()),
        found: None,
        hint: scenario::not_modelled::profile(name, &NAMES).map(Into::into),
    }
}

#[derive(Serialize)]
struct ScriptRow<'a> {
    file: &'a str,
    profile: &'a str,
    verdict: &'static str,
    events: usize,
    time_s: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expected: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    found: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'a str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    notes: &'a [String],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    packets: &'a [String],
}

#[derive(Serialize)]
struct ScriptReport<'a> {
    scripts: Vec<ScriptRow<'a>>,
    totals: ScriptTotals,
}

impl Ending {
    /// The outcome in one word.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed(_) => "failed",
            Self::Unsupported(_) => "unsupported",
            Self::Unreadable(_) => "unreadable",
        }
    }

    /// The diagnostic of the outcome, if it did not pass.
    pub const fn diagnostic(&self) -> Option<&Diagnostic> {
        match self {
            Self::Passed => None,
            Self::Failed(d) | Self::Unsupported(d) | Self::Unreadable(d) => Some(d),
        }
    }
}

/// The results as JSON.
pub fn json(results: &[ScriptResult]) -> String {
    let scripts = results
        .iter()
        .map(|one| {
            let said = one.ending.diagnostic();
            ScriptRow {
                file: &one.file,
                profile: &one.profile,
                verdict: one.ending.word(),
                events: one.events,
                time_s: one.time.as_secs_f64(),
                line: said.map(|d| d.line),
                column: said.map(|d| d.column),
                message: said.map(|d| &*d.message),
                expected: said.and_then(|d| d.expected.as_deref()),
                found: said.and_then(|d| d.found.as_deref()),
                hint: said.and_then(|d| d.hint.as_deref()),
                notes: &one.notes,
                packets: &one.packets,
            }
        })
        .collect();
    let report = ScriptReport { scripts, totals: ScriptTotals::of(results) };
    serde_json::to_string_pretty(&report).unwrap_or_default() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results(text: &str) -> ScriptResult {
        run_script(
            "a.pkt",
            text,
            &ScriptSettings {
                profile: None,
                relaxed_psh: false,
                packets: false,
                definitions: &[],
                overrides: ScriptOverrides::default(),
                files: &|_| None,
                real: None,
            },
        )
    }

    #[test]
    fn a_script_may_name_its_profile() {
        let text = "// what it shows\n// profile: freebsd-13.2\n0 socket(..., SOCK_STREAM, 0) = 3";
        assert_eq!(
            (results(text).profile.as_str(), results(text).ending),
            ("freebsd-13.2", Ending::Passed)
        );
        let other = results(&text.replace("13.2", "13.9"));
        let said = other.ending.diagnostic().unwrap();
        assert_eq!((other.ending.word(), said.line, said.column), ("unreadable", 2, 13));
        let hint = "this version is not modelled; the nearest is `freebsd-13.2`";
        assert_eq!(said.hint.as_deref(), Some(hint));
        assert_eq!(results("0 close(9) = -1 EBADF").profile, DEFAULT_PROFILE);
    }

    #[test]
    fn endings_are_counted_and_shown() {
        let all = [
            results("0 close(9) = -1 EBADF"),
            results("0 close(9) = 0"),
            results("0 splice(1) = 3"),
            results("0 close(9 = 0"),
        ];
        let totals = ScriptTotals::of(&all);
        assert_eq!(
            (totals.passed, totals.failed, totals.unsupported, totals.unreadable),
            (1, 1, 1, 1)
        );
        insta::assert_snapshot!(format!(
            "{}{}{}",
            table(&all),
            details(&all, scenario::ReportStyle::Plain),
            json(&all[1..2])
        ));
    }
}
