//! Ends of the initial slow start before a loss: HyStart++ (RFC 9406), and the hybrid slow start of Chromium's
//! heirs (Ha and Rhee 2011, delay increase only).

use units::{Duration, Instant};

/// How the initial slow start of a sender may end without a loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlowStartRule {
    /// It does not (RFC 9002 section 7.3.1).
    Standard,
    /// HyStart++ (RFC 9406) of a sender that paces: an increased round trip slows the growth, and ends slow start
    /// after five round trips.
    HyStartPlusPlus,
    /// Hybrid slow start: an increased round trip ends slow start.
    Hybrid {
        /// The round trip is compared with the least of the round before; else with the least of all.
        with_last_round: bool,
        /// It ends before the packets of the ACK are counted, not after.
        before_growth: bool,
    },
    /// The least of seven samples is a quarter above the lowest largest one of any seven, seven times in a row
    /// (picoquic, `picoquic_cc_hystart_test`).
    MinMaxFilter,
}

impl SlowStartRule {
    /// Does slow start end before the packets of the ACK are counted?
    pub(crate) const fn leaves_before_growth(self) -> bool {
        matches!(self, Self::Hybrid { before_growth: true, .. })
    }
}

/// Bounds of the increase (RFC 9406 section 4.3, `MIN_RTT_THRESH` and `MAX_RTT_THRESH`).
const LEAST_INCREASE: Duration = Duration::from_millis(4);
const MOST_INCREASE: Duration = Duration::from_millis(16);
/// `N_RTT_SAMPLE`.
const SAMPLES: u32 = 8;
/// `CSS_GROWTH_DIVISOR`.
const GROWTH_DIVISOR: u64 = 4;
/// `CSS_ROUNDS`.
const ROUNDS: u32 = 5;
/// Hybrid slow start does not end below this window, in datagrams.
const LOW_WINDOW: u64 = 16;

/// Samples of the filter, and times that it exceeds its bound (`PICOQUIC_MIN_MAX_RTT_SCOPE`).
const FILTERED: usize = 7;
/// Least time between two samples of the filter.
const FILTER_INTERVAL: Duration = Duration::from_millis(1);

/// An ACK in slow start.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SlowStartAck {
    pub(crate) now: Instant,
    /// Its round-trip sample.
    pub(crate) rtt: Option<Duration>,
    /// Least sample of the connection.
    pub(crate) min_rtt: Duration,
    /// Largest packet number acknowledged.
    pub(crate) largest: u64,
    /// Number of the next packet.
    pub(crate) next: u64,
    /// Largest place of an acknowledged packet in the order of sending.
    pub(crate) order: u64,
    /// Place of the last ack-eliciting packet sent.
    pub(crate) latest: u64,
    /// Window in datagrams.
    pub(crate) window: u64,
}

/// What slow start does with an ACK.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SlowStartStep {
    /// Grows by the acknowledged bytes, divided by this.
    Grow(u64),
    /// Ends.
    Leave,
}

/// Conservative slow start.
#[derive(Debug, Clone, Copy)]
struct ConservativeSlowStart {
    since: Instant,
    baseline: Duration,
    rounds: u32,
}

/// The last round-trip samples, and the lowest of their largest.
#[derive(Debug, Clone, Copy)]
struct MinMaxFilter {
    samples: [Duration; FILTERED],
    count: usize,
    at: Option<Instant>,
    lowest: Option<Duration>,
    exceeded: usize,
}

impl MinMaxFilter {
    const EMPTY: Self =
        Self { samples: [Duration::ZERO; FILTERED], count: 0, at: None, lowest: None, exceeded: 0 };

    /// Adds a sample; returns whether the round trip has increased for long enough. A packet takes `packet` to send
    /// at the pacing rate.
    fn has_increased(&mut self, now: Instant, rtt: Duration, packet: Duration) -> bool {
        if self.at.is_some_and(|at| now <= at + FILTER_INTERVAL) {
            return false;
        }
        self.at = Some(now);
        self.samples[self.count % FILTERED] = rtt;
        self.count += 1;
        if self.count < FILTERED {
            return false;
        }
        let [least, most] = self
            .samples
            .iter()
            .fold([rtt; 2], |[least, most], &sample| [least.min(sample), most.max(sample)]);
        let lowest = self.lowest.map_or(most, |lowest| lowest.min(most));
        self.lowest = Some(lowest);
        let margin = Duration::from_nanos(lowest.as_nanos() / 4).max(packet);
        if least > lowest + margin {
            self.exceeded += 1;
        } else if least <= lowest {
            self.exceeded = 0;
        }
        least > lowest + margin && self.exceeded >= FILTERED
    }
}

