//! TCP Fast Open of the script's host: at its listener, and for `MSG_FASTOPEN` and
//! `TCP_FASTOPEN_CONNECT` (tcp_sendmsg_fastopen, tcp_fastopen_defer_connect, __inet_stream_connect
//! of Linux 6.18).

use tcp::fast_open::{FastOpenClient, FastOpenListener};
use tcp::profile::Family;
use tcp::{TcpSide, TcpState};

use super::calls::{CallResult, number};
use super::sockets::SocketRole;
use super::{Result, Runner};
use crate::ast::{Expr, ExprKind, OptionList, ScriptSpan, SystemCall, TcpOption};

use CallResult::{Blocks, Error, Value};

impl Runner<'_> {
    /// Refuses Fast Open of other systems, which is not modelled.
    pub(super) fn requires_fast_open(&self, span: ScriptSpan) -> Result<()> {
        let profile = &self.world.host.profile;
        if profile.family == Family::Linux {
            return Ok(());
        }
        self.unsupported(span, format!("TCP Fast Open of {} is not supported", profile.name))
    }

    /// Refuses an expected packet with the option on other systems.
    pub(super) fn check_fast_open(&self, options: &OptionList) -> Result<()> {
        let OptionList::ExactList(list) = options else { return Ok(()) };
        match list.iter().find(|option| matches!(option.value, TcpOption::FastOpen { .. })) {
            Some(option) => self.requires_fast_open(option.span),
            None => Ok(()),
        }
    }

    /// Enables Fast Open at the listener, if the socket and the host have it.
    pub(super) fn offer_fast_open(&mut self) {
        let host = &self.world.host;
        let Some(listener) = self.sockets.listener() else { return };
        let wishes = &listener.wishes;
        let enabled = host.profile.family == Family::Linux
            && host.fast_open.allows_server()
            && wishes.fast_open_queue.is_some_and(|queue| queue > 0);
        let cookie = host.fast_open.cookie(wishes.fast_open_key, self.world.ip);
        let listener = cookie.filter(|_| enabled).map(|cookie| FastOpenListener {
            cookie,
            without_cookie: host.fast_open.accepts_without_cookie(),
        });
        if let Some(connection) = &mut self.world.connection {
            connection.set_fast_open(listener);
        }
    }

    /// Caches what a SYN-ACK said.
    pub(super) fn cache_fast_open(&mut self) {
        let connection = self.world.connection.as_mut();
        if let Some(reply) = connection.and_then(tcp::TcpEndpoint::take_fast_open_reply) {
            let option = self.world.fast_open_option;
            self.world.host.fast_open.learn(option, &reply);
        }
    }

    /// `connect` of a socket with `TCP_FASTOPEN_CONNECT`: with a cookie it is deferred to the first
    /// write; returns whether it is.
    pub(super) fn defers_connect(&self) -> bool {
        self.world.host.fast_open.client_option().is_none_or(|option| !option.is_request())
    }

    /// Opens the connection of socket `fd` with `offered` bytes; returns how many the SYN has.
    pub(super) fn open_fast(&mut self, fd: i64, offered: u64, nonblocking: bool) -> u64 {
        let Some(socket) = self.sockets.get(fd) else { return 0 };
        let config = socket.wishes.config(&self.world.host, self.world.ip, TcpSide::Client);
        let (size, header) = (socket.wishes.send_buffer, socket.wishes.header(self.world.ip));
        self.sockets.replace_connection();
        if let Some(socket) = self.sockets.get_mut(fd) {
            socket.connecting = true;
            socket.deferred = false;
        }
        self.sockets.set_role(fd, SocketRole::Connection);
        self.world.header = header;
        self.world.begin_active(config);
        self.numbers.active_open = true;
        if let Some(size) = size {
            self.fix_send_buffer(size);
        }
        let host = &self.world.host.fast_open;
        let option = host.client_option();
        let client = FastOpenClient { option, mss: host.cache.mss, waits: !nonblocking };
        self.world.fast_open_option = option;
        self.world.with(|_, end| end.open_fast(client, offered)).unwrap_or(0)
    }

    /// A write with `MSG_FASTOPEN`, or the first one after a deferred connect; `None` if it goes on
    /// as another write.
    pub(super) fn write_fast(
        &mut self,
        call: &SystemCall,
        wanted: u64,
        nonblocking: bool,
        progress: &mut u64,
    ) -> Option<CallResult> {
        let fd = number(call, 0);
        let socket = self.sockets.get(fd)?;
        let host = &self.world.host.fast_open;
        let unspecified =
            call.args.get(4).is_some_and(|name| super::calls::names(name, "AF_UNSPEC"));
        if !host.allows_client() || unspecified {
            return Some(Error("EOPNOTSUPP"));
        }
        let first = socket.role == SocketRole::Unconnected || socket.deferred;
        if first {
            *progress = self.open_fast(fd, wanted, nonblocking);
            return Some(match *progress {
                _ if !nonblocking => Blocks,
                0 => Error("EINPROGRESS"),
                taken => Value(i64::try_from(taken).unwrap_or(i64::MAX)),
            });
        }
        let waits = self.retrying;
        match self.world.state() {
            TcpState::SynSent if nonblocking => Some(Error("EALREADY")),
            TcpState::SynSent => Some(Blocks),
            TcpState::Closed => match self.world.error.take() {
                Some(error) => Some(Error(error)),
                None => Some(Error("ECONNABORTED")),
            },
            _ => {
                let socket = self.sockets.get_mut(fd)?;
                let connecting = core::mem::replace(&mut socket.connecting, false);
                (!connecting && !waits).then_some(Error("EISCONN"))
            }
        }
    }
}

/// Parses the key of `TCP_FASTOPEN_KEY`: `"\\xf7\\x63..."`.
pub(super) fn socket_key(value: &Expr, len: i64) -> Option<[u8; 16]> {
    let ExprKind::Text(text) = &value.kind else { return None };
    let bytes: Option<Vec<u8>> =
        text.split("\\x").skip(1).map(|digits| u8::from_str_radix(digits, 16).ok()).collect();
    // A second key is for old cookies only.
    let bytes = bytes.filter(|bytes| matches!(len, 16 | 32) && bytes.len() as i64 == len)?;
    bytes.first_chunk::<16>().copied()
}
