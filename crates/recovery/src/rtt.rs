//! The round-trip estimator of an endpoint, independent of the stack.

use units::{Duration, Instant, Offset};

use crate::{RttFreeBsd, RttLinux, RttRack, RttRfc};

/// A round-trip measurement, by the source of its times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RttMeasurement {
    /// From an echoed timestamp (RFC 7323), whose clock counts milliseconds on both systems.
    Echo {
        /// Milliseconds between the echoed value and the current clock.
        ms: u32,
    },
    /// From the send time of a segment that was never retransmitted.
    Timed {
        /// Send time.
        sent: Instant,
        /// Time of its acknowledgment.
        acked: Instant,
    },
}

/// A measurement and the sender's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RttInput {
    /// The round trip.
    pub sample: RttMeasurement,
    /// Timeouts in a row before it (`t_rxtshift`).
    pub shift: u32,
    /// Oldest byte not yet acknowledged, after the acknowledgment of the sample.
    pub snd_una: Offset,
    /// Next byte to send.
    pub snd_nxt: Offset,
}

/// The round-trip estimator of an endpoint.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub enum RttEstimator {
    /// FreeBSD's base stack.
    FreeBsd(RttFreeBsd),
    /// FreeBSD's RACK stack.
    Rack(RttRack),
    /// Linux.
    Linux(RttLinux),
    /// RFC 6298.
    Rfc(RttRfc),
}

impl RttEstimator {
    /// Processes a sample and updates the timeout; ends any backoff. Returns the sample in the
    /// granularity of the stack.
    pub fn on_sample(&mut self, sampled: &RttInput) -> Duration {
        match self {
            Self::FreeBsd(rtt) => rtt.on_sample(sampled),
            Self::Rack(rtt) => rtt.on_sample(sampled),
            Self::Linux(rtt) => rtt.on_sample(sampled),
            Self::Rfc(rtt) => rtt.on_sample(sampled),
        }
    }

    /// Backs off: the timer fired for the `shift`-th time in a row, from 1.
    pub fn on_timeout(&mut self, shift: u32) {
        match self {
            Self::FreeBsd(rtt) => rtt.on_timeout(shift),
            Self::Rack(rtt) => rtt.on_timeout(shift),
            Self::Linux(rtt) => rtt.on_timeout(),
            Self::Rfc(rtt) => rtt.on_timeout(),
        }
    }

    /// Current retransmission timeout, backed off.
    #[inline]
    pub fn rto(&self) -> Duration {
        // The most frequent case first, without a jump table.
        if let Self::Linux(rtt) = self {
            return rtt.rto();
        }
        self.rto_slow()
    }

    fn rto_slow(&self) -> Duration {
        match self {
            Self::FreeBsd(rtt) => rtt.rto(),
            Self::Rack(rtt) => rtt.rto(),
            Self::Linux(rtt) => rtt.rto(),
            Self::Rfc(rtt) => rtt.rto(),
        }
    }

    /// Total duration of FreeBSD's timeouts before a connection is dropped (`tcp_totbackoff`);
    /// `None` on other systems, which have no such fixed sum.
    pub fn all_timeouts(&self) -> Option<Duration> {
        match self {
            Self::FreeBsd(rtt) => Some(rtt.all_timeouts()),
            Self::Rack(rtt) => Some(rtt.all_timeouts()),
            Self::Linux(_) | Self::Rfc(_) => None,
        }
    }

    /// Smoothed round-trip time; `None` before the first sample.
    #[inline(always)]
    pub fn srtt(&self) -> Option<Duration> {
        if let Self::Linux(rtt) = self {
            return rtt.srtt();
        }
        self.srtt_slow()
    }

    fn srtt_slow(&self) -> Option<Duration> {
        match self {
            Self::FreeBsd(rtt) => rtt.srtt(),
            Self::Rack(rtt) => rtt.srtt(),
            Self::Linux(rtt) => rtt.srtt(),
            Self::Rfc(rtt) => rtt.srtt(),
        }
    }
}

impl From<RttFreeBsd> for RttEstimator {
    fn from(rtt: RttFreeBsd) -> Self {
        Self::FreeBsd(rtt)
    }
}

impl From<RttRack> for RttEstimator {
    fn from(rtt: RttRack) -> Self {
        Self::Rack(rtt)
    }
}

impl From<RttLinux> for RttEstimator {
    fn from(rtt: RttLinux) -> Self {
        Self::Linux(rtt)
    }
}

impl From<RttRfc> for RttEstimator {
    fn from(rtt: RttRfc) -> Self {
        Self::Rfc(rtt)
    }
}
