//! The input of a formula.

use core::fmt;

use units::{Bytes, Duration, Rate, Ratio};

/// A path with packet loss, and the other limits of a transfer over it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Path {
    mss: Bytes,
    rtt: Duration,
    loss: Ratio,
    rate: Option<Rate>,
    window: Option<Bytes>,
}

/// Why a formula has no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TheoryError {
    /// Segment size of zero.
    NoMss,
    /// RTT of zero.
    NoRtt,
    /// Loss rate of zero: the formulas have no limit then.
    NoLoss,
    /// Loss rate of 100 %.
    AllLost,
    /// The extra round trips must be a number, 0 or more.
    ExtraRtts,
    /// The fraction of the window kept must be between 0 and 1.
    Kept,
    /// The increase per RTT must be above 0.
    Growth,
    /// An ACK must cover at least one packet.
    PacketsPerAck,
    /// Timeout of zero.
    NoTimeout,
    /// The window must hold at least one segment.
    NoWindow,
    /// The queue and the number of flows must be above 0.
    NoQueue,
}

impl fmt::Display for TheoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoMss => "the segment size is zero; give at least one byte",
            Self::NoRtt => "the round-trip time is zero; give a time above 0",
            Self::NoLoss => "the loss rate is zero; these formulas need one above 0",
            Self::AllLost => "the loss rate is 100 %; give one below that",
            Self::ExtraRtts => "extra round trips must be a number, 0 or more",
            Self::Kept => "the fraction of the window kept after a loss must be between 0 and 1",
            Self::Growth => "the increase per round trip must be above 0",
            Self::PacketsPerAck => "an ACK must cover one packet at least",
            Self::NoTimeout => "the timeout is zero; give a time above 0",
            Self::NoWindow => "the window must hold one segment at least",
            Self::NoQueue => "round trip, queue and number of flows must be above 0",
        })
    }
}

impl core::error::Error for TheoryError {}

impl Path {
    /// A path with packets of `mss` bytes, round-trip time `rtt` and loss rate `loss`.
    ///
    /// # Errors
    /// If `mss`, `rtt` or `loss` is zero, or `loss` is 1.
    pub fn new(mss: Bytes, rtt: Duration, loss: Ratio) -> Result<Self, TheoryError> {
        match () {
            () if mss == Bytes::ZERO => Err(TheoryError::NoMss),
            () if rtt.is_zero() => Err(TheoryError::NoRtt),
            () if loss.num() == 0 => Err(TheoryError::NoLoss),
            () if loss.num() >= loss.den() => Err(TheoryError::AllLost),
            () => Ok(Self { mss, rtt, loss, rate: None, window: None }),
        }
    }

    /// Adds a link rate, which may be the limit instead of loss.
    #[must_use]
    pub const fn with_rate(self, rate: Rate) -> Self {
        Self { rate: Some(rate), ..self }
    }

    /// Adds a receive window (or send buffer), which may be the limit instead of loss.
    ///
    /// # Errors
    /// If it is smaller than a segment.
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

    /// Loss rate.
    pub const fn loss(&self) -> Ratio {
        self.loss
    }

    /// Link rate, if known.
    pub const fn rate(&self) -> Option<Rate> {
        self.rate
    }

    /// Window that the receiver or the send buffer allows, if known.
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

    /// The largest allowed window, in segments.
    pub fn window_segments(&self) -> Option<f64> {
        self.window.map(|window| window.get() as f64 / self.mss.get() as f64)
    }

    /// Bit/s of `segments_per_rtt` segments per RTT.
    pub fn bps(&self, segments_per_rtt: f64) -> f64 {
        segments_per_rtt * self.mss.get() as f64 * 8.0 / self.rtt_s()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_input_is_refused() {
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
