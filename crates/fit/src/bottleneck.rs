//! Estimates the rate of the bottleneck from the spacing of the packets of bursts, and of their ACKs.
//!
//! Packets that are sent together leave the bottleneck at its rate, and no later part of the path brings them
//! nearer (Keshav, "A control-theoretic approach to flow control", SIGCOMM 1991). So the rate that most bursts share that
//! were sent faster is that of the bottleneck.

use diagnose::CapturedPacket;
use diagnose::capture_point::CapturePoint;
use packet::Dir;

use crate::losses::SequenceUnwrapper;

/// Segments of a burst after its first one: short bursts for senders whose window is small, long ones against noise, the
/// longest for clocks with long ticks.
const SPANS: [u64; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];
/// Number of spans that are long enough for the clock of a capture.
const USUAL_SPANS: usize = 6;
/// Shortest burst in ns, against the timers of interfaces.
const SHORTEST: u64 = 400_000;
/// Bursts of one rate differ by at most a fifteenth.
const TOLERANCE: f64 = 1.0 / 15.0;
/// Fewest bursts that share a rate.
const FEWEST: usize = 4;
/// How much faster bursts are sent than they arrive, if the bottleneck spaced them.
const SPREAD: f64 = 1.25;
/// Segments of a long burst, and how much higher the rate of shorter ones is beyond their noise.
const LONG: u64 = 16;
const CLEARLY: f64 = 1.2;
/// Part of the pairs of packets that follow one another at one rate, and of those that are faster, at most: one of these
/// numbers.
const PACKED: usize = 4;
/// How much shorter than a round trip the time between them is at least.
const NEARER: f64 = 8.0;
const FASTER: usize = 20;
/// Fewest ticks of timestamps that show their clock.
const FEWEST_TICKS: u64 = 50;
/// Fewest ticks of a burst whose deliveries have the times of such a clock.
const BURST_TICKS: u64 = 10;
/// Shortest time in ns for which ACKs are delayed: timers of Linux (TCP_DELACK_MIN) and FreeBSD have 40 ms.
const DELAYED_ACK: u64 = 35_000_000;

/// The rate of bursts that were sent faster.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct BurstRate {
    /// Bytes of payload per second.
    pub(crate) rate: f64,
    /// They are long enough for noise not to matter.
    is_long: bool,
}

/// Bytes delivered by a time.
#[derive(Debug, Clone, Copy)]
struct Delivery {
    at: u64,
    total: u64,
    /// Time at which the newest of them was sent, if it is known.
    sent: Option<u64>,
}

/// The clock by which data are delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeliveryClock {
    /// That of the capture.
    Capture,
    /// That of the timestamps on ACKs: on their way to the capture point they waited.
    Receiver,
}

/// The clock of a sender, as the capture shows it.
#[derive(Debug, Clone, Copy)]
enum SenderClock {
    /// That of the capture, taken at the sender.
    Capture,
    /// That of its timestamps: one of them, and ns between two.
    Timestamps(u32, u64),
    /// Unknown.
    Unknown,
}

impl SenderClock {
    fn of(packets: &[CapturedPacket], dir: Dir, point: CapturePoint) -> Self {
        if point == CapturePoint::Sender {
            return Self::Capture;
        }
        Self::of_stamps(packets, dir)
    }

    /// The clock of the timestamps of a host, those of direction `dir`.
    fn of_stamps(packets: &[CapturedPacket], dir: Dir) -> Self {
        let mut stamps = packets
            .iter()
            .filter(|packet| packet.segment.dir == dir)
            .filter_map(|packet| Some((packet.at.as_nanos(), packet.segment.timestamps?.val)));
        let Some((first, last)) = stamps.next().zip(stamps.next_back()) else {
            return Self::Unknown;
        };
        let ticks = u64::from(last.1.wrapping_sub(first.1));
        match (last.0.saturating_sub(first.0)).checked_div(ticks) {
            Some(tick) if ticks >= FEWEST_TICKS => Self::Timestamps(first.1, tick),
            _ => Self::Unknown,
        }
    }

    /// When a packet was sent, in ns.
    fn sent(self, packet: &CapturedPacket) -> Option<u64> {
        match self {
            Self::Capture => Some(packet.at.as_nanos()),
            Self::Timestamps(first, tick) => {
                let stamp = packet.segment.timestamps?.val;
                Some(u64::from(stamp.wrapping_sub(first)) * tick)
            }
            Self::Unknown => None,
        }
    }

    /// How much longer than its difference of times a burst may have taken.
    const fn grain(self) -> u64 {
        match self {
            Self::Timestamps(_, tick) => tick,
            Self::Capture | Self::Unknown => 1,
        }
    }
}

