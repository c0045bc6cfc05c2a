//! Converts tcpdump's lines to packets: names become addresses ([`HostNames`]), relative sequence
//! numbers become absolute.

use std::collections::BTreeMap;
use std::io::Read;
use std::net::SocketAddr;

use diagnose::CapturedPacket;
use packet::wire::Endpoints;
use packet::{Flags, Options, SackBlock, SackBlocks, Segment, SynOptions};
use trace::tcpdump::{LineOptions, SeqNumbering, TcpdumpLine, TcpdumpLines};
use units::{Instant, SeqNum};

use super::connection_key::CaptureSource;
use super::host_names::HostNames;
use super::table::ConnectionTable;
use super::{File, Reason};

/// Longest text read, in bytes.
const MAX_BYTES: u64 = 1 << 30;

/// Longest line, in bytes: those of packets have some hundreds.
const MAX_LINE: usize = 1 << 20;
/// Bytes that are read at a time.
const CHUNK: usize = 1 << 16;

/// Reads a text up to its bound or a line that is none of tcpdump's: a packed file of a few kilobytes may have a line of
/// gigabytes.
fn bounded_lines(mut input: impl Read, file: &mut File) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // Begin of the last line.
    let mut begin = 0;
    loop {
        let from = bytes.len();
        if input.by_ref().take(CHUNK as u64).read_to_end(&mut bytes)? == 0 {
            break;
        }
        if let Some(newline) = bytes[from..].iter().rposition(|&byte| byte == b'\n') {
            begin = from + newline + 1;
        }
        if bytes.len() - begin > MAX_LINE {
            file.problems.push(&format!(
                "byte {begin}: a line of more than 1 MiB; the rest of the file is ignored"
            ));
            bytes.truncate(begin);
            return Ok(bytes);
        }
    }
    if bytes.len() as u64 == MAX_BYTES {
        file.problems.push(&format!("byte {MAX_BYTES}: the rest of the file is ignored"));
    }
    Ok(bytes)
}

pub(super) fn read(
    input: impl Read,
    number: usize,
    file: &mut File,
    table: &mut ConnectionTable,
    hosts: &mut HostNames,
) -> Result<(), Reason> {
    let bytes = bounded_lines(input.take(MAX_BYTES), file).map_err(Reason::Read)?;
    let text = String::from_utf8_lossy(&bytes);
    let point = CaptureSource { file: number as u32, interface: 0 };
    let mut has_names = false;
    let mut bases = BTreeMap::new();
    for line in TcpdumpLines::new(&text) {
        let line = match line {
            Ok(line) => line,
            Err(error) => {
                file.problems.push(&error);
                break;
            }
        };
        let ends = [line.src, line.dst].map(|end| hosts.end(end, line.ip));
        let [Some((src, names_src)), Some((dst, names_dst))] = ends else {
            let host = if ends[0].is_none() { line.src.host } else { line.dst.host };
            file.problems.push(&format!("line {}: `{host}` has more than 65536 ports", line.line));
            break;
        };
        let between = Endpoints { src, dst };
        has_names |= names_src || names_dst;
        file.frames += 1;
        file.tcp += 1;
        let begins = *file.begins.get_or_insert_with(|| {
            table.file_begins(number, line.at);
            line.at
        });
        let segment = segment(&line, between, &mut bases);
        let index = table.packet(
            point,
            between,
            CapturedPacket {
                at: Instant::from_nanos(line.at.saturating_sub(begins).as_nanos()),
                frame: line.line as u64,
                segment,
                captured: segment.wire_len().get() as u32,
                id: 0,
                ttl: 0,
                options_cut: false,
            },
            0,
        );
        if has_names {
            table.name(index, |end| hosts.text(end));
        }
    }
    if file.frames == 0 {
        let problem = file.problems.first.first().cloned();
        return Err(Reason::Nothing { kind: file.kind, problem });
    }
    Ok(())
}

/// Origins of the sequence numbers of a connection.
#[derive(Debug, Clone, Copy)]
struct Bases {
    /// Initial sequence numbers, or the first captured ones, of the lower and the higher address.
    isn: [u32; 2],
    /// End of the highest sequence number that each has sent.
    next: [u32; 2],
}

fn segment(
    line: &TcpdumpLine<'_>,
    between: Endpoints,
    all: &mut BTreeMap<(SocketAddr, SocketAddr), Bases>,
) -> Segment {
    let (own, peer) = if between.src <= between.dst { (0, 1) } else { (1, 0) };
    let key = if own == 0 { (between.src, between.dst) } else { (between.dst, between.src) };
    let seq = line.seq.map_or(0, |range| range.start);
    let ack = line.ack.unwrap_or(0);
    let syn = line.flags.has(Flags::SYN);
    let base = all.entry(key).or_insert_with(|| {
        // Without a handshake tcpdump prints the first packet with absolute numbers, and later ones
        // relative to it.
        let mut isn = [0; 2];
        (isn[own], isn[peer]) = (seq, line.ack.map_or(0, |ack| ack.wrapping_sub(1)));
        Bases { isn, next: isn }
    });
    if syn {
        base.isn[own] = seq;
        base.next[own] = seq;
        if line.ack.is_some() {
            base.isn[peer] = ack.wrapping_sub(1);
        }
    }
    let relative = match line.numbers {
        SeqNumbering::Absolute => false,
        SeqNumbering::Relative => true,
        // Of the two interpretations, the correct one is nearer to the beginning.
        SeqNumbering::Unknown => ack.wrapping_sub(base.isn[peer]) >= ack,
    };
    let isn = base.isn;
    let place = |end: usize, number: u32| {
        SeqNum(if relative { number.wrapping_add(isn[end]) } else { number })
    };
    // A pure ACK has no sequence number in the text: it is the next one.
    let seq = line.seq.map_or(SeqNum(base.next[own]), |range| place(own, range.start));
    let marks = u32::from(syn) + u32::from(line.flags.has(Flags::FIN));
    let end = seq.0.wrapping_add(line.length).wrapping_add(marks);
    if end.wrapping_sub(base.next[own]) < 1 << 31 {
        base.next[own] = end;
    }
    let options = line.options.unwrap_or_default();
    Segment {
        ip: line.ip,
        flags: line.flags,
        seq,
        ack: line.ack.map_or(SeqNum(0), |ack| place(peer, ack)),
        payload: line.length,
        window: line.window,
        timestamps: options.timestamps,
        options: if syn { syn_options(&options) } else { sacks(&options, |n| place(peer, n)) },
        ..Segment::default()
    }
}

fn syn_options(options: &LineOptions) -> Options {
    Options::Syn(SynOptions {
        mss: options.mss.unwrap_or(0),
        window_scale: options.window_scale,
        sack_permitted: options.sack_permitted,
        extras: options.extras,
        ..SynOptions::default()
    })
}

fn sacks(options: &LineOptions, place: impl Fn(u32) -> SeqNum) -> Options {
    let mut blocks = SackBlocks::EMPTY;
    for block in options.sack.as_slice() {
        blocks.push(SackBlock { left: place(block.left.0), right: place(block.right.0) });
    }
    blocks.into()
}
