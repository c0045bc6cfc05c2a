//! Socket options that an application may change while a connection is open (setsockopt).

use machine::Cx;
use record::Recorder;
use units::{Bytes, Instant};

use crate::endpoint::TcpEndpoint;
use crate::profile::Keepalive;
use crate::tcp_state::TcpState;

impl TcpEndpoint {
    /// `TCP_NODELAY`: disables or enables Nagle's algorithm. Data it held back is sent at once.
    pub fn set_nodelay(&mut self, nodelay: bool) {
        self.conn.cfg.nodelay = nodelay;
        if nodelay {
            self.snd.nagle.uncorks = self.snd.nagle.corked;
            self.snd.call_output();
        }
    }

    /// `TCP_CORK` of Linux: less than a segment waits until it is removed (__tcp_sock_set_cork).
    pub fn set_cork(&mut self, corked: bool) {
        self.snd.nagle.corked = corked;
        if !corked {
            self.snd.nagle.uncorks = self.conn.cfg.nodelay;
            self.snd.call_output();
        }
    }

    /// `TCP_NOTSENT_LOWAT` of Linux: a writer waits from this number of unsent bytes on; 0 for the system's value.
    pub fn set_notsent_lowat(&mut self, bytes: u32) {
        self.snd.buffer.set_notsent_lowat(bytes);
    }

    /// The application has `closed` the socket (`SOCK_DEAD`; `SS_NOFDREF` of FreeBSD), or shut it down for reading
    /// (`RCV_SHUTDOWN`): data that arrives after our FIN is answered with a RST; FreeBSD does so only after a close.
    pub fn stop_reading(&mut self, closed: bool) {
        if closed || self.conn.cfg.profile.rules.closing.shutdown_refuses_data {
            self.snd.rare.receive_shut = true;
        }
        self.snd.rare.orphaned |= closed;
    }

    /// `SO_SNDBUF`: sets the size in the system's own unit and disables autotuning.
    pub fn set_send_buffer(&mut self, size: Bytes) {
        self.snd.buffer.fix(size.get());
    }

    /// `MSG_DONTWAIT`: the last write does not wait for space.
    pub fn end_blocked_write(&mut self) {
        self.snd.buffer.end_wait();
    }

    /// Is there space for a write, as poll reports it (sk_stream_is_writeable; FreeBSD
    /// `sowriteable`)?
    pub fn has_send_space(&self) -> bool {
        let unsent = self.snd.data_end().since(self.snd.max).get();
        self.snd.buffer.has_space(self.snd.max, unsent)
    }

    /// `SO_KEEPALIVE` and, but for Linux, its options: enables or disables keepalive; the idle time counts from now.
    /// What is on already does not change on Linux (tcp_set_keepalive).
    pub fn set_keepalive<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, wanted: Option<Keepalive>) {
        let stays = self.conn.cfg.profile.rules.closing.keepalive_stays;
        if stays && wanted.is_some() && self.conn.cfg.keepalive.is_some() {
            return;
        }
        self.conn.cfg.keepalive = wanted.map(Box::new);
        if wanted.is_some() {
            self.snd.rearm_keepalive(&self.conn, &mut self.timers, cx);
        } else {
            self.timers.stop(record::Purpose::Keepalive);
        }
    }

    /// `TCP_KEEPIDLE`, `TCP_KEEPINTVL` and `TCP_KEEPCNT` of Linux while keepalive is on: only the `idle` time sets the
    /// timer, and it counts from the last packet that was received (tcp_sock_set_keepidle_locked).
    pub fn change_keepalive(&mut self, now: Instant, wanted: Keepalive, idle: bool) {
        self.conn.cfg.keepalive = Some(Box::new(wanted));
        if idle && self.conn.state == TcpState::Established {
            let at = self.conn.clock.deadline(self.snd.last.received, wanted.idle);
            self.timers.set(record::Purpose::Keepalive, at.max(now));
        }
    }

    /// `TCP_USER_TIMEOUT` of Linux: how long data may stay unacknowledged, or a window shut; zero for the system's
    /// limits.
    pub fn set_user_timeout(&mut self, millis: u32) {
        // Most connections have no rare state, and this would allocate it.
        if self.snd.rare.user_timeout != millis {
            self.snd.rare.user_timeout = millis;
        }
    }
}
