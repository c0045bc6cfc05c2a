//! TCP Fast Open (RFC 7413; net/ipv4/tcp_fastopen.c and tcp_output.c of Linux 6.18).
//!
//! The endpoint compares and sends cookies; the host makes those of a listener
//! (tcp_fastopen_cookie_gen) and caches those of servers (tcp_fastopen_cache_set). A server answers
//! a SYN that has a valid cookie with a connection that the application may use at once: it is in
//! SYN-RECEIVED, and until the handshake ends its retransmission timer is that of the SYN-ACK. A
//! client sends data in its SYN; what the SYN-ACK does not acknowledge is retransmitted as data.

pub(crate) mod state;

use core::hint::cold_path;

use machine::Cx;
use packet::{FastOpenOption, Flags, Segment};
use record::{Cause, Purpose, Recorder};
use units::{Instant, Offset, SeqNum};

use crate::connection::Connection;
use crate::endpoint::TcpEndpoint;
use crate::sender::Sender;
use crate::stacks::Stack;
use crate::tcp_state::TcpState;
use crate::timers::Timers;
pub(crate) use state::FastOpenHandshake;
pub use state::{FastOpenClient, FastOpenListener, FastOpenReply};

/// Options of SYNs have at most this size (MAX_TCP_OPTION_SPACE): data in a SYN leaves room for
/// all of them.
const OPTION_SPACE: u32 = 40;

/// Why Fast Open of a client failed (`enum tcp_fastopen_client_fail`).
const COOKIE_UNAVAILABLE: u8 = 1;
const DATA_NOT_ACKED: u8 = 2;
const SYN_RETRANSMITTED: u8 = 3;

impl TcpEndpoint {
    /// Enables Fast Open at a listener, or disables it.
    pub fn set_fast_open(&mut self, listener: Option<FastOpenListener>) {
        if let Some(handshake) = &mut self.conn.handshake_cfg {
            handshake.fast_open.listener = listener;
        }
    }

    /// Opens the connection with a SYN that has as much of `offered` bytes as fits, or requests a
    /// cookie (tcp_send_syn_data); returns how many bytes it has.
    pub fn open_fast(&mut self, client: FastOpenClient, offered: u64) -> u64 {
        if self.conn.state != TcpState::Closed {
            return 0;
        }
        let own = self.conn.negotiated.maxseg;
        let mss = if client.mss == 0 { own } else { own.min(u32::from(client.mss)) };
        let requests = client.option.is_some_and(|option| option.is_request());
        if requests {
            self.snd.rare.fast_open.failure = COOKIE_UNAVAILABLE;
        }
        let space = if requests { 0 } else { mss.saturating_sub(OPTION_SPACE) };
        let data = u64::from(space).min(offered);
        if let Some(handshake) = &mut self.conn.handshake_cfg {
            handshake.fast_open = FastOpenHandshake {
                listener: None,
                client: Some(FastOpenClient { waits: client.waits && data < offered, ..client }),
                option: client.option,
                data: data as u32,
                too_large: false,
            };
        }
        self.snd.buffer.begin_with(data);
        self.open();
        data
    }

    /// Takes what the SYN-ACK of a Fast Open said, for the host's cache.
    pub fn take_fast_open_reply(&mut self) -> Option<FastOpenReply> {
        if self.snd.rare.fast_open.reply.is_some() {
            self.snd.rare.fast_open.reply.take()
        } else {
            None
        }
    }

    /// Is it a connection of a listener with Fast Open whose SYN-ACK is not acknowledged?
    #[inline]
    pub fn is_fast_open_child(&self) -> bool {
        self.conn.state == TcpState::SynReceived && self.snd.rare.fast_open.child
    }

