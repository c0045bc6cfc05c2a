//! Whether a token bucket without a queue drops the packets that were lost.
//!
//! The bucket is replayed over all packets with data in the order of their transmission: its rate is that of the bytes
//! that arrived between the first and the last loss, as it is empty at both, or between two of them if it was full meanwhile. A bucket, and a queue that overflows, are
//! full at the losses. A queue delays the packets that it holds, a policer none.

use units::{Duration, Instant};

/// Most packets that are kept.
const MAX_PACKETS: usize = 1 << 16;
/// Fewest losses.
const FEWEST: usize = 10;
/// Rates that are tried, relative to that between the losses, in hundredths: the bucket fills in pauses.
const RATES: core::ops::RangeInclusive<u64> = 97..=115;
/// Bytes that pass between two losses, at least, for their rate to be the bucket's, and parts of such intervals that are tried.
const LONG: u64 = 20_000;
const FAST: usize = 3;
/// The bucket has at most this part of its depth left at a loss, and this part of the losses is there.
const EMPTY: f64 = 0.8;
const MOST: f64 = 0.9;
/// Packets in a bucket that is emptier than this are those that a queue would delay.
const DEEP: f64 = 0.5;
/// A queue delays them by its length over its rate; a policer by less than this part of it.
const UNDELAYED: f64 = 0.25;
/// Smallest depth in bytes: two datagrams.
const SMALLEST: f64 = 2_400.0;

/// A policer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QuicPolicer {
    /// Rate in bytes per second, of QUIC packets.
    pub rate: f64,
    /// Depth in bytes.
    pub burst: f64,
    /// Losses that it explains, of how many.
    pub lost: (u64, u64),
}

#[derive(Debug, Clone, Copy)]
struct Outcome {
    sent: Instant,
    bytes: u64,
    is_lost: bool,
    round_trip: Option<Duration>,
}

/// The packets with data, and what became of them.
#[derive(Debug, Default)]
pub(super) struct PacketOutcomes(Vec<Outcome>);

impl PacketOutcomes {
    fn push(&mut self, outcome: Outcome) {
        if self.0.len() < MAX_PACKETS {
            self.0.push(outcome);
        }
    }

    pub(super) fn lost(&mut self, sent: Instant, bytes: u64) {
        self.push(Outcome { sent, bytes, is_lost: true, round_trip: None });
    }

    /// A packet arrived; `acked` is when, if it is the newest of its ACK.
    pub(super) fn arrived(&mut self, sent: Instant, bytes: u64, acked: Option<Instant>) {
        let round_trip = acked.map(|at| at.since(sent));
        self.push(Outcome { sent, bytes, is_lost: false, round_trip });
    }

    /// The policer that drops what was lost, if there is one.
    pub(super) fn policer(&mut self, min_rtt: Option<Duration>) -> Option<QuicPolicer> {
        let all = &mut self.0;
        all.sort_by_key(|one| one.sent);
        let first = all.iter().position(|one| one.is_lost)?;
        let last = all.iter().rposition(|one| one.is_lost)?;
        let span = all[last].sent.since(all[first].sent);
        let lost = all.iter().filter(|one| one.is_lost).count();
        if lost < FEWEST || span.is_zero() {
            return None;
        }
        let arrived = |part: &[Outcome]| {
            part.iter().filter(|one| !one.is_lost).map(|one| one.bytes).sum::<u64>()
        };
        let mean = arrived(&all[first..=last]) as f64 / span.as_secs_f64();
        // A bucket that was full in between lets less pass: between two losses it is empty at both ends, and the fastest
        // of such intervals are those of its rate.
        let lost_at: Vec<usize> = (first..=last).filter(|&index| all[index].is_lost).collect();
        let mut passed = vec![0];
        for one in all.iter() {
            let bytes = if one.is_lost { 0 } else { one.bytes };
            passed.push(passed.last().copied().unwrap_or(0_u64).saturating_add(bytes));
        }
        let mut end = 0;
        let between = lost_at.iter().filter_map(|&from| {
            while end < lost_at.len() && passed[lost_at[end]] < passed[from] + LONG {
                end += 1;
            }
            let to = *lost_at.get(end)?;
            let span = all[to].sent.since(all[from].sent);
            (!span.is_zero()).then(|| (passed[to] - passed[from]) as f64 / span.as_secs_f64())
        });
        let mut between: Vec<f64> = between.collect();
        between.sort_by(f64::total_cmp);
        let fast = (1..=FAST).filter_map(|part| between.get(between.len() * part / (FAST + 1)));
        let rates: Vec<f64> =
            [mean].into_iter().chain(fast.copied()).chain(between.last().copied()).collect();
        let tried =
            rates.into_iter().flat_map(|base| RATES.map(move |rate| base * rate as f64 / 1e2));
        let tried = tried.filter_map(|rate| replay(all, rate, min_rtt?));
        // Of those that explain as many losses, the one whose bucket is emptiest at all of them.
        let best = tried.max_by(|a, b| a.0.lost.0.cmp(&b.0.lost.0).then(a.1.total_cmp(&b.1)))?;
        Some(best.0)
    }
}

