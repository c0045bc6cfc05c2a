//! Text in XML and its width.

use std::fmt::{self, Write};

/// Escapes markup in text; characters that XML forbids become spaces.
pub(super) struct EscapedXml<'a>(pub(super) &'a str);

impl fmt::Display for EscapedXml<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                // Only these are outside the Char range of XML 1.0.
                '\0'..' ' | '\u{fffe}' | '\u{ffff}' => f.write_char(' ')?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

/// Upper bound of the width of `text` in pixels at font size `size`.
///
/// Uses the widths of DejaVu Sans and Verdana, the widest of the possible fonts: in any other the
/// text is narrower and does not overlap either.
pub(super) fn width(text: &str, size: i64) -> i64 {
    let hundredths: i64 = text.chars().map(|c| i64::from(hundredths_of_em(c))).sum();
    (hundredths * size + 99) / 100
}

fn hundredths_of_em(c: char) -> u8 {
    match c {
        'i' | 'j' | 'l' | 'I' | 'J' | '\'' | '|' => 30,
        ' ' | '.' | ',' | ':' | ';' | '/' | '\\' | 'f' | 't' | 'r' | '!' | '-' | '(' | ')'
        | '[' | ']' => 41,
        'm' | 'w' | 'M' | 'W' | '@' | '%' => 99,
        '+' | '=' | '<' | '>' | '~' | '#' | '^' => 84,
        'A'..='Z' | '&' => 79,
        ' '..='~' => 64,
        // Latin, Greek and Cyrillic letters and signs, then scripts of full width.
        '\u{a0}'..'\u{1100}' => 84,
        _ => 100,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_text() {
        assert_eq!(EscapedXml("a<b & \"c\">\0\n").to_string(), "a&lt;b &amp; &quot;c&quot;&gt;  ");
    }

    #[test]
    fn width_grows_with_size() {
        assert_eq!(width("", 12), 0);
        // Ten digits of 0.64 em.
        assert_eq!(width("0123456789", 10), 64);
        assert_eq!(width("0123456789", 20), 128);
    }
}
