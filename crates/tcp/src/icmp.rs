//! ICMP errors of a connection: a path MTU that is smaller (RFC 1191, RFC 8201), and a path that is broken (RFC 6069).
//!
//! Sources: tcp_mtudisc of FreeBSD; tcp_v4_mtu_reduced, tcp_v6_err, tcp_sync_mss, tcp_simple_retransmit,
//! tcp_non_congestion_loss_retransmit and tcp_ld_RTO_revert of Linux 6.12.

use cc::{CongestionSignal as Sign, Controller};
use machine::Cx;
use packet::IpVersion;
use record::{Cause, Purpose, Recorder};
use recovery::RttEstimator;
use units::{Offset, SeqNum};

use crate::config::TcpSide;
use crate::connection::Connection;
use crate::endpoint::TcpEndpoint;
use crate::profile::QuotedRange;
use crate::send_side::SendSide;
use crate::sender::Sender;
use crate::stacks::Stack;
use crate::tcp_state::TcpState;

/// Linux takes no smaller MTU (`ip_rt_min_pmtu`).
const LINUX_LEAST: u32 = 552;
/// No smaller MTU is one of IPv6 (RFC 8200 section 5).
const IPV6_LEAST: u32 = 1_280;

impl TcpEndpoint {
    /// Is the segment that an ICMP message quotes one that may be in flight?
    pub fn quotes_in_flight(&self, seq: SeqNum) -> bool {
        let seq = seq.near(self.conn.cfg.isn, self.snd.una);
        // The SYN-ACK of a Fast Open is not acknowledged (`fastopen_rsk`).
        let una = if self.is_fast_open_child() { Offset(0) } else { self.snd.una };
        seq.is_some_and(|seq| {
            una <= seq
                && match self.conn.cfg.profile.rules.sending.quoted {
                    QuotedRange::BelowMax => seq < self.snd.max,
                    QuotedRange::UpToNxt => seq <= self.snd.nxt,
                }
        })
    }

