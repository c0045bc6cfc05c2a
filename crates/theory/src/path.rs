//! What a formula is asked about.

use core::fmt;

use units::{Bytes, Duration, Rate, Ratio};

/// A path that loses packets, and what else may limit a transfer over it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Path {
    mss: Bytes,
    rtt: Duration,
    loss: Ratio,
    rate: Option<Rate>,
    window: Option<Bytes>,
}

/// Why a formula cannot be asked this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TheoryError {
    /// Segments without a byte.
    NoMss,
    /// A round trip that takes no time.
    NoRtt,
    /// Without loss the formulas have no limit.
    NoLoss,
    /// All is lost.
    AllLost,
    /// Round trips that a loss costs must be a number, 0 or more.
    ExtraRtts,
    /// The share of the window that is kept must lie between 0 and 1.
    Kept,
    /// What is added per round trip must be more than nothing.
    Growth,
    /// An acknowledgment is of one packet at least.
    PacketsPerAck,
    /// A timeout that takes no time.
    NoTimeout,
    /// A window must hold a segment at least.
    NoWindow,
}

impl fmt::Display for TheoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoMss => "a segment has at least one byte",
            Self::NoRtt => "a round trip takes some time",
            Self::NoLoss => "without loss these formulas have no limit: something else is one",
            Self::AllLost => "where all is lost nothing arrives",
            Self::ExtraRtts => "round trips that a loss costs are a number, 0 or more",
            Self::Kept => "the share of the window kept after a loss lies between 0 and 1",
            Self::Growth => "the growth per round trip is more than 0",
            Self::PacketsPerAck => "an acknowledgment is of one packet at least",
            Self::NoTimeout => "a timeout takes some time",
            Self::NoWindow => "a window holds one segment at least",
        })
    }
}

impl core::error::Error for TheoryError {}

impl Path {
    /// A path on which `loss` of the packets of `mss` bytes are lost and a round trip takes `rtt`.
    ///
    /// # Errors
    /// No bytes, no time, no loss, or nothing but loss.
    pub fn new(mss: Bytes, rtt: Duration, loss: Ratio) -> Result<Self, TheoryError> {
        match () {
            () if mss == Bytes::ZERO => Err(TheoryError::NoMss),
            () if rtt.is_zero() => Err(TheoryError::NoRtt),
            () if loss.num() == 0 => Err(TheoryError::NoLoss),
            () if loss.num() >= loss.den() => Err(TheoryError::AllLost),
            () => Ok(Self { mss, rtt, loss, rate: None, window: None }),
        }
    }

    /// The same with a line of this rate, which may be the limit instead of loss.
    #[must_use]
    pub const fn with_rate(self, rate: Rate) -> Self {
        Self { rate: Some(rate), ..self }
    }

    /// The same with a window of the receiver (or a send buffer), which may be the limit.
    ///
    /// # Errors
    /// If it holds no whole segment.
    pub fn with_window(self, window: Bytes) -> Result<Self, TheoryError> {
        if window < self.mss {
            return Err(TheoryError::NoWindow);
        }
        Ok(Self { window: Some(window), ..self })
    }

    /// Bytes of a segment, as the formula counts them.
    pub const fn mss(&self) -> Bytes {
        self.mss
    }

    /// Round-trip time.
    pub const fn rtt(&self) -> Duration {
        self.rtt
    }

    /// Share of packets that is lost.
    pub const fn loss(&self) -> Ratio {
        self.loss
    }

    /// Rate of the line, if it is known.
    pub const fn rate(&self) -> Option<Rate> {
        self.rate
    }

    /// Window that the receiver or the sender's buffer allows, if it is known.
    pub const fn window(&self) -> Option<Bytes> {
        self.window
    }

    /// The loss rate `p`, between 0 and 1.
    pub fn p(&self) -> f64 {
        self.loss.as_f64()
    }

    /// The round-trip time in seconds.
    pub fn rtt_s(&self) -> f64 {
        self.rtt.as_secs_f64()
    }

    /// The largest window allowed, in segments.
    pub fn window_segments(&self) -> Option<f64> {
        self.window.map(|window| window.get() as f64 / self.mss.get() as f64)
    }

    /// Bit/s of so many segments per round trip.
    pub fn bps(&self, segments_per_rtt: f64) -> f64 {
        segments_per_rtt * self.mss.get() as f64 * 8.0 / self.rtt_s()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_answer_is_refused() {
        let path = |mss, rtt, num| {
            Path::new(Bytes(mss), Duration::from_millis(rtt), Ratio::new(num, 100).unwrap())
        };
        assert_eq!(path(0, 2, 2), Err(TheoryError::NoMss));
        assert_eq!(path(1_252, 0, 2), Err(TheoryError::NoRtt));
        assert_eq!(path(1_252, 2, 0), Err(TheoryError::NoLoss));
        assert_eq!(path(1_252, 2, 100), Err(TheoryError::AllLost));
        assert_eq!(
            path(1_252, 2, 2).unwrap().with_window(Bytes(1_251)),
            Err(TheoryError::NoWindow)
        );
    }
}
