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
        let options = syn.options;
        // Without the scale both write these in one order, and pad them alike.
        let is_common =
            options.window_scale.is_none() && (syn.timestamps || !options.sack_permitted);
        match (options.layout, syn.window) {
            (SynLayout::Linux, _) => Self::Linux,
            (SynLayout::FreeBsd, 65_535) if !is_common => Self::FreeBsd,
            _ => Self::Unknown,
        }
    }
}
