//! The shell of a script: variables with plain values, quotes, redirections, and commands that do
//! not change a path.

use std::collections::BTreeMap;

use super::tokens::{ImportError, ScriptCommand, ScriptToken, TokenPosition};

/// A command whose variables are replaced and whose quotes are removed.
#[derive(Debug, Default)]
pub(super) struct ExpandedCommand<'t> {
    alternative_to: Option<ScriptToken<'t>>,
    words: Vec<(String, TokenPosition)>,
}

/// Words that assign when they precede `NAME=VALUE`.
const DECLARATIONS: &[&str] = &["export", "local", "readonly", "declare"];
/// Targets of redirections that only hide what a command prints.
const SINKS: &[&str] = &["/dev/null", "&1", "&2"];

/// Programs that print, wait, load modules or send traffic.
const WITHOUT_EFFECT: &[&str] = &[
    "echo", "printf", "modprobe", "set", "true", ":", "clear", "sleep", "wait", "cd", "ping",
    "iperf", "iperf3", "tail",
];

/// Returns whether a command does not change a path: its words may have any value. `exec` begins what
/// a container runs.
fn is_without_effect(tokens: &[ScriptToken<'_>]) -> bool {
    let mut words = tokens.iter().map(|token| token.text).skip_while(|word| *word == "sudo");
    match words.next() {
        Some("exec") => words.last() == Some("\"$@\""),
        Some(program) => WITHOUT_EFFECT.contains(&program),
        None => false,
    }
}

/// Replaces the variables of all commands, in order; assignments are consumed.
pub(super) fn expand<'t>(
    commands: &[ScriptCommand<'t>],
) -> Result<Vec<ExpandedCommand<'t>>, ImportError> {
    let mut variables = Variables::default();
    let mut expanded = Vec::new();
    for command in commands {
        if command.alternative_to.is_none() && variables.assign(&command.tokens) {
            continue;
        }
        if is_without_effect(&command.tokens) {
            let raw = |token: &ScriptToken<'_>| (token.text.to_owned(), token.position);
            without_redirections(command.tokens.iter().map(raw).collect())?;
            continue;
        }
        let mut words = Vec::new();
        for token in &command.tokens {
            variables.expand(*token, &mut words)?;
        }
        let words = without_redirections(words)?;
        if !words.is_empty() || command.alternative_to.is_some() {
            expanded.push(ExpandedCommand { alternative_to: command.alternative_to, words });
        }
    }
    Ok(expanded)
}

impl<'t> ExpandedCommand<'t> {
    /// Returns the words as tokens.
    pub(super) fn tokens<'a>(&'a self) -> ScriptCommand<'a>
    where
        't: 'a,
    {
        let token = |(text, position): &'a (String, TokenPosition)| ScriptToken {
            text,
            position: *position,
        };
        ScriptCommand {
            alternative_to: self.alternative_to,
            tokens: self.words.iter().map(token).collect(),
        }
    }
}

/// Values of variables.
#[derive(Debug, Default)]
struct Variables {
    values: BTreeMap<String, String>,
}

