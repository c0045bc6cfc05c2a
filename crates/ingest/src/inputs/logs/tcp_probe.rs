//! Linux' tcp_probe.

use std::io::{self, BufRead};
use std::net::SocketAddr;

use diagnose::StateSample;
use logs::tcp_probe::{Item, Reader, Row};
use units::Bytes;

use super::super::File;
use super::super::table::Table;
use super::{Anchor, Logs};

pub(super) fn read(input: impl BufRead, file: &mut File, table: &Table) -> io::Result<Logs> {
    let mut logs = Logs::default();
    let mut strangers = 0_u64;
    for item in Reader::new(input) {
        let row = match item? {
            Item::Problem(problem) => {
                file.problems.tell(&problem);
                continue;
            }
            Item::Row(row) => row,
        };
        file.frames += 1;
        // Columns name the sender by its port alone: the captures tell who that is.
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
        file.problems.tell(&format!("{strangers} rows do not say whose they are"));
    }
    Ok(logs)
}

/// Without a capture, a port stands for a connection.
fn own_ends(row: &Row) -> Option<(SocketAddr, SocketAddr)> {
    let nobody = |port| SocketAddr::from(([0, 0, 0, 0], port));
    row.flow.map(|port| (nobody(port), nobody(0)))
}

/// A row stands before the packet that came: what it acknowledged shows in the next row.
fn anchors(rows: &mut Vec<(Anchor, u64)>) {
    let befores: Vec<_> = core::mem::take(rows);
    for pair in befores.windows(2) {
        let [(before, at), (after, _)] = pair else { continue };
        if before != after {
            rows.push((*after, *at));
        }
    }
}

fn sample(row: &Row, mss: u64) -> StateSample {
    let packets = |n: u32| Bytes(u64::from(n) * mss);
    StateSample {
        // Windows of Linux are in packets.
        cwnd: Some(packets(row.snd_cwnd)),
        ssthresh: row.ssthresh.map(packets),
        srtt: Some(row.srtt).filter(|srtt| !srtt.is_zero()),
        inflight: Some(Bytes(u64::from(row.snd_nxt.wrapping_sub(row.snd_una)))),
        snd_wnd: Some(Bytes(u64::from(row.snd_wnd))),
        ..Logs::blank()
    }
}
