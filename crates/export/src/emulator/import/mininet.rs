//! A link of mininet: `addLink(h1, s1, bw=10, delay='5ms', loss=2, max_queue_size=1000)`.
//!
//! The commands are those of mininet for such a link (mininet/link.py, `TCIntf`), on both of its ends.

use core::fmt::Write;

use super::tokens::{ImportError, TokenPosition};

/// Arguments that name ends and do not change packets.
const NAMES: &[&str] =
    &["node1", "node2", "port1", "port2", "intfName1", "intfName2", "addr1", "addr2", "cls", "key"];

/// The call that adds a link.
const CALL: &str = "addLink(";

/// Parameters of a link, as they are written.
#[derive(Debug, Default)]
struct LinkParameters<'t> {
    bandwidth: Option<&'t str>,
    delay: Option<&'t str>,
    jitter: Option<&'t str>,
    loss: Option<&'t str>,
    queue: Option<&'t str>,
    latency: Option<&'t str>,
    uses_tbf: bool,
}

/// Converts the only link with parameters to commands of tc; `None` for a text that adds no link. The
/// position is that of the link.
pub(super) fn commands(text: &str) -> Result<Option<(String, TokenPosition)>, ImportError> {
    let mut found: Option<(String, TokenPosition)> = None;
    let mut first = None;
    for (at, _) in text.match_indices(CALL) {
        let line_start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let before = &text[line_start..at];
        if before.contains('#') || before.trim_start().starts_with("def ") {
            continue;
        }
        let position = TokenPosition {
            line: text[..at].matches('\n').count() + 1,
            column: before.chars().count() + 1,
            width: CALL.len() - 1,
        };
        first.get_or_insert(position);
        let mut parameters = LinkParameters::default();
        parameters.read(text, arguments(&text[at + CALL.len()..]), position)?;
        let Some(commands) = parameters.commands(position)? else { continue };
        match &found {
            Some((known, _)) if *known == commands => {}
            Some((_, known)) => {
                let message = format!(
                    "a second link with other parameters than that of line {}: a path has one here",
                    known.line
                );
                return Err(error(position, message).hint("leave out the links of other paths"));
            }
            None => found = Some((commands, position)),
        }
    }
    match (found, first) {
        (None, Some(position)) => {
            Err(error(position, "no link has `bw`, `delay`, `loss` or `max_queue_size`"))
        }
        (found, _) => Ok(found),
    }
}

fn error(position: TokenPosition, message: impl Into<String>) -> ImportError {
    ImportError { position, message: format!("addLink: {}", message.into()), hint: None }
}

/// Splits the arguments of a call up to its closing parenthesis.
fn arguments(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut begin, mut quote) = (Vec::new(), 0, 0, None);
    for (at, c) in text.char_indices() {
        match (c, quote) {
            (_, Some(open)) => quote = Some(open).filter(|open| *open != c),
            ('\'' | '"', None) => quote = Some(c),
            ('(' | '[' | '{', None) => depth += 1,
            (')' | ']' | '}', None) if depth == 0 => {
                parts.push(text[begin..at].trim());
                break;
            }
            (')' | ']' | '}', None) => depth -= 1,
            (',', None) if depth == 0 => {
                parts.push(text[begin..at].trim());
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

impl<'t> LinkParameters<'t> {
    /// Reads arguments; `**options` is a dictionary of the text.
    fn read(
        &mut self,
        text: &'t str,
        arguments: Vec<&'t str>,
        position: TokenPosition,
    ) -> Result<(), ImportError> {
        for argument in arguments {
            if let Some(name) = argument.strip_prefix("**") {
                let options = dictionary(text, name).ok_or_else(|| {
                    error(position, format!("`{name}` has no value in this text"))
                })?;
                self.read(text, options, position)?;
                continue;
            }
            // The two nodes have no names.
            let Some((name, value)) = argument.split_once(['=', ':']) else { continue };
            let name = name.trim().trim_matches(['\'', '"']);
            let value = value.trim();
            let plain = value.trim_matches(['\'', '"']);
            let is_literal = plain.starts_with(|c: char| c.is_ascii_digit() || c == '.')
                || matches!(value, "True" | "False" | "None");
            if NAMES.contains(&name) {
                continue;
            }
            if !is_literal {
                return Err(error(position, format!("`{name}`: `{value}` is not a plain value"))
                    .hint("write the value in its place"));
            }
            let value = Some(plain).filter(|value| *value != "None");
            match name {
                "bw" => self.bandwidth = value,
                "delay" => self.delay = value,
                "jitter" => self.jitter = value,
                "loss" => self.loss = value,
                "max_queue_size" => self.queue = value,
                "latency_ms" => self.latency = value,
                "use_tbf" => self.uses_tbf = value == Some("True"),
                // The default.
                "use_htb" => {}
                _ if matches!(value, None | Some("False" | "0")) => {}
                _ => return Err(error(position, format!("`{name}` is not supported"))),
            }
        }
        Ok(())
    }

    /// Returns the commands for both ends; `None` without a parameter.
    fn commands(&self, position: TokenPosition) -> Result<Option<String>, ImportError> {
        let mut netem = String::new();
        if let Some(delay) = self.delay {
            let _ = write!(netem, " delay {delay}");
        }
        if let Some(jitter) = self.jitter {
            let _ = write!(netem, " {jitter}");
        }
        if let Some(loss) = self.loss.filter(|loss| loss.parse() != Ok(0.0)) {
            let _ = write!(netem, " loss {loss}%");
        }
        if let Some(queue) = self.queue {
            let _ = write!(netem, " limit {queue}");
        }
        let rate = |bandwidth: &str| {
            let mbit = bandwidth.parse::<f64>().ok().filter(|rate| *rate > 0.0);
            mbit.ok_or_else(|| error(position, format!("`bw`: `{bandwidth}` is no rate in Mbit/s")))
        };
        let mut out = String::new();
        for device in ["end-1", "end-2"] {
            let parent = match self.bandwidth {
                None => "root",
                Some(bandwidth) if self.uses_tbf => {
                    let default = 15.0 * 8.0 / rate(bandwidth)?;
                    let latency =
                        self.latency.map_or_else(|| format!("{default:.6}"), str::to_owned);
                    let _ = writeln!(
                        out,
                        "tc qdisc add dev {device} root handle 5: tbf rate {bandwidth}Mbit burst 15000 latency {latency}ms"
                    );
                    "parent 5:1"
                }
                Some(bandwidth) => {
                    rate(bandwidth)?;
                    let _ = writeln!(
                        out,
                        "tc qdisc add dev {device} root handle 5: htb default 1\n\
                         tc class add dev {device} parent 5: classid 5:1 htb rate {bandwidth}Mbit burst 15k"
                    );
                    "parent 5:1"
                }
            };
            if !netem.is_empty() {
                let _ = writeln!(out, "tc qdisc add dev {device} {parent} handle 10: netem{netem}");
            }
        }
        Ok(Some(out).filter(|out| !out.is_empty()))
    }
}

/// Returns the entries of `NAME = dict(...)` or `NAME = {...}`.
fn dictionary<'t>(text: &'t str, name: &str) -> Option<Vec<&'t str>> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let value = line.trim_start().strip_prefix(name).and_then(|rest| {
            let value = rest.trim_start().strip_prefix('=')?.trim_start();
            value.strip_prefix("dict(").or_else(|| value.strip_prefix('{'))
        });
        // The entries may continue in further lines.
        if let Some(value) = value {
            return Some(arguments(&text[at + line.len() - value.len()..]));
        }
        at += line.len();
    }
    None
}
