//! Each controller's window, round by round, in whole segments, on a path of 40 ms.
//!
//! A loss ends slow start at 100 segments, a second loss follows at round 40; round 70 is a
//! timeout. An acknowledgment covers two segments.

mod common;

use ackclock_cc as cc;

use core::fmt::Write;

use cc::{AnyController, CongestionSignal, Controller};
use common::{MSS, Sender, all};
use units::Duration;

const RTT: Duration = Duration::from_millis(40);

/// One round: the flight is acknowledged evenly over it.
fn round(sender: &mut Sender) {
    sender.fill();
    let acks = (sender.max - sender.una).div_ceil(2 * u64::from(MSS)).max(1);
    let gap = Duration::from_nanos(RTT.as_nanos() / acks);
    for _ in 0..acks {
        sender.now += gap;
        let _ = sender.acked(2 * u64::from(MSS), true);
    }
}

fn windows(cc: AnyController) -> Vec<u64> {
    let mut sender = Sender::open(cc, RTT);
    let mut left_slow_start = false;
    let mut windows = Vec::new();
    for number in 0..100 {
        windows.push(sender.window() / u64::from(MSS));
        let full = !left_slow_start && sender.window() >= 100 * u64::from(MSS);
        left_slow_start |= full;
        if full || number == 40 {
            sender.fill();
            let _ = sender.congested(CongestionSignal::Loss);
            sender.now += RTT;
            let _ = sender.recovered();
        } else if number == 70 {
            sender.fill();
            let _ = sender.timeout();
        } else {
            round(&mut sender);
        }
    }
    windows
}

#[test]
fn every_controllers_window_per_round() {
    let mut text = String::new();
    for (name, cc) in all() {
        let rounds: Vec<String> = windows(cc).iter().map(u64::to_string).collect();
        let _ = writeln!(text, "{name}");
        for ten in rounds.chunks(20) {
            let _ = writeln!(text, "    {}", ten.join(" "));
        }
    }
    insta::assert_snapshot!(text);
}

#[test]
fn cubic_reaches_its_plateau_in_the_time_of_the_rfc() {
    // RFC 9438 section 4.2: K = cbrt(100 * 0.3 / 0.4) = 4.217 s: 105.4 rounds of 40 ms.
    let cc = all().into_iter().find(|(name, _)| *name == "cubic-rfc9438").unwrap().1;
    let mut sender = Sender::open(cc, RTT);
    while sender.window() < 100 * u64::from(MSS) {
        round(&mut sender);
    }
    sender.cc.set_window(units::Bytes(100 * u64::from(MSS)));
    sender.max = sender.una + sender.window();
    let _ = sender.congested(CongestionSignal::Loss);
    let _ = sender.recovered();
    assert_eq!(sender.window(), 70 * u64::from(MSS));
    let mut rounds = 0;
    while sender.window() < 99 * u64::from(MSS) {
        round(&mut sender);
        rounds += 1;
    }
    // C (K - t)^3 = 1 segment: 1.36 s before; the Reno-friendly window gains 9/17 per round, from
    // 70 to 99 in 55 rounds, which is sooner.
    assert!((54..=57).contains(&rounds), "{rounds}");
}