    /// tcp_try_fastopen: decides on a SYN at a listener, which was processed except for this.
    pub(crate) fn on_fast_open_syn<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, segment: &Segment) {
        let Some(handshake) = &mut self.conn.handshake_cfg else { return };
        let Some(listener) = handshake.fast_open.listener else { return };
        cold_path();
        let theirs = segment.syn_options().and_then(|syn| syn.fast_open);
        if segment.payload == 0 && theirs.is_none() {
            return;
        }
        let valid = theirs.is_some_and(|option| option.cookie() == listener.cookie.cookie());
        if valid || listener.without_cookie {
            self.begin_fast_open_child(cx, segment);
        } else {
            handshake.fast_open.option = theirs.map(|option| {
                let mut cookie = listener.cookie;
                cookie.experimental = option.experimental;
                cookie
            });
        }
    }

    /// tcp_fastopen_create_child.
    fn begin_fast_open_child<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, segment: &Segment) {
        let one = Offset(1);
        self.snd.una = one;
        self.snd.nxt = one;
        self.snd.max = one;
        // The window of a SYN is not scaled.
        self.snd.peer.wnd = u64::from(segment.window);
        self.snd.peer.max_wnd = self.snd.peer.wnd;
        self.snd.peer.wl2 = one;
        self.establish(cx);
        let room = u64::from(self.rcv.window.syn_field());
        self.rcv.adv = self.rcv.nxt + room;
        if segment.payload > 0 {
            self.take_fast_open_payload(cx, segment, false);
            self.snd.rare.fast_open.syn_data_acked = true;
        }
        self.rcv.ack_now = false;
        self.timers.stop(Purpose::DelayedAck);
        self.conn.state = TcpState::SynReceived;
        self.snd.rare.fast_open.child = true;
        self.snd.rare.fast_open.syn_ack_due = true;
        self.snd.call_output();
    }

    /// The acknowledgment that ends the handshake of such a connection (tcp_rcv_state_process and
    /// tcp_rcv_synrecv_state_fastopen).
    pub(crate) fn on_fast_open_ack<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        segment: &Segment,
        ack: Offset,
    ) {
        if ack == Offset(1) {
            // tcp_synack_rtt_meas
            self.snd.take_rtt(
                &self.conn,
                cx,
                segment,
                Offset(1),
                &crate::sent::DeliveredPackets::default(),
            );
        }
        self.snd.rare.fast_open.child = false;
        self.snd.rare.fast_open.syn_ack_due = false;
        self.snd.peer.wnd = self.conn.scaled_window(segment);
        self.snd.peer.max_wnd = self.snd.peer.max_wnd.max(self.snd.peer.wnd);
        self.snd.peer.wl1 = self.rcv.nxt;
        self.snd.peer.wl2 = ack;
        self.snd.rexmt.shift = 0;
        self.conn.state =
            if self.snd.buffer.fin { TcpState::FinWait1 } else { TcpState::Established };
        if self.snd.max > self.snd.una {
            self.snd.arm_retransmit(&self.conn, &mut self.timers, cx.now);
        } else {
            self.timers.stop(Purpose::Retransmit);
        }
        self.snd.update_pacing_rate(&self.conn);
        self.snd.call_output();
    }

    /// tcp_rcv_fastopen_synack, after the SYN-ACK itself was processed; `shift`: retransmissions of
    /// the SYN.
    pub(crate) fn end_fast_open<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        segment: &Segment,
        fast: FastOpenHandshake,
        shift: u32,
    ) {
        let theirs = segment.syn_options().copied().unwrap_or_default();
        let data = u64::from(fast.data);
        let ack = segment.ack.near(self.conn.cfg.isn, Offset(1)).unwrap_or(Offset(1));
        let acked = ack.since(Offset(1)).get().min(data);
        let whole = acked == data;
        self.snd.rare.fast_open.reply = Some(FastOpenReply {
            cookie: theirs.fast_open.filter(|option| !option.is_request()),
            mss: if theirs.mss == 0 { 536 } else { theirs.mss },
            retransmitted: shift > 0 || fast.too_large,
        });
        self.snd.una = Offset(1) + acked;
        self.snd.sender.buffer.acknowledge(acked, self.snd.sender.una);
        self.snd.nxt = self.snd.una;
        self.snd.max = self.snd.una;
        self.snd.peer.wl2 = self.snd.una;
        if whole {
            self.snd.rare.fast_open.syn_data_acked = data > 0;
            if segment.payload > 0 || segment.flags.has(Flags::FIN) {
                self.take_fast_open_payload(cx, segment, segment.flags.has(Flags::FIN));
            }
        } else {
            let retransmitted = shift > 0 || fast.too_large;
            self.snd.rare.fast_open.failure =
                if retransmitted { SYN_RETRANSMITTED } else { DATA_NOT_ACKED };
            // tcp_mark_skb_lost and tcp_non_congestion_loss_retransmit.
            let end = Offset(1) + data;
            let mss = self.conn.mss();
            crate::sent::push(
                &mut self.snd.sender.scoreboard,
                self.snd.sender.una,
                end,
                false,
                mss,
                self.snd.sender.last.sent,
            );
            self.snd.scoreboard.set_push();
            let packets = self.snd.scoreboard.sums().all.packets;
            self.snd.totals.data_packets += packets;
            self.snd.max = end;
            if matches!(self.snd.stack, Stack::RackTlp(_)) {
                self.snd.scoreboard.mark_all_lost();
                self.snd.nxt = end;
            } else {
                self.snd.rexmt.cause = Cause::Timeout;
            }
        }
        let waits = fast.client.is_some_and(|client| client.waits);
        // Retransmitted data, or data that the application writes now, has the ACK.
        if !whole || waits {
            self.rcv.ack_now = false;
        }
        if waits {
            self.rcv.policy.on_write_pending(cx.now, self.conn.clock.tick(cx.now));
        }
        self.snd.call_output();
    }
}

