//! Data below the highest captured byte: reordered or retransmitted, and the recovery episode that
//! they belong to.

use super::{AckSummary, HalfConnection};
use crate::capture_point::CapturePoint;
use crate::episodes::{KEPT, RecoveryEpisode, RecoveryTrigger};
use crate::outstanding::SentRange;
use crate::rounds::{RoundOrigin, TimeUse};
use crate::sender_events::SenderEventKind;

/// Shortest retransmission timeout, in ns (Linux: 200 ms, FreeBSD: 230 ms, RFC 6298: 1 s), less a
/// margin for measurement.
const MIN_RTO: u64 = 190_000_000;

/// Longest retransmission timeout, in ns (Linux `TCP_RTO_MAX`, 120 s; FreeBSD 64 s), and a round trip.
/// A longer silence is a rest, a capture that paused, or a clock that was set.
pub(super) const MAX_RTO: u64 = 125_000_000_000;

/// Least time, in ns, from which the rate of a timestamp clock is known: 20 ticks of 10 ms.
const MIN_CLOCK_TIME: u64 = 200_000_000;

/// Classification of data below `nxt`.
enum OldDataKind {
    /// Reordered: late by this time in ns.
    Late(u64),
    /// A retransmission; `spurious` if an earlier copy had arrived.
    Retransmitted { spurious: bool },
}

impl HalfConnection {
    /// Processes data below `nxt`: a retransmission, or a reordered packet.
    pub(super) fn old_data(&mut self, (start, end): (u64, u64), at: u64, stamp: u32, frame: u64) {
        if self.captured_after_ack((start, end), at) {
            return;
        }
        let mut what =
            OldDataKind::Retransmitted { spurious: start < self.una && start >= self.start };
        let at_receiver = self.begin.point == CapturePoint::Receiver;
        let rtt = self.rtt.min.unwrap_or(0);
        let has_stamps = stamp != 0;
        let mut copies = 0;
        let mut last_at = 0;
        let mut filled = 0;
        // Both copies passed here. A receiver acknowledges within half a second (RFC 9293 section
        // 3.8.6.3); if it has not answered the first for that long, the path beyond this point has
        // lost it.
        let (acked, answered_at) = (self.here.to, self.here.at);
        let first_copy_arrived = |sent: &SentRange| {
            sent.end <= acked || answered_at >= sent.last_at || at - sent.last_at < MIN_RTO
        };
        self.out.visit(start, end, |sent| {
            if sent.copies == 0 {
                // A hole is filled: by a reordered packet, if it was sent no later than the data
                // above it and came within a round-trip time; else by a retransmission.
                let late = at - sent.first_at;
                let before = has_stamps && (stamp.wrapping_sub(sent.stamp) as i32) <= 0;
                what = if before || (!has_stamps && late < rtt) {
                    OldDataKind::Late(late)
                } else {
                    OldDataKind::Retransmitted { spurious: false }
                };
                sent.first_at = at;
                filled += sent.end - sent.start;
            } else {
                last_at = last_at.max(sent.last_at);
                if at_receiver && first_copy_arrived(sent) || sent.sacked {
                    what = OldDataKind::Retransmitted { spurious: true };
                }
            }
            sent.copies = sent.copies.saturating_add(1);
            copies = sent.copies;
            sent.last_at = at;
            sent.stamp = stamp;
        });
        self.captured += filled;
        match what {
            OldDataKind::Late(late) => {
                let (packets, extent) = (self.packets(end - start), self.nxt - start);
                self.reordering.count(packets, extent, late, frame);
                self.rounds.now.late += end - start;
                self.counts.new += packets;
                if at_receiver {
                    self.on_delivered(at, end - start);
                }
            }
            OldDataKind::Retransmitted { spurious } => {
                if at_receiver && !spurious {
                    self.on_delivered(at, end - start);
                }
                self.on_retransmission((start, end), at, frame, (copies, last_at), spurious);
            }
        }
    }

    /// Moves bytes that were acknowledged before they were captured from the unseen to the captured
    /// ones. True if these data are no retransmission: all of them are new here, and an ACK passed so
    /// shortly before that only the capture can have put it first, as it does with packets of several
    /// NIC queues.
    fn captured_after_ack(&mut self, (start, end): (u64, u64), at: u64) -> bool {
        let found = self.unseen.ranges.remove(start, end);
        self.captured += found;
        self.unseen.bytes -= found;
        let is_order = found == end - start && at - self.unseen.at.min(at) <= self.reaction();
        if is_order {
            self.counts.new += self.packets(end - start);
        }
        is_order
    }

