//! The flight, the losses and the marks that are recorded with each packet when it is sent, for BBR version 3.
//!
//! Source: tcp_rate.c, tcp_input.c and tcp_output.c as the patch of BBR version 3 changes them (tcp_set_tx_in_flight,
//! tcp_rate_skb_delivered, tcp_shifted_skb, tcp_fragment). A burst of several segments is one `sk_buff` with one record. A
//! retransmission of a part or a SACK of a part divides it; a part at its beginning that is joined to a SACKed neighbour
//! counts as not sent with the rest.

use units::Offset;

use super::{DeliveryRates, NewestDelivered, PacketTxState};
use crate::sendmap::SendMap;

/// The state of the connection after a burst was sent.
#[derive(Debug, Clone, Copy)]
pub struct TxContext {
    in_flight: u32,
    lost: u32,
}

impl TxContext {
    /// From the outstanding packets, the burst included.
    pub fn of(map: &SendMap) -> Self {
        Self { in_flight: map.sums().packets_in_flight() as u32, lost: map.lost_ever() as u32 }
    }

    /// The record of the `nth` of `all` packets of the burst.
    pub(super) const fn of_burst(
        &self,
        sent: PacketTxState,
        nth: usize,
        all: usize,
    ) -> PacketTxState {
        let after = (all - 1 - nth) as u32;
        PacketTxState {
            in_flight: self.in_flight.saturating_sub(after),
            lost: self.lost,
            more: after > 0,
            ..sent
        }
    }
}

/// What has happened since the newest packet that an acknowledgment delivered was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize, serde::Serialize)]
pub struct TxInterval {
    /// Packets in flight when it was sent, itself included.
    pub in_flight: u32,
    /// Packets lost in total when it was sent; `None` without a packet, or if the receiver reneged.
    pub prior_lost: Option<u32>,
    /// Packets delivered since.
    pub delivered: u32,
    /// Packets delivered since with an echo of congestion.
    pub delivered_ce: u32,
    /// The sender was application-limited when it was sent.
    pub app_limited: bool,
}

/// A burst, or what is left of it, that was marked lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LostPacket {
    /// Its segments.
    pub packets: u32,
    /// Packets in flight when it was sent, itself included.
    pub in_flight: u32,
    /// Packets lost in total when it was sent.
    pub prior_lost: u32,
    /// The sender was application-limited when it was sent.
    pub app_limited: bool,
    /// It was SACKed before.
    pub sacked: bool,
}

impl DeliveryRates {
    /// Counts packets that an acknowledgment with an echo of congestion delivered.
    pub const fn count_marked(&mut self, packets: u64) {
        self.delivered_ce += packets;
    }

    /// Packets delivered in total with an echo of congestion.
    pub const fn delivered_ce(&self) -> u64 {
        self.delivered_ce
    }

    /// What the last acknowledgment says of the newest packet that it delivered.
    pub const fn interval(&self) -> &TxInterval {
        &self.interval
    }

    /// Was the sender application-limited when the packet that ends at `end` was sent?
    pub fn was_app_limited(&self, end: Offset) -> bool {
        let at = self.sent.partition_point(|sent| sent.end < end);
        self.sent.get(at).is_some_and(|sent| sent.app_limited)
    }

    /// The packet at this index was SACKed.
    pub(super) fn report(&mut self, at: usize) {
        self.reported = match self.reported {
            Some((first, last)) if last + 1 == at => Some((first, at)),
            _ => {
                self.finish_report();
                Some((at, at))
            }
        };
    }

    /// Divides the bursts at the ends of the packets that were SACKed one after the other.
    pub(super) fn finish_report(&mut self) {
        let Some((first, last)) = self.reported.take() else { return };
        if let Some(before) = first.checked_sub(1)
            && self.sent[before].more
        {
            self.sent[before].more = false;
        }
        if !self.sent[last].more {
            return;
        }
        let end = self.end_of_burst(last);
        let begins = self.begin_of_burst(last);
        // tcp_shift_skb_data: the SACKed beginning joins a neighbour that is SACKed.
        let joins = begins > 0 && self.sent[begins - 1].sacked && begins >= first;
        self.sent[last].more = false;
        if !joins {
            return;
        }
        let whole = self.sent[end].in_flight;
        let taken = (last + 1 - begins) as u32;
        if let Some(newest) = self.newest.as_mut().filter(|one| (begins..=last).contains(&one.at)) {
            newest.in_flight = Some(whole);
        }
        for sent in self.sent.range_mut(last + 1..=end) {
            sent.in_flight = sent.in_flight.saturating_sub(taken);
        }
    }

    /// Index of the last packet of the burst of a packet.
    fn end_of_burst(&self, at: usize) -> usize {
        let more = self.sent.range(at..).take_while(|sent| sent.more).count();
        (at + more).min(self.sent.len().saturating_sub(1))
    }

    /// Index of the first packet of the burst of a packet.
    fn begin_of_burst(&self, at: usize) -> usize {
        at - self.sent.range(..at).rev().take_while(|sent| sent.more).count()
    }

    /// Takes the flight of the newest packet's burst, before packets are removed.
    pub(super) fn settle_newest(&mut self) {
        self.finish_report();
        if let Some(NewestDelivered { at, in_flight: None, .. }) = self.newest {
            let whole = self.sent.get(self.end_of_burst(at)).map_or(0, |sent| sent.in_flight);
            self.newest =
                self.newest.map(|newest| NewestDelivered { in_flight: Some(whole), ..newest });
        }
    }

    pub(super) fn tx_interval(&self, newest: &NewestDelivered, reneged: bool) -> TxInterval {
        let NewestDelivered { packet, in_flight, .. } = newest;
        let delivered = if reneged { 0 } else { (self.delivered - packet.delivered) as u32 };
        TxInterval {
            in_flight: in_flight.unwrap_or(0),
            prior_lost: (!reneged).then_some(packet.lost),
            delivered,
            delivered_ce: if reneged {
                0
            } else {
                (self.delivered_ce as u32).wrapping_sub(packet.delivered_ce)
            },
            app_limited: packet.app_limited,
        }
    }

    /// The burst of which segments that end from `first` on were marked lost, at most `most` of them.
    pub fn lost_packet(&mut self, first: Offset, most: usize) -> Option<LostPacket> {
        self.finish_report();
        let at = self.sent.partition_point(|sent| sent.end < first);
        let sent = *self.sent.get(at).filter(|sent| sent.end == first)?;
        let end = self.end_of_burst(at);
        let packets = (end + 1 - at).min(most);
        Some(LostPacket {
            packets: packets as u32,
            in_flight: self.sent[at + packets - 1].in_flight,
            prior_lost: sent.lost,
            app_limited: sent.app_limited,
            sacked: sent.sacked,
        })
    }
}
