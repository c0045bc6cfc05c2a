//! RED, random early detection (Floyd and Jacobson, "Random Early Detection Gateways for Congestion
//! Avoidance", IEEE/ACM Transactions on Networking 1(4), 1993; RFC 2309): marks or drops packets on
//! arrival, by the average queue length.
//!
//! `gentle` is Floyd's note of March 2000 ("Recommendation on using the gentle variant of RED"):
//! from the upper threshold to twice its value, the probability rises from `probability` to 1.
//! Lengths are in packets, averages in units of 2^-32.
//!
//! `count` is the number of packets since the last selected one, which it excludes: by section 7 of
//! the paper the gap is then uniform on 1, 2, ..., 1/p. (The paper's figure 2 counts one more.)

use machine::PacketAction;
use units::{Duration, Instant, RandomStream, Ratio};

use super::{Fifo, QueueArrival, QueueDiscipline, QueueOutcomes, QueueSite, QueuedPacket};
use crate::selection::RandomSource;

/// Parameters of RED.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RedParams {
    /// Average length above which packets are selected (min_th), in packets.
    pub min: u32,
    /// Average length at which the probability is `probability` (max_th), in packets; more than
    /// `min`.
    pub max: u32,
    /// Largest probability between the thresholds (max_p).
    pub probability: Ratio,
    /// Weight of the current length in the average (w_q), at most 1.
    pub weight: Ratio,
    /// Above `max` the probability keeps rising, instead of all packets being dropped.
    pub gentle: bool,
    /// Mark ECN-capable packets, up to an average of `max` (RFC 3168 section 7).
    pub ecn: bool,
}

impl Default for RedParams {
    /// Floyd's advice of 1997 ("RED: Discussions of Setting Parameters"): w_q of 0.002, thresholds
    /// of 5 and 15 packets, max_p of a tenth; gentle, of 2000.
    fn default() -> Self {
        Self {
            min: 5,
            max: 15,
            probability: Ratio::new(1, 10).unwrap_or(NONE),
            weight: Ratio::new(1, 500).unwrap_or(NONE),
            gentle: true,
            ecn: false,
        }
    }
}

const NONE: Ratio = match Ratio::new(0, 1) {
    Some(none) => none,
    None => panic!(),
};

/// One packet, and the probability 1.
const ONE: u64 = 1 << 32;

#[derive(Debug, Clone)]
pub(crate) struct Red {
    pub(super) queue: Fifo,
    params: RedParams,
    draws: RandomStream,
    /// Average length.
    average: u64,
    /// Packets since the last selected one; `None` below `min`.
    count: Option<u64>,
    /// When the queue became empty, if it is.
    idle_since: Option<Instant>,
    /// Transmission time of a packet, by which idle times are counted.
    slot: Duration,
}

impl QueueDiscipline for Red {
    type Params = RedParams;

    fn create(params: RedParams, site: &QueueSite<'_>) -> Self {
        Self::new(params, site.slot, site.random_source)
    }

    fn take(&mut self, arrival: &QueueArrival<'_>, fates: &mut QueueOutcomes) -> bool {
        let room = arrival.fits(&self.queue);
        self.enqueue(arrival.packet, room, fates)
    }

    fn give(&mut self, now: Instant, _fates: &mut QueueOutcomes) -> Option<QueuedPacket> {
        self.dequeue(now)
    }
}

impl Red {
    pub(super) fn new(params: RedParams, slot: Duration, random_source: &RandomSource<'_>) -> Self {
        Self {
            queue: Fifo::new(),
            params,
            draws: random_source.stream("red"),
            average: 0,
            count: None,
            idle_since: Some(Instant::ZERO),
            slot,
        }
    }

    /// Enqueues a packet; returns false if it is dropped.
    pub(super) fn enqueue(
        &mut self,
        packet: QueuedPacket,
        room: bool,
        fates: &mut QueueOutcomes,
    ) -> bool {
        self.update_average(packet.enqueued_at);
        let picked = self.picks();
        if !room {
            return false;
        }
        if picked {
            let full = self.average >= u64::from(self.params.max) * ONE;
            if !self.params.ecn || !packet.ecn.is_capable() || full {
                return false;
            }
            fates.push_back(PacketAction::Marked(packet.packet));
        }
        self.idle_since = None;
        self.queue.push(packet);
        true
    }

