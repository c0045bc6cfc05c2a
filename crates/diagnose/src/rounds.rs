//! The rounds of a connection, and the use of the time in them.
//!
//! A round begins with a transmission and lasts until its first byte is acknowledged and the sender
//! transmits (the rounds of slow start in RFC 9406 section 4.2). Rounds cover the time without
//! gaps; the transmission (or ACK) that ends an interval decides its use.

use units::{Duration, Instant};

/// Most entries; when there are more, neighbours are merged and each entry spans twice as many
/// rounds.
const KEPT: usize = 4_096;

/// Use of an interval, as far as the event that ends it decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimeUse {
    /// Handshake.
    Opening = 0,
    /// Both windows were open and the sender had nothing to send.
    Application = 1,
    /// No data in flight for longer than a timeout, or after the last data.
    Idle = 2,
    /// The sender waited for ACKs.
    Window = 3,
    /// The receive window was full, at its largest size.
    ReceiveWindow = 4,
    /// The receive window was full and smaller than before: unread data filled the buffer.
    Reader = 5,
    /// Loss recovery.
    Recovery = 6,
    /// The sender waited for a timer.
    Timeout = 7,
}

pub(crate) const TIME_USES: usize = 8;

/// What preceded a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RoundOrigin {
    /// The previous round.
    #[default]
    Round,
    /// The start of the connection, or of the capture.
    Opening,
    /// An idle time longer than a timeout.
    Idle,
    /// A retransmission timeout.
    Timeout,
}

/// One round (or several merged ones).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Round {
    /// Begin.
    pub start: Instant,
    /// Frame of its first transmission.
    pub frame: u64,
    pub(crate) time_by_use: [Duration; TIME_USES],
    /// Bytes delivered for the first time.
    pub delivered: u64,
    /// New bytes sent.
    pub sent: u64,
    /// Retransmitted bytes.
    pub retransmission: u64,
    /// Bytes delivered out of order without having been retransmitted.
    pub late: u64,
    /// ACKs that acknowledged or reported new data.
    pub acks: u32,
    /// Waits for an ACK, and those after a segment that has PSH or is short.
    pub waits: u32,
    /// See `waits`.
    pub waits_after_push: u32,
    /// Most bytes in flight.
    pub flight: u64,
    /// Shortest RTT sample, without its wait on the way back; [`Duration::MAX`] without one.
    pub min_rtt: Duration,
    /// Latest RTT sample, without its wait on the way back; 0 without one.
    pub rtt: Duration,
    /// Longest RTT sample; 0 without one.
    pub max_rtt: Duration,
    /// How long the ACKs of its last sample waited on their way back, as far as timestamps show it.
    pub wait_on_way_back: Duration,
    /// Longest wait of its data on their way to the capture point, as far as timestamps show it.
    pub(crate) wait_on_way_there: Duration,
    /// What preceded it.
    pub before: RoundOrigin,
}

impl Round {
    pub(crate) const fn new(start: Instant, frame: u64, before: RoundOrigin) -> Self {
        Self {
            start,
            frame,
            time_by_use: [Duration::ZERO; TIME_USES],
            delivered: 0,
            sent: 0,
            retransmission: 0,
            late: 0,
            acks: 0,
            waits: 0,
            waits_after_push: 0,
            flight: 0,
            min_rtt: Duration::MAX,
            rtt: Duration::ZERO,
            max_rtt: Duration::ZERO,
            wait_on_way_back: Duration::ZERO,
            wait_on_way_there: Duration::ZERO,
            before,
        }
    }

    /// Its length.
    pub fn length(&self) -> Duration {
        self.time_by_use.into_iter().sum()
    }

    /// Whether the congestion window alone limited the sender for most of the round, without
    /// retransmissions.
    pub fn held_by_window(&self) -> bool {
        self.retransmission == 0
            && self.sent > 0
            && self.of(TimeUse::Window) * 4 >= self.length() * 3
    }

    /// Whether the congestion window or loss recovery limited the sender for most of the round.
    pub fn is_cwnd_limited_or_recovering(&self) -> bool {
        let held = self.of(TimeUse::Window) + self.of(TimeUse::Recovery);
        self.sent > 0 && held * 4 >= self.length() * 3
    }

    /// Whether most bursts ended with PSH, as those that empty a send buffer do.
    pub fn drained(&self) -> bool {
        self.waits > 0 && self.waits_after_push * 4 >= self.waits * 3
    }

