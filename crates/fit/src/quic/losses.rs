//! Separates losses in a full queue from others.

use diagnose::quic::transfer::QuicTransfer;
use units::Duration;

use crate::LossEstimate;
use crate::policer::queue_with;

/// A queue that overflows delays by at least this: the timer granularity of RFC 9002.
const LEAST_DELAY: u64 = 1_000_000;
/// A full queue is this part of the longest, in tenths.
const FULL: u64 = 8;
/// How many times more often packets are lost at a full queue than below it.
const OFTEN: u64 = 4;

/// Lost packets with data, by their cause.
pub(super) struct QueueLosses {
    /// Longest queueing delay of a packet at which others were lost, in ns.
    pub(super) queue: u64,
    /// Packets lost in a full queue.
    pub(super) overflows: u64,
    /// The others.
    pub(super) others: LossEstimate,
    /// Numbers of all, from 1, with their times, but for those of outages.
    all: Vec<(u64, u64)>,
}

impl QueueLosses {
    pub(super) fn of(transfer: &QuicTransfer, rtt: u64) -> Self {
        let delays = delays(transfer, rtt);
        let is_lost = |index: usize| transfer.packets[index].is_lost;
        let lost = (0..delays.len()).filter(|&index| is_lost(index));
        // Numbers on the path count from 1.
        let lost = lost.map(|index| (index as u64 + 1, transfer.packets[index].at)).collect();
        let times = transfer.packets.iter().map(|packet| packet.at).collect();
        let mut others = LossEstimate::listed(lost, times, rtt);
        for span in &mut others.outages {
            span.1 = end_of_outage(transfer, *span, rtt);
        }
        let lost: Vec<usize> = others.packets.iter().map(|lost| lost.0 as usize - 1).collect();
        let queue = lost.iter().map(|&index| delays[index]).max().unwrap_or(0);
        let is_full = |delay: u64| delay.saturating_mul(10) >= queue.saturating_mul(FULL);
        let full = delays.iter().filter(|&&delay| is_full(delay)).count() as u64;
        let lost_full = lost.iter().filter(|&&index| is_full(delays[index])).count() as u64;
        let (below, lost_below) = (delays.len() as u64 - full, lost.len() as u64 - lost_full);
        // Losses by chance are as frequent at a short queue as at a long one.
        let often = lost_full * below.max(1) >= OFTEN * lost_below * full.max(1);
        // One of several may be there by chance.
        let by_chance = lost.len() as f64 * full as f64 / delays.len().max(1) as f64;
        let is_proven =
            lost_below == 0 || lost_full as f64 > by_chance + 3.0 * by_chance.sqrt() + 1.0;
        // No queue is longer than a full one, but for outliers.
        let longer = delays
            .iter()
            .filter(|&&delay| delay.saturating_mul(FULL) > queue.saturating_mul(10))
            .count();
        let overflowed = queue >= LEAST_DELAY && often && is_proven && longer * 100 <= delays.len();
        let all = others.packets.clone();
        if overflowed {
            others.packets.retain(|lost| !is_full(delays[lost.0 as usize - 1]));
        }
        Self { queue, overflows: if overflowed { lost_full } else { 0 }, others, all }
    }

    /// Bytes of a queue before a link of `rate` bit/s that drops just the packets that were lost, of IP packets of
    /// `packet` bytes, if a full queue does not explain half of them.
    pub(super) fn short_queue(&self, packet: u64, rate: u64) -> Option<u64> {
        if self.overflows * 2 >= self.all.len() as u64 {
            return None;
        }
        let queueing = Duration::from_nanos(self.queue);
        queue_with(&self.others.times, &self.all, packet, (rate, queueing))
    }
}

/// End of an outage: in the middle between the last packet lost and the first that was not. The latter may
/// have been a probe, a round trip before the data.
fn end_of_outage(transfer: &QuicTransfer, (from, last): (u64, u64), rtt: u64) -> u64 {
    let after = transfer.packets.iter().filter(|packet| packet.at > from);
    let first = after.filter(|packet| packet.acked_at.is_some()).map(|packet| packet.at).min();
    let Some(first) = first.map(|first| first.saturating_sub(rtt + rtt / 2)) else { return last };
    let probes = transfer.lost_probes.iter().filter(|at| (from..first).contains(at));
    let last = probes.copied().max().unwrap_or(0).max(last);
    if first > last { u64::midpoint(first, last) } else { last }
}

/// Queueing delay of each packet in ns: the longer one of the round-trip samples before and after it.
fn delays(transfer: &QuicTransfer, rtt: u64) -> Vec<u64> {
    let mut delays = vec![0; transfer.packets.len()];
    let mut from = 0;
    let mut before = 0;
    for sample in &transfer.round_trips {
        let to = sample.packet as usize;
        if to < from {
            continue;
        }
        let delay = sample.rtt.saturating_sub(rtt);
        for packet in &mut delays[from..to] {
            *packet = before.max(delay);
        }
        delays[to] = delay;
        (from, before) = (to + 1, delay);
    }
    delays[from..].fill(before);
    delays
}

#[cfg(test)]
mod tests {
    use diagnose::quic::transfer::{QuicDataPacket, QuicRoundTrip};

    use super::*;

    const MS: u64 = 1_000_000;

    /// 1,000 packets, one each ms, with these round trips in ms, of which those with these indices are lost.
    fn losses(rtt: impl Fn(u64) -> u64, lost: &[u64]) -> QueueLosses {
        let mut transfer = QuicTransfer::default();
        for number in 0..1_000 {
            let (at, rtt, is_lost) = (number * MS, rtt(number) * MS, lost.contains(&number));
            transfer.packets.push(QuicDataPacket {
                number,
                at,
                bytes: 1_200,
                fresh: 1_000,
                acked_at: (!is_lost).then_some(at + rtt),
                overtaken: 0,
                lost_at: None,
                is_lost,
            });
            if !is_lost {
                let packet = number as u32;
                transfer.round_trips.push(QuicRoundTrip { packet, at: at + rtt, rtt, newly: 1 });
            }
        }
        QueueLosses::of(&transfer, 20 * MS)
    }

    /// A queue that is full from each 80th packet of a hundred on.
    fn queue(number: u64) -> u64 {
        if number % 100 < 80 { 20 } else { 40 }
    }

    #[test]
    fn packets_that_a_log_does_not_report_are_lost_and_one_loss_at_a_queue_proves_no_full_one() {
        let found = losses(queue, &[90, 190, 290, 390]);
        assert_eq!((found.overflows, found.others.packets.len()), (4, 0));
        // At random, of four losses one comes with a queue.
        let found = losses(queue, &[90, 150, 230, 340]);
        assert_eq!((found.overflows, found.others.packets.len()), (0, 4));
    }

    #[test]
    fn an_outage_begins_between_what_arrived_and_what_did_not() {
        let lost: Vec<u64> = (100..150).collect();
        let found = losses(|_| 20, &lost);
        assert_eq!(found.others.outages[0].0, 99 * MS + MS / 2);
    }
}
