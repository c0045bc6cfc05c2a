//! The rate of the bottleneck by packets that were sent together.

use diagnose::quic::transfer::{QuicRoundTrip, QuicTransfer};

/// Fewest samples of the spacing of ACKs that give a rate.
const LEAST_SPACINGS: usize = 8;
/// Ticks of the log's clock that a spacing lasts at least: it is off by up to one.
const LEAST_TICKS: u64 = 10;
/// Most samples of which a spacing consists: more show no better rate.
const MOST_SAMPLES: usize = 1_000;
/// Spacings of one link: the middle half of their rates differs by this part of the median.
const COMMON: f64 = 0.25;

/// The tick of the clock of the log in ns: the largest time of which all times of packets and ACKs are multiples, from
/// the first on.
fn resolution(transfer: &QuicTransfer) -> u64 {
    let Some(first) = transfer.packets.first().map(|packet| packet.at) else { return 1 };
    let sent = transfer.packets.iter().map(|packet| packet.at);
    let acked = transfer.round_trips.iter().map(|sample| sample.at);
    sent.chain(acked).fold(0, |tick, at| common_divisor(at.abs_diff(first), tick)).max(1)
}

/// Greatest common divisor.
const fn common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// A rate in bit/s of IP packets by the spacing of the ACKs of packets that were sent more closely.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SpacedRate {
    /// The median.
    pub(super) rate: u64,
    /// Half of the spacings have about this rate: they are of one link, and not of what delays ACKs.
    pub(super) is_common: bool,
}

impl SpacedRate {
    /// Measures it. Packets have `headers` bytes beyond those of the log.
    pub(super) fn of(transfer: &QuicTransfer, headers: u64) -> Option<Self> {
        let mut rates = rates(transfer, headers);
        rates.sort_unstable();
        let number = rates.len();
        let [low, rate, high] = [number / 4, number / 2, number * 3 / 4].map(|at| rates.get(at));
        let (low, rate, high) = (*low?, *rate?, *high?);
        let is_common = high.saturating_sub(low) as f64 <= COMMON * rate as f64;
        (number >= LEAST_SPACINGS).then_some(Self { rate, is_common })
    }
}

/// The rate of each spacing.
fn rates(transfer: &QuicTransfer, headers: u64) -> Vec<u64> {
    let samples = &transfer.round_trips;
    let tick = resolution(transfer);
    let largest = transfer.packets.iter().map(|packet| u64::from(packet.bytes)).max().unwrap_or(0);
    let sums = Sums::of(transfer, headers);
    let mut rates = Vec::new();
    let mut from = 0;
    while from + 1 < samples.len() {
        let mut next = from + 1;
        for (index, after) in samples.iter().enumerate().skip(from + 1).take(MOST_SAMPLES) {
            let spacing = Spacing::of(transfer, &sums, [samples[from], *after]);
            let Some(spacing) = spacing.filter(Spacing::is_of_queue) else { break };
            // The delay of an ACK that the peer reports is not as exact as the time of a small packet on a link.
            let is_full = spacing.bytes >= largest;
            if is_full && spacing.arrived >= tick.saturating_mul(LEAST_TICKS) {
                rates.push((spacing.bytes as f64 * 8e9 / spacing.arrived as f64) as u64);
                next = index;
                break;
            }
        }
        from = next;
    }
    rates
}

/// Two packets, of which all between have arrived.
struct Spacing {
    /// Time between them as they were sent, and as they arrived.
    sent: u64,
    arrived: u64,
    /// Bytes of the later one and those between.
    bytes: u64,
}

/// Of the packets before each: their bytes with headers, and how many of them were not acknowledged.
struct Sums(Vec<(u64, u32)>);

impl Sums {
    fn of(transfer: &QuicTransfer, headers: u64) -> Self {
        let mut sum = (0, 0);
        let after = transfer.packets.iter().map(|packet| {
            sum.0 += u64::from(packet.bytes) + headers;
            sum.1 += u32::from(packet.acked_at.is_none());
            sum
        });
        Self(core::iter::once((0, 0)).chain(after).collect())
    }
}

impl Spacing {
    fn of(
        transfer: &QuicTransfer,
        Sums(sums): &Sums,
        [before, after]: [QuicRoundTrip; 2],
    ) -> Option<Self> {
        if after.packet <= before.packet {
            return None;
        }
        let [first, last] = [before.packet, after.packet].map(|packet| packet as usize);
        let (one, other) = (transfer.packets.get(first)?, transfer.packets.get(last)?);
        let has_arrived = sums[last + 1].1 == sums[first].1;
        has_arrived.then(|| Self {
            sent: other.at.saturating_sub(one.at),
            // Arrivals at the receiver, but for the way back, which both have.
            arrived: (other.at + after.rtt).saturating_sub(one.at + before.rtt),
            bytes: sums[last + 1].0 - sums[first + 1].0,
        })
    }

    /// Whether the second waited behind the first: they were sent more closely.
    const fn is_of_queue(&self) -> bool {
        self.arrived > 0 && self.sent * 2 <= self.arrived
    }
}

#[cfg(test)]
mod tests {
    use diagnose::quic::transfer::QuicDataPacket;

    use super::*;

    /// Twenty bursts of this number of packets of 1,000 bytes, one acknowledged each `each` ns, with times of this
    /// clock.
    fn bursts(packets: u64, each: u64, tick: u64) -> QuicTransfer {
        let at = |time: u64| time / tick * tick;
        let mut transfer = QuicTransfer::default();
        for burst in 0..20 {
            for index in 0..packets {
                let number = burst * packets + index;
                let sent = at(burst * 100_000_000);
                let acked = at(burst * 100_000_000 + 30_000_000 + index * each);
                transfer.packets.push(QuicDataPacket {
                    number,
                    at: sent,
                    bytes: 1_000,
                    fresh: 1_000,
                    acked_at: Some(acked),
                    overtaken: 0,
                    lost_at: None,
                    is_lost: false,
                });
                let packet = number as u32;
                let rtt = acked - sent;
                transfer.round_trips.push(QuicRoundTrip { packet, at: acked, rtt, newly: 1 });
            }
        }
        transfer
    }

    #[test]
    fn the_tick_of_a_clock_is_no_rate() {
        // 40 Mbit/s: 0.2 ms a packet; not all times are multiples of that.
        let fine = SpacedRate::of(&bursts(10, 201_000, 1_000), 0);
        assert_eq!(fine, Some(SpacedRate { rate: 39_800_995, is_common: true }));
        // Bursts of 2 ms show nothing by a clock of 1 ms, those of 40 ms do.
        assert_eq!(resolution(&bursts(10, 201_000, 1_000_000)), 1_000_000);
        assert_eq!(SpacedRate::of(&bursts(10, 201_000, 1_000_000), 0), None);
        let coarse = SpacedRate::of(&bursts(200, 201_000, 1_000_000), 0).unwrap();
        assert!(coarse.rate.abs_diff(40_000_000) <= 4_000_000, "{coarse:?}");
    }

    #[test]
    fn acks_that_something_holds_and_releases_have_no_rate_in_common() {
        let mut transfer = bursts(20, 201_000, 1_000);
        for (index, sample) in transfer.round_trips.iter_mut().enumerate() {
            // Of every second packet later by 0.15 ms.
            sample.rtt += if index % 2 == 0 { 0 } else { 150_000 };
        }
        assert!(SpacedRate::of(&transfer, 0).is_some_and(|found| !found.is_common));
    }
}
