//! The rate of the bottleneck by the spacing of packets that waited there one behind the other.
//!
//! If a packet waits longer at the bottleneck than the time between its arrival at the receiver and that of the packet
//! before, the bottleneck was busy in between: with that packet, and with what others sent. So the largest rate that many
//! spacings have in common is that of the link, whoever sets the rate of the transfer. Arrivals are those of the ACKs less
//! the delays that the peer reports; what the way back adds to both of two ACKs does not count.
//!
//! Only rates that stand out count: noise spreads what a link repeats. A clock of a millisecond shows sums only
//! ([`super::coarse`]).

use units::{Duration, Instant};

use super::coarse::{self, CoarseSpacing};
use crate::quic::analysis::QuicSpacing;

/// Most spacings that are kept, and fewest that have a rate in common.
const MOST: usize = 1 << 16;
const FEWEST: usize = 8;
/// Rates are equal within this ratio.
const EQUAL: f64 = 1.02;
/// At least one of this number of spacings has the rate of a link that is shared.
const PART: usize = 20;
/// Of this part of the spacings one rate is that of the way of what they measure.
const SINGLE: f64 = 0.9;

/// Whether a rate that fell is looked for: only at the end, as it takes longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fall {
    Ignored,
    Sought,
}

/// A spacing: when the ACK came, and its rate in bytes per second.
#[derive(Debug, Clone, Copy)]
struct PacketSpacing {
    at: Instant,
    rate: f64,
}

/// The newest packet acknowledged: its arrival at the receiver, but for the way back, in ns, and the bytes sent until then.
#[derive(Debug, Clone, Copy)]
struct NewestArrival {
    at: u64,
    total: u64,
    /// The peer may have held its ACK, for a time that the log lacks.
    may_be_late: bool,
}

/// An ACK of data: when it came, the delay that the peer reports, the packets and bytes that it newly acknowledges, and the
/// bytes sent up to the newest packet.
#[derive(Debug, Clone, Copy)]
pub(super) struct SpacedAck {
    pub(super) at: Instant,
    /// `None` if the log lacks it.
    pub(super) delay: Option<Duration>,
    pub(super) packets: u64,
    pub(super) acked: u64,
    pub(super) total: u64,
    pub(super) round_trip: Duration,
    pub(super) min_rtt: Duration,
}

/// Measures spacings.
#[derive(Debug, Default)]
pub(super) struct SpacingMeter {
    last: Option<NewestArrival>,
    /// ACKs of a single packet, and of several.
    acks: [u64; 2],
    /// Spacings that were left out, as their ACKs may be late.
    late: u64,
    all: Vec<PacketSpacing>,
    /// A time that is no multiple of a millisecond was seen.
    is_fine: bool,
    coarse: CoarseSpacing,
    /// Time of all spacings in ns, their bytes, and the first and the last.
    busy: (u64, u64),
    interval: (u64, u64),
    /// The rate so far, and the number of spacings that it is of.
    rate: Option<f64>,
    rated: usize,
}

impl SpacingMeter {
    /// An ACK that newly acknowledges data.
    pub(super) fn ack(&mut self, ack: SpacedAck) {
        self.is_fine |= !ack.at.as_nanos().is_multiple_of(coarse::TICK);
        if self.last.is_some_and(|last| ack.total <= last.total) {
            return;
        }
        self.acks[usize::from(ack.packets > 1)] += 1;
        let [single, several] = self.acks;
        let delay = ack.delay.unwrap_or_default();
        let now = NewestArrival {
            at: ack.at.as_nanos().saturating_sub(delay.as_nanos()),
            total: ack.total,
            may_be_late: ack.delay.is_none() && ack.packets <= 1 && several >= single,
        };
        let last = self.last.replace(now);
        let own = match ack.round_trip >= ack.min_rtt + delay {
            true => ack.round_trip - delay,
            false => ack.round_trip,
        };
        let waited = own.saturating_sub(ack.min_rtt);
        if !self.is_fine {
            self.coarse.ack(&ack, waited);
            let at = ack.at.as_nanos();
            self.interval = (if last.is_none() { at } else { self.interval.0 }, at);
        }
        let Some(last) = last else { return };
        let spacing = Duration::from_nanos(now.at.saturating_sub(last.at));
        if now.may_be_late || last.may_be_late {
            self.late += u64::from(waited >= spacing);
            return;
        }
        // All that was sent between the two packets has arrived.
        let covers_all = ack.acked == now.total - last.total;
        if spacing.is_zero() || !covers_all || waited < spacing || self.all.len() >= MOST {
            return;
        }
        let (ns, at) = (spacing.as_nanos(), ack.at.as_nanos());
        if self.is_fine && self.all.is_empty() {
            self.interval.0 = at.saturating_sub(ns);
        }
        self.interval.1 = at;
        self.busy = (self.busy.0 + ns, self.busy.1 + ack.acked);
        self.all.push(PacketSpacing { at: ack.at, rate: ack.acked as f64 / spacing.as_secs_f64() });
        if self.all.len() >= FEWEST && self.all.len() >= self.rated + self.rated / 8 {
            self.rated = self.all.len();
            self.rate = self.estimate(Fall::Ignored).map(|found| found.rate);
        }
    }

