//! First and last line of a log: `key=value`, separated by tabs.

use std::net::{IpAddr, SocketAddr};

use units::Duration;

use super::problem::{SiftrProblemKind, short};

/// Versions of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SiftrGeneration {
    /// 1.2.x: with a hash; times in ticks.
    V1_2,
    /// 1.3.x: in FreeBSD.
    V1_3,
    /// 2.x: siftr2.
    V2,
}

impl SiftrGeneration {
    /// Version string written for it.
    pub const fn version(self) -> &'static str {
        match self {
            Self::V1_2 => "1.2.2",
            Self::V1_3 => "1.3.0",
            Self::V2 => "2.5",
        }
    }

    fn of_version(version: &str) -> Option<Self> {
        match version.split('.').collect::<Vec<_>>()[..] {
            ["1", "2", ..] => Some(Self::V1_2),
            ["1", "3", ..] => Some(Self::V1_3),
            ["2", ..] => Some(Self::V2),
            _ => None,
        }
    }

    /// The format of a row without a header, by its number of columns.
    pub(super) const fn of_columns(columns: usize) -> Option<Self> {
        match columns {
            26 | 28 => Some(Self::V1_2),
            27 => Some(Self::V1_3),
            18 => Some(Self::V2),
            _ => None,
        }
    }
}

/// The first line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SiftrHeader {
    /// Format of the rows.
    pub generation: SiftrGeneration,
    /// `siftrver` as written.
    pub version: String,
    /// When logging was switched on, since 1970.
    pub enabled: Duration,
    /// `hz`: ticks a second (1.2).
    pub hz: Option<u32>,
    /// `tcp_rtt_scale`: units of `srtt` per tick (1.2).
    pub rtt_scale: Option<u32>,
    /// `sysname`; empty if absent.
    pub sysname: String,
    /// `sysver`; empty if absent.
    pub sysver: String,
    /// `ipmode`: 4, or 6 if IPv6 was compiled in.
    pub ipmode: Option<u32>,
    /// `rec_fmt=binary`: rows of 72 bytes (2).
    pub binary: bool,
}

impl SiftrHeader {
    /// A minimal header of this format, with hz and scale if rows need them.
    pub fn new(generation: SiftrGeneration) -> Self {
        let ticks = generation == SiftrGeneration::V1_2;
        Self {
            generation,
            version: generation.version().to_owned(),
            enabled: Duration::ZERO,
            hz: ticks.then_some(1_000),
            rtt_scale: ticks.then_some(32),
            sysname: String::new(),
            sysver: String::new(),
            ipmode: None,
            binary: false,
        }
    }

    /// First key of every header.
    pub(super) const BEGINS: &'static str = "enable_time_secs=";

    /// Parses the line; problems have their offset in it, and the fields concerned stay unset.
    pub(super) fn parse(line: &str, problems: &mut Vec<(usize, SiftrProblemKind)>) -> Self {
        let mut header = Self::new(SiftrGeneration::V1_3);
        let mut version = None;
        let (mut seconds, mut micros) = (0, 0);
        for (at, key, value) in pairs(line) {
            let mut number = |least: u32| {
                let parsed = value.parse().ok().filter(|number| *number >= least);
                if parsed.is_none() {
                    problems.push((at, not_a("header", value, "a number")));
                }
                parsed
            };
            match key {
                "enable_time_secs" => seconds = number(0).unwrap_or(0),
                "enable_time_usecs" => micros = number(0).unwrap_or(0),
                "siftrver" => version = Some((at, value)),
                "hz" => header.hz = number(1),
                "tcp_rtt_scale" => header.rtt_scale = number(1),
                "ipmode" => header.ipmode = number(0),
                "sysname" => header.sysname = value.to_owned(),
                "sysver" => header.sysver = value.to_owned(),
                "rec_fmt" => header.binary = value == "binary",
                _ => {}
            }
        }
        header.enabled = time(seconds.into(), micros.into());
        let (at, value) = version.unwrap_or((0, ""));
        match SiftrGeneration::of_version(value) {
            Some(generation) => {
                if generation != SiftrGeneration::V1_2 {
                    (header.hz, header.rtt_scale) = (None, None);
                }
                header.generation = generation;
            }
            None => {
                problems.push((at, not_a("siftrver", value, "a version from 1.2 to 2")));
            }
        }
        header.version = value.to_owned();
        header
    }
}

/// The last line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SiftrFooter {
    /// When logging was switched off, since 1970.
    pub disabled: Duration,
    /// Its other fields in order: counters and the list of flows.
    pub fields: Vec<(String, String)>,
    /// The flows of a siftr2 log; for older ones only the addresses.
    pub flows: Vec<FlowInfo>,
}

