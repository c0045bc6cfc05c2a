//! Hostile raw packets at a live endpoint: frames are parsed, checked and injected as in `wire
//! send` and `wire receive`, but without a device. Needs no privilege.
//!
//! Packets are forged with plausible numbers, then bytes are changed: flags, lengths, options,
//! whole headers. There must be no panic, a bounded number of responses per packet (no
//! amplification, no ACK war), and no byte read that was not sent. To run more of them:
//!
//! ```text
//! ACKCLOCK_HOSTILE_PACKETS=10000000 cargo test --release -p ackclock-wire-io --test hostile_packets -- --nocapture
//! ```
#![cfg(target_os = "linux")]

mod world;

use ackclock_wire_io::frame;
use packet::wire::Endpoints;
use packet::{
    Dir, Flags, Options, SackBlock, SackBlocks, Segment, SynLayout, SynOptions, Timestamps,
};
use record::NullRecorder;
use sim::live::{ExternalPacket, LiveSimulation};
use units::{Duration, FlowId, Instant, RandomStream, SeqNum};
use world::World;

/// Default number of packets.
const USUAL: u64 = 30_000;
/// Maximum packets per endpoint.
const AT_ONE: u64 = 150;
/// Maximum responses of a receiver per packet: an ACK, a window update, a FIN, a reset.
const ANSWERS: usize = 4;

#[expect(clippy::disallowed_methods, reason = "a test's own size, not a run's")]
fn wanted() -> u64 {
    let text = std::env::var("ACKCLOCK_HOSTILE_PACKETS").ok();
    text.map_or(USUAL, |text| text.parse().expect("ACKCLOCK_HOSTILE_PACKETS is a whole number"))
}

/// Last numbers sent by the endpoint.
#[derive(Default)]
struct Said {
    seq: u32,
    ack: u32,
}

fn near(draws: &mut RandomStream, offset: u32) -> u32 {
    offset.wrapping_add(match draws.below(8) {
        0..4 => 0,
        4..6 => (draws.below(6_000) as u32).wrapping_sub(3_000),
        6 => draws.below(300_000) as u32,
        _ => draws.next_u32(),
    })
}

fn options(draws: &mut RandomStream, said: &Said, syn: bool) -> Options {
    if syn {
        return Options::Syn(SynOptions {
            mss: [0, 1, 536, 1_460, u16::MAX][draws.below(5) as usize],
            window_scale: (draws.below(2) == 0).then(|| draws.below(20) as u8),
            sack_permitted: draws.below(2) == 0,
            layout: SynLayout::Linux,
            ..SynOptions::default()
        });
    }
    let mut blocks = SackBlocks::EMPTY;
    for _ in 0..draws.below(4) {
        let left = near(draws, said.seq);
        let right = left.wrapping_add(draws.below(5_000) as u32);
        blocks.push(SackBlock { left: SeqNum(left), right: SeqNum(right) });
    }
    blocks.into()
}

fn forge(draws: &mut RandomStream, said: &Said, dir: Dir) -> Segment {
    let flags = match draws.below(10) {
        0 => Flags(draws.next_u32() as u8),
        1 => Flags::SYN,
        2 => Flags::ACK | Flags::FIN,
        3 if draws.below(10) == 0 => Flags::RST,
        _ => Flags::ACK,
    };
    let stamps = Timestamps { val: draws.below(100_000) as u32, ecr: draws.below(4_000) as u32 };
    Segment {
        dir,
        flags,
        seq: SeqNum(near(draws, said.ack)),
        ack: SeqNum(near(draws, said.seq)),
        payload: [0, 1, 100, 1_448][draws.below(4) as usize],
        window: draws.next_u32() as u16,
        timestamps: (draws.below(2) == 0).then_some(stamps),
        options: options(draws, said, flags.has(Flags::SYN)),
        ..Segment::default()
    }
}

/// Sends packets to one endpoint and returns their number; with `serves`, it listens.
fn throw(draws: &mut RandomStream, profile: &str, serves: bool) -> u64 {
    let world = World::new(profile, 1_000_000);
    let mut off = NullRecorder;
    let outside = if serves { [0] } else { [1] };
    let mut live = LiveSimulation::new(&world.scenario, &outside, &mut off).unwrap();
    let forward =
        Endpoints { src: "10.0.0.1:49152".parse().unwrap(), dst: "10.0.0.2:5001".parse().unwrap() };
    let dir = if serves { Dir::Forward } else { Dir::Reverse };
    let between = if serves { forward } else { forward.reversed() };
    let mut now = Instant::ZERO;
    let (mut said, mut came, mut bytes) = (Said::default(), Vec::new(), Vec::new());
    let mut offered = 0;
    let opens = serves && draws.below(8) != 0;
    for number in 0..AT_ONE {
        let most = 1 << draws.below(23);
        now += Duration::from_micros(draws.below(most));
        live.advance(now);
        live.take_leaving(&mut came);
        came.clear();
        let mut segment = forge(draws, &said, dir);
        if opens && number == 0 {
            segment.flags = Flags::SYN;
            segment.options = options(draws, &said, true);
            segment.payload = 0;
        } else if opens && number == 1 {
            segment = Segment { dir, ..Segment::default() };
            (segment.flags, segment.seq, segment.ack) =
                (Flags::ACK, SeqNum(said.ack), SeqNum(said.seq));
        }
        let payload = vec![7; segment.payload as usize];
        if frame::write(&segment, &between, &payload, &mut bytes).is_err() {
            // The options exceed the header.
            continue;
        }
        if draws.below(2) == 0 && number > 1 {
            // Mark the checksum as partial, or the change would be detected.
            bytes[0] = 1;
            for _ in 0..=draws.below(4) {
                let at = 10 + draws.below(bytes.len().min(80) as u64 - 10) as usize;
                bytes[at] = draws.next_u32() as u8;
            }
            if draws.below(8) == 0 {
                bytes.truncate(draws.below(bytes.len() as u64) as usize);
            }
        }
        let Ok(seen) = frame::read(&bytes) else { continue };
        let mut received = seen.segment;
        (received.flow, received.dir) = (FlowId(0), dir);
        offered += u64::from(received.payload);
        live.inject(now, &received);
        live.advance(now);
        live.take_leaving(&mut came);
        assert!(!serves || came.len() <= ANSWERS, "{profile}: {} to {received:?}", came.len());
        for answer in came.drain(..) {
            let ExternalPacket::Tcp(sent) = answer.packet else { continue };
            said.seq = sent.seq.0.wrapping_add(sent.seq_len());
            said.ack = if sent.flags.has(Flags::ACK) { sent.ack.0 } else { said.ack };
        }
        let read = live.has_read(0).unwrap_or(0);
        assert!(read <= offered, "{profile}: {read} bytes read, {offered} sent");
    }
    AT_ONE
}

#[test]
fn hostile_packets_do_not_break_a_live_endpoint() {
    let wanted = wanted();
    let mut draws = RandomStream::named(11, "hostile packets", "test");
    let mut thrown = 0;
    'all: loop {
        for profile in tcp::profile::NAMES {
            for serves in [true, false] {
                thrown += throw(&mut draws, profile, serves);
                if thrown >= wanted {
                    break 'all;
                }
            }
        }
    }
    world::say(&format!("{thrown} packets"));
}