/// Follows the rounds of the initial slow start.
#[derive(Debug, Clone)]
pub(crate) struct SlowStartMonitor {
    rule: SlowStartRule,
    /// `windowEnd`: the round ends when this packet is acknowledged.
    round_end: u64,
    last: Option<Duration>,
    current: Option<Duration>,
    samples: u32,
    conservative: Option<ConservativeSlowStart>,
    filter: MinMaxFilter,
    /// quic-go: a round has begun.
    is_in_round: bool,
    /// quic-go: the round trip has increased.
    found: bool,
}

impl SlowStartMonitor {
    pub(crate) const fn new(rule: SlowStartRule) -> Self {
        Self {
            rule,
            round_end: 0,
            last: None,
            current: None,
            samples: 0,
            conservative: None,
            filter: MinMaxFilter::EMPTY,
            is_in_round: false,
            found: false,
        }
    }

    /// Processes an ACK of the initial slow start.
    pub(crate) fn on_ack(&mut self, ack: &SlowStartAck) -> SlowStartStep {
        if self.rule == SlowStartRule::Standard {
            return SlowStartStep::Grow(1);
        }
        if self.rule.leaves_before_growth() {
            return self.on_round_of_quic_go(ack);
        }
        if let Some(rtt) = ack.rtt {
            self.current = Some(self.current.map_or(rtt, |current| current.min(rtt)));
            self.samples += 1;
        }
        let leaves = match self.rule {
            SlowStartRule::Standard => false,
            SlowStartRule::HyStartPlusPlus => {
                self.check_conservative(ack.now);
                false
            }
            SlowStartRule::Hybrid { with_last_round, .. } => {
                let base = if with_last_round { self.last } else { Some(ack.min_rtt) };
                ack.window >= LOW_WINDOW && self.samples >= SAMPLES && self.has_increased(base)
            }
            SlowStartRule::MinMaxFilter => ack.rtt.is_some_and(|rtt| {
                // Five quarters of a window are paced in a round trip.
                let packet = Duration::from_nanos(rtt.as_nanos() * 4 / (5 * ack.window.max(1)));
                self.filter.has_increased(ack.now, rtt, packet)
            }),
        };
        if leaves { SlowStartStep::Leave } else { self.end_round(ack) }
    }

    /// quic-go's rounds (`hybrid_slow_start.go`), in which the packets of all spaces count: the first sample after the end of a round begins the next, up to the last
    /// packet sent then; only the first eight samples of a round count.
    fn on_round_of_quic_go(&mut self, ack: &SlowStartAck) -> SlowStartStep {
        if let Some(rtt) = ack.rtt {
            if !core::mem::replace(&mut self.is_in_round, true) {
                self.round_end = ack.latest;
                (self.current, self.samples) = (None, 0);
            }
            self.samples += 1;
            if self.samples <= SAMPLES {
                self.current = Some(self.current.map_or(rtt, |current| current.min(rtt)));
            }
            self.found |= self.samples == SAMPLES && self.is_above_threshold(ack.min_rtt);
        }
        if ack.order > self.round_end {
            self.is_in_round = false;
        }
        if self.found && ack.window >= LOW_WINDOW {
            SlowStartStep::Leave
        } else {
            SlowStartStep::Grow(1)
        }
    }

    /// Is the least round trip of the round above the least of all by more than an eighth of its whole microseconds,
    /// within the bounds (quic-go, `ShouldExitSlowStart`)?
    fn is_above_threshold(&self, min_rtt: Duration) -> bool {
        let eighth = Duration::from_micros(min_rtt.as_micros() >> 3);
        let threshold = eighth.clamp(LEAST_INCREASE, MOST_INCREASE);
        self.current.is_some_and(|current| current > min_rtt + threshold)
    }

    /// When the present conservative slow start began.
    pub(crate) fn conservative_since(&self) -> Option<Instant> {
        self.conservative.map(|conservative| conservative.since)
    }

    /// Is the least round trip of the round above `base` by an eighth, within the bounds?
    fn has_increased(&self, base: Option<Duration>) -> bool {
        let (Some(current), Some(base)) = (self.current, base) else { return false };
        let eighth = Duration::from_nanos(base.as_nanos() / 8);
        current >= base + eighth.clamp(LEAST_INCREASE, MOST_INCREASE)
    }