impl Sender {
    /// May the application write? In SYN-RECEIVED only with Fast Open.
    #[inline(always)]
    pub(crate) fn may_write(&self, conn: &Connection) -> bool {
        matches!(conn.state, TcpState::Established | TcpState::CloseWait)
            || self.is_fast_open_child(conn)
    }

    /// Is it a connection of a listener with Fast Open whose SYN-ACK is not acknowledged?
    #[inline]
    pub(crate) fn is_fast_open_child(&self, conn: &Connection) -> bool {
        conn.state == TcpState::SynReceived && self.rare.fast_open.child
    }

    /// Fast Open's option and the data of the next SYN or SYN-ACK; retransmissions have neither
    /// (tcp_send_syn_data, tcp_rtx_synack).
    pub(crate) fn fast_open_syn(&self, conn: &Connection) -> (Option<FastOpenOption>, u32) {
        match &conn.handshake_cfg {
            Some(handshake) if self.rexmt.shift == 0 && !handshake.fast_open.too_large => {
                let fast = &handshake.fast_open;
                // A simultaneous open goes on without Fast Open.
                let crossed = fast.client.is_some() && conn.state == TcpState::SynReceived;
                if crossed { (None, 0) } else { (fast.option, fast.data) }
            }
            _ => (None, 0),
        }
    }

    /// Is this acknowledgment number of a SYN-ACK valid: that of our SYN, or of data in it?
    pub(crate) fn acknowledges_syn(&self, conn: &Connection, ack: SeqNum) -> bool {
        let ack = ack.near(conn.cfg.isn, Offset(1));
        ack.is_some_and(|ack| ack >= Offset(1) && ack <= self.max.max(Offset(1)))
    }

    /// Holds that data in flight: it is not retransmitted before its timer fires.
    pub(crate) fn keep_syn_data(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        now: Instant,
        sent: Option<(Instant, Offset)>,
    ) {
        let Some((at, end)) = sent else { return };
        let mss = conn.mss();
        crate::sent::push(&mut self.scoreboard, Offset(1), end, false, mss, at);
        self.scoreboard.set_push();
        self.totals.data_packets += self.scoreboard.sums().all.packets;
        self.arm_retransmit(conn, timers, now);
    }
}

impl Connection {
    /// A SYN with data is lost: the next one has none. Returns false if it had none. `shift`: timeouts so far.
    pub(crate) fn lose_syn_data(&mut self, shift: u32) -> bool {
        let Some(handshake) = &mut self.handshake_cfg else { return false };
        let fast = &mut handshake.fast_open;
        let lost = fast.client.is_some() && fast.data > 0 && !fast.too_large && shift == 0;
        fast.too_large |= lost;
        lost
    }

    /// Fast Open of a listener.
    pub(crate) fn fast_open_listener(&self) -> Option<FastOpenListener> {
        self.handshake_cfg.as_ref()?.fast_open.listener
    }

    /// Fast Open of this client; it ends with the SYN-ACK.
    pub(crate) fn fast_open_client(&self) -> Option<FastOpenHandshake> {
        let handshake = self.handshake_cfg.as_ref()?;
        handshake.fast_open.client.map(|_| handshake.fast_open)
    }

    /// When a SYN with data was sent that crossed the peer's SYN, and where its data ends.
    pub(crate) fn syn_data(&self) -> Option<(Instant, Offset)> {
        let fast = self.fast_open_client().filter(|_| self.state == TcpState::SynReceived)?;
        let sent = self.handshake_cfg.as_ref()?.opened?;
        (fast.data > 0).then(|| (sent, Offset(1) + u64::from(fast.data)))
    }
}
