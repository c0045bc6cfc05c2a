//! System calls as texts for process 1 of a real host, and their results.

use core::fmt::Write as _;

use super::super::calls::{CallResult, length, message_flags, number};
use super::super::epoll::field;
use super::super::fast_open::socket_key;
use super::super::socket_options::{named, single};
use super::super::{Result, Runner, ScriptStop};
use super::constants::{error_name, error_of, value};
use super::{LISTEN_PORT, RealAnswer, SocketUnderTest, info};
use crate::ast::{Expr, ExprKind, SystemCall};
use CallResult::{Blocks, Error, Value};
use packet::IpVersion;

/// Bytes of a getsockopt without a structure.
const INTEGER: usize = 4;

/// The fields of `tcp_info` of a real host.
pub(in super::super) struct RealInfo(String);

impl RealInfo {
    pub(in super::super) fn field(&self, name: &str) -> Option<i64> {
        info::field(&self.0, name)
    }
}

impl Runner<'_> {
    /// Makes a system call on the real host.
    pub(in super::super) fn call_real(
        &mut self,
        call: &SystemCall,
        blocks: bool,
    ) -> Result<CallResult> {
        let text = self.call_text(call)?;
        let before = self.world.real.as_ref().map(|real| (real.under_test, real.fd));
        self.note_call(call);
        let number = self.world.call_real(blocks, &text);
        self.real_call = number;
        let returned = self.returned_real(call)?;
        if let (Error(_), Some(real), Some((under_test, fd))) =
            (returned, &mut self.world.real, before)
            && call.name.value != "connect"
        {
            (real.under_test, real.fd) = (under_test, fd);
        }
        Ok(returned)
    }

    /// Returns the result of the call that the real host makes, if it has one.
    pub(in super::super) fn returned_real(&mut self, call: &SystemCall) -> Result<CallResult> {
        let answer = self.real_call.zip(self.world.real.as_mut());
        let answer = answer.and_then(|(number, real)| real.answers.remove(&number));
        let Some(answer) = answer else { return Ok(Blocks) };
        self.real_call = None;
        if answer.value < 0 {
            return Ok(Error(error_name(&answer.error)));
        }
        self.compare_returned(call, &answer)?;
        Ok(Value(answer.value))
    }

    /// Reads `tcp_info` of the socket under test.
    pub(in super::super) fn real_info(&mut self) -> Option<RealInfo> {
        let fd = self.world.real.as_ref()?.fd;
        let answer = self.ask_real(&format!("getsockopt {fd} 6 11 {}", info::LEN))?;
        Some(RealInfo(answer.extra))
    }

    /// Tracks which socket the script tests.
    fn note_call(&mut self, call: &SystemCall) {
        let Some(real) = &mut self.world.real else { return };
        let result = if let ExprKind::Int(result) = call.result.kind { result } else { -1 };
        match call.name.value.as_str() {
            "socket" if result >= 0 => {
                (real.under_test, real.fd) = (SocketUnderTest::Fresh, result);
            }
            "listen" => {
                real.under_test = SocketUnderTest::Listening;
                real.local.set_port(LISTEN_PORT);
                self.real_synchronised = false;
            }
            "accept" | "accept4" if result >= 0 => real.fd = result,
            "connect" | "sendto" | "sendmsg" if real.under_test == SocketUnderTest::Fresh => {
                real.under_test = SocketUnderTest::Active;
                real.remote.set_port(LISTEN_PORT);
                self.numbers.active_open = true;
                self.real_synchronised = false;
                self.world.sent.clear();
            }
            _ => {}
        }
    }

    fn call_text(&self, call: &SystemCall) -> Result<String> {
        let name = call.name.value.as_str();
        let fd = number(call, 0);
        let constant = |place: usize| self.constant(call, place);
        let new = if let ExprKind::Int(result) = call.result.kind { result } else { -1 };
        let addresses = self.world.real.as_ref().map(|real| (real.local.ip(), real.remote.ip()));
        let Some((local, remote)) = addresses else { return Ok(String::new()) };
        Ok(match name {
            "socket" => {
                self.refuse_other_sockets(call)?;
                let family = if self.rules.ip == IpVersion::V6 { 10 } else { 2 };
                let protocol = call.args.get(2).and_then(value).unwrap_or(0);
                format!("socket {new} {family} {} {protocol}", constant(1)?)
            }
            "bind" => format!("bind {fd} {LISTEN_PORT} {local}"),
            "listen" => format!("listen {fd} {}", constant(1)?),
            "accept" | "accept4" => {
                format!("accept {new} {fd} {}", call.args.get(3).and_then(value).unwrap_or(0))
            }
            "connect" => format!("connect {fd} {LISTEN_PORT} {remote}"),
            "read" | "recv" | "recvfrom" | "readv" | "recvmsg" => {
                self.refuse_pointers(call)?;
                let flags = self.flags(call, "recv")?;
                format!("recv {fd} {} {flags}", self.amount(call)?)
            }
            "write" | "send" | "sendto" | "writev" | "sendmsg" => {
                self.refuse_pointers(call)?;
                let flags = self.flags(call, "send")?;
                let lengths = self.lengths(call)?;
                match is_addressed(call) {
                    true => format!("sendto {fd} {flags} {LISTEN_PORT} {remote}{lengths}"),
                    false => format!("send {fd} {flags}{lengths}"),
                }
            }
            "shutdown" => format!("shutdown {fd} {}", constant(1)?),
            "close" => format!("close {fd}"),
            "setsockopt" => {
                let value = self.option_value(call)?;
                format!("setsockopt {fd} {} {} {value}", constant(1)?, constant(2)?)
            }
            "getsockopt" => format!("getsockopt {fd} {} {} {INTEGER}", constant(1)?, constant(2)?),
            "fcntl" => {
                let argument = call.args.get(2).and_then(value).unwrap_or(0);
                format!("fcntl {fd} {} {argument}", constant(1)?)
            }
            "ioctl" => format!("ioctl {fd} {}", constant(1)?),
            "poll" => self.poll_text(call)?,
            "epoll_create" | "epoll_create1" => format!("epoll_create {new}"),
            "epoll_ctl" => {
                let events = call.args.get(3).and_then(|event| field(event, "events"));
                let events = events.and_then(value).unwrap_or(0);
                format!("epoll_ctl {fd} {} {} {events}", constant(1)?, constant(2)?)
            }
            "epoll_wait" => format!("epoll_wait {fd} {} {}", constant(2)?, constant(3)?),
            other => {
                let what = format!("`{other}` is not supported on a real host");
                return self.unsupported(call.name.span, what);
            }
        })
    }

    fn constant(&self, call: &SystemCall, place: usize) -> Result<i64> {
        let Some(expr) = call.args.get(place) else {
            return self.unsupported(call.name.span, "this call lacks an argument");
        };
        match value(expr) {
            Some(number) => Ok(number),
            None => self.unsupported(expr.span, "this value is not known"),
        }
    }

    fn refuse_pointers(&self, call: &SystemCall) -> Result<()> {
        match self.null_buffer(call) {
            true => self.unsupported(call.name.span, "a real host is given no `NULL`"),
            false => Ok(()),
        }
    }

    fn flags(&self, call: &SystemCall, family: &str) -> Result<i64> {
        let Some(flags) = message_flags(call, family) else { return Ok(0) };
        match &flags.kind {
            ExprKind::Any => Ok(0),
            _ => value(flags)
                .map_or_else(|| self.unsupported(flags.span, "this value is not known"), Ok),
        }
    }

    /// The lengths of the parts of a write, each after a blank.
    fn lengths(&self, call: &SystemCall) -> Result<String> {
        let vector = match call.args.get(1).map(|arg| &arg.kind) {
            Some(ExprKind::Struct(fields)) => fields
                .iter()
                .find(|(name, _)| name.as_deref() == Some("msg_iov"))
                .map(|(_, list)| &list.kind),
            other => other,
        };
        if let Some(ExprKind::List(parts)) = vector {
            let lengths: Option<Vec<u64>> = parts.iter().map(length).collect();
            if let Some(lengths) = lengths {
                return Ok(lengths.iter().fold(String::new(), |mut text, length| {
                    let _ = write!(text, " {length}");
                    text
                }));
            }
        }
        Ok(format!(" {}", self.amount(call)?))
    }

    /// The value of `setsockopt` in hexadecimal.
    fn option_value(&self, call: &SystemCall) -> Result<String> {
        let Some(expr) = call.args.get(3) else {
            return self.unsupported(call.name.span, "`setsockopt` lacks its value");
        };
        let inner = match &expr.kind {
            ExprKind::List(values) if values.len() == 1 => &values[0],
            _ => expr,
        };
        let bytes = match &inner.kind {
            ExprKind::Text(_) if socket_key(inner, number(call, 4)).is_some() => {
                socket_key(inner, number(call, 4)).unwrap_or_default().to_vec()
            }
            ExprKind::Text(text) => text.as_bytes().to_vec(),
            ExprKind::Struct(_) => match (named(expr, "onoff"), named(expr, "linger")) {
                (Some(on), Some(seconds)) => {
                    [on as i32, seconds as i32].iter().flat_map(|n| n.to_le_bytes()).collect()
                }
                _ => return self.unsupported(expr.span, "this structure is not known"),
            },
            _ => match single(expr).or_else(|| value(inner)) {
                Some(number) => (number as i32).to_le_bytes().to_vec(),
                None => return self.unsupported(expr.span, "this value is not known"),
            },
        };
        Ok(bytes.iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        }))
    }

    fn poll_text(&self, call: &SystemCall) -> Result<String> {
        let Some(ExprKind::List(entries)) = call.args.first().map(|list| &list.kind) else {
            return self.unsupported(call.name.span, "`poll` lacks its list");
        };
        let mut text = format!("poll {}", self.constant(call, 2)?);
        for entry in entries {
            let fd = field(entry, "fd").and_then(single).unwrap_or(-1);
            let events = field(entry, "events").and_then(value).unwrap_or(0);
            let _ = write!(text, " {fd} {events}");
        }
        Ok(text)
    }

    /// Compares what a call has returned by pointer.
    fn compare_returned(&self, call: &SystemCall, answer: &RealAnswer) -> Result<()> {
        let extra = answer.extra.as_str();
        match call.name.value.as_str() {
            "getsockopt" => {
                let Some(expected) = call.args.get(3) else { return Ok(()) };
                let bytes = (0..INTEGER).rev();
                let byte = |at: usize| u8::from_str_radix(extra.get(2 * at..2 * at + 2)?, 16).ok();
                let found =
                    bytes.fold(0_i64, |sum, at| sum << 8 | i64::from(byte(at).unwrap_or(0)));
                let is_error = call.args.get(2).is_some_and(|name| value(name) == Some(4));
                let text = match is_error.then(|| error_of(found)).flatten() {
                    Some(name) => name.to_owned(),
                    None => i64::from(found as i32).to_string(),
                };
                self.compare_pointed(expected, &text, call).map(drop)
            }
            "ioctl" => match call.args.get(2) {
                Some(expected) => self.compare_pointed(expected, extra, call).map(drop),
                None => Ok(()),
            },
            "poll" => {
                let Some(ExprKind::List(entries)) = call.args.first().map(|list| &list.kind) else {
                    return Ok(());
                };
                for (entry, found) in entries.iter().zip(extra.split(',')) {
                    self.compare_events(field(entry, "revents"), found)?;
                }
                Ok(())
            }
            "epoll_wait" if answer.value > 0 => {
                let events = call.args.get(1).and_then(|event| field(event, "events"));
                self.compare_events(events, extra.split(',').next().unwrap_or_default())
            }
            _ => Ok(()),
        }
    }

    fn compare_events(&self, expected: Option<&Expr>, found: &str) -> Result<()> {
        let Some((expected, wanted)) = expected.and_then(|expr| Some((expr, value(expr)?))) else {
            return Ok(());
        };
        if found.parse() == Ok(wanted) {
            return Ok(());
        }
        let error = self.at(expected.span, "other events are reported");
        Err(ScriptStop::Failed(error.expected(wanted.to_string()).found(found.to_owned())))
    }
}

/// Returns whether a write has a destination.
fn is_addressed(call: &SystemCall) -> bool {
    let is_null = |expr: &Expr| matches!(&expr.kind, ExprKind::Word(word) if word == "NULL");
    match call.name.value.as_str() {
        "sendto" => call.args.get(4).is_some_and(|address| !is_null(address)),
        "sendmsg" => call
            .args
            .get(1)
            .and_then(|header| field(header, "msg_name"))
            .is_some_and(|a| !is_null(a)),
        _ => false,
    }
}
