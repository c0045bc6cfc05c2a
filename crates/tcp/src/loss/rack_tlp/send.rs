//! Retransmissions, and the room for new data.

use cc::Controller;
use record::{Cause, SentKind};
use recovery::sendmap::SentSegment;
use units::{Bytes, Instant, Offset, unlikely};

use crate::connection::Connection;
use crate::profile::{BurstRule, RetransmissionRoom};
use crate::send_side::SendSide;
use crate::sender::Sender;
use crate::stacks::Stack;

impl SendSide {
    /// Is the flight lost in a timeout still being retransmitted?
    pub(crate) fn repairs_timeout(&self) -> bool {
        matches!(&self.stack, Stack::RackTlp(loss) if loss.repairs_timeout())
    }

    /// The next lost segment to retransmit, as far as window and PRR allow: its start, its length,
    /// whether it includes a FIN, and the cause.
    pub(crate) fn next_lost(&mut self, conn: &Connection) -> Option<(Offset, u64, bool, SentKind)> {
        if !self.scoreboard.any_lost() || self.holds_retransmissions() {
            return None;
        }
        let mut sent_segment = *self.scoreboard.next_lost()?;
        let data_end = self.una.max(Offset(1)) + self.buffer.used();
        if unlikely(sent_segment.end().min(data_end).since(sent_segment.start()).get() > conn.mss())
        {
            sent_segment = self.cut_larger_packet(conn, &sent_segment)?;
        }
        let Stack::RackTlp(loss) = &self.stack else { return None };
        let start = sent_segment.start();
        let mut end = sent_segment.end().min(start + u64::from(conn.negotiated.mss));
        let collapses = conn.cfg.profile.rules.sending.collapses_retransmissions;
        if unlikely(end.since(start).get() < conn.mss()) && collapses {
            end = self.collapsed_end(conn, start);
        }
        let fin = end > data_end;
        let len = end.min(data_end).since(start).get();
        if len > 0 && start + len > self.una + self.peer.wnd {
            // The peer has shrunk its window.
            return None;
        }
        let sums = self.scoreboard.sums();
        let window = self.cc.control().window.get();
        let has_room = match conn.cfg.profile.rules.sending.retransmission_room {
            RetransmissionRoom::Packets => {
                window / u64::from(conn.negotiated.mss) > sums.packets_in_flight()
            }
            RetransmissionRoom::Bytes => window.saturating_sub(sums.pipe()) >= len,
        };
        // The first retransmission of a recovery is sent at once; with nothing in flight one is
        // always allowed.
        if !has_room && sums.pipe() > 0 && !loss.episode.prr.untouched() {
            return None;
        }
        let (mut fin, mut len) = (fin, len);
        if conn.cfg.tso {
            let in_flight = sums.packets_in_flight();
            let room = (window / u64::from(conn.negotiated.mss)).saturating_sub(in_flight);
            end = self.lost_burst_end(conn, end, room);
            (fin, len) = (end > data_end, end.min(data_end).since(start).get());
        }
        let repairs_timeout = loss.episode.timeout_until.is_some_and(|until| start < until);
        let cause = if repairs_timeout { Cause::Timeout } else { Cause::FastRetransmit };
        Some((start, len, fin, SentKind::Retransmission(cause)))
    }

    /// Is nothing lost retransmitted until an acknowledgment or the pacing releases it (`REXMIT_NONE`, `REXMIT_NEW`)?
    pub(crate) fn holds_retransmissions(&self) -> bool {
        matches!(
            &self.stack,
            Stack::RackTlp(loss) if loss.frto.sends_new_data() || loss.holds_back
        )
    }

    /// tcp_tsq_write, when the device has sent what it held or the pacing releases the flow: what is lost may be
    /// retransmitted, whatever the last acknowledgment released.
    pub(crate) fn release_retransmissions(&mut self) {
        self.call.device_done = self.max;
        if let Stack::RackTlp(loss) = &mut self.stack {
            loss.holds_back = false;
            loss.frto.release();
        }
    }

    /// Room for new data while packets are SACKed or lost, or in recovery: the window less the data
    /// in flight. `None` where the ordinary windows apply.
    pub(crate) fn rack_tlp_room(&self) -> Option<u64> {
        let Stack::RackTlp(loss) = &self.stack else { return None };
        if !self.cc.in_recovery() && !self.scoreboard.knows_losses() {
            return None;
        }
        let sums = self.scoreboard.sums();
        let window = self.cc.control().window;
        // In a recovery of RFC 6675 `pipe` applies even without SACKed data: a second copy may be
        // in flight.
        let counts = sums.sacked.packets > 0
            || sums.lost.packets > 0
            || (!matches!(loss.detector, super::RackDetector::Linux(_)) && self.cc.in_recovery());
        counts.then(|| window.saturating_sub(Bytes(sums.pipe())).get())
    }

    /// Packets in flight (tcp_packets_in_flight of Linux).
    pub(crate) fn packets_in_flight(&self) -> u64 {
        match &self.stack {
            Stack::RackTlp(_) => self.scoreboard.sums().packets_in_flight(),
            _ => self.scoreboard.sums().all.packets,
        }
    }

