//! Reads a script of `tc`, `ip` and `ipfw` commands, or what `tc qdisc show` prints, and writes a
//! scenario with its path.
//!
//! Each word is consumed by one parser ([`TokenReader`]); a word that is left over,
//! a command that is not known and a qdisc that no element represents are errors.

mod element;
mod filter;
mod host;
mod htb;
mod ipfw;
mod netem;
mod quantity;
mod queue;
mod rate_limit;
mod shell;
mod tbf;
mod tc;
#[cfg(test)]
mod tests;
mod tokens;

use core::fmt::Write;

use element::{ParsedDirection, PathElement};
use host::HostCommands;
use ipfw::IpfwPipes;
use scenario::{Overrides, ScenarioError};
use shell::expand;
use tc::TcDevices;
pub use tokens::{ImportError, TokenPosition};
use tokens::{ScriptCommand, ScriptToken, TokenReader, split_commands};

/// A scenario with the path of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ImportedScript {
    toml: String,
    /// Position in the script of the word that each line of the text represents.
    positions: Vec<TokenPosition>,
}

/// Converts a script to the text of a scenario. The first device or pipe is the direction `forward`,
/// the second `return`; without a second, packets of the direction `return` are not delayed.
///
/// # Errors
/// The first word that no scenario represents, or whose value no scenario can have.
pub fn import(script: &str) -> Result<String, ImportError> {
    let imported = convert(script)?;
    match scenario::load(&imported.toml, "", &Overrides::default()) {
        Ok(_) => Ok(imported.toml),
        Err(errors) => Err(errors.first().map_or_else(
            || ImportError::at_start("the scenario is not valid"),
            |error| imported.error(error),
        )),
    }
}

impl ImportedScript {
    /// Converts an error of the scenario to one of the word that the line represents.
    fn error(&self, error: &ScenarioError) -> ImportError {
        let position = self.positions.get(error.line.saturating_sub(1)).copied();
        let message = match &error.expected {
            Some(expected) => format!("{} (expected {expected})", error.message),
            None => error.message.clone(),
        };
        let message = format!("no scenario can have this: {message}");
        let start = ImportError::at_start(message);
        ImportError { position: position.unwrap_or(start.position), ..start }
    }
}

/// Words that a line of counters begins with, as `tc -s` prints them.
const COUNTERS: &[&str] = &[
    "Sent",
    "backlog",
    "count",
    "ldelay",
    "drop_next",
    "maxpacket",
    "ecn_mark",
    "new_flows_len",
    "memory_used",
    "lended:",
    "tokens:",
    "marked",
    "prob",
    "delay",
    "pkts_in",
    "dropped",
    "overlimits",
    "requeues",
    "gc",
    "flows",
    "throttled",
    "highprio",
];

fn convert(script: &str) -> Result<ImportedScript, ImportError> {
    let split = split_commands(script);
    let expanded = expand(&split)?;
    let commands: Vec<ScriptCommand<'_>> = expanded.iter().map(|one| one.tokens()).collect();
    let mut script = ScriptCommands::default();
    for command in &commands {
        script.read(command)?;
    }
    let mut directions = script.tc.directions()?;
    directions.extend(script.ipfw.directions()?);
    directions.sort_by_key(|direction| (direction.position.line, direction.position.column));
    let mtu = script.hosts.mtu.map(|mtu| mtu.value);
    match directions.as_slice() {
        [] => Err(ImportError::at_start("no qdisc and no pipe that changes a path").hint(
            "expected lines as of: tc qdisc show; or: ipfw pipe 1 config bw 10Mbit/s delay 20ms",
        )),
        [_, other, ..] if directions.iter().any(|one| one.is_loopback) => {
            let message = "the loopback with another device is not supported: packets of both \
                           directions pass both";
            Err(ImportError { position: other.position, message: message.to_owned(), hint: None })
        }
        [both] if both.is_loopback => Ok(scenario_of(both, Some(both), mtu)),
        [forward] => Ok(scenario_of(forward, None, mtu)),
        [forward, reverse] => Ok(scenario_of(forward, Some(reverse), mtu)),
        [first, _, third, ..] => {
            let message = format!(
                "expected one or two directions, this is the third; the first is in line {}",
                first.position.line
            );
            Err(ImportError { position: third.position, message, hint: None })
        }
    }
}

