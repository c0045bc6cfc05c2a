//! A token bucket that drops what exceeds its rate, and delays nothing.
//!
//! Between two losses such a bucket is empty at both ends, so what passed between them is its rate (Flach et al., "An
//! Internet-Wide Analysis of Traffic Policing", SIGCOMM 2016, section 2). Whether one dropped the packets is checked by
//! passing all that were sent through it.

use units::Duration;

/// A policer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PolicerFit {
    /// Rate in bit/s of IP packets.
    pub rate: u64,
    /// Depth of the bucket in bytes.
    pub burst: u64,
}

/// Fewest losses that show one.
const FEWEST: usize = 5;
/// Spans of losses of which the rate is tried, as parts of all.
const PARTS: [usize; 5] = [1, 2, 3, 4, 6];
/// Rates tried around each, in thousandths.
const AROUND: [u64; 7] = [940, 960, 980, 1_000, 1_020, 1_040, 1_060];
/// Packets after a loss of which one passes, within this time, after one of this number of losses.
const AHEAD: u64 = 64;
const SOON: Duration = Duration::from_millis(20);
const PASSED: usize = 4;
/// Packets by which a loss may be found beside its place: times of a capture are not those at the policer.
const BESIDE: u64 = 4;
/// Least part of the losses that are found, and of the found that are losses.
const FOUND: f64 = 0.7;
/// What a queue with the same losses would have delayed, relative to what packets were delayed at most.
const DELAYED: u64 = 3;

impl PolicerFit {
    /// A policer that drops these packets: of data packets of `packet` bytes sent at `times` in ns, those numbered in
    /// `lost`, from 1. `queueing`: how much longer than the shortest the round trips at losses were. `path`: the rate
    /// of the bottleneck in bit/s, if it is known: a queue that drains at that rate and drops the same is none.
    pub(crate) fn of(
        times: &[u64],
        lost: &[(u64, u64)],
        packet: u64,
        queueing: Duration,
        path: Option<u64>,
    ) -> Option<Self> {
        if lost.len() < FEWEST {
            return None;
        }
        let is_lost = |number: u64| lost.binary_search_by_key(&number, |one| one.0).is_ok();
        let scored = |rate: u64| {
            let policer = Self { rate, burst: least_burst(times, lost[0].0, rate, packet) };
            (score(&policer.drops(times, packet), lost.len(), &is_lost), policer)
        };
        let mut best: Option<(f64, Self)> = None;
        for rate in candidates(times, lost, packet) {
            let (score, policer) = scored(rate);
            if best.is_none_or(|best| score > best.0) {
                best = Some((score, policer));
            }
        }
        let (_, policer) = best.filter(|best| best.0 >= FOUND)?;
        let is_queue = |path: u64| {
            path > policer.rate && queue_with(times, lost, packet, (path, queueing)).is_some()
        };
        if path.is_some_and(is_queue) {
            return None;
        }
        if passed_soon_after(times, lost, &is_lost) < FEWEST.max(lost.len() / PASSED) {
            return None;
        }
        (!policer.delays(queueing)).then_some(policer)
    }

    /// Whether packets were delayed as by a queue of its size: one with the same losses is full of as many bytes.
    fn delays(&self, queueing: Duration) -> bool {
        let drained = self.burst as f64 * 8e9 / self.rate as f64;
        queueing.as_nanos() as f64 * (DELAYED as f64) >= drained
    }

    /// Numbers of the packets that it drops.
    fn drops(&self, times: &[u64], packet: u64) -> Vec<u64> {
        let mut dropped = Vec::new();
        let (mut tokens, mut then) = (self.burst as f64, times.first().copied().unwrap_or(0));
        for (number, &at) in (1..).zip(times) {
            let gained = at.saturating_sub(then) as f64 * self.rate as f64 / 8e9;
            tokens = (tokens + gained).min(self.burst as f64);
            then = at;
            if tokens >= packet as f64 {
                tokens -= packet as f64;
            } else {
                dropped.push(number);
            }
        }
        dropped
    }
}

/// Bytes of a queue before a link of `rate` bit/s that drops these packets when it is full, and delays them by `queueing`;
/// `None` if none does. It drops what a bucket of its size and of the rate of the path drops.
pub(crate) fn queue_with(
    times: &[u64],
    lost: &[(u64, u64)],
    packet: u64,
    (rate, queueing): (u64, Duration),
) -> Option<u64> {
    if lost.len() < FEWEST {
        return None;
    }
    let is_lost = |number: u64| lost.binary_search_by_key(&number, |one| one.0).is_ok();
    let around = AROUND.map(|part| (rate as f64 * part as f64 / 1_000.0) as u64);
    let scored = around.into_iter().filter(|&rate| rate > 0).map(|rate| {
        let queue = PolicerFit { rate, burst: least_burst(times, lost[0].0, rate, packet) };
        (score(&queue.drops(times, packet), lost.len(), &is_lost), queue)
    });
    let (score, queue) = scored.max_by(|one, other| one.0.total_cmp(&other.0))?;
    (score >= FOUND && queue.delays(queueing)).then_some(queue.burst)
}

/// How many losses another packet follows soon that passes: a bucket gains tokens all the time, but what loses the ends
/// of flights lets nothing pass after them.
fn passed_soon_after(times: &[u64], lost: &[(u64, u64)], is_lost: &impl Fn(u64) -> bool) -> usize {
    let at = |number: u64| times.get(number as usize - 1).copied();
    let passes = |&&(number, _): &&(u64, u64)| {
        let Some(then) = at(number) else { return false };
        let next = (number + 1..=number + AHEAD).take_while(|&next| {
            at(next).is_some_and(|at| at.saturating_sub(then) <= SOON.as_nanos())
        });
        next.into_iter().any(|next| !is_lost(next))
    };
    lost.iter().filter(passes).count()
}

