//! Data segments at the capture point.

use packet::Flags;

use super::{AckSummary, HalfConnection};
use crate::CapturedPacket;
use crate::capture_point::CapturePoint;
use crate::outstanding::SentRange;
use crate::rounds::{RoundOrigin, TimeUse};
use crate::sender_events::SenderEventKind;

/// ECN codepoint CE (RFC 3168 section 5).
const CE: u8 = 3;

/// A jump of sequence numbers that a capture with gaps may have, in bytes.
const MAX_JUMP: u64 = 16 << 20;

impl HalfConnection {
    /// Processes a segment of this direction: data, a FIN or a probe.
    pub(crate) fn data(&mut self, packet: &CapturedPacket) {
        let segment = &packet.segment;
        let at = packet.at.as_nanos();
        self.gap.packets = self.gap.ids.next(packet.id);
        if segment.payload == 0 {
            return self.on_empty_segment(packet);
        }
        self.release(at, segment.timestamps.map(|stamps| stamps.ecr));
        let at = at.max(self.round.since);
        self.last.frame = packet.frame;
        if let Some(stamps) = segment.timestamps {
            let whole = self.begin.point == CapturePoint::Receiver;
            let quiet = at.saturating_sub(self.last.sent) > self.rtt.min.unwrap_or(0) / 4;
            if self.rtt.echo(at, stamps.ecr, whole, quiet)
                && whole
                && let Some(latest) = self.rtt.latest
            {
                self.rounds.sample(latest);
            }
        }
        let len = u64::from(segment.payload);
        let mut start = self.place(segment.seq.0, self.nxt);
        if self.first_data.is_some() && self.is_jump(start) {
            self.resynchronise(segment.seq.0);
            start = self.nxt;
        }
        let end = start + len;
        if self.first_data.is_none() {
            self.first_data = Some((at, packet.frame));
            if self.begin.isn.is_none() {
                (self.una, self.nxt, self.fack, self.round.mark) = (start, start, start, start);
                self.start = start;
            }
            self.turn(at, SenderEventKind::FirstData, self.una, AckSummary::default());
        }
        if len == 1 && start + 1 == self.nxt && self.una == self.nxt {
            return self.probe();
        }
        if self.window_probe((start, end)) {
            return;
        }
        // The receiver took the byte of a probe without an ACK that was captured.
        self.accept_probe(start);
        self.update_mss(segment.payload);
        let stamp = segment.timestamps.map_or(0, |stamps| stamps.val);
        self.ecn.marked += u64::from(segment.ecn == CE);
        if segment.flags.has(Flags::CWR) {
            self.reduced(at, packet.frame);
        }
        if start < self.start && self.begin.isn.is_none() && start + MAX_JUMP > self.start {
            // Data from before the first captured byte.
            self.captured += end.min(self.start) - start;
            self.start = start;
        }
        if start < self.nxt {
            self.old_data((start, end.min(self.nxt)), at, stamp, packet.frame);
        }
        if end > self.nxt {
            self.new_data((start.max(self.nxt), end), at, stamp, packet.frame);
        }
        if segment.flags.has(Flags::FIN) {
            self.fin = Some(end);
        }
        self.last.push = segment.flags.has(Flags::PSH) || segment.flags.has(Flags::FIN);
        self.last.short = len % self.mss != 0;
        self.last.sent = at;
        self.rwnd_limited = self.is_window_full();
        self.all_acked_at = None;
        self.request_at = None;
        let flight = self.flight();
        self.rounds.now.flight = self.rounds.now.flight.max(flight);
        self.turns.sent(flight);
    }

    /// Processes a segment without payload: a FIN or a probe.
    fn on_empty_segment(&mut self, packet: &CapturedPacket) {
        let segment = &packet.segment;
        let start = self.place(segment.seq.0, self.nxt);
        if segment.flags.has(Flags::FIN) {
            self.fin = Some(start);
        } else if segment.flags == Flags::ACK && start + 1 == self.nxt && self.una == self.nxt {
            self.probe();
        }
    }

    /// Counts a segment of at most one byte at `nxt - 1`: a window probe or a keepalive (RFC 9293
    /// sections 3.8.4 and 3.8.6.1).
    fn probe(&mut self) {
        if self.is_window_closed() {
            self.count_closed_probe();
        } else {
            self.counts.keepalives += 1;
        }
    }

    fn update_mss(&mut self, payload: u32) {
        if self.begin.mss.is_none() && payload > self.largest && payload <= 9_000 {
            // Without the handshake the largest packet is the best estimate. A capture above TSO
            // shows longer ones, so sizes beyond an Ethernet frame do not count if a smaller one
            // was seen.
            if payload <= 1_460 || self.largest == 0 {
                self.largest = payload;
                self.mss = u64::from(if payload <= 1_460 { payload } else { 1_448 });
            }
        }
        if u64::from(payload) > self.mss {
            self.counts.bursts += 1;
            self.counts.longest_burst = self.counts.longest_burst.max(u64::from(payload));
        }
    }