    /// RFC 9406 section 4.2: enters conservative slow start, or leaves it as the increase was spurious.
    fn check_conservative(&mut self, now: Instant) {
        if self.samples < SAMPLES {
            return;
        }
        match (self.conservative, self.current) {
            (None, Some(baseline)) if self.has_increased(self.last) => {
                self.conservative = Some(ConservativeSlowStart { since: now, baseline, rounds: 0 });
            }
            (Some(conservative), Some(current)) if current < conservative.baseline => {
                self.conservative = None;
            }
            _ => {}
        }
    }

    fn end_round(&mut self, ack: &SlowStartAck) -> SlowStartStep {
        if ack.largest >= self.round_end {
            self.round_end = ack.next;
            (self.last, self.current, self.samples) = (self.current, None, 0);
            if let Some(conservative) = &mut self.conservative {
                conservative.rounds += 1;
                // The round in which it began counts too.
                if conservative.rounds >= ROUNDS {
                    return SlowStartStep::Leave;
                }
            }
        }
        SlowStartStep::Grow(if self.conservative.is_some() { GROWTH_DIVISOR } else { 1 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The steps of ten ACKs in each round, whose round trips are those in ms.
    fn rounds(rule: SlowStartRule, rtts: &[u64]) -> Vec<SlowStartStep> {
        let mut monitor = SlowStartMonitor::new(rule);
        let mut steps = Vec::new();
        let least = rtts.iter().copied().min().unwrap();
        for (round, &ms) in (0..).zip(rtts) {
            for number in 0..10_u64 {
                let ack = SlowStartAck {
                    now: Instant::from_nanos(2_000_000 * (10 * round + number)),
                    rtt: Some(Duration::from_millis(ms)),
                    min_rtt: Duration::from_millis(least),
                    largest: 10 * round + number,
                    next: 10 * round + number + 10,
                    order: 10 * round + number,
                    latest: 10 * round + number + 9,
                    window: 20,
                };
                let step = monitor.on_ack(&ack);
                steps.push(step);
                if step == SlowStartStep::Leave {
                    return steps;
                }
            }
        }
        steps
    }

    #[test]
    fn hystart_grows_a_quarter_for_five_rounds_rfc_9406_section_4_2() {
        // 40 ms and an eighth are 45 ms.
        let steps = rounds(SlowStartRule::HyStartPlusPlus, &[40, 40, 45, 46, 46, 46, 46, 46, 46]);
        let quarter = steps.iter().position(|&step| step == SlowStartStep::Grow(4)).unwrap();
        // The eighth sample of the third round.
        assert_eq!(quarter / 10, 2);
        assert_eq!(steps.last(), Some(&SlowStartStep::Leave));
        let slow = steps.iter().filter(|&&step| step == SlowStartStep::Grow(4)).count();
        // The rest of that round, and four more.
        assert_eq!(slow, 3 + 39);
        let steps = rounds(SlowStartRule::HyStartPlusPlus, &[40, 40, 44, 44, 44]);
        assert!(steps.iter().all(|&step| step == SlowStartStep::Grow(1)));
    }

    #[test]
    fn a_spurious_increase_returns_to_slow_start() {
        let steps =
            rounds(SlowStartRule::HyStartPlusPlus, &[40, 40, 46, 41, 41, 41, 41, 41, 41, 41]);
        assert!(steps.contains(&SlowStartStep::Grow(4)));
        assert_eq!(steps.last(), Some(&SlowStartStep::Grow(1)));
    }

    /// Of seven samples of 40 ms the largest is 40 ms; more than 50 ms must hold for seven samples, and then seven times
    /// more.
    #[test]
    fn the_filter_ends_slow_start_after_thirteen_samples_of_an_increase() {
        let steps = rounds(SlowStartRule::MinMaxFilter, &[40, 51, 51]);
        assert_eq!((steps.last(), steps.len()), (Some(&SlowStartStep::Leave), 10 + 13));
        let steps = rounds(SlowStartRule::MinMaxFilter, &[40, 50, 50, 50]);
        assert!(steps.iter().all(|&step| step == SlowStartStep::Grow(1)));
    }

    #[test]
    fn hybrid_slow_start_ends_at_once() {
        let all = SlowStartRule::Hybrid { with_last_round: false, before_growth: false };
        let last = SlowStartRule::Hybrid { with_last_round: true, before_growth: false };
        // It creeps up by 3 ms a round: never above the round before, but above the least.
        let creeping = [40, 43, 46, 49];
        assert_eq!(rounds(all, &creeping).last(), Some(&SlowStartStep::Leave));
        assert_eq!(rounds(last, &creeping).last(), Some(&SlowStartStep::Grow(1)));
        assert_eq!(rounds(last, &[40, 46]).last(), Some(&SlowStartStep::Leave));
    }
}
