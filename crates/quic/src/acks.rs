//! Processing of ACK frames and of the loss detection timer: RFC 9002 appendices A.7 to A.11.

use cc::WindowChange;
use machine::{Cx, Signal};
use record::{Cause, Event, LossTrigger, Purpose, Recorder};
use units::{Duration, Instant, Offset};

use crate::controller::{AckedPackets, LostPackets};
use crate::endpoint::{QuicEndpoint, QuicState};
use crate::loss::{self, LossAdaptation, QuicLossRule};
use crate::packet::{AckFrame, Space};
use crate::sent::{SentFrames, SentQuicPacket};
use crate::slow_start::{SlowStartAck, SlowStartStep};

impl QuicEndpoint {
    /// Processes an ACK frame (`OnAckReceived`).
    pub(crate) fn on_ack<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, space: Space, ack: &AckFrame) {
        let mut newly = core::mem::take(&mut self.newly_acked);
        newly.clear();
        let numbers = self.space_mut(space);
        let Some(largest) = ack.largest().filter(|&largest| largest < numbers.next) else {
            self.newly_acked = newly;
            return;
        };
        let is_larger = numbers.largest_acked < Some(largest);
        numbers.largest_acked = numbers.largest_acked.max(Some(largest));
        let prior_flight = self.bytes_in_flight;
        let numbers = self.space_mut(space);
        let least = numbers.packets.first_number().unwrap_or(u64::MAX);
        for &(first, last) in ack.ranges.iter().take_while(|&&(_, last)| last >= least) {
            numbers.packets.settle(first, last, |packet| newly.push(packet));
        }
        numbers.packets.drop_settled();
        if space == Space::Handshake {
            // Appendix A.8: the server has received the proof of the client's address.
            self.handshake.validated = true;
        }
        let adaptation = match space {
            Space::Application => self.cfg.profile.loss.adaptation,
            Space::Initial | Space::Handshake => LossAdaptation::None,
        };
        let adapts = adaptation == LossAdaptation::Disables;
        if adaptation == LossAdaptation::Raises {
            self.find_overtaken(cx, ack);
        }
        if space == Space::Application {
            let change = self.cc.on_ack_ranges(cx.now, ack);
            self.record_window(cx, change, None);
        }
        if newly.is_empty() && adapts {
            let mut spurious = Vec::new();
            if self.find_spurious(cx.now, ack, &mut spurious) {
                self.detect_losses(cx, space);
                self.set_loss_timer(cx.now);
            }
            self.on_spurious_losses(cx, &spurious);
        }
        if !newly.is_empty() {
            let before = self.rtt.smoothed();
            let rtt = self.update_rtt(cx, space, ack, largest, &newly);
            let mtu = self.mtu.as_mut().filter(|_| space == Space::Application);
            let grown = mtu.and_then(|mtu| mtu.on_acked(&newly));
            let newest = newly.first().map_or((cx.now, 0), |newest| (newest.at, newest.order));
            let is_marked = is_larger && self.ecn.on_ack(space, ack.ecn, marked(&newly));
            newly.retain(|packet| {
                self.on_frames_acked(&packet.frames, space);
                packet.ack_eliciting
            });
            self.record_una(cx);
            if R::ON {
                self.record_covered(cx, &newly);
            }
            // Section 5.1 does not fix the order; appendix A.7 detects losses first.
            if self.cfg.profile.losses_first {
                let mut spurious = Vec::new();
                if adapts {
                    let _ = self.find_spurious(cx.now, ack, &mut spurious);
                }
                if is_marked {
                    self.on_marks(cx, newest);
                }
                self.detect_losses(cx, space);
                self.on_spurious_losses(cx, &spurious);
                self.on_packets_acked(cx, (&newly, prior_flight), rtt, self.rtt.smoothed());
            } else {
                self.on_packets_acked(cx, (&newly, prior_flight), rtt, before);
                self.detect_losses(cx, space);
                if is_marked {
                    self.on_marks(cx, newest);
                }
            }
            if self.is_server() || self.handshake.validated {
                self.pto_count = 0;
            }
            self.set_loss_timer(cx.now);
            if let Some(size) = grown {
                self.set_datagram(cx, size);
            }
        }
        self.newly_acked = newly;
    }

    /// Full datagrams have this size from now on.
    fn set_datagram<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, size: u32) {
        self.datagram = size;
        self.pacer.set_datagram(size);
        let before = self.cc.control().window;
        self.cc.set_datagram(size);
        if self.cc.control().window != before {
            // The least window has grown with the datagram.
            self.record_window(cx, WindowChange::None, Some(Cause::Avoidance));
        }
    }

    /// Reports new marks to congestion control, at the send time and place of the largest packet acknowledged.
    fn on_marks<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, (sent, order): (Instant, u64)) {
        let event = LostPackets {
            now: cx.now,
            sent,
            order,
            latest: self.latest,
            persistent: false,
            packets: 1,
            flight: self.bytes_in_flight,
        };
        let change = self.cc.on_lost(&event, 0);
        let began = change == WindowChange::RecoveryBegan;
        self.totals.recoveries += u64::from(began);
        self.record_window(cx, change, began.then_some(Cause::Ecn));
    }

    /// Takes a round-trip sample if the largest packet number is newly acknowledged and at least
    /// one newly acknowledged packet is ack-eliciting (section 5.1).
    fn update_rtt<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        space: Space,
        ack: &AckFrame,
        largest: u64,
        newly: &[SentQuicPacket],
    ) -> Option<Duration> {
        let elicited = newly.iter().any(|packet| packet.ack_eliciting);
        let newest = newly.first().filter(|newest| newest.number == largest && elicited)?;
        let rtt = cx.now.since(newest.at);
        // Section 5.3: the delay is not subtracted for Initial packets; it is capped once the
        // handshake is confirmed.
        let delay = Duration::from_micros(ack.delay << self.cfg.peer.ack_delay_exponent);
        let delay = match space {
            Space::Initial => Duration::ZERO,
            _ if self.handshake.confirmed => delay.min(self.max_ack_delay()),
            _ => delay,
        };
        self.rtt.on_sample(cx.now, rtt, delay);
        self.totals.min_rtt = Some(self.rtt.min());
        cx.emit(|| Event::RttSample { rtt });
        Some(rtt)
    }

    /// Marks the frames of an acknowledged packet as delivered.
    fn on_frames_acked(&mut self, packet_frames: &SentFrames, space: Space) {
        if let Some(chunk) = &packet_frames.stream {
            self.send.on_acked(chunk);
        }
        let numbers = self.space_mut(space);
        if let Some(chunk) = &packet_frames.crypto {
            numbers.crypto_out.on_acked(chunk);
        }
        if let Some(largest) = packet_frames.acked {
            numbers.received.on_ack_of_ack(largest);
        }
    }

    /// Records an advance of the cumulatively acknowledged offset.
    fn record_una<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        let una = self.send.una() + u64::from(self.send.is_done());
        let advance = una - self.recorded_una;
        if advance > 0 {
            self.recorded_una = una;
            cx.emit_with_state(self, || Event::Acked {
                una: Offset(una),
                bytes: advance as u32,
                nsegs: 1,
            });
        }
    }

    /// Records the stream ranges above `una` that an ACK frame covers, adjacent chunks as one
    /// range.
    fn record_covered<R: Recorder>(&self, cx: &mut Cx<'_, R>, newly: &[SentQuicPacket]) {
        let una = self.send.una();
        let chunks = newly.iter().filter_map(|packet| packet.frames.stream);
        let mut open: Option<(u64, u64)> = None;
        for chunk in chunks.filter(|chunk| chunk.len > 0 && chunk.offset > una) {
            let (start, end) = (chunk.offset, chunk.end());
            open = match open {
                // The highest packet numbers come first and carry the highest offsets, except for
                // retransmissions.
                Some((low, high)) if end == low => Some((start, high)),
                Some((low, high)) if start == high => Some((low, end)),
                other => {
                    emit_covered(cx, other);
                    Some((start, end))
                }
            };
        }
        emit_covered(cx, open);
    }

    /// Finds lost packets that an ACK frame acknowledges; returns whether the time threshold has been raised.
    fn find_spurious(&mut self, now: Instant, ack: &AckFrame, spurious: &mut Vec<u64>) -> bool {
        let delay = Duration::from_micros(ack.delay << self.cfg.peer.ack_delay_exponent);
        let sent = Duration::from_nanos(
            now.as_nanos().saturating_sub(delay.min(self.max_ack_delay()).as_nanos()),
        );
        let threshold = self.spurious.adapted(self.cfg.profile.loss).delay(&self.rtt);
        let next = self.spaces[Space::Application.index()].next;
        let acked = Instant::ZERO + sent;
        let raised = self.spurious.on_ack(ack, acked, threshold, next, spurious);
        let kept = self.rtt.timeout(self.cfg.profile.loss.granularity).saturating_mul(3);
        let oldest = now.as_nanos().saturating_sub(kept.as_nanos());
        self.spurious.forget_before(Instant::from_nanos(oldest));
        raised
    }

    /// Raises the thresholds if an ACK frame acknowledges packets declared lost, and undoes the last reduction.
    fn find_overtaken<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, ack: &AckFrame) {
        let numbers = &self.spaces[Space::Application.index()];
        let outstanding = numbers.packets.first_number().unwrap_or(numbers.next);
        let largest = numbers.largest_acked.unwrap_or(0);
        if self.reordered.on_ack(ack, largest) {
            let change = self.cc.on_spurious_loss(0);
            self.record_window(cx, change, None);
        }
        let oldest = cx.now.as_nanos().saturating_sub(self.rtt.smoothed().as_nanos());
        self.reordered.forget_before(Instant::from_nanos(oldest), outstanding);
    }

    fn on_spurious_losses<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, spurious: &[u64]) {
        for &order in spurious {
            let change = self.cc.on_spurious_loss(order);
            self.record_window(cx, change, None);
        }
    }

    /// Passes newly acknowledged packets to congestion control (`OnPacketsAcked`), with the bytes in flight before the
    /// frame.
    fn on_packets_acked<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        (packets, prior_flight): (&[SentQuicPacket], u64),
        rtt: Option<Duration>,
        smoothed: Duration,
    ) {
        if packets.is_empty() {
            return;
        }
        let bytes: u64 = packets.iter().map(|packet| u64::from(packet.size)).sum();
        let step = self.slow_start_step(cx.now, packets, rtt);
        let acked = AckedPackets {
            now: cx.now,
            packets,
            flight: self.bytes_in_flight,
            prior_flight,
            underused: self.underused,
            rtt,
            smoothed,
            min_rtt: self.rtt.min(),
            divisor: if let SlowStartStep::Grow(divisor) = step { divisor } else { 1 },
        };
        let leaves_first = self.cfg.profile.slow_start.leaves_before_growth();
        if step == SlowStartStep::Leave && leaves_first {
            self.cc.leave_slow_start(self.slow_start.conservative_since());
        }
        let change = self.cc.on_acked(&acked);
        if step == SlowStartStep::Leave && !leaves_first {
            self.cc.leave_slow_start(self.slow_start.conservative_since());
        }
        self.bytes_in_flight = self.bytes_in_flight.saturating_sub(bytes);
        cx.emit_with_state(self, || Event::QuicPacketsAcked {
            packets: packets.len() as u32,
            bytes: bytes as u32,
        });
        self.record_window(cx, change, None);
        if self.write_blocked
            && self.send.capacity() - self.send.buffered() >= self.send.capacity() / 8
        {
            self.write_blocked = false;
            self.signal(Signal::Writable);
        }
        self.check_finished(cx);
    }

    /// What the initial slow start does with acknowledged packets, the largest number first.
    fn slow_start_step(
        &mut self,
        now: Instant,
        packets: &[SentQuicPacket],
        rtt: Option<Duration>,
    ) -> SlowStartStep {
        let next = self.spaces[Space::Application.index()].next;
        let counts_all = self.cfg.profile.slow_start.leaves_before_growth();
        let newest = packets.first().filter(|newest| counts_all || newest.number < next);
        let Some(newest) = newest.filter(|_| self.cc.in_initial_slow_start()) else {
            return SlowStartStep::Grow(1);
        };
        let rtt = if counts_all { rtt.map(|_| self.rtt.adjusted()) } else { rtt };
        self.slow_start.on_ack(&SlowStartAck {
            now,
            rtt,
            min_rtt: self.rtt.min(),
            largest: newest.number,
            next,
            order: newest.order,
            latest: self.latest,
            window: self.cc.control().window.get() / u64::from(self.datagram),
        })
    }

    /// Detects losses and reports them to congestion control (`DetectAndRemoveLostPackets`,
    /// `OnPacketsLost`).
    fn detect_losses<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, space: Space) {
        let mut lost = core::mem::take(&mut self.newly_lost);
        lost.clear();
        let rule = self.loss_rule(space);
        let numbers = &mut self.spaces[space.index()];
        if let Some(largest) = numbers.largest_acked {
            let packets = &mut numbers.packets;
            numbers.loss_time = loss::detect(&rule, &self.rtt, cx.now, largest, packets, &mut lost);
        }
        self.ecn.on_lost(marked(&lost));
        let mtu = self.mtu.as_mut().filter(|_| space == Space::Application);
        if let Some(number) = mtu.and_then(|mtu| mtu.on_lost(&lost)) {
            // A lost probe is no sign of congestion, but makes room in the window.
            self.due = true;
            lost.retain(|packet| {
                if packet.number == number {
                    self.bytes_in_flight =
                        self.bytes_in_flight.saturating_sub(u64::from(packet.size));
                }
                packet.number != number
            });
        }
        if !lost.is_empty()
            && let Some(size) = self.mtu.as_mut().and_then(|mtu| mtu.take_black_hole(cx.now))
        {
            self.set_datagram(cx, size);
        }
        if lost.iter().any(|packet| packet.ack_eliciting) {
            self.on_packets_lost(cx, space, &lost);
        }
        self.newly_lost = lost;
    }

    /// The thresholds of a space.
    fn loss_rule(&self, space: Space) -> QuicLossRule {
        match space {
            Space::Application => {
                self.reordered.adapted(self.spurious.adapted(self.cfg.profile.loss))
            }
            Space::Initial | Space::Handshake => self.cfg.profile.loss,
        }
    }

    fn on_packets_lost<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        space: Space,
        lost: &[SentQuicPacket],
    ) {
        let (mut packets, mut bytes, mut newest, mut order) = (0_u32, 0_u64, cx.now, 0);
        for packet in lost.iter().filter(|packet| packet.ack_eliciting) {
            packets += 1;
            bytes += u64::from(packet.size);
            (newest, order) = (packet.at, packet.order);
            match self.cfg.profile.loss.adaptation {
                LossAdaptation::Disables if space == Space::Application => {
                    self.spurious.on_lost(packet.number, packet.at, packet.order);
                }
                LossAdaptation::Raises if space == Space::Application => {
                    self.reordered.on_lost(packet.number, cx.now);
                }
                _ => {}
            }
            self.retransmit(&packet.frames, space);
            cx.emit(|| Event::QuicPacketLost {
                number: packet.number,
                space: space.index() as u8,
                trigger: self.evidence(packet, space),
            });
        }
        self.bytes_in_flight = self.bytes_in_flight.saturating_sub(bytes);
        self.totals.lost_packets += u64::from(packets);
        cx.emit(|| Event::Lost { packets });
        let rule = &self.cfg.profile.loss;
        let period = self.rtt.timeout(rule.granularity) + self.max_ack_delay();
        let period = period.saturating_mul(rule.persistent);
        let persistent = loss::persistent(lost, self.rtt.first_sample(), period);
        let event = LostPackets {
            now: cx.now,
            sent: newest,
            order,
            latest: self.latest,
            persistent,
            packets: u64::from(packets),
            flight: self.bytes_in_flight,
        };
        self.cc.on_each_lost(cx.now, lost);
        let change = self.cc.on_lost(&event, bytes);
        self.totals.recoveries += u64::from(change == WindowChange::RecoveryBegan);
        self.totals.persistent += u64::from(persistent);
        self.record_window(cx, change, None);
    }

    /// The threshold by which a packet was declared lost.
    fn evidence(&self, packet: &SentQuicPacket, space: Space) -> LossTrigger {
        let largest = self.spaces[space.index()].largest_acked.unwrap_or(0);
        let order = largest >= packet.number.saturating_add(self.loss_rule(space).packets);
        if order { LossTrigger::PacketThreshold } else { LossTrigger::TimeThreshold }
    }

    /// Queues the frames of a lost packet for retransmission if they still matter (RFC 9000 section
    /// 13.3).
    fn retransmit(&mut self, packet_frames: &SentFrames, space: Space) {
        if let Some(chunk) = &packet_frames.stream {
            self.send.on_lost(chunk);
        }
        if let Some(chunk) = &packet_frames.crypto {
            self.space_mut(space).crypto_out.on_lost(chunk);
        }
        self.flow.on_lost(packet_frames.max_data, packet_frames.max_stream_data);
        self.ack_frequency_due |= packet_frames.ack_frequency;
        self.connection_ids_due |= packet_frames.connection_ids;
        self.handshake.done_due |= packet_frames.handshake_done;
        self.due = true;
    }

    /// Sets the loss detection timer (`SetLossDetectionTimer`). The deadline may have passed: a
    /// late acknowledgment resets the backoff, so the PTO of the last packet sent becomes shorter.
    /// The timer then fires at once.
    pub(crate) fn set_loss_timer(&mut self, now: Instant) {
        let loss = self.spaces.iter().filter_map(|numbers| numbers.loss_time).min();
        let blocked = self.handshake.allowance(self.is_server()) == 0;
        self.loss_timer = match loss {
            Some(at) => Some((at.max(now), Purpose::Reorder)),
            // A server at the anti-amplification limit waits for the client.
            None if blocked => None,
            None => self.pto_deadline(now).map(|(at, _)| (at.max(now), Purpose::LossProbe)),
        };
    }

    /// The PTO deadline and its space (`GetPtoTimeAndSpace`); `None` if there is nothing to probe
    /// for.
    fn pto_deadline(&self, now: Instant) -> Option<(Instant, Space)> {
        let mut earliest: Option<(Instant, Space)> = None;
        for space in Space::ALL {
            let numbers = &self.spaces[space.index()];
            // Section 6.2.1: not for application data before the handshake is confirmed.
            let early = space == Space::Application && !self.handshake.confirmed;
            // Lost CRYPTO data waits for space in the window. Application data that the peer cannot
            // decrypt yet may fill the window, and no acknowledgment would then free it.
            let waits = space != Space::Application
                && self.handshake.has_keys(space)
                && numbers.crypto_out.has_pending(u64::MAX);
            if (numbers.packets.in_flight() || waits) && !early {
                let at = numbers.last_eliciting + self.pto_period(space);
                earliest = earliest.filter(|&(other, _)| other <= at).or(Some((at, space)));
            }
        }
        let waits =
            !self.is_server() && !self.handshake.validated && self.state == QuicState::Opening;
        if earliest.is_none() && waits {
            // Section 6.2.2.1: the server may be at its anti-amplification limit.
            let handshake = self.handshake.has_keys(Space::Handshake);
            let space = if handshake { Space::Handshake } else { Space::Initial };
            earliest = Some((now + self.pto_period(space), space));
        }
        earliest
    }

    /// Handles the loss detection timer (`OnLossDetectionTimeout`).
    pub(crate) fn on_loss_timer<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, purpose: Purpose) {
        cx.emit(|| Event::Timer(purpose));
        self.due = true;
        if purpose == Purpose::Reorder {
            let at = |space: &Space| self.spaces[space.index()].loss_time;
            let first = Space::ALL.into_iter().filter(|space| at(space).is_some()).min_by_key(at);
            if let Some(space) = first {
                self.detect_losses(cx, space);
            }
            self.set_loss_timer(cx.now);
            return;
        }
        let rule = self.cfg.profile.pto;
        if self.silent_timeouts >= rule.max_timeouts {
            self.abort(cx, QuicState::Draining);
            return;
        }
        if let Some((_, space)) = self.pto_deadline(cx.now) {
            let numbers = self.space_mut(space);
            numbers.probes = rule.probes;
            // The probes are sent now: the next timeout counts from here.
            numbers.last_eliciting = cx.now;
            // CRYPTO data awaiting retransmission in an earlier space is probed too (section
            // 6.2.4): the peer may be unable to decrypt later packets without it.
            for earlier in Space::ALL.into_iter().filter(|&earlier| earlier < space) {
                let has_keys = self.handshake.has_keys(earlier);
                let numbers = self.space_mut(earlier);
                if has_keys && numbers.crypto_out.has_pending(u64::MAX) {
                    numbers.probes = numbers.probes.max(1);
                }
            }
        }
        self.totals.timeouts += 1;
        self.pto_count += 1;
        self.silent_timeouts += 1;
        self.set_loss_timer(cx.now);
    }

    /// Queues the frames of the oldest packet in flight as probe data (section 6.2.4) if they still
    /// matter.
    pub(crate) fn queue_probe(&mut self, space: Space) {
        let packets = &self.spaces[space.index()].packets;
        let old = packets
            .outstanding()
            .find(|packet| packet.ack_eliciting && packet.frames.is_retransmittable());
        if let Some(packet_frames) = old.map(|packet| packet.frames) {
            self.retransmit(&packet_frames, space);
        }
    }

    /// Discards the keys of a space: its packets no longer count as in flight (RFC 9002 section
    /// 6.4).
    pub(crate) fn discard<R: Recorder>(&mut self, cx: &Cx<'_, R>, space: Space) {
        if self.handshake.is_discarded(space) {
            return;
        }
        self.handshake.discard(space);
        let numbers = self.space_mut(space);
        let bytes = numbers.packets.discard();
        numbers.loss_time = None;
        numbers.probes = 0;
        numbers.policy.on_sent();
        self.bytes_in_flight = self.bytes_in_flight.saturating_sub(bytes);
        self.pto_count = 0;
        self.set_loss_timer(cx.now);
    }
}

/// Packets sent as ECT(0).
fn marked(packets: &[SentQuicPacket]) -> u64 {
    packets.iter().filter(|packet| packet.is_ect).count() as u64
}

fn emit_covered<R: Recorder>(cx: &mut Cx<'_, R>, range: Option<(u64, u64)>) {
    if let Some((start, end)) = range {
        cx.emit(|| Event::StreamAcked { at: Offset(start), len: (end - start) as u32 });
    }
}
