//! System calls of the application, including those that block.

use machine::Endpoint as _;
use tcp::{TcpEndpoint, TcpSide, TcpState};
use units::Instant;

use super::sockets::{ScriptSocket, SocketOptions, SocketRole};
use super::{Result, Runner, ScriptStop};
use crate::ast::{Expr, ExprKind, ScriptEvent, SystemCall, When};

/// Result of a system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallResult {
    /// A return value.
    Value(i64),
    /// -1 with this errno.
    Error(&'static str),
    /// The call blocks.
    Blocks,
}

use CallResult::{Blocks, Error, Value};

/// A blocked call.
pub(super) struct BlockedCall<'a> {
    call: &'a SystemCall,
    /// Bytes written so far.
    progress: u64,
    /// Earliest and latest time of its return.
    from: Instant,
    pub(super) until: Instant,
}

impl<'a> Runner<'a> {
    pub(super) fn call(&mut self, event: &ScriptEvent, call: &'a SystemCall) -> Result<()> {
        if let Some(blocked) = &self.blocked {
            let busy = &blocked.call.name.value;
            return self.unsupported(call.name.span, format!("`{busy}` has not returned yet"));
        }
        let mut progress = 0;
        let returned = if self.world.real.is_some() {
            self.call_real(call, matches!(event.when.value, When::Blocking { .. }))?
        } else {
            self.perform(call, &mut progress)?
        };
        let end = match event.when.value {
            When::Blocking { relative, to, .. } => {
                Some(if relative { self.base + to } else { self.world.at(to) })
            }
            _ => None,
        };
        match (returned, end) {
            (Blocks, Some(end)) => {
                let slack = self.rules.tolerance;
                let from = Instant::from_nanos(end.as_nanos().saturating_sub(slack.as_nanos()));
                self.blocked = Some(BlockedCall { call, progress, from, until: end + slack });
                Ok(())
            }
            (Blocks, None) => {
                let error = self.at(call.name.span, "this call would wait");
                let error = error.expected("an answer at once");
                Err(ScriptStop::Failed(
                    error.hint("write a time such as `+0...0.1` for a call that waits".to_owned()),
                ))
            }
            (returned, Some(end)) if end > self.world.now() + self.rules.tolerance => {
                let error = self.at(event.when.span, "this call does not wait");
                let Value(value) = returned else {
                    return Err(ScriptStop::Failed(error));
                };
                Err(ScriptStop::Failed(error.found(format!("{value} at once"))))
            }
            (returned, _) => self.check_result(call, returned),
        }
    }

    /// Retries the blocked call.
    pub(super) fn retry(&mut self) -> Result<()> {
        let Some(mut blocked) = self.blocked.take() else { return Ok(()) };
        let mut progress = blocked.progress;
        self.retrying = true;
        let performed = if self.world.real.is_some() {
            self.returned_real(blocked.call)
        } else {
            self.perform(blocked.call, &mut progress)
        };
        self.retrying = false;
        match performed? {
            Blocks if self.world.now() <= blocked.until => {
                blocked.progress = progress;
                self.blocked = Some(blocked);
                Ok(())
            }
            Blocks => Err(ScriptStop::Failed(self.too_late(&blocked))),
            returned if self.world.now() < blocked.from => {
                self.check_result(blocked.call, returned)?;
                let error = self.at(blocked.call.name.span, "this call returned too early");
                let at = self.world.script_time(self.world.now());
                Err(ScriptStop::Failed(error.found(format!("{} s", super::wording::seconds(at)))))
            }
            returned => self.check_result(blocked.call, returned),
        }
    }

    /// Reports a call that is still blocked.
    pub(super) fn still_blocked(&self) -> Result<()> {
        match &self.blocked {
            Some(blocked) => Err(ScriptStop::Failed(self.too_late(blocked))),
            None => Ok(()),
        }
    }

    fn too_late(&self, blocked: &BlockedCall<'_>) -> crate::Diagnostic {
        let until = super::wording::seconds(self.world.script_time(blocked.until));
        self.at(blocked.call.name.span, "this call has not returned")
            .expected(format!("an answer by {until} s"))
    }

