//! Which system an end runs, by its SYN: what passive fingerprinting (Zalewski's p0f) goes by,
//! cut down to the systems that are modelled here.

use diagnose::Analysis;
use packet::{Dir, SynLayout};

/// A system, as far as a SYN tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum System {
    /// Linux: SACK and timestamps before the window scale (tcp_options_write).
    Linux,
    /// FreeBSD: the window scale before SACK and timestamps (tcp_addoptions), and a first window of
    /// 65535 B.
    FreeBsd,
    /// None of these, or the SYN was not seen.
    Unknown,
}

impl System {
    /// In words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Linux => "Linux",
            Self::FreeBsd => "FreeBSD",
            Self::Unknown => "an unknown system",
        }
    }

    /// Of the end that sends data of direction `dir`.
    pub fn of(analysis: &Analysis, dir: Dir) -> Self {
        let Some(syn) = analysis.openings[dir as usize] else { return Self::Unknown };
        match (syn.options.layout, syn.window) {
            (SynLayout::Linux, _) => Self::Linux,
            (SynLayout::FreeBsd, 65_535) => Self::FreeBsd,
            _ => Self::Unknown,
        }
    }
}
