//! Data that the capture point has seen before, or that come late: what they are, and the episode
//! of loss or of false alarm that they belong to.

use super::{Half, Heard};
use crate::episodes::{Episode, KEPT, Trigger};
use crate::place::CapturePoint;
use crate::rounds::{Before, Spent};
use crate::turns::What;

/// No timer runs out sooner, in ns (Linux: 200 ms, FreeBSD: 230 ms, RFC 6298: 1 s), measured a little
/// short.
const SHORTEST_TIMEOUT: u64 = 190_000_000;

/// What a stretch of data below `nxt` is.
enum Again {
    /// It came late, overtaken by others.
    Late(u64),
    /// It was sent again; were earlier copies seen to arrive?
    Resent { spurious: bool },
}

impl Half {
    /// Bytes below `nxt`: again, or late.
    pub(super) fn old_data(&mut self, (start, end): (u64, u64), at: u64, stamp: u32, frame: u64) {
        let mut what = Again::Resent { spurious: start < self.una && start >= self.start };
        let at_receiver = self.begin.point == CapturePoint::Receiver;
        let rtt = self.rtt.min.unwrap_or(0);
        let has_stamps = stamp != 0;
        let mut copies = 0;
        let mut last_at = 0;
        self.out.visit(start, end, |sent| {
            if sent.copies == 0 {
                // A hole is filled: late, if sent no later than what lies above and within a round
                // trip; else sent again.
                let late = at - sent.first_at;
                let before = has_stamps && (stamp.wrapping_sub(sent.stamp) as i32) <= 0;
                what = if before || (!has_stamps && late < rtt) {
                    Again::Late(late)
                } else {
                    Again::Resent { spurious: false }
                };
                sent.first_at = at;
            } else {
                last_at = last_at.max(sent.last_at);
                if at_receiver || sent.sacked {
                    what = Again::Resent { spurious: true };
                }
            }
            sent.copies = sent.copies.saturating_add(1);
            copies = sent.copies;
            sent.last_at = at;
            sent.stamp = stamp;
        });
        match what {
            Again::Late(late) => {
                let (packets, extent) = (self.packets(end - start), self.nxt - start);
                self.reordering.count(packets, extent, late, frame);
                self.rounds.now.late += end - start;
                self.counts.new += packets;
                if at_receiver {
                    self.passed(at, end - start);
                }
            }
            Again::Resent { spurious } => {
                if at_receiver && !spurious {
                    self.passed(at, end - start);
                }
                self.resent((start, end), at, frame, (copies, last_at), spurious);
            }
        }
    }

    fn resent(
        &mut self,
        (start, end): (u64, u64),
        at: u64,
        frame: u64,
        (copies, before): (u8, u64),
        spurious: bool,
    ) {
        let packets = self.packets(end - start);
        self.counts.retransmitted += packets;
        self.counts.spurious += if spurious { packets } else { 0 };
        self.counts.retransmitted_bytes += end - start;
        self.rounds.now.resent += end - start;
        let trigger = self.trigger((start, end), at, copies, before);
        if self.in_timeout || matches!(trigger, Trigger::Timer | Trigger::Probe) {
            self.spend(Spent::Timeout, at);
        } else if self.in_episode {
            self.spend(Spent::Recovery, at);
        } else {
            self.spend(Spent::Window, at);
        }
        if trigger == Trigger::Timer && self.begun {
            self.round_over = false;
            self.next_round(at, frame, Before::Timeout);
        }
        self.in_timeout |= matches!(trigger, Trigger::Timer | Trigger::Probe);
        if self.in_episode {
            if self.round_over {
                self.round_over = false;
                self.next_round(at, frame, Before::Round);
            }
        } else {
            self.begin_episode(trigger, (start, end), at, frame);
        }
        if trigger == Trigger::Timer {
            self.last_timer = at;
            self.turn(at, What::Timeout(self.episode()), self.una, Heard::default());
        }
        let index = self.episodes.len();
        if let Some(episode) = self.episodes.last_mut()
            && self.in_episode
            && !episode.over
        {
            episode.retransmitted += packets;
            episode.spurious += if spurious { packets } else { 0 };
            episode.frames.1 = frame;
            if trigger == Trigger::Timer {
                episode.timeouts += 1;
                episode.trigger = Trigger::Timer;
            }
        }
        self.open.push((start, end), at, packets, index as u32, spurious);
    }

    /// What set this retransmission off? The copy `before` it left then.
    fn trigger(&self, (start, end): (u64, u64), at: u64, copies: u8, before: u64) -> Trigger {
        let silent = at.saturating_sub(self.last_ack.max(self.last_sent));
        let srtt = self.smoothed();
        // A stack that does not find lost retransmissions waits for its timer, however many ACKs
        // come for what lies behind (FreeBSD without net.inet.tcp.do_lrd).
        let waited = at.saturating_sub(before.max(self.last_timer));
        if start == self.una && copies > 2 && waited >= SHORTEST_TIMEOUT && waited >= srtt {
            return Trigger::Timer;
        }
        // An answer comes within half a round trip; RACK's reordering timer is a quarter of one
        // (RFC 8985 section 6.2).
        if silent <= (srtt / 2).max(self.reaction()) {
            return Trigger::Acks;
        }
        // PTO: two round trips, and the delayed ACK of a lone segment (RFC 8985 section 7.2).
        let lone = if start == self.una { 200_000_000 } else { 0 };
        if end == self.nxt && copies <= 2 && silent < srtt * 5 / 2 + lone + 10_000_000 {
            return Trigger::Probe;
        }
        if silent >= SHORTEST_TIMEOUT && silent >= srtt { Trigger::Timer } else { Trigger::Acks }
    }