    /// Processes data above the highest captured byte.
    fn new_data(&mut self, (start, end): (u64, u64), at: u64, stamp: u32, frame: u64) {
        self.gap.in_stream = start > self.nxt;
        if self.gap.in_stream {
            // What should have come first is missing, whatever the counter of packets says.
            self.gap.packets = Some(self.gap.packets.unwrap_or(0).max(1));
        }
        self.account_until_new_data(at, stamp, frame);
        if self.stamps.first.0 == 0 {
            self.stamps.first = (stamp, at);
        }
        (self.stamps.last, self.stamps.last_at) = (stamp, at);
        if self.round.over {
            self.round.over = false;
            self.next_round(at, frame, RoundOrigin::Round);
        }
        self.begun = true;
        let sent =
            SentRange { start, end, first_at: at, last_at: at, copies: 1, sacked: false, stamp };
        if start > self.nxt {
            // The gap was not captured: lost or delayed before this point, or missed by the
            // capture.
            self.out.push(SentRange { start: self.nxt, end: start, copies: 0, ..sent });
        }
        self.out.push(sent);
        // The gap counts as sent: it was lost, or it arrives later.
        self.rounds.now.sent += end - self.nxt;
        self.nxt = end;
        self.captured += end - start;
        self.counts.new += self.packets(end - start);
        if self.episode.open
            && let Some(episode) = self.episodes.last_mut()
        {
            episode.sent_above += end - start;
        }
        if self.begin.point == CapturePoint::Receiver {
            self.on_delivered(at, end - start);
        }
    }

    pub(super) fn next_round(&mut self, at: u64, frame: u64, before: RoundOrigin) {
        self.rounds.next(at, frame, before);
        self.round.mark = self.nxt;
    }

    /// Accounts for the time that ends with new data.
    fn account_until_new_data(&mut self, at: u64, stamp: u32, frame: u64) {
        let reaction = self.reaction();
        if !self.begun {
            if let Some(open) = self.begin.established_at {
                self.spend(TimeUse::Opening, open.min(at));
                let what = if at - self.round.since > reaction {
                    TimeUse::Application
                } else {
                    TimeUse::Opening
                };
                self.spend(what, at);
            } else {
                self.spend(TimeUse::Idle, at);
            }
            self.rounds.now.frame = frame;
            return;
        }
        if self.episode.in_timeout {
            return self.spend(TimeUse::Timeout, at);
        }
        if self.episode.open {
            return self.spend(TimeUse::Recovery, at);
        }
        if let Some((ns, first)) = self.suspected_timeout.take() {
            self.check_suspected_timeout(ns, first, at);
        }
        // A request of the peer is not an ACK that opens the window.
        let request = !self.last.ack_pure && self.last.push;
        let since_ack = at.saturating_sub(self.last.ack);
        let triggered = since_ack <= reaction && !request;
        self.stalls.new_data(triggered, at, frame);
        self.spend_closed_window(at);
        let wait = at.saturating_sub(self.round.since);
        if let Some(all_acked_at) = self.all_acked_at
            && !(triggered && at - all_acked_at <= reaction)
        {
            return self.account_pause(all_acked_at, at, stamp, frame);
        }
        if self.rwnd_limited {
            return self.spend(self.rwnd_limit_cause(), at);
        }
        let drained = self.last.push || self.last.short;
        if !drained && self.is_ack_overdue(at) {
            // New data as a tail loss probe (RFC 8985 section 7.3): the sender had them, and waited
            // for ACKs that are late. Data that an application writes later are no probe.
            self.episode.in_timeout = true;
            return self.spend(TimeUse::Timeout, at);
        }
        if !triggered && drained && wait > reaction {
            self.pause(wait, frame);
            return self.spend(TimeUse::Application, at);
        }
        if wait > reaction {
            self.rounds.now.waits += 1;
            self.rounds.now.waits_after_push += u32::from(drained);
        }
        self.spend(TimeUse::Window, at);
    }

    /// Whether the ACK of the oldest outstanding data is later than any so far.
    fn is_ack_overdue(&self, at: u64) -> bool {
        let limit = self.smoothed() * 3 / 2 + self.reaction();
        self.out
            .first()
            .is_some_and(|sent| at.saturating_sub(sent.last_at.max(self.last.ack)) > limit)
    }