impl BurstRate {
    /// Finds it in the data of direction `dir`, of segments of `mss` bytes, captured at `point`, by this clock of the
    /// ACKs. `rtt`: the shortest round trip in ns.
    pub(crate) fn of(
        packets: &[CapturedPacket],
        dir: Dir,
        mss: u64,
        (point, delivery): (CapturePoint, DeliveryClock),
        rtt: u64,
    ) -> Option<Self> {
        let clock = SenderClock::of(packets, dir, point);
        let receiver = match delivery {
            DeliveryClock::Capture => SenderClock::Capture,
            DeliveryClock::Receiver => SenderClock::of_stamps(packets, dir.reversed()),
        };
        let (shortest, spans) = match receiver {
            SenderClock::Timestamps(_, tick) => (tick * BURST_TICKS, &SPANS[..]),
            _ => (SHORTEST, &SPANS[..USUAL_SPANS]),
        };
        let spaced = |runs: &[Vec<Delivery>], clock: SenderClock| {
            let of_span = |span| {
                let grain = clock.grain().max(receiver.grain());
                let bursts = spaced_bursts(runs, span * mss.max(1), grain, shortest);
                Some((most_frequent(&bursts)?, span))
            };
            // Long bursts have less noise; short ones are all that a small window has.
            let rates = spans.iter().copied().rev().filter_map(of_span);
            let better = |long: (f64, u64), short: (f64, u64)| {
                if short.0 > long.0 * CLEARLY { short } else { long }
            };
            let found = rates.reduce(better);
            // What is sent in one tick of a coarse clock may be several bursts: the packets of each are nearer.
            let packed = match clock {
                // Segments that are nearly a round trip apart wait for one another's ACKs.
                SenderClock::Timestamps(..) => packed_rate(runs)
                    .filter(|rate| mss as f64 * 1e9 / rate * NEARER <= rtt as f64)
                    .map(|rate| (rate, LONG)),
                SenderClock::Capture | SenderClock::Unknown => None,
            };
            found.into_iter().chain(packed).reduce(better)
        };
        let by_data = || spaced(&arrivals(packets, dir, clock), clock);
        let by_acks = || {
            // Between the hosts, ACKs that are no farther apart than the data were there show nothing of what follows.
            let clock = SenderClock::Capture;
            spaced(&acknowledged(packets, dir, (clock, receiver), mss), clock)
        };
        let found = match point {
            CapturePoint::Receiver => by_data(),
            // The bottleneck is before the capture point, or after it: the data have passed only the former.
            CapturePoint::Middle => {
                by_data().into_iter().chain(by_acks()).min_by(|a, b| a.0.total_cmp(&b.0))
            }
            _ => by_acks(),
        };
        found.map(|(rate, span)| Self { rate, is_long: span >= LONG })
    }
}

impl BurstRate {
    /// The better of this rate and `usual`, that of the whole, in bytes per second: bursts that are not long must
    /// be clearly faster.
    pub(crate) fn or_usual(self, usual: Option<f64>) -> f64 {
        match usual {
            Some(usual) if !self.is_long && self.rate < usual * CLEARLY => usual,
            Some(usual) if self.rate * CLEARLY < usual => usual,
            _ => self.rate,
        }
    }
}

/// The data that arrived in order, in runs without a gap.
fn arrivals(packets: &[CapturedPacket], dir: Dir, clock: SenderClock) -> Vec<Vec<Delivery>> {
    let mut stream = SequenceUnwrapper::default();
    let mut runs: Vec<Vec<Delivery>> = vec![Vec::new()];
    let mut next = None;
    for packet in packets.iter().filter(|packet| packet.segment.dir == dir) {
        let segment = &packet.segment;
        if segment.payload == 0 {
            continue;
        }
        let start = stream.place(segment.seq.0);
        let end = start + u64::from(segment.payload);
        if next.is_some_and(|next| next != start) {
            runs.push(Vec::new());
        }
        next = Some(end);
        let one = Delivery { at: packet.at.as_nanos(), total: end, sent: clock.sent(packet) };
        runs.last_mut().expect("there is a run").push(one);
    }
    runs
}

