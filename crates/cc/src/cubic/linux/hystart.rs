//! Linux's HyStart: ends slow start before a loss.
//!
//! Source: tcp_cubic.c of kernel 6.18 (hystart_update, hystart_ack_delay, bictcp_hystart_reset)
//! with its module parameters at their defaults, for a sender that is not paced.
//!
//! Two criteria end it: closely spaced acknowledgments for half the minimum RTT (the ACK train is
//! as long as the path), and a round whose minimum delay is an eighth above the minimum ever.

use units::{Duration, Instant, Offset};

use crate::contract::AckSample;

/// `hystart_low_window`: below this window, in packets, slow start does not end.
const LOW_WINDOW: u32 = 16;
/// `hystart_ack_delta_us`: maximum spacing of acknowledgments in a train.
const ACK_DELTA: Duration = Duration::from_micros(2_000);
/// `HYSTART_MIN_SAMPLES`.
const MIN_SAMPLES: u8 = 8;
/// `HYSTART_DELAY_MIN` and `HYSTART_DELAY_MAX`, in microseconds.
const DELAY_BOUNDS_US: (u32, u32) = (4_000, 16_000);
/// Bytes of four bursts of the maximum size (`sk_gso_max_size`).
const FOUR_BURSTS: u64 = 4 * 65_536;

/// State of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct HyStartLinux {
    sample_cnt: u8,
    found: bool,
    round_start: Instant,
    /// The round ends once `snd_una` passes this offset.
    end_seq: Offset,
    /// Last acknowledgment of the ACK train.
    last_ack: Instant,
    /// Minimum RTT of the round in microseconds; `u32::MAX` before the first sample.
    curr_rtt: u32,
}

impl HyStartLinux {
    pub(super) const fn new() -> Self {
        Self {
            sample_cnt: 0,
            found: false,
            round_start: Instant::ZERO,
            end_seq: Offset(0),
            last_ack: Instant::ZERO,
            curr_rtt: u32::MAX,
        }
    }

    /// A round begins (bictcp_hystart_reset).
    pub(super) const fn reset(&mut self, now: Instant, snd_nxt: Offset) {
        let found = self.found;
        *self = Self { found, round_start: now, end_seq: snd_nxt, last_ack: now, ..Self::new() };
    }

    /// Processes an RTT sample of `delay` microseconds in slow start; returns true if slow start
    /// ends.
    pub(super) fn update(
        &mut self,
        sample: &AckSample,
        delay: u32,
        delay_min: u32,
        snd_cwnd: u32,
    ) -> bool {
        if self.found {
            return false;
        }
        if sample.una > self.end_seq {
            self.reset(sample.now, sample.snd_nxt);
        }
        if snd_cwnd < LOW_WINDOW {
            return false;
        }
        if sample.now.since(self.last_ack) <= ACK_DELTA {
            self.last_ack = sample.now;
            let longest = (delay_min + ack_delay(sample.pacing_rate)) >> 1;
            if sample.now.since(self.round_start).as_micros() > u64::from(longest) {
                self.found = true;
            }
        }
        self.curr_rtt = self.curr_rtt.min(delay);
        if self.sample_cnt < MIN_SAMPLES {
            self.sample_cnt += 1;
        } else {
            let (least, most) = DELAY_BOUNDS_US;
            if self.curr_rtt > delay_min + (delay_min >> 3).clamp(least, most) {
                self.found = true;
            }
        }
        self.found
    }

    /// `found`: true once it has ended slow start.
    pub const fn found(&self) -> bool {
        self.found
    }

    /// `sample_cnt`: samples of this round, up to 8.
    pub const fn sample_cnt(&self) -> u8 {
        self.sample_cnt
    }

    /// `end_seq`: the round ends once `snd_una` passes this offset.
    pub const fn end_seq(&self) -> Offset {
        self.end_seq
    }

    /// `curr_rtt`: minimum RTT of the round in microseconds; `u32::MAX` before the first sample.
    pub const fn curr_rtt(&self) -> u32 {
        self.curr_rtt
    }

