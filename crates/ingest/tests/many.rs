//! A capture of a hundred thousand connections, generated while it is read: the worst come first.
//!
//!     cargo test --release -p ackclock-ingest --test many -- --nocapture
//!
//! prints how long that takes; `/usr/bin/time -v` before the test program, how much memory.

use std::collections::VecDeque;
use std::io::Read;
use std::net::SocketAddr;
use std::time::Instant as TcpProbeClock;

use ackclock_ingest as ingest;
use ingest::diagnosis::{DiagnosisReport, TextStyle};
use ingest::inputs::InputFile;
use packet::wire::{Endpoints, emit};
use packet::{Dir, Flags, Options, Segment, SynOptions};
use scenario::ReportStyle;
use units::{Offset, SeqNum};

const CONNECTIONS: u64 = 100_000;
/// Interval between new connections, in microseconds.
const EVERY: u64 = 500;
/// Round trip of each, in microseconds.
const RTT: u64 = 20_000;
/// Connections in which a packet of the response is lost and retransmitted after this many
/// microseconds.
const STALLED: [(u64, u64); 3] = [(77_777, 5_000_000), (12_345, 3_000_000), (50_000, 1_000_000)];

/// Packets of one connection at the server: microseconds after its begin, and the segment.
fn packets(number: u64) -> Vec<(u64, Segment)> {
    let stall = STALLED.iter().find(|(stalled, _)| *stalled == number).map(|(_, us)| *us);
    let ack = Flags::ACK;
    let segment = |dir, flags, seq: u32, ack: u32, payload| Segment {
        dir,
        flags,
        seq: SeqNum(seq),
        ack: SeqNum(ack),
        window: 60_000,
        payload,
        ..Segment::default()
    };
    let (ask, answer) = (Dir::Forward, Dir::Reverse);
    let options = Options::Syn(SynOptions {
        mss: 1_460,
        window_scale: Some(7),
        sack_permitted: true,
        ..SynOptions::default()
    });
    let mut all = vec![
        (0, Segment { options, ..segment(ask, Flags::SYN, 0, 0, 0) }),
        (50, Segment { options, ..segment(answer, Flags::SYN | ack, 0, 1, 0) }),
        (RTT, segment(ask, ack, 1, 1, 0)),
        (RTT + 10, segment(ask, ack | Flags::PSH, 1, 1, 300)),
        (RTT + 100, segment(answer, ack, 1, 301, 1_460)),
        (RTT + 101, segment(answer, ack, 1_461, 301, 1_460)),
    ];
    let mut at = RTT + 100;
    if let Some(us) = stall {
        // The last packet is lost, and the timer detects it.
        all.push((at + 2, segment(answer, ack | Flags::PSH, 2_921, 301, 1_000)));
        all.push((at + RTT, segment(ask, ack, 301, 2_921, 0)));
        at += us;
    }
    all.push((at + 3, segment(answer, ack | Flags::PSH, 2_921, 301, 1_000)));
    all.push((at + RTT + 3, segment(ask, ack, 301, 3_921, 0)));
    all.push((at + RTT + 5, segment(ask, ack | Flags::FIN, 301, 3_921, 0)));
    all.push((at + RTT + 60, segment(answer, ack | Flags::FIN, 3_921, 302, 0)));
    all.push((at + 2 * RTT + 60, segment(ask, ack, 302, 3_922, 0)));
    all
}

fn ends(number: u64) -> Endpoints {
    let host = [10, 1, (number >> 14) as u8, (number >> 6) as u8];
    Endpoints {
        src: SocketAddr::from((host, 20_000 + (number & 63) as u16)),
        dst: SocketAddr::from(([10, 0, 0, 1], 443)),
    }
}

/// Generates the bytes of the capture on demand, in order of time.
#[derive(Default)]
struct Made {
    /// Future packets: time, connection, index; of a few connections at a time.
    coming: std::collections::BTreeMap<(u64, u64, usize), Segment>,
    begun: u64,
    bytes: VecDeque<u8>,
    frames: u64,
}

