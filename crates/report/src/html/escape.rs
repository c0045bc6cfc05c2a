//! Text in HTML.

use std::fmt::{self, Write};

/// Fewest digits of a number that are shown in groups.
const GROUPED: usize = 5;

/// Escapes markup in text, for elements and attributes.
pub(super) struct EscapedHtml<'a>(pub(super) &'a str);

impl fmt::Display for EscapedHtml<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                '\n' | '\t' => f.write_char(c)?,
                c if c.is_control() => f.write_char('\u{fffd}')?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

/// Escapes text like [`EscapedHtml`] and shows the digits of long integers in groups of three. Copied
/// and searched text is still without spaces: the groups are elements with a margin.
pub(super) struct GroupedDigits<'a>(pub(super) &'a str);

impl fmt::Display for GroupedDigits<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        let mut is_fraction = false;
        while let Some(first) = rest.find(|c: char| c.is_ascii_digit()) {
            let (before, digits) = rest.split_at(first);
            // "1.25" has a fraction, "1..25" is a range of two integers.
            is_fraction = before == "." && !is_fraction && rest.len() < self.0.len();
            let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
            let (digits, after) = digits.split_at(end);
            write!(f, "{}", EscapedHtml(before))?;
            if is_fraction || digits.len() < GROUPED {
                f.write_str(digits)?;
            } else {
                let (head, groups) = digits.split_at((digits.len() - 1) % 3 + 1);
                f.write_str(head)?;
                for at in (0..groups.len()).step_by(3) {
                    write!(f, "<span class=\"k\">{}</span>", &groups[at..at + 3])?;
                }
            }
            rest = after;
        }
        write!(f, "{}", EscapedHtml(rest))
    }
}
