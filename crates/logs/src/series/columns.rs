//! The available columns of a sender's state.

use record::{BbrPhase, BbrState, Sender};
use units::{Bytes, Duration, Rate};

/// A column of a sender's state.
#[derive(Debug, Clone, Copy)]
pub struct SeriesColumn {
    /// Name, with its unit.
    pub name: &'static str,
    /// Description.
    pub help: &'static str,
    /// How its values are written.
    pub form: ColumnForm,
    pub(super) field: SeriesField,
}

/// How the integer values of a column are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnForm {
    /// As a number with this many decimals: 0, 3 or 5.
    Decimal(u32),
    /// As the name at this index.
    Name(&'static [&'static str]),
}

impl ColumnForm {
    /// The name of a value; `None` for numbers.
    pub fn name(self, value: u64) -> Option<&'static str> {
        match self {
            Self::Decimal(_) => None,
            Self::Name(names) => names.get(usize::try_from(value).ok()?).copied(),
        }
    }
}

/// Field of the sender's state that a column is read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SeriesField {
    SndUna,
    SndNxt,
    SndMax,
    Flight,
    InFlight,
    PartialAcked,
    Pipe,
    Cwnd,
    CwndMss,
    FlightMss,
    Ssthresh,
    SndWnd,
    Buffered,
    SendBuffer,
    Srtt,
    Rto,
    Pacing,
    InRecovery,
    BbrMode,
    BbrPhase,
    BbrBwHi,
    BbrBwLo,
    BbrInflightHi,
    BbrInflightLo,
    BbrPacingGain,
    BbrCwndGain,
}

/// Phases of BBR by their number, and the modes that they belong to.
const BBR_PHASES: &[&str] = &bbr_names(false);
const BBR_MODES: &[&str] = &bbr_names(true);

const fn bbr_names(modes: bool) -> [&'static str; 7] {
    use BbrPhase::{Cruise, Down, Drain, ProbeRtt, Refill, Startup, Up};
    let phases = [Startup, Drain, ProbeRtt, Up, Down, Cruise, Refill];
    let (mut names, mut place) = ([""; 7], 0);
    while place < phases.len() {
        let phase = phases[place];
        names[phase as usize] = if modes { phase.mode() } else { phase.name() };
        place += 1;
    }
    names
}

impl SeriesField {
    /// Fields of the model of BBR.
    pub(super) const BBR: [Self; 8] = [
        Self::BbrMode,
        Self::BbrPhase,
        Self::BbrBwHi,
        Self::BbrBwLo,
        Self::BbrInflightHi,
        Self::BbrInflightLo,
        Self::BbrPacingGain,
        Self::BbrCwndGain,
    ];
    /// Bit mask of these.
    pub(super) const OF_BBR: u32 = Self::bits(&Self::BBR);

    /// Bit mask of the fields.
    pub(super) const fn bits(fields: &[Self]) -> u32 {
        let (mut bits, mut place) = (0, 0);
        while place < fields.len() {
            bits |= 1 << fields[place] as u32;
            place += 1;
        }
        bits
    }

    /// Reads only this field of the sender.
    #[inline(always)]
    pub(super) fn of(self, sender: &impl Sender) -> Option<u64> {
        let flight = || sender.snd_max().since(sender.snd_una());
        Some(match self {
            Self::SndUna => sender.snd_una().0,
            Self::SndNxt => sender.snd_nxt().0,
            Self::SndMax => sender.snd_max().0,
            Self::Flight => flight().get(),
            Self::InFlight => sender.in_flight().get(),
            Self::PartialAcked => sender.partial_acked().get(),
            Self::Pipe => sender.pipe().get(),
            Self::Cwnd => sender.cwnd().get(),
            Self::CwndMss => thousandths(sender.cwnd(), sender.mss()),
            Self::FlightMss => thousandths(flight(), sender.mss()),
            Self::Ssthresh => return sender.ssthresh().map(Bytes::get),
            Self::SndWnd => sender.snd_wnd().get(),
            Self::Buffered => sender.buffered().get(),
            Self::SendBuffer => sender.send_buffer().get(),
            Self::Srtt => return sender.srtt().map(Duration::as_nanos),
            Self::Rto => sender.rto().as_nanos(),
            Self::Pacing => return sender.pacing().map(Rate::bits_per_second),
            Self::InRecovery => u64::from(sender.in_recovery()),
            Self::BbrMode
            | Self::BbrPhase
            | Self::BbrBwHi
            | Self::BbrBwLo
            | Self::BbrInflightHi
            | Self::BbrInflightLo
            | Self::BbrPacingGain
            | Self::BbrCwndGain => return self.of_bbr(&sender.bbr()?),
        })
    }

