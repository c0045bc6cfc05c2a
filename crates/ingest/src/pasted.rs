//! Texts that people paste into bug reports: the output of iperf, netperf, nuttcp, flent, ss, ping, mtr, curl,
//! nstat, sar, tcpretrans, ip, ethtool, tc, sysctl, tshark, tcptrace and speed tests, several in one file, amid prose, quoted or with
//! timestamps before their lines.
//!
//! Prefixes of lines are removed once, before any reader sees the text. Figures stay with the tool that
//! printed them: a ratio has figures of one tool and one interval.
//!
//! [`read()`] returns what the tools say, what limits the transfer as far as that carries, what is
//! missing, and the command to run next. [`scenario()`] makes a scenario of the figures.

mod bare_packets;
mod benchmarks;
mod clean;
mod counters;
mod devices;
mod facts;
mod host_views;
mod iperf;
mod json;
mod numbers;
mod packets;
mod probes;
mod scenario_text;
mod ss;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tool_tests;
mod transfers;
mod verdict;

use core::fmt::Write;

use serde::Serialize;

pub use bare_packets::{has_no_times, with_running_times};
pub use clean::unquoted;
pub use facts::{Figures, PastedSection, RetransmitCount, WindowSamples};
pub use json::is_json_only;
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
    // Packets need their timestamps.
    let stamped = unquoted(text);
    let text = &clean::clean(text);
    let mut figures = Figures::default();
    let (documents, speed) = json::read(text, &mut figures);
    let mut tests = iperf::transfers(text);
    tests.extend(documents);
    tests.sort_by_key(|(transfer, _)| transfer.line);
    let (transfers, mut sections): (Vec<_>, Vec<_>) = tests.into_iter().unzip();
    figures.judge(&transfers);
    sections.extend(speed);
    sections.extend(probes::ping(text, &mut figures));
    sections.extend(packets::quiet(&stamped, &mut figures));
    sections.extend(bare_packets::untimed(&stamped, &mut figures));
    if sections.is_empty() {
        sections.extend(bare_packets::json_excerpt(text, &mut figures));
    }
    let readers = [
        ss::ss,
        packets::tshark,
        packets::fields,
        packets::tcptrace,
        probes::mtr,
        probes::win_mtr,
        probes::traceroute,
        benchmarks::netperf,
        benchmarks::nuttcp,
        benchmarks::flent,
        benchmarks::network_quality,
        transfers::curl,
        transfers::curl_progress,
        transfers::wget,
        benchmarks::copies,
        transfers::speed_test,
        counters::nstat,
        host_views::sar,
        host_views::tcpretrans,
        host_views::prometheus,
        host_views::socket_summary,
        devices::links,
        devices::interfaces,
        devices::ethtool,
        devices::qdiscs,
        counters::sysctl,
    ];
    sections.extend(readers.iter().filter_map(|reader| reader(text, &mut figures)));
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
    /// Of several tests of iperf, the line of the one that is judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    judged_line: Option<usize>,
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
        serde_json::to_string(&self.document(name)).unwrap_or_default() + "\n"
    }

    /// The report of the file `name` as a document of JSON.
    pub fn document<'a>(&'a self, name: &'a str) -> impl Serialize + use<'a> {
        let sections = self.sections.iter().map(|section| SectionJson {
            line: section.line,
            kind: section.kind,
            facts: &section.facts,
        });
        let missing = self.missing.iter().map(|(what, command)| MissingJson { what, command });
        PastedJson {
            format: FORMAT,
            file: name,
            sections: sections.collect(),
            causes: &self.causes,
            missing: missing.collect(),
            next: &self.next,
            judged_line: self.figures.judged.map(|(_, line)| line),
        }
    }

    /// Whether a section is of a kind.
    pub fn has(&self, kind: &str) -> bool {
        self.sections.iter().any(|section| section.kind == kind)
    }

    /// Writes the report of the file `name`.
    pub fn text(&self, name: &str) -> String {
        let mut out = self.sections_text(name);
        if let Some((count, line)) = self.figures.judged {
            let _ = writeln!(out, "judged: of {count} tests the slowest, in line {line}");
        }
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

    /// Writes what a text says beside the recording in it, which has the rate and the verdict.
    pub fn text_beside(&self, name: &str) -> String {
        let mut out = self.sections_text(name);
        for cause in &self.causes {
            let _ = writeln!(out, "   also: {cause}");
        }
        out.truncate(out.trim_end().len());
        out + "\n"
    }

    fn sections_text(&self, name: &str) -> String {
        let mut out = String::new();
        let mut kinds: Vec<&str> = Vec::new();
        for section in &self.sections {
            if !kinds.contains(&section.kind) {
                kinds.push(section.kind);
            }
        }
        let _ = writeln!(out, "{name}: pasted text of {}\n", kinds.join(", "));
        for section in &self.sections {
            let _ = writeln!(out, "line {:<4} {}", section.line, section.kind);
            for fact in &section.facts {
                let _ = writeln!(out, "          {fact}");
            }
        }
        out.push('\n');
        out
    }
}
