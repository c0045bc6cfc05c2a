//! The shell of a script: variables with plain values, quotes, redirections, and commands that do
//! not change a path.

use std::collections::BTreeMap;

use super::tokens::{ImportError, ScriptCommand, ScriptToken, TokenPosition};

/// A command whose variables are replaced and whose quotes are removed.
#[derive(Debug, Default)]
pub(super) struct ExpandedCommand<'t> {
    alternative_to: Option<ScriptToken<'t>>,
    words: Vec<(String, TokenPosition)>,
    waits: usize,
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

/// Programs among these that wait or send traffic: what changes after them changes a path in use.
const WAITS: &[&str] = &["sleep", "wait", "ping", "iperf", "iperf3"];
/// Most commands of a script whose loops are unrolled.
const MOST_COMMANDS: usize = 10_000;

/// Replaces the variables of all commands, in order; assignments are consumed, and loops over words are
/// unrolled.
pub(super) fn expand<'t>(
    commands: &[ScriptCommand<'t>],
) -> Result<Vec<ExpandedCommand<'t>>, ImportError> {
    let mut expansion = Expansion::default();
    expansion.run(commands)?;
    Ok(expansion.expanded)
}

/// Commands as far as they are expanded.
#[derive(Debug, Default)]
struct Expansion<'t> {
    variables: Variables,
    expanded: Vec<ExpandedCommand<'t>>,
    waits: usize,
}

/// Whether a word is the prompt of a shell: `$`, `root@host:~#`; a `#` alone begins a comment.
fn is_prompt(word: &str) -> bool {
    word == "$" || word.contains('@') && word.ends_with(['$', '#'])
}

/// Returns the words after a prompt.
fn without_prompt<'c, 't>(tokens: &'c [ScriptToken<'t>]) -> &'c [ScriptToken<'t>] {
    match tokens {
        [first, rest @ ..] if is_prompt(first.text) && !rest.is_empty() => rest,
        // `[root@host ~]# tc ...`
        [first, second, rest @ ..]
            if first.text.starts_with('[')
                && first.text.contains('@')
                && (second.text.ends_with("]#") || second.text.ends_with("]$"))
                && !rest.is_empty() =>
        {
            rest
        }
        _ => tokens,
    }
}

