//! ACKs on the way to the sender and their effect there.

use super::{AckSummary, CapturedAck, HalfConnection};
use crate::capture_point::CapturePoint;
use crate::outstanding::SentRange;
use crate::rounds::TimeUse;
use crate::sender_events::SenderEventKind;

/// Most ranges of acknowledged bytes that are remembered because they may be captured yet.
const MAX_UNSEEN_RANGES: usize = 64;

impl HalfConnection {
    /// Processes an ACK that passes the capture point.
    pub(crate) fn ack(&mut self, ack: CapturedAck) {
        self.rtt.ack_passed(ack.at, ack.stamp);
        self.last.frame = ack.frame;
        let number = self.place(ack.number, self.una);
        if number > self.here.to && number <= self.nxt.saturating_add(1) {
            (self.here.to, self.here.since) = (number, ack.at);
        }
        self.here.at = ack.at;
        if matches!(self.begin.point, CapturePoint::Sender | CapturePoint::Unknown) {
            let at = ack.at.max(self.round.since);
            self.on_ack_received(at, &ack);
        } else {
            self.release(ack.at, None);
            self.line.push_back(ack);
        }
    }

    /// Delivers the ACKs that have reached the sender: those that data echo, and those that are
    /// due.
    pub(super) fn release(&mut self, now: u64, echo: Option<u32>) {
        while let Some(&ack) = self.line.front() {
            let due = ack.at + self.rtt.recent_rtt_to_sender();
            let ece_pending = match (echo, ack.stamp) {
                (Some(echo), Some(stamp)) => (echo.wrapping_sub(stamp) as i32) >= 0,
                _ => false,
            };
            if due > now && !ece_pending {
                return;
            }
            self.line.pop_front();
            let when = due.min(now).max(self.round.since);
            self.on_ack_received(when, &ack);
        }
    }

    /// Applies an ACK to the state of the sender.
    pub(super) fn on_ack_received(&mut self, at: u64, ack: &CapturedAck) {
        let mut place = self.place(ack.number, self.una);
        if self.fin.is_some_and(|fin| place == fin + 1) {
            place -= 1;
        }
        if self.first_data.is_none() {
            // Before the first data only the window matters.
            self.update_window(at, place, ack);
            return;
        }
        self.last.ack = at;
        self.last.answered = true;
        self.last.ack_pure = ack.pure;
        self.ecn.pending |= ack.ece;
        if !ack.pure {
            self.request_at.get_or_insert(at);
        }
        self.accept_probe(place);
        if place > self.nxt {
            if self.is_beyond(place) {
                // The number of another connection, or damage: nothing in between was sent.
                return self.resynchronise(ack.number);
            }
            // Data acknowledged but not captured: the capture missed them. A single byte is a FIN.
            if place - self.nxt > 1 {
                self.count_unseen((self.nxt, place), ack.at);
            }
            self.nxt = place;
            self.begun = true;
        }
        let in_order = self.sacked.is_empty() && ack.sack.as_slice().is_empty();
        let old_una = self.una;
        let mut news = NewlyDelivered { fack: self.fack, ..NewlyDelivered::default() };
        self.sack_blocks(ack, place, &mut news);
        if place > self.una {
            let mut uncaptured = Vec::new();
            self.out.pop_below(place, |sent| {
                if sent.copies == 0 {
                    uncaptured.push((sent.start, sent.end));
                }
                if !sent.sacked {
                    news.delivered(sent);
                }
            });
            if in_order && !self.episode.open && ack.pure {
                self.coverage.count(place - old_una, self.mss);
            }
            self.sacked.drop_below(place);
            for range in uncaptured {
                self.count_unseen(range, ack.at);
            }
            if ack.pure && place == self.nxt && place - old_una < 2 * self.mss && !self.episode.open
            {
                let took = ack.at.saturating_sub(self.last.sent);
                self.stalls.all_acked(took.saturating_sub(self.rtt.to_receiver()));
            }
            self.una = place;
            self.fack = self.fack.max(place);
        }
        if ack.ece && !self.episode.open && self.una >= self.ecn.recover {
            self.ecn.recover = self.nxt;
            self.turn(at, SenderEventKind::Marked, self.una.max(self.start), AckSummary::default());
        }
        let rtt = self.process_delivery(&news, ack, old_una, at);
        self.update_window(at, place, ack);
        let advanced = place > old_una || news.bytes > 0;
        let was_in_episode = self.episode.open;
        self.progress(at, advanced);
        if advanced {
            let what = match was_in_episode && !self.episode.open {
                true => SenderEventKind::Recovered(self.episode()),
                false => SenderEventKind::Acked,
            };
            let una = self.una.max(self.start);
            let acked = una - old_una.max(self.start).min(una);
            let received =
                AckSummary { acked, delivered: news.bytes, late: news.reordering_extent, rtt };
            self.turn(at, what, una, received);
        }
    }

