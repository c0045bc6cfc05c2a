//! The events at the sender in order, with the data in flight: input for matching against known
//! senders.

use units::{Duration, Instant, Offset};

/// Kind of a sender event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SenderEventKind {
    /// The first data are sent.
    FirstData,
    /// An acknowledgment.
    Acked,
    /// An acknowledgment that ended the recovery or timeout with this index in
    /// [`crate::FlowAnalysis::episodes`].
    Recovered(u32),
    /// Loss recovery began: the episode with this index.
    Loss(u32),
    /// An ECN echo, the first since all data in flight at the last one were acknowledged.
    Marked,
    /// The retransmission timer expired, in the episode with this index.
    Timeout(u32),
    /// New data after an idle time; the time since the last transmission.
    Rest(Duration),
}

/// One event at the sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SenderEvent {
    /// Time.
    pub at: Instant,
    /// Kind of the event.
    pub what: SenderEventKind,
    /// All data before this offset were acknowledged (`snd_una`); the first byte has offset 1.
    pub una: Offset,
    /// The first byte not yet sent (`snd_nxt`).
    pub nxt: Offset,
    /// Bytes cumulatively acknowledged with it.
    pub acked: u64,
    /// Bytes acknowledged or reported by SACK for the first time.
    pub delivered: u64,
    /// Reordering extent in bytes: the largest distance below the highest delivered byte of data
    /// that were sent once.
    pub late: u64,
    /// RTT sample; 0 if none.
    pub rtt: Duration,
    /// Advertised window, in bytes.
    pub window: u64,
    /// Largest flight from then until the next event, in bytes.
    pub flight: u64,
    /// Bytes retransmitted from then until the next event.
    pub retransmitted: u64,
}

/// The first events of a sender, up to `capacity`.
#[derive(Debug, Clone, Default)]
pub(crate) struct SenderEventLog {
    pub(crate) events: Vec<SenderEvent>,
    most: usize,
}

impl SenderEventLog {
    pub(crate) fn new(most: usize) -> Self {
        Self { events: Vec::new(), most }
    }

    pub(crate) fn push(&mut self, turn: SenderEvent) {
        if self.events.len() < self.most {
            self.events.push(turn);
        } else {
            // Later transmissions must not count for the last recorded event.
            self.most = 0;
        }
    }

    /// Updates the flight of the last event after a transmission.
    pub(crate) fn sent(&mut self, flight: u64) {
        if self.most > 0
            && let Some(last) = self.events.last_mut()
        {
            last.flight = last.flight.max(flight);
        }
    }

    /// Counts a retransmission after the last event.
    pub(crate) fn retransmitted(&mut self, bytes: u64) {
        if self.most > 0
            && let Some(last) = self.events.last_mut()
        {
            last.retransmitted += bytes;
        }
    }
}