    pub(super) fn begin_episode(
        &mut self,
        trigger: Trigger,
        (_, end): (u64, u64),
        at: u64,
        frame: u64,
    ) {
        self.in_episode = true;
        self.recover = self.nxt;
        if self.episodes.len() >= KEPT {
            self.more_episodes += 1;
            return;
        }
        let window = self.rounds.now.flight.max(self.rounds.done.last().map_or(0, |r| r.flight));
        // A copy among what the path had held back: a timer set it off meanwhile.
        let held = self.held_at.is_some_and(|held| at - held <= 2 * self.rtt.min.unwrap_or(0));
        let trigger = if held { Trigger::Timer } else { trigger };
        self.episodes.push(Episode {
            trigger,
            begin: at,
            silent_since: self.last_ack.max(self.last_sent),
            end: at,
            frames: (frame, frame),
            retransmitted: 0,
            spurious: 0,
            timeouts: u32::from(held),
            flight: self.flight(),
            window,
            sent_above: 0,
            rtt: self.rtt_at_loss(),
            tail: end == self.nxt,
            over: false,
        });
        if trigger != Trigger::Timer {
            self.turn(at, What::Loss(self.episode()), self.una, Heard::default());
        }
    }

    /// The sender says that it has reduced its window. Linux does so after losses too, on the first
    /// new data within the recovery.
    pub(super) fn reduced(&mut self, at: u64, frame: u64) {
        if !core::mem::take(&mut self.echoed) || self.in_episode {
            return;
        }
        if self.episodes.len() >= KEPT {
            self.more_episodes += 1;
            return;
        }
        self.episodes.push(Episode {
            trigger: Trigger::Mark,
            begin: at,
            silent_since: at,
            end: at,
            frames: (frame, frame),
            retransmitted: 0,
            spurious: 0,
            timeouts: 0,
            flight: self.flight(),
            window: self.rounds.now.flight.max(self.rounds.done.last().map_or(0, |r| r.flight)),
            sent_above: 0,
            rtt: self.rtt_at_loss(),
            tail: false,
            over: true,
        });
    }

    /// Number of the latest episode.
    pub(super) fn episode(&self) -> u32 {
        self.episodes.len().saturating_sub(1) as u32
    }

    /// The round trip when the loss happened: of packets around the lost one, which a sender hears
    /// of just now; a receiver sees the repair a round trip later.
    fn rtt_at_loss(&self) -> u64 {
        if self.begin.point == CapturePoint::Receiver {
            let before = self.rounds.done.last().map_or(0, |round| round.max_rtt);
            self.rounds.now.max_rtt.max(before)
        } else {
            self.rtt.latest.unwrap_or(0)
        }
    }

    /// Were data that came after a pause sent before it? Their timestamps tell: clocks of
    /// timestamps run at 1 kHz on Linux and FreeBSD (RFC 7323 section 5.4 allows 1 ms to 1 s).
    pub(super) fn held(&self, at: u64, stamp: u32) -> bool {
        let ticks = u64::from(stamp.wrapping_sub(self.last_stamp));
        let pause = at.saturating_sub(self.last_sent) / 1_000_000;
        stamp != 0 && self.last_stamp != 0 && ticks < 1 << 31 && pause >= 50 && ticks < pause / 2
    }

    /// After a long rest came one full segment alone, and the next a round trip later: that is no
    /// application that writes again, that is a retransmission timer (RFC 5681 section 3.1: a
    /// window of one segment), whose earlier copies were lost before this point.
    pub(super) fn judge_suspect(&mut self, rest: u64, first: u64, at: u64) {
        let rtt = self.rtt.min.unwrap_or(u64::MAX);
        let alone = at.saturating_sub(first) >= rtt / 5 * 4;
        if alone && !self.last_short && self.nxt - self.una <= self.mss {
            if let Some(round) = self.rounds.done.last_mut() {
                let rest = rest.min(round.spent[Spent::Idle as usize]);
                round.spent[Spent::Idle as usize] -= rest;
                round.spent[Spent::Timeout as usize] += rest;
            }
            self.rounds.now.before = Before::Timeout;
            self.infer(first, first - rest, self.last_frame, false);
        }
    }

    /// An episode of which only the silence was seen.
    pub(super) fn infer(&mut self, at: u64, silent_since: u64, frame: u64, tail: bool) {
        if self.episodes.len() >= KEPT {
            self.more_episodes += 1;
            return;
        }
        self.episodes.push(Episode {
            trigger: Trigger::Inferred,
            begin: at,
            silent_since,
            end: at,
            frames: (frame, frame),
            retransmitted: 0,
            spurious: 0,
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
