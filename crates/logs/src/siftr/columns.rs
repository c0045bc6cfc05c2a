//! Parses the cells of a line, with their names and positions.

use std::net::{IpAddr, SocketAddr};

use units::Duration;

use super::NANOS_PER_SECOND;
use super::header::{SiftrGeneration, SiftrHeader};
use super::problem::{SiftrProblemKind, short};
use super::row::SiftrRow;
use trace::pcapng::PacketDirection;

/// A problem and its byte offset in the line.
pub(super) type ColumnError = (usize, SiftrProblemKind);

/// Parses a row of text.
pub(super) fn row(line: &str, header: &SiftrHeader) -> Result<SiftrRow, ColumnError> {
    let found = line.split(',').count();
    let (expected, fits) = match header.generation {
        SiftrGeneration::V1_2 => ("26 to 28", (26..=28).contains(&found)),
        SiftrGeneration::V1_3 => ("27", found == 27),
        SiftrGeneration::V2 => ("18", found == 18),
    };
    if !fits {
        return Err((0, SiftrProblemKind::Columns { found, expected }));
    }
    let mut cells = Cells { line, at: 0 };
    match header.generation {
        SiftrGeneration::V2 => cells.row_of_two(header),
        _ => cells.row_of_one(header),
    }
}

struct Cells<'a> {
    line: &'a str,
    at: usize,
}

impl Cells<'_> {
    fn row_of_one(&mut self, header: &SiftrHeader) -> Result<SiftrRow, ColumnError> {
        let old = header.generation == SiftrGeneration::V1_2;
        let way = self.way("direction")?;
        let hash = if old { Some(self.hex("hash")?) } else { None };
        let at = self.time()?;
        let local = self.end("local address", "local port")?;
        let remote = self.end("foreign address", "foreign port")?;
        let (ssthresh, cwnd) = (self.number("ssthresh")?, self.number("cwnd")?);
        let third = self.number(if old { "bwnd" } else { "t_flags2" })?;
        let (bwnd, t_flags2) = if old { (Some(third), None) } else { (None, Some(third)) };
        let mut row = SiftrRow {
            way,
            at,
            local: Some(local),
            remote: Some(remote),
            hash,
            ssthresh,
            cwnd,
            bwnd,
            t_flags2,
            snd_wnd: self.number("snd_wnd")?,
            rcv_wnd: self.number("rcv_wnd")?,
            snd_scale: Some(self.small("snd_scale")?),
            rcv_scale: Some(self.small("rcv_scale")?),
            state: Some(self.number("state")?),
            mss: Some(self.number("mss")?),
            ..SiftrRow::default()
        };
        let srtt = self.number("srtt")?;
        row.sack = Some(self.number("sack")? != 0);
        row.t_flags = self.number("t_flags")?;
        let rto = self.number("rto")?;
        (row.srtt, row.rto) = if old {
            let scaled = header.hz.zip(header.rtt_scale);
            let unit = scaled.map(|(hz, scale)| u64::from(hz) * u64::from(scale));
            (unit.map(|unit| ticks(srtt, unit)), header.hz.map(|hz| ticks(rto, hz.into())))
        } else {
            let micros = |n: u32| Some(Duration::from_micros(n.into()));
            (micros(srtt), micros(rto))
        };
        row.snd_hiwat = self.number("sndbuf_hiwat")?;
        row.snd_cc = self.number("sndbuf_cc")?;
        row.rcv_hiwat = self.number("rcvbuf_hiwat")?;
        row.rcv_cc = self.number("rcvbuf_cc")?;
        row.in_flight = self.number("inflight")?;
        row.segqlen = self.number("segqlen")?;
        if self.more() {
            row.flow_id = Some(self.number("flowid")?);
        }
        if self.more() {
            row.flow_type = Some(self.number("flowtype")?);
        }
        Ok(row)
    }

    fn row_of_two(&mut self, header: &SiftrHeader) -> Result<SiftrRow, ColumnError> {
        let flow_id = Some(self.hex("flowid")?);
        let way = self.way("direction")?;
        let mut words = [0; 16];
        for (word, name) in words.iter_mut().zip(TWO) {
            *word = self.hex(name)?;
        }
        Ok(row_of_words(flow_id, way, &words, header))
    }

    /// The next cell and its offset.
    fn next(&mut self) -> (usize, &str) {
        let rest = self.line.get(self.at..).unwrap_or_default();
        let cell = rest.split(',').next().unwrap_or_default();
        let at = self.at;
        self.at += cell.len() + 1;
        (at, cell)
    }

    fn more(&self) -> bool {
        self.at <= self.line.len()
    }

    fn parse<T>(
        &mut self,
        name: &'static str,
        expected: &'static str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, ColumnError> {
        let (at, cell) = self.next();
        parse(cell)
            .ok_or_else(|| (at, SiftrProblemKind::Cell { name, found: short(cell), expected }))
    }

    fn number(&mut self, name: &'static str) -> Result<u32, ColumnError> {
        self.parse(name, "a number up to 4294967295", |cell| cell.parse().ok())
    }

    fn small(&mut self, name: &'static str) -> Result<u8, ColumnError> {
        self.parse(name, "a number up to 255", |cell| cell.parse().ok())
    }

    fn hex(&mut self, name: &'static str) -> Result<u32, ColumnError> {
        self.parse(name, "up to eight hexadecimal digits", |cell| {
            let digits = cell.strip_prefix("0x").unwrap_or(cell);
            // from_str_radix would accept a sign.
            let plain = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
            plain.then(|| u32::from_str_radix(digits, 16).ok()).flatten()
        })
    }

    fn way(&mut self, name: &'static str) -> Result<PacketDirection, ColumnError> {
        self.parse(name, "i or o", |cell| match cell {
            "i" => Some(PacketDirection::In),
            "o" => Some(PacketDirection::Out),
            _ => None,
        })
    }

    fn time(&mut self) -> Result<Duration, ColumnError> {
        self.parse("time", "seconds with six decimals", |cell| {
            let (seconds, micros) = cell.split_once('.')?;
            if micros.len() != 6 {
                return None;
            }
            let nanos = seconds.parse::<u64>().ok()?.checked_mul(NANOS_PER_SECOND)?;
            let micros = u64::from(micros.parse::<u32>().ok()?);
            nanos.checked_add(micros * 1_000).map(Duration::from_nanos)
        })
    }

    fn end(
        &mut self,
        address: &'static str,
        port: &'static str,
    ) -> Result<SocketAddr, ColumnError> {
        let ip: IpAddr = self.parse(address, "an IP address", |cell| cell.parse().ok())?;
        let port = self.parse(port, "a port", |cell| cell.parse().ok())?;
        Ok(SocketAddr::new(ip, port))
    }
}

