//! A large number of hostile segments: impossible options, lengths beyond any packet, arbitrary
//! sequence numbers, sent to every profile in every state. The checks are those of `hostile.rs`;
//! here a random stream makes the segments, so that millions are cheap:
//! ```text
//! ACKCLOCK_HOSTILE_SEGMENTS=10000000 cargo test --release -p ackclock-sim --test hostile_segments -- --nocapture
//! ```

mod common;
#[path = "common/victim.rs"]
mod victim;

use packet::{Options, SackBlock, SackBlocks, SynLayout, SynOptions};
use tcp::TcpState;
use tcp::profile::NAMES;
use units::{Duration, RandomStream, SeqNum};
use victim::{PeerSegment, STATES, Victim, VictimStep, steps_into};

/// Default number of segments.
const USUAL: u64 = 200_000;
/// Maximum number of segments sent to one endpoint.
const AT_ONE: u64 = 60;

/// Number of segments, from the environment.
#[expect(clippy::disallowed_methods, reason = "sizes a test, not a run")]
fn wanted() -> u64 {
    let text = std::env::var("ACKCLOCK_HOSTILE_SEGMENTS").ok();
    text.map_or(USUAL, |text| text.parse().expect("ACKCLOCK_HOSTILE_SEGMENTS is a whole number"))
}

fn one_in(draws: &mut RandomStream, n: u64) -> bool {
    draws.below(n) == 0
}

/// Near the expected number, or anywhere.
fn distance(draws: &mut RandomStream) -> i64 {
    match draws.below(10) {
        0..4 => 0,
        4..8 => draws.below(6_000) as i64 - 3_000,
        8 => draws.below(400_000) as i64 - 200_000,
        _ => i64::from(draws.next_u32() as i32),
    }
}

/// Random values, biased to small ones and the ends of the range.
fn odd_u16(draws: &mut RandomStream) -> u16 {
    match draws.below(4) {
        0 => draws.below(30) as u16,
        1 => u16::MAX - draws.below(3) as u16,
        _ => draws.next_u32() as u16,
    }
}

/// Arbitrary options on any segment: a SYN's on data, SACK on a SYN, shifts beyond 14, blocks that
/// end before they start or are beyond the highest byte sent.
fn options(draws: &mut RandomStream) -> Options {
    match draws.below(3) {
        0 => Options::default(),
        1 => Options::Syn(SynOptions {
            mss: odd_u16(draws),
            window_scale: (!one_in(draws, 2)).then(|| draws.next_u32() as u8),
            sack_permitted: one_in(draws, 2),
            layout: if one_in(draws, 2) { SynLayout::FreeBsd } else { SynLayout::Linux },
            ..SynOptions::default()
        }),
        _ => {
            let mut blocks = SackBlocks::EMPTY;
            let base = draws.next_u32();
            for _ in 0..draws.below(5) {
                // Near the endpoint's own numbers, or anywhere.
                let near = 0xffff_f000_u32.wrapping_add(draws.below(20_000) as u32);
                let left = if one_in(draws, 4) { base } else { near };
                let right = left.wrapping_add(distance(draws) as u32);
                blocks.push(SackBlock { left: SeqNum(left), right: SeqNum(right) });
            }
            blocks.into()
        }
    }
}

fn word(draws: &mut RandomStream) -> PeerSegment {
    const COMMON: [u8; 8] = [0x10, 0x10, 0x10, 0x18, 0x11, 0x12, 0x02, 0x14];
    let flags = match draws.below(9) {
        0 => draws.next_u32() as u8,
        n => COMMON[n as usize - 1],
    };
    PeerSegment {
        flags,
        seq: distance(draws),
        ack: distance(draws),
        payload: match draws.below(9) {
            0..4 => 0,
            4..8 => 1 + draws.below(3_000) as u32,
            _ => draws.below(200_000) as u32,
        },
        window: odd_u16(draws),
        stamps: one_in(draws, 2).then(|| (draws.next_u32() >> draws.below(32), draws.next_u32())),
        options: options(draws),
    }
}

/// Steps between segments.
fn other(draws: &mut RandomStream) -> VictimStep {
    match draws.below(10) {
        0..3 => VictimStep::Wait(Duration::from_micros(draws.below(100_000))),
        3 => VictimStep::Wait(Duration::from_secs(draws.below(200))),
        4..7 => VictimStep::Write(draws.below(100_000)),
        7..9 => VictimStep::Read,
        _ => VictimStep::Close,
    }
}

#[test]
#[expect(clippy::print_stdout, reason = "the count is the result of the run")]
fn hostile_segments_break_no_endpoint() {
    let wanted = wanted();
    let mut draws = RandomStream::named(1, "hostile segments", "all");
    let mut thrown = 0_u64;
    let mut endpoints = 0_u64;
    let mut answers = 0_u64;
    // By the state in which a segment was received.
    let mut met = [0_u64; STATES.len()];
    while thrown < wanted {
        let profile = NAMES[(endpoints % NAMES.len() as u64) as usize];
        let state = STATES[(endpoints / NAMES.len() as u64 % STATES.len() as u64) as usize];
        let mtu = [576, 1_500, 9_000][draws.below(3) as usize];
        endpoints += 1;
        let (side, way) = steps_into(state);
        let mut victim = Victim::new(profile, side, mtu, one_in(&mut draws, 4));
        way.iter().for_each(|step| victim.step(step));
        assert_eq!(victim.tcp.state(), state, "{profile}");
        let most = AT_ONE.min(wanted - thrown);
        for _ in 0..=draws.below(most) {
            let met_in = victim.tcp.state();
            let place = STATES.iter().position(|&state: &TcpState| state == met_in).unwrap();
            met[place] += 1;
            victim.step(&VictimStep::Incoming(word(&mut draws)));
            thrown += 1;
            if one_in(&mut draws, 2) {
                victim.step(&other(&mut draws));
            }
            // Closed endpoints rarely respond; send a few more segments, then continue with the
            // next.
            let died = state != TcpState::Closed && victim.tcp.state() == TcpState::Closed;
            if died && one_in(&mut draws, 4) {
                break;
            }
        }
        answers += victim.segments;
        victim.check_delivered();
    }
    assert_eq!(thrown, wanted);
    assert_eq!(met.iter().sum::<u64>(), thrown);
    assert!(met.iter().all(|&count| count > 0), "{met:?}");
    println!("{thrown} hostile segments at {endpoints} endpoints, which sent {answers}");
    for (state, count) in STATES.iter().zip(met) {
        println!("  {count:>10} in {state:?}");
    }
}