/// Rates of what passed between losses.
fn candidates(times: &[u64], lost: &[(u64, u64)], packet: u64) -> Vec<u64> {
    let mut rates = Vec::new();
    for parts in PARTS {
        let length = lost.len().div_ceil(parts).max(2);
        for span in lost.windows(length).step_by((length / 2).max(1)) {
            let (first, last) = (span[0].0, span[length - 1].0);
            let passed = (last - first + 1).saturating_sub(length as u64);
            let at = |number: u64| times.get(number as usize - 1).copied().unwrap_or(0);
            let took = at(last).saturating_sub(at(first));
            if took > 0 && passed > 0 {
                let rate = passed as f64 * packet as f64 * 8e9 / took as f64;
                rates.extend(AROUND.map(|part| (rate * part as f64 / 1_000.0) as u64));
            }
        }
    }
    rates.sort_unstable();
    rates.dedup_by(|one, other| one.abs_diff(*other) * 200 <= *one);
    rates.retain(|&rate| rate > 0);
    rates
}

/// The smallest bucket from which nothing was dropped before the packet `first`, with half a packet.
fn least_burst(times: &[u64], first: u64, rate: u64, packet: u64) -> u64 {
    let (mut backlog, mut most, mut then) = (0.0_f64, 0.0_f64, 0);
    for &at in times.iter().take(first.saturating_sub(1) as usize) {
        backlog = (backlog - (at - then.min(at)) as f64 * rate as f64 / 8e9).max(0.0);
        then = at;
        backlog += packet as f64;
        most = most.max(backlog);
    }
    most as u64 + packet / 2
}

/// The harmonic mean of the part of the losses that are found and the part of the found that are losses.
fn score(dropped: &[u64], lost: usize, is_lost: &impl Fn(u64) -> bool) -> f64 {
    if dropped.is_empty() {
        return 0.0;
    }
    let near = |&&number: &&u64| (number.saturating_sub(BESIDE)..=number + BESIDE).any(is_lost);
    let right = dropped.iter().filter(near).count() as f64;
    let (precision, recall) = (right / dropped.len() as f64, (right / lost as f64).min(1.0));
    if right > 0.0 { 2.0 * precision * recall / (precision + recall) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Times of packets of 1,500 B in bursts of 20 at 100 Mbit/s, each 50 ms.
    fn bursts() -> Vec<u64> {
        (0..400_u64).map(|n| n / 20 * 50_000_000 + n % 20 * 120_000).collect()
    }

    /// A bucket of 3 Mbit/s and 15 kB passes 12.5 packets of a burst on average.
    #[test]
    fn a_bucket_is_found_by_what_it_drops() {
        let (times, bucket) = (bursts(), PolicerFit { rate: 3_000_000, burst: 15_000 });
        let dropped = bucket.drops(&times, 1_500);
        let lost: Vec<_> = dropped.iter().map(|&n| (n, times[n as usize - 1])).collect();
        assert!(lost.len() > 20, "{}", lost.len());
        // Each 20th burst lets something pass between: slower bursts do.
        let slow: Vec<u64> = (0..400_u64).map(|n| n * 2_500_000).collect();
        let dropped = bucket.drops(&slow, 1_500);
        let lost_slow: Vec<_> = dropped.iter().map(|&n| (n, slow[n as usize - 1])).collect();
        let found = PolicerFit::of(&slow, &lost_slow, 1_500, Duration::ZERO, None).unwrap();
        // Losses may be some packets beside their places, so rates near it have them, too.
        assert!(found.rate.abs_diff(3_000_000) < 300_000, "{found:?}");
        // A queue that was as long as the bucket is deep had the same losses.
        assert_eq!(PolicerFit::of(&slow, &lost_slow, 1_500, Duration::from_millis(40), None), None);
        // Only the ends of flights are lost: nothing passes after them.
        assert_eq!(PolicerFit::of(&times, &lost, 1_500, Duration::ZERO, None), None);
    }

    /// A queue of four packets before 10 Mbit/s drops of bursts of ten what does not fit. A bucket of a lower rate drops
    /// much the same, but what drains the queue is the path.
    #[test]
    fn a_short_queue_is_found_by_what_it_drops() {
        let times: Vec<u64> = (0..300_u64).map(|n| n / 10 * 40_000_000 + n % 10 * 20_000).collect();
        let queue = PolicerFit { rate: 10_000_000, burst: 6_750 };
        let lost: Vec<_> =
            queue.drops(&times, 1_500).into_iter().map(|n| (n, times[n as usize - 1])).collect();
        let drained = Duration::from_micros(5_400);
        let found = queue_with(&times, &lost, 1_500, (9_800_000, drained));
        assert!(found.is_some_and(|queue| queue.abs_diff(6_750) < 1_500), "{found:?}");
        // Without its delay it is none.
        assert_eq!(queue_with(&times, &lost, 1_500, (9_800_000, Duration::ZERO)), None);
        let path = Some(9_800_000);
        assert_eq!(PolicerFit::of(&times, &lost, 1_500, drained, path), None);
    }

    #[test]
    fn random_losses_are_no_bucket() {
        let times: Vec<u64> = (0..2_000_u64).map(|n| n * 500_000).collect();
        let lost: Vec<_> = (1..40_u64).map(|n| n * n + 7 * n).map(|n| (n, n * 500_000)).collect();
        assert_eq!(PolicerFit::of(&times, &lost, 1_500, Duration::ZERO, None), None);
    }
}
