//! Parser of scripts: options, an initial command, and events with their times.
//!
//! The grammar is packetdrill's public one. Valid constructs that are not supported are kept and
//! reported by [`crate::run()`].

mod call;
mod ip_fields;
mod packet;
mod tcp_options;

use units::Duration;

use crate::ast::{Action, Script, ScriptEvent, ScriptOption, Spanned, When};
use crate::conditional::{self, Definitions};
use crate::cursor::ScriptCursor;
use crate::diagnostic::{Diagnostic, ScriptSpan};

type Result<T> = core::result::Result<T, Diagnostic>;

/// Options of scripts. The runner uses `mss`, `tolerance_usecs`, `tcp_ts_tick_usecs`, `ip_version`,
/// `mtu`, `strict_segments`, `non_fatal`.
const OPTIONS: [&str; 35] = [
    "bind_port",
    "code_command",
    "code_format",
    "code_sockopt",
    "connect_port",
    "define",
    "dry_run",
    "gateway_ip",
    "init_scripts",
    "ip_version",
    "local_ip",
    "mss",
    "mtu",
    "netmask_ip",
    "non_fatal",
    "persistent_tun_dev",
    "psp_udp_port",
    "remote_ip",
    "send_omit_free",
    "so_filename",
    "so_flags",
    "speed",
    "strict_segments",
    "tcp_md5_secret",
    "tcp_ts_ecr_scaled",
    "tcp_ts_tick_usecs",
    "tolerance_percent",
    "tolerance_usecs",
    "tun_dev",
    "udp_encaps",
    "udp_encapsulation",
    "verbose",
    "wire_client",
    "wire_server",
    "wire_server_at",
];

/// Parses a script.
///
/// # Errors
/// The first error, with its position and the expected text.
pub fn parse(text: &str) -> Result<Script> {
    parse_with(text, &Definitions::default())
}

/// Parses a script with definitions: lines between `#ifdef NAME` and `#endif` count if the name is
/// defined, and the value of a defined name replaces it.
///
/// # Errors
/// The first error, with its position and the expected text.
pub fn parse_with(text: &str, definitions: &Definitions) -> Result<Script> {
    let text = &conditional::apply(text, definitions)?;
    let mut cursor = ScriptCursor::new(text, definitions);
    let mut options = Vec::new();
    while cursor.next_is("--")? {
        options.push(option(&mut cursor)?);
    }
    let init = command(&mut cursor)?;
    let mut events = Vec::new();
    let mut latest = Duration::ZERO;
    let mut cleanup = None;
    while !cursor.at_end()? {
        if !events.is_empty() && cursor.next_is("`")? {
            cleanup = command(&mut cursor)?;
            if !cursor.at_end()? {
                return Err(
                    cursor.missing("the end of the script: a command without a time is the last")
                );
            }
            break;
        }
        events.push(event(&mut cursor, &mut latest)?);
    }
    if events.is_empty() {
        return Err(
            cursor.missing("an event, such as `0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3`")
        );
    }
    Ok(Script { options, init, events, cleanup })
}

/// `--name` or `--name=value`.
fn option(cursor: &mut ScriptCursor<'_>) -> Result<ScriptOption> {
    cursor.expect("--")?;
    let Some(name) = cursor.run(|c| c.is_ascii_alphanumeric() || c == '_')? else {
        return Err(cursor.missing("the name of an option"));
    };
    if !OPTIONS.contains(&name.value) {
        let error = Diagnostic::new(cursor.text(), name.span, "there is no such option");
        return Err(error.found(format!("`{}`", name.value)).hint(similar(name.value, &OPTIONS)));
    }
    let value = if cursor.rest().starts_with('=') {
        cursor.advance(1);
        let quoted = cursor.rest().starts_with('"');
        let value = if quoted {
            cursor.advance(1);
            let value = cursor.run(|c| c != '"' && c != '\n')?;
            cursor.expect("\"")?;
            value
        } else {
            cursor.run(|c| !c.is_whitespace())?
        };
        let value = value.ok_or_else(|| cursor.missing("the value of the option"))?;
        Some(Spanned { value: value.value.to_owned(), span: value.span })
    } else {
        None
    };
    Ok(ScriptOption { name: Spanned { value: name.value.to_owned(), span: name.span }, value })
}

/// Takes text between backticks, if any.
fn command(cursor: &mut ScriptCursor<'_>) -> Result<Option<Spanned<String>>> {
    enclosed(cursor, "`", "`")
}

