//! The effect of ACKs at the sender.

use units::{Duration, Instant, Offset};

use super::recovery::duplicate_time;
use super::scoreboard::NewlyDelivered;
use super::{AckSummary, CapturedAck, HalfConnection};
use crate::capture_point::CapturePoint;
use crate::rounds::TimeUse;
use crate::sender_events::SenderEventKind;

impl HalfConnection {
    /// Processes an ACK that passes the capture point.
    pub(crate) fn ack(&mut self, ack: CapturedAck) {
        self.rtt.ack_passed(ack.at, ack.stamp);
        let [way_back, _] = &mut self.ways;
        let waited = ack.stamp.and_then(|stamp| way_back.push(stamp, ack.at));
        if !self.is_at_receiver() {
            self.rounds.log.wait_on_way_back(waited.unwrap_or_default());
        }
        self.last.frame = ack.frame;
        let offset = self.numbers.offset(ack.number, self.board.una);
        self.acks.on_passing(&ack, offset, self.board.nxt, self.segment.mss);
        if matches!(self.begin.point, CapturePoint::Sender | CapturePoint::Unknown) {
            let at = ack.at.max(self.rounds.since());
            self.on_ack_received(at, &ack);
        } else {
            self.release(ack.at, None);
            self.acks.pending.push_back(ack);
        }
    }

    /// Delivers the ACKs that have reached the sender: those that data echo, and those that are
    /// due.
    pub(super) fn release(&mut self, now: Instant, echo: Option<u32>) {
        while let Some(&ack) = self.acks.pending.front() {
            let due = ack.at + self.rtt.recent_rtt_to_sender();
            let is_echoed = match (echo, ack.stamp) {
                (Some(echo), Some(stamp)) => (echo.wrapping_sub(stamp) as i32) >= 0,
                _ => false,
            };
            if due > now && !is_echoed {
                return;
            }
            self.acks.pending.pop_front();
            let when = due.min(now).max(self.rounds.since());
            self.on_ack_received(when, &ack);
        }
    }

    /// Applies an ACK to the state of the sender.
    pub(super) fn on_ack_received(&mut self, at: Instant, ack: &CapturedAck) {
        let old_una = self.board.una;
        let offset = self.numbers.acked_offset(ack.number, old_una);
        if !ack.pure {
            self.idle.on_request(at);
        }
        if self.progress.first_data().is_none() {
            // Before the first data only the window matters.
            return self.window.update(at, offset, old_una, ack);
        }
        self.last.on_ack(at, ack.pure);
        if ack.ece {
            self.ecn.on_echo();
        }
        self.accept_probe(offset);
        if offset > self.board.nxt && self.is_jump(offset) {
            // The number of another connection, or damage: nothing in between was sent.
            return self.resynchronise(ack.number);
        }
        self.accept_unsent(offset, ack.at);
        let in_order = self.board.is_in_order() && ack.sack.as_slice().is_empty();
        let mut news = self.board.newly_delivered();
        self.on_sack_blocks(ack, offset, &mut news);
        if offset > old_una {
            for range in self.board.acknowledge(offset, &mut news) {
                self.bytes.add_unseen(range, ack.at);
            }
            if ack.pure && !self.recovery.is_open() {
                self.on_pure_ack(offset - old_una, in_order, ack.at);
            }
        }
        let (una, start) = (self.board.una, self.numbers.start);
        if ack.ece && !self.recovery.is_open() && self.ecn.begins_round(una, self.board.nxt) {
            self.record(at, SenderEventKind::Marked, una.max(start), AckSummary::default());
        }
        let rtt = self.on_delivery(&news, ack, old_una, at);
        if offset > old_una && rtt > Duration::ZERO && !self.is_at_receiver() {
            self.rtt.of_front = Some((rtt, at));
        }
        self.window.update(at, offset, old_una, ack);
        let advanced = offset > old_una || news.bytes > 0;
        let was_in_episode = self.recovery.is_open();
        self.after_ack(at, advanced);
        if advanced {
            let what = match was_in_episode && !self.recovery.is_open() {
                true => SenderEventKind::Recovered(self.recovery.latest()),
                false => SenderEventKind::Acked,
            };
            let una = una.max(start);
            let acked = una.since(old_una.max(start)).get();
            let (delivered, late) = (news.bytes, news.reordering_extent);
            self.record(at, what, una, AckSummary { acked, delivered, late, rtt });
        }
    }

    /// Takes data that were acknowledged and not captured into the stream: the capture missed them. A
    /// single byte is a FIN.
    fn accept_unsent(&mut self, offset: Offset, at: Instant) {
        let nxt = self.board.nxt;
        if offset <= nxt {
            return;
        }
        if offset - nxt > 1 {
            self.bytes.add_unseen((nxt, offset), at);
        }
        self.board.nxt = offset;
        self.progress.begin();
    }

    /// Counts the data that an ACK without data covers outside of recovery.
    fn on_pure_ack(&mut self, acked: u64, in_order: bool, at: Instant) {
        let mss = self.segment.mss;
        if in_order {
            self.counters.coverage.count(acked, mss);
        }
        if self.board.is_all_acked() && acked < 2 * mss {
            let took = at.since(self.last.sent);
            self.idle.stalls.all_acked(took.saturating_sub(self.rtt.to_receiver()));
        }
    }

