//! An exchange: what two applications send each other, step by step.

use units::{Bytes, Duration};

use super::ReadPattern;

/// Bytes of the message by which the reader of a windowed step extends the writer's window: an HTTP/2
/// WINDOW_UPDATE frame (RFC 9113 section 6.9).
pub const WINDOW_UPDATE: u64 = 13;

/// The steps of an exchange.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExchangeSpec {
    /// Steps taken once, such as the handshake of TLS.
    pub opening: Vec<ExchangeStep>,
    /// Steps taken `count` times.
    pub steps: Vec<ExchangeStep>,
    /// Repetitions of `steps`.
    pub count: u64,
    /// Read patterns of the client and the server; without one, all available data is read at once.
    pub reads: [Option<ReadPattern>; 2],
}

/// Bytes that one side writes once it has read all that precedes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExchangeStep {
    /// The side that writes.
    pub by: ExchangeSide,
    /// Bytes written.
    pub bytes: Bytes,
    /// Time from the end of the previous step, as this side sees it, to the write.
    pub after: Duration,
    /// Bytes that the writer sends beyond those for which the reader's application has asked; the reader
    /// asks for more with [`WINDOW_UPDATE`] bytes after each half of it.
    pub window: Option<Bytes>,
}

/// A side of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExchangeSide {
    /// The connecting one.
    Client,
    /// The listening one.
    Server,
}

impl ExchangeStep {
    /// Bytes read between two window updates; `None` without a window.
    pub(crate) fn update_every(&self) -> Option<u64> {
        self.window.map(|window| (window.get() / 2).max(1))
    }

    /// Bytes of all window updates of the step.
    pub(crate) fn updates(&self) -> u64 {
        self.update_every().map_or(0, |every| self.bytes.get() / every * WINDOW_UPDATE)
    }
}

impl ExchangeSpec {
    /// The step of this index, repetitions counted; `None` after the last.
    pub(crate) fn step(&self, index: u64) -> Option<&ExchangeStep> {
        let opening = self.opening.len() as u64;
        if index < opening {
            return self.opening.get(index as usize);
        }
        let (index, steps) = (index - opening, self.steps.len() as u64);
        let is_within = steps > 0 && index / steps < self.count;
        is_within.then(|| &self.steps[(index % steps) as usize])
    }

    /// The repetition that a step belongs to, and whether the step is the last of it; `None` in the
    /// opening.
    pub(crate) fn repetition(&self, index: u64) -> Option<(u64, bool)> {
        let (index, steps) =
            (index.checked_sub(self.opening.len() as u64)?, self.steps.len() as u64);
        (steps > 0).then(|| (index / steps, index % steps == steps - 1))
    }

    /// All payload bytes that a side writes, window updates included.
    pub fn bytes(&self, side: ExchangeSide) -> Bytes {
        let sum = |steps: &[ExchangeStep]| {
            steps.iter().fold(0_u64, |sum, step| {
                let bytes = if step.by == side { step.bytes.get() } else { step.updates() };
                sum.saturating_add(bytes)
            })
        };
        Bytes(sum(&self.opening).saturating_add(sum(&self.steps).saturating_mul(self.count)))
    }

    /// Does the server write more than the client?
    pub fn is_answered(&self) -> bool {
        self.bytes(ExchangeSide::Server) > self.bytes(ExchangeSide::Client)
    }
}
