//! Loss detection by transmission times: RACK-TLP (RFC 8985) as the RFC specifies it, and as Linux
//! implements it (tcp_ack, tcp_fastretrans_alert). FreeBSD's RACK stack has its own steps
//! (`super::rack`).
//!
//! All acknowledgments are processed in the same steps: deliveries (`account`), end or undo of the
//! recovery, loss detection, PRR (`recovery_state`, `prr_state`). `detector` is the loss detector
//! of each system; `timers` has the reordering timer, the probe and the timeout. Linux only: `frto`
//! (spurious timeouts), `reneging` (a receiver drops SACKed data), `reports` (D-SACKs and
//! reordering).

mod cwr;
mod detector;
mod fast_path;
mod frto;
mod prr_state;
mod recovery_state;
mod reneging;
mod reno;
mod reports;
mod send;
pub(super) mod state;
mod timers;
mod xmit_timer;

use core::hint::cold_path;

use cc::{AckEvent, CongestionSignal as Sign, Controller, RecoveryEnd, WindowChange};
use machine::Cx;
use packet::Segment;
use record::{Cause, Event, Purpose, Recorder};
use recovery::dsack::{self, SackRange};
use recovery::rack::{RackInput, RackLosses};
use recovery::sendmap::{SendMap, SentSegment};
use recovery::tlp::{ProbeAck, TlpOutcome};
use recovery::undo::tsecr_before;
use units::{Duration, Instant, Offset, unlikely};

use super::{LossDetector, ReceivedAck};
use crate::endpoint::TcpEndpoint;
use crate::rates::AckDelivery;
use detector::{DeliveryContext, RackDetector};
use prr_state::PrrState;
use state::AckAccounting;

/// Linux adds this to the reordering timer (`TCP_TIMEOUT_MIN_US`, tcp_rack_mark_lost).
const LINUX_TIMEOUT_MIN: Duration = Duration::from_millis(2);

