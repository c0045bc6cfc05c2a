//! Results of scripts as JUnit XML, for continuous integration.

use std::fmt::Write as _;
use std::path::Path;

use super::{Ending, ScriptResult, ScriptTotals};

/// The results as one test suite: scripts that were not run are skipped tests, those that cannot
/// be parsed are errors.
pub fn junit(results: &[ScriptResult]) -> String {
    let totals = ScriptTotals::of(results);
    let time: f64 = results.iter().map(|one| one.time.as_secs_f64()).sum();
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(
        out,
        "<testsuite name=\"packetdrill\" tests=\"{}\" failures=\"{}\" errors=\"{}\" \
         skipped=\"{}\" time=\"{time:.3}\">",
        totals.all(),
        totals.failed,
        totals.unreadable,
        totals.unsupported
    );
    for one in results {
        let path = Path::new(&one.file);
        let folder = path.parent().map(|folder| folder.display().to_string());
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let _ = write!(
            out,
            "  <testcase classname=\"{}\" name=\"{}\" time=\"{:.3}\"",
            escape(&folder.unwrap_or_default()),
            escape(&name.unwrap_or_default()),
            one.time.as_secs_f64()
        );
        let Some(said) = one.ending.diagnostic() else {
            out.push_str("/>\n");
            continue;
        };
        let element = match one.ending {
            Ending::Unsupported(_) => "skipped",
            Ending::Unreadable(_) => "error",
            _ => "failure",
        };
        let message = format!("{}:{}: {}", said.line, said.column, said.message);
        let _ = writeln!(out, ">\n    <{element} message=\"{}\">", escape(&message));
        let parts = [("expected", &said.expected), ("found", &said.found), ("help", &said.hint)];
        for (title, text) in parts {
            if let Some(text) = text {
                let _ = writeln!(out, "{title}: {}", escape(text));
            }
        }
        let _ = writeln!(out, "</{element}>\n  </testcase>");
    }
    out.push_str("</testsuite>\n");
    out
}

/// Escapes text for XML; characters that XML does not allow become U+FFFD.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(letter),
            letter if letter.is_control() => out.push('\u{fffd}'),
            letter => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn text_is_escaped() {
        assert_eq!(escape("a<b>&\"c\"\u{1}"), "a&lt;b&gt;&amp;&quot;c&quot;\u{fffd}");
    }
}
