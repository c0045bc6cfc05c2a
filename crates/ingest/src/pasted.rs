//! Texts that people paste into bug reports: the output of iperf, ss, ping, mtr, curl, nstat, ip,
//! ethtool, sysctl, tshark and speed tests, several in one file, amid prose.
//!
//! [`read()`] returns what the tools say, what limits the transfer as far as that carries, what is
//! missing, and the command to run next. [`scenario()`] makes a scenario of the figures.

mod counters;
mod facts;
mod iperf;
mod numbers;
mod probes;
mod scenario_text;
#[cfg(test)]
mod tests;
mod verdict;

use core::fmt::Write;

use serde::Serialize;

pub use facts::{Figures, PastedSection};
pub use scenario_text::scenario;

/// What a pasted text says.
#[derive(Debug, Clone, PartialEq)]
pub struct PastedReport {
    /// Parts of the text, in order.
    pub sections: Vec<PastedSection>,
    /// Figures of all parts.
    pub figures: Figures,
    /// What limits the transfer, the most certain first.
    pub causes: Vec<String>,
    /// What the text does not have, and the command that shows it.
    pub missing: Vec<(&'static str, String)>,
    /// The commands to run next.
    pub next: Vec<String>,
}

/// Reads a text; `None` if no tool printed a part of it.
pub fn read(text: &str) -> Option<PastedReport> {
    let mut figures = Figures::default();
    let parts = [
        iperf::section(text, &mut figures),
        probes::ss(text, &mut figures),
        probes::tshark(text, &mut figures),
        probes::ping(text, &mut figures),
        probes::mtr(text, &mut figures),
        probes::curl(text, &mut figures),
        probes::speed_test(text, &mut figures),
        counters::nstat(text, &mut figures),
        counters::devices(text, &mut figures),
        counters::ethtool(text, &mut figures),
        counters::sysctl(text, &mut figures),
    ];
    let mut sections: Vec<PastedSection> = parts.into_iter().flatten().collect();
    if sections.is_empty() {
        return None;
    }
    sections.sort_by_key(|section| section.line);
    let causes = verdict::causes(&figures);
    let missing = verdict::missing(&figures);
    let next = match (causes.first(), missing.first()) {
        (Some(cause), _) if cause.weight >= 50 => cause.next.clone(),
        // Of a transfer the sender's state shows most; without one, its rate is the first to measure.
        _ if figures.rate.is_some() && figures.limited.is_none() => verdict::sockets(&figures),
        (_, Some((_, command))) => vec![command.clone()],
        _ => verdict::capture(&figures),
    };
    let causes = causes.into_iter().map(|cause| cause.text).collect();
    Some(PastedReport { sections, figures, causes, missing, next })
}

/// The document of `ackclock diagnose --json` for a pasted text.
#[derive(Serialize)]
struct PastedJson<'a> {
    format: u32,
    file: &'a str,
    sections: Vec<SectionJson<'a>>,
    causes: &'a [String],
    missing: Vec<MissingJson<'a>>,
    next: &'a [String],
}

#[derive(Serialize)]
struct SectionJson<'a> {
    line: usize,
    kind: &'a str,
    facts: &'a [String],
}

#[derive(Serialize)]
struct MissingJson<'a> {
    what: &'a str,
    command: &'a str,
}

/// Version of the JSON format.
const FORMAT: u32 = 1;

impl PastedReport {
    /// Writes the report of the file `name` as JSON, a line.
    pub fn json(&self, name: &str) -> String {
        let sections = self.sections.iter().map(|section| SectionJson {
            line: section.line,
            kind: section.kind,
            facts: &section.facts,
        });
        let missing = self.missing.iter().map(|(what, command)| MissingJson { what, command });
        let document = PastedJson {
            format: FORMAT,
            file: name,
            sections: sections.collect(),
            causes: &self.causes,
            missing: missing.collect(),
            next: &self.next,
        };
        serde_json::to_string(&document).unwrap_or_default() + "\n"
    }

    /// Writes the report of the file `name`.
    pub fn text(&self, name: &str) -> String {
        let mut out = String::new();
        let kinds: Vec<&str> = self.sections.iter().map(|section| section.kind).collect();
        let _ = writeln!(out, "{name}: pasted text of {}\n", kinds.join(", "));
        for section in &self.sections {
            let _ = writeln!(out, "line {:<4} {}", section.line, section.kind);
            for fact in &section.facts {
                let _ = writeln!(out, "          {fact}");
            }
        }
        out.push('\n');
        match self.causes.split_first() {
            None => out.push_str("verdict: the text does not show what limits the transfer\n"),
            Some((first, others)) => {
                let _ = writeln!(out, "verdict: {first}");
                for other in others {
                    let _ = writeln!(out, "   also: {other}");
                }
            }
        }
        for (what, command) in &self.missing {
            let _ = writeln!(out, "missing: {what}: {command}");
        }
        for (index, command) in self.next.iter().enumerate() {
            let _ = writeln!(out, "{} {command}", if index == 0 { "   next:" } else { "        " });
        }
        out
    }
}
