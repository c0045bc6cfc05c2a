//! Broken senders, each in one way.

use cc::CongestionSignal;
use cc::external::ReportTrigger;
use units::RandomStream;

use super::rules::{Aimd, Now, Rule, Window};
use super::{ZooKind, ZooSender};

macro_rules! broken {
    ($name:literal, $what:literal, $rule:expr) => {
        ZooSender {
            name: $name,
            what: $what,
            is_sound: false,
            kind: ZooKind::Own {
                every: ReportTrigger::Ack,
                base_grows: false,
                make: || Box::new(Window::new($rule)),
            },
        }
    };
}

pub(super) static SENDERS: [ZooSender; 13] = [
    broken!("never-reduces", "keeps its window at every loss", Deaf { from: 0.0 }),
    broken!("coin-toss", "halves at every second loss, by a coin", CoinToss),
    broken!("halves-at-random", "halves at random, not at losses", HalvesAtRandom),
    broken!(
        "beta-0.9-plus-5",
        "keeps nine tenths, adds five segments",
        Aimd { add: 5.0, keep: 0.9 }
    ),
    broken!("one-eighth", "gives up an eighth, adds a segment", Aimd { add: 1.0, keep: 0.875 }),
    broken!("fixed-window", "a window of 200 segments, whatever happens", Fixed(200.0)),
    broken!("cheats-after-65s", "Reno for 65 s, then never reduces", Deaf { from: 65.0 }),
    broken!("ignores-ecn", "Reno that ignores echoes of congestion", IgnoresEcn),
    broken!("paces-at-twice", "paces at twice its window a round trip, deaf to losses", Twice),
    broken!("no-slow-start-exit", "slow start again after every loss", NoExit),
    broken!("self-starving", "two segments after a loss, a tenth a round trip", SelfStarving),
    broken!("unfair-to-long-rtt", "grows by the inverse square of the round trip", UnfairToLong),
    broken!("blind-to-losses-by-delay", "halves only if the round trip has doubled", DelayOnly),
];

/// Reno that keeps its window at losses from this second on.
#[derive(Debug, Clone)]
struct Deaf {
    from: f64,
}

impl Rule for Deaf {
    fn reduced(&mut self, now: &Now, _: CongestionSignal, _: &mut RandomStream) -> f64 {
        if now.since_start >= self.from { now.window } else { now.window / 2.0 }
    }

    fn after_timeout(&self, now: &Now) -> Option<f64> {
        (now.since_start >= self.from).then_some(now.window)
    }
}

#[derive(Debug, Clone)]
struct CoinToss;

impl Rule for CoinToss {
    fn reduced(&mut self, now: &Now, _: CongestionSignal, draws: &mut RandomStream) -> f64 {
        if draws.below(2) == 0 { now.window } else { now.window / 2.0 }
    }
}

#[derive(Debug, Clone)]
struct HalvesAtRandom;

impl Rule for HalvesAtRandom {
    fn grown(&mut self, now: &Now, draws: &mut RandomStream) -> f64 {
        // Once in 2000 segments, on average.
        if (draws.below(2_000) as f64) < now.acked {
            return now.window / 2.0;
        }
        let add = if now.slow_start { now.acked } else { now.acked / now.window };
        now.window + add
    }

    fn reduced(&mut self, now: &Now, _: CongestionSignal, _: &mut RandomStream) -> f64 {
        now.window
    }
}

#[derive(Debug, Clone)]
struct Fixed(f64);

impl Rule for Fixed {
    fn grown(&mut self, _: &Now, _: &mut RandomStream) -> f64 {
        self.0
    }

    fn reduced(&mut self, _: &Now, _: CongestionSignal, _: &mut RandomStream) -> f64 {
        self.0
    }

    fn after_timeout(&self, _: &Now) -> Option<f64> {
        Some(self.0)
    }
}

#[derive(Debug, Clone)]
struct IgnoresEcn;

impl Rule for IgnoresEcn {
    fn reduced(&mut self, now: &Now, signal: CongestionSignal, _: &mut RandomStream) -> f64 {
        if signal == CongestionSignal::Ecn { now.window } else { now.window / 2.0 }
    }
}

#[derive(Debug, Clone)]
struct Twice;

impl Rule for Twice {
    fn reduced(&mut self, now: &Now, _: CongestionSignal, _: &mut RandomStream) -> f64 {
        now.window
    }

    fn pacing(&self, now: &Now) -> Option<f64> {
        (now.least_rtt.is_finite() && now.least_rtt > 0.0).then(|| 2.0 * now.window / now.least_rtt)
    }
}

#[derive(Debug, Clone)]
struct NoExit;

impl Rule for NoExit {
    fn grown(&mut self, now: &Now, _: &mut RandomStream) -> f64 {
        now.window + now.acked
    }

    fn stays_in_slow_start(&self) -> bool {
        true
    }
}

#[derive(Debug, Clone)]
struct SelfStarving;

impl Rule for SelfStarving {
    fn grown(&mut self, now: &Now, _: &mut RandomStream) -> f64 {
        now.window + 0.1 * now.acked / now.window
    }

    fn reduced(&mut self, _: &Now, _: CongestionSignal, _: &mut RandomStream) -> f64 {
        2.0
    }
}

#[derive(Debug, Clone)]
struct UnfairToLong;

impl Rule for UnfairToLong {
    fn grown(&mut self, now: &Now, _: &mut RandomStream) -> f64 {
        if now.slow_start {
            return now.window + now.acked;
        }
        // A segment a round trip at 40 ms.
        let ratio = 0.04 / now.least_rtt.max(0.001);
        now.window + ratio * ratio * now.acked / now.window
    }
}

#[derive(Debug, Clone)]
struct DelayOnly;

impl Rule for DelayOnly {
    fn reduced(&mut self, now: &Now, _: CongestionSignal, _: &mut RandomStream) -> f64 {
        if now.rtt > 2.0 * now.least_rtt { now.window / 2.0 } else { now.window }
    }
}
