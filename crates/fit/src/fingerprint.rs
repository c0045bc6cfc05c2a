//! Identifies the system of an endpoint by its SYN: passive fingerprinting (Zalewski's p0f),
//! limited to the modelled systems.

use diagnose::Analysis;
use packet::{Dir, SynLayout};

/// A system identified by its SYN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeerSystem {
    /// Linux: SACK and timestamps before the window scale (tcp_options_write).
    Linux,
    /// FreeBSD: the window scale before SACK and timestamps (tcp_addoptions), padded at the end, and
    /// a first window of 65535 B.
    FreeBsd,
    /// Another system, or the SYN is not in the capture.
    Unknown,
}

impl PeerSystem {
    /// Returns the name for messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Linux => "Linux",
            Self::FreeBsd => "FreeBSD",
            Self::Unknown => "an unknown system",
        }
    }

    /// Returns the system of the endpoint that sends data of direction `dir`.
    pub fn of(analysis: &Analysis, dir: Dir) -> Self {
        let Some(syn) = analysis.observed_syns[dir as usize] else { return Self::Unknown };
        match (syn.options.layout, syn.window) {
            (SynLayout::Linux, _) => Self::Linux,
            (SynLayout::FreeBsd, 65_535) => Self::FreeBsd,
            _ => Self::Unknown,
        }
    }
}
