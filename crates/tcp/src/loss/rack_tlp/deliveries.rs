//! What an acknowledgment delivers, and what it shows to be lost: the steps that change the
//! scoreboard and the loss detector, and nothing else.
//!
//! Sources: tcp_input.c of Linux 6.18 (tcp_clean_rtx_queue, tcp_sacktag_write_queue, tcp_dsack_seen,
//! tcp_add_reno_sack, tcp_remove_reno_sacks, tcp_limit_reno_sacked); RFC 8985 section 6.

use core::hint::cold_path;

use recovery::delivery_rate::DeliveryRates;
use recovery::dsack::{self, SackRange};
use recovery::rack::{RackInput, RackLosses};
use recovery::sendmap::{SendMap, SentSegment};
use recovery::undo::tsecr_before;
use units::{Duration, Instant, Offset, unlikely};

use super::detector::{DeliveryContext, RackDetector};
use super::state::{AckAccounting, RackTlpState};
use crate::clock::KernelClock;
use crate::received_ack::ReceivedAck;

/// The connection when an acknowledgment arrives.
#[derive(Debug, Clone, Copy)]
pub(super) struct AckContext {
    pub(super) now: Instant,
    pub(super) min_rtt: Duration,
    pub(super) clock: KernelClock,
    /// The timestamp that it echoes.
    pub(super) echo: Option<u32>,
    /// `snd_una` before it, and `snd_max`.
    pub(super) una: Offset,
    pub(super) max: Offset,
    pub(super) mss: u64,
    /// Largest window of the peer.
    pub(super) max_wnd: u64,
    /// Packets retransmitted so far.
    pub(super) retransmissions: u64,
    /// Linux without SACK: duplicates merged into it.
    pub(super) reno_duplicates: u64,
    /// The recovery point of a fast recovery in progress.
    pub(super) recovery_point: Option<Offset>,
}

