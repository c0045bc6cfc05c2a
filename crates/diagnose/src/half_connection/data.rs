//! Data segments at the capture point.

use packet::{Flags, Segment};
use units::{Duration, Instant, Offset};

use super::activity::StreamProgress;
use super::idle::IdleTime;
use super::retransmissions::MIN_RTO;
use super::window::WindowClosure;
use super::{AckSummary, FrameTime, HalfConnection, RTO_SLOP};
use crate::CapturedPacket;
use crate::outstanding::SentRange;
use crate::rounds::{RoundOrigin, TimeUse};
use crate::sender_events::SenderEventKind;

/// ECN codepoint CE (RFC 3168 section 5).
const CE: u8 = 3;

/// Resolution of timestamps.
const TICK: Duration = Duration::from_millis(1);

/// Shortest and longest time that a kernel and its NIC take to answer an ACK.
const REACTION: (Duration, Duration) = (Duration::from_micros(200), Duration::from_millis(2));

/// A data segment at the capture point.
#[derive(Debug, Clone, Copy)]
pub(super) struct CapturedData {
    /// When it was captured, but not before what is accounted for.
    pub(super) now: FrameTime,
    pub(super) start: Offset,
    pub(super) end: Offset,
    /// TSval; 0 without timestamps.
    pub(super) stamp: u32,
}

impl CapturedData {
    pub(super) fn len(&self) -> u64 {
        self.end - self.start
    }

    pub(super) const fn range(&self) -> (Offset, Offset) {
        (self.start, self.end)
    }
}

impl HalfConnection {
    /// Processes a segment of this direction: data, a FIN or a probe.
    pub(crate) fn data(&mut self, packet: &CapturedPacket) {
        let segment = &packet.segment;
        self.missing.next(packet.id);
        if segment.payload == 0 {
            return self.on_empty_segment(packet);
        }
        self.release(packet.at, segment.timestamps.map(|stamps| stamps.ecr));
        let at = packet.at.max(self.rounds.since());
        self.last.frame = packet.frame;
        if let Some(stamps) = segment.timestamps {
            let [_, way_there] = &mut self.ways;
            let waited = way_there.push(stamps.val, packet.at);
            self.rounds.log.wait_on_way_there(waited.unwrap_or_default());
            self.on_echo(at, stamps.ecr, waited);
        }
        let now = FrameTime { at, frame: packet.frame };
        let (start, end) = self.locate(segment, now);
        let is_keepalive = segment.payload == 1 && start + 1 == self.board.nxt;
        if is_keepalive && self.board.is_all_acked() {
            return self.probe();
        }
        if self.window.is_probe((start, end), &self.board) {
            self.counters.sent.window_probes += 1;
            return;
        }
        // The receiver took the byte of a probe without an ACK that was captured.
        self.accept_probe(start);
        self.on_size(segment.payload);
        self.ecn.marked += u64::from(segment.ecn == CE);
        if segment.flags.has(Flags::CWR) {
            self.on_cwr(now);
        }
        self.bytes.captured += self.numbers.prepend(start, end);
        let stamp = segment.timestamps.map_or(0, |stamps| stamps.val);
        let (nxt, data) = (self.board.nxt, CapturedData { now, start, end, stamp });
        if start < nxt {
            self.on_old_data(CapturedData { end: end.min(nxt), ..data });
        }
        let nxt = self.board.nxt;
        let is_repeated = end <= nxt;
        self.segment.on_data(start, segment.payload);
        if end > nxt {
            self.on_new_data(CapturedData { start: start.max(nxt), ..data });
        }
        self.last.repeated = is_repeated;
        self.after_data(segment, at, end);
    }

    /// Offsets of a data segment; the first one, and one that cannot belong to the stream as it was,
    /// decide where the stream begins.
    fn locate(&mut self, segment: &Segment, now: FrameTime) -> (Offset, Offset) {
        let mut start = self.numbers.offset(segment.seq, self.board.nxt);
        let is_first = self.progress.first_data().is_none();
        if !is_first && self.is_jump(start) {
            self.resynchronise(segment.seq);
            start = self.board.nxt;
        }
        if is_first {
            self.progress = StreamProgress::Seen(now);
            if self.numbers.begin_at(start) {
                self.board.begin_at(start);
                self.rounds.begin_at(start);
            }
            let una = self.board.una;
            self.record(now.at, SenderEventKind::FirstData, una, AckSummary::default());
        }
        (start, start + u64::from(segment.payload))
    }