impl Made {
    fn new() -> Self {
        let mut made = Self::default();
        // pcap, microseconds, raw IP (link type 101).
        for word in [0xa1b2_c3d4_u32, 2 | 4 << 16, 0, 0, 65_535, 101] {
            made.bytes.extend(word.to_le_bytes());
        }
        made
    }

    fn more(&mut self) -> bool {
        let due = self.coming.first_key_value().map(|(key, _)| key.0);
        if self.begun < CONNECTIONS && due.is_none_or(|due| due >= self.begun * EVERY) {
            let (number, begin) = (self.begun, self.begun * EVERY);
            for (n, (at, segment)) in packets(number).into_iter().enumerate() {
                self.coming.insert((begin + at, number, n), segment);
            }
            self.begun += 1;
            return true;
        }
        let Some(((at, number, _), segment)) = self.coming.pop_first() else { return false };
        let mut ends = ends(number);
        if segment.dir == Dir::Reverse {
            ends = Endpoints { src: ends.dst, dst: ends.src };
        }
        let mut packet = Vec::new();
        emit(&segment, &ends, 0, Offset(0), &mut packet).unwrap();
        let whole = packet.len() as u32;
        packet.truncate(80);
        for word in [(at / 1_000_000) as u32, (at % 1_000_000) as u32, packet.len() as u32, whole] {
            self.bytes.extend(word.to_le_bytes());
        }
        self.bytes.extend(packet);
        self.frames += 1;
        true
    }
}

impl Read for Made {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        while self.bytes.len() < to.len() && self.more() {}
        self.bytes.read(to)
    }
}

#[test]
#[expect(clippy::print_stdout, clippy::disallowed_methods, reason = "prints the time")]
fn the_worst_of_a_hundred_thousand_connections_come_first() {
    let begin = TcpProbeClock::now();
    let source = InputFile { name: "many.pcap".to_owned(), bytes: Box::new(Made::new()) };
    let report = DiagnosisReport::read(vec![source], false).unwrap();
    let read = begin.elapsed();
    let file = &report.files[0];
    assert_eq!(file.connections.len() as u64, CONNECTIONS);
    assert_eq!(file.file.frames, CONNECTIONS * 11 + 2 * STALLED.len() as u64);
    let worst: Vec<_> = file.connections[..4]
        .iter()
        .map(|one| {
            (u64::from(one.stream.analysis().stream), one.primary, one.cost.as_millis() / 1_000)
        })
        .collect();
    let stalls = STALLED.map(|(number, us)| (number, Some("CC203"), us / 1_000_000));
    for (seen, stall) in worst.iter().zip(&stalls) {
        assert_eq!((seen.0, seen.1), (stall.0, stall.1), "{worst:?}");
        // One RTT of the stall would have passed anyway.
        assert!(seen.2 + 1 >= stall.2 && seen.2 <= stall.2, "{worst:?}");
    }
    assert_eq!(worst[3].2, 0, "{worst:?}");
    assert!(file.connections.is_sorted_by(|one, next| one.cost >= next.cost));
    let text = report.text(TextStyle { limit: 3, look: ReportStyle::Plain });
    let place = |number: u64| {
        text.find(&format!("\n{number:>4} ")).or(text.find(&format!("flow {number} ")))
    };
    let places: Vec<_> = stalls.iter().map(|(number, ..)| place(*number)).collect();
    assert!(
        places.iter().all(Option::is_some) && places.is_sorted(),
        "{}",
        &text[..text.len().min(2_000)]
    );
    let reported = begin.elapsed();
    println!(
        "{CONNECTIONS} connections, {} frames: read and diagnosed in {:.2} s, formatted in {:.2} s ({} bytes of text)",
        file.file.frames,
        read.as_secs_f64(),
        (reported - read).as_secs_f64(),
        text.len()
    );
}
