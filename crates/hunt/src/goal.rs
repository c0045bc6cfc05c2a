//! The goals of a hunt: what makes a world bad.

use core::fmt;
use core::str::FromStr;

/// What the hunt looks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HuntGoal {
    /// A flow that gets little of the bandwidth beside others of its kind.
    Starvation,
    /// Capacity that stays unused.
    Utilisation,
    /// A long queue.
    Delay,
    /// Packets lost at queues.
    Loss,
}

impl HuntGoal {
    /// All goals.
    pub const ALL: [Self; 4] = [Self::Starvation, Self::Utilisation, Self::Delay, Self::Loss];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Starvation => "starvation",
            Self::Utilisation => "utilisation",
            Self::Delay => "delay",
            Self::Loss => "loss",
        }
    }

    /// What the figure of a world is.
    pub const fn figure(self) -> &'static str {
        match self {
            Self::Starvation => {
                "least share of a flow in the second half of the run, of the fair share"
            }
            Self::Utilisation => {
                "time that an ideal sender needs for the same bytes, of the time taken"
            }
            Self::Delay => "queue delay p95 at the bottleneck, in round trips without queue",
            Self::Loss => "data packets lost at the bottleneck in the second half of the run",
        }
    }

    /// The unit of the figure.
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Starvation | Self::Utilisation | Self::Loss => "%",
            Self::Delay => "RTT",
        }
    }

    /// Whether low figures are bad.
    pub const fn low_is_bad(self) -> bool {
        matches!(self, Self::Starvation | Self::Utilisation)
    }

    /// The figure beyond which a world counts as a bad case, without another.
    pub const fn default_limit(self) -> f64 {
        match self {
            Self::Starvation => 10.0,
            Self::Utilisation => 50.0,
            Self::Delay => 2.0,
            Self::Loss => 2.0,
        }
    }

    /// A figure as badness: higher is worse.
    pub(crate) fn badness(self, figure: f64) -> f64 {
        if self.low_is_bad() { 100.0 / figure.max(0.001) } else { figure }
    }
}

impl fmt::Display for HuntGoal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for HuntGoal {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = Self::ALL.into_iter().find(|goal| goal.name() == text);
        named.ok_or_else(|| "expected starvation, utilisation, delay or loss".to_owned())
    }
}
