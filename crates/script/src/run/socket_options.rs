//! setsockopt, getsockopt, fcntl, ioctl and poll.

use tcp::profile::{Family, ReceiveBufferRule, SendBufferRule};
use tcp::{TcpEndpoint, TcpSide, TcpState};
use units::{Bytes, Duration};

use super::calls::{CallResult, names, number, words};
use super::sockets::{SocketOptions, SocketRole};
use super::{Result, Runner};
use crate::ast::{Expr, ExprKind, SystemCall};
use CallResult::{Blocks, Error, Value};

/// Options without effect here: addresses, ports, packet marks.
const WITHOUT_EFFECT: [&str; 10] = [
    "SO_REUSEADDR",
    "SO_REUSEPORT",
    "SO_PRIORITY",
    "SO_MARK",
    "SO_BINDTODEVICE",
    "SO_NOSIGPIPE",
    "IPV6_V6ONLY",
    "IP_FREEBIND",
    "IP_MTU_DISCOVER",
    "TCP_LOG",
];

impl Runner<'_> {
    pub(super) fn set_option(&mut self, call: &SystemCall) -> Result<CallResult> {
        let (Some(name), Some(value)) = (call.args.get(2), call.args.get(3)) else {
            return self.unsupported(call.name.span, "`setsockopt` lacks its value");
        };
        let fd = number(call, 0);
        if words(name).first().is_some_and(|name| name.starts_with("TCP_FASTOPEN")) {
            self.requires_fast_open(name.span)?;
        }
        let profile = self.world.host.profile.clone();
        let Some(socket) = self.sockets.get_mut(fd) else { return Ok(Error("EBADF")) };
        let connected = socket.role == SocketRole::Connection;
        let fresh = socket.role == SocketRole::Unconnected;
        let wishes = &mut socket.wishes;
        let option = words(name).first().copied().unwrap_or_default();
        let size = single(value).and_then(|n| u64::try_from(n).ok());
        let seconds = size.map(|n| Duration::from_secs(n.min(1_000_000)));
        match (option, size) {
            (name, _) if WITHOUT_EFFECT.contains(&name) => {}
            (other, _) if SocketOptions::is_ip(other) => {
                return match wishes.set_ip(profile.family, option, value) {
                    Some(done) => Ok(done),
                    None => {
                        self.unsupported(name.span, format!("`{option}` cannot be set so here"))
                    }
                };
            }
            ("TCP_NODELAY", Some(on)) => {
                wishes.nodelay = on != 0;
                if connected {
                    let _: Option<()> = self.world.with(|_, end| end.set_nodelay(on != 0));
                }
            }
            ("TCP_CORK", Some(on)) if profile.family == Family::Linux => {
                wishes.cork = on != 0;
                if connected {
                    let _: Option<()> = self.world.with(|_, end| end.set_cork(on != 0));
                }
            }
            ("TCP_CORK", Some(0)) => {}
            ("TCP_NOTSENT_LOWAT", Some(bytes)) if profile.family == Family::Linux => {
                wishes.notsent_lowat = u32::try_from(bytes).unwrap_or(u32::MAX);
                let bytes = wishes.notsent_lowat;
                if connected {
                    let _: Option<()> = self.world.with(|_, end| end.set_notsent_lowat(bytes));
                }
            }
            ("TCP_USER_TIMEOUT", millis) if profile.family == Family::Linux => {
                let Some(millis) = millis.and_then(|ms| u32::try_from(ms).ok()) else {
                    return Ok(Error("EINVAL"));
                };
                wishes.user_timeout = millis;
                if connected {
                    let _: Option<()> = self.world.with(|_, end| end.set_user_timeout(millis));
                }
            }
            ("SO_SNDBUF", Some(size)) => {
                wishes.send_buffer = Some(size);
                if connected {
                    self.fix_send_buffer(size);
                }
            }
            ("SO_RCVBUF", Some(size)) if fresh => wishes.receive_buffer = Some(size),
            ("TCP_MAXSEG", Some(size)) if !connected => {
                wishes.maxseg = Some(size.clamp(88, 32_767) as u32);
                if !fresh && self.world.state() == TcpState::Listen {
                    let config = wishes.config(&self.world.host, self.world.ip, TcpSide::Server);
                    self.world.begin(config);
                }
            }
            ("TCP_FASTOPEN", Some(queue)) if !connected => wishes.fast_open_queue = Some(queue),
            ("TCP_FASTOPEN_KEY", _) => {
                let Some(key) = super::fast_open::socket_key(value, number(call, 4)) else {
                    return Ok(Error("EINVAL"));
                };
                wishes.fast_open_key = Some(key);
            }
            ("TCP_FASTOPEN_CONNECT", Some(on)) => {
                if on > 1 || !fresh {
                    return Ok(Error("EINVAL"));
                }
                if !self.world.host.fast_open.allows_client() {
                    return Ok(Error("EOPNOTSUPP"));
                }
                wishes.fast_open_connect = on != 0;
            }
            ("TCP_SYNCNT", Some(count @ 1..=127)) => wishes.syn_count = Some(count as u32),
            ("TCP_INQ", Some(on)) => wishes.inq = on != 0,
            // `MSG_ZEROCOPY` is refused by name.
            ("SO_ZEROCOPY", Some(_)) => {}
            ("SO_KEEPALIVE", Some(on)) => wishes.keepalive = on != 0,
            ("TCP_KEEPIDLE", Some(_)) => wishes.keep_idle = seconds,
            ("TCP_KEEPINTVL", Some(_)) => wishes.keep_interval = seconds,
            // The limit of connection setup is not modelled: one that all retransmissions fit in.
            ("TCP_KEEPINIT", Some(362..)) => {}
            ("TCP_KEEPCNT", Some(count)) => wishes.keep_count = Some(count.min(127) as u32),
            ("SO_LINGER", _) => {
                let on = named(value, "onoff").unwrap_or(0) != 0;
                wishes.no_linger = on && named(value, "linger").unwrap_or(0) == 0;
                if on && !wishes.no_linger {
                    return self.unsupported(value.span, "a close that waits is not supported");
                }
            }
            ("TCP_CONGESTION", _) if fresh => {
                let ExprKind::Text(name) = &value.kind else {
                    return self.unsupported(value.span, "this name is not understood");
                };
                match self.world.host.controller(name) {
                    Ok(algorithm) => wishes.algorithm = Some(algorithm),
                    Err(_) => {
                        return self.unsupported(value.span, format!("`{name}` is not modelled"));
                    }
                }
            }
            (other, _) => {
                return self.unsupported(name.span, format!("`{other}` cannot be set so here"));
            }
        }
        if option.starts_with("TCP_KEEP") || option == "SO_KEEPALIVE" {
            let wanted = self.sockets.get(fd).and_then(|socket| socket.wishes.keepalive(&profile));
            let change = option != "SO_KEEPALIVE" && profile.family == Family::Linux;
            if connected {
                let _: Option<()> = self.world.with(|cx, end| match wanted {
                    Some(wanted) if change => {
                        end.change_keepalive(cx.now, wanted, option == "TCP_KEEPIDLE");
                    }
                    _ if change => {}
                    _ => end.set_keepalive(cx, wanted),
                });
            }
        }
        Ok(Value(0))
    }

    /// Sets a fixed send buffer; Linux doubles the value (sock_setsockopt).
    pub(super) fn fix_send_buffer(&mut self, size: u64) {
        let linux = self.world.host.profile.family == Family::Linux;
        let size = if linux { size.saturating_mul(2) } else { size };
        let _: Option<()> = self.world.with(|_, end| end.set_send_buffer(Bytes(size)));
    }

    pub(super) fn get_option(&mut self, call: &SystemCall) -> Result<CallResult> {
        let (Some(name), Some(value)) = (call.args.get(2), call.args.get(3)) else {
            return self.unsupported(call.name.span, "`getsockopt` lacks its value");
        };
        let Some(socket) = self.sockets.get(number(call, 0)) else { return Ok(Error("EBADF")) };
        let mss = self.world.connection.as_ref().map_or(536, |end| end.info().snd_mss);
        let profile = &self.world.host.profile;
        let connected = socket.role == SocketRole::Connection;
        let buffers = self.world.connection.as_ref().filter(|_| connected);
        let buffers = buffers.map(|end| end.info().buffers);
        let doubled = if profile.family == Family::Linux { 2 } else { 1 };
        let seconds = |span: Duration| (span.as_micros() / 1_000_000).to_string();
        let keep = socket.wishes.keepalive_timers(profile);
        let found = match words(name).first().copied().unwrap_or_default() {
            "SO_ERROR" => self.world.error.take().unwrap_or("0").to_owned(),
            "TCP_NODELAY" => i64::from(socket.wishes.nodelay).to_string(),
            "SO_RCVBUF" => match (buffers, socket.wishes.receive_buffer, profile.receive_buffer) {
                (Some((size, _)), ..) => size.get().to_string(),
                (None, Some(size), _) => (doubled * size).to_string(),
                (None, None, ReceiveBufferRule::Linux { rmem, .. }) => rmem[1].get().to_string(),
                (None, None, ReceiveBufferRule::FreeBsd { space, .. })
                | (None, None, ReceiveBufferRule::Fixed { space }) => space.get().to_string(),
            },
            "SO_SNDBUF" => match (socket.wishes.send_buffer, buffers, profile.send_buffer) {
                (Some(size), ..) => (doubled * size).to_string(),
                (None, Some((_, size)), _) => size.get().to_string(),
                (None, None, SendBufferRule::Linux { wmem, .. }) => wmem[1].get().to_string(),
                (None, None, SendBufferRule::FreeBsd { space, .. })
                | (None, None, SendBufferRule::Fixed { space }) => space.get().to_string(),
            },
            "TCP_KEEPIDLE" => seconds(keep.idle),
            "TCP_KEEPINTVL" => seconds(keep.interval),
            "TCP_KEEPINIT" => "75".to_owned(),
            "TCP_KEEPCNT" => keep.count.to_string(),
            "TCP_CORK" => i64::from(socket.wishes.cork).to_string(),
            "TCP_NOTSENT_LOWAT" => socket.wishes.notsent_lowat.to_string(),
            "SO_KEEPALIVE" => i64::from(socket.wishes.keepalive).to_string(),
            "TCP_USER_TIMEOUT" => socket.wishes.user_timeout.to_string(),
            // tcp_getsockopt: the value set, until there is a connection.
            "TCP_MAXSEG" if !connected => socket.wishes.maxseg.map_or(mss, u64::from).to_string(),
            "TCP_MAXSEG" => mss.to_string(),
            "TCP_INQ" => i64::from(socket.wishes.inq).to_string(),
            other if let Some(value) = socket.wishes.get_ip(other) => value.to_string(),
            other => {
                return self.unsupported(name.span, format!("`{other}` cannot be asked for here"));
            }
        };
        // The system writes an `int`, or the part of it that has room.
        if let Some(length) = call.args.get(4)
            && let Some(given @ 5..) = single(length)
        {
            let error = self.at(length.span, "`getsockopt` gives another length");
            return Err(super::ScriptStop::Failed(error.expected(given.to_string()).found("4")));
        }
        self.compare_pointed(value, &found, call)
    }

    /// Compares a value passed by pointer: `[ECONNREFUSED]`.
    pub(super) fn compare_pointed(
        &self,
        value: &Expr,
        found: &str,
        call: &SystemCall,
    ) -> Result<CallResult> {
        let inner = match &value.kind {
            ExprKind::List(values) => values.first(),
            ExprKind::Any => return Ok(Value(0)),
            _ => None,
        };
        let expected = match inner.map(|inner| &inner.kind) {
            Some(ExprKind::Int(n)) => n.to_string(),
            Some(ExprKind::Word(word)) => word.clone(),
            Some(ExprKind::Any) => return Ok(Value(0)),
            _ => return self.unsupported(value.span, "this value is not understood"),
        };
        if expected == found {
            return Ok(Value(0));
        }
        let message = format!("`{}` gives another value", call.name.value);
        Err(super::ScriptStop::Failed(self.at(value.span, message).expected(expected).found(found)))
    }

    pub(super) fn fcntl(&mut self, call: &SystemCall) -> Result<CallResult> {
        let Some(command) = call.args.get(1) else {
            return self.unsupported(call.name.span, "`fcntl` lacks its command");
        };
        let Some(socket) = self.sockets.get_mut(number(call, 0)) else { return Ok(Error("EBADF")) };
        if names(command, "F_SETFL") {
            socket.nonblocking = call.args.get(2).is_some_and(|flags| names(flags, "O_NONBLOCK"));
            return Ok(Value(0));
        }
        if names(command, "F_GETFL") {
            // O_RDWR, and O_NONBLOCK of Linux.
            return Ok(Value(if socket.nonblocking { 0o4002 } else { 2 }));
        }
        self.unsupported(command.span, "this command is not supported")
    }

    pub(super) fn ioctl(&mut self, call: &SystemCall) -> Result<CallResult> {
        let (Some(request), Some(value)) = (call.args.get(1), call.args.get(2)) else {
            return self.unsupported(call.name.span, "`ioctl` lacks its value");
        };
        if self.sockets.get(number(call, 0)).is_none() {
            return Ok(Error("EBADF"));
        }
        let Some(info) = self.world.connection.as_ref().map(TcpEndpoint::info) else {
            return Ok(Error("EINVAL"));
        };
        let found = match words(request).first().copied().unwrap_or_default() {
            "SIOCINQ" | "FIONREAD" => info.unread,
            "SIOCOUTQ" | "TIOCOUTQ" | "FIONWRITE" => info.unsent.0,
            "SIOCOUTQNSD" => info.unsent.1,
            other => return self.unsupported(request.span, format!("`{other}` is not supported")),
        };
        self.compare_pointed(value, &found.to_string(), call)
    }

    pub(super) fn poll(&mut self, call: &SystemCall) -> Result<CallResult> {
        let Some(ExprKind::List(entries)) = call.args.first().map(|list| &list.kind) else {
            return self.unsupported(call.name.span, "`poll` lacks its list");
        };
        let mut ready = 0;
        for entry in entries {
            let ExprKind::Struct(fields) = &entry.kind else {
                return self.unsupported(entry.span, "this entry is not understood");
            };
            let field = |name: &str| {
                fields.iter().find(|(field, _)| field.as_deref() == Some(name)).map(|(_, v)| v)
            };
            let wanted = field("events").map(words).unwrap_or_default();
            let found: Vec<&str> = self
                .poll_events(fields.iter().find_map(|(name, value)| {
                    (name.as_deref() == Some("fd")).then(|| single(value)).flatten()
                }))
                .into_iter()
                .filter(|event| wanted.contains(event) || matches!(*event, "POLLERR" | "POLLHUP"))
                .collect();
            ready += i64::from(!found.is_empty());
            if let Some(awaited) = field("revents").filter(|_| !found.is_empty()) {
                let mut expected = words(awaited);
                let mut got = found.clone();
                expected.sort_unstable();
                got.sort_unstable();
                if expected != got && expected != ["..."] {
                    let error = self.at(awaited.span, "`poll` finds something else");
                    let error = error.expected(expected.join("|")).found(got.join("|"));
                    return Err(super::ScriptStop::Failed(error));
                }
            }
        }
        let waits = number(call, 2) != 0;
        Ok(if ready == 0 && waits { Blocks } else { Value(ready) })
    }

    pub(super) fn poll_events(&self, fd: Option<i64>) -> Vec<&'static str> {
        let Some(socket) = fd.and_then(|fd| self.sockets.get(fd)) else { return Vec::new() };
        let state = self.world.state();
        let mut events = Vec::new();
        if socket.role == SocketRole::Listener {
            let waiting = !self.sockets.connected() && state == TcpState::Established;
            return if waiting { vec!["POLLIN"] } else { events };
        }
        if socket.deferred {
            // tcp_poll: in SYN-SENT with DEFER_CONNECT.
            return vec!["POLLOUT"];
        }
        let info = self.world.connection.as_ref().map(TcpEndpoint::info);
        let ended = self.world.connection.as_ref().is_some_and(TcpEndpoint::at_end);
        let over = self.world.aborted || matches!(state, TcpState::Closed | TcpState::TimeWait);
        if info.is_some_and(|info| info.unread > 0) || ended || over {
            events.push("POLLIN");
        }
        let writes = matches!(state, TcpState::Established | TcpState::CloseWait)
            || self.world.is_fast_open_child();
        let space = self.world.connection.as_ref().is_some_and(TcpEndpoint::has_send_space);
        if writes && space || over {
            events.push("POLLOUT");
        }
        let closed = self.world.connection.as_ref().is_some_and(TcpEndpoint::peer_has_closed);
        if closed || over {
            events.push("POLLRDHUP");
        }
        if over || (closed && socket.shut) {
            events.push("POLLHUP");
        }
        if self.world.error.is_some() {
            events.push("POLLERR");
        }
        events
    }
}

/// Returns a number, possibly passed by pointer.
pub(super) fn single(value: &Expr) -> Option<i64> {
    match &value.kind {
        ExprKind::Int(n) => Some(*n),
        ExprKind::List(values) if values.len() == 1 => single(&values[0]),
        _ => None,
    }
}

/// Returns a field of a structure, possibly passed by pointer.
pub(super) fn named(value: &Expr, name: &str) -> Option<i64> {
    match &value.kind {
        ExprKind::List(values) if values.len() == 1 => named(&values[0], name),
        ExprKind::Struct(fields) => fields
            .iter()
            .find(|(field, _)| field.as_deref() == Some(name))
            .and_then(|(_, v)| single(v)),
        _ => None,
    }
}
