//! A model of the events of a sender, run against every controller.

mod common;

use ackclock_cc as cc;

use cc::{CongestionSignal, Controller, IdleEvent, RttSample, WindowChange, WindowController};
use common::{MSS, Sender, all};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use units::Duration;

/// An event of a sender.
#[derive(Debug, Clone)]
enum Operation {
    TimePasses(Duration),
    RoundTrip(Duration),
    Sent,
    /// Segments, and whether the window was the limit.
    Acked(u64, bool),
    Lost,
    Marked,
    Recovered,
    Idle(Duration),
    Timeout,
    SpuriousTimeout,
    SpuriousRecovery,
    Round,
    SmallerSegments(u32),
}

fn operation() -> impl Strategy<Value = Operation> {
    use Operation::*;
    let span = || {
        (0..7_u32, 1..1_000_u64)
            .prop_map(|(power, n)| Duration::from_nanos(n * 10_u64.pow(power + 3)))
    };
    prop_oneof![
        3 => span().prop_map(TimePasses),
        1 => (10..3_000_000_u64).prop_map(|us| RoundTrip(Duration::from_micros(us))),
        4 => Just(Sent),
        12 => (0..100_u64, prop::bool::weighted(0.8)).prop_map(|(n, limited)| Acked(n, limited)),
        2 => Just(Lost),
        1 => Just(Marked),
        3 => Just(Recovered),
        1 => span().prop_map(Idle),
        1 => Just(Timeout),
        1 => Just(SpuriousTimeout),
        1 => Just(SpuriousRecovery),
        1 => Just(Round),
        1 => (536..1_449_u32).prop_map(SmallerSegments),
    ]
}

/// A connection with the state for generating its next event.
struct Run {
    sender: Sender,
    round: u32,
    mss: u32,
}

impl Run {
    fn apply(&mut self, operation: &Operation) -> WindowChange {
        let sender = &mut self.sender;
        match *operation {
            Operation::TimePasses(span) => sender.now += span,
            Operation::RoundTrip(rtt) => sender.rtt = rtt,
            Operation::Sent => sender.fill(),
            Operation::Acked(packets, limited) => {
                return sender.acked(packets * u64::from(self.mss), limited);
            }
            Operation::Lost => return sender.congested(CongestionSignal::Loss),
            Operation::Marked if !sender.cc.in_recovery() => {
                return sender.congested(CongestionSignal::Ecn);
            }
            Operation::Recovered if sender.cc.in_recovery() => return sender.recovered(),
            Operation::Idle(idle) if !sender.cc.in_recovery() => {
                sender.now += idle;
                sender.una = sender.max;
                let (ticks, rto) = (sender.ticks(), Duration::from_millis(230));
                return sender.cc.on_idle(&IdleEvent { ticks, idle, rto });
            }
            Operation::Timeout => return sender.timeout(),
            // A stack decides at the first acknowledgment after it, before any duplicate ACKs.
            Operation::SpuriousTimeout if sender.shift == 1 && !sender.cc.in_recovery() => {
                sender.shift = 0;
                return sender.congested(CongestionSignal::SpuriousTimeout);
            }
            Operation::SpuriousRecovery if sender.cc.in_recovery() => {
                return sender.congested(CongestionSignal::SpuriousRecovery);
            }
            Operation::Round => {
                self.round += 1;
                let sample = RttSample {
                    rtt: sender.rtt,
                    transmissions: 1,
                    flight: (sender.max - sender.una).max(1),
                };
                let _ = sender.cc.on_rtt_sample(&sample);
                return sender.cc.on_round(self.round);
            }
            Operation::SmallerSegments(mss) if mss < self.mss => {
                self.mss = mss;
                sender.cc.on_mss(mss, mss + 12);
            }
            _ => {}
        }
        WindowChange::None
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2_000,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(1),
        ..ProptestConfig::default()
    })]

    /// Nothing overflows (arithmetic is checked in tests), no window closes or exceeds the maximum,
    /// none grows while application-limited or in recovery, and every change is reported.
    #[test]
    fn every_controller_keeps_its_contract(
        operations in prop::collection::vec(operation(), 1..200),
        which in 0..all().len(),
    ) {
        let (name, cc) = all().swap_remove(which);
        let sender = Sender::open(cc, Duration::from_millis(20));
        let mut run = Run { sender, round: 0, mss: MSS };
        for operation in &operations {
            let (before, recovering) = (run.sender.window(), run.sender.cc.in_recovery());
            let change = run.apply(operation);
            let after = run.sender.window();
            prop_assert!(after > 0, "{name}: {operation:?} closes a window of {before}");
            prop_assert!(after < 1 << 31, "{name}: {operation:?}: {after}");
            if let Operation::Acked(_, limited) = operation {
                let may_grow = *limited && !recovering;
                prop_assert!(may_grow || after <= before, "{name}: {before} to {after} unused");
                let reported = matches!(change, WindowChange::Grew(_));
                prop_assert_eq!(reported, after > before, "{}: {:?} {} to {}", name, change, before, after);
            }
            if matches!(operation, Operation::Lost | Operation::Marked | Operation::Timeout) {
                // At least two segments are kept, and RFC 9438 section 4.6 reduces from the flight,
                // which may exceed a window that a recovery has just set.
                let flight = run.sender.max - run.sender.una;
                let flight = if name.ends_with("rfc9438") { flight } else { 0 };
                let most = before.max(2 * u64::from(MSS + 12)).max(flight);
                prop_assert!(after <= most, "{name}: {operation:?} grows {before} to {after}");
            }
            if let Some(ssthresh) = run.sender.cc.control().ssthresh {
                prop_assert!(ssthresh.get() > 0, "{name}: {operation:?} leaves no threshold");
            }
        }
    }
}
