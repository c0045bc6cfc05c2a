//! The application's calls: open, write, read, close and reset.

use core::hint::cold_path;

use machine::Cx;
use record::{Event, Recorder};
use units::{Offset, unlikely};

use crate::endpoint::TcpEndpoint;
use crate::output::call::PacketBatch;
use crate::profile::{AfterRead, BurstRule};
use crate::send_buffer::WriteFlags;
use crate::tcp_state::TcpState;

impl TcpEndpoint {
    /// Opens the connection actively; allowed on a listener, too (RFC 9293 section 3.10.1).
    pub fn open(&mut self) {
        if matches!(self.conn.state, TcpState::Closed | TcpState::Listen) {
            self.conn.state = TcpState::SynSent;
            self.snd.call_output();
        }
    }

    /// Writes up to `bytes` into the send buffer; returns how many fit. The application offers the
    /// rest again after [`Signal::Writable`](machine::Signal::Writable).
    pub fn write<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, bytes: u64) -> u64 {
        self.write_with(cx, bytes, WriteFlags::default())
    }

    /// Writes like [`TcpEndpoint::write`], with the flags of a call; only Linux has them.
    #[inline]
    pub fn write_with<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        bytes: u64,
        flags: WriteFlags,
    ) -> u64 {
        let opens = self.conn.cfg.profile.rules.opening.write_opens_listener;
        if bytes > 0 && self.conn.state == TcpState::Listen && opens {
            self.open();
        }
        if self.snd.buffer.fin || !self.snd.may_write(&self.conn) {
            return 0;
        }
        if unlikely(!self.conn.clock.is_exact()) {
            self.timers.begin_event(cx.now, false);
        }
        // The rest of a call that waits for space is no other call (tcp_sendmsg_locked).
        let continues = self.snd.buffer.continues_call();
        if self.snd.measures_rates() && !continues {
            let now = self.conn.clock.read(cx.now);
            let in_flight = self.snd.packets_in_flight();
            self.snd.check_app_limited(&self.conn, now, in_flight);
        }
        let mut call = None;
        let taken = match self.conn.cfg.profile.burst {
            BurstRule::Linux(rule) => {
                // tcp_skb_entail: a call without data has no packet to check with.
                if bytes > 0 {
                    self.snd.restart_if_idle(&self.conn, cx);
                }
                let mut queue = self.snd.write_queue(&self.conn, cx.now, rule);
                queue.flags = flags;
                // tcp_skb_entail: a new packet ends TCP_NAGLE_PUSH.
                self.snd.nagle.uncorks &= queue.unsent > 0;
                if rule.device_holds {
                    queue.device = Some(self.snd.device_limits(&self.conn, cx.now));
                }
                let written = self.snd.buffer.write_packets(bytes, queue);
                call = Some(self.snd.begin_write_call(&self.conn, &queue, written.pushed));
                written.taken
            }
            BurstRule::FreeBsd { .. } | BurstRule::Rfc => self.snd.buffer.write(bytes),
        };
        if taken > 0 {
            if unlikely(!self.conn.clock.is_exact()) {
                self.timers.wake_process();
                self.snd.begin_call(cx.now);
            }
            cx.emit(|| Event::AppWrote { bytes: taken as u32 });
            self.snd.call.check_space |= self.snd.stack.wakes_after_write();
            self.snd.call_output();
            self.snd.call.write = call;
        }
        taken
    }

    /// Reads all bytes received in order; returns how many.
    pub fn read<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) -> u64 {
        self.read_up_to(cx, u64::MAX)
    }

    /// Reads at most `most` of the bytes received in order; returns how many.
    #[inline(always)]
    pub fn read_up_to<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, most: u64) -> u64 {
        let bytes = self.rcv.window.unread().min(most);
        if bytes == 0 {
            return 0;
        }
        if unlikely(!self.conn.clock.is_exact()) {
            self.timers.begin_event(cx.now, false);
            self.timers.wake_process();
        }
        let reach = || self.rcv.reassembly.reach(self.rcv.nxt);
        if let Some(size) = self.rcv.window.on_read((cx.now, self.snd.last.received), bytes, reach)
        {
            cold_path();
            cx.emit(|| Event::ReceiveBuffer { size: size as u32 });
        }
        let end = self.rcv.fin.map_or(self.rcv.nxt, |fin| self.rcv.nxt.min(fin));
        let upto = Offset(self.conn.payload_offset(end).0 - self.rcv.window.unread());
        cx.emit(|| Event::AppRead { bytes: bytes as u32, total: upto });
        let unacked = self.rcv.nxt - self.rcv.acked;
        let emptied = self.rcv.window.unread() == 0 && self.rcv.reassembly.is_empty();
        let mss = self.rcv.rcv_mss(&self.conn);
        let after = self.conn.cfg.profile.rules.receiving.after_read;
        if (unacked > 0 && self.rcv.policy.on_read(emptied, unacked, mss))
            || (after == AfterRead::Cleanup && self.rcv.read_doubles_window())
        {
            self.rcv.ack_now = true;
        }
        // Where a read does not always call the output routine, it would send nothing unless an ACK
        // or a window update is due.
        self.rcv.delays_ack = false;
        if after == AfterRead::Output
            || self.rcv.ack_now
            || self.rcv.window_update_due(&self.conn, &self.timers)
        {
            if unlikely(!self.conn.clock.is_exact()) {
                // tcp_rcv_space_adjust reads the clock before tcp_cleanup_rbuf.
                self.timers.reach_output(cx.now + self.conn.clock.reading());
            } else {
                self.snd.call_output();
            }
        }
        bytes
    }

    /// Closes the sending direction: a FIN follows the last byte.
    pub fn close(&mut self) {
        match self.conn.state {
            TcpState::Established => self.conn.state = TcpState::FinWait1,
            TcpState::CloseWait => self.conn.state = TcpState::LastAck,
            // The FIN waits for the acknowledgment of the SYN (TF_NEEDFIN of tcp_usrclosed; Linux
            // since 6.9; RFC 9293 section 3.10.4 would not wait if nothing was written).
            TcpState::SynReceived => {
                self.snd.buffer.fin = true;
                return;
            }
            TcpState::Closed | TcpState::Listen | TcpState::SynSent => {
                self.conn.state = TcpState::Closed;
                self.timers.stop_all();
                return;
            }
            _ => return,
        }
        self.snd.buffer.fin = true;
        self.snd.call_output();
        // tcp_send_fin: TCP_NAGLE_OFF.
        self.snd.call.nagle_off = true;
    }

    /// Aborts the connection: unsent bytes are lost and the peer gets a RST (a close with
    /// `SO_LINGER` of zero).
    pub fn reset<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        let rules = self.conn.cfg.profile.rules.closing;
        let reports = match self.conn.state {
            TcpState::SynReceived
            | TcpState::Established
            | TcpState::FinWait1
            | TcpState::FinWait2
            | TcpState::CloseWait => true,
            // No data can be lost any more.
            TcpState::Closing | TcpState::LastAck => rules.resets_while_closing,
            TcpState::Closed | TcpState::Listen | TcpState::SynSent | TcpState::TimeWait => false,
        };
        self.snd.call.batch = PacketBatch::NONE;
        if reports {
            self.reset =
                Some((self.snd.nxt.to_seq(self.conn.cfg.isn), Some(self.rcv.rcv_nxt_seq())));
            if rules.reset_has_options {
                self.snd.rare.active_reset = true;
            }
        }
        self.abort(cx);
    }
}
