//! Words of a shell script with their positions, and a reader that skips none.

/// Position of a word in a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenPosition {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// Length in characters.
    pub width: usize,
}

/// A word of a script that cannot be imported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportError {
    /// Position of the word.
    pub position: TokenPosition,
    /// What is wrong with it.
    pub message: String,
    /// How to correct it.
    pub hint: Option<String>,
}

impl ImportError {
    pub(super) fn at_start(message: impl Into<String>) -> Self {
        let position = TokenPosition { line: 1, column: 1, width: 0 };
        Self { position, message: message.into(), hint: None }
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl core::fmt::Display for ImportError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let TokenPosition { line, column, .. } = self.position;
        write!(f, "line {line}, column {column}: {}", self.message)
    }
}

impl core::error::Error for ImportError {}

/// A word of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ScriptToken<'t> {
    pub(super) text: &'t str,
    pub(super) position: TokenPosition,
}

impl ScriptToken<'_> {
    /// Returns an error about this word.
    pub(super) fn error(self, message: impl Into<String>) -> ImportError {
        ImportError { position: self.position, message: message.into(), hint: None }
    }
}

/// A command of a script: its words up to the end of the line, `;`, `&&` or `||`.
#[derive(Debug, Default)]
pub(super) struct ScriptCommand<'t> {
    /// The `||` before it, if any.
    pub(super) alternative_to: Option<ScriptToken<'t>>,
    pub(super) tokens: Vec<ScriptToken<'t>>,
    /// Commands before it that wait or send traffic: the path has to be whole by then.
    pub(super) waits: usize,
}

/// Splits a script into commands. A comment is from a `#` at the start of a word to the end of the
/// line; a `\` at the end of a line joins it with the next.
pub(super) fn split_commands(text: &str) -> Vec<ScriptCommand<'_>> {
    let mut commands = Vec::new();
    let mut command = ScriptCommand::default();
    for (index, line) in text.lines().enumerate() {
        let (tokens, continues) = split_line(line, index + 1);
        for token in tokens {
            let alternative_to = (token.text == "||").then_some(token);
            if alternative_to.is_some() || matches!(token.text, ";" | "&&") {
                let next = ScriptCommand { alternative_to, ..ScriptCommand::default() };
                commands.push(core::mem::replace(&mut command, next));
            } else {
                command.tokens.push(token);
            }
        }
        if !continues {
            commands.push(core::mem::take(&mut command));
        }
    }
    commands.push(command);
    commands.retain(|command| !command.tokens.is_empty() || command.alternative_to.is_some());
    commands
}

/// Returns the words of a line, and whether the command continues in the next line.
fn split_line(line: &str, number: usize) -> (Vec<ScriptToken<'_>>, bool) {
    let mut tokens = Vec::new();
    // Byte offset and column of the word that has begun.
    let mut word: Option<(usize, usize)> = None;
    let mut quote: Option<char> = None;
    let token = |(start, column): (usize, usize), end: usize, past: usize| ScriptToken {
        text: &line[start..end],
        position: TokenPosition { line: number, column, width: past - column },
    };
    let mut past = 1;
    for (column, (at, c)) in (1..).zip(line.char_indices()) {
        past = column + 1;
        if quote.is_some() || matches!(c, '"' | '\'') {
            quote = match quote {
                None => Some(c),
                Some(open) if open == c => None,
                open => open,
            };
            word.get_or_insert((at, column));
            continue;
        }
        let ends_line =
            c == '#' && word.is_none() || c == '\\' && line[at + 1..].trim_end().is_empty();
        if c.is_whitespace() || c == ';' || ends_line {
            tokens.extend(word.take().map(|begun| token(begun, at, column)));
        } else if word.is_none() {
            word = Some((at, column));
        }
        if c == ';' {
            tokens.push(token((at, column), at + 1, column + 1));
        }
        if ends_line {
            return (tokens, c == '\\');
        }
    }
    tokens.extend(word.map(|begun| token(begun, line.len(), past)));
    (tokens, false)
}

/// Reads the words of one command in order. [`Self::finish`] is an error if a word is left.
#[derive(Debug)]
pub(super) struct TokenReader<'t> {
    rest: core::slice::Iter<'t, ScriptToken<'t>>,
    last: Option<ScriptToken<'t>>,
}