    /// A value of the model of BBR.
    #[cold]
    fn of_bbr(self, bbr: &BbrState) -> Option<u64> {
        // 256ths with five decimals, as `ss` writes them.
        let gain = |gain: u32| Some((u64::from(gain) * 100_000 + 128) / 256);
        let bits = |bytes: u64| bytes.saturating_mul(8);
        match self {
            Self::BbrMode => Some(match bbr.phase {
                BbrPhase::Down | BbrPhase::Cruise | BbrPhase::Refill => BbrPhase::Up as u64,
                phase => phase as u64,
            }),
            Self::BbrPhase => Some(bbr.phase as u64),
            Self::BbrBwHi => Some(bits(bbr.bw_hi)),
            Self::BbrBwLo => bbr.bw_lo.map(bits),
            Self::BbrInflightHi => bbr.inflight_hi.map(u64::from),
            Self::BbrInflightLo => bbr.inflight_lo.map(u64::from),
            Self::BbrPacingGain => gain(bbr.pacing_gain),
            Self::BbrCwndGain => gain(bbr.cwnd_gain),
            _ => None,
        }
    }
}

/// All columns. Times are stored in nanoseconds and written in microseconds.
pub const COLUMNS: [SeriesColumn; 26] = [
    column("snd_una_bytes", 0, "oldest byte not acknowledged, from 0", SeriesField::SndUna),
    column("snd_nxt_bytes", 0, "next byte to send", SeriesField::SndNxt),
    column("snd_max_bytes", 0, "highest byte sent, plus one", SeriesField::SndMax),
    column("flight_bytes", 0, "bytes sent and not acknowledged", SeriesField::Flight),
    column(
        "bytes_in_flight",
        0,
        "bytes that count against the congestion window; of packets for QUIC",
        SeriesField::InFlight,
    ),
    column(
        "partial_bytes_acked",
        0,
        "bytes counted towards the next increase",
        SeriesField::PartialAcked,
    ),
    column(
        "pipe_bytes",
        0,
        "estimate of the bytes in the network (pipe of RFC 6675)",
        SeriesField::Pipe,
    ),
    column("cwnd_bytes", 0, "congestion window", SeriesField::Cwnd),
    column("cwnd_mss", 3, "congestion window in full segments", SeriesField::CwndMss),
    column(
        "flight_mss",
        3,
        "bytes sent and not acknowledged, in full segments",
        SeriesField::FlightMss,
    ),
    column("ssthresh_bytes", 0, "slow-start threshold; none while unset", SeriesField::Ssthresh),
    column("snd_wnd_bytes", 0, "window advertised by the peer", SeriesField::SndWnd),
    column("buffered_bytes", 0, "bytes in the send buffer", SeriesField::Buffered),
    column("send_buffer_bytes", 0, "size of the send buffer", SeriesField::SendBuffer),
    column(
        "srtt_us",
        3,
        "smoothed round-trip time; none before the first sample",
        SeriesField::Srtt,
    ),
    column("rto_us", 3, "current retransmission timeout", SeriesField::Rto),
    column("pacing_bps", 0, "pacing rate; none without pacing", SeriesField::Pacing),
    column("in_recovery", 0, "1 in fast recovery", SeriesField::InRecovery),
    named("bbr_mode", BBR_MODES, "mode of BBR version 3", SeriesField::BbrMode),
    named("bbr_phase", BBR_PHASES, "mode, and phase of ProbeBW", SeriesField::BbrPhase),
    column("bbr_bw_hi_bps", 0, "maximum bandwidth of two cycles", SeriesField::BbrBwHi),
    column(
        "bbr_bw_lo_bps",
        0,
        "short-term bound of the bandwidth; none while unset",
        SeriesField::BbrBwLo,
    ),
    column(
        "bbr_inflight_hi_packets",
        0,
        "long-term bound of the flight; none while unset",
        SeriesField::BbrInflightHi,
    ),
    column(
        "bbr_inflight_lo_packets",
        0,
        "short-term bound of the flight; none while unset",
        SeriesField::BbrInflightLo,
    ),
    column("bbr_pacing_gain", 5, "gain of the pacing rate", SeriesField::BbrPacingGain),
    column("bbr_cwnd_gain", 5, "gain of the window", SeriesField::BbrCwndGain),
];

