//! A position in a text, and its tokens.

use super::clock::{self, FoundTimestamp};
use super::{TextError, old};

/// Reads the tokens of one packet, across line breaks that a mail program has inserted.
#[derive(Debug, Clone)]
pub(super) struct TokenCursor<'a> {
    text: &'a str,
    at: usize,
    /// End of the last token: the position of an error if the packet ends here.
    end: usize,
    /// Quotation marks (`> > `) at the beginning of the packet's lines.
    quotes: usize,
}

impl<'a> TokenCursor<'a> {
    /// Starts at byte `at` of `text`, on a line with this number of quotation marks.
    pub(super) fn new(text: &'a str, at: usize, quotes: usize) -> Self {
        Self { text, at, end: at, quotes }
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Moves to byte `at`.
    pub(super) fn go_to(&mut self, at: usize) {
        self.at = at;
        self.end = at;
    }

    /// The rest of the text.
    pub(super) fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Moves to the next token, over blanks and over a line break within the packet.
    pub(super) fn skip_blanks(&mut self) {
        loop {
            self.at += self.rest().len() - self.rest().trim_start_matches([' ', '\t', '\r']).len();
            let Some(next) = self.rest().strip_prefix('\n') else { return };
            let next_line = next.split('\n').next().unwrap_or_default();
            let Some(margin) = unquote(next_line, self.quotes) else { return };
            let body = next_line[margin..].trim();
            if body.is_empty() || body.starts_with("//") || packet_start(next_line).is_some() {
                return;
            }
            self.at += 1 + margin;
        }
    }

    /// Consumes `token` if it is next.
    pub(super) fn take(&mut self, token: &str) -> bool {
        self.skip_blanks();
        let found = self.rest().starts_with(token);
        if found {
            self.go_to(self.at + token.len());
        }
        found
    }

    /// Consumes the word `word` if it is next.
    pub(super) fn take_word(&mut self, word: &str) -> bool {
        self.skip_blanks();
        self.peek_word() == word && self.take(word)
    }

    /// The letters and digits at the position.
    pub(super) fn peek_word(&self) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
        &rest[..end]
    }

    /// Consumes everything up to the next blank.
    pub(super) fn until_blank(&mut self, expected: &str) -> Result<&'a str, TextError> {
        self.skip_blanks();
        let rest = self.rest();
        let token = &rest[..rest.find(char::is_whitespace).unwrap_or(rest.len())];
        if token.is_empty() {
            return Err(self.expected(expected));
        }
        self.go_to(self.at + token.len());
        Ok(token)
    }

    /// Consumes `token` or fails.
    pub(super) fn need(&mut self, token: &str) -> Result<(), TextError> {
        if self.take(token) { Ok(()) } else { Err(self.expected(&format!("`{token}`"))) }
    }

    /// Consumes the word `word` or fails.
    pub(super) fn need_word(&mut self, word: &str) -> Result<(), TextError> {
        if self.take_word(word) { Ok(()) } else { Err(self.expected(&format!("`{word}`"))) }
    }

    /// Consumes a decimal number that fits into `N`, or fails; `what` names it in the error.
    pub(super) fn number<N: TryFrom<u64>>(&mut self, what: &str) -> Result<N, TextError> {
        self.skip_blanks();
        let word = self.peek_word();
        let digits = word.bytes().all(|byte| byte.is_ascii_digit());
        let value = if digits { word.parse::<u64>().ok() } else { None };
        let Some(number) = value.and_then(|value| N::try_from(value).ok()) else {
            let bits = 8 * size_of::<N>();
            return Err(self.expected(&format!("{what}, a number of {bits} bits")));
        };
        self.go_to(self.at + word.len());
        Ok(number)
    }

    /// Skips a clause in parentheses, which may be nested, if one begins here.
    pub(super) fn skip_clause(&mut self) -> Result<(), TextError> {
        if !self.take("(") {
            return Ok(());
        }
        let mut depth = 1;
        while depth > 0 {
            self.skip_blanks();
            match self.rest().chars().next() {
                None | Some('\n') => return Err(self.expected("`)`")),
                Some('(') => depth += 1,
                Some(')') => depth -= 1,
                Some(_) => {}
            }
            self.go_to(self.at + self.rest().chars().next().map_or(0, char::len_utf8));
        }
        Ok(())
    }

    /// An error: `expected` should be next.
    pub(super) fn expected(&self, expected: &str) -> TextError {
        let mut here = self.clone();
        here.skip_blanks();
        match here.rest().chars().next() {
            None => TextError::new(self.text, self.end, expected, "the end of the text"),
            Some('\n') => TextError::new(self.text, self.end, expected, "the end of the packet"),
            Some(first) => {
                let word = match here.peek_word() {
                    "" => first.to_string(),
                    word => word.chars().take(24).collect(),
                };
                TextError::new(self.text, here.at, expected, &format!("`{word}`"))
            }
        }
    }

    /// An error: `expected` should be at byte `at` instead of `found`.
    pub(super) fn wrong(&self, at: usize, expected: &str, found: &str) -> TextError {
        TextError::new(self.text, at, expected, &format!("`{found}`"))
    }
}