    fn check_result(&self, call: &SystemCall, returned: CallResult) -> Result<()> {
        let text = match returned {
            Value(value) => value.to_string(),
            Error(name) => format!("-1 {name}"),
            Blocks => return Ok(()),
        };
        let fits = match (&call.result.kind, returned) {
            (ExprKind::Any, _) => true,
            (ExprKind::Int(n), Value(value)) => *n == value && call.errno.is_none(),
            (ExprKind::Int(-1), Error(name)) => {
                call.errno.as_ref().is_none_or(|errno| same_error(&errno.value, name))
            }
            _ => false,
        };
        if fits {
            return Ok(());
        }
        let span = call.errno.as_ref().map_or(call.result.span, |e| call.result.span.to(e.span));
        let expected = self.text.get(span.start..span.end).unwrap_or_default();
        let expected = expected.split_whitespace().collect::<Vec<_>>().join(" ");
        let message = format!("`{}` returned something else", call.name.value);
        Err(ScriptStop::Failed(self.at(span, message).expected(expected).found(text)))
    }

    fn perform(&mut self, call: &SystemCall, progress: &mut u64) -> Result<CallResult> {
        let fd = |n: usize| number(call, n);
        match call.name.value.as_str() {
            "socket" => self.socket(call),
            "bind" if self.sockets.get(fd(0)).is_none() => Ok(Error("EBADF")),
            "bind" => Ok(Value(0)),
            "listen" => self.listen(call),
            "accept" | "accept4" => self.accept(call),
            "connect" => self.connect(call),
            "read" | "recv" | "recvfrom" | "readv" | "recvmsg" => self.read(call),
            "write" | "send" | "sendto" | "writev" | "sendmsg" => self.write(call, progress),
            "shutdown" => self.shutdown(call),
            "close" => Ok(self.close(fd(0))),
            "setsockopt" => self.set_option(call),
            "getsockopt" => self.get_option(call),
            "fcntl" => self.fcntl(call),
            "ioctl" => self.ioctl(call),
            "poll" => self.poll(call),
            "epoll_create" | "epoll_create1" => Ok(self.epoll_create(call)),
            "epoll_ctl" => self.epoll_ctl(call),
            "epoll_wait" => self.epoll_wait(call),
            other => self.unsupported(call.name.span, format!("`{other}` is not supported")),
        }
    }

    fn socket(&mut self, call: &SystemCall) -> Result<CallResult> {
        self.refuse_other_sockets(call)?;
        let ExprKind::Int(number) = call.result.kind else { return Ok(Value(0)) };
        if number < 0 {
            return Ok(Value(3));
        }
        let nonblocking = call.args.get(1).is_some_and(|kind| names(kind, "SOCK_NONBLOCK"));
        let wishes = SocketOptions::default();
        self.sockets.open(
            number,
            ScriptSocket {
                role: SocketRole::Unconnected,
                nonblocking,
                connecting: false,
                deferred: false,
                shut: false,
                shut_read: false,
                wishes,
            },
        );
        Ok(Value(number))
    }

    /// Refuses sockets of other protocols than TCP.
    pub(super) fn refuse_other_sockets(&self, call: &SystemCall) -> Result<()> {
        for part in &call.args {
            let other = words(part).into_iter().find_map(|word| match word {
                "SOCK_DGRAM" | "IPPROTO_UDP" | "IPPROTO_UDPLITE" => Some("UDP"),
                "SOCK_SEQPACKET" | "IPPROTO_SCTP" => Some("SCTP"),
                "SOCK_RAW" => Some("raw"),
                "IPPROTO_MPTCP" => Some("MPTCP"),
                _ => None,
            });
            if let Some(other) = other {
                return self.unsupported(part.span, format!("{other} sockets are not supported"));
            }
        }
        Ok(())
    }

    fn listen(&mut self, call: &SystemCall) -> Result<CallResult> {
        let fd = number(call, 0);
        let Some(socket) = self.sockets.get_mut(fd) else { return Ok(Error("EBADF")) };
        if socket.role == SocketRole::Listener {
            return Ok(Value(0));
        }
        let wishes = &mut socket.wishes;
        if self.world.host.fast_open.needs_no_option() && wishes.fast_open_queue.is_none() {
            wishes.fast_open_queue = u64::try_from(number(call, 1)).ok();
        }
        let config = wishes.config(&self.world.host, self.world.ip, TcpSide::Server);
        self.sockets.replace_connection();
        self.sockets.set_role(fd, SocketRole::Listener);
        self.world.begin(config);
        self.numbers.active_open = false;
        Ok(Value(0))
    }