impl RackTlpState {
    /// Applies the acknowledgment and its blocks to the scoreboard, and passes the packets that it
    /// delivers to the loss detector.
    pub(super) fn deliver(
        &mut self,
        map: &mut SendMap,
        mut rates: Option<&mut DeliveryRates>,
        received: &ReceivedAck,
        ack: &AckContext,
    ) -> AckAccounting {
        let moment = DeliveryContext { now: ack.now, min_rtt: ack.min_rtt };
        // Does the acknowledgment echo a timestamp older than the retransmission?
        let echo_older = |sent_at: Instant| {
            ack.echo.is_some_and(|e| tsecr_before(e, ack.clock.timestamp(sent_at)))
        };
        let mut account = AckAccounting::default();
        let (duplicates, repeated) = self.count_duplicates(map, received, ack);
        // tcp_dsack_seen: spurious retransmissions were delivered.
        if unlikely(duplicates > 0) {
            self.forgotten += duplicates as u32;
        }
        let una = ack.una;
        let left = |map: &SendMap| {
            let (all, sacked) = (map.sums().all, map.sums().sacked);
            // Without SACK the latter are duplicate ACKs, of which reordering can bring more than there are packets.
            (all.bytes.saturating_sub(sacked.bytes), all.packets.saturating_sub(sacked.packets))
        };
        let before = left(map);
        let highest = map.highest_sacked().unwrap_or(una);
        self.planned = None;
        // tcp_clean_rtx_queue: RACK sees no delivery without SACK.
        let reno = self.reno;
        let judge = &mut self.detector;
        // The cumulative part first: packets SACKed by the same acknowledgment were not delivered
        // before it. The round-trip time of RACK is that of the cumulative part
        // nevertheless: Linux processes it last (tcp_ack, tcp_rack_advance).
        let has_blocks = !received.blocks().is_empty();
        let mut last_acked = None;
        let mut latest_sent = None;
        map.acknowledge(received.th_ack, |sent_segment| {
            account.acked.add(sent_segment);
            if !sent_segment.sacked() {
                latest_sent = latest_sent.max(Some(sent_segment.sent_at()));
            }
            if let Some(rates) = &mut rates {
                cold_path();
                rates.on_delivered(sent_segment.end(), false);
            }
            lower(&mut account.first_acked, sent_segment);
            account.repeated |= sent_segment.transmissions() > 1;
            // The echo matters only for retransmissions.
            let tsecr_before =
                sent_segment.transmissions() > 1 && echo_older(sent_segment.sent_at());
            let taken = !reno && judge.on_acked(sent_segment, tsecr_before, &moment);
            if unlikely(has_blocks) && taken {
                last_acked = Some(*sent_segment);
            }
        });
        // In the order of the stream, not of the option: the order of delivery shows reordering
        // (tcp_sacktag_write_queue).
        let mut ordered = [(Offset(0), Offset(0)); 4];
        let mut valid = [(Offset(0), Offset(0)); 4];
        let blocks = match judge {
            RackDetector::Linux(_) => blocks_beyond(received, una, &mut valid),
            RackDetector::Rfc(_) | RackDetector::External(_) => received.blocks(),
        };
        let ordered = match blocks {
            blocks @ ([_, _] | [_, _, _] | [_, _, _, _]) => {
                let ordered = &mut ordered[..blocks.len()];
                ordered.copy_from_slice(blocks);
                ordered.sort_unstable();
                &*ordered
            }
            blocks => blocks,
        };
        let reported = map.apply_sack(ordered, |sent_segment| {
            account.reported.add(sent_segment);
            latest_sent = latest_sent.max(Some(sent_segment.sent_at()));
            if let Some(rates) = &mut rates {
                cold_path();
                rates.on_delivered(sent_segment.end(), true);
            }
            lower(&mut account.first_reported, sent_segment);
            let tsecr_before =
                sent_segment.transmissions() > 1 && echo_older(sent_segment.sent_at());
            judge.on_reported(sent_segment, tsecr_before, &moment);
        });
        if let Some(last) = last_acked.filter(|_| reported.packets > 0) {
            let tsecr_before = last.transmissions() > 1 && echo_older(last.sent_at());
            judge.on_acked_last(&last, tsecr_before, &moment);
        }
        judge.update_reo_wnd(latest_sent, ack.now);
        account.newly_reported = reported.packets;
        account.duplicates = duplicates;
        if let Some(block) = repeated {
            let first = account.first_reported.unwrap_or(block);
            account.first_reported = Some((first.0.min(block.0), first.1.min(block.1)));
        }
        account.changed = received.th_ack.since(una).get() + reported.bytes;
        let besides = match unlikely(reno) {
            true => self.count_reno(map, received, ack, account.acked.packets),
            false => 0,
        };
        let after = left(map);
        account.bytes = before.0.saturating_sub(after.0);
        account.packets = before.1.saturating_sub(after.1) + duplicates + besides;
        // Compared with the blocks reported before: tcp_sacktag_one and tcp_clean_rtx_queue.
        let behind = map.highest_sacked().unwrap_or(received.th_ack.max(una));
        for first in [account.first_reported, account.first_acked] {
            if let Some((start, _)) = first
                && unlikely(start < highest)
            {
                self.reordering.on_reordered(start, behind, ack.mss);
            }
        }
        if let RackDetector::Linux(rack) = &mut self.detector {
            rack.set_reordering_seen(self.reordering.seen() > 0);
        }
        if unlikely(reno) && account.repeated {
            // tcp_clean_rtx_queue: which copy arrived is not known.
            account.first_acked = None;
        }
        account
    }

    /// Counts a D-SACK, before the acknowledgment is processed; returns the packets of it that
    /// count as delivered, as spurious retransmissions do, and its first packet that was
    /// retransmitted although it is SACKed, which shows reordering.
    fn count_duplicates(
        &mut self,
        map: &SendMap,
        received: &ReceivedAck,
        ack: &AckContext,
    ) -> (u64, Option<SackRange>) {
        if !self.detector.supports_undo() {
            return (0, None);
        }
        let Some((start, end)) = dsack::duplicate(received.th_ack, received.blocks()) else {
            return (0, None);
        };
        cold_path();
        let bytes = end - start;
        if bytes > ack.max_wnd {
            return (0, None);
        }
        let packets = bytes.div_ceil(ack.mss).max(1);
        self.reordering.on_duplicate(packets);
        if u64::from(self.reordering.dsack_dups()) > ack.retransmissions {
            // More than were ever retransmitted: the network duplicated them.
            return (0, None);
        }
        let of_probe = bytes <= ack.mss && self.tlp.probe_end() == Some(end);
        if self.reordering.seen() > 0 && !of_probe {
            self.detector.on_dsack_seen();
        }
        // Packets of it still in the scoreboard: their retransmissions were spurious. Packets no
        // longer in it are counted when the acknowledgment is processed.
        let mut at = start;
        let mut reordered = None;
        while let Some(sent_segment) = map.get(at).filter(|sent_segment| sent_segment.end() <= end)
        {
            // A D-SACK that begins inside a packet is none of it (tcp_match_skb_to_sack).
            if sent_segment.transmissions() > 1 && sent_segment.start() >= start {
                self.episode.undo.on_unacked_duplicate(sent_segment.end());
                if sent_segment.sacked() && reordered.is_none() {
                    reordered = Some((sent_segment.start(), sent_segment.end()));
                }
            }
            at = sent_segment.end();
        }
        (packets, reordered)
    }

