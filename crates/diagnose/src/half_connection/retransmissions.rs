//! Data below the highest captured byte: reordered or retransmitted, and the recovery episode that
//! they belong to.

use units::{Duration, Instant};

use super::data::CapturedData;
use super::idle::IdleTime;
use super::lost_flight::expiries;
use super::recovery::Retransmission;
use super::{AckSummary, FrameTime, HalfConnection, MAX_RTO, RTO_SLOP};
use crate::episodes::{RecoveryEpisode, RecoveryTrigger};
use crate::outstanding::SentRange;
use crate::rounds::{RoundOrigin, TimeUse};
use crate::sender_events::SenderEventKind;

/// Shortest retransmission timeout (Linux: 200 ms, FreeBSD: 230 ms, RFC 6298: 1 s), less a margin for
/// measurement.
pub(super) const MIN_RTO: Duration = Duration::from_millis(190);

/// Segments of a window that an idle time does not reduce to one.
const LEAST_WINDOW: u64 = 4;

/// What a probe timeout may exceed two and a half round trips by: half a tick of 100 Hz and the work of
/// a host.
const PROBE_MARGIN: Duration = Duration::from_millis(10);

/// Classification of data below `nxt`.
#[derive(Debug, Clone, Copy)]
enum OldDataKind {
    /// Reordered: late by this time.
    Late(Duration),
    /// A retransmission; `spurious` if an earlier copy had arrived.
    Retransmitted { spurious: bool },
}

/// The copies of data that were captured before.
#[derive(Debug, Clone, Copy)]
struct EarlierCopies {
    kind: OldDataKind,
    /// Copies with this one.
    copies: u8,
    /// When the previous one was captured; `None` without one.
    last_at: Option<Instant>,
    /// Bytes of a hole that these data fill.
    filled: u64,
}

impl HalfConnection {
    /// Processes data below `nxt`: a retransmission, or a reordered packet.
    pub(super) fn on_old_data(&mut self, data: CapturedData) {
        let at = data.now.at;
        let packets = self.segment.packets(data.len());
        if self.bytes.capture_after_ack(data.range(), at, self.reaction()) {
            self.counters.sent.new += packets;
            return;
        }
        let earlier = self.record_copy(&data);
        self.bytes.captured += earlier.filled;
        match earlier.kind {
            OldDataKind::Late(late) => {
                let extent = self.board.nxt - data.start;
                self.counters.reordering.count(packets, extent, late, data.now.frame);
                self.rounds.log.now.late += data.len();
                self.counters.sent.new += packets;
                if self.is_at_receiver() {
                    self.on_delivered(at, data.len());
                }
            }
            OldDataKind::Retransmitted { spurious } => {
                if self.is_at_receiver() && !spurious {
                    self.on_delivered(at, data.len());
                }
                let trigger = self.trigger(&data, earlier.copies, earlier.last_at);
                // Copies between this one and the last may have been lost before the capture point.
                let silence = at.since(self.recovery.waits_since(self.last.latest()));
                let is_acked = data.end <= self.board.una;
                let timeout = self.timeout() * (1 << self.recovery.doublings());
                let expiries = match self.is_behind_losses() && !is_acked {
                    true => expiries(silence, timeout),
                    false => 1,
                };
                self.on_retransmission(
                    data.now,
                    Retransmission {
                        range: data.range(),
                        at,
                        frame: data.now.frame,
                        packets,
                        trigger,
                        expiries,
                        is_spurious: spurious,
                        is_acked,
                    },
                );
            }
        }
    }

    /// Adds a copy of data to the scoreboard; returns what the earlier copies show about it.
    fn record_copy(&mut self, data: &CapturedData) -> EarlierCopies {
        let (at, stamp) = (data.now.at, data.stamp);
        let is_acked = data.start < self.board.una && data.start >= self.numbers.start;
        let mut earlier = EarlierCopies {
            kind: OldDataKind::Retransmitted { spurious: is_acked },
            copies: 0,
            last_at: None,
            filled: 0,
        };
        let at_receiver = self.is_at_receiver();
        let rtt = self.rtt.min.unwrap_or_default();
        // Both copies passed here. A receiver acknowledges within half a second (RFC 9293 section
        // 3.8.6.3); if it has not answered the first for that long, the path beyond this point has
        // lost it.
        let acks = &self.acks;
        let first_copy_arrived = |sent: &SentRange| {
            acks.is_answered(sent.end, sent.last_at) || at.since(sent.last_at) < MIN_RTO
        };
        self.board.visit(data.range(), |sent| {
            if sent.copies == 0 {
                // A hole is filled: by a reordered packet, if it was sent no later than the data
                // above it and came within a round-trip time; else by a retransmission.
                let late = at.since(sent.first_at);
                let before = stamp != 0 && (stamp.wrapping_sub(sent.stamp) as i32) <= 0;
                earlier.kind = if before || (stamp == 0 && late < rtt) {
                    OldDataKind::Late(late)
                } else {
                    OldDataKind::Retransmitted { spurious: false }
                };
                sent.first_at = at;
                earlier.filled += sent.end - sent.start;
            } else {
                earlier.last_at = earlier.last_at.max(Some(sent.last_at));
                if at_receiver && first_copy_arrived(sent) || sent.sacked {
                    earlier.kind = OldDataKind::Retransmitted { spurious: true };
                }
            }
            sent.copies = sent.copies.saturating_add(1);
            earlier.copies = sent.copies;
            sent.last_at = at;
            sent.stamp = stamp;
        });
        earlier
    }