const fn column(
    name: &'static str,
    decimals: u32,
    help: &'static str,
    field: SeriesField,
) -> SeriesColumn {
    assert!(matches!(decimals, 0 | 3 | 5), "as they are written");
    SeriesColumn { name, help, form: ColumnForm::Decimal(decimals), field }
}

const fn named(
    name: &'static str,
    names: &'static [&'static str],
    help: &'static str,
    field: SeriesField,
) -> SeriesColumn {
    SeriesColumn { name, help, form: ColumnForm::Name(names), field }
}

fn thousandths(bytes: Bytes, mss: Bytes) -> u64 {
    bytes.get().saturating_mul(1_000) / mss.get().max(1)
}

impl SeriesColumn {
    /// Its name without the unit, if that is unique.
    pub fn short(&self) -> &'static str {
        let units = ["_bytes", "_us", "_bps", "_packets"];
        units.iter().find_map(|unit| self.name.strip_suffix(unit)).unwrap_or(self.name)
    }

    /// The unit in its name: `B`, `us`, `bit/s`, `MSS`, `packets`; empty for none.
    pub fn unit(&self) -> &'static str {
        let units = [
            ("_bytes", "B"),
            ("_us", "us"),
            ("_bps", "bit/s"),
            ("_mss", "MSS"),
            ("_packets", "packets"),
        ];
        units.iter().find(|(end, _)| self.name.ends_with(end)).map_or("", |(_, unit)| unit)
    }
}

/// Columns in the requested order.
#[derive(Debug, Clone)]
pub struct SeriesColumns(Vec<SeriesColumn>);

impl PartialEq for SeriesColumns {
    fn eq(&self, other: &Self) -> bool {
        self.names() == other.names()
    }
}

impl Eq for SeriesColumns {}

/// No column has this name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownColumn(
    /// The name.
    pub String,
);

impl core::fmt::Display for UnknownColumn {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "unknown column `{}`", self.0)
    }
}

impl core::error::Error for UnknownColumn {}

impl SeriesColumns {
    /// Parses names separated by commas; units may be omitted.
    ///
    /// # Errors
    /// The first unknown name, or an empty string.
    pub fn parse(text: &str) -> Result<Self, UnknownColumn> {
        text.split(',').map(|name| Self::named(name.trim())).collect::<Result<_, _>>().map(Self)
    }

    /// Finds a column by name; its unit may be omitted.
    fn named(name: &str) -> Result<SeriesColumn, UnknownColumn> {
        let is = |column: &&SeriesColumn| column.name == name || column.short() == name;
        COLUMNS.iter().find(is).copied().ok_or_else(|| UnknownColumn(name.to_owned()))
    }

    /// Iterates over the columns in order.
    pub fn iter(&self) -> impl Iterator<Item = &SeriesColumn> {
        self.0.iter()
    }

    /// Names of the columns.
    pub fn names(&self) -> Vec<&'static str> {
        self.0.iter().map(|column| column.name).collect()
    }
}
