//! Datagram endpoints: UDP sources that send at fixed or random intervals, whatever arrives, and
//! echo requests with their replies.
//!
//! A datagram carries its number in its sequence number. The flow ends [`LINGER`] after the last
//! datagram, so that those in flight can arrive.

use std::collections::VecDeque;

use units::{Bytes, Duration, Instant, RandomStream};

use crate::outcome::{DatagramOutcome, LatencyKind};
use crate::scenario::{DatagramInterval, DatagramSpec};

/// Bytes of a UDP header.
pub(crate) const UDP_HEADER: u64 = 8;

/// Time after the last datagram for which its arrival is awaited.
pub(crate) const LINGER: Duration = Duration::from_secs(1);

/// One end of a flow of datagrams.
#[derive(Debug)]
pub(crate) struct DatagramEndpoint {
    role: DatagramRole,
    /// Payload of a datagram.
    pub(crate) size: u32,
    /// Numbers of replies that are to be sent.
    replies: VecDeque<u32>,
}

#[derive(Debug)]
enum DatagramRole {
    Source(Box<DatagramSource>),
    /// Counts what arrives, and with `echo` returns it.
    Sink(DatagramSink),
}

#[derive(Debug)]
struct DatagramSource {
    interval: DatagramInterval,
    draws: RandomStream,
    /// Datagrams still to be sent; `None` for unlimited.
    left: Option<u64>,
    next: Option<Instant>,
    /// When each was sent.
    sent: Vec<Instant>,
    /// Round trips of the replies, by number.
    trips: Vec<Option<Duration>>,
    /// Datagrams whose replies arrived.
    replied: u64,
    echo: bool,
    /// When the flow ends.
    ends: Option<Instant>,
}

#[derive(Debug)]
struct DatagramSink {
    echo: bool,
    received: u64,
    /// One-way delays by number; the first copy counts.
    delays: Vec<Option<Duration>>,
}

impl DatagramEndpoint {
    /// The end that sends, once it is opened; `draws` supplies its randomness.
    pub(crate) fn source(spec: &DatagramSpec, draws: RandomStream) -> Self {
        let source = DatagramSource {
            interval: spec.interval,
            draws,
            left: spec.count,
            next: None,
            sent: Vec::new(),
            trips: Vec::new(),
            replied: 0,
            echo: spec.echo,
            ends: None,
        };
        Self::of(DatagramRole::Source(Box::new(source)), spec)
    }

    /// The end that receives.
    pub(crate) fn sink(spec: &DatagramSpec) -> Self {
        let sink = DatagramSink { echo: spec.echo, received: 0, delays: Vec::new() };
        Self::of(DatagramRole::Sink(sink), spec)
    }

    fn of(role: DatagramRole, spec: &DatagramSpec) -> Self {
        Self { role, size: spec.size.get() as u32, replies: VecDeque::new() }
    }

    /// Starts the source.
    pub(crate) fn open(&mut self, now: Instant) {
        if let DatagramRole::Source(source) = &mut self.role {
            source.next = Some(now);
        }
    }

    /// The number of the next datagram to send now.
    pub(crate) fn poll(&mut self, now: Instant) -> Option<u32> {
        match &mut self.role {
            DatagramRole::Source(source) => source.poll(now),
            DatagramRole::Sink(_) => self.replies.pop_front(),
        }
    }

    /// When it will send next, or the flow ends.
    pub(crate) fn deadline(&self) -> Instant {
        match &self.role {
            DatagramRole::Source(source) => source.next.or(source.ends).unwrap_or(Instant::MAX),
            DatagramRole::Sink(_) => Instant::MAX,
        }
    }

    /// Ends the flow if its time is over; true once.
    pub(crate) fn end(&mut self, now: Instant) -> bool {
        match &mut self.role {
            DatagramRole::Source(source) => source.ends.take_if(|ends| *ends <= now).is_some(),
            DatagramRole::Sink(_) => false,
        }
    }

    /// When a datagram was sent; `None` for the end that receives.
    pub(crate) fn sent_at(&self, number: u32) -> Option<Instant> {
        match &self.role {
            DatagramRole::Source(source) => source.sent.get(number as usize).copied(),
            DatagramRole::Sink(_) => None,
        }
    }

    /// Receives a datagram that its sender's peer had sent at `sent`. Returns whether it is new.
    pub(crate) fn receive(&mut self, now: Instant, number: u32, sent: Option<Instant>) -> bool {
        let place = number as usize;
        match &mut self.role {
            DatagramRole::Source(source) => {
                let trip = source.sent.get(place).map(|sent| now.since(*sent));
                let is_new = trip.is_some() && note(&mut source.trips, place, trip);
                source.replied += u64::from(is_new);
                is_new
            }
            DatagramRole::Sink(sink) => {
                let is_new = note(&mut sink.delays, place, sent.map(|sent| now.since(sent)));
                sink.received += u64::from(is_new);
                if sink.echo {
                    self.replies.push_back(number);
                }
                is_new
            }
        }
    }

