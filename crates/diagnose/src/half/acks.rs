//! ACKs reach the sender.

use super::{Ack, Half, Heard};
use crate::outstanding::Sent;
use crate::place::CapturePoint;
use crate::rounds::Spent;
use crate::turns::What;

impl Half {
    /// An ACK passes the capture point on its way to the sender.
    pub(crate) fn ack(&mut self, ack: Ack) {
        self.rtt.ack_passed(ack.at, ack.stamp);
        self.last_frame = ack.frame;
        if matches!(self.begin.point, CapturePoint::Sender | CapturePoint::Unknown) {
            let at = ack.at.max(self.since);
            self.ack_arrives(at, &ack);
        } else {
            self.release(ack.at, None);
            self.line.push_back(ack);
        }
    }

    /// ACKs that have reached the sender by now: those that data echo, and those that are due.
    pub(super) fn release(&mut self, now: u64, echo: Option<u32>) {
        while let Some(&ack) = self.line.front() {
            let due = ack.at + self.rtt.behind_lately();
            let echoed = match (echo, ack.stamp) {
                (Some(echo), Some(stamp)) => (echo.wrapping_sub(stamp) as i32) >= 0,
                _ => false,
            };
            if due > now && !echoed {
                return;
            }
            self.line.pop_front();
            let when = due.min(now).max(self.since);
            self.ack_arrives(when, &ack);
        }
    }

    /// The ACK takes effect at the sender.
    pub(super) fn ack_arrives(&mut self, at: u64, ack: &Ack) {
        let mut place = self.place(ack.number, self.una);
        if self.fin.is_some_and(|fin| place == fin + 1) {
            place -= 1;
        }
        if self.first_data.is_none() {
            // Only the window counts before there are data.
            self.offer(place, ack);
            return;
        }
        self.last_ack = at;
        self.answered = true;
        self.last_ack_pure = ack.pure;
        self.echoed |= ack.echo_of_mark;
        if place > self.nxt {
            // Data that never passed: the capture missed them.
            self.unseen += place - self.nxt;
            self.nxt = place;
            self.begun = true;
        }
        let in_order = self.sacked.is_empty() && ack.sack.as_slice().is_empty();
        let old_una = self.una;
        let mut news = News { fack: self.fack, ..News::default() };
        self.sack_blocks(ack, place, &mut news);
        if place > self.una {
            self.out.pop_below(place, |sent| {
                if !sent.sacked {
                    news.delivered(sent);
                }
            });
            if in_order && !self.in_episode && ack.pure {
                self.coverage.count(place - old_una, self.mss);
            }
            self.sacked.drop_below(place);
            self.una = place;
            self.fack = self.fack.max(place);
        }
        if ack.echo_of_mark && !self.in_episode && self.una >= self.mark_recover {
            self.mark_recover = self.nxt;
            self.turn(at, What::Marked, self.una.max(self.start), Heard::default());
        }
        let rtt = self.learn(&news, ack, old_una, at);
        self.offer(place, ack);
        let advanced = place > old_una || news.bytes > 0;
        let was_in_episode = self.in_episode;
        self.progress(at, advanced);
        if advanced {
            let what = match was_in_episode && !self.in_episode {
                true => What::Recovered(self.episode()),
                false => What::Acked,
            };
            let una = self.una.max(self.start);
            let acked = una - old_una.max(self.start).min(una);
            let heard = Heard { acked, delivered: news.bytes, late: news.late_extent, rtt };
            self.turn(at, what, una, heard);
        }
    }