impl<'t> TokenReader<'t> {
    pub(super) fn new(tokens: &'t [ScriptToken<'t>]) -> Self {
        Self { rest: tokens.iter(), last: None }
    }

    pub(super) fn next(&mut self) -> Option<ScriptToken<'t>> {
        let token = self.rest.next().copied()?;
        self.last = Some(token);
        Some(token)
    }

    pub(super) fn peek(&self) -> Option<ScriptToken<'t>> {
        self.rest.as_slice().first().copied()
    }

    /// Reads the next word if it fulfils a condition.
    pub(super) fn next_if(&mut self, is: impl FnOnce(&str) -> bool) -> Option<ScriptToken<'t>> {
        self.peek().filter(|token| is(token.text)).and_then(|_| self.next())
    }

    /// Reads the next word if it is `word`.
    pub(super) fn next_is(&mut self, word: &str) -> bool {
        self.next_if(|text| text == word).is_some()
    }

    /// Reads the value of the word that was read last.
    pub(super) fn value(&mut self, expected: &str) -> Result<ScriptToken<'t>, ImportError> {
        let option = self.last;
        match (self.next(), option) {
            (Some(value), _) => Ok(value),
            (None, Some(option)) => {
                Err(option.error(format!("`{}` has no value: expected {expected}", option.text)))
            }
            (None, None) => Err(ImportError::at_start(format!("expected {expected}"))),
        }
    }

    /// Reads a word that must be `word`.
    pub(super) fn expect(&mut self, word: &str) -> Result<(), ImportError> {
        let found = self.value(&format!("`{word}`"))?;
        if found.text == word {
            return Ok(());
        }
        Err(found.error(format!("expected `{word}`, found `{}`", found.text)))
    }

    /// Ends the command.
    pub(super) fn finish(mut self) -> Result<(), ImportError> {
        match self.next() {
            None => Ok(()),
            Some(left) => Err(left.error(format!("unexpected word `{}`", left.text))),
        }
    }
}

/// A value that was read, with the word that named it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Given<'t, T> {
    pub(super) value: T,
    pub(super) token: ScriptToken<'t>,
}

/// Stores an option; an option that is given twice is an error, as only the last counts.
pub(super) fn set_once<'t, T>(
    slot: &mut Option<Given<'t, T>>,
    token: ScriptToken<'t>,
    value: T,
) -> Result<(), ImportError> {
    if let Some(first) = slot {
        let line = first.token.position.line;
        let message = format!("`{}` is given twice, first in line {line}", token.text);
        return Err(token.error(message));
    }
    *slot = Some(Given { value, token });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<Vec<&str>> {
        let words = |command: &ScriptCommand<'_>| {
            command.tokens.iter().map(|token| text_at(text, token.position)).collect()
        };
        let commands = split_commands(text);
        let texts: Vec<Vec<&str>> = commands.iter().map(words).collect();
        for (command, at_positions) in commands.iter().zip(&texts) {
            let own: Vec<&str> = command.tokens.iter().map(|token| token.text).collect();
            assert_eq!(&own, at_positions);
        }
        texts
    }

    /// The word at a position.
    fn text_at(text: &str, position: TokenPosition) -> &str {
        let line = text.lines().nth(position.line - 1).unwrap();
        let byte = |column: usize| {
            line.char_indices().nth(column).map_or(line.len(), |(offset, _)| offset)
        };
        &line[byte(position.column - 1)..byte(position.column - 1 + position.width)]
    }

    #[test]
    fn commands_end_with_lines_and_separators() {
        let text = "# a comment\n\ttc  a; tc b&&c && tc d # e\r\n";
        assert_eq!(words(text), [vec!["tc", "a"], vec!["tc", "b&&c"], vec!["tc", "d"]]);
        assert_eq!(words("µ1 é#2 \\\n  3\n4"), [vec!["µ1", "é#2", "3"], vec!["4"]]);
        assert_eq!(words("a\\ \nb"), [vec!["a", "b"]]);
        assert_eq!(words("a || true"), [vec!["a"], vec!["true"]]);
        assert_eq!(split_commands("a || true")[1].alternative_to.unwrap().position.column, 3);
        assert_eq!(words(" \n;\n#"), Vec::<Vec<&str>>::new());
    }

    #[test]
    fn quotes_keep_words_together() {
        assert_eq!(words("a='b; c' \"d # e\" f"), [vec!["a='b; c'", "\"d # e\"", "f"]]);
    }

    #[test]
    fn a_word_that_is_left_is_an_error() {
        let commands = split_commands("one two three");
        let mut reader = TokenReader::new(&commands[0].tokens);
        assert!(reader.next_is("one"));
        assert!(!reader.next_is("three"));
        reader.expect("two").unwrap();
        let error = reader.finish().unwrap_err();
        assert_eq!(error.to_string(), "line 1, column 9: unexpected word `three`");
    }
}
