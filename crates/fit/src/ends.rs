//! Which system an end runs, by its SYN: what passive fingerprinting (Zalewski's p0f) goes by,
//! cut down to the systems that are modelled here.

use packet::{Dir, Flags, SynLayout};

use diagnose::Packet;

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
    pub fn of(packets: &[Packet], dir: Dir) -> Self {
        let syn = packets
            .iter()
            .map(|packet| &packet.segment)
            .find(|segment| segment.dir == dir && segment.flags.has(Flags::SYN));
        let Some(syn) = syn else { return Self::Unknown };
        let Some(options) = syn.syn_options() else { return Self::Unknown };
        match (options.layout, syn.window) {
            (SynLayout::Linux, _) => Self::Linux,
            (SynLayout::FreeBsd, 65_535) => Self::FreeBsd,
            _ => Self::Unknown,
        }
    }
}