    fn accept(&mut self, call: &SystemCall) -> Result<CallResult> {
        let Some(listener) = self.sockets.get(number(call, 0)) else { return Ok(Error("EBADF")) };
        if listener.role != SocketRole::Listener {
            return Ok(Error("EINVAL"));
        }
        let opening = matches!(
            self.world.state(),
            TcpState::Listen | TcpState::SynReceived | TcpState::SynSent
        );
        let ready = !self.sockets.connected()
            && (!opening || self.world.is_fast_open_child())
            && (self.world.state() != TcpState::Closed || self.world.aborted);
        if !ready {
            let nonblocking = listener.nonblocking;
            return Ok(if nonblocking { Error("EAGAIN") } else { Blocks });
        }
        let wishes = listener.wishes.clone();
        let ExprKind::Int(number) = call.result.kind else {
            return self
                .unsupported(call.result.span, "`accept` needs the number of its socket written");
        };
        // A script that expects an error has no number for the socket.
        if number < 0 {
            return Ok(Value(4));
        }
        let nonblocking = call.args.get(3).is_some_and(|flags| names(flags, "SOCK_NONBLOCK"));
        if let Some(size) = wishes.send_buffer {
            self.fix_send_buffer(size);
        }
        let _: Option<()> = self.world.with(|_, end| inherit(end, &wishes));
        let socket = ScriptSocket {
            role: SocketRole::Connection,
            nonblocking,
            connecting: false,
            deferred: false,
            shut: false,
            shut_read: false,
            wishes,
        };
        self.sockets.open(number, socket);
        Ok(Value(number))
    }

    fn connect(&mut self, call: &SystemCall) -> Result<CallResult> {
        let fd = number(call, 0);
        let Some(socket) = self.sockets.get_mut(fd) else { return Ok(Error("EBADF")) };
        if socket.deferred {
            return Ok(Error("EISCONN"));
        }
        if socket.role == SocketRole::Unconnected && socket.wishes.fast_open_connect {
            let nonblocking = socket.nonblocking;
            if self.defers_connect() {
                if let Some(socket) = self.sockets.get_mut(fd) {
                    socket.deferred = true;
                }
                return Ok(Value(0));
            }
            self.open_fast(fd, 0, nonblocking);
            return Ok(if nonblocking { Error("EINPROGRESS") } else { Blocks });
        }
        if socket.role == SocketRole::Unconnected {
            let config = socket.wishes.config(&self.world.host, self.world.ip, TcpSide::Client);
            socket.connecting = true;
            let (nonblocking, size) = (socket.nonblocking, socket.wishes.send_buffer);
            self.world.header = socket.wishes.header(self.world.ip);
            self.sockets.set_role(fd, SocketRole::Connection);
            self.world.begin_active(config);
            self.numbers.active_open = true;
            if let Some(size) = size {
                self.fix_send_buffer(size);
            }
            let wishes = self.sockets.get(fd).map(|socket| socket.wishes.clone());
            let _: Option<()> = self.world.with(|_, end| {
                wishes.iter().for_each(|wishes| inherit(end, wishes));
                end.open();
            });
            return Ok(if nonblocking { Error("EINPROGRESS") } else { Blocks });
        }
        let waits = self.blocked.is_none() && !socket.nonblocking;
        Ok(match self.world.state() {
            TcpState::SynSent | TcpState::SynReceived if waits => Blocks,
            TcpState::SynSent | TcpState::SynReceived if socket.nonblocking => Error("EALREADY"),
            TcpState::SynSent | TcpState::SynReceived => Blocks,
            TcpState::Closed => match self.world.error.take() {
                Some(error) => Error(error),
                None => Error("ECONNABORTED"),
            },
            _ if socket.nonblocking => Error("EISCONN"),
            _ => Value(0),
        })
    }

