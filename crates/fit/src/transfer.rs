//! What a captured TCP transfer and a logged QUIC transfer have in common once they are fitted.

use packet::Dir;

use crate::{Basis, Conversation, LossPattern, PathFit, QuicFit, WordError};

/// What a recording leaves open about its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathDoubt {
    /// The bottleneck was never seen busy: its rate may be higher.
    Rate,
    /// The queue was never seen full: it may be as short as one or two bandwidth-delay products.
    Queue,
    /// Others share the queue: whose packets it drops is chance.
    Others,
    /// How a server works at many requests at once: one after the other, or together.
    Service,
}

/// A queue of a path that holds little, in bytes.
const LEAST_QUEUE: u64 = 30_000;

/// What was recorded of a transfer. Times are in ns.
#[derive(Debug, Clone, Copy)]
pub struct RecordedTransfer<'a> {
    /// Bytes delivered.
    pub bytes: u64,
    /// Time until the last of them was delivered.
    pub time: u64,
    /// Bytes delivered over time.
    pub delivered: &'a [(u64, u64)],
    /// Basis of the estimates.
    pub bases: &'a [Basis],
}

/// A fitted transfer. Times are in ns.
pub trait FittedTransfer: Send + Sync {
    /// What was recorded, and the basis of the estimates.
    fn recorded(&self) -> RecordedTransfer<'_>;
    /// Bytes delivered.
    fn bytes(&self) -> u64 {
        self.recorded().bytes
    }
    /// Time until the last of them was delivered, from its [`start`](Self::starts_with_data).
    fn time(&self) -> u64 {
        self.recorded().time
    }
    /// Bytes delivered over time.
    fn delivered(&self) -> &[(u64, u64)] {
        self.recorded().delivered
    }
    /// Congestion window over the bytes delivered; empty if unknown.
    fn windows(&self) -> &[(u64, u64)];
    /// Whether times count from the first packet with data; else from the begin of the connection.
    fn starts_with_data(&self) -> bool;
    /// How much earlier the recording has a delivery than the sender.
    fn ahead(&self) -> u64;
    /// Bytes that the sender's peer sends it, if the transfer ends with the last of them.
    fn answer(&self) -> Option<u64> {
        None
    }
    /// Whether a scenario of other senders draws at random.
    fn is_random(&self) -> bool;
    /// Whether the queue of the path was seen full.
    fn has_full_queue(&self) -> bool;
    /// The same transfer over other paths that the recording allows.
    fn other_paths(&self) -> Vec<(PathDoubt, Box<dyn FittedTransfer>)> {
        Vec::new()
    }
    /// The same transfer for changes of knobs: they may show of which system an unknown host is.
    fn for_knobs(&self, changes: &[String]) -> Option<Box<dyn FittedTransfer>> {
        let _ = changes;
        None
    }
    /// A change of a key of the scenario of a single transfer as one of this scenario.
    fn located(&self, change: String) -> String {
        change
    }
    /// The same transfer with a change that is no key of its scenario; `None` if it is one.
    ///
    /// # Errors
    /// See [`PathFit::with_word`].
    fn with_word(
        &self,
        key: &str,
        value: &str,
    ) -> Result<Option<Box<dyn FittedTransfer>>, WordError> {
        let _ = (key, value);
        Ok(None)
    }
    /// Basis of the estimates.
    fn bases(&self) -> &[Basis] {
        self.recorded().bases
    }
    /// The scenario with a sender of `profile` and, if given, congestion control `cc`.
    fn scenario(&self, profile: &str, cc: Option<&str>, losses: LossPattern, seed: u64) -> String;
}

