//! Path MTU discovery by probes: quic-go 0.65 (`mtu_discoverer.go`), and quinn's.

mod quinn;

use units::{Duration, Instant};

use crate::sent::SentQuicPacket;
use quinn::QuinnSearch;

/// How a sender searches the largest datagram of its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MtuDiscoveryRule {
    /// A probe among the packets that may be sent, once the handshake is confirmed (quic-go).
    Timed {
        /// UDP payload of full datagrams at first.
        first: u32,
        /// The search ends once the interval is no longer than this.
        within: u32,
        /// Smoothed round trips between two probes.
        round_trips: u64,
    },
    /// A probe whenever none is in flight and nothing else may be sent, once the handshake is complete (quinn-proto).
    AtOnce {
        /// UDP payload of full datagrams at first.
        first: u32,
        /// The search ends once the next step is less than this.
        within: u32,
    },
}

/// Probes larger than a size that are lost before the size is the largest.
const MOST_LOST: usize = 3;

/// The search of one connection.
#[derive(Debug, Clone)]
pub(crate) enum MtuSearch {
    Timed(TimedSearch),
    AtOnce(QuinnSearch),
}

impl MtuSearch {
    /// A search up to datagrams of `most` bytes.
    pub(crate) fn new(rule: MtuDiscoveryRule, most: u32) -> Self {
        match rule {
            MtuDiscoveryRule::Timed { first, within, round_trips } => {
                Self::Timed(TimedSearch::new((first, within, round_trips), most))
            }
            MtuDiscoveryRule::AtOnce { first, within } => {
                Self::AtOnce(QuinnSearch::new(first, within, most))
            }
        }
    }

    /// Present size of full datagrams.
    pub(crate) const fn size(&self) -> u32 {
        match self {
            Self::Timed(search) => search.size(),
            Self::AtOnce(search) => search.size(),
        }
    }

    /// Returns the size of a probe that is due among the packets that may be sent; the first call begins to wait for
    /// the first.
    pub(crate) fn due(&mut self, now: Instant, smoothed: Duration) -> Option<u32> {
        match self {
            Self::Timed(search) => search.due(now, smoothed),
            Self::AtOnce(_) => None,
        }
    }

    /// Returns the size of a probe that is due while nothing else may be sent.
    pub(crate) fn due_at_once(&mut self, now: Instant) -> Option<u32> {
        match self {
            Self::Timed(_) => None,
            Self::AtOnce(search) => search.due(now),
        }
    }

    /// Do its probes ask for an acknowledgment at once?
    pub(crate) const fn wants_immediate_ack(&self) -> bool {
        matches!(self, Self::AtOnce(_))
    }

    /// A probe leaves as this packet.
    pub(crate) const fn on_sent(&mut self, now: Instant, number: u64, size: u32) {
        match self {
            Self::Timed(search) => search.on_sent(now, number, size),
            Self::AtOnce(search) => search.on_sent(number),
        }
    }

    /// Processes acknowledged packets; returns the new size of full datagrams if a probe is among them.
    pub(crate) fn on_acked(&mut self, packets: &[SentQuicPacket]) -> Option<u32> {
        match self {
            Self::Timed(search) => search.on_acked(packets),
            Self::AtOnce(search) => search.on_acked(packets.iter().rev().map(number_and_size)),
        }
    }

    /// Processes lost packets; returns the number of the probe if it is among them.
    pub(crate) fn on_lost(&mut self, packets: &[SentQuicPacket]) -> Option<u64> {
        match self {
            Self::Timed(search) => search.on_lost(packets),
            Self::AtOnce(search) => search.on_lost(packets.iter().map(number_and_size)),
        }
    }

    /// Returns the new size of full datagrams if the losses so far are those of a black hole.
    pub(crate) fn take_black_hole(&mut self, now: Instant) -> Option<u32> {
        match self {
            Self::Timed(_) => None,
            Self::AtOnce(search) => search.take_black_hole(now),
        }
    }
}

const fn number_and_size(packet: &SentQuicPacket) -> (u64, u32) {
    (packet.number, packet.size)
}

/// quic-go's search: a binary one, whose bounds follow acknowledged and lost probes.
#[derive(Debug, Clone)]
pub(crate) struct TimedSearch {
    within: u32,
    round_trips: u64,
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

impl TimedSearch {
    /// A search up to datagrams of `most` bytes.
    fn new((first, within, round_trips): (u32, u32, u64), most: u32) -> Self {
        Self {
            within,
            round_trips,
            least: first.min(most),
            lost: vec![most],
            probe: None,
            since: None,
            last_was_lost: false,
        }
    }

    /// Present size of full datagrams.
    const fn size(&self) -> u32 {
        self.least
    }

    fn most(&self) -> u32 {
        self.lost.last().copied().unwrap_or(self.least)
    }

    /// Returns the size of a probe that is due; the first call begins to wait for the first.
    fn due(&mut self, now: Instant, smoothed: Duration) -> Option<u32> {
        let since = *self.since.get_or_insert(now);
        let is_done = self.most().saturating_sub(self.least) <= self.within + 1;
        let at = since + smoothed.saturating_mul(self.round_trips);
        if self.probe.is_some() || is_done || now < at {
            return None;
        }
        let bound = if self.last_was_lost { self.lost[0] } else { self.most() };
        Some((self.least + bound) / 2)
    }

    /// A probe leaves as this packet.
    const fn on_sent(&mut self, now: Instant, number: u64, size: u32) {
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
    fn on_acked(&mut self, packets: &[SentQuicPacket]) -> Option<u32> {
        let size = self.take_probe(packets)?;
        self.least = size;
        self.last_was_lost = false;
        let kept = self.lost.iter().position(|&lost| size < lost).unwrap_or(0);
        self.lost.drain(..kept);
        Some(size)
    }

    /// Processes lost packets; returns the number of the probe if it is among them.
    fn on_lost(&mut self, packets: &[SentQuicPacket]) -> Option<u64> {
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
            order: number,
            at: Instant::ZERO,
            size: 1_200,
            ack_eliciting: true,
            is_ect: false,
            frames: SentFrames::default(),
            delivery: DeliveryStamp::NONE,
            settled: false,
        }
    }

    /// Sizes of the probes over a path whose largest datagram is `largest`, in bytes.
    fn probes(largest: u32) -> (Vec<u32>, u32) {
        let mut search = TimedSearch::new((1_280, 20, 5), 1_452);
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
