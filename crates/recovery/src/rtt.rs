//! The estimator of an endpoint, whichever system it is.

use units::{Duration, Instant, Offset};

use crate::{RttFreeBsd, RttLinux, RttRack, RttRfc};

/// A measured round trip, as the stack got hold of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sample {
    /// From an echoed timestamp (RFC 7323), whose clock counts milliseconds on both systems.
    Echo {
        /// Milliseconds between the echoed value and the clock now.
        ms: u32,
    },
    /// From the moment a segment, never sent again, left.
    Timed {
        /// When it left.
        sent: Instant,
        /// When its acknowledgment came.
        acked: Instant,
    },
}

/// A sample and where the sender stood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sampled {
    /// The round trip.
    pub sample: Sample,
    /// Timeouts in a row that came before it (`t_rxtshift`).
    pub shift: u32,
    /// Oldest byte not yet acknowledged, the acknowledgment that brought the sample counted.
    pub snd_una: Offset,
    /// Next byte to send.
    pub snd_nxt: Offset,
}

/// The round-trip estimator of an endpoint.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub enum RttEstimator {
    /// FreeBSD's.
    FreeBsd(RttFreeBsd),
    /// FreeBSD's RACK stack's.
    Rack(RttRack),
    /// Linux's.
    Linux(RttLinux),
    /// The textbook's.
    Rfc(RttRfc),
}

impl RttEstimator {
    /// Takes in a sample and derives the timeout from it; ends any backoff. Returns the sample
    /// in the granularity of the stack.
    pub fn on_sample(&mut self, sampled: &Sampled) -> Duration {
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

    /// Retransmission timeout in force, backed off.
    #[inline]
    pub fn rto(&self) -> Duration {
        // First what is asked with most acknowledgments, so that it takes no table of jumps.
        if let Self::Linux(rtt) = self {
            return rtt.rto();
        }
        self.other_rto()
    }

    #[inline(never)]
    fn other_rto(&self) -> Duration {
        match self {
            Self::FreeBsd(rtt) => rtt.rto(),
            Self::Rack(rtt) => rtt.rto(),
            Self::Linux(rtt) => rtt.rto(),
            Self::Rfc(rtt) => rtt.rto(),
        }
    }

    /// How long FreeBSD's timeouts take in all before a connection is given up (`tcp_totbackoff`); of
    /// other systems that is the sum of no fixed row, and this is nothing.
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
        self.other_srtt()
    }

    #[inline(never)]
    fn other_srtt(&self) -> Option<Duration> {
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
