//! Calls that read and write, and their lengths and control messages.

use tcp::profile::Family;
use tcp::{TcpEndpoint, TcpState, WriteFlags};

use super::calls::CallResult::{self, Blocks, Error, Value};
use super::calls::{length, message_flags, names, number, words};
use super::sockets::SocketRole;
use super::{Result, Runner, ScriptStop};
use crate::ast::{ExprKind, SystemCall};

impl Runner<'_> {
    pub(super) fn read(&mut self, call: &SystemCall) -> Result<CallResult> {
        let Some(socket) = self.sockets.get(number(call, 0)) else { return Ok(Error("EBADF")) };
        if socket.role == SocketRole::Listener {
            return Ok(Error("ENOTCONN"));
        }
        if socket.deferred {
            return Ok(if socket.nonblocking { Error("EAGAIN") } else { Blocks });
        }
        let mut nonblocking = socket.nonblocking;
        let connected = socket.role == SocketRole::Connection;
        let (shut, socket_inq) = (socket.shut_read, socket.wishes.inq);
        let mut peeks = false;
        if let Some(flags) = message_flags(call, "recv") {
            for flag in words(flags) {
                match flag {
                    "MSG_DONTWAIT" => nonblocking = true,
                    "MSG_PEEK" => peeks = true,
                    "MSG_TRUNC" | "MSG_NOSIGNAL" | "..." => {}
                    other => {
                        return self.unsupported(flags.span, format!("`{other}` is not supported"));
                    }
                }
            }
        }
        let most = self.amount(call)?;
        if !connected {
            return Ok(Error("ENOTCONN"));
        }
        let (inq, null) = (socket_inq, self.null_buffer(call));
        let unread = self.world.connection.as_ref().map_or(0, |end| end.info().unread);
        if unread > 0 && null {
            return Ok(Error("EFAULT"));
        }
        if unread > 0 {
            let taken = if peeks {
                unread.min(most)
            } else {
                self.world.with(|cx, end| end.read_up_to(cx, most)).unwrap_or(0)
            };
            self.check_control(call, inq)?;
            return Ok(Value(i64::try_from(taken).unwrap_or(i64::MAX)));
        }
        if let Some(error) = self.world.error.take() {
            return Ok(Error(error));
        }
        let ended = self.world.connection.as_ref().is_none_or(TcpEndpoint::at_end);
        Ok(match self.world.state() {
            _ if ended || shut => Value(0),
            TcpState::Closed | TcpState::TimeWait => Value(0),
            _ if nonblocking => Error("EAGAIN"),
            _ => Blocks,
        })
    }

    pub(super) fn write(&mut self, call: &SystemCall, progress: &mut u64) -> Result<CallResult> {
        let Some(socket) = self.sockets.get(number(call, 0)) else { return Ok(Error("EBADF")) };
        let (mut nonblocking, shut) = (socket.nonblocking, socket.shut);
        let listens = socket.role == SocketRole::Listener;
        let linux = self.world.host.profile.family == Family::Linux;
        let mut fast = socket.deferred;
        let mut with = WriteFlags::default();
        if let Some(flags) = message_flags(call, "send") {
            for flag in words(flags) {
                match flag {
                    "MSG_DONTWAIT" => nonblocking = true,
                    "MSG_FASTOPEN" => fast = true,
                    "MSG_MORE" if linux => with.more = true,
                    "MSG_EOR" if linux => with.ends_record = true,
                    "MSG_NOSIGNAL" | "..." => {}
                    other => {
                        return self.unsupported(flags.span, format!("`{other}` is not supported"));
                    }
                }
            }
        }
        let wanted = self.amount(call)?;
        if wanted > 0 && self.null_buffer(call) {
            return Ok(Error("EFAULT"));
        }
        if listens {
            // sk_stream_wait_connect; FreeBSD's tcp_usr_send
            return Ok(Error(if linux { "EPIPE" } else { "ENOTCONN" }));
        }
        if fast && let Some(result) = self.write_fast(call, wanted, nonblocking, progress) {
            return Ok(result);
        }
        if let Some(error) = self.world.error.take() {
            return Ok(Error(error));
        }
        let may = matches!(self.world.state(), TcpState::Established | TcpState::CloseWait)
            || self.world.is_fast_open_child();
        if shut || !may {
            let opening = matches!(self.world.state(), TcpState::SynSent | TcpState::SynReceived);
            return Ok(match opening && !shut {
                true if nonblocking => Error("EAGAIN"),
                true => Blocks,
                false => Error("EPIPE"),
            });
        }
        let left = wanted - *progress;
        let taken = self.world.with(|cx, end| {
            let taken = end.write_with(cx, left, with);
            if nonblocking {
                end.end_blocked_write();
            }
            taken
        });
        let taken = taken.unwrap_or(0);
        *progress += taken;
        let done = i64::try_from(*progress).unwrap_or(i64::MAX);
        Ok(if *progress == wanted {
            Value(done)
        } else if nonblocking {
            if done > 0 { Value(done) } else { Error("EAGAIN") }
        } else {
            Blocks
        })
    }

    /// Returns whether the buffer of a call is `NULL`.
    pub(super) fn null_buffer(&self, call: &SystemCall) -> bool {
        call.args.get(1).is_some_and(|buffer| names(buffer, "NULL"))
    }

    /// Compares the control message that `recvmsg` returns for `TCP_INQ`: the bytes left, or 1
    /// after the last one if the peer has closed (tcp_inq_hint).
    fn check_control(&self, call: &SystemCall, inq: bool) -> Result<()> {
        let Some(ExprKind::Struct(header)) = call.args.get(1).map(|arg| &arg.kind) else {
            return Ok(());
        };
        let control = header.iter().find(|(name, _)| name.as_deref() == Some("msg_control"));
        let Some((_, control)) = control else { return Ok(()) };
        let ExprKind::List(messages) = &control.kind else { return Ok(()) };
        for message in messages {
            let ExprKind::Struct(fields) = &message.kind else { continue };
            let field = |name: &str| {
                fields.iter().find(|(field, _)| field.as_deref() == Some(name)).map(|(_, v)| v)
            };
            let kind = field("cmsg_type").map(words).unwrap_or_default();
            let data = match (kind.as_slice(), field("cmsg_data").map(|data| &data.kind)) {
                (["TCP_CM_INQ"], Some(ExprKind::Int(bytes))) if inq => *bytes,
                _ => {
                    let what = format!("control message `{}`", kind.join("|"));
                    return self.unsupported(message.span, format!("the {what} is not supported"));
                }
            };
            let end = self.world.connection.as_ref();
            let left = end.map_or(0, |end| end.info().unread);
            let closed = end.is_some_and(TcpEndpoint::at_end);
            let found = if left == 0 && closed { 1 } else { i64::try_from(left).unwrap_or(0) };
            if data != found {
                let error = self.at(message.span, "another number of bytes is left");
                let error = error.expected(data.to_string()).found(found.to_string());
                return Err(ScriptStop::Failed(error));
            }
        }
        Ok(())
    }

    /// Returns the length argument of a read or write.
    pub(super) fn amount(&self, call: &SystemCall) -> Result<u64> {
        let place = match call.name.value.as_str() {
            "readv" | "writev" | "sendmsg" | "recvmsg" => 1,
            _ => 2,
        };
        let Some(expr) = call.args.get(place) else {
            return self.unsupported(call.name.span, "this call lacks its length");
        };
        let bytes = match &expr.kind {
            ExprKind::Int(n) => u64::try_from(*n).ok(),
            // An iovec: the lengths of its parts.
            ExprKind::List(parts) => parts.iter().map(length).sum::<Option<u64>>(),
            ExprKind::Struct(fields) => fields
                .iter()
                .find(|(name, _)| name.as_deref() == Some("msg_iov"))
                .and_then(|(_, list)| match &list.kind {
                    ExprKind::List(parts) => parts.iter().map(length).sum::<Option<u64>>(),
                    _ => None,
                }),
            _ => None,
        };
        match bytes {
            Some(bytes) => Ok(bytes),
            None => self.unsupported(expr.span, "this length is not understood"),
        }
    }
}
