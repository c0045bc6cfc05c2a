//! Reads a script of `tc`, `ip` and `ipfw` commands, what `tc qdisc show` prints, or a program with a link of
//! mininet, and writes a scenario with its path.
//!
//! Each word is consumed by one parser ([`TokenReader`]); a word that is left over,
//! a command that is not known and a qdisc that no element represents are errors.

mod element;
mod filter;
mod host;
mod htb;
mod ipfw;
mod mininet;
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
use host::{HostCommands, HostKey, HostSetting};
use ipfw::IpfwPipes;
use scenario::{Overrides, ScenarioError};
use shell::expand;
use tc::TcDevices;
use tokens::{Given, ScriptCommand, ScriptToken, TokenReader, split_commands};
pub use tokens::{ImportError, TokenPosition};

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
    if let Some((commands, position)) = mininet::commands(script)? {
        return import(&commands).map_err(|error| ImportError { position, ..error });
    }
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
    let seeds = script.tc.seeds();
    let of = |forward, reverse| scenario_of(forward, reverse, &script.hosts, &seeds);
    match directions.as_slice() {
        [] => Err(ImportError::at_start("no qdisc and no pipe that changes a path").hint(
            "expected lines as of: tc qdisc show; or: ipfw pipe 1 config bw 10Mbit/s delay 20ms",
        )),
        [_, other, ..] if directions.iter().any(|one| one.is_loopback) => {
            let message = "the loopback with another device is not supported: packets of both \
                           directions pass both";
            Err(ImportError { position: other.position, message: message.to_owned(), hint: None })
        }
        [both] if both.is_loopback => of(both, Some(both)),
        [forward] => of(forward, None),
        [forward, reverse] => of(forward, Some(reverse)),
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
        self.tc.waits = command.waits;
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
                if !self.hosts.command(namespace, known, &mut reader)? {
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

/// Largest seed of a scenario: an integer of TOML.
const MOST_SEED: u64 = i64::MAX as u64;

/// Lines of a scenario, each with the position of the word that it represents.
struct ScenarioLines {
    toml: String,
    positions: Vec<TokenPosition>,
}

impl ScenarioLines {
    fn add(&mut self, position: TokenPosition, text: &str) {
        self.toml.push_str(text);
        self.toml.push('\n');
        self.positions.resize(self.toml.lines().count(), position);
    }

    /// Adds a host with the settings that the script made in its namespace.
    fn add_host(
        &mut self,
        name: &str,
        position: TokenPosition,
        mtu: Option<u64>,
        settings: &[&HostSetting<'_>],
    ) {
        self.add(position, &format!("[host.{name}]\nprofile = \"linux-6.18\""));
        let of_host = |one: &&&HostSetting<'_>| one.key == HostKey::CongestionControl;
        for setting in settings.iter().filter(of_host) {
            self.add(setting.token.position, &format!("cc = {}", setting.value));
        }
        if let Some(mtu) = mtu {
            self.add(position, &format!("mtu = \"{mtu}B\""));
        }
        self.add(position, "");
        let mut is_first = true;
        for setting in settings {
            let HostKey::Knob(knob) = setting.key else { continue };
            if is_first {
                self.add(position, &format!("[host.{name}.knobs]"));
                is_first = false;
            }
            self.add(setting.token.position, &format!("{knob:?} = {}", setting.value));
        }
        if !is_first {
            self.add(position, "");
        }
    }
}

/// Writes a scenario; hosts and transfer are an example, with what the script sets of the hosts.
fn scenario_of(
    forward: &ParsedDirection,
    reverse: Option<&ParsedDirection>,
    hosts: &HostCommands<'_>,
    seeds: &[Given<'_, u64>],
) -> Result<ImportedScript, ImportError> {
    let position = forward.position;
    let mut lines = ScenarioLines { toml: String::new(), positions: Vec::new() };
    lines.add(position, "title = \"imported\"");
    // A scenario has one seed.
    match seeds.iter().position(|seed| seed.value <= MOST_SEED).map(|at| (at, seeds[at])) {
        Some((at, seed)) => {
            let mut text = format!("seed = {}", seed.value);
            let mut others = seeds.iter().enumerate().filter(|(index, _)| *index != at);
            if let Some((_, other)) = others.next() {
                let _ = write!(text, " # not used: netem's seed {}", other.value);
                for (_, other) in others {
                    let _ = write!(text, ", {}", other.value);
                }
            }
            lines.add(seed.token.position, &text);
        }
        None => {
            let mut text = "seed = 1".to_owned();
            for (index, seed) in seeds.iter().enumerate() {
                let before = if index == 0 { " # too large: netem's seed" } else { "," };
                let _ = write!(text, "{before} {}", seed.value);
            }
            lines.add(position, &text);
        }
    }
    lines.add(position, "duration = \"60s\"\n");
    let mtu = hosts.mtu.map(|mtu| mtu.value);
    let sender = forward.namespace.as_str();
    let receiver = reverse.map(|reverse| reverse.namespace.as_str());
    for setting in &hosts.settings {
        let namespace = setting.namespace;
        if !namespace.is_empty() && namespace != sender && Some(namespace) != receiver {
            let message = format!("no qdisc in this text is in the namespace `{namespace}`");
            let hint = "leave the setting out, or put the qdiscs of this host into its namespace";
            return Err(setting.token.error(message).hint(hint));
        }
    }
    let settings_of = |host: Option<&str>, is_sender: bool| -> Vec<&HostSetting<'_>> {
        // Of one key the last command counts.
        let mut of_host: Vec<&HostSetting<'_>> = Vec::new();
        for setting in &hosts.settings {
            let is_of_host = match setting.namespace {
                "" => is_sender || !setting.is_of_route,
                namespace => Some(namespace) == host,
            };
            if is_of_host {
                of_host.retain(|one| one.key != setting.key);
                of_host.push(setting);
            }
        }
        of_host
    };
    lines.add_host("sender", position, mtu, &settings_of(Some(sender), true));
    lines.add_host("receiver", position, mtu, &settings_of(receiver, false));
    lines.add(position, "[[path]]\nfrom = \"sender\"\nto = \"receiver\"");
    let ScenarioLines { mut toml, mut positions } = lines;
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
    Ok(ImportedScript { toml, positions })
}
