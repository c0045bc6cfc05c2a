//! What Linux's stack gives to a controller that bounds its flight by losses (BBR version 3): lost packets with the flight
//! they were sent with, and probes.
//!
//! Source: tcp_input.c, tcp_output.c and tcp_timer.c as the patch of BBR version 3 changes them
//! (tcp_notify_skb_loss_event, tcp_process_tlp_ack, tcp_ack, tcp_write_timer_handler).

use cc::{LostSegment, TxSample};
use units::{Instant, Offset};

use super::{RateState, narrow};
use crate::connection::Connection;
use crate::profile::BurstRule;
use crate::send_side::SendSide;
use crate::sender::Sender;

impl RateState {
    /// The flight, losses and deliveries since the newest packet of the acknowledgment was sent; `lost` in total.
    pub(super) fn tx_sample(&self, lost: u64) -> TxSample {
        let interval = self.delivery.interval();
        TxSample {
            in_flight: interval.in_flight,
            lost: interval.prior_lost.map_or(0, |prior| narrow(lost).wrapping_sub(prior)),
            delivered: interval.delivered,
            delivered_ce: interval.delivered_ce,
            app_limited: interval.app_limited,
        }
    }
}

impl SendSide {
    /// [`Sender::begin_tx_sample`] with the packets in flight.
    pub(crate) fn begin_sample(&mut self, conn: &Connection, now: Instant, echoed: bool) {
        if self.tracks_tx() {
            let in_flight = self.packets_in_flight();
            self.begin_tx_sample(conn, now, echoed, in_flight);
        }
    }

    /// The acknowledgment up to `th_ack` may be of a tail loss probe, if one is still outstanding.
    pub(crate) fn note_probe_acked(&mut self, th_ack: Offset) {
        let Some(loss) = self.stack.rack_tlp() else { return };
        let acks = loss.probe_end().is_some_and(|end| th_ack >= end);
        if let Some(rates) = &mut self.rates {
            rates.acks_probe = acks;
        }
    }
}

impl Sender {
    /// An acknowledgment arrives, or the retransmission timer fires: was the sender application-limited
    /// (tcp_ack, tcp_write_timer_handler)? `echoed`: the acknowledgment echoes congestion.
    pub(crate) fn begin_tx_sample(
        &mut self,
        conn: &Connection,
        now: Instant,
        echoed: bool,
        in_flight: u64,
    ) {
        if !self.tracks_tx() {
            return;
        }
        self.check_app_limited(conn, now, in_flight);
        if let Some(rates) = &mut self.rates {
            (rates.acks_probe, rates.echoed) = (false, echoed);
        }
    }

    /// Does the controller need what packets record when they are sent?
    #[inline]
    pub(crate) const fn tracks_tx(&self) -> bool {
        matches!(&self.rates, Some(rates) if rates.tracks_tx)
    }

    /// Does the device still hold data of the flow, sent at this instant (`sk_wmem_alloc`)?
    pub(super) fn device_holds_data(&self, conn: &Connection, now: Instant) -> bool {
        let holds = matches!(conn.cfg.profile.burst, BurstRule::Linux(rule) if rule.device_holds);
        holds && self.device_limits(conn, now).held > 0
    }

    /// Reports the packets marked lost since the last call; the current acknowledgment has delivered `newly` packets
    /// (tcp_notify_skb_loss_event).
    pub(crate) fn report_lost(&mut self, now: Instant, newly: u64) {
        if !self.tracks_tx() {
            return;
        }
        let marked = self.scoreboard.take_marked();
        let mut lost = self.scoreboard.lost_ever() - marked.len() as u64;
        let mut at = 0;
        while let Some(&first) = marked.get(at) {
            let row = marked[at..].windows(2).take_while(|pair| pair[0] < pair[1]).count() + 1;
            let Some(rates) = &mut self.rates else { return };
            let delivered = rates.delivery.delivered() + newly;
            let packet = rates.delivery.lost_packet(first, row);
            let packets = packet.map_or(1, |packet| packet.packets as usize);
            at += packets;
            lost += packets as u64;
            let Some(packet) = packet else { continue };
            self.cc.on_segment_lost(&LostSegment {
                now,
                packets: packet.packets,
                in_flight: packet.in_flight,
                lost_since: narrow(lost).wrapping_sub(packet.prior_lost),
                app_limited: packet.app_limited,
                sacked_before: packet.sacked,
                delivered,
            });
        }
    }

    /// A tail loss probe repeats the packet that ends at `end`.
    pub(crate) fn note_probed(&mut self, end: Offset) {
        if let Some(rates) = &mut self.rates {
            rates.probe_app_limited = rates.delivery.was_app_limited(end);
        }
    }

    /// The acknowledgment, which has delivered `newly` packets, shows that a tail loss probe repaired a loss
    /// (`CA_EVENT_TLP_RECOVERY`).
    pub(crate) fn report_repaired(&mut self, now: Instant, newly: u64) {
        let Some(rates) = self.rates.as_ref().filter(|rates| rates.tracks_tx) else { return };
        let delivered = rates.delivery.delivered() + newly;
        self.cc.on_probe_repaired(now, delivered, rates.probe_app_limited);
    }
}