    /// `round_start`.
    pub const fn round_start(&self) -> Instant {
        self.round_start
    }
}

/// hystart_ack_delay: microseconds to send four bursts, at most a thousand.
fn ack_delay(pacing_rate: u64) -> u32 {
    match (FOUR_BURSTS * 1_000_000).checked_div(pacing_rate) {
        Some(micros) => micros.min(1_000) as u32,
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000;

    fn at(us: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(us)
    }

    fn sample(us: u64, una: u64) -> AckSample {
        AckSample {
            now: at(us),
            ticks: us / 4_000,
            rtt: Duration::from_millis(100),
            una: Offset(una),
            snd_nxt: Offset(una + 1_000),
            pacing_rate: 10_000_000,
        }
    }

    /// Acknowledgments every `gap` microseconds from the start of a round: when slow start ends.
    fn train(gap: u64, delay_min: u32) -> Option<u64> {
        let mut hystart = HyStartLinux::new();
        hystart.reset(at(0), Offset(1_000_000));
        (1..1_000)
            .map(|n| n * gap)
            .find(|&us| hystart.update(&sample(us, 1), delay_min, delay_min, 100))
    }

    #[test]
    fn an_ack_train_of_half_the_rtt_ends_slow_start() {
        // Recorded on Linux 6.18: RTTs of 100.3 ms and 45.42 ms, and 1 ms for bursts.
        assert_eq!(train(120, 100_300), Some(50_760));
        assert_eq!(train(240, 45_420), Some(23_280));
        assert_eq!(train(2_000, 20_760), Some(12 * MS));
        assert_eq!(train(2_001, 20_760), None);
    }

    #[test]
    fn it_requires_a_minimum_window_and_acts_once() {
        let mut hystart = HyStartLinux::new();
        hystart.reset(at(0), Offset(1_000_000));
        assert!(!hystart.update(&sample(1_000, 1), 1_000, 1_000, 15));
        assert!(hystart.update(&sample(1_500, 1), 1_000, 1_000, 16));
        assert!(!hystart.update(&sample(1_600, 1), 1_000, 1_000, 16));
    }

    #[test]
    fn the_ninth_sample_decides_whether_delay_increased() {
        // Recorded on Linux 6.18: 53.42 ms is more than 45.31 + 5.66 ms.
        let mut hystart = HyStartLinux::new();
        hystart.reset(at(0), Offset(1_000_000));
        let late = |hystart: &mut HyStartLinux, n: u64, delay| {
            hystart.update(&sample(n * 3_000, 1), delay, 45_310, 100)
        };
        assert!((1..=8).all(|n| !late(&mut hystart, n, 53_420)));
        assert!(late(&mut hystart, 9, 53_420));
        // One low sample in a round is enough to continue.
        let mut hystart = HyStartLinux::new();
        hystart.reset(at(0), Offset(1_000_000));
        assert!((1..=8).all(|n| !late(&mut hystart, n, 53_420)));
        assert!(!late(&mut hystart, 9, 50_973));
        assert!(!late(&mut hystart, 10, 53_420));
    }

    #[test]
    fn a_round_ends_when_its_end_seq_is_passed() {
        let mut hystart = HyStartLinux::new();
        hystart.reset(at(0), Offset(1_000));
        hystart.update(&sample(500, 1_000), 100 * MS as u32, 100 * MS as u32, 100);
        assert_eq!((hystart.sample_cnt(), hystart.end_seq()), (1, Offset(1_000)));
        hystart.update(&sample(700, 1_001), 100 * MS as u32, 100 * MS as u32, 100);
        assert_eq!((hystart.sample_cnt(), hystart.end_seq()), (1, Offset(2_001)));
        assert_eq!(hystart.round_start(), at(700));
    }

    #[test]
    fn bursts_of_a_fast_sender_add_less_delay() {
        assert_eq!(ack_delay(0), 0);
        assert_eq!(ack_delay(262_143_999), 1_000);
        assert_eq!(ack_delay(524_288_000), 500);
    }
}
