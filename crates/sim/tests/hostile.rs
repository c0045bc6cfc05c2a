//! An endpoint whose peer sends arbitrary segments at any time: it must neither panic nor loop for
//! ever, and the bytes it acknowledges are those that its application reads.

mod common;

#[path = "common/victim.rs"]
mod victim;

use packet::{Flags, Options, SackBlock, SackBlocks, SynOptions};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::RngSeed;
use tcp::TcpState;
use tcp::profile::NAMES;
use units::{Duration, SeqNum};
use victim::{PeerSegment, STATES, Victim, VictimStep, polite, steps_into};

fn an_option() -> impl Strategy<Value = Options> {
    let syn = (any::<u16>(), any::<Option<u8>>(), any::<bool>());
    let block = (any::<u32>(), any::<u32>());
    prop_oneof![
        Just(Options::default()),
        syn.prop_map(|(mss, window_scale, sack_permitted)| Options::Syn(SynOptions {
            mss: if mss % 2 == 0 { mss % 30 } else { mss },
            window_scale,
            sack_permitted,
            ..SynOptions::default()
        })),
        vec(block, 0..4).prop_map(|list| {
            let mut blocks = SackBlocks::EMPTY;
            for (left, right) in list {
                blocks.push(SackBlock { left: SeqNum(left), right: SeqNum(right) });
            }
            blocks.into()
        }),
    ]
}

/// Near the expected number, or anywhere.
fn a_distance() -> impl Strategy<Value = i64> {
    prop_oneof![
        4 => Just(0_i64),
        4 => -3_000..3_000_i64,
        1 => -200_000..200_000_i64,
        1 => any::<i32>().prop_map(i64::from),
    ]
}

fn a_word() -> impl Strategy<Value = PeerSegment> {
    let common = select(vec![0x10_u8, 0x10, 0x10, 0x18, 0x11, 0x12, 0x02, 0x14]);
    let flags = prop_oneof![8 => common, 1 => any::<u8>()];
    let payload = prop_oneof![4 => Just(0), 4 => 1..3_000_u32, 1 => 0..200_000_u32];
    let window = prop_oneof![any::<u16>(), 0..3_u16];
    let stamps = any::<Option<(u32, u32)>>();
    (flags, a_distance(), a_distance(), payload, window, stamps, an_option()).prop_map(
        |(flags, seq, ack, payload, window, stamps, options)| PeerSegment {
            flags,
            seq,
            ack,
            payload,
            window,
            stamps,
            options,
        },
    )
}

fn a_step() -> impl Strategy<Value = VictimStep> {
    prop_oneof![
        12 => a_word().prop_map(VictimStep::Incoming),
        3 => (0..100_000_u64).prop_map(|us| VictimStep::Wait(Duration::from_micros(us))),
        1 => (0..200_u64).prop_map(|s| VictimStep::Wait(Duration::from_secs(s))),
        3 => (0..100_000_u64).prop_map(VictimStep::Write),
        2 => Just(VictimStep::Read),
        1 => Just(VictimStep::Close),
    ]
}

fn config() -> ProptestConfig {
    let mut config = ProptestConfig::default();
    config.cases = config.cases.max(5_000);
    if config.rng_seed == RngSeed::Random {
        config.rng_seed = RngSeed::Fixed(1);
    }
    config.failure_persistence = None;
    config
}

#[test]
fn the_step_sequences_reach_their_states() {
    for state in STATES {
        assert_eq!(in_state(state, "freebsd-13.2").tcp.state(), state);
    }
}

fn in_state(state: TcpState, profile: &str) -> Victim {
    let (side, steps) = steps_into(state);
    let mut victim = Victim::new(profile, side, 1_500, false);
    steps.iter().for_each(|step| victim.step(step));
    victim
}

#[test]
fn a_closed_window_is_probed() {
    for profile in NAMES {
        let mut victim = in_state(TcpState::Established, profile);
        victim.step(&VictimStep::Write(1_000));
        let VictimStep::Incoming(word) = polite(Flags::ACK, 0, Options::default()) else {
            unreachable!()
        };
        victim.step(&VictimStep::Incoming(PeerSegment { window: 0, ..word }));
        victim.step(&VictimStep::Write(1_000));
        let before = victim.segments;
        victim.step(&VictimStep::Wait(Duration::from_secs(60)));
        assert!(victim.segments > before, "{profile}");
    }
}

#[test]
fn a_segment_before_the_window_is_answered() {
    // RFC 9293 section 3.10.7.4; Linux's zero-window probes and keepalives look like this.
    for profile in NAMES {
        let mut victim = in_state(TcpState::Established, profile);
        let before = victim.segments;
        let VictimStep::Incoming(word) = polite(Flags::ACK, 0, Options::default()) else {
            unreachable!()
        };
        victim.step(&VictimStep::Incoming(PeerSegment { seq: -2, ..word }));
        assert_eq!(victim.segments, before + 1, "{profile}");
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn arbitrary_peer_segments_break_nothing(
        profile in select(NAMES.as_slice()),
        mtu in select(vec![576_u32, 1_500, 9_000]),
        state in select(STATES.as_slice()),
        steps in vec(a_step(), 0..60),
    ) {
        let (side, way) = steps_into(state);
        let mut victim = Victim::new(profile, side, mtu, false);
        for step in way.iter().chain(&steps) {
            victim.step(step);
        }
        victim.check_delivered();
    }
}
