//! Data pass the capture point.

use packet::Flags;

use super::{Half, Heard};
use crate::Packet;
use crate::episodes::{Episode, KEPT, Trigger};
use crate::outstanding::Sent;
use crate::place::CapturePoint;
use crate::rounds::{Before, Spent};
use crate::turns::What;

/// No timer runs out sooner, in ns (Linux: 200 ms, FreeBSD: 230 ms, RFC 6298: 1 s), measured a little
/// short.
const SHORTEST_TIMEOUT: u64 = 190_000_000;

/// ECN field of a packet that a queue marked (RFC 3168 section 5).
const CE: u8 = 3;

/// What a stretch of data below `nxt` is.
enum Again {
    /// It came late, overtaken by others.
    Late(u64),
    /// It was sent again; were earlier copies seen to arrive?
    Resent { spurious: bool },
}

impl Half {
    /// Data (or a probe without any) pass.
    pub(crate) fn data(&mut self, packet: &Packet) {
        let segment = &packet.segment;
        let at = packet.at.as_nanos();
        if segment.payload == 0 {
            return self.without_data(packet);
        }
        self.release(at, segment.timestamps.map(|stamps| stamps.ecr));
        let at = at.max(self.since);
        self.last_frame = packet.frame;
        if let Some(stamps) = segment.timestamps {
            let whole = self.begin.point == CapturePoint::Receiver;
            let quiet = at.saturating_sub(self.last_sent) > self.rtt.min.unwrap_or(0) / 4;
            if self.rtt.echo(at, stamps.ecr, whole, quiet)
                && whole
                && let Some(latest) = self.rtt.latest
            {
                self.rounds.sample(latest);
            }
        }
        let len = u64::from(segment.payload);
        let start = self.place(segment.seq.0, self.nxt);
        let end = start + len;
        if self.first_data.is_none() {
            self.first_data = Some((at, packet.frame));
            if self.begin.isn.is_none() {
                (self.una, self.nxt, self.fack, self.mark) = (start, start, start, start);
                self.start = start;
            }
            self.turn(at, What::Begun, self.una, Heard::default());
        }
        if len == 1 && start + 1 == self.nxt && self.una == self.nxt {
            return self.probe();
        }
        if len == 1 && self.window_closed && start >= self.edge {
            self.counts.window_probes += 1;
        }
        self.note_size(segment.payload);
        let stamp = segment.timestamps.map_or(0, |stamps| stamps.val);
        self.marked += u64::from(segment.ecn == CE);
        if segment.flags.has(Flags::CWR) {
            self.reduced(at, packet.frame);
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
        self.last_push = segment.flags.has(Flags::PSH) || segment.flags.has(Flags::FIN);
        self.last_short = len % self.mss != 0;
        self.last_sent = at;
        self.blocked = self.edge.saturating_sub(self.nxt) < self.mss;
        self.emptied = None;
        let flight = self.flight();
        self.rounds.now.flight = self.rounds.now.flight.max(flight);
        self.turns.sent(flight);
    }

    /// Nothing of the stream: an end of it, or a probe.
    fn without_data(&mut self, packet: &Packet) {
        let segment = &packet.segment;
        let start = self.place(segment.seq.0, self.nxt);
        if segment.flags.has(Flags::FIN) {
            self.fin = Some(start);
        } else if segment.flags == Flags::ACK && start + 1 == self.nxt && self.una == self.nxt {
            self.probe();
        }
    }

    /// One byte below what is expected asks for an ACK (RFC 9293 sections 3.8.4 and 3.8.6.1).
    fn probe(&mut self) {
        if self.window_closed {
            self.counts.window_probes += 1;
        } else {
            self.counts.keepalives += 1;
        }
    }

    fn note_size(&mut self, payload: u32) {
        if self.begin.mss.is_none() && payload > self.largest && payload <= 9_000 {
            // Without the opening, the largest packet is the best guess; a capture above TSO
            // shows longer ones, so those beyond a common frame do not count if any fits.
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

    /// Bytes that were never seen before, above all others.
    fn new_data(&mut self, (start, end): (u64, u64), at: u64, stamp: u32, frame: u64) {
        self.account_new(at, stamp, frame);
        self.last_stamp = stamp;
        if self.round_over {
            self.round_over = false;
            self.next_round(at, frame, Before::Round);
        }
        self.begun = true;
        let sent = Sent { start, end, first_at: at, last_at: at, copies: 1, sacked: false, stamp };
        if start > self.nxt {
            // What lies between was not seen: lost or late before this point, or missed by the
            // capture.
            self.out.push(Sent { start: self.nxt, end: start, copies: 0, ..sent });
        }
        self.out.push(sent);
        // What lies between was sent as well, or is to come behind.
        self.rounds.now.sent += end - self.nxt;
        self.nxt = end;
        self.counts.new += self.packets(end - start);
        if self.in_episode
            && let Some(episode) = self.episodes.last_mut()
        {
            episode.sent_above += end - start;
        }
        if self.begin.point == CapturePoint::Receiver {
            self.passed(at, end - start);
        }
    }

    pub(super) fn next_round(&mut self, at: u64, frame: u64, before: Before) {
        self.rounds.next(at, frame, before);
        self.mark = self.nxt;
    }

    /// What was the time spent on that ends with new data?
    fn account_new(&mut self, at: u64, stamp: u32, frame: u64) {
        let reaction = self.reaction();
        if !self.begun {
            if let Some(open) = self.begin.open {
                self.spend(Spent::Opening, open.min(at));
                let what =
                    if at - self.since > reaction { Spent::Application } else { Spent::Opening };
                self.spend(what, at);
            } else {
                self.spend(Spent::Idle, at);
            }
            self.rounds.now.frame = frame;
            return;
        }
        if self.in_timeout {
            return self.spend(Spent::Timeout, at);
        }
        if self.in_episode {
            return self.spend(Spent::Recovery, at);
        }
        if let Some((ns, first)) = self.suspect.take() {
            self.judge_suspect(ns, first, at);
        }
        // A request of the peer is no ACK that lets go.
        let request = !self.last_ack_pure && self.last_push;
        let since_ack = at.saturating_sub(self.last_ack);
        let triggered = since_ack <= reaction && !request;
        let wait = at.saturating_sub(self.since);
        if let Some(emptied) = self.emptied
            && !(triggered && at - emptied <= reaction)
        {
            return self.account_pause(emptied, at, stamp, frame);
        }
        if self.blocked {
            return self.spend(self.blocker(), at);
        }
        if self.overdue(at) {
            // New data as a probe (RFC 8985 section 7.3): it waited for ACKs, and they are late.
            self.in_timeout = true;
            return self.spend(Spent::Timeout, at);
        }
        let drained = self.last_push || self.last_short;
        if !triggered && drained && wait > reaction {
            self.pause(wait, frame);
            return self.spend(Spent::Application, at);
        }
        if wait > reaction {
            self.rounds.now.waits += 1;
            self.rounds.now.waits_after_push += u32::from(drained);
        }
        self.spend(Spent::Window, at);
    }

    /// Has the oldest of what is under way been without an ACK for longer than it ever takes?
    fn overdue(&self, at: u64) -> bool {
        let limit = self.smoothed() * 3 / 2 + self.reaction();
        self.out
            .first()
            .is_some_and(|sent| at.saturating_sub(sent.last_at.max(self.last_ack)) > limit)
    }

    /// Nothing was under way since `emptied`, and then the sender sends unasked.
    fn account_pause(&mut self, emptied: u64, at: u64, stamp: u32, frame: u64) {
        let drained = self.last_push || self.last_short;
        let behind_loss = self.begin.point == CapturePoint::Receiver;
        if behind_loss && at - emptied > self.smoothed().max(self.reaction()) {
            if self.held(at, stamp) {
                self.held_at = Some(at);
                return self.spend(Spent::Timeout, at);
            }
            if !drained {
                // The sender had more to send (no PSH), the way was free, and nothing came: what
                // it sent was lost before this point.
                self.infer(at, self.since, frame, true);
                return self.spend(Spent::Timeout, at);
            }
        }
        if at - emptied > self.timeout() {
            // The last flight was on its way, then the connection rested.
            self.spend(Spent::Window, emptied);
            self.spend(Spent::Idle, at);
            self.round_over = false;
            self.next_round(at, frame, Before::Idle);
            self.turn(at, What::Rest(at - self.last_sent.min(at)), self.una, Heard::default());
            self.suspect = behind_loss.then_some((at - emptied, at));
        } else {
            self.pause(at - emptied, frame);
            self.spend(Spent::Application, at);
        }
    }

    fn pause(&mut self, ns: u64, frame: u64) {
        self.pauses += 1;
        if ns > self.longest_pause.0 {
            self.longest_pause = (ns, frame);
        }
    }

    pub(super) fn blocker(&self) -> Spent {
        // The window is the buffer less what waits in it to be read (RFC 9293 section 3.8.6):
        // well below what was offered before, it is the reader who is late.
        if self.window < self.window_max / 4 * 3 { Spent::Reader } else { Spent::ReceiveWindow }
    }

    /// Bytes below `nxt`: again, or late.
    fn old_data(&mut self, (start, end): (u64, u64), at: u64, stamp: u32, frame: u64) {
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

    fn begin_episode(&mut self, trigger: Trigger, (_, end): (u64, u64), at: u64, frame: u64) {
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
    fn reduced(&mut self, at: u64, frame: u64) {
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
    fn held(&self, at: u64, stamp: u32) -> bool {
        let ticks = u64::from(stamp.wrapping_sub(self.last_stamp));
        let pause = at.saturating_sub(self.last_sent) / 1_000_000;
        stamp != 0 && self.last_stamp != 0 && ticks < 1 << 31 && pause >= 50 && ticks < pause / 2
    }

    /// After a long rest came one full segment alone, and the next a round trip later: that is no
    /// application that writes again, that is a retransmission timer (RFC 5681 section 3.1: a
    /// window of one segment), whose earlier copies were lost before this point.
    fn judge_suspect(&mut self, rest: u64, first: u64, at: u64) {
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
    fn infer(&mut self, at: u64, silent_since: u64, frame: u64, tail: bool) {
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

    /// `bytes` came for the first time past a capture at the receiver.
    fn passed(&mut self, at: u64, bytes: u64) {
        self.delivered += bytes;
        let rtt = self.rtt.min.unwrap_or(0);
        self.dispersion.delivered(at, bytes, self.delivered, self.mss, rtt);
        self.rounds.now.delivered += bytes;
        self.last_delivery = at;
    }

    /// Bytes of the stream that were seen or acknowledged.
    pub(crate) fn bytes(&self) -> u64 {
        if self.first_data.is_some() { self.nxt - self.start } else { 0 }
    }
}