    fn shutdown(&mut self, call: &SystemCall) -> Result<CallResult> {
        let Some(how) = call.args.get(1) else {
            return self.unsupported(call.name.span, "`shutdown` lacks its direction");
        };
        let Some(socket) = self.sockets.get_mut(number(call, 0)) else { return Ok(Error("EBADF")) };
        let writes = names(how, "SHUT_WR") || names(how, "SHUT_RDWR");
        if socket.role != SocketRole::Connection || self.world.state() == TcpState::Closed {
            return Ok(Error("ENOTCONN"));
        }
        let reads = !names(how, "SHUT_WR");
        socket.shut_read |= reads;
        if reads {
            let _: Option<()> = self.world.with(|_, end| end.stop_reading(false));
        }
        if !writes {
            return Ok(Value(0));
        }
        if let Some(socket) = self.sockets.get_mut(number(call, 0)) {
            socket.shut = true;
        }
        let _: Option<()> = self.world.with(|_, end| end.close());
        Ok(Value(0))
    }

    fn close(&mut self, fd: i64) -> CallResult {
        if self.sockets.close_epoll(fd) {
            return Value(0);
        }
        let Some(socket) = self.sockets.close(fd) else { return Error("EBADF") };
        if socket.role == SocketRole::Listener && !self.sockets.connected() {
            // inet_csk_listen_stop: what was not accepted is reset.
            let _: Option<()> = self.world.with(|cx, end| {
                if end.state() != TcpState::Listen {
                    end.reset(cx);
                    while end.poll_signal().is_some() {}
                }
            });
        }
        if socket.role != SocketRole::Connection {
            return Value(0);
        }
        let unread = self.world.connection.as_ref().is_some_and(|end| end.info().unread > 0);
        let _: Option<()> = self.world.with(|cx, end| {
            // Unread data is lost: reset the connection (RFC 2525 section 2.17).
            if unread || socket.wishes.no_linger {
                end.reset(cx);
                while end.poll_signal().is_some() {}
            } else {
                end.stop_reading(true);
                if !socket.shut {
                    end.close();
                }
            }
        });
        Value(0)
    }
}

/// Options of a socket before it was connected that the connection takes over.
fn inherit(end: &mut TcpEndpoint, wishes: &SocketOptions) {
    if wishes.cork {
        end.set_cork(true);
    }
    end.set_notsent_lowat(wishes.notsent_lowat);
    end.set_user_timeout(wishes.user_timeout);
}

/// Returns the flags of a call of that family; those of `sendmsg` and `recvmsg` come third.
pub(super) fn message_flags<'c>(call: &'c SystemCall, family: &str) -> Option<&'c Expr> {
    let name = call.name.value.as_str();
    let place = if name.ends_with("msg") { 2 } else { 3 };
    call.args.get(place).filter(|_| name.starts_with(family))
}

/// Returns whether two names are of one error.
fn same_error(left: &str, right: &str) -> bool {
    let one = |name: &str| if name == "EWOULDBLOCK" { "EAGAIN" } else { name }.to_owned();
    one(left) == one(right)
}

/// Returns a numeric argument; -1 if it is not a number.
pub(super) fn number(call: &SystemCall, place: usize) -> i64 {
    match call.args.get(place).map(|expr| &expr.kind) {
        Some(ExprKind::Int(number)) => *number,
        _ => -1,
    }
}

/// Returns the length of an element of an iovec: `{..., 1000}`.
pub(super) fn length(part: &Expr) -> Option<u64> {
    let ExprKind::Struct(fields) = &part.kind else { return None };
    let named = fields.iter().find(|(name, _)| name.as_deref() == Some("iov_len"));
    match &named.or(fields.last())?.1.kind {
        ExprKind::Int(n) => u64::try_from(*n).ok(),
        _ => None,
    }
}

/// Returns the names joined by `|`; a nonzero number is an unknown name.
pub(super) fn words(expr: &Expr) -> Vec<&str> {
    match &expr.kind {
        ExprKind::Word(word) => vec![word],
        ExprKind::Or(parts) => parts.iter().flat_map(words).collect(),
        ExprKind::Int(0) => Vec::new(),
        ExprKind::Int(0x2000_0000) => vec!["MSG_FASTOPEN"],
        ExprKind::Any => vec!["..."],
        _ => vec!["this value"],
    }
}

pub(super) fn names(expr: &Expr, word: &str) -> bool {
    words(expr).contains(&word)
}