/// A flow in a footer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowInfo {
    /// Flow id in a siftr2 log.
    pub id: Option<u32>,
    /// Address and port of the logging host.
    pub local: SocketAddr,
    /// Address and port of its peer.
    pub remote: SocketAddr,
    /// TCP stack, congestion control, segment size, SACK, shifts, rows and packets, as written
    /// (siftr2).
    pub rest: Vec<String>,
}

impl SiftrFooter {
    /// First key of every footer.
    pub(super) const BEGINS: &'static str = "disable_time_secs=";

    pub(super) fn parse(line: &str, problems: &mut Vec<(usize, SiftrProblemKind)>) -> Self {
        let mut footer = Self::default();
        let (mut seconds, mut micros) = (0_u64, 0_u64);
        for (at, key, value) in pairs(line) {
            let slot = match key {
                "disable_time_secs" => &mut seconds,
                "disable_time_usecs" => &mut micros,
                _ => {
                    if key == "flow_list" {
                        footer.flows = flows(at, value, problems);
                    }
                    footer.fields.push((key.to_owned(), value.to_owned()));
                    continue;
                }
            };
            match value.parse() {
                Ok(number) => *slot = number,
                Err(_) => problems.push((at, not_a("footer", value, "a number"))),
            }
        }
        footer.disabled = time(seconds, micros);
        footer
    }

    /// Packets without a row, by the counters of the footer.
    pub fn lost(&self) -> u64 {
        let number = |wanted: &str| -> u64 {
            let found = self.fields.iter().find(|(key, _)| key == wanted);
            found.and_then(|(_, value)| value.parse().ok()).unwrap_or(0)
        };
        number("total_skipped_tcp_pkts").saturating_add(number("ring_drops"))
    }
}

/// `laddr;lport-faddr;fport,` of siftr, or
/// `id,4|6,laddr,lport,faddr,fport,...;` of siftr2 (without `4|6` before 2.5).
fn flows(at: usize, list: &str, problems: &mut Vec<(usize, SiftrProblemKind)>) -> Vec<FlowInfo> {
    let mut flows = Vec::new();
    let two = list.split(';').next().is_some_and(|first| first.contains(','));
    let mut place = at;
    for entry in list.split(if two { ';' } else { ',' }) {
        if !entry.is_empty() {
            match if two { flow_of_two(entry) } else { flow_of_one(entry) } {
                Some(flow) => flows.push(flow),
                // Only the first is reported: a damaged list may have many.
                None if problems.is_empty() => {
                    problems.push((place, not_a("flow_list", entry, "a flow")));
                }
                None => {}
            }
        }
        place += entry.len() + 1;
    }
    flows
}

fn flow_of_one(entry: &str) -> Option<FlowInfo> {
    let (local, remote) = entry.split_once('-')?;
    let end = |text: &str| {
        let (address, port) = text.split_once(';')?;
        Some(SocketAddr::new(address.parse().ok()?, port.parse().ok()?))
    };
    Some(FlowInfo { id: None, local: end(local)?, remote: end(remote)?, rest: Vec::new() })
}

fn flow_of_two(entry: &str) -> Option<FlowInfo> {
    let mut cells = entry.split(',').peekable();
    let id = u32::from_str_radix(cells.next()?, 16).ok()?;
    cells.next_if(|cell| *cell == "4" || *cell == "6");
    let mut end = || -> Option<SocketAddr> {
        let address: IpAddr = cells.next()?.parse().ok()?;
        Some(SocketAddr::new(address, cells.next()?.parse().ok()?))
    };
    let (local, remote) = (end()?, end()?);
    Some(FlowInfo { id: Some(id), local, remote, rest: cells.map(str::to_owned).collect() })
}

/// Iterates over offset of the value, key and value.
fn pairs(line: &str) -> impl Iterator<Item = (usize, &str, &str)> {
    let mut at = 0;
    line.split('\t').filter_map(move |pair| {
        let begin = at;
        at += pair.len() + 1;
        let (key, value) = pair.split_once('=')?;
        Some((begin + key.len() + 1, key, value))
    })
}

fn not_a(name: &'static str, found: &str, expected: &'static str) -> SiftrProblemKind {
    SiftrProblemKind::Cell { name, found: short(found), expected }
}

fn time(seconds: u64, micros: u64) -> Duration {
    let nanos = seconds.saturating_mul(super::NANOS_PER_SECOND);
    Duration::from_nanos(nanos.saturating_add(micros.saturating_mul(1_000)))
}