    /// The rate so far, in bytes per second.
    pub(super) fn rate(&self) -> Option<f64> {
        if self.is_fine { self.rate } else { self.coarse.rate() }
    }

    /// Whether all times are multiples of a millisecond.
    pub(super) const fn is_coarse(&self) -> bool {
        !self.is_fine
    }

    /// Whether nearly all spacings have one rate: what they measure is a link that carries the data.
    pub(super) fn is_single(&self) -> bool {
        let rates = self.sorted();
        let most = Cluster::all(&rates).map(|one| one.count()).max().unwrap_or(0);
        rates.len() >= FEWEST && most as f64 >= SINGLE * (rates.len() as f64 + self.late as f64)
    }

    fn sorted(&self) -> Vec<f64> {
        let mut rates: Vec<f64> = self.all.iter().map(|one| one.rate).collect();
        rates.sort_by(|a, b| b.total_cmp(a));
        rates
    }

    /// The rate of the bottleneck. By a coarse clock it is what the bottleneck carries of this transfer.
    pub(super) fn found(&self) -> Option<QuicSpacing> {
        if self.is_coarse() {
            let (rate, busy) = (self.coarse.rate()?, self.coarse.busy);
            return Some(QuicSpacing { rate, fell: None, busy, interval: self.interval });
        }
        self.estimate(Fall::Sought)
    }

    fn estimate(&self, fall: Fall) -> Option<QuicSpacing> {
        if !self.is_fine || self.all.len() < FEWEST {
            return None;
        }
        let rates = self.sorted();
        let usual = Cluster::all(&rates).max_by(|a, b| {
            // Of those with as many, the first.
            a.count().cmp(&b.count()).then(b.from.cmp(&a.from))
        })?;
        if fall == Fall::Sought
            && let Some(fell) = self.fallen(&rates, usual)
        {
            return Some(fell);
        }
        let least = FEWEST.max(rates.len() / PART);
        let is_rate = |one: &Cluster| one.count() >= least && one.stands_out(&rates);
        let highest = Cluster::all(&rates).find(is_rate)?.largest_near(&rates);
        let (high, low) = (highest.rate(&rates), usual.rate(&rates));
        if high <= low * EQUAL || !usual.stands_out(&rates) {
            return Some(self.spacing(high, None));
        }
        // A few packets that come late leave a short spacing to the next.
        let rate = if usual.count() * 2 >= rates.len() { low } else { high };
        Some(self.spacing(rate, None))
    }

    /// A rate of the first spacings, if nearly all with the usual, lower one come after them.
    fn fallen(&self, rates: &[f64], usual: Cluster) -> Option<QuicSpacing> {
        let low = usual.rate(rates);
        let is = |rate: f64| {
            move |one: &&PacketSpacing| one.rate * EQUAL >= rate && one.rate <= rate * EQUAL
        };
        let has_fallen = |high: &Cluster| {
            let rate = high.rate(rates);
            let end = self.all.iter().rfind(is(rate)).map(|one| one.at)?;
            let before = self.all.iter().filter(|one| one.at <= end).count();
            let after = self.all.iter().filter(|one| one.at > end).filter(is(low)).count();
            let is_fall = high.count() * 2 >= before && after * 10 >= usual.count() * 9;
            is_fall.then(|| self.spacing(rate, Some((end.as_nanos(), low))))
        };
        let mut rest = 0;
        while rest < usual.from {
            let high = Cluster::from(rates, rest).find(|one| one.count() >= FEWEST)?;
            let high = high.largest_near(rates);
            if high.rate(rates) <= low * EQUAL || !usual.stands_out(rates) {
                return None;
            }
            if high.stands_out(rates)
                && let Some(fell) = has_fallen(&high)
            {
                return Some(fell);
            }
            rest = high.to;
        }
        None
    }

    const fn spacing(&self, rate: f64, fell: Option<(u64, f64)>) -> QuicSpacing {
        QuicSpacing { rate, fell, busy: self.busy, interval: self.interval }
    }
}

/// Rates within [`EQUAL`] of each other: a range of the rates in falling order.
#[derive(Debug, Clone, Copy)]
struct Cluster {
    from: usize,
    to: usize,
}