impl<'t> Expansion<'t> {
    fn run(&mut self, commands: &[ScriptCommand<'t>]) -> Result<(), ImportError> {
        let mut rest = commands;
        while let Some((command, after)) = rest.split_first() {
            rest = after;
            if command.alternative_to.is_none()
                && let Some(first) = command.tokens.first().filter(|first| first.text == "for")
            {
                rest = self.repeat(*first, &command.tokens[1..], after)?;
                continue;
            }
            self.command(command)?;
        }
        Ok(())
    }

    fn command(&mut self, command: &ScriptCommand<'t>) -> Result<(), ImportError> {
        let tokens = without_prompt(&command.tokens);
        if command.alternative_to.is_none() && self.variables.assign(tokens) {
            return Ok(());
        }
        if is_without_effect(tokens) {
            let raw = |token: &ScriptToken<'_>| (token.text.to_owned(), token.position);
            without_redirections(tokens.iter().map(raw).collect())?;
            self.waits += usize::from(tokens.iter().any(|one| WAITS.contains(&one.text)));
            return Ok(());
        }
        let mut words = Vec::new();
        for token in tokens {
            self.variables.expand(*token, &mut words)?;
        }
        let words = without_redirections(words)?;
        if let Some((_, position)) = words.first().filter(|_| self.expanded.len() >= MOST_COMMANDS)
        {
            let token = ScriptToken { text: "", position: *position };
            return Err(token.error(format!("the script has more than {MOST_COMMANDS} commands")));
        }
        if !words.is_empty() || command.alternative_to.is_some() {
            let (alternative_to, waits) = (command.alternative_to, self.waits);
            self.expanded.push(ExpandedCommand { alternative_to, words, waits });
        }
        Ok(())
    }

    /// Unrolls `for NAME in WORDS; do ...; done`; returns the commands after it.
    fn repeat<'c>(
        &mut self,
        word: ScriptToken<'t>,
        head: &[ScriptToken<'t>],
        after: &'c [ScriptCommand<'t>],
    ) -> Result<&'c [ScriptCommand<'t>], ImportError> {
        let [name, among, values @ ..] = head else {
            return Err(word.error("`for`: expected `for NAME in WORDS`"));
        };
        if among.text != "in" || !name.text.chars().all(is_name) {
            return Err(name.error("`for`: expected `for NAME in WORDS`"));
        }
        let mut depth = 1;
        let end = after.iter().position(|command| {
            let begins = ["for", "while", "until"];
            let mut words = command.tokens.iter().map(|token| token.text);
            let first = words.next().unwrap_or_default();
            let first = if first == "do" { words.next().unwrap_or_default() } else { first };
            depth += i32::from(begins.contains(&first));
            depth -= i32::from(first == "done");
            depth == 0
        });
        let Some(end) = end else { return Err(word.error("`for` without `done`")) };
        if let Some(left) = after[end].tokens.get(1) {
            return Err(left.error(format!("unexpected word `{}` after `done`", left.text)));
        }
        let mut body = Vec::new();
        for (index, command) in after[..end].iter().enumerate() {
            let is_do = command.tokens.first().is_some_and(|first| first.text == "do");
            if index == 0 && !is_do {
                return Err(word.error("`for` without `do`"));
            }
            let tokens = command.tokens[usize::from(index == 0)..].to_vec();
            let alternative_to = command.alternative_to;
            body.push(ScriptCommand { alternative_to, tokens, waits: 0 });
        }
        body.retain(|command| !command.tokens.is_empty() || command.alternative_to.is_some());
        let mut words = Vec::new();
        for value in values {
            self.variables.expand(*value, &mut words)?;
        }
        for (value, position) in words {
            let token = ScriptToken { text: &value, position };
            for value in range(token)? {
                self.variables.values.insert(name.text.to_owned(), value);
                self.run(&body)?;
            }
        }
        Ok(&after[end + 1..])
    }
}

/// Returns the numbers of `{1..3}`, or the word itself.
fn range(token: ScriptToken<'_>) -> Result<Vec<String>, ImportError> {
    let braced = token.text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    let Some((first, last)) = braced.and_then(|inner| inner.split_once("..")) else {
        return match token.text.contains(['{', '*', '?']) {
            true => Err(token.error("patterns of the shell are not supported")),
            false => Ok(vec![token.text.to_owned()]),
        };
    };
    let number = |text: &str| text.parse::<u32>().ok().filter(|number| *number <= 10_000);
    let (Some(first), Some(last)) = (number(first), number(last)) else {
        return Err(token.error("expected numbers of at most 10000 in a range"));
    };
    Ok((first..=last).map(|number| number.to_string()).collect())
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
            waits: self.waits,
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
        for prompt in ["$", "root@h:~#", "[root@h ~]#", "me@h:/tmp$"] {
            assert_eq!(words(&format!("{prompt} tc a")).unwrap(), [["tc", "a"]], "{prompt}");
        }
        let text = "for D in a b; do\n tc $D\n for N in {1..2}; do tc $D$N; done\ndone\ntc end";
        let expected = ["a", "a1", "a2", "b", "b1", "b2", "end"].map(|one| vec!["tc", one]);
        assert_eq!(words(text).unwrap(), expected);
        for (text, message) in [
            ("for D in a; do tc $D", "`for` without `done`"),
            ("for D in *; do tc $D; done", "patterns of the shell"),
            ("for D in a; do tc $D; done < f", "unexpected word `<`"),
            ("for ((i=0;i<3;i++)); do tc $i; done", "expected `for NAME in WORDS`"),
        ] {
            assert!(words(text).unwrap_err().contains(message), "{text}");
        }
        assert_eq!(words("tc a 2>/dev/null > /dev/null 2>&1").unwrap(), [["tc", "a"]]);
    }
}