    /// Takes the round trip to the sender from the echo of a timestamp; the data themselves waited so long on their
    /// way, if that is known.
    fn on_echo(&mut self, at: Instant, echo: u32, waited: Option<Duration>) {
        let whole = self.is_at_receiver();
        // With more than a segment or two in flight, and more to follow, the path spaces the packets, not the
        // application: on a slow link they are further apart than a round trip.
        let is_alone = self.board.flight() < 2 * self.segment.mss || self.last.has_drained();
        let is_late = |least: Duration| at.since(self.last.sent) > least / 4;
        // Without any round trip nothing shows what is late, and the shortest decides later.
        let quiet = is_alone && self.rtt.least().is_some_and(is_late);
        if self.rtt.echo(at, echo, whole, quiet)
            && whole
            && let Some(latest) = self.rtt.latest
        {
            let least = self.rtt.min.unwrap_or_default();
            let elsewhere = waited.map(|waited| latest.saturating_sub(least + waited.max(TICK)));
            self.rounds.log.wait_on_way_back(elsewhere.unwrap_or_default());
            self.rounds.log.sample(latest);
        }
    }

    /// Records the state after a segment with data.
    fn after_data(&mut self, segment: &Segment, at: Instant, end: Offset) {
        let is_fin = segment.flags.has(Flags::FIN);
        if is_fin {
            self.numbers.fin = Some(end);
        }
        self.last.push = segment.flags.has(Flags::PSH) || is_fin;
        self.last.short = !u64::from(segment.payload).is_multiple_of(self.segment.mss);
        self.last.on_data(at);
        self.window.on_sent(self.board.nxt, self.segment.mss);
        self.idle.on_sent();
        let flight = self.board.flight();
        let round = &mut self.rounds.log.now;
        round.flight = round.flight.max(flight);
        self.events.sent(flight);
    }

    /// Processes a segment without payload: a FIN or a probe.
    fn on_empty_segment(&mut self, packet: &CapturedPacket) {
        let segment = &packet.segment;
        let nxt = self.board.nxt;
        let start = self.numbers.offset(segment.seq, nxt);
        if segment.flags.has(Flags::FIN) {
            self.numbers.fin = Some(start);
        } else if start > nxt && segment.flags.has(Flags::ACK) && !self.is_jump(start) {
            self.lost_flight.claim(start, packet.at);
        } else if segment.flags == Flags::ACK && start + 1 == nxt && self.board.is_all_acked() {
            self.probe();
        }
    }

    /// Counts a segment of at most one byte at `nxt - 1`: a window probe or a keepalive (RFC 9293
    /// sections 3.8.4 and 3.8.6.1).
    fn probe(&mut self) {
        if self.window.is_closed() {
            self.counters.sent.window_probes += 1;
            self.window.count_probe();
        } else {
            self.counters.sent.keepalives += 1;
        }
    }

    fn on_size(&mut self, payload: u32) {
        self.segment.update(payload);
        let payload = u64::from(payload);
        if payload > self.segment.mss {
            let sent = &mut self.counters.sent;
            sent.bursts += 1;
            sent.longest_burst = sent.longest_burst.max(payload);
        }
    }

    /// Processes data above the highest captured byte.
    fn on_new_data(&mut self, data: CapturedData) {
        let CapturedData { now, start, end, stamp } = data;
        self.missing.on_new_data(start > self.board.nxt);
        self.account_until_new_data(now, (start, end), stamp);
        self.lost_flight.on_new_data(self.board.nxt, (start, end));
        self.stamps.push(stamp, now.at);
        self.rounds.begin_if_acked(now, self.board.nxt);
        self.progress.begin();
        let (first_at, last_at) = (now.at, now.at);
        let grown = self.board.push(SentRange {
            start,
            end,
            first_at,
            last_at,
            copies: 1,
            sacked: false,
            stamp,
        });
        // The gap counts as sent: it was lost, or it arrives later.
        self.rounds.log.now.sent += grown;
        self.bytes.captured += data.len();
        self.counters.sent.new += self.segment.packets(data.len());
        self.recovery.on_new_data(data.len());
        if self.is_at_receiver() {
            self.on_delivered(now.at, data.len());
        }
    }

    /// Time within which a host answers an ACK: an eighth of the round-trip time, clamped to the
    /// time a kernel and its NIC take.
    pub(super) fn reaction(&self) -> Duration {
        (self.rtt.min.unwrap_or_default() / 8).clamp(REACTION.0, REACTION.1)
    }

    /// Lower bound of a retransmission timeout.
    pub(super) fn timeout(&self) -> Duration {
        self.rtt.usual() + RTO_SLOP
    }

