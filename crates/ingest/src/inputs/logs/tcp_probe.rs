//! Linux' tcp_probe.

use std::io::{self, BufRead};
use std::net::SocketAddr;

use diagnose::StateSample;
use logs::tcp_probe::{TcpProbeItem, TcpProbeReader, TcpProbeRow};
use units::Bytes;

use super::super::File;
use super::super::table::ConnectionTable;
use super::{Anchor, LogFile};

pub(super) fn read(
    input: impl BufRead,
    file: &mut File,
    table: &ConnectionTable,
) -> io::Result<LogFile> {
    let mut logs = LogFile::default();
    let mut strangers = 0_u64;
    for item in TcpProbeReader::new(input) {
        let row = match item? {
            TcpProbeItem::Problem(problem) => {
                file.problems.push(&problem);
                continue;
            }
            TcpProbeItem::Row(row) => row,
        };
        file.frames += 1;
        // The column format has only the port of the sender: the captures give its address.
        let named = row.ends.or_else(|| row.flow.and_then(|port| table.by_port(port)));
        let Some(ends) = named.map(|ends| (ends.src, ends.dst)).or_else(|| own_ends(&row)) else {
            strangers += 1;
            continue;
        };
        let at = row.at.as_nanos();
        if let Some(log) = logs.word(ends, Some(at), sample(&row, table.mss(ends.0, ends.1))) {
            log.relative = row.flow.is_some();
            log.anchors.push((Anchor::Acked(row.snd_una), at));
        }
    }
    for log in logs.by_ends.values_mut() {
        anchors(&mut log.anchors);
    }
    if strangers > 0 {
        file.problems.push(&format!("{strangers} rows match no connection"));
    }
    Ok(logs)
}

/// Without a capture, a port identifies a connection.
fn own_ends(row: &TcpProbeRow) -> Option<(SocketAddr, SocketAddr)> {
    let no_host = |port| SocketAddr::from(([0, 0, 0, 0], port));
    row.flow.map(|port| (no_host(port), no_host(0)))
}

/// A row has the state before its packet: the effect of the acknowledgment is in the next row.
fn anchors(rows: &mut Vec<(Anchor, u64)>) {
    let befores: Vec<_> = core::mem::take(rows);
    for pair in befores.windows(2) {
        let [(before, at), (after, _)] = pair else { continue };
        if before != after {
            rows.push((*after, *at));
        }
    }
}

fn sample(row: &TcpProbeRow, mss: u64) -> StateSample {
    let packets = |n: u32| Bytes(u64::from(n) * mss);
    StateSample {
        // Windows of Linux are in packets.
        cwnd: Some(packets(row.snd_cwnd)),
        ssthresh: row.ssthresh.map(packets),
        srtt: Some(row.srtt).filter(|srtt| !srtt.is_zero()),
        inflight: Some(Bytes(u64::from(row.snd_nxt.wrapping_sub(row.snd_una)))),
        snd_wnd: Some(Bytes(u64::from(row.snd_wnd))),
        ..LogFile::blank()
    }
}