/// What the commands of a script configured.
#[derive(Default)]
struct ScriptCommands<'t> {
    tc: TcDevices<'t>,
    ipfw: IpfwPipes<'t>,
    hosts: HostCommands<'t>,
}

impl<'t> ScriptCommands<'t> {
    fn read(&mut self, command: &'t ScriptCommand<'t>) -> Result<(), ImportError> {
        let mut reader = TokenReader::new(&command.tokens);
        if let Some(or) = command.alternative_to {
            if !reader.next_is("true") && !reader.next_is(":") {
                return Err(or.error("`||` is not supported, only `|| true`"));
            }
            return reader.finish();
        }
        if let Some(pipe) = command.tokens.iter().find(|token| matches!(token.text, "|" | "&")) {
            return Err(pipe.error(format!("`{}` is not supported", pipe.text)));
        }
        if reader.next_is("sudo") {
            while reader.next_if(|word| matches!(word, "-E" | "-n" | "-S")).is_some() {}
        }
        let mut namespace = "";
        let words: Vec<&str> = command.tokens.iter().map(|token| token.text).collect();
        while let Some(at) = words
            .iter()
            .position(|&word| word == "exec")
            .filter(|&at| at >= 2 && words[at - 1] == "netns" && namespace.is_empty())
        {
            reader.expect(words[at - 2])?;
            reader.expect("netns")?;
            reader.expect("exec")?;
            namespace = reader.value("a namespace")?.text;
        }
        let program = reader.value("`tc` or `ipfw`")?;
        // A variable often holds the path of the program.
        let name = program.text.rsplit('/').next().unwrap_or_default();
        match name {
            "tc" => self.tc.command(namespace, &mut reader)?,
            "qdisc" | "class" | "filter" => self.tc.shown(program, &mut reader)?,
            "ipfw" => self.ipfw.command(&mut reader)?,
            _ if is_counters(&command.tokens) => return Ok(()),
            _ => {
                let known = ScriptToken { text: name, ..program };
                if !self.hosts.command(known, &mut reader)? {
                    let text = program.text;
                    let message =
                        format!("`{text}` is not supported, only `tc`, `ip`, `ipfw` and variables");
                    return Err(program.error(message).hint("leave the command out"));
                }
            }
        }
        reader.finish()
    }
}

/// Returns whether a line is one of counters, which do not configure a qdisc.
fn is_counters(tokens: &[ScriptToken<'_>]) -> bool {
    let Some(first) = tokens.first() else { return false };
    let counts = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let named = |token: &ScriptToken<'_>| COUNTERS.contains(&token.text);
    first.position.column > 1
        && (named(first) || counts(first.text) && tokens.get(1).is_some_and(named))
}

/// Writes a scenario; hosts and transfer are an example.
fn scenario_of(
    forward: &ParsedDirection,
    reverse: Option<&ParsedDirection>,
    mtu: Option<u64>,
) -> ImportedScript {
    let mtu = mtu.map_or_else(String::new, |mtu| format!("mtu = \"{mtu}B\"\n"));
    let mut toml = format!(
        "title = \"imported\"\nseed = 1\nduration = \"60s\"\n\n\
         [host.sender]\nprofile = \"linux-6.18\"\n{mtu}\n[host.receiver]\nprofile = \
         \"linux-6.18\"\n{mtu}\n[[path]]\nfrom = \"sender\"\nto = \"receiver\"\n"
    );
    let mut positions = vec![forward.position; toml.lines().count()];
    for (key, direction) in [("forward", Some(forward)), ("return", reverse)] {
        let Some(direction) = direction else {
            let _ = writeln!(toml, "{key} = [] # no command for this direction");
            positions.push(forward.position);
            continue;
        };
        let _ = writeln!(toml, "{key} = [");
        positions.push(direction.position);
        for PathElement { position, toml: pair, comments } in &direction.elements {
            let _ = write!(toml, "    {{ {pair} }},");
            if !comments.is_empty() {
                let _ = write!(toml, " # {}", comments.join("; "));
            }
            toml.push('\n');
            positions.push(*position);
        }
        toml.push_str("]\n");
        positions.push(direction.position);
    }
    toml.push_str(
        "\n[[flow]]\nname = \"transfer\"\nfrom = \"sender\"\nto = \"receiver\"\nbulk = \"10MB\"\n",
    );
    positions.resize(toml.lines().count(), forward.position);
    ImportedScript { toml, positions }
}