    /// Is the probe sent now?
    pub(crate) fn probes_at(&self, now: Instant) -> bool {
        matches!(&self.stack, Stack::RackTlp(loss) if loss.planned_at(now))
    }

    /// The tail loss probe that is due: new data if the peer's window allows it, else the last
    /// packet again.
    pub(crate) fn next_probe(
        &mut self,
        conn: &Connection,
    ) -> Option<(Offset, u64, bool, SentKind)> {
        let mss = conn.mss();
        let loss = self.stack.rack_tlp()?;
        if !core::mem::take(&mut loss.probe_due) {
            return None;
        }
        let data_end = self.data_end();
        let fresh = self.probes_with_new_data(conn);
        let unsent = match conn.cfg.profile.burst {
            BurstRule::Linux(rule) if fresh => self.probe_burst(conn, rule),
            _ => data_end.since(self.max).get().min(mss),
        };
        let (end, repeats) = (self.max, !fresh);
        if conn.fin_wanted() && end == data_end && self.nxt == end {
            // The FIN waits for the window.
            if let Some(loss) = self.stack.rack_tlp() {
                loss.tlp.on_probe(end + 1, false);
            }
            return Some((end, 0, true, SentKind::Control));
        }
        let last = *self.scoreboard.last()?;
        // The last packet of the queue has the FIN (tcp_send_fin).
        let fin = conn.fin_wanted() && end + unsent == data_end;
        let sent_end = if fresh { end + unsent + u64::from(fin) } else { end };
        if let Some(loss) = self.stack.rack_tlp() {
            loss.tlp.on_probe(sent_end, repeats);
        }
        if fresh {
            return Some((end, unsent, fin, SentKind::New));
        }
        self.note_probed(last.end());
        let len = last.end().min(data_end).since(last.start()).get();
        let fin = last.end() > data_end;
        Some((last.start(), len, fin, SentKind::Retransmission(Cause::LossProbe)))
    }

    /// Records `len` bytes sent, new or retransmitted (`repeated`) in a recovery: a tail loss probe is neither
    /// (tcp_send_loss_probe).
    pub(crate) fn rack_tlp_sent(
        &mut self,
        conn: &Connection,
        len: u64,
        packets: u64,
        repeated: bool,
    ) {
        let stamp = repeated.then_some(self.last.sent).map(|at| conn.clock.timestamp(at));
        let in_recovery = self.cc.in_recovery() || self.holds_recovery();
        let Some(loss) = self.stack.rack_tlp() else { return };
        if let Some(stamp) = stamp {
            loss.episode.undo.on_retransmitted(packets, stamp);
        }
        if in_recovery {
            loss.episode.prr.on_sent(len, packets);
        }
    }
}

impl Sender {
    /// A packet that is retransmitted has segments of the present size (__tcp_retransmit_skb): returns its first one.
    #[cold]
    fn cut_larger_packet(&mut self, conn: &Connection, first: &SentSegment) -> Option<SentSegment> {
        let (start, mss) = (first.start(), conn.mss());
        let end = self.buffer.flight_end(start).unwrap_or(first.end()).max(first.end());
        self.scoreboard.resegment(start, end, mss);
        self.scoreboard.get(start).copied()
    }

    /// Linux: end of the packet at `start` when it is retransmitted, with small ones that follow and fit into a segment
    /// with it, a FIN too (tcp_retrans_try_collapse).
    pub(crate) fn collapsed_end(&self, conn: &Connection, start: Offset) -> Offset {
        let map = &self.scoreboard;
        let (most, data_end) = (start + conn.mss(), self.data_end());
        let mut end = map.get(start).map_or(most, SentSegment::end);
        if end.min(data_end) >= most {
            // Not even a FIN is added to a full segment (__tcp_retransmit_skb).
            return if end > data_end { end } else { most };
        }
        while let Some(next) = map.get(end).filter(|next| !next.sacked())
            && next.end().min(data_end) <= most
        {
            end = next.end();
        }
        end
    }

    /// Linux: where the retransmission of a lost packet ends whose first segment ends at `end`. All of the packet is
    /// retransmitted, as far as `room` in packets, the limit of a burst and the peer's window allow
    /// (tcp_xmit_retransmit_queue, __tcp_retransmit_skb).
    fn lost_burst_end(&self, conn: &Connection, mut end: Offset, room: u64) -> Offset {
        let Some(packet_end) = self.buffer.flight_end(Offset(end.0 - 1)) else { return end };
        if packet_end <= end {
            return end;
        }
        let (data_end, window_end) = (self.data_end(), self.una + self.peer.wnd);
        let fits = |next: &&SentSegment| {
            next.waits() && next.end() <= packet_end && next.end().min(data_end) <= window_end
        };
        for _ in 1..room.min(self.burst_limit(conn)) {
            let Some(next) = self.scoreboard.get(end).filter(fits) else { break };
            end = next.end();
        }
        end
    }

    /// Is a tail loss probe new data, which the peer's window allows?
    pub(crate) fn probes_with_new_data(&self, conn: &Connection) -> bool {
        let unsent = self.data_end().since(self.max).get().min(conn.mss());
        let edge = self.una + self.peer.wnd;
        unsent > 0 && self.max + unsent <= edge && self.nxt == self.max
    }
}