/// The beginning of a packet line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Start {
    /// Quotation marks before it.
    pub(super) quotes: usize,
    /// Offset of the timestamp in the line.
    pub(super) margin: usize,
    pub(super) stamp: FoundTimestamp,
}

/// Parses the beginning of a packet line: a timestamp and `IP` or `IP6`; with `-i any` the
/// interface and the direction are between them; with `-e` the link header is in place of `IP`.
pub(super) fn packet_start(line: &str) -> Option<Start> {
    let mut margin = 0;
    let mut quotes = 0;
    for c in line.chars() {
        match c {
            '>' => quotes += 1,
            ' ' | '\t' => {}
            _ => break,
        }
        margin += 1;
    }
    margin += number_len(&line[margin..]);
    let stamp = clock::find(&line[margin..])?;
    let mut words = line[margin + stamp.len..].split_whitespace();
    let begins = match words.next()? {
        "IP" | "IP6" => true,
        // `PPPoE  [ses 0x11] IP 10.0.0.1.45670 > ...`
        "PPPoE" => words.any(|word| matches!(word, "IP" | "IP6")),
        _ if has_link_header(&line[margin + stamp.len..]) => true,
        _ if old::source(&line[margin + stamp.len..]).is_some() => true,
        _ => {
            matches!(words.next()?, "In" | "Out" | "M" | "B" | "P")
                && matches!(words.next()?, "IP" | "IP6")
        }
    };
    begins.then_some(Start { quotes, margin, stamp })
}

/// Length of the number of a packet (`tcpdump --number`) with its blanks, before a timestamp.
pub(super) fn number_len(line: &str) -> usize {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let rest = &line[digits..];
    let blanks = rest.len() - rest.trim_start_matches(' ').len();
    let is_number = digits > 0 && blanks > 0 && clock::find(&rest[blanks..]).is_some();
    if is_number { digits + blanks } else { 0 }
}

/// Returns whether a link header (`tcpdump -e`) is before an IP packet.
fn has_link_header(rest: &str) -> bool {
    let header = rest.split(": Flags [").next().unwrap_or(rest);
    [
        " ethertype IPv4 (0x0800),",
        " ethertype IPv6 (0x86dd),",
        // Within PPPoE.
        "] IP (0x0021),",
        "] IP6 (0x0057),",
    ]
    .iter()
    .any(|text| header.contains(text))
}

/// Length of the blanks and the `quotes` quotation marks of `line`; `None` if it has fewer.
fn unquote(line: &str, quotes: usize) -> Option<usize> {
    let mut rest = line.trim_start_matches([' ', '\t']);
    for _ in 0..quotes {
        rest = rest.strip_prefix('>')?.trim_start_matches([' ', '\t']);
    }
    Some(line.len() - rest.len())
}
