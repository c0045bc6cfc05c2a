//! Parses the three formats of a row.

use std::net::SocketAddr;

use packet::wire::Endpoints;
use units::Duration;

use super::{TcpProbeClock, TcpProbeRow, UNSET};
use crate::lines::{LineFault, LinePart, decimal};

/// A value, or the offset in its line (from 0) and the problem.
type RowResult<T> = Result<T, (usize, LineFault)>;

const EMPTY: TcpProbeRow = TcpProbeRow {
    line: 0,
    clock: TcpProbeClock::Own,
    at: Duration::ZERO,
    ends: None,
    flow: None,
    data_len: 0,
    snd_nxt: 0,
    snd_una: 0,
    snd_cwnd: 0,
    ssthresh: None,
    snd_wnd: 0,
    srtt: Duration::ZERO,
    rcv_wnd: None,
};

fn threshold(packets: u32) -> Option<u32> {
    (packets < UNSET).then_some(packets)
}

fn hex(word: LinePart<'_>, name: &'static str) -> RowResult<u32> {
    let digits = word.text.strip_prefix("0x").unwrap_or(word.text);
    // Old modules wrote 64 bits of the number.
    u64::from_str_radix(digits, 16)
        .map(|number| number as u32)
        .map_err(|_| (word.at, LineFault::value(name, word.text, "a hexadecimal number")))
}

fn end(word: LinePart<'_>, name: &'static str) -> RowResult<SocketAddr> {
    word.text
        .parse()
        .map(unmapped)
        .map_err(|_| (word.at, LineFault::value(name, word.text, "an address and a port")))
}

/// An IPv4-mapped IPv6 address (dual-stack socket) is IPv4 on the wire.
pub(crate) fn unmapped(end: SocketAddr) -> SocketAddr {
    SocketAddr::new(end.ip().to_canonical(), end.port())
}

fn seconds(word: LinePart<'_>, expected: &'static str) -> RowResult<Duration> {
    decimal(word.text, 1_000_000_000)
        .map(Duration::from_nanos)
        .ok_or_else(|| (word.at, LineFault::value("time", word.text, expected)))
}

/// A line of the trace event: its stamp and its fields.
pub(super) struct ProbeEvent<'a> {
    stamp: LinePart<'a>,
    fields: LinePart<'a>,
}

/// Finds an event; the timestamp is the last word before its name.
pub(super) fn event(line: &str) -> Option<ProbeEvent<'_>> {
    let name = line.find(" tcp_probe: ").or_else(|| line.find(" tcp:tcp_probe: "))?;
    let stamp = LinePart::words(&line[..name]).last()?;
    let stamp = LinePart { text: stamp.text.strip_suffix(':')?, ..stamp };
    let from = name + 1 + line[name + 1..].find(' ')? + 1;
    Some(ProbeEvent { stamp, fields: LinePart { at: from, text: &line[from..] } })
}

impl ProbeEvent<'_> {
    pub(super) fn row(&self) -> RowResult<TcpProbeRow> {
        let mut row = TcpProbeRow { clock: TcpProbeClock::Boot, ..EMPTY };
        row.at = seconds(self.stamp, "seconds since the machine started")?;
        let (mut src, mut dst) = (None, None);
        // Required fields not seen yet.
        let mut due =
            vec!["src", "dest", "snd_nxt", "snd_una", "snd_cwnd", "ssthresh", "snd_wnd", "srtt"];
        for word in LinePart::words(self.fields.text) {
            let word = LinePart { at: self.fields.at + word.at, ..word };
            let Some((name, _)) = word.text.split_once('=') else { continue };
            let value = word.skip_bytes(name.len() + 1);
            match name {
                "src" => src = Some(end(value, "src")?),
                "dest" => dst = Some(end(value, "dest")?),
                "data_len" => row.data_len = value.number("data_len")?,
                "snd_nxt" => row.snd_nxt = hex(value, "snd_nxt")?,
                "snd_una" => row.snd_una = hex(value, "snd_una")?,
                "snd_cwnd" => row.snd_cwnd = value.number("snd_cwnd")?,
                "ssthresh" => row.ssthresh = threshold(value.number("ssthresh")?),
                "snd_wnd" => row.snd_wnd = value.number("snd_wnd")?,
                "srtt" => {
                    row.srtt = Duration::from_micros(u64::from(value.number::<u32>("srtt")?));
                }
                "rcv_wnd" => row.rcv_wnd = Some(value.number("rcv_wnd")?),
                _ => continue,
            }
            due.retain(|due| *due != name);
        }
        if let Some(name) = due.first() {
            let skip_bytes = self.fields.at + self.fields.text.len();
            return Err((skip_bytes, LineFault::Missing { name }));
        }
        row.ends = src.zip(dst).map(|(src, dst)| Endpoints { src, dst });
        Ok(row)
    }
}