    fn on_retransmission(&mut self, now: FrameTime, sent: Retransmission) {
        let at = now.at;
        if self.last.silence_before(at) > MAX_RTO {
            self.spend(TimeUse::Idle, at);
        }
        let bytes = sent.range.1 - sent.range.0;
        let counts = &mut self.counters.sent;
        counts.retransmitted += sent.packets;
        counts.spurious += if sent.is_spurious { sent.packets } else { 0 };
        counts.retransmitted_bytes += bytes;
        self.rounds.log.now.retransmission += bytes;
        self.events.retransmitted(bytes);
        let of_rto = sent.trigger == RecoveryTrigger::Timer;
        let is_timer = of_rto || sent.trigger == RecoveryTrigger::Probe;
        let in_progress = self.recovery.time_use().unwrap_or(TimeUse::Window);
        self.spend(if is_timer { TimeUse::Timeout } else { in_progress }, at);
        let nxt = self.board.nxt;
        if of_rto && self.progress.has_begun() {
            self.rounds.begin(now, RoundOrigin::Timeout, nxt);
        }
        if is_timer {
            self.recovery.expire();
        }
        if self.recovery.is_open() {
            self.rounds.begin_if_acked(now, nxt);
        } else if let Some(end) = self.lost_flight.flight_of(sent.range)
            && self.recovery.resume_inferred(end)
        {
            // The rest of a flight whose loss the silence before has shown.
        } else if !self.recovery.resume(sent.range.1, self.board.una, nxt) {
            self.begin_episode(now, &sent);
        }
        if of_rto {
            self.recovery.on_rto(at);
            let timeout = SenderEventKind::Timeout(self.recovery.latest());
            self.record(at, timeout, self.board.una, AckSummary::default());
        }
        self.recovery.on_retransmission(&sent);
    }

    /// Trigger of a retransmission, the `copies`-th copy; the previous one was sent at `before`.
    fn trigger(&self, data: &CapturedData, copies: u8, before: Option<Instant>) -> RecoveryTrigger {
        let at = data.now.at;
        let silent = self.last.silence_before(at);
        let srtt = self.rtt.usual();
        let is_first = data.start == self.board.una;
        if silent > MAX_RTO {
            return RecoveryTrigger::Acks;
        }
        // A stack without lost retransmission detection waits for its timer, however many ACKs
        // arrive for later data (FreeBSD without net.inet.tcp.do_lrd).
        let waited = at.since(self.recovery.waits_since(before.unwrap_or(Instant::ZERO)));
        if is_first && copies > 2 && waited >= MIN_RTO && waited >= srtt {
            return RecoveryTrigger::Timer;
        }
        // An ACK triggers a retransmission within half a round-trip time; RACK's reordering timer
        // is a quarter of one (RFC 8985 section 6.2).
        if silent <= (srtt / 2).max(self.reaction()) {
            return RecoveryTrigger::Acks;
        }
        // PTO: two round trips, and the delayed ACK of a lone segment (RFC 8985 section 7.2).
        let lone = if is_first { RTO_SLOP } else { Duration::ZERO };
        let is_last = data.end == self.board.nxt;
        if is_last && copies <= 2 && silent < srtt * 5 / 2 + lone + PROBE_MARGIN {
            return RecoveryTrigger::Probe;
        }
        if silent >= MIN_RTO && silent >= srtt {
            RecoveryTrigger::Timer
        } else {
            RecoveryTrigger::Acks
        }
    }

    /// Begins an episode with a retransmission.
    fn begin_episode(&mut self, now: FrameTime, sent: &Retransmission) {
        // A retransmission among data that the path had delayed: the timer expired meanwhile.
        let spike_time = self.rtt.min.unwrap_or_default() * 2;
        let is_held = self.idle.is_after_delay_spike(now.at, spike_time);
        let trigger = if is_held { RecoveryTrigger::Timer } else { sent.trigger };
        let episode = RecoveryEpisode {
            silent_since: self.last.latest(),
            timeouts: u32::from(is_held),
            flight: self.board.flight(),
            window: self.rounds.window_reached(),
            rtt: self.rtt_at_loss(),
            tail: sent.range.1 == self.board.nxt,
            ..RecoveryEpisode::new(trigger, now.at, now.frame)
        };
        self.recovery.begin(self.board.nxt);
        if self.recovery.push(episode) && trigger != RecoveryTrigger::Timer {
            let loss = SenderEventKind::Loss(self.recovery.latest());
            self.record(now.at, loss, self.board.una, AckSummary::default());
        }
    }

