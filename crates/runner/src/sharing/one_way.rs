//! One-way delays of data packets and their jitter, and the packets in flight.

use std::collections::VecDeque;

use record::{PacketEvent, PacketNumber};
use serde::{Deserialize, Serialize};
use units::{Duration, FlowId, HostId, Instant};

use super::histogram::Histogram;

/// Flows or groups up to which each has its own delays, of up to 64 KB.
pub(super) const MOST_FLOWS: usize = 1_000;

/// One-way delays of the data packets of a flow, from the network card of the sender to that of the
/// receiver, in the direction of the counted bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OneWayReport {
    /// Packets received.
    pub packets: u64,
    /// The shortest delay.
    pub min_s: f64,
    /// The median.
    pub median_s: f64,
    /// The delay that 95 of 100 packets do not exceed.
    pub p95_s: f64,
    /// The delay that 99 of 100 packets do not exceed.
    pub p99_s: f64,
    /// The longest delay.
    pub max_s: f64,
    /// Interarrival jitter of RFC 3550 (section 6.4.1) after the last packet: the smoothed
    /// difference between the delays of consecutive packets.
    pub jitter_s: f64,
}

/// A packet in flight.
#[derive(Debug, Clone, Copy)]
struct PacketInFlight {
    sent: Instant,
    size: u32,
    /// The row of a data packet in the direction of the counted bytes.
    row: Option<u32>,
}

/// The delays of a flow.
#[derive(Debug, Clone, Default)]
struct FlowDelays {
    histogram: Histogram,
    shortest: Option<Duration>,
    last: Option<Duration>,
    /// 16 times the jitter in nanoseconds: the integer form of RFC 3550, appendix A.8.
    jitter_16: u64,
}

impl FlowDelays {
    fn add(&mut self, delay: Duration) {
        self.histogram.add(delay);
        self.shortest = Some(self.shortest.map_or(delay, |shortest| shortest.min(delay)));
        if let Some(last) = self.last.replace(delay) {
            let change = last.as_nanos().abs_diff(delay.as_nanos());
            self.jitter_16 += change;
            self.jitter_16 -= (self.jitter_16 - change + 8) >> 4;
        }
    }

    fn report(&self) -> Option<OneWayReport> {
        let quantile =
            |thousandths| self.histogram.quantile(thousandths).map(Duration::as_secs_f64);
        Some(OneWayReport {
            packets: self.histogram.total(),
            min_s: self.shortest?.as_secs_f64(),
            median_s: quantile(500)?,
            p95_s: quantile(950)?,
            p99_s: quantile(990)?,
            max_s: self.histogram.max()?.as_secs_f64(),
            jitter_s: Duration::from_nanos(self.jitter_16 >> 4).as_secs_f64(),
        })
    }
}

/// The packets in flight, and the delays of those received.
#[derive(Debug, Clone)]
pub(super) struct OneWayDelays {
    /// Number of the first entry of `in_flight`.
    first: u64,
    in_flight: VecDeque<Option<PacketInFlight>>,
    /// The host that sends the counted bytes of each flow, and its row of results.
    senders: Vec<(HostId, u32)>,
    /// A flow or a group each; empty beyond [`MOST_FLOWS`].
    flows: Vec<FlowDelays>,
}

impl OneWayDelays {
    pub(super) fn new(senders: Vec<(HostId, u32)>) -> Self {
        let rows = senders.last().map_or(0, |(_, row)| *row as usize + 1);
        let flows = if rows > MOST_FLOWS { 0 } else { rows };
        let flows = vec![FlowDelays::default(); flows];
        Self { first: 0, in_flight: VecDeque::new(), senders, flows }
    }

    /// Size of a packet in flight, in IP bytes; 0 for an unknown one.
    pub(super) fn size(&self, packet: PacketNumber) -> u32 {
        self.place(packet)
            .and_then(|place| self.in_flight.get(place)?.as_ref())
            .map_or(0, |p| p.size)
    }