/// Parses a line of `/proc/net/tcpprobe`: ten words, or eleven with the receive window. `None` if
/// it does not begin like one.
pub(super) fn proc_row(line: &str) -> Option<RowResult<TcpProbeRow>> {
    let words: Vec<LinePart<'_>> = LinePart::words(line).take(12).collect();
    let begins = words.len() >= 3
        && decimal(words[0].text, 1).is_some()
        && words[1].text.parse::<SocketAddr>().is_ok();
    begins.then(|| {
        const NAMES: [&str; 10] = [
            "time", "src", "dst", "length", "snd_nxt", "snd_una", "snd_cwnd", "ssthresh",
            "snd_wnd", "srtt",
        ];
        if let Some(name) = NAMES.get(words.len()) {
            return Err((line.len(), LineFault::Missing { name }));
        }
        let (src, dst) = (end(words[1], "src")?, end(words[2], "dst")?);
        Ok(TcpProbeRow {
            at: seconds(words[0], "seconds")?,
            ends: Some(Endpoints { src, dst }),
            data_len: words[3].number("length")?,
            snd_nxt: hex(words[4], "snd_nxt")?,
            snd_una: hex(words[5], "snd_una")?,
            snd_cwnd: words[6].number("snd_cwnd")?,
            ssthresh: threshold(words[7].number("ssthresh")?),
            snd_wnd: words[8].number("snd_wnd")?,
            srtt: Duration::from_micros(u64::from(words[9].number::<u32>("srtt")?)),
            rcv_wnd: words.get(10).map(|word| word.number("rcv_wnd")).transpose()?,
            ..EMPTY
        })
    })
}

/// Index of each column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ColumnOrder([usize; 10]);

const COLUMNS: [&str; 10] = [
    "t_us", "flow", "data_len", "snd_una", "snd_nxt", "snd_cwnd", "ssthresh", "snd_wnd", "srtt_us",
    "rcv_wnd",
];

impl ColumnOrder {
    /// Parses the header, if this line names all columns.
    pub(super) fn of(line: &str) -> Option<Self> {
        if !line.starts_with(COLUMNS[0]) {
            return None;
        }
        let mut columns = [0; 10];
        for (place, name) in columns.iter_mut().zip(COLUMNS) {
            *place = line.split(',').position(|column| column == name)?;
        }
        Some(Self(columns))
    }

    pub(super) fn row(&self, line: &str) -> RowResult<TcpProbeRow> {
        let cell = |n: usize| {
            let (mut at, mut rest) = (0, line);
            for _ in 0..self.0[n] {
                let Some((before, skip_bytes)) = rest.split_once(',') else {
                    return Err((line.len(), LineFault::Missing { name: COLUMNS[n] }));
                };
                at += before.len() + 1;
                rest = skip_bytes;
            }
            Ok(LinePart { at, text: rest.split(',').next().unwrap_or_default() })
        };
        let number = |n: usize| cell(n)?.number::<u32>(COLUMNS[n]);
        let time = cell(0)?;
        let at = decimal(time.text, 1_000)
            .ok_or_else(|| (time.at, LineFault::value("t_us", time.text, "microseconds")))?;
        Ok(TcpProbeRow {
            at: Duration::from_nanos(at),
            flow: Some(cell(1)?.number("flow")?),
            data_len: number(2)?,
            snd_una: number(3)?,
            snd_nxt: number(4)?,
            snd_cwnd: number(5)?,
            ssthresh: threshold(number(6)?),
            snd_wnd: number(7)?,
            srtt: Duration::from_micros(u64::from(number(8)?)),
            rcv_wnd: Some(number(9)?),
            ..EMPTY
        })
    }
}
