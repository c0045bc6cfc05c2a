//! The connection round trip by round trip, and where each moment of them went.
//!
//! A round begins with a transmission and lasts until its first byte is acknowledged and the
//! sender sends again (the rounds of slow start in RFC 9406 section 4.2). Rounds tile the time
//! without gap; what a moment was spent on is decided by the transmission (or ACK) that ends it.

/// Rounds kept; when there are more, neighbours are joined and rounds last twice as long.
const KEPT: usize = 4_096;

/// What a moment was spent on, as far as it can be told at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spent {
    /// The connection was being opened.
    Opening = 0,
    /// The sender had room and nothing to send.
    Application = 1,
    /// Nothing was under way for longer than a timeout, or everything was done.
    Idle = 2,
    /// The sender waited for ACKs.
    Window = 3,
    /// The receiver's window, as large as it ever was, was full.
    ReceiveWindow = 4,
    /// The receiver's window was full and smaller than before: data waited to be read.
    Reader = 5,
    /// Losses were repaired.
    Recovery = 6,
    /// The sender waited for a timer.
    Timeout = 7,
}

pub(crate) const CAUSES: usize = 8;

/// What was before a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Before {
    /// The round before.
    #[default]
    Round,
    /// The opening of the connection, or of the capture.
    Opening,
    /// Nothing was under way for longer than a timeout.
    Idle,
    /// A timeout.
    Timeout,
}

/// One round trip.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Round {
    /// Its begin, in ns.
    pub start: u64,
    /// Frame of its first transmission.
    pub frame: u64,
    pub(crate) spent: [u64; CAUSES],
    /// Bytes delivered for the first time in it.
    pub delivered: u64,
    /// New bytes sent in it.
    pub sent: u64,
    /// Bytes sent again in it.
    pub resent: u64,
    /// Bytes that were delivered behind later ones, without having been sent again.
    pub late: u64,
    /// ACKs that acknowledged something new.
    pub acks: u32,
    /// Waits for an ACK, and those of them that came behind a segment with PSH or a short one.
    pub waits: u32,
    /// See `waits`.
    pub waits_after_push: u32,
    /// Most bytes under way.
    pub flight: u64,
    /// Shortest round-trip sample in it, in ns; `u64::MAX` without one.
    pub min_rtt: u64,
    /// Latest and longest sample, in ns; 0 without one.
    pub rtt: u64,
    /// See `rtt`.
    pub max_rtt: u64,
    /// What was before it.
    pub before: Before,
}

impl Round {
    pub(crate) const fn new(start: u64, frame: u64, before: Before) -> Self {
        Self {
            start,
            frame,
            spent: [0; CAUSES],
            delivered: 0,
            sent: 0,
            resent: 0,
            late: 0,
            acks: 0,
            waits: 0,
            waits_after_push: 0,
            flight: 0,
            min_rtt: u64::MAX,
            rtt: 0,
            max_rtt: 0,
            before,
        }
    }

    /// How long it was, in ns.
    pub fn length(&self) -> u64 {
        self.spent.iter().sum()
    }

    /// Did the congestion window alone hold the sender for most of it, nothing being repaired?
    pub fn held_by_window(&self) -> bool {
        self.resent == 0 && self.sent > 0 && self.of(Spent::Window) * 4 >= self.length() * 3
    }

    /// Did the congestion window, or the repair of losses, hold the sender for most of it?
    pub fn held_or_repairing(&self) -> bool {
        let held = self.of(Spent::Window) + self.of(Spent::Recovery);
        self.sent > 0 && held * 4 >= self.length() * 3
    }

    /// Did most bursts end with PSH, as they do where a send buffer has no more?
    pub fn drained(&self) -> bool {
        self.waits > 0 && self.waits_after_push * 4 >= self.waits * 3
    }

    pub(crate) fn of(&self, what: Spent) -> u64 {
        self.spent[what as usize]
    }

    fn join(&mut self, next: &Self) {
        for (mine, theirs) in self.spent.iter_mut().zip(next.spent) {
            *mine += theirs;
        }
        self.delivered += next.delivered;
        self.sent += next.sent;
        self.resent += next.resent;
        self.late += next.late;
        self.acks += next.acks;
        self.waits += next.waits;
        self.waits_after_push += next.waits_after_push;
        self.flight = self.flight.max(next.flight);
        self.min_rtt = self.min_rtt.min(next.min_rtt);
        self.max_rtt = self.max_rtt.max(next.max_rtt);
        self.rtt = if next.rtt > 0 { next.rtt } else { self.rtt };
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Rounds {
    pub(crate) done: Vec<Round>,
    pub(crate) now: Round,
    /// Round trips that one entry stands for.
    pub(crate) each: u32,
    pending: u32,
}

impl Rounds {
    pub(crate) fn new(start: u64) -> Self {
        let now = Round::new(start, 0, Before::Opening);
        Self { done: Vec::new(), now, each: 1, pending: 0 }
    }

    /// The round is over, the next begins.
    pub(crate) fn next(&mut self, start: u64, frame: u64, before: Before) {
        self.pending += 1;
        if before == Before::Round && self.pending < self.each {
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

    pub(crate) fn spend(&mut self, what: Spent, ns: u64) {
        self.now.spent[what as usize] += ns;
    }

    pub(crate) fn sample(&mut self, rtt: u64) {
        self.now.min_rtt = self.now.min_rtt.min(rtt);
        self.now.max_rtt = self.now.max_rtt.max(rtt);
        self.now.rtt = rtt;
    }

    pub(crate) fn finish(mut self) -> Vec<Round> {
        self.done.reserve_exact(1);
        self.done.push(self.now);
        self.done.shrink_to_fit();
        self.done
    }
}