    /// Counts bytes that were acknowledged and have not been captured.
    fn count_unseen(&mut self, (start, end): (u64, u64), at: u64) {
        self.unseen.bytes += end - start;
        self.unseen.at = at;
        self.unseen.ranges.add(start, end, |_, _| {});
        self.unseen.ranges.limit(MAX_UNSEEN_RANGES);
    }

    fn sack_blocks(&mut self, ack: &CapturedAck, place: u64, news: &mut NewlyDelivered) {
        let blocks = ack.sack.as_slice();
        for (n, block) in blocks.iter().enumerate() {
            let left = self.place(block.left.0, place);
            let right = self.place(block.right.0, place);
            if right <= left {
                continue;
            }
            let inside_next = n == 0
                && blocks.get(1).is_some_and(|next| {
                    let (l, r) = (self.place(next.left.0, place), self.place(next.right.0, place));
                    l <= left && right <= r && (l, r) != (left, right)
                });
            if n == 0 && (right <= place || inside_next) {
                // RFC 2883 section 4: the first block reports a duplicate.
                self.duplicate(left, right);
                continue;
            }
            if right > self.nxt || left < place {
                continue;
            }
            let out = &mut self.out;
            self.sacked.add(left, right, |l, r| {
                out.visit(l, r, |sent| {
                    sent.sacked = true;
                    news.delivered(sent);
                });
            });
            self.fack = self.fack.max(right);
        }
    }

    fn duplicate(&mut self, left: u64, right: u64) {
        if self.begin.point == CapturePoint::Receiver {
            // A receiver's capture shows the second copy itself.
            return;
        }
        match self.open.duplicate(left, right, self.mss) {
            Some((packets, episode)) => self.count_spurious(packets, episode),
            None => self.counts.unexplained_duplicates += 1,
        }
    }

    fn count_spurious(&mut self, packets: u64, episode: u32) {
        self.counts.spurious += packets;
        if let Some(episode) =
            (episode as usize).checked_sub(1).and_then(|n| self.episodes.get_mut(n))
        {
            episode.spurious = (episode.spurious + packets).min(episode.retransmitted);
        }
    }