    /// Accounts for a pause without data in flight since `all_acked_at`, after which the sender
    /// sends without an ACK to trigger it.
    fn account_pause(&mut self, all_acked_at: u64, at: u64, stamp: u32, frame: u64) {
        let drained = self.last.push || self.last.short;
        let after_loss = self.begin.point == CapturePoint::Receiver;
        if after_loss && at - all_acked_at > self.smoothed().max(self.reaction()) {
            if self.held(at, stamp) {
                self.delay_spike_at = Some(at);
                return self.spend(TimeUse::Timeout, at);
            }
            if (!drained || self.gap.in_stream) && self.lost_before(at) {
                // The sender had more to send (no PSH), or the next data leave a gap, and its counter
                // of packets shows that it sent some in the silence which never arrived.
                self.infer_episode(at, self.round.since, frame, true);
                return self.spend(TimeUse::Timeout, at);
            }
        }
        // The sender had nothing to do before the receiver's request.
        let asked_at = self.request_at.filter(|&asked| asked > all_acked_at && asked <= at);
        let all_acked_at = match asked_at {
            Some(asked) if at - all_acked_at <= self.timeout() => {
                // Once an answer is complete, its ACK may be delayed: nothing waits for it.
                if !drained {
                    self.spend(TimeUse::Window, all_acked_at);
                }
                self.spend(TimeUse::Idle, asked);
                asked
            }
            _ => all_acked_at,
        };
        if at - all_acked_at > self.timeout() {
            // First the last flight was outstanding, then the connection was idle.
            self.rounds.now.final_wait += self.final_wait(all_acked_at);
            self.spend(TimeUse::Window, all_acked_at);
            self.spend(TimeUse::Idle, at);
            self.round.over = false;
            self.next_round(at, frame, RoundOrigin::Idle);
            self.turn(
                at,
                SenderEventKind::Rest(at - self.last.sent.min(at)),
                self.una,
                AckSummary::default(),
            );
            let lost = after_loss && self.lost_before(at);
            self.suspected_timeout = lost.then_some((at - all_acked_at, at));
        } else {
            self.pause(at - all_acked_at, frame);
            self.spend(TimeUse::Application, at);
        }
    }

    /// The wait for the last ACKs if the sender had sent all it had: its last segment has PSH or is
    /// short.
    pub(super) fn final_wait(&self, all_acked_at: u64) -> u64 {
        if self.last.push || self.last.short {
            all_acked_at.saturating_sub(self.round.since)
        } else {
            0
        }
    }

    fn pause(&mut self, ns: u64, frame: u64) {
        self.pauses.count += 1;
        if ns > self.pauses.longest.0 {
            self.pauses.longest = (ns, frame);
        }
    }

    /// Whether packets of the sender are missing in the silence before `at`: its IPv4 identification
    /// counts packets, and some were not captured. If the receiver has sent a request since, it was
    /// the sender that waited.
    fn lost_before(&self, at: u64) -> bool {
        let asked = self.request_at.is_some_and(|asked| asked <= at);
        self.gap.packets.is_some_and(|packets| packets > 0) && !asked
    }

    /// Whether data at `start` cannot belong to this stream as it was: so far from it that no window
    /// reaches (RFC 7323 section 2.3: 1 GiB at most), or far beyond all that was advertised or sent.
    fn is_jump(&self, start: u64) -> bool {
        let limit = MAX_JUMP.max(self.window_max.saturating_mul(2)).min(1 << 30);
        start > self.nxt.saturating_add(limit) || start.saturating_add(limit) < self.una
    }

    /// Whether an ACK of `offset` cannot be of this stream; see [`is_jump`](Self::is_jump).
    pub(super) fn is_beyond(&self, offset: u64) -> bool {
        self.is_jump(offset)
    }

    /// Begins the stream anew at `seq`, the next byte: the numbers in between were never sent.
    pub(super) fn resynchronise(&mut self, seq: u32) {
        let behind = self.place(seq, self.nxt);
        // Offsets only grow: the new numbers follow the old ones.
        let moved = behind.wrapping_sub(self.nxt) as u32;
        self.first_seq = self.first_seq.wrapping_add(moved);
        self.out.pop_below(self.nxt, |_| {});
        self.sacked.drop_below(self.nxt);
        (self.una, self.fack, self.round.mark) = (self.nxt, self.nxt, self.nxt);
        self.here.to = self.nxt;
    }

    /// Counts `bytes` that a capture at the receiver sees for the first time.
    pub(super) fn on_delivered(&mut self, at: u64, bytes: u64) {
        self.delivered += bytes;
        let rtt = self.rtt.min.unwrap_or(0);
        self.dispersion.delivered(at, bytes, self.delivered, self.mss, rtt);
        self.rounds.now.delivered += bytes;
        self.last.delivery = at;
    }

    /// Bytes of the stream that were captured or acknowledged.
    pub(crate) fn bytes(&self) -> u64 {
        self.captured + self.unseen.bytes
    }
}
