//! Writes a log: header, rows, footer.

use std::io::{self, Write};

use units::Duration;

use super::NANOS_PER_SECOND;
use super::header::{SiftrFooter, SiftrGeneration, SiftrHeader};
use super::row::SiftrRow;
use trace::pcapng::PacketDirection;

/// Writes a text log.
#[derive(Debug)]
pub struct SiftrWriter<W> {
    out: W,
    header: SiftrHeader,
}

impl<W: Write> SiftrWriter<W> {
    /// Writes the first line.
    ///
    /// # Errors
    ///
    /// Those of `out`; `InvalidInput` for binary rows, and for 1.2 without hz and scale.
    pub fn new(mut out: W, header: &SiftrHeader) -> io::Result<Self> {
        if header.binary {
            return Err(invalid("binary rows are not written"));
        }
        let (seconds, micros) = split(header.enabled);
        write!(
            out,
            "enable_time_secs={seconds}\tenable_time_usecs={micros:06}\tsiftrver={}",
            header.version
        )?;
        if header.generation == SiftrGeneration::V1_2 {
            let (Some(hz), Some(scale)) = (header.hz, header.rtt_scale) else {
                return Err(invalid("rows of 1.2 need hz and tcp_rtt_scale"));
            };
            write!(out, "\thz={hz}\ttcp_rtt_scale={scale}")?;
        }
        let (sysname, sysver) = (plain(&header.sysname), plain(&header.sysver));
        write!(out, "\tsysname={sysname}\tsysver={sysver}\tipmode={}", header.ipmode.unwrap_or(4))?;
        let format = if header.generation == SiftrGeneration::V2 { "\trec_fmt=txt" } else { "" };
        writeln!(out, "{format}")?;
        Ok(Self { out, header: header.clone() })
    }

    /// Writes a row; fields without a column in this version are omitted, and unknown values are 0.
    ///
    /// # Errors
    ///
    /// Those of `out`; `InvalidInput` without the addresses, or the flow id, that a row of this
    /// version begins with.
    pub fn row(&mut self, row: &SiftrRow) -> io::Result<()> {
        match self.header.generation {
            SiftrGeneration::V1_2 | SiftrGeneration::V1_3 => self.row_of_one(row),
            SiftrGeneration::V2 => self.row_of_two(row),
        }
    }

    fn row_of_one(&mut self, row: &SiftrRow) -> io::Result<()> {
        let (Some(local), Some(remote)) = (row.local, row.remote) else {
            return Err(invalid("a row of siftr 1 needs its addresses"));
        };
        let old = self.header.generation == SiftrGeneration::V1_2;
        let (seconds, micros) = split(row.at);
        let out = &mut self.out;
        write!(out, "{},", letter(row.way))?;
        if old {
            write!(out, "{:#010x},", row.hash.unwrap_or(0))?;
        }
        write!(out, "{seconds}.{micros:06},{},{},", local.ip(), local.port())?;
        write!(out, "{},{},{},{},", remote.ip(), remote.port(), row.ssthresh, row.cwnd)?;
        let third = if old { row.bwnd } else { row.t_flags2 };
        write!(out, "{},{},{},", third.unwrap_or(0), row.snd_wnd, row.rcv_wnd)?;
        let (snd, rcv) = (row.snd_scale.unwrap_or(0), row.rcv_scale.unwrap_or(0));
        write!(out, "{snd},{rcv},{},{},", row.state.unwrap_or(0), row.mss.unwrap_or(0))?;
        // Checked when the header was written.
        let hz = u64::from(self.header.hz.unwrap_or(0));
        let scale = u64::from(self.header.rtt_scale.unwrap_or(0));
        let (srtt_unit, rto_unit) = if old { (hz * scale, hz) } else { (1_000_000, 1_000_000) };
        let srtt = parts(row.srtt, srtt_unit);
        let sack = u8::from(row.sack.unwrap_or(false));
        write!(out, "{srtt},{sack},{},{},", row.t_flags, parts(row.rto, rto_unit))?;
        write!(out, "{},{},{},{},", row.snd_hiwat, row.snd_cc, row.rcv_hiwat, row.rcv_cc)?;
        write!(out, "{},{}", row.in_flight, row.segqlen)?;
        if !old {
            let (id, kind) = (row.flow_id.unwrap_or(0), row.flow_type.unwrap_or(0));
            write!(out, ",{id},{kind}")?;
        }
        writeln!(out)
    }