impl FittedTransfer for PathFit {
    fn recorded(&self) -> RecordedTransfer<'_> {
        let Self { bytes, time, delivered, bases, .. } = self;
        RecordedTransfer { bytes: *bytes, time: *time, delivered, bases }
    }

    fn windows(&self) -> &[(u64, u64)] {
        &[]
    }

    fn starts_with_data(&self) -> bool {
        !self.opened
    }

    /// The start of an upload passes the capture point half a round trip to the sender after it left,
    /// and its ACKs pass there as much before they arrive. A download starts at the receiver, as much
    /// before it is at the sender.
    fn ahead(&self) -> u64 {
        match (self.opened && self.dir == Dir::Reverse, &self.conversation) {
            (true, None) => 0,
            // The simulated client starts where the recorded one did.
            (true, Some(_)) => self.rtt / 2,
            (false, _) => self.to_sender,
        }
    }

    fn answer(&self) -> Option<u64> {
        self.conversation.as_ref()?.answer(self.dir == Dir::Forward)
    }

    fn is_random(&self) -> bool {
        !self.losses.packets.is_empty()
    }

    fn for_knobs(&self, changes: &[String]) -> Option<Box<dyn FittedTransfer>> {
        Some(Box::new(Self::for_knobs(self, changes)))
    }

    fn with_word(
        &self,
        key: &str,
        value: &str,
    ) -> Result<Option<Box<dyn FittedTransfer>>, WordError> {
        let changed = Self::with_word(self, key, value)?;
        Ok(changed.map(|one| Box::new(one) as Box<dyn FittedTransfer>))
    }

    fn located(&self, change: String) -> String {
        Self::located(self, change)
    }

    fn has_full_queue(&self) -> bool {
        self.buffer.is_some()
    }

    fn other_paths(&self) -> Vec<(PathDoubt, Box<dyn FittedTransfer>)> {
        let mut others: Vec<(PathDoubt, Box<dyn FittedTransfer>)> = Vec::new();
        let goodput = (self.bytes as f64 * 8e9 / self.time.max(1) as f64) as u64;
        if !self.is_rate_seen {
            // The fastest that scenarios have, or the slowest that carried the data.
            let slowest = self.rate_at_least.unwrap_or(0).max(goodput).max(1);
            let rate = if self.rate.is_some() { self.rate_at_most } else { Some(slowest) };
            others.push((PathDoubt::Rate, Box::new(Self { rate, ..self.clone() })));
        }
        if let (Some(rate), None) = (self.rate, self.buffer) {
            let product = (rate as f64 / 8.0 * self.rtt as f64 / 1e9) as u64;
            for products in [1, 2] {
                // What it was seen to hold, it holds.
                let seen = self.queue_at_least.unwrap_or(0);
                let buffer = Some((products * product).max(LEAST_QUEUE).max(seen));
                others.push((PathDoubt::Queue, Box::new(Self { buffer, ..self.clone() })));
            }
        }
        if let Some(together) = self.conversation.as_ref().and_then(Conversation::served_together) {
            let other = Self { conversation: Some(together), ..self.clone() };
            others.push((PathDoubt::Service, Box::new(other)));
        }
        if let (Some(buffer), false) = (self.buffer, self.beside.is_empty()) {
            // A packet more or less decides whose is dropped, and so does a little less time for each.
            let packet = 2 * (self.mss + self.headers);
            for buffer in [buffer.saturating_sub(packet).max(packet), buffer + packet] {
                let other = Self { buffer: Some(buffer), ..self.clone() };
                others.push((PathDoubt::Others, Box::new(other)));
            }
            for permille in [990, 995, 1_005, 1_010] {
                let rate = self.rate.map(|rate| rate / 1_000 * permille);
                others.push((PathDoubt::Others, Box::new(Self { rate, ..self.clone() })));
            }
        }
        others
    }

    fn scenario(&self, profile: &str, cc: Option<&str>, losses: LossPattern, seed: u64) -> String {
        Self::scenario(self, profile, cc, losses, seed)
    }
}

impl FittedTransfer for QuicFit {
    fn recorded(&self) -> RecordedTransfer<'_> {
        let Self { bytes, time, delivered, bases, .. } = self;
        RecordedTransfer { bytes: *bytes, time: *time, delivered, bases }
    }

    fn windows(&self) -> &[(u64, u64)] {
        &self.windows
    }

    fn starts_with_data(&self) -> bool {
        true
    }

    fn ahead(&self) -> u64 {
        0
    }

    fn is_random(&self) -> bool {
        !self.losses.packets.is_empty() || self.late.is_some()
    }

    fn has_full_queue(&self) -> bool {
        self.buffer.is_some()
    }

    fn scenario(&self, profile: &str, cc: Option<&str>, losses: LossPattern, seed: u64) -> String {
        Self::scenario(self, profile, cc, losses, seed)
    }
}