/// The data that ACKs without SACK blocks acknowledged, in runs of such ACKs.
/// The times are those of the second clock.
fn acknowledged(
    packets: &[CapturedPacket],
    dir: Dir,
    (clock, receiver): (SenderClock, SenderClock),
    mss: u64,
) -> Vec<Vec<Delivery>> {
    let mut stream = SequenceUnwrapper::default();
    let mut runs: Vec<Vec<Delivery>> = vec![Vec::new()];
    // Ends of segments by the time of their first transmission.
    let mut sent: Vec<(u64, Option<u64>)> = Vec::new();
    let (mut acked, mut acked_at) = (0, 0);
    for packet in packets {
        let segment = &packet.segment;
        if segment.dir == dir {
            let end = stream.place(segment.seq.0) + u64::from(segment.payload);
            if segment.payload > 0 && sent.last().is_none_or(|last| last.0 < end) {
                sent.push((end, clock.sent(packet)));
            }
            continue;
        }
        let Some(ack) = segment.acknowledgment() else { continue };
        let total = stream.place(ack.0);
        let is_clean = segment.sack_blocks().is_empty() && total > acked;
        // An ACK of a segment alone may be that of a timer.
        let at = receiver.sent(packet);
        let waited = at.unwrap_or(0).saturating_sub(acked_at);
        let is_late = acked > 0 && total < acked + 2 * mss && waited >= DELAYED_ACK;
        acked = acked.max(total);
        acked_at = at.unwrap_or(acked_at);
        let Some(at) = at.filter(|_| is_clean && !is_late) else {
            runs.push(Vec::new());
            continue;
        };
        let index = sent.partition_point(|one| one.0 < total);
        let sent = sent.get(index).and_then(|one| one.1);
        let one = Delivery { at, total, sent };
        runs.last_mut().expect("there is a run").push(one);
    }
    runs
}

/// The rates of bursts that were sent clearly faster, of at least `bytes` and `shortest` ns: from each delivery to the
/// first that has as many. Their sending took up to `grain` ns longer than its times show.
fn spaced_bursts(runs: &[Vec<Delivery>], bytes: u64, grain: u64, shortest: u64) -> Vec<f64> {
    let mut rates = Vec::new();
    for run in runs {
        let mut end = 0;
        for (begin, first) in run.iter().enumerate() {
            let is_short = |last: &Delivery| {
                last.total - first.total < bytes || last.at.saturating_sub(first.at) < shortest
            };
            end = end.max(begin + 1);
            while run.get(end).is_some_and(is_short) {
                end += 1;
            }
            let Some(last) = run.get(end) else { break };
            let Some((from, to)) = first.sent.zip(last.sent) else { continue };
            let span = last.at.saturating_sub(first.at) as f64;
            if span >= (to.saturating_sub(from) + grain) as f64 * SPREAD {
                rates.push((last.total - first.total) as f64 * 1e9 / span);
            }
        }
    }
    rates
}

/// The rate at which packets follow one another immediately: that of most pairs, if hardly any are faster.
fn packed_rate(runs: &[Vec<Delivery>]) -> Option<f64> {
    let pairs = runs.iter().flat_map(|run| run.windows(2));
    let rates = pairs.filter_map(|pair| {
        let gap = pair[1].at.saturating_sub(pair[0].at);
        (gap > 0).then(|| (pair[1].total - pair[0].total) as f64 * 1e9 / gap as f64)
    });
    let rates: Vec<f64> = rates.collect();
    let rate = most_frequent(&rates)?;
    let is_near = |one: &&f64| (*one / rate - 1.0).abs() <= TOLERANCE;
    let (near, faster) = (
        rates.iter().filter(is_near).count(),
        rates.iter().filter(|&&one| one > rate * (1.0 + TOLERANCE)).count(),
    );
    (near * PACKED >= rates.len() && faster * FASTER <= rates.len()).then_some(rate)
}