    pub(super) fn dequeue(&mut self, now: Instant) -> Option<QueuedPacket> {
        let packet = self.queue.pop();
        if self.queue.len() == 0 {
            self.idle_since.get_or_insert(now);
        }
        packet
    }

    /// Updates the average with the current length (section 4); an idle period counts as the
    /// packets that the line could have sent, each finding the queue empty.
    fn update_average(&mut self, now: Instant) {
        let keep = ONE - self.params.weight.of(ONE).min(ONE);
        if let Some(since) = self.idle_since {
            let slots = now.since(since).as_nanos() / self.slot.as_nanos().max(1);
            self.average = times(self.average, power(keep, slots));
            if slots > 0 {
                self.idle_since = Some(now);
            }
        }
        let length = self.queue.len() as u64 * ONE;
        self.average = times(self.average, keep) + self.params.weight.of(length);
    }

    /// Probability before the gap is counted (p_b).
    fn base(&self) -> u64 {
        let RedParams { min, max, probability, gentle, .. } = self.params;
        let [min, max] = [min, max].map(|packets| u64::from(packets) * ONE);
        let most = probability.of(ONE).min(ONE);
        let part = |of: u64, above: u64, range: u64| units::ratio::scaled(of, above, range.max(1));
        match self.average {
            average if average < min => 0,
            average if average < max => part(most, average - min, max - min),
            average if gentle && average < 2 * max => most + part(ONE - most, average - max, max),
            _ => ONE,
        }
    }

    fn picks(&mut self) -> bool {
        if self.average < u64::from(self.params.min) * ONE {
            self.count = None;
            return false;
        }
        let base = self.base();
        let count = self.count.unwrap_or(0);
        // p_a = p_b / (1 - count p_b)
        let used = base.saturating_mul(count);
        let picked = used >= ONE - base.min(ONE) || self.draws.below(ONE - used) < base;
        self.count = Some(if picked { 0 } else { count + 1 });
        picked
    }
}

fn times(a: u64, b: u64) -> u64 {
    ((u128::from(a) * u128::from(b)) >> 32) as u64
}

/// Returns `base`, at most 1, to the power of `n`.
fn power(mut base: u64, mut n: u64) -> u64 {
    let mut product = ONE;
    while n > 0 && product > 0 {
        if n & 1 == 1 {
            product = times(product, base);
        }
        base = times(base, base);
        n >>= 1;
    }
    product
}

#[cfg(test)]
mod tests {
    use machine::PacketId;
    use units::maths::pow;
    use units::{Bytes, Ecn};

    use super::*;

    const RNG: RandomSource<'static> = RandomSource { seed: 1, owner: "test" };
    const SLOT: Duration = Duration::from_millis(1);

    fn red(params: RedParams) -> Red {
        Red::new(params, SLOT, &RNG)
    }

    fn packet(capable: bool) -> QueuedPacket {
        QueuedPacket {
            packet: PacketId(0),
            size: Bytes(1_500),
            enqueued_at: Instant::ZERO,
            ecn: if capable { Ecn::Ect0 } else { Ecn::NotEct },
        }
    }

    /// The curve of the paper's section 4 and of Floyd's note.
    #[test]
    fn floyd_jacobson_1993_the_probability_rises_from_min_to_max_and_gently_on() {
        let base = |average: f64, gentle| {
            let mut red = red(RedParams { gentle, ..RedParams::default() });
            red.average = (average * ONE as f64) as u64;
            red.base() as f64 / ONE as f64
        };
        let curve = [
            (0.0, 0.0, 0.0),
            (4.99, 0.0, 0.0),
            (5.0, 0.0, 0.0),
            (7.5, 0.025, 0.025),
            (10.0, 0.05, 0.05),
            (14.0, 0.09, 0.09),
            (15.0, 0.1, 1.0),
            (20.0, 0.1 + 0.9 / 3.0, 1.0),
            (22.5, 0.55, 1.0),
            (29.0, 0.1 + 0.9 * 14.0 / 15.0, 1.0),
            (30.0, 1.0, 1.0),
        ];
        for (average, gentle, plain) in curve {
            assert!((base(average, true) - gentle).abs() < 1e-8, "gentle at {average}");
            assert!((base(average, false) - plain).abs() < 1e-8, "at {average}");
        }
    }