    /// Accounts for the time that ends with new data.
    fn account_until_new_data(&mut self, now: FrameTime, range: (Offset, Offset), stamp: u32) {
        let at = now.at;
        let reaction = self.reaction();
        let repeated_by_timer =
            self.lost_flight.repeated_by_timer(range.1, at).filter(|_| range.0 <= self.board.nxt);
        if !self.progress.has_begun() {
            return self.account_until_first_data(now, reaction, repeated_by_timer);
        }
        if let Some(loss) = self.recovery.time_use() {
            return self.spend(loss, at);
        }
        if let Some(since) = repeated_by_timer.filter(|_| self.last.silence_of_data(at) >= MIN_RTO)
        {
            self.idle.suspected_timeout = None;
            return self.spend_unseen_timeout(now, since);
        }
        if let Some(idle) = self.idle.suspected_timeout.take() {
            self.check_suspected_timeout(idle, at, stamp);
        }
        let triggered = self.last.is_triggered(at, reaction);
        self.idle.stalls.new_data(triggered, at, now.frame);
        self.spend_closed_window(at);
        let wait = at.since(self.rounds.since());
        if let Some(all_acked_at) = self.idle.all_acked_at
            && !(triggered && at.since(all_acked_at) <= reaction)
        {
            return self.account_pause(all_acked_at, now, stamp);
        }
        if self.window.is_limiting() {
            return self.spend(self.window.limit_cause(), at);
        }
        let drained = self.last.has_drained();
        if !drained && self.is_ack_overdue(at) {
            // New data as a tail loss probe (RFC 8985 section 7.3): the sender had them, and waited
            // for ACKs that are late. Data that an application writes later are no probe.
            self.recovery.expire();
            return self.spend(TimeUse::Timeout, at);
        }
        if !triggered && drained && wait > reaction {
            self.idle.pauses.add(wait, now.frame);
            return self.spend(TimeUse::Application, at);
        }
        if wait > reaction {
            let round = &mut self.rounds.log.now;
            round.waits += 1;
            round.waits_after_push += u32::from(drained);
        }
        self.spend(TimeUse::Window, at);
    }

    /// Accounts for the time that ends with the first data.
    fn account_until_first_data(
        &mut self,
        now: FrameTime,
        reaction: Duration,
        repeated_by_timer: Option<Instant>,
    ) {
        let at = now.at;
        let last_use = match self.begin.established_at {
            Some(open) => {
                self.spend(TimeUse::Opening, open.min(at));
                // Before the request the sender had nothing to do.
                if let Some(asked) = self.begin.asked_at.filter(|&asked| asked <= at) {
                    self.spend(TimeUse::Idle, asked);
                }
                if let Some(since) = repeated_by_timer {
                    return self.spend_unseen_timeout(now, since);
                }
                let length = at.since(self.rounds.since());
                // Its first flight may have been lost.
                let may_be = self.is_behind_losses() && length >= MIN_RTO;
                let idle = IdleTime {
                    length,
                    end: at,
                    is_unfinished: false,
                    is_asked: true,
                    counted_as: TimeUse::Application,
                };
                self.idle.suspected_timeout = may_be.then_some(idle);
                let is_late = at.since(self.rounds.since()) > reaction;
                if is_late { TimeUse::Application } else { TimeUse::Opening }
            }
            None => TimeUse::Idle,
        };
        self.spend(last_use, at);
        self.rounds.log.now.frame = now.frame;
    }

    /// Accounts for a silence that ends with the data of an expired timer: the data before were lost before the capture
    /// point, which the sender sent from `since` on.
    fn spend_unseen_timeout(&mut self, now: FrameTime, since: Instant) {
        self.spend(TimeUse::Timeout, now.at);
        if self.progress.has_begun() {
            self.rounds.begin(now, RoundOrigin::Timeout, self.board.nxt);
        } else {
            self.rounds.log.now.before = RoundOrigin::Timeout;
            self.rounds.log.now.frame = now.frame;
        }
        self.infer_episode(now, since, false);
        self.lost_flight.on_expiry(2, now.frame);
    }

    /// Whether the ACK of the oldest outstanding data is later than any so far.
    fn is_ack_overdue(&self, at: Instant) -> bool {
        let limit = self.rtt.usual() * 3 / 2 + self.reaction();
        let oldest = self.board.first_outstanding();
        oldest.is_some_and(|sent| at.since(sent.last_at.max(self.last.ack)) > limit)
    }

