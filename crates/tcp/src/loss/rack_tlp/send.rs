//! Retransmissions, and the room for new data.

use cc::Controller;
use record::{Cause, SentKind};
use recovery::sendmap::SentSegment;
use units::{Bytes, Instant, Offset, unlikely};

use crate::endpoint::TcpEndpoint;
use crate::loss::LossDetector;
use crate::profile::RetransmissionRoom;

impl TcpEndpoint {
    /// The next lost segment to retransmit, as far as window and PRR allow: its start, its length,
    /// whether it includes a FIN, and the cause.
    pub(crate) fn next_lost(&mut self) -> Option<(Offset, u64, bool, SentKind)> {
        if !self.snd.scoreboard.any_lost() || self.holds_retransmissions() {
            return None;
        }
        let mut sent_segment = *self.snd.scoreboard.next_lost()?;
        let data_end = self.snd.una.max(Offset(1)) + self.snd.buffer.used();
        if unlikely(sent_segment.end().min(data_end).since(sent_segment.start()).get() > self.mss())
        {
            sent_segment = self.cut_larger_packet(&sent_segment)?;
        }
        let LossDetector::RackTlp(loss) = &self.snd.loss_detector else { return None };
        let start = sent_segment.start();
        let mut end = sent_segment.end().min(start + u64::from(self.negotiated.mss));
        let collapses = self.cfg.profile.rules.sending.collapses_retransmissions;
        if unlikely(end.since(start).get() < self.mss()) && collapses {
            end = self.collapsed_end(start);
        }
        let fin = end > data_end;
        let len = end.min(data_end).since(start).get();
        if len > 0 && start + len > self.snd.una + self.snd.peer.wnd {
            // The peer has shrunk its window.
            return None;
        }
        let sums = self.snd.scoreboard.sums();
        let window = self.cc.control().window.get();
        let has_room = match self.cfg.profile.rules.sending.retransmission_room {
            RetransmissionRoom::Packets => {
                window / u64::from(self.negotiated.mss) > sums.packets_in_flight()
            }
            RetransmissionRoom::Bytes => window.saturating_sub(sums.pipe()) >= len,
        };
        // The first retransmission of a recovery is sent at once; with nothing in flight one is
        // always allowed.
        if !has_room && sums.pipe() > 0 && !loss.episode.prr.untouched() {
            return None;
        }
        let (mut fin, mut len) = (fin, len);
        if self.cfg.tso {
            let in_flight = sums.packets_in_flight();
            let room = (window / u64::from(self.negotiated.mss)).saturating_sub(in_flight);
            end = self.lost_burst_end(end, room);
            (fin, len) = (end > data_end, end.min(data_end).since(start).get());
        }
        let repairs_timeout = loss.episode.timeout_until.is_some_and(|until| start < until);
        let cause = if repairs_timeout { Cause::Timeout } else { Cause::FastRetransmit };
        Some((start, len, fin, SentKind::Retransmission(cause)))
    }

    /// Is nothing lost retransmitted until an acknowledgment or the pacing releases it (`REXMIT_NONE`, `REXMIT_NEW`)?
    pub(crate) fn holds_retransmissions(&self) -> bool {
        matches!(
            &self.snd.loss_detector,
            LossDetector::RackTlp(loss) if loss.frto.sends_new_data() || loss.holds_back
        )
    }

    /// tcp_tsq_write, when the device or the pacing releases the flow: what is lost may be retransmitted, whatever
    /// the last acknowledgment released.
    pub(crate) const fn release_retransmissions(&mut self) {
        if let LossDetector::RackTlp(loss) = &mut self.snd.loss_detector {
            loss.holds_back = false;
            loss.frto.release();
        }
    }

    /// A packet that is retransmitted has segments of the present size (__tcp_retransmit_skb): returns its first one.
    #[cold]
    fn cut_larger_packet(&mut self, first: &SentSegment) -> Option<SentSegment> {
        let (start, mss) = (first.start(), self.mss());
        let end = self.snd.buffer.flight_end(start).unwrap_or(first.end()).max(first.end());
        self.snd.scoreboard.resegment(start, end, mss);
        self.snd.scoreboard.get(start).copied()
    }

