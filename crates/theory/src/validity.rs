//! When an answer does not apply.

use core::fmt;

use crate::Path;
use crate::pftk;

/// What a formula takes for granted, and what speaks against it in the case at hand.
#[derive(Debug, Clone, PartialEq)]
pub struct Validity {
    /// What must be true for the formula to hold; nothing here checks it.
    pub assumes: &'static [&'static str],
    /// What the numbers themselves speak against.
    pub doubts: Vec<Doubt>,
}

/// A reason why a formula does not apply to these numbers, or not well.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Doubt {
    /// The line carries less than the formula says: loss is not the limit.
    RateIsTheLimit {
        /// What the line carries, in bit/s.
        rate_bps: f64,
    },
    /// The window allowed is smaller than the formula's: loss is not the limit.
    WindowIsTheLimit {
        /// The window allowed, in segments.
        allowed: f64,
        /// The one the formula needs.
        needed: f64,
    },
    /// Too few segments are under way for three duplicate acknowledgments.
    NoDuplicates {
        /// The window, in segments.
        window: f64,
    },
    /// Losses that end in a timeout, which the formula does not count.
    Timeouts {
        /// Their share of all losses, in a Reno without SACK (Q of PFTK).
        share: f64,
        /// At this window, in segments.
        window: f64,
    },
    /// Windows are whole segments; at a small one that is a large step.
    WholeSegments {
        /// The window, in segments.
        window: f64,
    },
    /// The constant is one of a sender that counts acknowledgments.
    CountsAcks,
    /// The loss rate is beyond what the formula was derived for.
    MuchLoss {
        /// The loss rate.
        p: f64,
    },
    /// The timeout is shorter than the least that kernels wait.
    ShortTimeout {
        /// In seconds.
        seconds: f64,
    },
    /// CUBIC does not follow its cubic curve here but the Reno-friendly window.
    RenoFriendly {
        /// The window of the cubic curve, in segments.
        cubic: f64,
        /// The Reno-friendly one, in segments.
        friendly: f64,
    },
}

/// Windows from which a step of one segment is less than 5 %.
const LARGE: f64 = 20.0;
/// Segments under way that three duplicates and the lost one take.
const DUPLICATES: f64 = 4.0;
/// A share of timeouts worth a word.
const WORTH_A_WORD: f64 = 0.05;
/// Loss rates beyond which "one loss per window" is no approximation any more.
const MUCH: f64 = 0.05;

impl Validity {
    pub(crate) const fn new(assumes: &'static [&'static str], doubts: Vec<Doubt>) -> Self {
        Self { assumes, doubts }
    }
}

/// What speaks against a formula in which loss alone limits the window, `peak` at its largest,
/// and no loss ends in a timeout.
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

/// Is something other than loss the limit?
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
                write!(f, "the line carries {rate:.2} Mbit/s: it is the limit, not loss")
            }
            Self::WindowIsTheLimit { allowed, needed } => write!(
                f,
                "the window allowed is {allowed:.1} segments and {needed:.1} are needed: it is \
                 the limit, not loss"
            ),
            Self::NoDuplicates { window } => write!(
                f,
                "{window:.1} segments under way are too few for three duplicate ACKs: losses end \
                 in timeouts, which this formula does not count, and it says far too much"
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
                "at {:.1} % several packets of one window are lost, the formula counts one",
                p * 100.0
            ),
            Self::ShortTimeout { seconds } => write!(
                f,
                "a timeout of {:.1} ms is shorter than kernels wait (Linux 200 ms, FreeBSD \
                 230 ms): with theirs the answer is smaller",
                seconds * 1e3
            ),
            Self::RenoFriendly { cubic, friendly } => write!(
                f,
                "the cubic curve gives {cubic:.2} segments, the Reno-friendly window \
                 {friendly:.2}: CUBIC follows the larger, the latter"
            ),
        }
    }
}