    /// Datagrams sent so far by a source.
    pub(crate) fn sent(&self) -> u64 {
        match &self.role {
            DatagramRole::Source(source) => source.sent.len() as u64,
            DatagramRole::Sink(_) => 0,
        }
    }

    /// Appends the round trips of a source whose peer replies, or the one-way delays of the datagrams
    /// that `sink` received; returns what they are.
    pub(crate) fn latencies(&self, sink: &Self, times: &mut Vec<Duration>) -> Option<LatencyKind> {
        match (&self.role, &sink.role) {
            (DatagramRole::Source(source), _) if source.echo => {
                times.extend(source.trips.iter().copied().flatten());
                Some(LatencyKind::Pings)
            }
            (_, DatagramRole::Sink(sink)) => {
                times.extend(sink.delays.iter().copied().flatten());
                Some(LatencyKind::Datagrams)
            }
            _ => None,
        }
    }

    /// Counts of the flow, where this is the source.
    pub(crate) fn outcome(&self, sink: &Self) -> Option<DatagramOutcome> {
        let DatagramRole::Source(source) = &self.role else { return None };
        let DatagramRole::Sink(sink) = &sink.role else { return None };
        let received = if source.echo { source.replied } else { sink.received };
        Some(DatagramOutcome { sent: source.sent.len() as u64, received })
    }

    /// Has it sent all of its datagrams?
    pub(crate) fn sent_all(&self) -> bool {
        matches!(&self.role, DatagramRole::Source(source) if source.left == Some(0))
    }

    /// IP bytes of a datagram.
    pub(crate) fn packet_len(&self, ip_header: u32) -> Bytes {
        Bytes(u64::from(self.size) + UDP_HEADER + u64::from(ip_header))
    }
}

impl DatagramSource {
    fn poll(&mut self, now: Instant) -> Option<u32> {
        let due = self.next.filter(|next| *next <= now)?;
        if self.left == Some(0) {
            self.next = None;
            return None;
        }
        self.left = self.left.map(|left| left - 1);
        let number = self.sent.len() as u32;
        self.sent.push(now);
        self.next = match self.left {
            Some(0) => None,
            _ => Some(due + self.interval.draw(&mut self.draws)),
        };
        if self.next.is_none() {
            self.ends = Some(now + LINGER);
        }
        Some(number)
    }
}

impl DatagramInterval {
    /// The time to the next datagram, at least 1 ns.
    fn draw(&self, draws: &mut RandomStream) -> Duration {
        let drawn = match *self {
            Self::Fixed(every) => every,
            Self::Poisson(mean) => {
                let nanos = crate::scenario::exponential(mean.as_nanos() as f64, draws);
                Duration::from_nanos(nanos)
            }
        };
        drawn.max(Duration::from_nanos(1))
    }
}

/// Stores a time at this place, if there is none. Returns whether it is the first.
fn note(times: &mut Vec<Option<Duration>>, place: usize, time: Option<Duration>) -> bool {
    if times.len() <= place {
        times.resize(place + 1, None);
    }
    let is_new = times[place].is_none();
    if is_new {
        times[place] = time;
    }
    is_new
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_sends_at_its_interval_and_the_flow_ends_after_the_last() {
        let ms = Duration::from_millis;
        let at = |n| Instant::ZERO + ms(n);
        let interval = DatagramInterval::Fixed(ms(20));
        let spec = DatagramSpec { size: Bytes(160), interval, count: Some(2), echo: true };
        let mut source =
            DatagramEndpoint::source(&spec, RandomStream::named(1, "test", "datagram"));
        let mut sink = DatagramEndpoint::sink(&spec);
        assert_eq!(source.deadline(), Instant::MAX);
        source.open(at(5));
        assert_eq!((source.poll(at(5)), source.poll(at(5))), (Some(0), None));
        assert_eq!(source.deadline(), at(25));
        assert!(sink.receive(at(15), 0, source.sent_at(0)));
        assert_eq!((sink.poll(at(15)), sink.poll(at(15))), (Some(0), None));
        assert!(source.receive(at(27), 0, None));
        assert!(!source.receive(at(28), 0, None));
        assert_eq!((source.poll(at(25)), source.deadline()), (Some(1), at(1_025)));
        assert!(!source.end(at(1_024)) && source.end(at(1_025)) && !source.end(at(1_026)));
        assert_eq!(source.deadline(), Instant::MAX);
        let mut times = Vec::new();
        assert_eq!(source.latencies(&sink, &mut times), Some(LatencyKind::Pings));
        assert_eq!(times, [ms(22)]);
        let spec = DatagramSpec { echo: false, ..spec };
        let one_way = DatagramEndpoint::source(&spec, RandomStream::named(1, "test", "datagram"));
        times.clear();
        assert_eq!(one_way.latencies(&sink, &mut times), Some(LatencyKind::Datagrams));
        assert_eq!(times, [ms(10)]);
        let expected = DatagramOutcome { sent: 2, received: 1 };
        assert_eq!(source.outcome(&sink), Some(expected));
    }
}
