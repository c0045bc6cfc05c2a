//! Parser of system calls.

use super::{Result, similar};
use crate::ast::{Expr, ExprKind, Spanned, SystemCall};
use crate::cursor::ScriptCursor;
use crate::diagnostic::Diagnostic;

/// System calls of the public grammar.
const CALLS: [&str; 34] = [
    "accept",
    "accept4",
    "bind",
    "close",
    "connect",
    "dup",
    "dup2",
    "epoll_create",
    "epoll_create1",
    "epoll_ctl",
    "epoll_wait",
    "fcntl",
    "getsockopt",
    "ioctl",
    "listen",
    "open",
    "pipe",
    "poll",
    "read",
    "readv",
    "recv",
    "recvfrom",
    "recvmsg",
    "select",
    "send",
    "sendfile",
    "sendmsg",
    "sendto",
    "setsockopt",
    "shutdown",
    "socket",
    "splice",
    "write",
    "writev",
];

/// Maximum nesting of values, which bounds recursion.
const DEPTH: usize = 16;

pub(super) fn call(cursor: &mut ScriptCursor<'_>) -> Result<SystemCall> {
    let Some(name) = cursor.word()? else { return Err(cursor.missing("the name of a call")) };
    if !CALLS.contains(&name.value) {
        return Err(Diagnostic::new(cursor.text(), name.span, "there is no such call")
            .expected("a system call of sockets, such as `write`")
            .found(format!("`{}`", name.value))
            .hint(similar(name.value, &CALLS)));
    }
    let name = Spanned { value: name.value.to_owned(), span: name.span };
    cursor.expect("(")?;
    let args = series(cursor, ")", DEPTH)?;
    cursor.expect("=")?;
    let result = value(cursor, DEPTH)?;
    let errno = errno(cursor)?;
    Ok(SystemCall { name, args, result, errno })
}

/// Parses `EAGAIN (Resource temporarily unavailable)`; the description is ignored.
fn errno(cursor: &mut ScriptCursor<'_>) -> Result<Option<Spanned<String>>> {
    let mut ahead = cursor.clone();
    let word = ahead.word()?;
    if let Some(word) = word {
        if !word.value.starts_with('E') {
            return Err(cursor.missing("the name of an error, such as `EAGAIN`, or the next event"));
        }
        *cursor = ahead;
    }
    if cursor.take("(")? {
        let _ = cursor.run(|c| c != ')' && c != '\n')?;
        cursor.expect(")")?;
    }
    Ok(word.map(|word| Spanned { value: word.value.to_owned(), span: word.span }))
}

/// Parses values up to and including `close`.
fn series(cursor: &mut ScriptCursor<'_>, close: &str, depth: usize) -> Result<Vec<Expr>> {
    let mut values = Vec::new();
    if cursor.take(close)? {
        return Ok(values);
    }
    loop {
        values.push(value(cursor, depth)?);
        if cursor.take(close)? {
            return Ok(values);
        }
        if !cursor.take(",")? {
            return Err(cursor.missing(&format!("`,` or `{close}`")));
        }
    }
}

/// Parses a value, or several joined by `|`.
fn value(cursor: &mut ScriptCursor<'_>, depth: usize) -> Result<Expr> {
    let start = cursor.start()?;
    let first = simple(cursor, depth)?;
    if !cursor.next_is("|")? {
        return Ok(first);
    }
    let mut coalesce = vec![first];
    while cursor.take("|")? {
        coalesce.push(simple(cursor, depth)?);
    }
    Ok(Expr { kind: ExprKind::Or(coalesce), span: cursor.span(start) })
}

fn simple(cursor: &mut ScriptCursor<'_>, depth: usize) -> Result<Expr> {
    let start = cursor.start()?;
    let Some(depth) = depth.checked_sub(1) else {
        return Err(cursor.missing("fewer values within values"));
    };
    let kind = if cursor.take("...")? {
        ExprKind::Any
    } else if cursor.take("[")? {
        ExprKind::List(series(cursor, "]", depth)?)
    } else if cursor.take("{")? {
        ExprKind::Struct(fields(cursor, depth)?)
    } else if cursor.take("\"")? {
        let text = cursor.rest().split(['"', '\n']).next().unwrap_or_default().to_owned();
        cursor.advance(text.len());
        if !cursor.rest().starts_with('"') {
            return Err(cursor.missing("a closing `\"`"));
        }
        cursor.advance(1);
        ExprKind::Text(text)
    } else if cursor.take("-")? {
        let number = cursor.number("a number", i64::MAX as u64)?.value;
        ExprKind::Int(-(number as i64))
    } else if let Some(word) = cursor.word()? {
        let word = word.value.to_owned();
        if cursor.take("(")? {
            ExprKind::Function(word, series(cursor, ")", depth)?)
        } else {
            ExprKind::Word(word)
        }
    } else {
        const EXPECTED: &str = "a value: a number, a name, `...`, `\"text\"`, `[...]` or `{...}`";
        cursor.skip()?;
        if !cursor.rest().starts_with(|c: char| c.is_ascii_digit()) {
            return Err(cursor.missing(EXPECTED));
        }
        ExprKind::Int(cursor.number("a number", i64::MAX as u64)?.value as i64)
    };
    Ok(Expr { kind, span: cursor.span(start) })
}

/// Parses `{name=value, value, ...}`.
fn fields(cursor: &mut ScriptCursor<'_>, depth: usize) -> Result<Vec<(Option<String>, Expr)>> {
    let mut fields = Vec::new();
    if cursor.take("}")? {
        return Ok(fields);
    }
    loop {
        let mut ahead = cursor.clone();
        let name = match ahead.word()? {
            Some(word) => {
                // `msg_iov(2)=[...]` has the length of the list.
                if ahead.take("(")? {
                    let _ = ahead.run(|c| c.is_ascii_digit() || c == '.')?;
                    ahead.take(")")?;
                }
                if ahead.take("=")? {
                    *cursor = ahead;
                    Some(word.value.to_owned())
                } else {
                    None
                }
            }
            None => None,
        };
        fields.push((name, value(cursor, depth)?));
        if cursor.take("}")? {
            return Ok(fields);
        }
        if !cursor.take(",")? {
            return Err(cursor.missing("`,` or `}`"));
        }
    }
}