    fn on_retransmission(
        &mut self,
        (start, end): (u64, u64),
        at: u64,
        frame: u64,
        (copies, before): (u8, u64),
        spurious: bool,
    ) {
        let packets = self.packets(end - start);
        if self.silence_before(at) > MAX_RTO {
            self.spend(TimeUse::Idle, at);
        }
        self.counts.retransmitted += packets;
        self.counts.spurious += if spurious { packets } else { 0 };
        self.counts.retransmitted_bytes += end - start;
        self.rounds.now.retransmission += end - start;
        let trigger = self.trigger((start, end), at, copies, before);
        if self.episode.in_timeout
            || matches!(trigger, RecoveryTrigger::Timer | RecoveryTrigger::Probe)
        {
            self.spend(TimeUse::Timeout, at);
        } else if self.episode.open {
            self.spend(TimeUse::Recovery, at);
        } else {
            self.spend(TimeUse::Window, at);
        }
        if trigger == RecoveryTrigger::Timer && self.begun {
            self.round.over = false;
            self.next_round(at, frame, RoundOrigin::Timeout);
        }
        self.episode.in_timeout |=
            matches!(trigger, RecoveryTrigger::Timer | RecoveryTrigger::Probe);
        if self.episode.open {
            if self.round.over {
                self.round.over = false;
                self.next_round(at, frame, RoundOrigin::Round);
            }
        } else if !self.resume_episode(end) {
            self.begin_episode(trigger, (start, end), at, frame);
        }
        if trigger == RecoveryTrigger::Timer {
            self.episode.last_rto = at;
            self.turn(
                at,
                SenderEventKind::Timeout(self.episode()),
                self.una,
                AckSummary::default(),
            );
        }
        let index = self.episodes.len();
        if let Some(episode) = self.episodes.last_mut()
            && self.episode.open
            && !episode.over
        {
            episode.retransmitted += packets;
            episode.spurious += if spurious { packets } else { 0 };
            episode.acked_before += if end <= self.una { packets } else { 0 };
            episode.frames.1 = frame;
            if trigger == RecoveryTrigger::Timer {
                episode.timeouts += 1;
                episode.trigger = RecoveryTrigger::Timer;
            }
        }
        self.open.push((start, end), at, packets, index as u32, spurious);
    }

    /// Continues the last episode if the sender still repeats what had been acknowledged: it has
    /// received no ACK since, and its timer expires again and again.
    fn resume_episode(&mut self, end: u64) -> bool {
        let is_same_data = self.nxt == self.episode.recover && end <= self.una;
        let last = self.episodes.last_mut().filter(|_| is_same_data && self.more_episodes == 0);
        let Some(last) = last.filter(|last| last.over && last.acked_before > 0) else {
            return false;
        };
        last.over = false;
        self.episode.open = true;
        true
    }

    /// Time since the sender sent or received something.
    fn silence_before(&self, at: u64) -> u64 {
        at.saturating_sub(self.last.ack.max(self.last.sent))
    }

    /// Trigger of a retransmission; `before` is when the previous copy was sent.
    fn trigger(
        &self,
        (start, end): (u64, u64),
        at: u64,
        copies: u8,
        before: u64,
    ) -> RecoveryTrigger {
        let silent = self.silence_before(at);
        let srtt = self.smoothed();
        if silent > MAX_RTO {
            return RecoveryTrigger::Acks;
        }
        // A stack without lost retransmission detection waits for its timer, however many ACKs
        // arrive for later data (FreeBSD without net.inet.tcp.do_lrd).
        let waited = at.saturating_sub(before.max(self.episode.last_rto));
        if start == self.una && copies > 2 && waited >= MIN_RTO && waited >= srtt {
            return RecoveryTrigger::Timer;
        }
        // An ACK triggers a retransmission within half a round-trip time; RACK's reordering timer
        // is a quarter of one (RFC 8985 section 6.2).
        if silent <= (srtt / 2).max(self.reaction()) {
            return RecoveryTrigger::Acks;
        }
        // PTO: two round trips, and the delayed ACK of a lone segment (RFC 8985 section 7.2).
        let lone = if start == self.una { 200_000_000 } else { 0 };
        if end == self.nxt && copies <= 2 && silent < srtt * 5 / 2 + lone + 10_000_000 {
            return RecoveryTrigger::Probe;
        }
        if silent >= MIN_RTO && silent >= srtt {
            RecoveryTrigger::Timer
        } else {
            RecoveryTrigger::Acks
        }
    }

    pub(super) fn begin_episode(
        &mut self,
        trigger: RecoveryTrigger,
        (_, end): (u64, u64),
        at: u64,
        frame: u64,
    ) {
        self.episode.open = true;
        self.episode.recover = self.nxt;
        if self.episodes.len() >= KEPT {
            self.more_episodes += 1;
            return;
        }
        let window = self.rounds.now.flight.max(self.rounds.done.last().map_or(0, |r| r.flight));
        // A retransmission among data that the path had delayed: the timer expired meanwhile.
        let held =
            self.delay_spike_at.is_some_and(|held| at - held <= 2 * self.rtt.min.unwrap_or(0));
        let trigger = if held { RecoveryTrigger::Timer } else { trigger };
        self.episodes.push(RecoveryEpisode {
            trigger,
            begin: at,
            silent_since: self.last.ack.max(self.last.sent),
            end: at,
            frames: (frame, frame),
            retransmitted: 0,
            spurious: 0,
            acked_before: 0,
            timeouts: u32::from(held),
            flight: self.flight(),
            window,
            sent_above: 0,
            rtt: self.rtt_at_loss(),
            tail: end == self.nxt,
            over: false,
        });
        if trigger != RecoveryTrigger::Timer {
            self.turn(at, SenderEventKind::Loss(self.episode()), self.una, AckSummary::default());
        }
    }

