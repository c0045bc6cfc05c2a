//! Writes a capture of many connections at a client, of which some fail, to standard output.
//!
//!     cargo run --workspace --all-features --example many_connections -- mixed 1000 > many.pcap
//!
//! The kinds are `syn` (each is one SYN), `request` (a request and a response in 20 ms,
//! 192.168.0.5:443) and `mixed`: of each hundred connections three wait 3 s for the answer to their
//! SYN (192.168.0.1:389), one is refused (192.168.0.2:8080), one has no answer (192.168.0.3:443), one
//! is reset by something between the hosts (192.168.0.4:443), and one is a download of 146 kB; the
//! others are requests.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::SocketAddr;

use packet::wire::{Endpoints, emit};
use packet::{Dir, Flags, Options, Segment, SynOptions};
use units::{Offset, SeqNum};

/// Interval between new connections, in microseconds.
const EVERY: u64 = 2_000;
/// Round trip, in microseconds.
const RTT: u64 = 20_000;
/// Time to live of the servers' packets, and of a device between.
const TTL: [u8; 2] = [60, 62];
const MSS: u32 = 1_460;

/// Outcome of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    LateAnswer,
    Refused,
    Unanswered,
    ResetBetween,
    Download,
    Exchange,
    Syn,
}

/// What the connections of a capture are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CaptureKind {
    Syn,
    Request,
    Mixed,
}

impl Outcome {
    const fn of(kind: CaptureKind, number: u64) -> Self {
        match kind {
            CaptureKind::Syn => return Self::Syn,
            CaptureKind::Request => return Self::Exchange,
            CaptureKind::Mixed => {}
        }
        match number % 100 {
            10 | 40 | 70 => Self::LateAnswer,
            20 => Self::Refused,
            30 => Self::Unanswered,
            50 => Self::ResetBetween,
            60 => Self::Download,
            _ => Self::Exchange,
        }
    }

    fn server(self) -> SocketAddr {
        let (host, port) = match self {
            Self::LateAnswer => (1, 389),
            Self::Refused => (2, 8_080),
            Self::Unanswered => (3, 443),
            Self::ResetBetween => (4, 443),
            Self::Download | Self::Exchange | Self::Syn => (5, 443),
        };
        SocketAddr::from(([192, 168, 0, host], port))
    }
}

/// A packet: microseconds after the begin of its connection, segment and time to live.
type TimedSegment = (u64, Segment, u8);

fn packets(outcome: Outcome) -> Vec<TimedSegment> {
    let (ask, answer) = (Dir::Forward, Dir::Reverse);
    let segment = |dir, flags, seq: u32, ack: u32, payload| Segment {
        dir,
        flags,
        seq: SeqNum(seq),
        ack: SeqNum(ack),
        window: 60_000,
        payload,
        ..Segment::default()
    };
    let options = Options::Syn(SynOptions {
        mss: MSS as u16,
        window_scale: Some(7),
        sack_permitted: true,
        ..SynOptions::default()
    });
    let syn = Segment { options, ..segment(ask, Flags::SYN, 0, 0, 0) };
    let client = |at: u64, segment| (at, segment, 64);
    let server = |at: u64, segment| (at, segment, TTL[0]);
    let syn_ack = Segment { options, ..segment(answer, Flags::SYN | Flags::ACK, 0, 1, 0) };
    let push = Flags::ACK | Flags::PSH;
    let repeated = [0, 1_000_000, 3_000_000].map(|at| client(at, syn));
    let mut all = match outcome {
        Outcome::Syn => return vec![client(0, syn)],
        Outcome::Unanswered => return repeated.to_vec(),
        Outcome::Refused => {
            let refusal = segment(answer, Flags::RST | Flags::ACK, 0, 1, 0);
            return vec![client(0, syn), server(RTT, refusal)];
        }
        Outcome::LateAnswer => repeated.to_vec(),
        _ => vec![client(0, syn)],
    };
    let mut at = all.last().map_or(0, |last| last.0) + RTT;
    all.push(server(at, syn_ack));
    all.push(client(at + 10, segment(ask, Flags::ACK, 1, 1, 0)));
    all.push(client(at + 20, segment(ask, push, 1, 1, 300)));
    at += RTT;
    // Windows of slow start: ten segments, then twice as many each time.
    let (mut window, mut next) = (10, 1);
    let mut left = if outcome == Outcome::Download { 100 } else { 3 };
    while left > 0 {
        let count = left.min(window);
        for n in 0..count {
            at += 30;
            all.push(server(at, segment(answer, Flags::ACK, next, 301, MSS)));
            next += MSS;
            if n % 2 == 1 || n + 1 == count {
                all.push(client(at + 5, segment(ask, Flags::ACK, 301, next, 0)));
            }
        }
        left -= count;
        window *= 2;
        at += if left > 0 { RTT } else { 0 };
    }
    if outcome == Outcome::ResetBetween {
        all.push(client(at + 1_000, segment(ask, push, 301, next, 300)));
        all.push((at + 9_000, segment(answer, Flags::RST, next, 0, 0), TTL[1]));
        return all;
    }
    all.push(client(at + 50, segment(ask, Flags::ACK | Flags::FIN, 301, next, 0)));
    all.push(server(at + 50 + RTT, segment(answer, Flags::ACK | Flags::FIN, next, 302, 0)));
    all.push(client(at + 60 + RTT, segment(ask, Flags::ACK, 302, next + 1, 0)));
    all
}

