//! What is sent again, and what room there is for new data.

use cc::Controller;
use record::{Cause, SentKind};
use units::{Bytes, Offset};

use super::timed_of;
use crate::endpoint::Endpoint;
use crate::loss::Repair;
use crate::profile::Family;

impl Endpoint {
    /// What of the flight is lost goes again first, as far as window and budget let it: where it
    /// begins, its bytes, whether a FIN is among them, and why.
    pub(crate) fn next_lost(&mut self) -> Option<(Offset, u64, bool, SentKind)> {
        let Repair::Timed(loss) = &mut self.snd.repair else { return None };
        if !self.snd.map.any_lost() || loss.frto.sends_new_data() {
            return None;
        }
        let piece = *self.snd.map.next_lost()?;
        let data_end = self.snd.una.max(Offset(1)) + self.snd.buffer.used();
        let start = piece.start();
        let end = piece.end().min(start + u64::from(self.link.mss));
        let fin = end > data_end;
        let len = end.min(data_end).since(start).get();
        if len > 0 && start + len > self.snd.una + self.snd.wnd {
            // The peer has taken its window back.
            return None;
        }
        let sums = self.snd.map.sums();
        let window = self.cc.control().window.get();
        let has_room = match self.cfg.profile.family {
            // tcp_xmit_retransmit_queue: packets of any size.
            Family::Linux => window / u64::from(self.link.mss) > sums.packets_in_flight(),
            _ => window.saturating_sub(sums.pipe()) >= len,
        };
        // The first of a recovery goes at once, and with nothing under way one may always go.
        if !has_room && sums.pipe() > 0 && !loss.episode.budget.untouched() {
            return None;
        }
        let repairs_timeout = loss.episode.timeout_until.is_some_and(|until| start < until);
        let cause = if repairs_timeout { Cause::Timeout } else { Cause::FastRetransmit };
        Some((start, len, fin, SentKind::Again(cause)))
    }

    /// Room for new data while something is reported, lost or recovered: what is not in flight of the
    /// window. `None` where the plain windows hold.
    pub(crate) fn timed_room(&self) -> Option<u64> {
        let Repair::Timed(loss) = &self.snd.repair else { return None };
        if !self.cc.in_recovery() && !self.snd.map.knows_losses() {
            return None;
        }
        let sums = self.snd.map.sums();
        let window = self.cc.control().window;
        // In a recovery by RFC 6675 `pipe` counts though nothing is reported: a second copy may be in
        // flight.
        let counts = sums.sacked.packets > 0
            || sums.lost.packets > 0
            || (matches!(loss.judge, super::judge::Judge::Rfc(_)) && self.cc.in_recovery());
        counts.then(|| window.saturating_sub(Bytes(sums.pipe())).get())
    }

    /// Packets under way, where packets are counted (tcp_packets_in_flight of Linux).
    pub(crate) fn packets_in_flight(&self) -> u64 {
        match &self.snd.repair {
            Repair::Timed(_) => self.snd.map.sums().packets_in_flight(),
            _ => self.snd.map.sums().all.packets,
        }
    }

    /// The probe that is due: new data if the peer's window lets it, else the last packet again.
    pub(crate) fn next_probe(&mut self) -> Option<(Offset, u64, bool, SentKind)> {
        let mss = self.mss();
        let loss = timed_of!(self);
        if !core::mem::take(&mut loss.probe_due) {
            return None;
        }
        let data_end = self.data_end();
        let unsent = data_end.since(self.snd.max).get().min(mss);
        let edge = self.snd.una + self.snd.wnd;
        let fresh = unsent > 0 && self.snd.max + unsent <= edge && self.snd.nxt == self.snd.max;
        let (end, repeats) = (self.snd.max, !fresh);
        let last = *self.snd.map.last()?;
        timed_of!(self).tlp.on_probe(if fresh { end + unsent } else { end }, repeats);
        if fresh {
            return Some((end, unsent, false, SentKind::New));
        }
        let len = last.end().min(data_end).since(last.start()).get();
        let fin = last.end() > data_end;
        Some((last.start(), len, fin, SentKind::Again(Cause::LossProbe)))
    }

    /// `len` bytes left, again or for the first time.
    pub(crate) fn timed_sent(&mut self, len: u64, packets: u64, again: bool) {
        let stamp = again.then_some(self.snd.last_sent).map(|at| self.clock.timestamp(at));
        let in_recovery = self.cc.in_recovery();
        let loss = timed_of!(self);
        if let Some(stamp) = stamp {
            loss.episode.undo.on_resent(packets, stamp);
        }
        if in_recovery {
            loss.episode.budget.on_sent(len, packets);
        }
    }
}