    /// Processes CWR: the sender has reduced its window. Linux sets it after losses too, on the
    /// first new data in recovery.
    pub(super) fn on_cwr(&mut self, now: FrameTime) {
        if !self.ecn.on_cwr() || self.recovery.is_open() {
            return;
        }
        self.recovery.push(RecoveryEpisode {
            flight: self.board.flight(),
            window: self.rounds.window_reached(),
            rtt: self.rtt_at_loss(),
            over: true,
            ..RecoveryEpisode::new(RecoveryTrigger::Mark, now.at, now.frame)
        });
    }

    /// RTT when the loss happened. A sender has just received the ACKs of packets around the lost
    /// one, of which the longest shows the queue; a receiver sees the retransmission one RTT later.
    fn rtt_at_loss(&self) -> Duration {
        let rounds = &self.rounds.log;
        let longest = if self.is_at_receiver() {
            let before = rounds.done.last().map_or(Duration::ZERO, |round| round.max_rtt);
            rounds.now.max_rtt.max(before)
        } else {
            let around = rounds.now.max_rtt.max(self.rtt.latest.unwrap_or_default());
            around.max(self.rtt_before_loss())
        };
        // What the ACKs waited is no queue of the data.
        longest.saturating_sub(rounds.now.wait_on_way_back)
    }

    /// RTT of the packet before the first lost one, if both were in flight together: the last packet of a burst is lost
    /// behind all others, and the ACKs that report it are those of the next burst.
    fn rtt_before_loss(&self) -> Duration {
        let lost = self.board.first_outstanding().filter(|one| one.start == self.board.una);
        let before = self.rtt.of_front.zip(lost).filter(|(front, lost)| lost.first_at < front.1);
        before.map_or(Duration::ZERO, |(front, _)| front.0)
    }

    /// Decides whether an idle time was a retransmission timeout. One full segment alone after the
    /// idle time, and the next one RTT later, is not an application that writes again but a
    /// retransmission timer (RFC 5681 section 3.1: a window of one segment); the earlier copies
    /// were lost before the capture point. The sender had more to send if the packets before the idle
    /// time show it, if the next data leave a gap, or if they follow as soon as the ACK of the first
    /// admits them: a sender that was idle has a window of several segments (RFC 5681 section 4.1).
    pub(super) fn check_suspected_timeout(&mut self, idle: IdleTime, at: Instant, stamp: u32) {
        let rtt = self.rtt.least().unwrap_or(Duration::MAX / 4);
        let since = at.since(idle.end);
        // On a slow link packets that were sent together are as far apart.
        let single_packet = since >= rtt / 5 * 4 && !self.stamps.is_last(stamp);
        let in_flight = self.board.nxt - self.board.una;
        // The ACK of a segment alone may be delayed.
        let since_ack = at.since(self.all_acked_here().unwrap_or(idle.end).max(idle.end));
        // A window that has not been reduced holds several segments, if no SYN was lost.
        let is_first_window = self.recovery.episodes.is_empty() && !self.begin.syn_repeated;
        let was_large = self.rounds.window_reached() >= LEAST_WINDOW * self.segment.mss;
        let had_window = is_first_window || was_large && !idle.is_asked;
        let is_admitted = stamp != 0
            && since_ack <= rtt / 4 * 5 + self.reaction()
            && idle.length >= MIN_RTO
            && had_window
            && !self.idle.has_request(at);
        let is_unfinished = idle.is_unfinished || self.missing.in_stream || is_admitted;
        let is_alone = single_packet && !self.last.short && in_flight <= self.segment.mss;
        if idle.counted_as == TimeUse::Timeout {
            // Its episode has been inferred.
            if is_alone && is_unfinished {
                self.rounds.log.now.before = RoundOrigin::Timeout;
                self.recovery.tail_is_flight();
            }
        } else if is_alone && is_unfinished {
            let rounds = &mut self.rounds.log;
            rounds.move_before(idle.counted_as, TimeUse::Timeout, idle.length);
            rounds.now.before = RoundOrigin::Timeout;
            let now = FrameTime { at: idle.end, frame: self.last.frame };
            self.infer_episode(now, idle.end.saturating_sub(idle.length), false);
            self.lost_flight.on_expiry(1, self.last.frame);
        }
    }

    /// Records an episode of which the capture shows only the silence.
    pub(super) fn infer_episode(&mut self, now: FrameTime, silent_since: Instant, tail: bool) {
        self.recovery.push(RecoveryEpisode {
            silent_since,
            timeouts: u32::from(!tail),
            window: self.rounds.window_reached(),
            rtt: self.rtt.latest.unwrap_or_default(),
            tail,
            over: true,
            ..RecoveryEpisode::new(RecoveryTrigger::Inferred, now.at, now.frame)
        });
    }
}
