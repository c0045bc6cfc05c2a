//! What the hosts of a scenario send, as models and as real stacks: packets with stream data by time and size, losses
//! on the path, and the state of the senders.

use std::collections::BTreeMap;

use record::{Event, EventSource, PacketEvent, PacketNumber, Recorder, SenderState};
use sim::Observer;
use sim::scenario::Scenario;
use units::{Bytes, Duration, Instant};

/// A packet with stream data, as it leaves its host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SentData {
    /// When it leaves.
    pub at: Instant,
    /// Bytes of the stream.
    pub stream: u32,
    /// IP bytes.
    pub size: u32,
}

/// The state of a sender at an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SenderSample {
    /// Time of the event.
    pub at: Instant,
    /// Congestion window.
    pub cwnd: Bytes,
    /// Bytes in flight.
    pub in_flight: Bytes,
    /// Smoothed round-trip time.
    pub srtt: Option<Duration>,
}

/// What one end of a flow sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EndRecord {
    /// Packets with stream data.
    pub data: Vec<SentData>,
    /// All packets.
    pub packets: u64,
    /// Packets that the path dropped.
    pub dropped: u64,
    /// States of the sender.
    pub samples: Vec<SenderSample>,
}

impl EndRecord {
    /// Returns the state just before a time.
    pub fn before(&self, at: Instant) -> Option<&SenderSample> {
        let after = self.samples.partition_point(|sample| sample.at < at);
        self.samples.get(after.checked_sub(1)?)
    }
}

/// Records what all ends of a scenario send.
#[derive(Debug)]
pub struct SentRecord {
    /// The hosts of each flow.
    hosts: Vec<[u16; 2]>,
    /// Both ends of each flow, that which connects first.
    pub ends: Vec<[EndRecord; 2]>,
    /// The packets on the path.
    on_path: BTreeMap<PacketNumber, (usize, usize)>,
}

impl SentRecord {
    /// A record of a run of this scenario.
    pub fn new(scenario: &Scenario) -> Self {
        let hosts = scenario.flows.iter().map(|flow| [flow.from as u16, flow.to as u16]).collect();
        let ends = scenario.flows.iter().map(|_| <[EndRecord; 2]>::default()).collect();
        Self { hosts, ends, on_path: BTreeMap::new() }
    }

    fn end(&mut self, flow: usize, host: u16) -> Option<(usize, &mut EndRecord)> {
        let side = self.hosts.get(flow)?.iter().position(|&one| one == host)?;
        Some((side, &mut self.ends[flow][side]))
    }
}

impl Recorder for SentRecord {
    const ON: bool = true;
    const PACKETS: bool = true;

    fn record(&mut self, at: Instant, who: EventSource, _: Event, state: Option<&SenderState>) {
        let (Some((_, end)), Some(state)) = (self.end(who.flow.0 as usize, who.host.0), state)
        else {
            return;
        };
        let &SenderState { cwnd, in_flight, srtt, .. } = state;
        let sample = SenderSample { at, cwnd, in_flight, srtt };
        match end.samples.last_mut() {
            Some(last) if last.at == at => *last = sample,
            _ => end.samples.push(sample),
        }
    }

    fn record_packet(&mut self, at: Instant, movement: PacketEvent) {
        match movement {
            PacketEvent::Sent { host, flow, packet, len, size, .. } => {
                let flow = flow.0 as usize;
                let Some((side, end)) = self.end(flow, host.0) else { return };
                end.packets += 1;
                if len > 0 {
                    end.data.push(SentData { at, stream: len, size });
                }
                self.on_path.insert(packet, (flow, side));
            }
            PacketEvent::Dropped { packet, .. } => {
                if let Some((flow, side)) = self.on_path.remove(&packet) {
                    self.ends[flow][side].dropped += 1;
                }
            }
            PacketEvent::Received { packet, .. } => {
                self.on_path.remove(&packet);
            }
            _ => {}
        }
    }
}

impl Observer for SentRecord {}

/// The first packets with stream data of two runs that differ, by their number from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SentDifference {
    /// In stream bytes, or missing in one run.
    pub size: Option<usize>,
    /// In time, by more than the tolerance.
    pub time: Option<usize>,
}

impl SentDifference {
    /// Compares the data of an end in two runs.
    pub fn of(one: &EndRecord, other: &EndRecord, tolerance: Duration) -> Self {
        let pairs = || one.data.iter().zip(&other.data);
        let shorter = one.data.len().min(other.data.len());
        let missing = (one.data.len() != other.data.len()).then_some(shorter);
        let late = |(one, other): (&SentData, &SentData)| {
            one.at.as_nanos().abs_diff(other.at.as_nanos()) > tolerance.as_nanos()
        };
        Self {
            size: pairs().position(|(one, other)| one.stream != other.stream).or(missing),
            time: pairs().position(late),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(packets: &[(u64, u32)]) -> EndRecord {
        let data = packets.iter().map(|&(ns, stream)| SentData {
            at: Instant::from_nanos(ns),
            stream,
            size: stream + 54,
        });
        EndRecord { data: data.collect(), ..EndRecord::default() }
    }

    #[test]
    fn differences_in_size_and_in_time_are_found_apart() {
        let of = |one, other| SentDifference::of(one, other, Duration::from_nanos(5));
        let base = end(&[(10, 100), (20, 100), (30, 100)]);
        assert_eq!(of(&base, &base), SentDifference::default());
        let late = end(&[(15, 100), (26, 100), (30, 100)]);
        assert_eq!(of(&base, &late), SentDifference { size: None, time: Some(1) });
        let small = end(&[(10, 100), (20, 100), (30, 99)]);
        assert_eq!(of(&base, &small), SentDifference { size: Some(2), time: None });
        let short = end(&[(10, 100)]);
        assert_eq!(of(&base, &short), SentDifference { size: Some(1), time: None });
    }

    #[test]
    fn the_state_before_a_time_is_the_last_one() {
        let sample = |ns: u64, cwnd: u64| SenderSample {
            at: Instant::from_nanos(ns),
            cwnd: Bytes(cwnd),
            in_flight: Bytes(0),
            srtt: None,
        };
        let end = EndRecord { samples: vec![sample(10, 1), sample(20, 2)], ..EndRecord::default() };
        let cwnd = |ns| end.before(Instant::from_nanos(ns)).map(|sample| sample.cwnd.get());
        assert_eq!([cwnd(10), cwnd(11), cwnd(20), cwnd(21)], [None, Some(1), Some(1), Some(2)]);
    }
}