/// The rate that most bursts share.
fn most_frequent(rates: &[f64]) -> Option<f64> {
    let mut rates = rates.to_vec();
    rates.sort_by(|a, b| b.total_cmp(a));
    let alike = |first: usize| {
        let least = rates[first] * (1.0 - TOLERANCE);
        first..rates.partition_point(|&rate| rate >= least)
    };
    let range = (0..rates.len()).map(alike).max_by_key(ExactSizeIterator::len)?;
    let alike = &rates[range];
    (alike.len() >= FEWEST).then(|| alike[alike.len() / 2])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_packets::packet;

    const RTT: u64 = 20_000_000;

    /// A segment for each round trip: their distance is not that of a link.
    #[test]
    fn segments_a_round_trip_apart_show_no_rate() {
        let packets: Vec<_> = (0..60_u32)
            .map(|n| {
                let mut one = packet(u64::from(n) * 20_300, Dir::Forward, n * 1_000, 0, 1_000);
                one.segment.timestamps = Some(packet::Timestamps { val: n * 20, ecr: 0 });
                one
            })
            .collect();
        let point = (CapturePoint::Receiver, DeliveryClock::Capture);
        assert_eq!(BurstRate::of(&packets, Dir::Forward, 1_000, point, RTT), None);
    }

    /// Windows of six segments each 50 ms over a path of 1 MB/s: a segment takes a millisecond.
    fn windows(dir: Dir) -> Vec<CapturedPacket> {
        let mut packets = Vec::new();
        for round in 0..20_u32 {
            let (at, seq) = (u64::from(round) * 50_000, round * 6_000);
            packets.extend((0..6).map(|n| packet(at, dir, seq + n * 1_000, 0, 1_000)));
            packets.extend((1..=3).map(|n| {
                let at = at + 20_000 + u64::from(n) * 2_000;
                packet(at, dir.reversed(), 0, seq + n * 2_000, 0)
            }));
        }
        packets
    }

    #[test]
    fn bursts_of_a_small_window_have_the_rate_of_the_bottleneck() {
        let point = (CapturePoint::Sender, DeliveryClock::Capture);
        let found = |dir| BurstRate::of(&windows(dir), dir, 1_000, point, RTT).unwrap();
        for dir in [Dir::Forward, Dir::Reverse] {
            let BurstRate { rate, .. } = found(dir);
            assert!((rate - 1e6).abs() < 1e4, "{rate}");
        }
    }

    /// A sender that writes a segment each millisecond shows no more than its own rate.
    #[test]
    fn paced_segments_do_not_show_the_bottleneck() {
        let mut packets = Vec::new();
        for n in 0..100_u32 {
            let at = u64::from(n) * 1_000;
            packets.push(packet(at, Dir::Forward, n * 1_000, 0, 1_000));
            packets.push(packet(at + 500, Dir::Reverse, 0, (n + 1) * 1_000, 0));
        }
        let point = (CapturePoint::Sender, DeliveryClock::Capture);
        let found = BurstRate::of(&packets, Dir::Forward, 1_000, point, RTT);
        assert_eq!(found, None);
    }

    /// Bursts of 32 segments over 1 MB/s whose ACKs wait for a slow link: the receiver's timestamps show when they were sent.
    #[test]
    fn acks_that_waited_show_the_bottleneck_by_the_clock_of_the_receiver() {
        let mut packets = Vec::new();
        for burst in 0..20_u32 {
            let (at, seq) = (u64::from(burst) * 200_000, burst * 32_000);
            packets.extend((0..32).map(|n| packet(at, Dir::Forward, seq + n * 1_000, 0, 1_000)));
            for n in 1..=16_u32 {
                let acked = at + 20_000 + u64::from(n) * 2_000;
                let mut ack =
                    packet(at + 20_000 + u64::from(n) * 7_000, Dir::Reverse, 0, seq + n * 2_000, 0);
                let val = (acked / 1_000) as u32;
                ack.segment.timestamps = Some(packet::Timestamps { val, ecr: 0 });
                packets.push(ack);
            }
        }
        let rate = |clock| {
            let point = (CapturePoint::Sender, clock);
            BurstRate::of(&packets, Dir::Forward, 1_000, point, RTT).unwrap().rate
        };
        let (seen, true_rate) = (rate(DeliveryClock::Capture), rate(DeliveryClock::Receiver));
        assert!(seen < 4e5, "{seen}");
        assert!((true_rate - 1e6).abs() < 1e5, "{true_rate}");
    }

    /// Bursts of four segments over 8 MB/s, several in each tick of the sender's timestamps.
    #[test]
    fn bursts_of_one_tick_show_the_rate_within_them() {
        let mut packets = Vec::new();
        for burst in 0..400_u32 {
            for n in 0..4_u32 {
                let at = u64::from(burst) * 900 + u64::from(n) * 125;
                let mut one = packet(at, Dir::Forward, (burst * 4 + n) * 1_000, 0, 1_000);
                let val = burst * 9 / 10 / 4 * 4;
                one.segment.timestamps = Some(packet::Timestamps { val, ecr: 0 });
                packets.push(one);
            }
        }
        let point = (CapturePoint::Receiver, DeliveryClock::Capture);
        let found = BurstRate::of(&packets, Dir::Forward, 1_000, point, RTT);
        assert!(found.is_some_and(|found| (found.rate - 8e6).abs() < 1e5), "{found:?}");
    }

    #[test]
    fn short_bursts_must_be_clearly_faster_than_the_whole() {
        let of = |rate, is_long, usual| {
            let bursts = BurstRate { rate, is_long };
            bursts.or_usual(usual).round() as u64
        };
        assert_eq!(of(1.1e6, false, Some(1e6)), 1_000_000);
        assert_eq!(of(1.1e6, true, Some(1e6)), 1_100_000);
        assert_eq!(of(2e6, false, Some(1e6)), 2_000_000);
        assert_eq!(of(1e6, true, Some(2e6)), 2_000_000);
        assert_eq!(of(1e6, false, None), 1_000_000);
    }
}
