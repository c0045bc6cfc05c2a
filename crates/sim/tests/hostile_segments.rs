//! So many hostile segments, counted one by one: options that cannot be, lengths beyond any
//! packet, numbers from anywhere, thrown at every profile in every state. What is looked at is the
//! same as in `hostile.rs`; here a stream of draws makes the segments, so that millions are cheap:
//!
//! ```text
//! ACKCLOCK_HOSTILE_SEGMENTS=10000000 cargo test --release -p ackclock-sim --test hostile_segments -- --nocapture
//! ```

mod common;
#[path = "common/victim.rs"]
mod victim;

use packet::{Options, SackBlock, SackBlocks, SynLayout, SynOptions};
use tcp::State;
use tcp::profile::NAMES;
use units::{Duration, SeqNum, Stream};
use victim::{STATES, Step, Victim, Word, way_into};

/// Segments of an ordinary run.
const USUAL: u64 = 200_000;
/// What one endpoint hears at most.
const AT_ONE: u64 = 60;

/// How many segments, from the environment.
#[expect(clippy::disallowed_methods, reason = "a test's own size, not a run's")]
fn wanted() -> u64 {
    let text = std::env::var("ACKCLOCK_HOSTILE_SEGMENTS").ok();
    text.map_or(USUAL, |text| text.parse().expect("ACKCLOCK_HOSTILE_SEGMENTS is a whole number"))
}

fn one_in(draws: &mut Stream, n: u64) -> bool {
    draws.below(n) == 0
}

/// Near the right number, or anywhere.
fn distance(draws: &mut Stream) -> i64 {
    match draws.below(10) {
        0..4 => 0,
        4..8 => draws.below(6_000) as i64 - 3_000,
        8 => draws.below(400_000) as i64 - 200_000,
        _ => i64::from(draws.next_u32() as i32),
    }
}

/// Small ones and the ends of the range are likelier than they would be.
fn odd_u16(draws: &mut Stream) -> u16 {
    match draws.below(4) {
        0 => draws.below(30) as u16,
        1 => u16::MAX - draws.below(3) as u16,
        _ => draws.next_u32() as u16,
    }
}

/// Options of any kind on any segment: a SYN's on data, SACK on a SYN, shifts beyond 14, blocks
/// that end before they begin or lie beyond what was ever sent.
fn options(draws: &mut Stream) -> Options {
    match draws.below(3) {
        0 => Options::default(),
        1 => Options::Syn(SynOptions {
            mss: odd_u16(draws),
            window_scale: (!one_in(draws, 2)).then(|| draws.next_u32() as u8),
            sack_permitted: one_in(draws, 2),
            layout: if one_in(draws, 2) { SynLayout::FreeBsd } else { SynLayout::Linux },
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

fn word(draws: &mut Stream) -> Word {
    const COMMON: [u8; 8] = [0x10, 0x10, 0x10, 0x18, 0x11, 0x12, 0x02, 0x14];
    let flags = match draws.below(9) {
        0 => draws.next_u32() as u8,
        n => COMMON[n as usize - 1],
    };
    Word {
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

/// What happens between segments.
fn other(draws: &mut Stream) -> Step {
    match draws.below(10) {
        0..3 => Step::Wait(Duration::from_micros(draws.below(100_000))),
        3 => Step::Wait(Duration::from_secs(draws.below(200))),
        4..7 => Step::Write(draws.below(100_000)),
        7..9 => Step::Read,
        _ => Step::Close,
    }
}

#[test]
#[expect(clippy::print_stdout, reason = "the count is what the run is for")]
fn no_number_of_hostile_segments_breaks_it() {
    let wanted = wanted();
    let mut draws = Stream::named(1, "hostile segments", "all");
    let mut thrown = 0_u64;
    let mut endpoints = 0_u64;
    let mut answers = 0_u64;
    // By the state in which a segment was met.
    let mut met = [0_u64; STATES.len()];
    while thrown < wanted {
        let profile = NAMES[(endpoints % NAMES.len() as u64) as usize];
        let state = STATES[(endpoints / NAMES.len() as u64 % STATES.len() as u64) as usize];
        let mtu = [576, 1_500, 9_000][draws.below(3) as usize];
        endpoints += 1;
        let (side, way) = way_into(state);
        let mut victim = Victim::new(profile, side, mtu, one_in(&mut draws, 4));
        way.iter().for_each(|step| victim.step(step));
        assert_eq!(victim.tcp.state(), state, "{profile}");
        let most = AT_ONE.min(wanted - thrown);
        for _ in 0..=draws.below(most) {
            let met_in = victim.tcp.state();
            let place = STATES.iter().position(|&state: &State| state == met_in).unwrap();
            met[place] += 1;
            victim.step(&Step::Hear(word(&mut draws)));
            thrown += 1;
            if one_in(&mut draws, 2) {
                victim.step(&other(&mut draws));
            }
            // The dead have little to say; a few more words, and on to the next.
            let died = state != State::Closed && victim.tcp.state() == State::Closed;
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