    /// Accounts for a pause without data in flight since `all_acked_at`, after which the sender
    /// sends without an ACK to trigger it.
    fn account_pause(&mut self, all_acked_at: Instant, now: FrameTime, stamp: u32) {
        let at = now.at;
        let drained = self.last.has_drained();
        if self.is_behind_losses() && self.was_delayed(all_acked_at, now, stamp) {
            return self.spend(TimeUse::Timeout, at);
        }
        // The sender had nothing to do before the receiver's request.
        let asked_at = self.idle.request_at.filter(|&asked| asked > all_acked_at && asked <= at);
        let all_acked_at = match asked_at {
            Some(asked) if at.since(all_acked_at) <= self.timeout() => {
                // Once an answer is complete, its ACK may be delayed: nothing waits for it.
                if !drained {
                    self.spend(TimeUse::Window, all_acked_at);
                }
                self.spend(TimeUse::Idle, asked);
                asked
            }
            _ => all_acked_at,
        };
        let pause = at.since(all_acked_at);
        if pause > self.timeout() {
            // First the last flight was outstanding, then the connection was idle.
            self.spend(TimeUse::Window, all_acked_at);
            self.spend(TimeUse::Idle, at);
            self.rounds.begin(now, RoundOrigin::Idle, self.board.nxt);
            let rest = SenderEventKind::Rest(at.since(self.last.sent));
            self.record(at, rest, self.board.una, AckSummary::default());
            // After a request it was the sender that waited, unless it sends like one whose timer has expired.
            let is_asked = asked_at.is_some() || self.idle.has_request(at);
            let is_unfinished = !is_asked && self.is_loss_before(at);
            let counted_as = TimeUse::Idle;
            let idle = IdleTime { length: pause, end: at, is_unfinished, is_asked, counted_as };
            self.idle.suspected_timeout = self.is_behind_losses().then_some(idle);
        } else {
            self.idle.pauses.add(pause, now.frame);
            self.spend(TimeUse::Application, at);
        }
    }

    /// Whether data after a pause were late for another reason than the application, as far as a capture
    /// at the receiver shows: the path had delayed them, or others before them were lost.
    fn was_delayed(&mut self, all_acked_at: Instant, now: FrameTime, stamp: u32) -> bool {
        let at = now.at;
        // Without any round trip nothing shows what is late.
        if self.rtt.least().is_none()
            || at.since(all_acked_at) <= self.rtt.usual().max(self.reaction())
        {
            return false;
        }
        if self.stamps.were_held(at, stamp) {
            self.idle.delay_spike_at = Some(at);
            return true;
        }
        // The sender had more to send (no PSH), or the next data leave a gap, and its counter
        // of packets shows that it sent some in the silence which never arrived.
        let is_unfinished = !self.last.has_drained() || self.missing.in_stream;
        let is_lost = is_unfinished && self.is_loss_before(at);
        if is_lost && self.last.is_spaced(at) && !self.missing.in_stream {
            // A packet takes the link longer than a round trip.
            return false;
        }
        let is_known = self.missing.in_stream && self.lost_flight.explains_gap();
        if is_lost && !is_known {
            // Two expiries of the timer or more take three timeouts, for each is twice as long as the one before: an
            // outage.
            let is_tail = at.since(all_acked_at) < self.timeout() * 2;
            let length = at.since(self.rounds.since());
            self.infer_episode(now, self.rounds.since(), is_tail);
            self.lost_flight.on_expiry(2, now.frame);
            // What follows shows whether that was the end of a flight, or all of it.
            let idle = IdleTime {
                length,
                end: at,
                is_unfinished: false,
                is_asked: false,
                counted_as: TimeUse::Timeout,
            };
            self.idle.suspected_timeout = is_tail.then_some(idle);
        }
        is_lost
    }

    /// Whether packets of the sender are missing in the silence before `at`: its IPv4 identification
    /// counts packets, and some were not captured; where it does not count, the last packet before the silence
    /// shows that more was to follow (no PSH). If the receiver has sent a request since, it was the sender that
    /// waited.
    fn is_loss_before(&self, at: Instant) -> bool {
        let is_unfinished =
            !self.missing.is_counted() && !self.last.has_drained() && !self.last.repeated;
        (self.missing.has_packets() || is_unfinished) && !self.idle.has_request(at)
    }

    /// Accounts for the time in which the window was closed, until now or until it opened. Without
    /// probes and without data that follow its opening, the sender had nothing to send.
    pub(super) fn spend_closed_window(&mut self, at: Instant) {
        let Some(closure) = self.window.end_closure(at) else { return };
        if self.waited_for_reader(closure, at) {
            self.spend(TimeUse::Reader, closure.until);
        }
    }

    /// Whether the sender had data to send while the window was closed.
    pub(super) fn waited_for_reader(&self, closure: WindowClosure, at: Instant) -> bool {
        let is_answer = at.since(closure.until) <= self.rtt.usual() + self.reaction();
        let has_data = closure.is_probed || is_answer && self.progress.has_begun();
        self.idle.all_acked_at.is_some() && has_data
    }
}