    /// Section 7 of the paper: with a constant p_b the packets between two selected ones are
    /// uniform on 1 to 1 / p_b, with the mean 1 / (2 p_b) + 1 / 2; independent draws would give a
    /// geometric distribution with twice the mean.
    #[test]
    fn floyd_jacobson_1993_section_7_gaps_are_uniform() {
        let mut red = red(RedParams::default());
        // p_b = 0.1 * (7 - 5) / 10 = 1 / 50.
        red.average = 7 * ONE;
        let mut counts = [0_u64; 51];
        let (mut gap, mut gaps) = (0_usize, 0_u64);
        while gaps < 100_000 {
            gap += 1;
            if red.picks() {
                counts[gap] += 1;
                (gap, gaps) = (0, gaps + 1);
            }
        }
        // Each of the fifty: 2,000 of 100,000, deviation 44.3; the first count is of the first gap.
        assert_eq!(counts[0], 0);
        assert!(counts[1..].iter().all(|n| n.abs_diff(2_000) <= 5 * 44), "{counts:?}");
    }

    /// Section 6 of the paper: the average of a queue after a burst of `L` arrivals, each of which
    /// adds one packet, is L + 1 + ((1 - w)^(L+1) - 1) / w.
    #[test]
    fn floyd_jacobson_1993_section_6_the_average_of_a_burst() {
        let mut red = red(RedParams {
            min: 1_000,
            max: 2_000,
            weight: Ratio::new(1, 1_000).unwrap(),
            ..RedParams::default()
        });
        red.idle_since = None;
        for length in 1..=100_u64 {
            red.queue.push(packet(false));
            red.update_average(Instant::ZERO);
            let (w, l) = (0.001, length as f64);
            let expected = l + 1.0 + (pow(1.0 - w, l + 1.0) - 1.0) / w;
            let found = red.average as f64 / ONE as f64;
            assert!((found - expected).abs() < 1e-6, "{length}: {found}, not {expected}");
        }
        // The paper prints 4.88, truncated.
        let found = red.average as f64 / ONE as f64;
        assert!((4.88..4.89).contains(&found), "{found}");
    }

    #[test]
    fn an_idle_time_counts_as_packets_that_found_the_queue_empty() {
        let mut red = red(RedParams::default());
        red.average = 10 * ONE;
        red.update_average(Instant::ZERO + SLOT.saturating_mul(500));
        // 0.998^500 and once more for the packet itself.
        let expected = 10.0 * pow(0.998, 501.0);
        assert!((red.average as f64 / ONE as f64 - expected).abs() < 1e-5);
        red.update_average(Instant::ZERO + Duration::from_secs(1_000_000));
        assert_eq!(red.average, 0);
    }

    #[test]
    fn rfc_3168_section_7_marks_up_to_the_upper_threshold_and_drops_beyond() {
        for (average, marked) in [(14, true), (16, false)] {
            let mut red = red(RedParams { ecn: true, weight: NONE, ..RedParams::default() });
            let mut fates = QueueOutcomes::new();
            (red.average, red.idle_since) = (average * ONE, None);
            let lost = (0..1_000).filter(|_| !red.enqueue(packet(true), true, &mut fates)).count();
            assert_eq!((fates.is_empty(), lost == 0), (!marked, marked), "{average}");
            let lost = (0..1_000).filter(|_| !red.enqueue(packet(false), true, &mut fates));
            assert!(lost.count() > 100);
        }
    }
}
