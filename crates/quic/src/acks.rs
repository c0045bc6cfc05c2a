//! An acknowledgment came, or the loss detection timer fired: RFC 9002 appendices A.7 to A.11.

use cc::Change;
use machine::{Cx, Signal};
use record::{Event, Evidence, Purpose, Recorder};
use units::{Duration, Instant, Offset};

use crate::controller::{AckedPackets, LostPackets};
use crate::endpoint::{Endpoint, State};
use crate::loss;
use crate::packet::{Ack, Space};
use crate::sent::{Cargo, Sent};

impl Endpoint {
    /// `OnAckReceived`.
    pub(crate) fn on_ack<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, space: Space, ack: &Ack) {
        let mut newly = core::mem::take(&mut self.newly_acked);
        newly.clear();
        let numbers = self.numbers(space);
        let Some(largest) = ack.largest().filter(|&largest| largest < numbers.next) else {
            self.newly_acked = newly;
            return;
        };
        numbers.largest_acked = numbers.largest_acked.max(Some(largest));
        let least = numbers.packets.least().unwrap_or(u64::MAX);
        for &(first, last) in ack.ranges.iter().take_while(|&&(_, last)| last >= least) {
            numbers.packets.settle(first, last, |packet| newly.push(packet));
        }
        numbers.packets.tidy();
        if space == Space::Handshake {
            // Appendix A.8: the server has read what proves the client's address.
            self.handshake.validated = true;
        }
        if !newly.is_empty() {
            let rtt = self.sample(cx, space, ack, largest, &newly);
            newly.retain(|packet| {
                self.tell_cargo(&packet.cargo, space);
                packet.eliciting
            });
            self.tell_advance(cx);
            if R::ON {
                self.tell_covered(cx, &newly);
            }
            // Section 5.1 leaves the order of the rest open, appendix A.7 judges losses first.
            if self.cfg.profile.losses_first {
                self.detect_losses(cx, space);
                self.count_acked(cx, &newly, rtt);
            } else {
                self.count_acked(cx, &newly, rtt);
                self.detect_losses(cx, space);
            }
            if self.is_server() || self.handshake.validated {
                self.pto_count = 0;
            }
            self.set_loss_timer(cx.now);
        }
        self.newly_acked = newly;
    }

    /// A round-trip sample: the largest number is newly acknowledged, and so is something that
    /// drew the acknowledgment (section 5.1).
    fn sample<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        space: Space,
        ack: &Ack,
        largest: u64,
        newly: &[Sent],
    ) -> Option<Duration> {
        let drawn = newly.iter().any(|packet| packet.eliciting);
        let newest = newly.first().filter(|newest| newest.number == largest && drawn)?;
        let rtt = cx.now.since(newest.at);
        // Section 5.3: no delay is taken off for Initial packets; it is bounded once the
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

    /// What a packet carried has arrived.
    fn tell_cargo(&mut self, cargo: &Cargo, space: Space) {
        if let Some(chunk) = &cargo.stream {
            self.send.on_acked(chunk);
        }
        let numbers = self.numbers(space);
        if let Some(chunk) = &cargo.crypto {
            numbers.crypto_out.on_acked(chunk);
        }
        if let Some(largest) = cargo.acked {
            numbers.received.on_ack_of_ack(largest);
        }
    }

    /// Records that all up to a later place is acknowledged.
    fn tell_advance<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        let una = self.send.una() + u64::from(self.send.is_done());
        let advance = una - self.told_una;
        if advance > 0 {
            self.told_una = una;
            cx.emit_of(self, || Event::Acked { una: Offset(una), bytes: advance as u32, nsegs: 1 });
        }
    }

    /// Records which bytes of the stream an acknowledgment covers beyond the place that all up to
    /// is acknowledged: neighbours as one.
    fn tell_covered<R: Recorder>(&self, cx: &mut Cx<'_, R>, newly: &[Sent]) {
        let una = self.send.una();
        let chunks = newly.iter().filter_map(|packet| packet.cargo.stream);
        let mut open: Option<(u64, u64)> = None;
        for chunk in chunks.filter(|chunk| chunk.len > 0 && chunk.offset > una) {
            let (start, end) = (chunk.offset, chunk.end());
            open = match open {
                // Highest numbers come first, and with them, but for what was sent again, the
                // highest bytes.
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

    /// `OnPacketsAcked`.
    fn count_acked<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        packets: &[Sent],
        rtt: Option<Duration>,
    ) {
        if packets.is_empty() {
            return;
        }
        let bytes: u64 = packets.iter().map(|packet| u64::from(packet.size)).sum();
        let acked = AckedPackets {
            now: cx.now,
            packets,
            flight: self.bytes_in_flight,
            underused: self.underused,
            rtt,
            smoothed: self.rtt.smoothed(),
        };
        let change = self.cc.on_acked(&acked);
        self.bytes_in_flight = self.bytes_in_flight.saturating_sub(bytes);
        cx.emit_of(self, || Event::PacketsAcked {
            packets: packets.len() as u32,
            bytes: bytes as u32,
        });
        self.note(cx, change, None);
        if self.refused && self.send.capacity() - self.send.buffered() >= self.send.capacity() / 8 {
            self.refused = false;
            self.signal(Signal::Writable);
        }
        self.check_finished(cx);
    }

    /// `DetectAndRemoveLostPackets` and `OnPacketsLost`.
    fn detect_losses<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, space: Space) {
        let mut lost = core::mem::take(&mut self.newly_lost);
        lost.clear();
        let rule = self.cfg.profile.loss;
        let numbers = &mut self.spaces[space.index()];
        if let Some(largest) = numbers.largest_acked {
            let packets = &mut numbers.packets;
            numbers.loss_time = loss::detect(&rule, &self.rtt, cx.now, largest, packets, &mut lost);
        }
        if lost.iter().any(|packet| packet.eliciting) {
            self.on_lost(cx, space, &lost);
        }
        self.newly_lost = lost;
    }

    fn on_lost<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, space: Space, lost: &[Sent]) {
        let (mut packets, mut bytes, mut newest) = (0_u32, 0_u64, cx.now);
        for packet in lost.iter().filter(|packet| packet.eliciting) {
            packets += 1;
            bytes += u64::from(packet.size);
            newest = packet.at;
            self.resend(&packet.cargo, space);
            cx.emit(|| Event::PacketLost {
                number: packet.number,
                space: space.index() as u8,
                by: self.evidence(packet, space),
            });
        }
        self.bytes_in_flight = self.bytes_in_flight.saturating_sub(bytes);
        self.totals.lost_packets += u64::from(packets);
        cx.emit(|| Event::Lost { packets });
        let rule = &self.cfg.profile.loss;
        let period = self.rtt.timeout(rule.granularity) + self.max_ack_delay();
        let period = period.saturating_mul(rule.persistent);
        let persistent = loss::persistent(lost, self.rtt.first_sample(), period);
        let event =
            LostPackets { now: cx.now, sent: newest, persistent, flight: self.bytes_in_flight };
        let change = self.cc.on_lost(&event, bytes);
        self.totals.recoveries += u64::from(change == Change::RecoveryBegan);
        self.totals.persistent += u64::from(persistent);
        self.note(cx, change, None);
    }

    /// Which rule has found a packet lost.
    fn evidence(&self, packet: &Sent, space: Space) -> Evidence {
        let largest = self.spaces[space.index()].largest_acked.unwrap_or(0);
        let order = largest >= packet.number + self.cfg.profile.loss.packets;
        if order { Evidence::Order } else { Evidence::Time }
    }

    /// What a lost packet carried goes again, as far as it still matters (RFC 9000 section 13.3).
    fn resend(&mut self, cargo: &Cargo, space: Space) {
        if let Some(chunk) = &cargo.stream {
            self.send.on_lost(chunk);
        }
        if let Some(chunk) = &cargo.crypto {
            self.numbers(space).crypto_out.on_lost(chunk);
        }
        self.flow.on_lost(cargo.max_data, cargo.max_stream_data);
        self.ack_frequency_due |= cargo.ack_frequency;
        self.handshake.done_due |= cargo.handshake_done;
        self.due = true;
    }

    /// `SetLossDetectionTimer`. A deadline may be over already: a late acknowledgment takes the
    /// backoff back, while what left last still has none. It fires at once.
    pub(crate) fn set_loss_timer(&mut self, now: Instant) {
        let loss = self.spaces.iter().filter_map(|numbers| numbers.loss_time).min();
        let blocked = self.handshake.allowance(self.is_server()) == 0;
        self.loss_timer = match loss {
            Some(at) => Some((at.max(now), Purpose::Reorder)),
            // A server that may not speak waits for the client.
            None if blocked => None,
            None => self.pto_deadline(now).map(|(at, _)| (at.max(now), Purpose::LossProbe)),
        };
    }

    /// `GetPtoTimeAndSpace`; `None` if there is nothing to probe for.
    fn pto_deadline(&self, now: Instant) -> Option<(Instant, Space)> {
        let mut earliest: Option<(Instant, Space)> = None;
        for space in Space::ALL {
            let numbers = &self.spaces[space.index()];
            // Section 6.2.1: not for application data before the handshake is confirmed.
            let early = space == Space::Application && !self.handshake.confirmed;
            // What was lost of the handshake waits for room in the window, which application data
            // may fill that nobody can read before it: no acknowledgment would ever make room.
            let waits = space != Space::Application
                && self.handshake.has_keys(space)
                && numbers.crypto_out.wants(u64::MAX);
            if (numbers.packets.in_flight() || waits) && !early {
                let at = numbers.last_eliciting + self.pto_period(space);
                earliest = earliest.filter(|&(other, _)| other <= at).or(Some((at, space)));
            }
        }
        let waits = !self.is_server() && !self.handshake.validated && self.state == State::Opening;
        if earliest.is_none() && waits {
            // Section 6.2.2.1: the server may be waiting for leave to send.
            let handshake = self.handshake.has_keys(Space::Handshake);
            let space = if handshake { Space::Handshake } else { Space::Initial };
            earliest = Some((now + self.pto_period(space), space));
        }
        earliest
    }

    /// `OnLossDetectionTimeout`.
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
        if self.pto_count >= rule.most {
            self.abort(cx, State::Draining);
            return;
        }
        if let Some((_, space)) = self.pto_deadline(cx.now) {
            let numbers = self.numbers(space);
            numbers.probes = rule.probes;
            // They leave now: the next timeout counts from here.
            numbers.last_eliciting = cx.now;
            // What waits to go again in an earlier space goes too (section 6.2.4): the peer may be
            // unable to read anything else before it.
            for earlier in Space::ALL.into_iter().filter(|&earlier| earlier < space) {
                let has_keys = self.handshake.has_keys(earlier);
                let numbers = self.numbers(earlier);
                if has_keys && numbers.crypto_out.wants(u64::MAX) {
                    numbers.probes = numbers.probes.max(1);
                }
            }
        }
        self.totals.timeouts += 1;
        self.pto_count += 1;
        self.set_loss_timer(cx.now);
    }

    /// Makes what the oldest packet in flight carried go again, as a probe (section 6.2.4), as far as
    /// it still matters.
    pub(crate) fn probe_with_old(&mut self, space: Space) {
        let packets = &self.spaces[space.index()].packets;
        let old =
            packets.outstanding().find(|packet| packet.eliciting && packet.cargo.goes_again());
        if let Some(cargo) = old.map(|packet| packet.cargo) {
            self.resend(&cargo, space);
        }
    }

    /// Keys of a space are discarded: nothing of it is in flight any more (RFC 9002 section 6.4).
    pub(crate) fn discard<R: Recorder>(&mut self, cx: &Cx<'_, R>, space: Space) {
        if self.handshake.is_discarded(space) {
            return;
        }
        self.handshake.discard(space);
        let numbers = self.numbers(space);
        let bytes = numbers.packets.discard();
        numbers.loss_time = None;
        numbers.probes = 0;
        numbers.policy.on_sent();
        self.bytes_in_flight = self.bytes_in_flight.saturating_sub(bytes);
        self.pto_count = 0;
        self.set_loss_timer(cx.now);
    }
}

fn emit_covered<R: Recorder>(cx: &mut Cx<'_, R>, range: Option<(u64, u64)>) {
    if let Some((start, end)) = range {
        cx.emit(|| Event::Covered { at: Offset(start), len: (end - start) as u32 });
    }
}