impl Variables {
    /// Reads a command of assignments only; returns false for any other.
    fn assign(&mut self, tokens: &[ScriptToken<'_>]) -> bool {
        let declares = tokens.first().is_some_and(|first| DECLARATIONS.contains(&first.text));
        let assignments = if declares { &tokens[1..] } else { tokens };
        if assignments.is_empty()
            || assignments.iter().any(|token| assignment(token.text).is_none())
        {
            return false;
        }
        for token in assignments {
            let Some((name, value)) = assignment(token.text) else { continue };
            let mut words = Vec::new();
            // A value that is not known is an error where it is used.
            if self.expand(ScriptToken { text: value, ..*token }, &mut words).is_err() {
                self.values.remove(name);
                continue;
            }
            let words: Vec<String> = words.into_iter().map(|(text, _)| text).collect();
            self.values.insert(name.to_owned(), words.join(" "));
        }
        true
    }

    /// Removes the quotes of a word and replaces its variables. A variable outside of quotes may
    /// become several words.
    fn expand(
        &self,
        token: ScriptToken<'_>,
        words: &mut Vec<(String, TokenPosition)>,
    ) -> Result<(), ImportError> {
        let mut parts = vec![String::new()];
        let (mut quote, mut was_quoted) = (None, false);
        let mut rest = token.text;
        while let Some(c) = rest.chars().next() {
            let after = &rest[c.len_utf8()..];
            match (c, quote) {
                ('\'' | '"', None) => (quote, was_quoted) = (Some(c), true),
                (_, Some(open)) if c == open => quote = None,
                ('`', None | Some('"')) => {
                    return Err(token.error("commands within a command are not supported"));
                }
                ('$', None | Some('"')) => {
                    let (value, next) = self.variable(token, after)?;
                    rest = next;
                    if quote.is_some() {
                        push(&mut parts, &value);
                        continue;
                    }
                    let mut values = value.split_whitespace();
                    push(&mut parts, values.next().unwrap_or_default());
                    parts.extend(values.map(str::to_owned));
                    continue;
                }
                _ => push(&mut parts, c.encode_utf8(&mut [0; 4])),
            }
            rest = after;
        }
        if quote.is_some() {
            return Err(token.error("a quote is not closed in this line"));
        }
        let empty = parts.len() == 1 && parts[0].is_empty();
        if !empty || was_quoted {
            words.extend(parts.into_iter().map(|part| (part, token.position)));
        }
        Ok(())
    }

    /// Returns the value of the variable that a text begins with, and the rest of the text.
    fn variable<'a>(
        &self,
        token: ScriptToken<'_>,
        text: &'a str,
    ) -> Result<(String, &'a str), ImportError> {
        if text.starts_with('(') {
            return Err(token.error("commands within a command are not supported"));
        }
        let (name, rest) = match text.strip_prefix('{') {
            Some(braced) => braced
                .split_once('}')
                .ok_or_else(|| token.error("a brace is not closed in this word"))?,
            // A parameter of the script is one digit.
            None if text.starts_with(|c: char| c.is_ascii_digit()) => text.split_at(1),
            None => {
                let end = text.find(|c: char| !is_name(c)).unwrap_or(text.len());
                text.split_at(end)
            }
        };
        let split = name.split_once(":-").or_else(|| name.split_once(":="));
        let (name, default) = match split.or_else(|| name.split_once('-')) {
            Some((name, default)) => (name, Some(default)),
            None => (name, None),
        };
        if name.is_empty() || !name.chars().all(is_name) {
            return Err(token.error(format!("variable in `{}` is not supported", token.text)));
        }
        match (self.values.get(name), default) {
            (Some(value), _) => Ok((value.clone(), rest)),
            // Scripts add folders to it.
            (None, None) if name == "PATH" => Ok((String::new(), rest)),
            (None, Some(default)) => Ok((default.trim_matches(['"', '\'']).to_owned(), rest)),
            (None, None) => {
                let error = token.error(format!("variable `{name}` has no value in this text"));
                Err(error.hint(match name.starts_with(|c: char| c.is_ascii_digit()) {
                    true => "write the value in its place".to_owned(),
                    false => format!("put a line before it: {name}=VALUE"),
                }))
            }
        }
    }
}

fn push(parts: &mut [String], text: &str) {
    if let Some(last) = parts.last_mut() {
        last.push_str(text);
    }
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Splits `NAME=VALUE`.
fn assignment(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    (begins && name.chars().all(is_name)).then_some((name, value))
}

/// Removes redirections of what a command prints.
fn without_redirections(
    words: Vec<(String, TokenPosition)>,
) -> Result<Vec<(String, TokenPosition)>, ImportError> {
    let mut kept = Vec::new();
    let mut words = words.into_iter();
    while let Some((text, position)) = words.next() {
        let after = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '&');
        let Some(target) = after.strip_prefix(">>").or_else(|| after.strip_prefix('>')) else {
            kept.push((text, position));
            continue;
        };
        let next = if target.is_empty() { words.next() } else { None };
        let target = next.as_ref().map_or(target, |(text, _)| text);
        if !SINKS.contains(&target) {
            let token = ScriptToken { text: &text, position };
            return Err(token.error(format!("redirection to `{target}` is not supported")));
        }
    }
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::super::tokens::split_commands;
    use super::*;

    fn words(text: &str) -> Result<Vec<Vec<String>>, String> {
        let commands = split_commands(text);
        let expanded = expand(&commands).map_err(|error| error.to_string())?;
        let words = |command: ExpandedCommand<'_>| {
            command.words.into_iter().map(|(text, _)| text).collect()
        };
        Ok(expanded.into_iter().map(words).collect())
    }

    #[test]
    fn variables_have_plain_values() {
        let text = "DEV=eth0 RATE='10 mbit'\nexport D=\"20ms\"\ntc $DEV \"$RATE\" ${D}s $RATE\n";
        let expected = vec![vec!["tc", "eth0", "10 mbit", "20mss", "10", "mbit"]];
        assert_eq!(words(text).unwrap(), expected);
        assert_eq!(words("DEV=${1:-eth0}\ntc $DEV").unwrap(), [["tc", "eth0"]]);
        assert_eq!(words("A=\ntc $A b").unwrap(), [["tc", "b"]]);
        for (text, message) in [
            ("tc $DEV", "variable `DEV` has no value"),
            ("tc $(date)", "commands within a command"),
            ("tc 'a", "a quote is not closed"),
            ("tc > log", "redirection to `log`"),
        ] {
            assert!(words(text).unwrap_err().contains(message), "{text}");
        }
        assert_eq!(words("tc a 2>/dev/null > /dev/null 2>&1").unwrap(), [["tc", "a"]]);
    }
}
