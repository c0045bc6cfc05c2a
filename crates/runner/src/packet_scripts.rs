//! Packet scripts: read, run against a profile, and told as a table, as JSON, or as a compiler tells
//! where a text went wrong.

mod text;

use script::{Diagnostic, Options, Verdict, parse, run};
use serde::Serialize;
use tcp::profile::{NAMES, Profile};
use units::Duration;

pub use text::{details, table};

/// Profile of a script that names none.
pub const DEFAULT_PROFILE: &str = "linux-6.18";

/// How scripts are run.
#[derive(Clone, Copy)]
pub struct Settings<'a> {
    /// Profile of all scripts, whatever they say.
    pub profile: Option<&'a str>,
    /// Take a PSH where none is awaited, and none where one is.
    pub relaxed_psh: bool,
    /// Gives the text of a file that a script's commands name.
    pub files: &'a dyn Fn(&str) -> Option<String>,
}

/// How a script ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// As it says.
    Passed,
    /// The first difference.
    Failed(Diagnostic),
    /// It asks for what the engine does not have.
    Unsupported(Diagnostic),
    /// It is no script.
    Unreadable(Diagnostic),
}

/// A script and what came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judged {
    /// Its file, as it was named.
    pub file: String,
    /// The profile it was run against.
    pub profile: String,
    /// How it ended.
    pub ending: Ending,
    /// Events that were run.
    pub events: usize,
    /// Virtual time that passed.
    pub time: Duration,
}

/// How many scripts ended how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Totals {
    /// As they say.
    pub passed: usize,
    /// Otherwise.
    pub failed: usize,
    /// Asking for what the engine does not have.
    pub unsupported: usize,
    /// No scripts.
    pub unreadable: usize,
}

impl Totals {
    /// Counts.
    pub fn of(judged: &[Judged]) -> Self {
        let mut totals = Self::default();
        for one in judged {
            *match one.ending {
                Ending::Passed => &mut totals.passed,
                Ending::Failed(_) => &mut totals.failed,
                Ending::Unsupported(_) => &mut totals.unsupported,
                Ending::Unreadable(_) => &mut totals.unreadable,
            } += 1;
        }
        totals
    }

    /// All scripts.
    pub const fn all(&self) -> usize {
        self.passed + self.failed + self.unsupported + self.unreadable
    }
}

/// Is there a profile of that name?
///
/// # Errors
/// The names there are.
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

/// Reads and runs one script.
pub fn judge(file: &str, text: &str, settings: &Settings<'_>) -> Judged {
    let name = settings.profile.or(named_profile(text)).unwrap_or(DEFAULT_PROFILE);
    let mut judged = Judged {
        file: file.to_owned(),
        profile: name.to_owned(),
        ending: Ending::Passed,
        events: 0,
        time: Duration::ZERO,
    };
    let Some(profile) = Profile::named(name) else {
        judged.ending = Ending::Unreadable(unknown_profile(text, name));
        return judged;
    };
    let script = match parse(text) {
        Ok(script) => script,
        Err(diagnostic) => {
            judged.ending = Ending::Unreadable(diagnostic);
            return judged;
        }
    };
    let options =
        Options { profile: &profile, relaxed_psh: settings.relaxed_psh, files: settings.files };
    let outcome = run(text, &script, &options);
    judged.ending = match outcome.verdict {
        Verdict::Passed => Ending::Passed,
        Verdict::Failed(diagnostic) => Ending::Failed(diagnostic),
        Verdict::Unsupported(diagnostic) => Ending::Unsupported(diagnostic),
    };
    judged.events = outcome.events;
    judged.time = outcome.time;
    judged
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
        hint: scenario::nearest(name, NAMES).map(|near| format!("did you mean `{near}`?").into()),
    }
}

#[derive(Serialize)]
struct Row<'a> {
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
}

#[derive(Serialize)]
struct Report<'a> {
    scripts: Vec<Row<'a>>,
    totals: Totals,
}

impl Ending {
    /// One word for it.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed(_) => "failed",
            Self::Unsupported(_) => "unsupported",
            Self::Unreadable(_) => "unreadable",
        }
    }

    /// What is said of it, and where.
    pub const fn diagnostic(&self) -> Option<&Diagnostic> {
        match self {
            Self::Passed => None,
            Self::Failed(d) | Self::Unsupported(d) | Self::Unreadable(d) => Some(d),
        }
    }
}

/// All of it for programs.
pub fn json(judged: &[Judged]) -> String {
    let scripts = judged
        .iter()
        .map(|one| {
            let said = one.ending.diagnostic();
            Row {
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
            }
        })
        .collect();
    let report = Report { scripts, totals: Totals::of(judged) };
    serde_json::to_string_pretty(&report).unwrap_or_default() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(text: &str) -> Judged {
        judge("a.pkt", text, &Settings { profile: None, relaxed_psh: false, files: &|_| None })
    }

    #[test]
    fn a_script_may_name_its_profile() {
        let text = "// what it shows\n// profile: freebsd-13.2\n0 socket(..., SOCK_STREAM, 0) = 3";
        assert_eq!(
            (judged(text).profile.as_str(), judged(text).ending),
            ("freebsd-13.2", Ending::Passed)
        );
        let other = judged(&text.replace("13.2", "13.9"));
        let said = other.ending.diagnostic().unwrap();
        assert_eq!((other.ending.word(), said.line, said.column), ("unreadable", 2, 13));
        assert_eq!(said.hint.as_deref(), Some("did you mean `freebsd-13.0`?"));
        assert_eq!(judged("0 close(9) = -1 EBADF").profile, DEFAULT_PROFILE);
    }

    #[test]
    fn endings_are_counted_and_shown() {
        let all = [
            judged("0 close(9) = -1 EBADF"),
            judged("0 close(9) = 0"),
            judged("0 epoll_create(1) = 3"),
            judged("0 close(9 = 0"),
        ];
        let totals = Totals::of(&all);
        assert_eq!(
            (totals.passed, totals.failed, totals.unsupported, totals.unreadable),
            (1, 1, 1, 1)
        );
        insta::assert_snapshot!(format!(
            "{}{}{}",
            table(&all),
            details(&all, scenario::Look::Plain),
            json(&all[1..2])
        ));
    }
}