    fn place(&self, packet: PacketNumber) -> Option<usize> {
        packet.0.checked_sub(self.first).map(|place| place as usize)
    }

    fn add(&mut self, packet: PacketNumber, entry: PacketInFlight) {
        if self.in_flight.is_empty() {
            self.first = packet.0;
        }
        let Some(place) = self.place(packet) else { return };
        if self.in_flight.len() <= place {
            self.in_flight.resize(place + 1, None);
        }
        self.in_flight[place] = Some(entry);
    }

    fn take(&mut self, packet: PacketNumber) -> Option<PacketInFlight> {
        let place = self.place(packet)?;
        let taken = self.in_flight.get_mut(place)?.take();
        while let Some(None) = self.in_flight.front() {
            self.in_flight.pop_front();
            self.first += 1;
        }
        taken
    }

    /// Called after all that need the size of the packet.
    pub(super) fn on_packet_event(&mut self, at: Instant, movement: PacketEvent) {
        match movement {
            PacketEvent::Sent { host, flow: FlowId(flow), packet, len, size, .. } => {
                let sender = self.senders.get(flow as usize).filter(|_| len > 0);
                let row = sender.filter(|(sender, _)| *sender == host).map(|(_, row)| *row);
                self.add(packet, PacketInFlight { sent: at, size, row });
            }
            PacketEvent::Duplicated { packet, copy, .. } => {
                let place = self.place(packet);
                if let Some(original) = place.and_then(|p| self.in_flight.get(p).copied().flatten())
                {
                    self.add(copy, original);
                }
            }
            PacketEvent::Dropped { packet, .. } => {
                self.take(packet);
            }
            PacketEvent::Received { packet, .. } => {
                if let Some(known) = self.take(packet)
                    && let Some(row) = known.row
                    && let Some(flow) = self.flows.get_mut(row as usize)
                {
                    flow.add(at.since(known.sent));
                }
            }
            _ => {}
        }
    }

    /// The delays of each flow; none without a received packet, or with very many flows.
    pub(super) fn reports(&self) -> impl Iterator<Item = Option<OneWayReport>> {
        self.flows.iter().map(FlowDelays::report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::TcpBits;
    use units::{Ecn, SeqNum};

    #[test]
    fn delays_are_those_between_the_cards_and_acks_do_not_count() {
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let mut delays = OneWayDelays::new(vec![(HostId(0), 0)]);
        let mut sent = |ms, host, number, len| {
            let (host, flow, packet) = (HostId(host), FlowId(0), PacketNumber(number));
            let (seq, size, ecn) = (SeqNum(0), len + 40, Ecn::NotEct);
            let sent = PacketEvent::Sent {
                host,
                flow,
                packet,
                seq,
                len,
                size,
                ecn,
                tcp: TcpBits::default(),
            };
            delays.on_packet_event(at(ms), sent);
        };
        sent(0, 0, 7, 1_460);
        sent(0, 1, 8, 0);
        sent(1, 0, 9, 1_460);
        sent(2, 0, 10, 1_460);
        assert_eq!(delays.size(PacketNumber(9)), 1_500);
        let mut got = |ms, number| {
            let (host, packet) = (HostId(1), PacketNumber(number));
            delays.on_packet_event(
                at(ms),
                PacketEvent::Received { host, packet, tcp: TcpBits::default() },
            );
        };
        [(10, 7), (11, 8), (15, 9), (12, 10)].into_iter().for_each(|(ms, n)| got(ms, n));
        let report = delays.reports().next().unwrap().unwrap();
        // 10, 14 and 10 ms; the differences are 4 ms twice: 0.25 ms, then 0.25 - 0.25 / 16 + 0.25.
        assert_eq!((report.packets, report.min_s, report.max_s), (3, 0.01, 0.014));
        assert!((report.jitter_s - 484.375e-6).abs() < 1e-6, "{}", report.jitter_s);
        assert!(delays.in_flight.is_empty());
    }
}
