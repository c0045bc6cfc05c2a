//! Texts with random damage: every error has a valid position.

use proptest::prelude::*;

use super::super::report::{ReportStyle, report};
use super::*;

/// Text inserted into damaged files.
const PARTS: &[&str] = &[
    "",
    "\"",
    "'",
    "[",
    "]",
    "[[",
    "]]",
    "{",
    "}",
    "=",
    ",",
    ".",
    "#",
    "\n",
    "\r\n",
    "\t",
    " ",
    "\0",
    "\u{feff}",
    "é",
    "µs",
    "😀",
    "-",
    "5",
    "1e999",
    "0x",
    "nan",
    "true",
    "\"100ms\"",
    "\"1bdp\"",
    "\"9e9p\"",
    "\"\"",
    "[host.a]",
    "[[path]]",
    "[[flow]]",
    "[[tap]]",
    "lro",
    "paced",
    "delay = 5",
    "1979-05-27",
    "\"\"\"",
    "\\",
    "\\u0000",
    "host.sender.x.y.z = 1",
    "link = { link = {} }",
];

/// Returns an offset as a fraction of the text, so that shrinking moves it to the front.
fn place(text: &str, share: u16) -> usize {
    let at = usize::from(share) * text.len() / usize::from(u16::MAX);
    text.floor_char_boundary(at)
}

fn damaged(cuts: &[(u16, u8, usize)]) -> String {
    let mut text = FULL.to_owned();
    for &(share, len, part) in cuts {
        let start = place(&text, share);
        let end = text.floor_char_boundary((start + usize::from(len)).min(text.len()));
        text.replace_range(start..end, PARTS[part % PARTS.len()]);
    }
    text
}

fn check(text: &str, set: &[&str]) -> Result<(), TestCaseError> {
    let Err(errors) = loaded(text, set) else { return Ok(()) };
    prop_assert!(!errors.is_empty());
    for error in &errors {
        let source = match error.file.as_str() {
            "--set" => set[0],
            _ => text,
        };
        let line = source.split('\n').nth(error.line - 1);
        let line = line.ok_or_else(|| TestCaseError::fail(format!("no such line: {error:?}")))?;
        let line = line.strip_suffix('\r').unwrap_or(line).trim_start_matches('\u{feff}');
        prop_assert_eq!(&error.source_line, line);
        prop_assert!(error.column >= 1);
        prop_assert!(error.column - 1 + error.width <= line.chars().count(), "{:?}", error);
        prop_assert!(!error.message.is_empty());
    }
    prop_assert!(report(&errors, ReportStyle::Plain).starts_with("error: "));
    Ok(())
}

proptest! {
    #[test]
    fn errors_of_damaged_files_have_positions(
        cuts in prop::collection::vec((any::<u16>(), 0_u8..40, 0..PARTS.len()), 1..5)
    ) {
        check(&damaged(&cuts), &[])?;
    }

    #[test]
    fn errors_of_damaged_arguments_have_positions(
        key in "(host|flow|path|tap|seed|x)(\\.(sender|sink|0|1|knobs|cc|\"a.b\"|é)){0,4}",
        value in "\\PC{0,12}|[0-9]{1,3}(ms|B|p)?|\\{ x = [0-9] \\}|\\[\\]",
        equals in "=|",
    ) {
        check(FULL, &[&format!("{key}{equals}{value}")])?;
    }

    #[test]
    fn errors_of_any_text_have_positions(text in "\\PC{0,200}", set in "\\PC{0,40}") {
        check(&text, &[])?;
        check(SMALL, &[&set])?;
    }
}