    fn on_sack_blocks(&mut self, ack: &CapturedAck, acked: Offset, news: &mut NewlyDelivered) {
        let blocks = ack.sack.as_slice();
        for (n, block) in blocks.iter().enumerate() {
            let left = self.numbers.offset(block.left, acked);
            let right = self.numbers.offset(block.right, acked);
            if right <= left {
                continue;
            }
            let is_inside_next = n == 0
                && blocks.get(1).is_some_and(|next| {
                    let l = self.numbers.offset(next.left, acked);
                    let r = self.numbers.offset(next.right, acked);
                    l <= left && right <= r && (l, r) != (left, right)
                });
            if n == 0 && (right <= acked || is_inside_next) {
                // RFC 2883 section 4: the first block reports a duplicate.
                self.on_dsack(left, right);
            } else if right <= self.board.nxt && left >= acked {
                self.board.sack(left, right, news);
            }
        }
    }

    fn on_dsack(&mut self, left: Offset, right: Offset) {
        if self.is_at_receiver() {
            // A receiver's capture shows the second copy itself.
            return;
        }
        match self.recovery.on_dsack(left, right, self.segment.mss) {
            Some(packets) => self.counters.sent.spurious += packets,
            None => self.counters.sent.unexplained_duplicates += 1,
        }
    }

    /// Takes RTT, delivery rate and reordering samples from newly delivered data, and detects
    /// spurious retransmissions. Returns the RTT of the newest of the data, 0 if it is unknown.
    fn on_delivery(
        &mut self,
        news: &NewlyDelivered,
        ack: &CapturedAck,
        old_una: Offset,
        at: Instant,
    ) -> Duration {
        self.rounds.log.now.acks += u32::from(news.bytes > 0);
        if self.is_at_receiver() {
            if let Some(sent_at) = news.newest {
                self.rtt.acked(ack.at.since(sent_at), None);
            }
            // At the receiver the RTT is that of the timestamp echoes.
            return self.rtt.latest.unwrap_or_default();
        }
        if news.bytes > 0 {
            // Those that the sender is taken to receive together passed here one by one.
            self.on_delivered(ack.at.min(at), news.bytes);
        }
        let rtt = news.newest_alone().map(|sent_at| self.on_round_trip(ack, sent_at));
        if let Some(sent_at) = news.reordered_sent_at {
            self.on_reordered(news, at.since(sent_at), ack.frame);
        }
        self.detect_spurious(news, ack, old_una, at);
        rtt.unwrap_or_default()
    }

    /// Takes a round trip to the receiver, measured when the ACK passed this point, not when the sender
    /// received it; returns that between the hosts.
    fn on_round_trip(&mut self, ack: &CapturedAck, sent_at: Instant) -> Duration {
        let rest = match self.begin.point {
            // The handshake has no packet that takes as long on a slow link as data do: where timestamps will show the
            // way of data, it is no sample of them.
            CapturePoint::Middle if ack.stamp.is_some() => self.rtt.recent_rtt_of_data_to_sender(),
            CapturePoint::Middle => self.rtt.shortest_to_sender(),
            _ => Some(self.rtt.to_sender()),
        };
        self.rtt.acked(ack.at.since(sent_at), rest);
        let latest = self.rtt.latest.unwrap_or_default();
        if rest.is_some() {
            self.rounds.log.sample(latest);
        }
        latest
    }

    fn on_reordered(&mut self, news: &NewlyDelivered, took: Duration, frame: u64) {
        self.rounds.log.now.late += news.reordered_bytes;
        let packets = self.segment.packets(news.reordered_bytes);
        // Lateness: by how much its ACK took longer than the smoothed RTT.
        let late = took.saturating_sub(self.rtt.smoothed.unwrap_or_default());
        self.counters.reordering.count(packets, news.reordering_extent, late, frame);
    }

    /// Detects a spurious retransmission: its ACK came too soon, or echoes an older timestamp.
    fn detect_spurious(
        &mut self,
        news: &NewlyDelivered,
        ack: &CapturedAck,
        old_una: Offset,
        at: Instant,
    ) {
        let Some(repeated) = news.repeated else { return };
        let took = at.since(repeated.sent_at);
        let soon = self.rtt.min.is_some_and(|min| took < min / 4 * 3);
        let stamp = repeated.stamp;
        let old_echo = repeated.start == old_una
            && stamp != 0
            && ack.echo.is_some_and(|echo| (echo.wrapping_sub(stamp) as i32) < 0);
        if soon || old_echo {
            self.counters.sent.spurious +=
                self.recovery.mark_spurious(repeated.start, repeated.end);
        }
    }

    /// Accounts for what an ACK ends: a timeout, a recovery, a round, a flight, a full window.
    fn after_ack(&mut self, at: Instant, advanced: bool) {
        let (una, nxt) = (self.board.una, self.board.nxt);
        let is_all_acked = self.board.is_all_acked();
        if advanced {
            self.recovery.on_progress();
        }
        // Copies of data that had been acknowledged advance nothing.
        if self.recovery.is_in_timeout() && (advanced || is_all_acked) {
            self.spend(TimeUse::Timeout, at);
            self.recovery.on_timeout_answered();
        }
        if self.recovery.is_ended_by(una) {
            self.spend(TimeUse::Recovery, at);
            self.recovery.end(at, at.saturating_sub(duplicate_time(self.rtt.usual())));
        }
        self.rounds.on_acked(una);
        if is_all_acked {
            self.idle.on_all_acked(at);
        }
        if self.window.has_opened(nxt, self.segment.mss) && self.recovery.time_use().is_none() {
            self.spend(self.window.limit_cause(), at);
        }
    }
}
