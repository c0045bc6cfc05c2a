//! Acknowledgments while nothing is missing, which most of a transfer consists of.
//!
//! The steps of [`Endpoint::timed_ack`], less those that find nothing to do: no block was reported,
//! nothing is lost, sent again, probed or being repaired. Header prediction for the sending half
//! (tcp_do_segment of FreeBSD, the fast path of tcp_rcv_established of Linux).

use cc::Controller;
use machine::Cx;
use packet::Segment;
use record::{Purpose, Recorder};
use units::Offset;

use super::TimedLoss;
use super::judge::Judge;
use crate::endpoint::Endpoint;
use crate::loss::Repair;

impl TimedLoss {
    /// Is nothing being repaired, probed or found out?
    fn is_calm(&self) -> bool {
        self.episode.timeout_until.is_none() && !self.tlp.probing() && !self.frto.sends_new_data()
    }
}

impl Endpoint {
    /// Takes an acknowledgment without blocks if nothing is missing; false if it is not of that kind.
    pub(crate) fn calm_ack<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        segment: &Segment,
        ack: Offset,
        wnd: u64,
    ) -> bool {
        let Repair::Timed(loss) = &mut self.snd.repair else { return false };
        let calm_here = loss.is_calm();
        let (Judge::Rfc(rack) | Judge::Linux(rack)) = &mut loss.judge;
        let calm = calm_here
            && ack > self.snd.una
            && self.snd.map.nothing_missing()
            && self.snd.shift == 0
            && self.snd.timeout_stamp.is_none()
            && self.snd.ecn_episode.is_none()
            && self.snd.rates.is_none()
            && !self.cc.in_recovery();
        if !calm {
            return false;
        }
        let row = self.snd.map.acknowledge_plain(ack);
        loss.planned = None;
        if let Some(row) = &row {
            rack.on_row_delivered(row, cx.now);
            loss.tlp.on_rtt_sample();
            self.take_row_rtt(cx, segment, ack, row);
        }
        if ack == self.snd.max {
            self.timers.stop(Purpose::Retransmit);
        } else {
            self.arm_retransmit_here(cx.now);
        }
        self.timers.stop(Purpose::Reorder);
        let nsegs = u32::from(segment.nsegs.max(1));
        let packets = row.map_or(0, |row| row.packets);
        let change = self.grow(cx.now, ack, packets, nsegs);
        self.advance(cx, ack, wnd, nsegs, change);
        self.plan_probe_timer_here(cx.now);
        self.call_output();
        true
    }
}
