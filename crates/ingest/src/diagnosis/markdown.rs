//! A diagnosis as Markdown, for the summary of a CI job or a comment on a change.

use core::fmt::Write;

use diagnose::rules::{Finding, rate, size, time};

use super::answer::answer_of;
use super::captured_quic::text as captured_quic_text;
use super::groups::summary;
use super::junit::headline;
use super::verdicts::{ConnectionVerdict, verdicts};
use super::{DiagnosisReport, FileReport};

impl DiagnosisReport {
    /// Formats the report as Markdown; `limit` is the most connections of each file.
    pub fn markdown(&self, limit: usize) -> String {
        let mut out = String::new();
        let all = verdicts(self, limit);
        for file in &self.files {
            let name = &file.file.name;
            if !out.is_empty() {
                out.push('\n');
            }
            let _ = writeln!(out, "# {}\n", escape(name));
            let answer = answer_of(core::slice::from_ref(file), false);
            let _ = writeln!(out, "**{}**\n", escape(&answer));
            for problem in file.file.problems.first.iter().take(3) {
                let _ = writeln!(out, "Damaged: {}\n", escape(problem));
            }
            let of_file: Vec<&ConnectionVerdict<'_>> =
                all.iter().filter(|one| one.file == name.as_str()).collect();
            captured_quic(file, limit, &mut out);
            if of_file.is_empty() {
                if !file.captured_quic.is_empty() {
                    continue;
                }
                out.push_str("No connection found.\n");
                continue;
            }
            let summary = summary(file);
            if !summary.is_empty() {
                // Codes and addresses only: nothing in it ends the block.
                let _ = writeln!(out, "```text\n{}\n```\n", summary.join("\n"));
            }
            table(&of_file, &mut out);
            let hidden = (file.connections.len() + file.quic.len()).saturating_sub(of_file.len());
            if hidden > 0 {
                let _ = writeln!(out, "\n{hidden} more not shown (`--limit`).");
            }
            of_file.iter().for_each(|one| connection(one, &mut out));
        }
        out
    }
}

/// QUIC connections of a capture.
fn captured_quic(file: &FileReport, limit: usize, out: &mut String) {
    for one in file.captured_quic.iter().take(limit) {
        // No text of the file is in it, so nothing ends the block.
        let _ = writeln!(out, "```text\n{}```\n", captured_quic_text(one, file));
    }
    let hidden = file.captured_quic.len().saturating_sub(limit);
    if hidden > 0 {
        let _ = writeln!(out, "{hidden} more of QUIC not shown (`--limit`).\n");
    }
}

fn table(connections: &[&ConnectionVerdict<'_>], out: &mut String) {
    out.push_str("| connection | transfer | bytes | time | goodput | limited by |\n");
    out.push_str("|---:|---|---:|---:|---:|---|\n");
    for one in connections {
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} |",
            one.number,
            escape(&one.transfer),
            size(one.bytes),
            time(one.duration),
            rate(one.goodput),
            escape(&one.limited_by().unwrap_or_else(|| "-".to_owned())),
        );
    }
}

fn connection(one: &ConnectionVerdict<'_>, out: &mut String) {
    if one.findings.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n## Connection {}: {}", one.number, escape(&one.transfer));
    one.findings.iter().for_each(|found| finding(one, found, out));
}

fn finding(one: &ConnectionVerdict<'_>, found: &Finding, out: &mut String) {
    let limits = if one.is_primary(found) { ", limits this transfer" } else { "" };
    let _ = writeln!(out, "\n### {}\n", escape(&headline(found)));
    let _ = writeln!(
        out,
        "{}{limits}; confidence {}. {}\n",
        found.severity.name(),
        found.confidence.name(),
        escape(&found.cause)
    );
    for item in found.evidence.iter().filter(|item| !item.label.is_empty()) {
        let _ = writeln!(out, "- {}: {}", escape(item.label), escape(&item.text));
    }
    for (system, what) in found.help.applicable() {
        let _ = writeln!(out, "- **{}**: {}", escape(system), escape(&what));
    }
    if let Some(folded) = found.folded_help() {
        let _ = writeln!(out, "- {}", escape(&folded));
    }
    for cure in one.cures_of(found) {
        let _ = writeln!(out, "- **cure**: {}", escape(&cure.text()));
    }
    if !one.is_quic {
        let _ = writeln!(out, "- Wireshark: `{}`", found.filter(one.number));
    }
    if !found.unseen.is_empty() {
        let _ = writeln!(out, "- not visible here: {}", escape(&found.unseen));
    }
}

/// Escapes what Markdown would take for markup; line breaks become spaces.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '#' | '~' => {
                out.push('\\');
                out.push(letter);
            }
            letter if letter.is_control() => out.push(' '),
            letter => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn markup_is_escaped() {
        assert_eq!(escape("a|b_c <img>\n"), "a\\|b\\_c \\<img\\> ");
    }
}
