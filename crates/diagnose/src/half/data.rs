//! Data pass the capture point.

use packet::Flags;

use super::{Half, Heard};
use crate::Packet;
use crate::outstanding::Sent;
use crate::place::CapturePoint;
use crate::rounds::{Before, Spent};
use crate::turns::What;

/// ECN field of a packet that a queue marked (RFC 3168 section 5).
const CE: u8 = 3;

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

    /// `bytes` came for the first time past a capture at the receiver.
    pub(super) fn passed(&mut self, at: u64, bytes: u64) {
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