impl TcpEndpoint {
    /// Processes an acceptable acknowledgment.
    pub(crate) fn rack_tlp_ack<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        segment: &Segment,
        received: &ReceivedAck,
    ) {
        let advances = received.th_ack > self.snd.una;
        let echoed = self.echoes_congestion(segment) && received.th_ack >= self.snd.una;
        let reno = self.is_reno();
        let duplicates = if unlikely(reno) { self.reno_duplicates(received) } else { 0 };
        let has_news = advances || !received.blocks().is_empty() || duplicates > 0;
        let probing = self.snd.loss_detector.rack_tlp().is_some_and(|loss| loss.tlp.probing());
        if !has_news && !self.measures_rates() && !echoed && !probing {
            return;
        }
        // tcp_ack: with nothing outstanding only a D-SACK and a probe are looked at (`no_queue`).
        let idle = self.snd.scoreboard.is_empty() && received.blocks().is_empty();
        if idle && !advances && self.has_one_timer() && !probing {
            return;
        }
        self.begin_rate_sample();
        let echo =
            segment.timestamps.filter(|_| self.negotiated.timestamps).map(|stamps| stamps.ecr);
        if advances {
            self.undo_timeout_by_echo(cx, echo);
        }
        let (one_timer, awaited) = (self.has_one_timer(), self.awaits_reordering_or_probe());
        // Of an acknowledgment before snd_una Linux takes the SACK blocks and what they show to be lost,
        // and no more (`old_ack` of tcp_ack).
        let old = one_timer && received.th_ack < self.snd.una;
        let account = self.account(cx.now, received, echo, duplicates);
        if account.newly_reported > 0 || duplicates > 0 {
            let count = self.snd.scoreboard.sums().sacked.packets.min(u64::from(u32::MAX)) as u32;
            cx.emit(|| Event::DupAck { count });
        }
        if !old {
            self.take_delivered_rtt(cx, segment, received.th_ack, &account);
        }
        if advances {
            self.snd.rexmt.shift = 0;
            if received.th_ack == self.snd.max {
                self.timers.stop(Purpose::Retransmit);
            } else if !one_timer {
                self.arm_retransmit(cx.now);
            }
        }
        self.process_duplicate(cx, received, &account);
        let repaired = reno && self.repairs_timeout();
        self.check_timeout(cx, received, &account, duplicates, echo);
        let settled = self.settle_recovery(cx, received, echo);
        if let Some(loss) = self.snd.loss_detector.rack_tlp() {
            loss.holds_back = settled;
        }
        let lost = match unlikely(reno) {
            true => self.settle_reno(received, repaired),
            false => RackLosses::default(),
        };
        let reneged = self.check_reneging(cx.now, advances);
        if unlikely(reneged) {
            if let Some(loss) = self.snd.loss_detector.rack_tlp() {
                loss.holds_back = true;
            }
        }
        let retransmitted = self.snd.scoreboard.sums().retransmission.packets;
        // Reneging waits for its timer (tcp_fastretrans_alert returns).
        let found = match reneged || settled {
            true => RackLosses::default(),
            false if unlikely(lost.packets > 0) => lost,
            false if unlikely(reno) => self.detect_reno_losses(advances),
            false => self.detect_losses(cx.now, true),
        };
        // FLAG_LOST_RETRANS
        let lost_again = self.snd.scoreboard.sums().retransmission.packets < retransmitted;
        let sets = !old && self.sets_timer(advances, &account);
        if !one_timer {
            self.watch_reordering(cx.now, &found);
        } else if !reneged {
            self.set_timer(cx.now, found.reo_timeout, sets, awaited);
        }
        if !settled {
            let una = received.th_ack.max(self.snd.una);
            self.act_on_losses(cx, &found, una, lost_again);
        }
        if unlikely(echoed) {
            self.enter_cwr(cx);
        }
        let reduces = self.cc.in_recovery() && (one_timer || self.snd.rexmt.cwr_end.is_none());
        if (reduces || self.holds_recovery()) && !old {
            self.apply_prr(cx, &account, advances, found.packets > 0);
        }
        if advances {
            let change = self.grow(cx.now, received.th_ack, account.packets, received.nsegs);
            self.advance(cx, received.th_ack, received.wnd, received.nsegs, change);
        } else if account.newly_reported > 0 && self.grows_on_reports() && !old {
            let change = self.grow(cx.now, received.th_ack, account.packets, received.nsegs);
            self.note(cx, change, Cause::SlowStart);
        }
        if self.measures_rates() && !old {
            self.end_delivery_sample(cx, &account);
        }
        // tcp_ack schedules a probe only with FLAG_SET_XMIT_TIMER, which a reordering timeout clears.
        if one_timer && found.reo_timeout.is_some() {
            self.timers.stop(Purpose::LossProbe);
        } else if sets || !one_timer {
            self.plan_probe_timer(cx.now, true);
        }
        self.call_output();
    }

    /// Completes the rate sample of a rate-based controller.
    #[cold]
    fn end_delivery_sample<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, account: &AckAccounting) {
        let bare = account.newly_reported == 0;
        let delivery = AckDelivery {
            packets: account.packets,
            bare_bytes: if bare { account.changed } else { 0 },
        };
        self.end_rate_sample(cx, &delivery);
    }

    /// Applies the acknowledgment and its blocks to the scoreboard.
    fn account(
        &mut self,
        now: Instant,
        received: &ReceivedAck,
        echo: Option<u32>,
        reno_duplicates: u64,
    ) -> AckAccounting {
        let moment =
            DeliveryContext { now, min_rtt: self.totals.min_rtt.unwrap_or(Duration::ZERO) };
        let clock = self.clock;
        // Does the acknowledgment echo a timestamp older than the retransmission?
        let echo_older =
            |sent_at: Instant| echo.is_some_and(|e| tsecr_before(e, clock.timestamp(sent_at)));
        let mut account = AckAccounting::default();
        let (duplicates, repeated) = self.count_duplicates(received);
        // tcp_dsack_seen: spurious retransmissions were delivered.
        if unlikely(duplicates > 0) {
            if let Some(loss) = self.snd.loss_detector.rack_tlp() {
                loss.forgotten += duplicates as u32;
            }
        }
        let (mss, una) = (self.mss(), self.snd.una);
        let map = &mut self.snd.scoreboard;
        let left = |map: &SendMap| {
            let sums = map.sums();
            (sums.all.bytes - sums.sacked.bytes, sums.all.packets - sums.sacked.packets)
        };
        let before = left(map);
        let highest = map.highest_sacked().unwrap_or(una);
        let Some(loss) = self.snd.loss_detector.rack_tlp() else { return account };
        loss.planned = None;
        // tcp_clean_rtx_queue: RACK sees no delivery without SACK.
        let reno = loss.reno;
        let judge = &mut loss.detector;
        // The cumulative part first: packets SACKed by the same acknowledgment were not delivered
        // before it. The round-trip time of RACK is that of the cumulative part
        // nevertheless: Linux processes it last (tcp_ack, tcp_rack_advance).
        let has_blocks = !received.blocks().is_empty();
        let mut last_acked = None;
        let mut latest_sent = None;
        let rates = &mut self.snd.rates;
        map.acknowledge(received.th_ack, |sent_segment| {
            account.acked.add(sent_segment);
            if !sent_segment.sacked() {
                latest_sent = latest_sent.max(Some(sent_segment.sent_at()));
            }
            if let Some(rates) = rates {
                cold_path();
                rates.delivery.on_delivered(sent_segment.end(), false);
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
            RackDetector::Rfc(_) => received.blocks(),
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
            if let Some(rates) = rates {
                cold_path();
                rates.delivery.on_delivered(sent_segment.end(), true);
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
        judge.update_reo_wnd(latest_sent, now);
        if self.cfg.tso && reported.packets > 0 {
            for &(left, right) in
                received.blocks().iter().filter(|block| block.0 >= received.th_ack)
            {
                self.snd.buffer.on_sacked(left, right);
            }
        }
        account.newly_reported = reported.packets;
        account.duplicates = duplicates;
        if let Some(block) = repeated {
            let first = account.first_reported.unwrap_or(block);
            account.first_reported = Some((first.0.min(block.0), first.1.min(block.1)));
        }
        account.changed = received.th_ack.since(una).get() + reported.bytes;
        let besides = match unlikely(self.is_reno()) {
            true => self.count_reno(received, account.acked.packets, reno_duplicates),
            false => 0,
        };
        let after = left(&self.snd.scoreboard);
        account.bytes = before.0.saturating_sub(after.0);
        account.packets = before.1.saturating_sub(after.1) + duplicates + besides;
        // Compared with the blocks reported before: tcp_sacktag_one and tcp_clean_rtx_queue.
        let behind = self.snd.scoreboard.highest_sacked().unwrap_or(received.th_ack.max(una));
        for first in [account.first_reported, account.first_acked] {
            if let Some((start, _)) = first
                && unlikely(start < highest)
            {
                if let Some(loss) = self.snd.loss_detector.rack_tlp() {
                    loss.reordering.on_reordered(start, behind, mss);
                }
            }
        }
        if let Some(loss) = self.snd.loss_detector.rack_tlp()
            && let RackDetector::Linux(rack) = &mut loss.detector
        {
            rack.set_reordering_seen(loss.reordering.seen() > 0);
        }
        if unlikely(self.is_reno()) && account.repeated {
            // tcp_clean_rtx_queue: which copy arrived is not known.
            account.first_acked = None;
        }
        account
    }

    /// Processes a D-SACK, and the outcome of a tail loss probe.
    fn process_duplicate<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        received: &ReceivedAck,
        account: &AckAccounting,
    ) {
        let probing = self.snd.loss_detector.rack_tlp().is_some_and(|loss| loss.tlp.probing());
        if received.blocks().is_empty() && !probing {
            // No D-SACK, and no probe outstanding.
            return;
        }
        let duplicate = dsack::duplicate(received.th_ack, received.blocks());
        let (una, max, mss) = (self.snd.una, self.snd.max, self.mss());
        let plain = account.bytes == 0 && received.blocks().is_empty();
        let dup_ack_without_sack = plain && self.changes_nothing(received);
        let Some(loss) = self.snd.loss_detector.rack_tlp() else { return };
        let verdict =
            loss.tlp.on_ack(&ProbeAck { th_ack: received.th_ack, duplicate, dup_ack_without_sack });
        if let Some(block) = duplicate {
            cold_path();
            let packets = block.1.since(block.0).get().div_ceil(mss).max(1);
            // Linux ignores a D-SACK for what was never retransmitted (tcp_check_dsack).
            if account.duplicates > 0 || !loss.detector.supports_undo() {
                loss.episode.undo.on_duplicate(block, packets, una);
            }
            // A D-SACK for a probe is no evidence of reordering.
            if verdict != TlpOutcome::NoLoss {
                loss.detector.on_duplicate(una, max);
            }
        }
        if unlikely(verdict == TlpOutcome::RepairedLoss) && !self.cc.in_recovery() {
            // RFC 8985 section 7.4.2: the window is reduced at once, as for any loss.
            let change = self.cc.on_congested(&self.congested(cx.now, Sign::Loss));
            self.note(cx, change, Cause::LossProbe);
            if self.has_one_timer() {
                // tcp_process_tlp_ack: tcp_init_cwnd_reduction.
                self.ecn.on_reduced();
            }
            let pipe = self.snd.scoreboard.sums().pipe();
            let change = self.cc.on_recovered(&RecoveryEnd { th_ack: received.th_ack, pipe });
            self.note(cx, change, Cause::Recovered);
        }
    }

    fn standing(&self, now: Instant) -> RackInput {
        let in_recovery = match &self.snd.loss_detector {
            LossDetector::RackTlp(loss) => {
                self.in_fast_recovery() || loss.episode.timeout_until.is_some()
            }
            _ => false,
        };
        RackInput {
            now,
            in_recovery,
            min_rtt: self.totals.min_rtt.unwrap_or(Duration::ZERO),
            srtt: self.rtt.srtt().unwrap_or(Duration::ZERO),
        }
    }

    /// Detects losses. Linux does so when the acknowledgment has advanced RACK's transmission time
    /// (tcp_rack_mark_lost), and when its timer fires.
    pub(super) fn detect_losses(&mut self, now: Instant, on_ack: bool) -> RackLosses {
        let sums = self.snd.scoreboard.sums();
        if sums.sacked.packets == 0 && sums.lost.packets == 0 && !self.delivered_a_later_packet() {
            return RackLosses::default();
        }
        let standing = self.standing(now);
        let map = &mut self.snd.scoreboard;
        let LossDetector::RackTlp(loss) = &mut self.snd.loss_detector else {
            return RackLosses::default();
        };
        if let RackDetector::Linux(rack) = &mut loss.detector
            && !rack.take_advanced()
            && on_ack
        {
            return RackLosses::default();
        }
        loss.detector.detect(map, &standing)
    }

    /// Was a packet sent before one that was delivered, although nothing is SACKed? A
    /// retransmission that was acknowledged may be newer than what is in flight.
    #[inline]
    fn delivered_a_later_packet(&self) -> bool {
        let LossDetector::RackTlp(loss) = &self.snd.loss_detector else { return false };
        let map = &self.snd.scoreboard;
        let Some(first) = map.first() else { return false };
        map.sums().retransmission.packets > 0
            || loss.detector.newest() > Some((first.sent_at(), first.end()))
    }

    /// Sets the reordering timer, where it is separate.
    pub(super) fn watch_reordering(&mut self, now: Instant, found: &RackLosses) {
        match found.reo_timeout {
            Some(after) => {
                let at = now + after.max(Duration::from_micros(1));
                self.timers.set(Purpose::Reorder, at);
            }
            None => self.timers.stop(Purpose::Reorder),
        }
    }

    /// Passes the packets delivered by an acknowledgment to the controller; `snd_una` has not
    /// advanced yet.
    #[inline(always)]
    pub(in crate::loss) fn grow(
        &mut self,
        now: Instant,
        th_ack: Offset,
        packets: u64,
        nsegs: u32,
    ) -> WindowChange {
        let ignores =
            self.cc.ignores_ack(self.snd.usage.limited, self.snd.usage.max_packets_out as u32);
        if ignores || self.holds_recovery() {
            self.snd.rtt.sample = None;
            return WindowChange::None;
        }
        self.cc.on_acked(&AckEvent {
            now,
            ticks: self.clock.tick(now),
            rtt: self.snd.rtt.sample.take(),
            srtt: self.smoothed(),
            snd_nxt: self.snd.nxt,
            una: th_ack,
            bytes: th_ack - self.snd.una,
            packets: packets.min(u64::from(u32::MAX)) as u32,
            nsegs,
            ends_recovery: false,
            retransmitting: self.repairs_timeout(),
            snd_wnd: self.snd.peer.wnd,
            window_limited: self.snd.usage.limited,
            max_packets_out: self.snd.usage.max_packets_out as u32,
        })
    }

    /// Takes a round-trip sample from the packets acknowledged, else from those SACKed.
    fn take_delivered_rtt<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        segment: &Segment,
        th_ack: Offset,
        account: &AckAccounting,
    ) {
        let by_ack = account.acked.packets > 0 || th_ack > self.snd.una;
        let Some(loss) = self.snd.loss_detector.rack_tlp() else { return };
        let delivered = match loss.detector {
            RackDetector::Linux(_) => account.acked.with_sacked(&account.reported),
            RackDetector::Rfc(_) if by_ack => account.acked,
            RackDetector::Rfc(_) => account.reported,
        };
        if delivered.packets == 0 {
            return;
        }
        if by_ack || delivered.oldest_sent().is_some() {
            self.take_rtt(cx, segment, th_ack, &delivered);
            if let Some(loss) = self.snd.loss_detector.rack_tlp() {
                loss.tlp.on_rtt_sample();
            }
        }
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