/// Writes a pcap of `connections`, with 80 bytes of each packet, in order of time.
///
/// # Errors
/// Those of `out`.
pub(crate) fn write_capture(
    kind: CaptureKind,
    connections: u64,
    mut out: impl Write,
) -> io::Result<()> {
    // pcap, microseconds, raw IP (link type 101).
    for word in [0xa1b2_c3d4_u32, 2 | 4 << 16, 0, 0, 65_535, 101] {
        out.write_all(&word.to_le_bytes())?;
    }
    let mut coming: BTreeMap<(u64, u64, usize), (Segment, u8)> = BTreeMap::new();
    let mut begun = 0;
    loop {
        let due = coming.first_key_value().map(|(key, _)| key.0);
        if begun < connections && due.is_none_or(|due| due >= begun * EVERY) {
            for (n, (at, segment, ttl)) in packets(Outcome::of(kind, begun)).into_iter().enumerate()
            {
                coming.insert((begun * EVERY + at, begun, n), (segment, ttl));
            }
            begun += 1;
            continue;
        }
        let Some(((at, number, _), (segment, ttl))) = coming.pop_first() else { return Ok(()) };
        let host = [10, 1, (number >> 14) as u8, (number >> 6) as u8];
        let src = SocketAddr::from((host, 20_000 + (number & 63) as u16));
        let ends = Endpoints { src, dst: Outcome::of(kind, number).server() };
        let ends = if segment.dir == Dir::Reverse { ends.reversed() } else { ends };
        let mut packet = Vec::new();
        emit(&segment, &ends, 0, Offset(0), &mut packet).map_err(io::Error::other)?;
        // The IPv4 checksum, which no reader of captures checks, stays that of the old value.
        packet[8] = ttl;
        let whole = packet.len() as u32;
        packet.truncate(80);
        let kept = packet.len() as u32;
        for word in [(at / 1_000_000) as u32, (at % 1_000_000) as u32, kept, whole] {
            out.write_all(&word.to_le_bytes())?;
        }
        out.write_all(&packet)?;
    }
}

#[allow(dead_code, reason = "a test uses the capture alone")]
fn main() -> io::Result<()> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let kind = match arguments.first().map(String::as_str) {
        Some("syn") => Some(CaptureKind::Syn),
        Some("request") => Some(CaptureKind::Request),
        Some("mixed") => Some(CaptureKind::Mixed),
        _ => None,
    };
    let count = arguments.get(1).and_then(|count| count.parse().ok());
    let (Some(kind), Some(count)) = (kind, count) else {
        return Err(io::Error::other(
            "expected syn, request or mixed, and a number of connections",
        ));
    };
    write_capture(kind, count, io::BufWriter::new(io::stdout().lock()))
}