    /// Ends the connection without a RST, for an ICMP error (tcp_done_with_error).
    pub fn fail<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        self.abort(cx);
    }

    /// Forgets the SYN that a listener has answered (inet_csk_reqsk_queue_drop).
    pub fn drop_request(&mut self) {
        self.begin_anew();
    }

    /// Reduces the path MTU to `mtu` bytes (an ICMP "fragmentation needed" or "packet too big" for a
    /// segment in flight): segments become smaller, and those in flight that were too large are
    /// retransmitted (RFC 1191 section 6.5). A message that asks for more than now has no effect.
    pub fn on_path_mtu<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, mtu: u32) {
        if self.conn.cfg.profile.rules.sending.syncs_path_mtu {
            self.sync_path_mtu(cx, mtu);
            return;
        }
        let headers = self.conn.cfg.ip.header_len() + 20;
        if self.conn.state == TcpState::SynSent && self.conn.cfg.ip == IpVersion::V6 {
            // icmp6_mtudisc_update notes it for the host (tcp_hc_updatemtu), ip_icmp does not before a segment size
            // is agreed on.
            let known = mtu.max(IPV6_LEAST).min(self.snd.path_mtu(&self.conn));
            (self.snd.rare.path_mtu, self.snd.rare.syn_mtu) = (Some(known), Some(known));
        }
        // The minimum of RFC 879: a forged message cannot stop the transfer.
        let maxseg = mtu.max(576).saturating_sub(headers);
        if maxseg >= self.conn.negotiated.maxseg || !self.conn.synchronised() {
            return;
        }
        self.snd.shrink_segments(&mut self.conn, maxseg);
        if matches!(self.snd.stack, Stack::RackTlp(_)) {
            // Its scoreboard knows which packets are lost: sent from the first on, one could be sent twice at once.
            self.snd.lose_larger_packets(&self.conn, cx);
        } else if self.snd.max > self.snd.una {
            self.snd.nxt = self.snd.una;
            self.snd.rexmt.cause = Cause::PathMtu;
            self.snd.call_output();
        }
        self.snd.emit_window(&self.conn, cx, Cause::PathMtu);
    }

    /// tcp_v4_mtu_reduced, tcp_v6_mtu_reduced.
    fn sync_path_mtu<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, mtu: u32) {
        let headers = self.conn.cfg.ip.header_len() + 20;
        let mtu = match self.conn.cfg.ip {
            IpVersion::V4 => mtu.max(LINUX_LEAST),
            IpVersion::V6 if mtu < IPV6_LEAST => return,
            IpVersion::V6 => mtu,
        };
        // A request has no packets that are too large (tcp_req_err).
        let request = self.conn.state == TcpState::SynReceived
            && self.conn.cfg.side == TcpSide::Server
            && !self.is_fast_open_child();
        if mtu >= self.snd.path_mtu(&self.conn) || request {
            return;
        }
        self.snd.rare.path_mtu = Some(mtu);
        match self.conn.state {
            TcpState::SynSent => {
                if self.conn.cfg.profile.advertises_path_mtu {
                    self.snd.rare.syn_mtu = Some(mtu);
                }
                // A SYN without data is never too large.
                if self.conn.lose_syn_data(self.snd.rexmt.shift) {
                    self.snd.rearm_after_timeout(&self.conn, &mut self.timers, cx.now);
                    self.snd.call_output();
                }
                return;
            }
            TcpState::Closed | TcpState::Listen | TcpState::TimeWait => return,
            _ => {}
        }
        let maxseg = mtu - headers;
        if maxseg < self.conn.negotiated.maxseg {
            self.snd.shrink_segments(&mut self.conn, maxseg);
        }
        self.snd.lose_larger_packets(&self.conn, cx);
        self.snd.emit_window(&self.conn, cx, Cause::PathMtu);
    }

    /// The network or the host of the peer is unreachable, says a message that quotes the first packet in flight, `seq`:
    /// not the path is congested, so the last doubling of the timeout is undone (tcp_ld_RTO_revert).
    pub fn revert_backoff<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, seq: SeqNum) {
        let is_first = seq == self.snd.una.to_seq(self.conn.cfg.isn);
        let RttEstimator::Linux(rtt) = &mut self.snd.sender.rtt.estimator else { return };
        let Some(first) = self
            .snd
            .sender
            .scoreboard
            .first()
            .filter(|_| is_first && self.snd.sender.rexmt.shift > 0)
        else {
            return;
        };
        if !rtt.revert_timeout() {
            return;
        }
        let waited = self.conn.clock.ticks(cx.now.since(first.sent_at()));
        let ticks = self.conn.clock.ticks(self.snd.rtt.estimator.rto());
        if ticks > waited {
            self.timers.set(Purpose::Retransmit, self.conn.clock.timer_at(cx.now, ticks - waited));
        } else {
            self.on_timer(cx, Purpose::Retransmit);
        }
    }
}

impl SendSide {
    /// tcp_simple_retransmit: what is larger than a segment is lost, and the window stays, since it is
    /// counted in packets.
    fn lose_larger_packets<R: Recorder>(&mut self, conn: &Connection, cx: &mut Cx<'_, R>) {
        let (data_end, mss) = (self.data_end(), conn.mss());
        let mut at = self.una.max(Offset(1));
        while let Some(first) = self.scoreboard.get(at).copied() {
            let packet_end = self.buffer.flight_end(at).unwrap_or(first.end()).max(first.end());
            // All of a packet of several segments is too large if these are (tcp_skb_seglen).
            if first.end().min(data_end).since(at).get() > mss {
                self.scoreboard.lose_from(at, packet_end);
            }
            at = packet_end;
        }
        if !self.scoreboard.any_lost() {
            return;
        }
        if self.repairs_timeout() {
            self.call_output();
            return;
        }
        self.sender.show_controller(conn, cx.now, self.sender.una);
        let change =
            self.sender.cc.on_congested(&self.sender.congested(conn, cx.now, Sign::PathMtu));
        self.note(conn, cx, change, Cause::PathMtu);
        self.begin_mtu_repair();
        self.call_output();
    }
}

impl Sender {
    /// The MTU of the path, as far as it is known, in bytes (`icsk_pmtu_cookie`).
    pub(crate) fn path_mtu(&self, conn: &Connection) -> u32 {
        self.rare.path_mtu.unwrap_or(conn.cfg.profile.mtu)
    }

    fn shrink_segments(&mut self, conn: &mut Connection, maxseg: u32) {
        let options = if conn.negotiated.timestamps { 12 } else { 0 };
        conn.negotiated.mss = conn.negotiated.mss.min(maxseg - options);
        conn.negotiated.maxseg = maxseg;
        self.cc.on_mss(conn.negotiated.mss, conn.negotiated.maxseg);
    }
}