/// Replays a bucket of this rate; `None` if it does not explain the losses. Also the least part of the bucket that is used at
/// a loss.
fn replay(all: &[Outcome], rate: f64, min_rtt: Duration) -> Option<(QuicPolicer, f64)> {
    let mut used = Vec::with_capacity(all.len());
    let (mut level, mut at) = (0.0_f64, all.first()?.sent);
    for one in all {
        level = (level - rate * one.sent.since(at).as_secs_f64()).max(0.0);
        at = one.sent;
        used.push(level + one.bytes as f64);
        if !one.is_lost {
            level += one.bytes as f64;
        }
    }
    let passed = all.iter().zip(&used).filter(|(one, _)| !one.is_lost);
    let burst = passed.map(|(_, used)| *used).fold(0.0, f64::max);
    let is_empty = |used: f64| used >= EMPTY * burst;
    let losses = || all.iter().zip(&used).filter(|(one, _)| one.is_lost);
    let explained = losses().filter(|(_, used)| is_empty(**used)).count();
    let lost = losses().count();
    // What arrives is seldom at the end of the bucket, or everything would explain the losses.
    let near = all.iter().zip(&used).filter(|(_, used)| is_empty(**used)).count();
    if (explained as f64) < MOST * lost as f64 || near * 2 > all.len() || burst < SMALLEST {
        return None;
    }
    let (mut delayed, mut expected) = (0.0, 0.0);
    for (one, used) in all.iter().zip(&used).filter(|(_, used)| **used >= DEEP * burst) {
        let Some(round_trip) = one.round_trip else { continue };
        delayed += round_trip.saturating_sub(min_rtt).as_secs_f64();
        expected += *used / rate;
    }
    let least = losses().map(|(_, used)| used / burst).fold(1.0, f64::min);
    let lost = (explained as u64, lost as u64);
    let is_undelayed = expected > 0.0 && delayed <= UNDELAYED * expected;
    is_undelayed.then_some((QuicPolicer { rate, burst, lost }, least))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: u64 = 1_200;

    /// 3,000 packets in bursts of 40, of which `drops` decides by the level of a bucket of 1 MB/s and 30 kB.
    fn outcomes(delays: bool, drops: impl Fn(u64, f64) -> bool) -> PacketOutcomes {
        let (mut all, mut level, mut at) = (PacketOutcomes::default(), 0.0_f64, Instant::ZERO);
        let rtt = Duration::from_millis(40);
        for n in 0..3_000_u64 {
            let gap =
                if n % 40 == 0 { Duration::from_millis(28) } else { Duration::from_micros(400) };
            at += gap;
            level = (level - 1e6 * gap.as_secs_f64()).max(0.0);
            if drops(n, level) {
                all.lost(at, PACKET);
                continue;
            }
            level += PACKET as f64;
            let queue =
                if delays { Duration::from_nanos((level * 1e3) as u64) } else { Duration::ZERO };
            all.arrived(at, PACKET, Some(at + rtt + queue));
        }
        all
    }

    /// A window that is mostly below the rate fills the bucket again: less than its rate passes on the whole.
    #[test]
    fn a_bucket_that_was_full_between_its_losses_is_found() {
        let (mut all, mut level, mut at) = (PacketOutcomes::default(), 0.0_f64, Instant::ZERO);
        let rtt = Duration::from_millis(40);
        for n in 0..6_000_u64 {
            // 0.5 MB/s for 500 packets, then 1.5 MB/s for 100.
            let gap = Duration::from_micros(if n % 600 < 500 { 2_400 } else { 800 });
            at += gap;
            level = (level - 1e6 * gap.as_secs_f64()).max(0.0);
            if level > 30_000.0 - PACKET as f64 {
                all.lost(at, PACKET);
                continue;
            }
            level += PACKET as f64;
            all.arrived(at, PACKET, Some(at + rtt));
        }
        let policer = all.policer(Some(rtt));
        assert!(policer.is_some_and(|one| (one.rate / 1e6 - 1.0).abs() < 0.1), "{policer:?}");
    }

    #[test]
    fn a_policer_differs_from_a_queue_and_from_random_losses() {
        let rtt = Some(Duration::from_millis(40));
        let full = |_: u64, level: f64| level > 30_000.0 - PACKET as f64;
        let policer = outcomes(false, full).policer(rtt).unwrap();
        assert!((policer.rate / 1e6 - 1.0).abs() < 0.05, "{policer:?}");
        assert_eq!(outcomes(true, full).policer(rtt), None);
        assert_eq!(outcomes(false, |n, _| n * 7_919 % 97 == 3).policer(rtt), None);
    }
}