    fn sack_blocks(&mut self, ack: &Ack, place: u64, news: &mut News) {
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
            // There the second copy itself was seen.
            return;
        }
        match self.open.duplicate(left, right, self.mss) {
            Some((packets, episode)) => self.found_spurious(packets, episode),
            None => self.counts.unexplained_duplicates += 1,
        }
    }

    fn found_spurious(&mut self, packets: u64, episode: u32) {
        self.counts.spurious += packets;
        if let Some(episode) =
            (episode as usize).checked_sub(1).and_then(|n| self.episodes.get_mut(n))
        {
            episode.spurious = (episode.spurious + packets).min(episode.retransmitted);
        }
    }

    /// What the delivery of data says. Returns the round trip of the newest of them, 0 if it is
    /// not known.
    fn learn(&mut self, news: &News, ack: &Ack, old_una: u64, at: u64) -> u64 {
        let mut took = match self.begin.point {
            // There the echoes of data tell it.
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
                self.last_delivery = at;
            }
        }
        if let Some(sent_at) = news.newest {
            let rest = match self.begin.point {
                CapturePoint::Sender | CapturePoint::Unknown => Some(self.rtt.behind()),
                CapturePoint::Middle => Some(self.rtt.behind_lately()),
                CapturePoint::Receiver => None,
            };
            // What passed this point when the ACK did, not when the sender got it.
            self.rtt.acked(ack.at.saturating_sub(sent_at), rest);
            if rest.is_some()
                && let Some(latest) = self.rtt.latest
            {
                self.rounds.sample(latest);
                took = latest;
            }
        }
        if at_sender && news.late_bytes > 0 {
            self.rounds.now.late += news.late_bytes;
            let packets = news.late_bytes.div_ceil(self.mss).max(1);
            // Late by what its ACK took longer than others lately.
            let usual = self.rtt.smoothed.unwrap_or(0);
            let late = at.saturating_sub(news.late_sent_at).saturating_sub(usual);
            self.reordering.count(packets, news.late_extent, late, ack.frame);
        }
        if at_sender && let Some((start, end, sent_at, stamp)) = news.again {
            let soon = self.rtt.min.is_some_and(|min| at.saturating_sub(sent_at) < min / 4 * 3);
            let old_echo = start == old_una
                && stamp != 0
                && ack.echo.is_some_and(|echo| (echo.wrapping_sub(stamp) as i32) < 0);
            if (soon || old_echo)
                && let Some((packets, episode)) = self.open.early(start, end)
            {
                self.found_spurious(packets, episode);
            }
        }
        took
    }

    /// The window the receiver offers, unless the ACK is out of date.
    fn offer(&mut self, place: u64, ack: &Ack) {
        if place < self.una || !ack.scaled {
            return;
        }
        self.edge = place + ack.window;
        self.window = ack.window;
        self.window_max = self.window_max.max(ack.window);
        self.window_min = self.window_min.min(ack.window);
        let closed = ack.window == 0;
        self.zero_windows += u64::from(closed && !self.window_closed);
        self.window_closed = closed;
    }

    fn progress(&mut self, at: u64, advanced: bool) {
        if self.in_timeout && advanced {
            self.spend(Spent::Timeout, at);
            self.in_timeout = false;
        }
        if self.in_episode && self.una >= self.recover {
            self.spend(Spent::Recovery, at);
            self.in_episode = false;
            if self.more_episodes == 0
                && let Some(episode) = self.episodes.last_mut()
            {
                episode.end = at;
                episode.over = true;
            }
            let rtt = self.smoothed();
            self.open.settle(at.saturating_sub(rtt * 4 + 2_000_000_000));
        }
        if self.una > self.mark {
            self.round_over = true;
        }
        if self.una == self.nxt && self.emptied.is_none() {
            self.emptied = Some(at);
        }
        if self.blocked && self.edge.saturating_sub(self.nxt) >= self.mss {
            if !self.in_episode && !self.in_timeout {
                let what = self.blocker();
                self.spend(what, at);
            }
            self.blocked = false;
        }
    }
}

/// What one ACK reports for the first time.
#[derive(Debug, Default)]
struct News {
    /// Highest byte that was known to be delivered before.
    fack: u64,
    bytes: u64,
    /// When the newest of the data passed that were sent once.
    newest: Option<u64>,
    newest_end: u64,
    /// Data sent once that come behind later ones.
    late_bytes: u64,
    late_extent: u64,
    late_sent_at: u64,
    /// The lowest stretch that had been sent again: when last, with which timestamp.
    again: Option<(u64, u64, u64, u32)>,
}

impl News {
    fn delivered(&mut self, sent: &Sent) {
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
                    self.late_bytes += end - start;
                    self.late_extent = self.late_extent.max(self.fack - start);
                    self.late_sent_at = sent.first_at;
                }
            }
            _ => {
                if self.again.is_none() {
                    self.again = Some((start, end, sent.last_at, sent.stamp));
                }
            }
        }
    }
}
