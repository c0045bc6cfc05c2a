//! Path MTU discovery by probes: quic-go 0.65 (`mtu_discoverer.go`).

use units::{Duration, Instant};

use crate::sent::SentQuicPacket;

/// How a sender searches the largest datagram of its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MtuDiscoveryRule {
    /// UDP payload of full datagrams at first.
    pub first: u32,
    /// The search ends once the interval is no longer than this.
    pub within: u32,
    /// Smoothed round trips between two probes.
    pub round_trips: u64,
}

/// Probes larger than a size that are lost before the size is the largest.
const MOST_LOST: usize = 3;

/// The search of one connection: a binary one, whose bounds follow acknowledged and lost probes.
#[derive(Debug, Clone)]
pub(crate) struct MtuSearch {
    rule: MtuDiscoveryRule,
    /// Largest size that a probe has proved.
    least: u32,
    /// The largest possible size, then those of lost probes, ascending.
    lost: Vec<u32>,
    /// Number and size of the probe in flight.
    probe: Option<(u64, u32)>,
    /// When the last probe was sent, or the handshake was confirmed.
    since: Option<Instant>,
    last_was_lost: bool,
}

impl MtuSearch {
    /// A search up to datagrams of `most` bytes.
    pub(crate) fn new(rule: MtuDiscoveryRule, most: u32) -> Self {
        let least = rule.first.min(most);
        Self { rule, least, lost: vec![most], probe: None, since: None, last_was_lost: false }
    }

    /// Present size of full datagrams.
    pub(crate) const fn size(&self) -> u32 {
        self.least
    }

    fn most(&self) -> u32 {
        self.lost.last().copied().unwrap_or(self.least)
    }

    /// Returns the size of a probe that is due; the first call begins to wait for the first.
    pub(crate) fn due(&mut self, now: Instant, smoothed: Duration) -> Option<u32> {
        let since = *self.since.get_or_insert(now);
        let is_done = self.most().saturating_sub(self.least) <= self.rule.within + 1;
        let at = since + smoothed.saturating_mul(self.rule.round_trips);
        if self.probe.is_some() || is_done || now < at {
            return None;
        }
        let bound = if self.last_was_lost { self.lost[0] } else { self.most() };
        Some((self.least + bound) / 2)
    }

    /// A probe leaves as this packet.
    pub(crate) const fn on_sent(&mut self, now: Instant, number: u64, size: u32) {
        self.probe = Some((number, size));
        self.since = Some(now);
    }

    fn take_probe(&mut self, packets: &[SentQuicPacket]) -> Option<u32> {
        let (number, size) = self.probe?;
        packets.iter().any(|packet| packet.number == number).then_some(())?;
        self.probe = None;
        Some(size)
    }

    /// Processes acknowledged packets; returns the new size of full datagrams if a probe is among them.
    pub(crate) fn on_acked(&mut self, packets: &[SentQuicPacket]) -> Option<u32> {
        let size = self.take_probe(packets)?;
        self.least = size;
        self.last_was_lost = false;
        let kept = self.lost.iter().position(|&lost| size < lost).unwrap_or(0);
        self.lost.drain(..kept);
        Some(size)
    }

    /// Processes lost packets; returns the number of the probe if it is among them.
    pub(crate) fn on_lost(&mut self, packets: &[SentQuicPacket]) -> Option<u64> {
        let (number, _) = self.probe?;
        let size = self.take_probe(packets)?;
        self.last_was_lost = true;
        let at = self.lost.iter().position(|&lost| size < lost).unwrap_or(self.lost.len());
        self.lost.insert(at, size);
        self.lost.truncate(MOST_LOST);
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate_based::DeliveryStamp;
    use crate::sent::SentFrames;

    fn packet(number: u64) -> SentQuicPacket {
        SentQuicPacket {
            number,
            at: Instant::ZERO,
            size: 1_200,
            ack_eliciting: true,
            frames: SentFrames::default(),
            delivery: DeliveryStamp::NONE,
            settled: false,
        }
    }

    /// Sizes of the probes over a path whose largest datagram is `largest`, in bytes.
    fn probes(largest: u32) -> (Vec<u32>, u32) {
        let rule = MtuDiscoveryRule { first: 1_280, within: 20, round_trips: 5 };
        let mut search = MtuSearch::new(rule, 1_452);
        let rtt = Duration::from_millis(10);
        assert_eq!(search.due(Instant::ZERO, rtt), None);
        let mut sizes = Vec::new();
        for number in 1..100 {
            let now = Instant::ZERO + Duration::from_millis(50 * number);
            let Some(size) = search.due(now, rtt) else { break };
            assert_eq!(search.due(Instant::from_nanos(now.as_nanos() - 1), rtt), None);
            search.on_sent(now, number, size);
            sizes.push(size);
            if size <= largest {
                assert_eq!(search.on_acked(&[packet(number)]), Some(size));
            } else {
                assert_eq!(search.on_lost(&[packet(number)]), Some(number));
            }
        }
        (sizes, search.size())
    }

    #[test]
    fn the_sizes_of_quic_go_over_paths_of_1500_and_of_1400_bytes() {
        assert_eq!(probes(1_452), (vec![1_366, 1_409, 1_430, 1_441], 1_441));
        // After a loss half of the way to the least lost size, after an acknowledgment half of that to the third of them.
        let (sizes, size) = probes(1_372);
        assert_eq!(sizes, [1_366, 1_409, 1_387, 1_376, 1_371, 1_390]);
        assert_eq!(size, 1_371);
    }
}
