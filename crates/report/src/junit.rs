//! Results of tests as JUnit XML, for continuous integration.

use std::fmt::Write as _;

/// A test suite.
#[derive(Debug, Clone, PartialEq)]
pub struct TestSuite {
    /// Name of the suite.
    pub name: String,
    /// Its test cases.
    pub cases: Vec<TestCase>,
}

/// A test case.
#[derive(Debug, Clone, PartialEq)]
pub struct TestCase {
    /// The group of the case: a folder or a file.
    pub class: String,
    /// Name within the group.
    pub name: String,
    /// Duration in seconds.
    pub seconds: f64,
    /// The outcome.
    pub outcome: TestOutcome,
}

/// Outcome of a test case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TestOutcome {
    /// It passed.
    Passed,
    /// It was not run.
    Skipped(TestMessage),
    /// It failed.
    Failed(TestMessage),
    /// It could not be run.
    Error(TestMessage),
}

/// Why a test case did not pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestMessage {
    /// A line.
    pub message: String,
    /// The details, in lines; may be empty.
    pub text: String,
}

impl TestSuite {
    /// The suite as XML.
    pub fn to_xml(&self) -> String {
        let count = |is: fn(&TestOutcome) -> bool| {
            self.cases.iter().filter(|case| is(&case.outcome)).count()
        };
        let seconds: f64 = self.cases.iter().map(|case| case.seconds).sum();
        let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
        let _ = writeln!(
            out,
            "<testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" \
             skipped=\"{}\" time=\"{seconds:.3}\">",
            escape(&self.name),
            self.cases.len(),
            count(|outcome| matches!(outcome, TestOutcome::Failed(_))),
            count(|outcome| matches!(outcome, TestOutcome::Error(_))),
            count(|outcome| matches!(outcome, TestOutcome::Skipped(_))),
        );
        self.cases.iter().for_each(|case| case.write(&mut out));
        out.push_str("</testsuite>\n");
        out
    }
}

impl TestCase {
    fn write(&self, out: &mut String) {
        let _ = write!(
            out,
            "  <testcase classname=\"{}\" name=\"{}\" time=\"{:.3}\"",
            escape(&self.class),
            escape(&self.name),
            self.seconds
        );
        let (element, message) = match &self.outcome {
            TestOutcome::Passed => {
                out.push_str("/>\n");
                return;
            }
            TestOutcome::Skipped(message) => ("skipped", message),
            TestOutcome::Failed(message) => ("failure", message),
            TestOutcome::Error(message) => ("error", message),
        };
        let _ = writeln!(out, ">\n    <{element} message=\"{}\">", escape(&message.message));
        message.text.lines().for_each(|line| {
            let _ = writeln!(out, "{}", escape(line));
        });
        let _ = writeln!(out, "</{element}>\n  </testcase>");
    }
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
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            letter if letter.is_control() => out.push('\u{fffd}'),
            letter => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped() {
        assert_eq!(escape("a<b>&\"c\"\u{1}"), "a&lt;b&gt;&amp;&quot;c&quot;\u{fffd}");
    }

    #[test]
    fn outcomes_are_counted() {
        let message = || TestMessage { message: "a < b".into(), text: "one\ntwo".into() };
        let case =
            |outcome| TestCase { class: "f".into(), name: "n".into(), seconds: 0.5, outcome };
        let suite = TestSuite {
            name: "s".into(),
            cases: vec![case(TestOutcome::Passed), case(TestOutcome::Failed(message()))],
        };
        assert_eq!(
            suite.to_xml(),
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <testsuite name=\"s\" tests=\"2\" failures=\"1\" errors=\"0\" skipped=\"0\" time=\"1.000\">\n  \
             <testcase classname=\"f\" name=\"n\" time=\"0.500\"/>\n  \
             <testcase classname=\"f\" name=\"n\" time=\"0.500\">\n    \
             <failure message=\"a &lt; b\">\none\ntwo\n</failure>\n  </testcase>\n</testsuite>\n"
        );
    }
}
