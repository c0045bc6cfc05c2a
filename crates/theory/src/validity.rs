//! When a result does not apply.

use core::fmt;

use crate::Path;
use crate::pftk;

/// The assumptions of a formula, and the doubts about them in the given case.
#[derive(Debug, Clone, PartialEq)]
pub struct Validity {
    /// Conditions for the formula to hold; not checked here.
    pub assumes: &'static [&'static str],
    /// Assumptions that the given numbers contradict.
    pub doubts: Vec<Doubt>,
}

/// A reason why a formula does not apply to the given numbers, or not well.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Doubt {
    /// The link rate is below the formula's rate: loss is not the limit.
    RateIsTheLimit {
        /// The link rate, in bit/s.
        rate_bps: f64,
    },
    /// The allowed window is smaller than the formula's: loss is not the limit.
    WindowIsTheLimit {
        /// The allowed window, in segments.
        allowed: f64,
        /// The window of the formula, in segments.
        needed: f64,
    },
    /// Too few segments are in flight for three duplicate ACKs.
    NoDuplicates {
        /// The window, in segments.
        window: f64,
    },
    /// Losses end in timeouts, which the formula does not count.
    Timeouts {
        /// Their fraction of all losses, for Reno without SACK (Q of PFTK).
        share: f64,
        /// The window, in segments.
        window: f64,
    },
    /// Windows are whole segments, and a step is large relative to a small window.
    WholeSegments {
        /// The window, in segments.
        window: f64,
    },
    /// The constant applies to a sender that counts ACKs.
    CountsAcks,
    /// The loss rate is above the range for which the formula was derived.
    MuchLoss {
        /// The loss rate.
        p: f64,
    },
    /// The timeout is below the minimum of kernels.
    ShortTimeout {
        /// In seconds.
        seconds: f64,
    },
    /// CUBIC follows the Reno-friendly window here, not its cubic curve.
    RenoFriendly {
        /// The window of the cubic curve, in segments.
        cubic: f64,
        /// The Reno-friendly window, in segments.
        friendly: f64,
    },
    /// The queue is so shallow that the window does not limit BBR.
    ShallowQueue {
        /// The queue in bandwidth-delay products.
        bdp: f64,
    },
    /// The queue is deeper than those for which the model was measured.
    DeepQueue {
        /// The queue in bandwidth-delay products.
        bdp: f64,
    },
    /// There are more flows of BBR than those for which the model was compared.
    ManyFlows {
        /// Their number.
        flows: f64,
    },
    /// ProbeRTT takes most of the time: the queue drains slowly.
    LongProbe {
        /// Its part of the time.
        share: f64,
    },
}

/// Window from which a step of one segment is less than 5 %.
const LARGE: f64 = 20.0;
/// Segments in flight required for three duplicate ACKs and the lost segment.
const DUPLICATES: f64 = 4.0;
/// Fraction of timeouts that is reported.
const WORTH_A_WORD: f64 = 0.05;
/// Loss rate above which "one loss per window" is no longer an approximation.
const MUCH: f64 = 0.05;

impl Validity {
    pub(crate) const fn new(assumes: &'static [&'static str], doubts: Vec<Doubt>) -> Self {
        Self { assumes, doubts }
    }
}

/// The doubts about a formula in which only loss limits the window, `peak` at its largest, and no
/// loss ends in a timeout.
pub(crate) fn doubts(path: &Path, rate_bps: f64, window: f64, peak: f64) -> Vec<Doubt> {
    let mut doubts = limits(path, rate_bps, peak);
    if window < DUPLICATES {
        doubts.push(Doubt::NoDuplicates { window });
    } else {
        let share = pftk::timeout_share(path.p(), peak);
        if share >= WORTH_A_WORD {
            doubts.push(Doubt::Timeouts { share, window: peak });
        }
    }
    if peak < LARGE {
        doubts.push(Doubt::WholeSegments { window: peak });
    }
    if path.p() > MUCH {
        doubts.push(Doubt::MuchLoss { p: path.p() });
    }
    doubts
}

/// The doubts about loss being the limit.
pub(crate) fn limits(path: &Path, rate_bps: f64, peak: f64) -> Vec<Doubt> {
    let mut doubts = Vec::new();
    let line = path.rate().map(|rate| rate.bits_per_second() as f64);
    if let Some(line) = line.filter(|line| *line < rate_bps) {
        doubts.push(Doubt::RateIsTheLimit { rate_bps: line });
    }
    if let Some(allowed) = path.window_segments().filter(|allowed| *allowed < peak) {
        doubts.push(Doubt::WindowIsTheLimit { allowed, needed: peak });
    }
    doubts
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::RateIsTheLimit { rate_bps } => {
                let rate = rate_bps / 1e6;
                write!(f, "the link rate of {rate:.2} Mbit/s is the limit, not loss")
            }
            Self::WindowIsTheLimit { allowed, needed } => write!(
                f,
                "the allowed window of {allowed:.1} segments is the limit, not loss: the formula \
                 needs {needed:.1}"
            ),
            Self::NoDuplicates { window } => write!(
                f,
                "{window:.1} segments in flight are too few for three duplicate ACKs: losses end \
                 in timeouts, which this formula does not count, so its result is far too high"
            ),
            Self::Timeouts { share, window } => write!(
                f,
                "in a Reno without SACK {:.0} % of losses at {window:.1} segments end in a \
                 timeout (Q of PFTK), which this formula does not count",
                share * 100.0
            ),
            Self::WholeSegments { window } => write!(
                f,
                "windows are whole segments: at {window:.1} of them one step is {:.0} %",
                100.0 / window
            ),
            Self::CountsAcks => f.write_str(
                "this constant holds for senders that count ACKs; those that count what an ACK \
                 acknowledges (RFC 3465, Linux, QUIC) grow as if every packet were acknowledged",
            ),
            Self::MuchLoss { p } => write!(
                f,
                "at {:.1} % loss several packets per window are lost; the formula assumes one",
                p * 100.0
            ),
            Self::ShortTimeout { seconds } => write!(
                f,
                "a timeout of {:.1} ms is below the minimum of kernels (Linux 200 ms, FreeBSD \
                 230 ms): with theirs the rate is lower",
                seconds * 1e3
            ),
            Self::ShallowQueue { bdp } => write!(
                f,
                "a queue of {bdp:.2} bandwidth-delay products is too shallow: the window does not limit \
                 BBR, whose losses and those of the others decide"
            ),
            Self::DeepQueue { bdp } => write!(
                f,
                "a queue of {bdp:.1} bandwidth-delay products is deeper than those of the paper, up to 64"
            ),
            Self::ManyFlows { flows } => {
                write!(f, "{flows:.0} flows of BBR are more than those of the paper, up to 32")
            }
            Self::LongProbe { share } => write!(
                f,
                "ProbeRTT would take {:.0} % of the time: the queue needs seconds to drain",
                share * 100.0
            ),
            Self::RenoFriendly { cubic, friendly } => write!(
                f,
                "the cubic curve gives {cubic:.2} segments, the Reno-friendly window \
                 {friendly:.2}: CUBIC follows the larger, the latter"
            ),
        }
    }
}