    fn row_of_two(&mut self, row: &SiftrRow) -> io::Result<()> {
        let flow = row.flow_id.ok_or_else(|| invalid("a row of siftr2 needs its flow's number"))?;
        let since = row.at.saturating_sub(self.header.enabled).as_millis();
        write!(self.out, "{flow:08x},{}", letter(row.way))?;
        let words = [
            // The column has 32 bits and wraps, as in the kernel.
            since as u32,
            row.cwnd,
            row.ssthresh,
            parts(row.srtt, 1_000_000),
            row.payload.unwrap_or(0),
            row.snd_wnd,
            row.rcv_wnd,
            row.t_flags,
            row.t_flags2.unwrap_or(0),
            parts(row.rto, 1_000_000),
            row.snd_hiwat,
            row.snd_cc,
            row.rcv_hiwat,
            row.rcv_cc,
            row.in_flight,
            row.segqlen,
        ];
        for word in words {
            write!(self.out, ",{word:x}")?;
        }
        writeln!(self.out)
    }

    /// Writes the last line: counters in the order given, and the list of flows.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    pub fn footer(&mut self, footer: &SiftrFooter) -> io::Result<()> {
        let (seconds, micros) = split(footer.disabled);
        let out = &mut self.out;
        write!(out, "disable_time_secs={seconds}\tdisable_time_usecs={micros:06}")?;
        for (key, value) in footer.fields.iter().filter(|(key, _)| key != "flow_list") {
            write!(out, "\t{}={}", plain(key), plain(value))?;
        }
        write!(out, "\tflow_list=")?;
        for flow in &footer.flows {
            let (local, remote) = (flow.local, flow.remote);
            let ends = [(local.ip(), local.port()), (remote.ip(), remote.port())];
            let [(laddr, lport), (faddr, fport)] = ends;
            if self.header.generation == SiftrGeneration::V2 {
                let family = if local.is_ipv4() { 4 } else { 6 };
                write!(out, "{:08x},{family},", flow.id.unwrap_or(0))?;
                write!(out, "{laddr},{lport},{faddr},{fport}")?;
                for cell in &flow.rest {
                    write!(out, ",{}", plain(cell))?;
                }
                write!(out, ";")?;
            } else {
                write!(out, "{laddr};{lport}-{faddr};{fport},")?;
            }
        }
        writeln!(out)
    }

    /// Flushes and returns the output.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }
}

const fn letter(way: PacketDirection) -> char {
    match way {
        PacketDirection::In => 'i',
        PacketDirection::Out => 'o',
    }
}

/// Whole seconds and remaining microseconds.
const fn split(time: Duration) -> (u64, u64) {
    (time.as_nanos() / NANOS_PER_SECOND, time.as_nanos() % NANOS_PER_SECOND / 1_000)
}

/// Converts a duration to units of `1 / per_second` seconds, rounded; 0 if unknown.
fn parts(span: Option<Duration>, per_second: u64) -> u32 {
    let nanos = u128::from(span.unwrap_or_default().as_nanos());
    let second = u128::from(NANOS_PER_SECOND);
    let parts = (nanos * u128::from(per_second) + second / 2) / second;
    u32::try_from(parts).unwrap_or(u32::MAX)
}

/// Replaces the separators of cells in a text.
fn plain(text: &str) -> String {
    text.replace(['\t', '\n', '\r', '=', ',', ';'], " ")
}

fn invalid(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what)
}