/// Names of the columns of siftr2 after the first two.
const TWO: [&str; 16] = [
    "tval",
    "cwnd",
    "ssthresh",
    "srtt",
    "data_sz",
    "snd_wnd",
    "rcv_wnd",
    "t_flags",
    "t_flags2",
    "rto",
    "sndbuf_hiwat",
    "sndbuf_cc",
    "rcvbuf_hiwat",
    "rcvbuf_cc",
    "pipe",
    "segqlen",
];

/// Builds a row of siftr2 from its sixteen numbers.
pub(super) fn row_of_words(
    flow_id: Option<u32>,
    way: PacketDirection,
    words: &[u32; 16],
    header: &SiftrHeader,
) -> SiftrRow {
    let micros = |n: u32| Some(Duration::from_micros(n.into()));
    SiftrRow {
        way,
        at: header.enabled + Duration::from_millis(words[0].into()),
        flow_id,
        cwnd: words[1],
        ssthresh: words[2],
        srtt: micros(words[3]),
        payload: Some(words[4]),
        snd_wnd: words[5],
        rcv_wnd: words[6],
        t_flags: words[7],
        t_flags2: Some(words[8]),
        rto: micros(words[9]),
        snd_hiwat: words[10],
        snd_cc: words[11],
        rcv_hiwat: words[12],
        rcv_cc: words[13],
        in_flight: words[14],
        segqlen: words[15],
        ..SiftrRow::default()
    }
}

/// Converts `n` units of `1 / per_second` seconds.
fn ticks(n: u32, per_second: u64) -> Duration {
    let nanos = (u128::from(n) * u128::from(NANOS_PER_SECOND) + u128::from(per_second) / 2)
        / u128::from(per_second.max(1));
    Duration::from_nanos(nanos as u64)
}