    /// Takes RTT, delivery rate and reordering samples from newly delivered data, and detects
    /// spurious retransmissions. Returns the RTT of the newest of the data, 0 if it is unknown.
    fn process_delivery(
        &mut self,
        news: &NewlyDelivered,
        ack: &CapturedAck,
        old_una: u64,
        at: u64,
    ) -> u64 {
        let mut took = match self.begin.point {
            // At the receiver the RTT is that of the timestamp echoes.
            CapturePoint::Receiver => self.rtt.latest.unwrap_or(0),
            _ => 0,
        };
        let at_sender = self.begin.point != CapturePoint::Receiver;
        if news.bytes > 0 {
            self.rounds.now.acks += 1;
            if at_sender {
                self.delivered += news.bytes;
                let rtt = self.rtt.min.unwrap_or(0);
                self.dispersion.delivered(at, news.bytes, self.delivered, self.mss, rtt);
                self.rounds.now.delivered += news.bytes;
                self.last.delivery = at;
            }
        }
        if let Some(sent_at) = news.newest {
            let rest = match self.begin.point {
                CapturePoint::Sender | CapturePoint::Unknown => Some(self.rtt.behind()),
                CapturePoint::Middle => Some(self.rtt.recent_rtt_to_sender()),
                CapturePoint::Receiver => None,
            };
            // Measured when the ACK passed this point, not when the sender received it.
            self.rtt.acked(ack.at.saturating_sub(sent_at), rest);
            if rest.is_some()
                && let Some(latest) = self.rtt.latest
            {
                self.rounds.sample(latest);
                took = latest;
            }
        }
        if at_sender && news.reordered_bytes > 0 {
            self.rounds.now.late += news.reordered_bytes;
            let packets = news.reordered_bytes.div_ceil(self.mss).max(1);
            // Lateness: by how much its ACK took longer than the smoothed RTT.
            let usual = self.rtt.smoothed.unwrap_or(0);
            let late = at.saturating_sub(news.reordered_sent_at).saturating_sub(usual);
            self.reordering.count(packets, news.reordering_extent, late, ack.frame);
        }
        if at_sender && let Some((start, end, sent_at, stamp)) = news.repeated {
            let soon = self.rtt.min.is_some_and(|min| at.saturating_sub(sent_at) < min / 4 * 3);
            let old_echo = start == old_una
                && stamp != 0
                && ack.echo.is_some_and(|echo| (echo.wrapping_sub(stamp) as i32) < 0);
            if (soon || old_echo)
                && let Some((packets, episode)) = self.open.mark_spurious(start, end)
            {
                self.count_spurious(packets, episode);
            }
        }
        took
    }

    fn progress(&mut self, at: u64, advanced: bool) {
        // Copies of data that had been acknowledged advance nothing.
        if self.episode.in_timeout && (advanced || self.una == self.nxt) {
            self.spend(TimeUse::Timeout, at);
            self.episode.in_timeout = false;
        }
        if self.episode.open && self.una >= self.episode.recover {
            self.spend(TimeUse::Recovery, at);
            self.episode.open = false;
            if self.more_episodes == 0
                && let Some(episode) = self.episodes.last_mut()
            {
                episode.end = at;
                episode.over = true;
            }
            let rtt = self.smoothed();
            self.open.settle(at.saturating_sub(rtt * 4 + 2_000_000_000));
        }
        if self.una > self.round.mark {
            self.round.over = true;
        }
        if self.una == self.nxt && self.all_acked_at.is_none() {
            self.all_acked_at = Some(at);
        }
        if self.rwnd_limited && !self.is_window_full() {
            if !self.episode.open && !self.episode.in_timeout {
                let what = self.rwnd_limit_cause();
                self.spend(what, at);
            }
            self.rwnd_limited = false;
        }
    }
}

/// Data that one ACK reports as delivered for the first time.
#[derive(Debug, Default)]
struct NewlyDelivered {
    /// Highest byte delivered before this ACK.
    fack: u64,
    bytes: u64,
    /// Transmission time of the newest data that were sent once.
    newest: Option<u64>,
    newest_end: u64,
    /// Data sent once that were delivered after later data.
    reordered_bytes: u64,
    reordering_extent: u64,
    reordered_sent_at: u64,
    /// The lowest retransmitted range: start, end, time and timestamp of its last copy.
    repeated: Option<(u64, u64, u64, u32)>,
}

impl NewlyDelivered {
    fn delivered(&mut self, sent: &SentRange) {
        let (start, end) = (sent.start, sent.end);
        self.bytes += end - start;
        match sent.copies {
            0 => {}
            1 => {
                if end >= self.newest_end {
                    self.newest_end = end;
                    self.newest = Some(sent.first_at);
                }
                if end <= self.fack {
                    self.reordered_bytes += end - start;
                    self.reordering_extent = self.reordering_extent.max(self.fack - start);
                    self.reordered_sent_at = sent.first_at;
                }
            }
            _ => {
                if self.repeated.is_none() {
                    self.repeated = Some((start, end, sent.last_at, sent.stamp));
                }
            }
        }
    }
}