impl Cluster {
    /// The cluster that begins with each rate.
    fn all(rates: &[f64]) -> impl Iterator<Item = Self> + '_ {
        Self::from(rates, 0)
    }

    /// The cluster that begins with each rate from this index on.
    fn from(rates: &[f64], first: usize) -> impl Iterator<Item = Self> + '_ {
        let mut to = first;
        (first..rates.len()).map(move |from| {
            while to < rates.len() && rates[to] * EQUAL >= rates[from] {
                to += 1;
            }
            Self { from, to }
        })
    }

    /// Of the clusters that begin within this one, the one with most.
    fn largest_near(self, rates: &[f64]) -> Self {
        let near = |one: &Self| rates[one.from] * EQUAL >= rates[self.from];
        Self::from(rates, self.from)
            .take_while(near)
            .max_by(|a, b| a.count().cmp(&b.count()).then(b.from.cmp(&a.from)))
            .unwrap_or(self)
    }

    const fn count(&self) -> usize {
        self.to - self.from
    }

    fn rate(&self, rates: &[f64]) -> f64 {
        rates[usize::midpoint(self.from, self.to)]
    }

    /// Whether the ranges beside it have less than half of it.
    fn stands_out(&self, rates: &[f64]) -> bool {
        let (high, low) = (rates[self.from] * EQUAL, rates[self.from] / EQUAL / EQUAL);
        let above = self.from - rates[..self.from].partition_point(|&rate| rate > high);
        let below = rates[self.to..].partition_point(|&rate| rate >= low);
        (above + below) * 2 <= self.count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: u64 = 1_200;
    const MS: u64 = 1_000_000;

    /// ACKs of two packets each, with these spacings in µs, of packets that wait long enough.
    fn found(spacings: impl Iterator<Item = u64>) -> Option<QuicSpacing> {
        let mut meter = SpacingMeter::default();
        let mut at = Duration::from_nanos(1_234_567);
        for (n, spacing) in spacings.enumerate() {
            at += Duration::from_micros(spacing);
            meter.ack(SpacedAck {
                at: Instant::ZERO + at,
                delay: Some(Duration::ZERO),
                packets: 2,
                acked: 2 * PACKET,
                total: (n as u64 + 1) * 2 * PACKET,
                round_trip: Duration::from_millis(300),
                min_rtt: Duration::from_millis(20),
            });
        }
        meter.found()
    }

    fn is_near(rate: f64, expected: f64) -> bool {
        (rate / expected - 1.0).abs() < 0.01
    }

    #[test]
    fn the_rate_of_a_link_is_the_highest_that_spacings_repeat() {
        // 2,400 B each 2 ms.
        let alone = found((0..200).map(|_| 2_000)).unwrap();
        assert!(is_near(alone.rate, 1.2e6) && alone.fell.is_none(), "{alone:?}");
        // Beside others, of which one, two or three packets are between: a third of the rate or less.
        let shared =
            found((0..200).map(|n| if n % 7 == 0 { 2_000 } else { 3_000 + n % 5 * 1_000 }));
        assert!(is_near(shared.unwrap().rate, 1.2e6), "{shared:?}");
        // A packet in sixteen is late, and the next one on time.
        let late = found((0..500).map(|n| [2_400, 1_600].get(n % 16).copied().unwrap_or(2_000)));
        assert!(is_near(late.unwrap().rate, 1.2e6), "{late:?}");
    }

    #[test]
    fn a_rate_that_falls_has_a_time() {
        // Ten of 800 are enough, if they are the first.
        let early = found((0..800).map(|n| if n < 10 { 2_000 } else { 9_000 })).unwrap();
        assert!(early.fell.is_some(), "{early:?}");
        let fell = found((0..300).map(|n| if n < 60 { 2_000 } else { 9_000 })).unwrap();
        let (at, low) = fell.fell.unwrap();
        assert!(is_near(fell.rate, 1.2e6) && is_near(low, 2_400.0 / 9e-3), "{fell:?}");
        assert_eq!(at / MS, 121);
    }

    #[test]
    fn noise_and_coarse_times_have_no_rate() {
        assert_eq!(found((0..300).map(|n| 1_000 + n * 7_919 % 2_003)), None);
        let mut meter = SpacingMeter::default();
        for n in 0..100 {
            let at = Instant::ZERO + Duration::from_millis(10 + n);
            let [round_trip, min_rtt] = [300, 20].map(Duration::from_millis);
            let total = (n + 1) * PACKET;
            let delay = Some(Duration::ZERO);
            meter.ack(SpacedAck {
                at,
                delay,
                packets: 1,
                acked: PACKET,
                total,
                round_trip,
                min_rtt,
            });
        }
        // 99 of them in 99 ms.
        assert_eq!(meter.found(), None);
    }
}