    /// Counts the duplicates of an acknowledgment, or the `acked` packets that it acknowledges, as
    /// arrived or no longer so. Returns how many were delivered besides, but cannot be outstanding.
    fn count_reno(
        &mut self,
        map: &mut SendMap,
        received: &ReceivedAck,
        ack: &AckContext,
        acked: u64,
    ) -> u64 {
        let duplicates = ack.reno_duplicates;
        let before = map.sums().sacked.packets;
        let counts = match self.episode.timeout_until {
            // tcp_process_loss: only the new data sent since the timeout can have arrived.
            Some(high) => ack.max > high && received.th_ack < high,
            None => ack.recovery_point.is_none_or(|point| received.th_ack < point),
        };
        let arrived = match acked {
            0 if duplicates == 0 || !counts => return 0,
            0 => before + duplicates,
            // One packet filled the hole; the others were counted with the duplicates.
            acked => before.saturating_sub(acked - 1),
        };
        let sums = map.sums();
        let holes = sums.lost.packets.max(1).min(sums.all.packets);
        let most = sums.all.packets - holes;
        if arrived > most {
            self.reordering.on_reno(sums.all.packets + acked);
        }
        // What acknowledgments take away was delivered with them.
        let besides = if acked > 0 { arrived.saturating_sub(most) } else { 0 };
        self.forgotten += besides as u32;
        map.set_reno_sacked(arrived.min(most), ack.mss);
        besides
    }

    /// Can there be a loss: is a packet SACKed or lost, or was one delivered that was sent before
    /// others? A retransmission that was acknowledged may be newer than what is in flight.
    #[inline]
    pub(super) fn may_find_losses(&self, map: &SendMap) -> bool {
        let sums = map.sums();
        if sums.sacked.packets > 0 || sums.lost.packets > 0 {
            return true;
        }
        let Some(first) = map.first() else { return false };
        sums.retransmission.packets > 0
            || matches!(self.detector, RackDetector::External(_))
            || self.detector.newest() > Some((first.sent_at(), first.end()))
    }

    /// Detects losses. Linux does so when the acknowledgment has advanced RACK's transmission time
    /// (tcp_rack_mark_lost), and when its timer fires.
    pub(super) fn detect(
        &mut self,
        map: &mut SendMap,
        standing: &RackInput,
        on_ack: bool,
    ) -> RackLosses {
        if let RackDetector::Linux(rack) = &mut self.detector
            && !rack.take_advanced()
            && on_ack
        {
            return RackLosses::default();
        }
        self.detector.detect(map, standing)
    }
}

/// Records a delivered packet that was sent only once.
fn lower(first: &mut Option<SackRange>, sent_segment: &SentSegment) {
    if sent_segment.transmissions() == 1 && !sent_segment.sacked() {
        let (start, end) = first.unwrap_or((sent_segment.start(), sent_segment.end()));
        *first = Some((start.min(sent_segment.start()), end.min(sent_segment.end())));
    }
}

/// The blocks that Linux takes, those that begin beyond `snd_una` (tcp_is_sackblock_valid); D-SACKs below it are counted
/// elsewhere.
fn blocks_beyond<'v>(
    received: &ReceivedAck,
    una: Offset,
    valid: &'v mut [SackRange; 4],
) -> &'v [SackRange] {
    let una = received.th_ack.max(una);
    let mut count = 0;
    for &block in received.blocks().iter().filter(|block| block.0 > una) {
        valid[count] = block;
        count += 1;
    }
    &valid[..count]
}