    pub(crate) fn of(&self, what: TimeUse) -> Duration {
        self.time_by_use[what as usize]
    }

    fn join(&mut self, next: &Self) {
        for (mine, theirs) in self.time_by_use.iter_mut().zip(next.time_by_use) {
            *mine += theirs;
        }
        self.delivered += next.delivered;
        self.sent += next.sent;
        self.retransmission += next.retransmission;
        self.late += next.late;
        self.acks += next.acks;
        self.waits += next.waits;
        self.waits_after_push += next.waits_after_push;
        self.flight = self.flight.max(next.flight);
        self.min_rtt = self.min_rtt.min(next.min_rtt);
        self.max_rtt = self.max_rtt.max(next.max_rtt);
        self.wait_on_way_back += next.wait_on_way_back;
        self.wait_on_way_there = self.wait_on_way_there.max(next.wait_on_way_there);
        self.rtt = if next.rtt.is_zero() { self.rtt } else { next.rtt };
    }
}

#[derive(Debug, Clone)]
pub(crate) struct RoundLog {
    pub(crate) done: Vec<Round>,
    pub(crate) now: Round,
    /// Time spent so far.
    pub(crate) spent: [Duration; TIME_USES],
    /// Rounds per entry.
    pub(crate) each: u32,
    pending: u32,
}

impl RoundLog {
    pub(crate) fn new(start: Instant) -> Self {
        let now = Round::new(start, 0, RoundOrigin::Opening);
        Self { done: Vec::new(), now, spent: [Duration::ZERO; TIME_USES], each: 1, pending: 0 }
    }

    /// Ends the round and begins the next.
    pub(crate) fn next(&mut self, start: Instant, frame: u64, before: RoundOrigin) {
        self.pending += 1;
        if before == RoundOrigin::Round && self.pending < self.each {
            return;
        }
        self.pending = 0;
        let done = core::mem::replace(&mut self.now, Round::new(start, frame, before));
        self.done.push(done);
        if self.done.len() == KEPT {
            let joined = self.done.chunks(2).map(|pair| {
                let mut one = pair[0];
                pair[1..].iter().for_each(|next| one.join(next));
                one
            });
            self.done = joined.collect();
            self.each *= 2;
        }
    }

    pub(crate) fn spend(&mut self, what: TimeUse, time: Duration) {
        self.now.time_by_use[what as usize] += time;
        self.spent[what as usize] += time;
    }

    /// Accounts for at most `time` of the last round, or of the first one, as `to` instead of `from`.
    pub(crate) fn move_before(&mut self, from: TimeUse, to: TimeUse, time: Duration) {
        let round = self.done.last_mut().unwrap_or(&mut self.now);
        let time = time.min(round.of(from));
        round.time_by_use[from as usize] -= time;
        round.time_by_use[to as usize] += time;
    }

    /// The next round trip waited so long on its way back.
    pub(crate) const fn wait_on_way_back(&mut self, waited: Duration) {
        self.now.wait_on_way_back = waited;
    }

    /// Data waited so long on their way to the capture point.
    pub(crate) fn wait_on_way_there(&mut self, waited: Duration) {
        self.now.wait_on_way_there = self.now.wait_on_way_there.max(waited);
    }

    /// Takes a round trip. The shortest is that of the queue before the data, without waits of the ACKs.
    pub(crate) fn sample(&mut self, rtt: Duration) {
        let there = rtt.saturating_sub(self.now.wait_on_way_back);
        self.now.min_rtt = self.now.min_rtt.min(there);
        self.now.max_rtt = self.now.max_rtt.max(rtt);
        self.now.rtt = there;
    }

    /// The log from the round that `since` is in.
    pub(crate) fn since(&self, since: Instant) -> Self {
        let later = self.done.partition_point(|round| round.start <= since);
        let first = if self.now.start <= since { self.done.len() } else { later.saturating_sub(1) };
        Self { done: self.done[first..].to_vec(), ..*self }
    }

    /// Begin of the entry `back` before the last one, or of the first.
    pub(crate) fn begin_of_last(&self, back: usize) -> Instant {
        match self.done.len().checked_sub(back.max(1)) {
            _ if back == 0 || self.done.is_empty() => self.now.start,
            index => self.done[index.unwrap_or(0)].start,
        }
    }

    pub(crate) fn finish(mut self) -> Vec<Round> {
        self.done.reserve_exact(1);
        self.done.push(self.now);
        self.done.shrink_to_fit();
        self.done
    }
}