    /// Processes CWR: the sender has reduced its window. Linux sets it after losses too, on the
    /// first new data in recovery.
    pub(super) fn reduced(&mut self, at: u64, frame: u64) {
        if !core::mem::take(&mut self.ecn.pending) || self.episode.open {
            return;
        }
        if self.episodes.len() >= KEPT {
            self.more_episodes += 1;
            return;
        }
        self.episodes.push(RecoveryEpisode {
            trigger: RecoveryTrigger::Mark,
            begin: at,
            silent_since: at,
            end: at,
            frames: (frame, frame),
            retransmitted: 0,
            spurious: 0,
            acked_before: 0,
            timeouts: 0,
            flight: self.flight(),
            window: self.rounds.now.flight.max(self.rounds.done.last().map_or(0, |r| r.flight)),
            sent_above: 0,
            rtt: self.rtt_at_loss(),
            tail: false,
            over: true,
        });
    }

    /// Index of the latest episode.
    pub(super) fn episode(&self) -> u32 {
        self.episodes.len().saturating_sub(1) as u32
    }

    /// RTT when the loss happened. A sender has just received the ACKs of packets around the lost
    /// one; a receiver sees the retransmission one RTT later.
    fn rtt_at_loss(&self) -> u64 {
        if self.begin.point == CapturePoint::Receiver {
            let before = self.rounds.done.last().map_or(0, |round| round.max_rtt);
            self.rounds.now.max_rtt.max(before)
        } else {
            self.rtt.latest.unwrap_or(0)
        }
    }

    /// Whether data captured after a pause were sent before it, by their timestamps: their clock made
    /// less than half of the ticks that it makes in such a time. Its rate is that before the pause,
    /// since it differs between systems (RFC 7323 section 5.4: a tick of 1 ms to 1 s).
    pub(super) fn held(&self, at: u64, stamp: u32) -> bool {
        let (first, first_at) = self.stamps.first;
        let known = self.stamps.last_at.saturating_sub(first_at);
        let pause = at.saturating_sub(self.stamps.last_at);
        let [before, ticks] = [(self.stamps.last, first), (stamp, self.stamps.last)]
            .map(|(to, from)| u64::from(to.wrapping_sub(from)));
        let is_known = stamp != 0 && first != 0 && known >= MIN_CLOCK_TIME && before < 1 << 31;
        let expected = units::ratio::scaled(before, pause, known.max(1));
        is_known && ticks < 1 << 31 && pause >= 50_000_000 && ticks < expected / 2
    }

    /// Decides whether an idle time was a retransmission timeout. One full segment alone after the
    /// idle time, and the next one RTT later, is not an application that writes again but a
    /// retransmission timer (RFC 5681 section 3.1: a window of one segment); the earlier copies
    /// were lost before the capture point.
    pub(super) fn check_suspected_timeout(&mut self, rest: u64, first: u64, at: u64) {
        let rtt = self.rtt.min.unwrap_or(u64::MAX);
        let single_packet = at.saturating_sub(first) >= rtt / 5 * 4;
        if single_packet && !self.last.short && self.nxt - self.una <= self.mss {
            if let Some(round) = self.rounds.done.last_mut() {
                let rest = rest.min(round.time_by_use[TimeUse::Idle as usize]);
                round.time_by_use[TimeUse::Idle as usize] -= rest;
                round.time_by_use[TimeUse::Timeout as usize] += rest;
            }
            self.rounds.now.before = RoundOrigin::Timeout;
            self.infer_episode(first, first - rest, self.last.frame, false);
        }
    }

    /// Records an episode of which the capture shows only the silence.
    pub(super) fn infer_episode(&mut self, at: u64, silent_since: u64, frame: u64, tail: bool) {
        if self.episodes.len() >= KEPT {
            self.more_episodes += 1;
            return;
        }
        self.episodes.push(RecoveryEpisode {
            trigger: RecoveryTrigger::Inferred,
            begin: at,
            silent_since,
            end: at,
            frames: (frame, frame),
            retransmitted: 0,
            spurious: 0,
            acked_before: 0,
            timeouts: u32::from(!tail),
            flight: 0,
            window: self.rounds.done.last().map_or(0, |r| r.flight).max(self.rounds.now.flight),
            sent_above: 0,
            rtt: self.rtt.latest.unwrap_or(0),
            tail,
            over: true,
        });
    }
}
