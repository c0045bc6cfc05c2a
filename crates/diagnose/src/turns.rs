//! What the sender heard, in order, with what it had under way: for who asks which sender would
//! have answered so.

/// Something the sender heard of, or did by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// Its first data leave.
    Begun,
    /// An acknowledgment.
    Acked,
    /// The same; it ended the recovery or timeout of that number in [`crate::Flow::episodes`].
    Recovered(u32),
    /// It began to repair losses: the episode of that number.
    Loss(u32),
    /// It heard of a mark (ECN), the first since what was under way at the last one has arrived.
    Marked,
    /// Its retransmission timer expired, in the episode of that number.
    Timeout(u32),
    /// It sends again after a rest with nothing under way, so many ns after it last did.
    Rest(u64),
}

/// One turn of a sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// When, in ns.
    pub at: u64,
    /// What happened.
    pub what: What,
    /// Everything before this place was acknowledged then; the first byte has place 1.
    pub una: u64,
    /// The first byte not yet sent.
    pub nxt: u64,
    /// Bytes that were acknowledged with it.
    pub acked: u64,
    /// Bytes that it acknowledged or reported for the first time.
    pub delivered: u64,
    /// How far behind the highest that had arrived the furthest of those were that had been sent
    /// once, in bytes: reordering.
    pub late: u64,
    /// The round trip it told, in ns; 0 if none.
    pub rtt: u64,
    /// Window the receiver offers, in bytes.
    pub window: u64,
    /// Most bytes under way from then until the next turn.
    pub flight: u64,
}

/// The turns of a sender, the first of them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Turns {
    pub(crate) kept: Vec<Turn>,
    most: usize,
}

impl Turns {
    pub(crate) fn new(most: usize) -> Self {
        Self { kept: Vec::new(), most }
    }

    pub(crate) fn push(&mut self, turn: Turn) {
        if self.kept.len() < self.most {
            self.kept.push(turn);
        } else {
            // What comes later must not count as the last turn's.
            self.most = 0;
        }
    }

    /// So many bytes are under way after a transmission.
    pub(crate) fn sent(&mut self, flight: u64) {
        if self.most > 0
            && let Some(last) = self.kept.last_mut()
        {
            last.flight = last.flight.max(flight);
        }
    }
}