fn enclosed(
    cursor: &mut ScriptCursor<'_>,
    open: &str,
    close: &str,
) -> Result<Option<Spanned<String>>> {
    let start = cursor.start()?;
    if !cursor.take(open)? {
        return Ok(None);
    }
    let Some(length) = cursor.rest().find(close) else {
        let span = ScriptSpan { start, end: start + open.len() };
        return Err(Diagnostic::new(cursor.text(), span, "this is not closed")
            .expected(format!("`{close}`").replace("```", "a backtick")));
    };
    let value = cursor.rest()[..length].to_owned();
    let span = ScriptSpan { start: start + open.len(), end: start + open.len() + length };
    cursor.advance(length + close.len());
    Ok(Some(Spanned { value, span }))
}

/// Parses a time and its action; `latest` is the last absolute time.
fn event(cursor: &mut ScriptCursor<'_>, latest: &mut Duration) -> Result<ScriptEvent> {
    let when = when(cursor)?;
    let absolute = match when.value {
        When::Absolute(at) => Some((at, at)),
        When::Between { relative: false, from, to }
        | When::Blocking { relative: false, from, to } => Some((from, to)),
        _ => None,
    };
    if let Some((from, _)) = absolute {
        if from < *latest {
            return Err(Diagnostic::new(cursor.text(), when.span, "this time runs backwards")
                .expected(format!("{latest} or later"))
                .found(from.to_string()));
        }
        *latest = from;
    }
    let start = cursor.start()?;
    let action = if cursor.next_is("<")? || cursor.next_is(">")? {
        Action::Packet(Box::new(packet::packet(cursor)?))
    } else if cursor.next_is("`")? {
        Action::Command(command(cursor)?.unwrap_or_else(|| nothing(start)))
    } else if cursor.next_is("%{")? {
        let code = enclosed(cursor, "%{", "}%")?.unwrap_or_else(|| nothing(start));
        Action::Code(crate::code::parse(cursor.text(), code.span)?)
    } else if cursor.word_ahead()? {
        Action::Call(Box::new(call::call(cursor)?))
    } else {
        return Err(cursor.missing("a packet (`<` or `>`), a call, a command or `%{`"));
    };
    let event = ScriptEvent { when, action, span: cursor.span(start) };
    let blocks = matches!(event.when.value, When::Blocking { .. });
    let ranges = matches!(event.when.value, When::Any | When::Between { .. });
    let outbound = matches!(&event.action, Action::Packet(packet) if packet.outbound);
    if blocks && !matches!(event.action, Action::Call(_)) {
        let error = Diagnostic::new(cursor.text(), event.when.span, "only a call can block");
        return Err(error.expected("one time, or a range with `~` for an outbound packet"));
    }
    if ranges && !outbound {
        let error = Diagnostic::new(
            cursor.text(),
            event.when.span,
            "only an outbound packet can have a range of times",
        );
        return Err(error.expected("one time"));
    }
    Ok(event)
}

const fn nothing(start: usize) -> Spanned<String> {
    Spanned { value: String::new(), span: ScriptSpan { start, end: start } }
}

/// `*`, `+0.1`, `0.1`, `+0.1~+0.2`, `0.1...0.2`.
fn when(cursor: &mut ScriptCursor<'_>) -> Result<Spanned<When>> {
    let start = cursor.start()?;
    if cursor.take("*")? {
        return Ok(Spanned { value: When::Any, span: cursor.span(start) });
    }
    let relative = cursor.take("+")?;
    let begins = cursor.rest().trim_start().starts_with(|c: char| c.is_ascii_digit() || c == '.');
    if !begins {
        return Err(cursor.missing("a time: `+0.1`, `0.1` or `*`"));
    }
    let from = cursor.seconds()?.value;
    let value = if cursor.take("~")? {
        if relative {
            cursor.expect("+")?;
        }
        When::Between { relative, from, to: cursor.seconds()?.value }
    } else if cursor.take("...")? {
        cursor.take("+")?;
        When::Blocking { relative, from, to: cursor.seconds()?.value }
    } else if relative {
        When::Relative(from)
    } else {
        When::Absolute(from)
    };
    let span = cursor.span(start);
    if let When::Between { from, to, .. } | When::Blocking { from, to, .. } = value
        && to < from
    {
        return Err(Diagnostic::new(cursor.text(), span, "this time runs backwards")
            .expected(format!("an end at {from} or later"))
            .found(to.to_string()));
    }
    Ok(Spanned { value, span })
}

/// Suggests the known name that is most similar to `name`, as a question.
pub(crate) fn similar(name: &str, known: &[&str]) -> Option<String> {
    let distance = |other: &str| {
        let (name, other) = (name.to_lowercase(), other.to_lowercase());
        strsim::damerau_levenshtein(&name, &other)
    };
    let best = known.iter().map(|&other| (distance(other), other)).min()?;
    (best.0 <= 1 + name.len() / 4).then(|| format!("did you mean `{}`?", best.1))
}

#[cfg(test)]
mod tests;
