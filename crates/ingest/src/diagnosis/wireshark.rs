//! A Lua script for Wireshark and tshark that shows the findings on the packets they concern.

use core::fmt::Write;

use super::DiagnosisReport;
use super::verdicts::verdicts;

/// The dissector, which reads the table `findings`.
const DISSECTOR: &str = include_str!("post_dissector.lua");

impl DiagnosisReport {
    /// Formats the findings on TCP connections as a post-dissector: a table with a finding on each
    /// line, and the code that shows it. Frames are those of the diagnosed file.
    pub fn wireshark(&self) -> String {
        let mut out =
            "-- Findings of ackclock diagnose, as a post-dissector of Wireshark and tshark:\n\
             --   wireshark -X lua_script:THIS_FILE CAPTURE\n\
             local findings = {\n"
                .to_owned();
        for one in verdicts(self, usize::MAX).iter().filter(|one| !one.is_quic) {
            for found in &one.findings {
                let (first, last) = found.frames;
                let _ = writeln!(
                    out,
                    "  {{ stream = {}, first = {first}, last = {last}, code = {}, severity = {}, \
                     cost = {}, limits = {}, title = {}, cause = {} }},",
                    one.number,
                    quoted(found.code),
                    quoted(found.severity.name()),
                    found.cost.as_secs_f64(),
                    one.is_primary(found),
                    quoted(&found.title),
                    quoted(&found.cause),
                );
            }
        }
        out + "}\n" + DISSECTOR
    }
}

/// A string of Lua; text of a capture must not end it.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => {
                out.push('\\');
                out.push(letter);
            }
            letter if letter.is_control() => out.push(' '),
            letter => out.push(letter),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn text_does_not_end_its_string() {
        assert_eq!(quoted("a\"b\\\nc"), "\"a\\\"b\\\\ c\"");
    }
}