    /// Linux: end of the packet at `start` when it is retransmitted, with small ones that follow and fit into a segment
    /// with it, a FIN too (tcp_retrans_try_collapse).
    pub(crate) fn collapsed_end(&self, start: Offset) -> Offset {
        let map = &self.snd.scoreboard;
        let (most, data_end) = (start + self.mss(), self.data_end());
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
    fn lost_burst_end(&self, mut end: Offset, room: u64) -> Offset {
        let Some(packet_end) = self.snd.buffer.flight_end(Offset(end.0 - 1)) else { return end };
        if packet_end <= end {
            return end;
        }
        let (data_end, window_end) = (self.data_end(), self.snd.una + self.snd.peer.wnd);
        let fits = |next: &&SentSegment| {
            next.waits() && next.end() <= packet_end && next.end().min(data_end) <= window_end
        };
        for _ in 1..room.min(self.burst_limit()) {
            let Some(next) = self.snd.scoreboard.get(end).filter(fits) else { break };
            end = next.end();
        }
        end
    }

    /// Room for new data while packets are SACKed or lost, or in recovery: the window less the data
    /// in flight. `None` where the ordinary windows apply.
    pub(crate) fn rack_tlp_room(&self) -> Option<u64> {
        let LossDetector::RackTlp(loss) = &self.snd.loss_detector else { return None };
        if !self.cc.in_recovery() && !self.snd.scoreboard.knows_losses() {
            return None;
        }
        let sums = self.snd.scoreboard.sums();
        let window = self.cc.control().window;
        // In a recovery of RFC 6675 `pipe` applies even without SACKed data: a second copy may be
        // in flight.
        let counts = sums.sacked.packets > 0
            || sums.lost.packets > 0
            || (matches!(loss.detector, super::RackDetector::Rfc(_)) && self.cc.in_recovery());
        counts.then(|| window.saturating_sub(Bytes(sums.pipe())).get())
    }

    /// Packets in flight (tcp_packets_in_flight of Linux).
    pub(crate) fn packets_in_flight(&self) -> u64 {
        match &self.snd.loss_detector {
            LossDetector::RackTlp(_) => self.snd.scoreboard.sums().packets_in_flight(),
            _ => self.snd.scoreboard.sums().all.packets,
        }
    }

    /// Is the probe sent now?
    pub(crate) fn probes_at(&self, now: Instant) -> bool {
        matches!(&self.snd.loss_detector, LossDetector::RackTlp(loss) if loss.planned_at(now))
    }

    /// Is a tail loss probe new data, which the peer's window allows?
    pub(crate) fn probes_with_new_data(&self) -> bool {
        let unsent = self.data_end().since(self.snd.max).get().min(self.mss());
        let edge = self.snd.una + self.snd.peer.wnd;
        unsent > 0 && self.snd.max + unsent <= edge && self.snd.nxt == self.snd.max
    }

    /// The tail loss probe that is due: new data if the peer's window allows it, else the last
    /// packet again.
    pub(crate) fn next_probe(&mut self) -> Option<(Offset, u64, bool, SentKind)> {
        let mss = self.mss();
        let loss = self.snd.loss_detector.rack_tlp()?;
        if !core::mem::take(&mut loss.probe_due) {
            return None;
        }
        let data_end = self.data_end();
        let unsent = data_end.since(self.snd.max).get().min(mss);
        let fresh = self.probes_with_new_data();
        let (end, repeats) = (self.snd.max, !fresh);
        if self.fin_wanted() && end == data_end && self.snd.nxt == end {
            // The FIN waits for the window.
            if let Some(loss) = self.snd.loss_detector.rack_tlp() {
                loss.tlp.on_probe(end + 1, false);
            }
            return Some((end, 0, true, SentKind::Control));
        }
        let last = *self.snd.scoreboard.last()?;
        // The last packet of the queue has the FIN (tcp_send_fin).
        let fin = self.fin_wanted() && end + unsent == data_end;
        let sent_end = if fresh { end + unsent + u64::from(fin) } else { end };
        if let Some(loss) = self.snd.loss_detector.rack_tlp() {
            loss.tlp.on_probe(sent_end, repeats);
        }
        if fresh {
            return Some((end, unsent, fin, SentKind::New));
        }
        let len = last.end().min(data_end).since(last.start()).get();
        let fin = last.end() > data_end;
        Some((last.start(), len, fin, SentKind::Retransmission(Cause::LossProbe)))
    }

    /// Records `len` bytes sent, new or retransmitted (`repeated`) in a recovery: a tail loss probe is neither
    /// (tcp_send_loss_probe).
    pub(crate) fn rack_tlp_sent(&mut self, len: u64, packets: u64, repeated: bool) {
        let stamp = repeated.then_some(self.snd.last_sent).map(|at| self.clock.timestamp(at));
        let in_recovery = self.cc.in_recovery() || self.holds_recovery();
        let Some(loss) = self.snd.loss_detector.rack_tlp() else { return };
        if let Some(stamp) = stamp {
            loss.episode.undo.on_retransmitted(packets, stamp);
        }
        if in_recovery {
            loss.episode.prr.on_sent(len, packets);
        }
    }
}
