//! Reads a script of `tc` and `ipfw` commands, or what `tc qdisc show` prints, and writes a
//! scenario with its path.
//!
//! Each word is consumed by one parser ([`TokenReader`]); a word that is left over,
//! a command that is not known and a qdisc that no element represents are errors.

mod element;
mod ipfw;
mod netem;
mod quantity;
mod tbf;
mod tc;
#[cfg(test)]
mod tests;
mod tokens;

use core::fmt::Write;

use element::{ParsedDirection, PathElement};
use ipfw::IpfwPipes;
use scenario::{Overrides, ScenarioError};
use tc::TcDevices;
pub use tokens::{ImportError, TokenPosition};
use tokens::{ScriptCommand, TokenReader, split_commands};

/// A scenario with the path of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ImportedScript {
    toml: String,
    /// Position in the script of the word that each line of the text represents.
    positions: Vec<TokenPosition>,
}

/// Converts a script to the text of a scenario. The first qdisc or pipe is the direction `forward`,
/// the second `return`; without a second both are the same.
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

fn convert(script: &str) -> Result<ImportedScript, ImportError> {
    let commands = split_commands(script);
    let (mut tc, mut ipfw) = (TcDevices::default(), IpfwPipes::default());
    for command in &commands {
        read_command(command, &mut tc, &mut ipfw)?;
    }
    let mut directions = tc.directions()?;
    directions.extend(ipfw.directions()?);
    directions.sort_by_key(|direction| (direction.position.line, direction.position.column));
    match directions.as_slice() {
        [] => Err(ImportError::at_start("no netem, no tbf and no pipe").hint(
            "expected lines as of: tc qdisc show; or: ipfw pipe 1 config bw 10Mbit/s delay 20ms",
        )),
        [both] => Ok(scenario_of(both, both)),
        [forward, reverse] => Ok(scenario_of(forward, reverse)),
        [first, _, third, ..] => {
            let message = format!(
                "expected one or two directions, this is the third; the first is in line {}",
                first.position.line
            );
            Err(ImportError { position: third.position, message, hint: None })
        }
    }
}

fn read_command<'t>(
    command: &'t ScriptCommand<'t>,
    tc: &mut TcDevices<'t>,
    ipfw: &mut IpfwPipes<'t>,
) -> Result<(), ImportError> {
    let mut reader = TokenReader::new(&command.tokens);
    if let Some(or) = command.alternative_to {
        if !reader.next_is("true") {
            return Err(or.error("`||` is not supported, only `|| true`"));
        }
        return reader.finish();
    }
    reader.next_is("sudo");
    let mut namespace = "";
    if reader.next_is("ip") {
        reader.expect("netns")?;
        reader.expect("exec")?;
        namespace = reader.value("a namespace")?.text;
    }
    let program = reader.value("`tc` or `ipfw`")?;
    match program.text {
        "tc" => tc.command(namespace, &mut reader)?,
        "qdisc" => tc.shown(&mut reader)?,
        "ipfw" => ipfw.command(&mut reader)?,
        other => {
            let message = format!("`{other}` is not supported, only `tc qdisc` and `ipfw`");
            return Err(program.error(message).hint("leave the command out"));
        }
    }
    reader.finish()
}

/// Writes a scenario; hosts and transfer are an example.
fn scenario_of(forward: &ParsedDirection, reverse: &ParsedDirection) -> ImportedScript {
    let mut toml = "title = \"imported\"\nseed = 1\nduration = \"60s\"\n\n\
         [host.sender]\nprofile = \"linux-6.18\"\n\n[host.receiver]\nprofile = \"linux-6.18\"\n\n\
         [[path]]\nfrom = \"sender\"\nto = \"receiver\"\n"
        .to_owned();
    let mut positions = vec![forward.position; toml.lines().count()];
    for (key, direction) in [("forward", forward), ("return", reverse)] {
        let _ = writeln!(toml, "{key} = [");
        positions.push(direction.position);
        for PathElement { position, toml: pair, comment } in &direction.elements {
            let _ = write!(toml, "    {{ {pair} }},");
            if let Some(comment) = comment {
                let _ = write!(toml, " # {comment}");
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
