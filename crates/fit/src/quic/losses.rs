//! Separates losses in a full queue from others.

use diagnose::quic::transfer::QuicTransfer;

use crate::LossEstimate;

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
}

impl QueueLosses {
    pub(super) fn of(transfer: &QuicTransfer, rtt: u64) -> Self {
        let delays = delays(transfer, rtt);
        let is_lost = |index: usize| {
            let packet = &transfer.packets[index];
            packet.lost_at.is_some() && packet.acked_at.is_none()
        };
        let sent = delays.len() as u64;
        let lost = (0..delays.len()).filter(|&index| is_lost(index));
        // Numbers on the path count from 1.
        let lost = lost.map(|index| (index as u64 + 1, transfer.packets[index].at)).collect();
        let mut others = LossEstimate::listed(lost, sent, rtt);
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
        // No queue is longer than a full one, but for outliers.
        let longer = delays
            .iter()
            .filter(|&&delay| delay.saturating_mul(FULL) > queue.saturating_mul(10))
            .count();
        let overflowed = queue >= LEAST_DELAY && often && longer * 100 <= delays.len();
        if overflowed {
            others.packets.retain(|lost| !is_full(delays[lost.0 as usize - 1]));
        }
        Self { queue, overflows: if overflowed { lost_full } else { 0 }, others }
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
