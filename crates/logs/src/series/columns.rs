//! The columns there are of a sender's state, each read alone.

use record::Sender;
use units::{Bytes, Duration, Rate};

/// A column of a sender's state.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// Name, with its unit.
    pub name: &'static str,
    /// What it says.
    pub help: &'static str,
    /// Digits behind the decimal point.
    pub decimals: u32,
    pub(super) field: Field,
}

/// What a column is read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
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
}

impl Field {
    /// A bit for each of these.
    pub(super) const fn bits(fields: &[Self]) -> u32 {
        let (mut bits, mut place) = (0, 0);
        while place < fields.len() {
            bits |= 1 << fields[place] as u32;
            place += 1;
        }
        bits
    }

    /// Asks the sender for this and nothing else.
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
        })
    }
}

/// All columns there are. Times are kept in nanoseconds and written in microseconds.
pub const COLUMNS: [Column; 18] = [
    column("snd_una_bytes", 0, "oldest byte not acknowledged, from 0", Field::SndUna),
    column("snd_nxt_bytes", 0, "next byte to send", Field::SndNxt),
    column("snd_max_bytes", 0, "end of what was ever sent", Field::SndMax),
    column("flight_bytes", 0, "bytes sent and not acknowledged", Field::Flight),
    column(
        "bytes_in_flight",
        0,
        "what the window is held against: packets of QUIC",
        Field::InFlight,
    ),
    column(
        "partial_bytes_acked",
        0,
        "bytes counted towards the next increase",
        Field::PartialAcked,
    ),
    column("pipe_bytes", 0, "bytes the stack takes to be in the network", Field::Pipe),
    column("cwnd_bytes", 0, "congestion window", Field::Cwnd),
    column("cwnd_mss", 3, "congestion window in full segments", Field::CwndMss),
    column("flight_mss", 3, "bytes sent and not acknowledged, in full segments", Field::FlightMss),
    column("ssthresh_bytes", 0, "slow-start threshold; none while unset", Field::Ssthresh),
    column("snd_wnd_bytes", 0, "window that the peer offers", Field::SndWnd),
    column("buffered_bytes", 0, "bytes in the send buffer", Field::Buffered),
    column("send_buffer_bytes", 0, "size of the send buffer", Field::SendBuffer),
    column("srtt_us", 3, "smoothed round trip; none before the first sample", Field::Srtt),
    column("rto_us", 3, "retransmission timeout in force", Field::Rto),
    column("pacing_bps", 0, "pacing rate; none where nothing is paced", Field::Pacing),
    column("in_recovery", 0, "1 while a fast recovery runs", Field::InRecovery),
];

const fn column(name: &'static str, decimals: u32, help: &'static str, field: Field) -> Column {
    assert!(decimals == 0 || decimals == 3, "as they are written");
    Column { name, help, decimals, field }
}

fn thousandths(bytes: Bytes, mss: Bytes) -> u64 {
    bytes.get().saturating_mul(1_000) / mss.get().max(1)
}

impl Column {
    /// Its name without the unit, as far as that tells it from the others.
    pub fn short(&self) -> &'static str {
        let units = ["_bytes", "_us", "_bps"];
        units.iter().find_map(|unit| self.name.strip_suffix(unit)).unwrap_or(self.name)
    }

    /// The unit that its name ends with: `B`, `us`, `bit/s`, `MSS`; empty for none.
    pub fn unit(&self) -> &'static str {
        let units = [("_bytes", "B"), ("_us", "us"), ("_bps", "bit/s"), ("_mss", "MSS")];
        units.iter().find(|(end, _)| self.name.ends_with(end)).map_or("", |(_, unit)| unit)
    }
}

/// Columns in the order asked for.
#[derive(Debug, Clone)]
pub struct Columns(Vec<Column>);

impl PartialEq for Columns {
    fn eq(&self, other: &Self) -> bool {
        self.names() == other.names()
    }
}

impl Eq for Columns {}

/// No column has this name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoColumn(
    /// The name.
    pub String,
);

impl core::fmt::Display for NoColumn {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "there is no column `{}`", self.0)
    }
}

impl core::error::Error for NoColumn {}

impl Columns {
    /// Names with commas between; units may be left out.
    ///
    /// # Errors
    /// The first name that is none, or an empty text.
    pub fn parse(text: &str) -> Result<Self, NoColumn> {
        text.split(',').map(|name| Self::named(name.trim())).collect::<Result<_, _>>().map(Self)
    }

    /// The column of this name; its unit may be left out.
    fn named(name: &str) -> Result<Column, NoColumn> {
        let is = |column: &&Column| column.name == name || column.short() == name;
        COLUMNS.iter().find(is).copied().ok_or_else(|| NoColumn(name.to_owned()))
    }

    /// The columns in their order.
    pub fn iter(&self) -> impl Iterator<Item = &Column> {
        self.0.iter()
    }

    /// Their names.
    pub fn names(&self) -> Vec<&'static str> {
        self.0.iter().map(|column| column.name).collect()
    }
}
