//! PIE, proportional integral controller enhanced (RFC 8033): drops packets on arrival with a
//! probability that a controller of the queuing delay updates periodically.
//!
//! Implements these optional elements of section 5: ECN (5.1), the cap on large steps (5.5) and
//! derandomisation (5.4). The delay is that of the packet dequeued last, by its time of arrival, as
//! in Linux (sch_pie.c without dq_rate_estimator); section 5.2 would estimate it. Probabilities are
//! fixed-point numbers of 56 bits.

use machine::PacketAction;
use units::{Bytes, Duration, Instant, RandomStream};

use super::{Fifo, QueueArrival, QueueDiscipline, QueueOutcomes, QueueSite, QueuedPacket};
use crate::selection::RandomSource;

/// Parameters of PIE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PieParams {
    /// Target queuing delay (QDELAY_REF).
    pub target: Duration,
    /// Period of the probability update (T_UPDATE).
    pub update: Duration,
    /// Burst allowance after a period without a queue (MAX_BURST).
    pub burst: Duration,
    /// Mark ECN-capable packets instead of dropping them, up to a probability of a tenth.
    pub ecn: bool,
}

impl Default for PieParams {
    /// Section 4.2 and 4.4; ECN is off by default, as in Linux.
    fn default() -> Self {
        Self {
            target: Duration::from_millis(15),
            update: Duration::from_millis(15),
            burst: Duration::from_millis(150),
            ecn: false,
        }
    }
}

/// Probability 1.
const ONE: u64 = 1 << 56;
/// Section 4.2: alpha is 1/8, beta 1 1/4 per second; in sixteenths.
const ALPHA: i128 = 2;
const BETA: i128 = 20;
/// Section 4.1: PIE does not drop from a queue of at most this size.
const NO_DROP_BYTES: Bytes = Bytes(2 * 1_500);

const fn part(num: u64, den: u64) -> u64 {
    (ONE as u128 * num as u128 / den as u128) as u64
}

#[derive(Debug, Clone)]
pub(crate) struct Pie {
    pub(super) queue: Fifo,
    params: PieParams,
    draws: RandomStream,
    /// `drop_prob_`.
    probability: u64,
    /// Sum of the probabilities since the last selected packet (`accu_prob_`).
    accumulated: u64,
    burst_allowance: Duration,
    delay: Duration,
    delay_old: Duration,
    /// Time of the next update.
    next_update: Instant,
}

impl QueueDiscipline for Pie {
    type Params = PieParams;

    fn create(params: PieParams, site: &QueueSite<'_>) -> Self {
        Self::new(params, site.random_source)
    }

    fn take(&mut self, arrival: &QueueArrival<'_>, fates: &mut QueueOutcomes) -> bool {
        let room = arrival.fits(&self.queue);
        self.enqueue(arrival.packet, room, fates)
    }

    fn give(&mut self, now: Instant, _fates: &mut QueueOutcomes) -> Option<QueuedPacket> {
        self.dequeue(now)
    }
}

impl Pie {
    pub(super) fn new(params: PieParams, random_source: &RandomSource<'_>) -> Self {
        Self {
            queue: Fifo::new(),
            params,
            draws: random_source.stream("pie"),
            probability: 0,
            accumulated: 0,
            burst_allowance: params.burst,
            delay: Duration::ZERO,
            delay_old: Duration::ZERO,
            next_update: Instant::ZERO + params.update,
        }
    }

    /// Enqueues a packet (section 4.1); returns false if it is dropped.
    pub(super) fn enqueue(
        &mut self,
        packet: QueuedPacket,
        room: bool,
        fates: &mut QueueOutcomes,
    ) -> bool {
        self.run_updates(packet.enqueued_at);
        // Section 4.4: congestion has ended.
        if self.probability == 0 && self.is_short(self.delay) && self.is_short(self.delay_old) {
            self.burst_allowance = self.params.burst;
        }
        if !room {
            self.accumulated = 0;
            return false;
        }
        if self.burst_allowance.is_zero() && self.drop_early() {
            self.accumulated = 0;
            if !self.params.ecn || !packet.ecn.is_capable() || self.probability > part(1, 10) {
                return false;
            }
            fates.push_back(PacketAction::Marked(packet.packet));
        }
        self.queue.push(packet);
        true
    }

    pub(super) fn dequeue(&mut self, now: Instant) -> Option<QueuedPacket> {
        self.run_updates(now);
        let packet = self.queue.pop();
        self.delay = match packet {
            Some(packet) if self.queue.len() > 0 => now.since(packet.enqueued_at),
            _ => Duration::ZERO,
        };
        packet
    }

    /// `drop_early` of section 4.1, derandomised by section 5.4.
    fn drop_early(&mut self) -> bool {
        let low_delay = self.is_short(self.delay_old) && self.probability < part(1, 5);
        if low_delay || self.queue.bytes() <= NO_DROP_BYTES {
            return false;
        }
        if self.probability == 0 {
            self.accumulated = 0;
        }
        self.accumulated = self.accumulated.saturating_add(self.probability);
        if self.accumulated < part(85, 100) {
            return false;
        }
        self.accumulated >= part(85, 10) || self.draws.below(ONE) < self.probability
    }

    /// Returns whether a delay is below half of QDELAY_REF.
    const fn is_short(&self, delay: Duration) -> bool {
        2 * delay.as_nanos() < self.params.target.as_nanos()
    }

    /// Runs the updates that are due by `now`: the state is constant between two packets.
    fn run_updates(&mut self, now: Instant) {
        while self.next_update <= now {
            let before = (self.probability, self.burst_allowance, self.delay_old);
            self.update();
            self.next_update += self.params.update;
            if before == (self.probability, self.burst_allowance, self.delay_old) {
                // Further updates would not change anything either.
                let step = self.params.update.as_nanos().max(1);
                let behind = now.as_nanos().saturating_sub(self.next_update.as_nanos());
                let skipped = behind / step * step;
                self.next_update += Duration::from_nanos(skipped);
                if self.next_update <= now {
                    self.next_update += self.params.update;
                }
            }
        }
    }

    /// Updates the probability and the burst allowance (sections 4.2, 4.3 and 4.4).
    fn update(&mut self) {
        let [delay, old, target] = [self.delay, self.delay_old, self.params.target]
            .map(|span| i128::from(span.as_nanos()));
        let step = ALPHA * (delay - target) + BETA * (delay - old);
        let step = step * i128::from(ONE) / (16 * 1_000_000_000);
        let mut step = step / i128::from(self.step_divisor());
        // Section 5.5.
        if self.probability >= part(1, 10) {
            step = step.min(i128::from(part(2, 100)));
        }
        let mut probability = i128::from(self.probability) + step;
        if delay == 0 && old == 0 {
            probability = probability * 98 / 100;
        }
        self.probability = probability.clamp(0, i128::from(ONE)) as u64;
        self.burst_allowance = self.burst_allowance.saturating_sub(self.params.update);
        self.delay_old = self.delay;
    }

    /// Divisor of the steps while the probability is small (section 4.2).
    const fn step_divisor(&self) -> u32 {
        match self.probability {
            p if p < part(1, 1_000_000) => 2_048,
            p if p < part(1, 100_000) => 512,
            p if p < part(1, 10_000) => 128,
            p if p < part(1, 1_000) => 32,
            p if p < part(1, 100) => 8,
            p if p < part(1, 10) => 2,
            _ => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use machine::PacketId;

    use units::Ecn;

    use super::*;

    const RNG: RandomSource<'static> = RandomSource { seed: 1, owner: "test" };

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    fn at(n: u64) -> Instant {
        Instant::ZERO + ms(n)
    }

    fn pie(ecn: bool) -> Pie {
        Pie::new(PieParams { ecn, ..PieParams::default() }, &RNG)
    }

    fn packet(since: Instant, capable: bool) -> QueuedPacket {
        QueuedPacket {
            packet: PacketId(0),
            size: Bytes(1_500),
            enqueued_at: since,
            ecn: if capable { Ecn::Ect0 } else { Ecn::NotEct },
        }
    }

    fn probability(pie: &Pie) -> f64 {
        pie.probability as f64 / ONE as f64
    }

    /// Section 4.2: p = alpha (delay - target) + beta (delay - old delay), in seconds, divided by
    /// the factor in the table of steps.
    #[test]
    fn rfc_8033_section_4_2_the_probability_moves_in_the_steps_of_the_table() {
        let table = [
            (0.0, 2_048.0),
            (0.000_000_9, 2_048.0),
            (0.000_001_1, 512.0),
            (0.000_009, 512.0),
            (0.000_011, 128.0),
            (0.000_09, 128.0),
            (0.000_11, 32.0),
            (0.000_9, 32.0),
            (0.001_1, 8.0),
            (0.009, 8.0),
            (0.011, 2.0),
            (0.09, 2.0),
            (0.11, 1.0),
        ];
        for (begin, divisor) in table {
            let mut pie = pie(false);
            pie.probability = (begin * ONE as f64) as u64;
            (pie.delay, pie.delay_old) = (ms(25), ms(20));
            pie.update();
            // 0.125 * 10 ms + 1.25 * 5 ms.
            let step = (0.125 * 0.010 + 1.25 * 0.005) / divisor;
            let found = probability(&pie) - begin;
            assert!((found - step).abs() < 1e-12, "from {begin}: {found}, not {step}");
        }
    }

    #[test]
    fn rfc_8033_section_5_5_a_large_probability_rises_by_a_fiftieth_at_most() {
        for (begin, step) in [(0.2, 0.02), (0.09, (0.125 * 0.485 + 1.25 * 0.5) / 2.0)] {
            let mut pie = pie(false);
            pie.probability = (begin * ONE as f64) as u64;
            (pie.delay, pie.delay_old) = (ms(500), ms(0));
            pie.update();
            assert!((probability(&pie) - begin - step).abs() < 1e-9, "{begin}");
        }
    }

    #[test]
    fn rfc_8033_section_4_2_it_falls_by_a_fiftieth_when_congestion_is_gone() {
        let mut pie = pie(false);
        pie.probability = ONE / 2;
        pie.update();
        // alpha (0 - 15 ms), then 98 %.
        assert!((probability(&pie) - (0.5 - 0.125 * 0.015) * 0.98).abs() < 1e-12);
        for _ in 0..10_000 {
            pie.update();
        }
        assert_eq!(pie.probability, 0);
    }

    /// Section 4.4: after an idle period a burst of MAX_BURST passes without drops; the same load
    /// continues and then meets drops.
    #[test]
    fn rfc_8033_section_4_4_a_burst_of_150_ms_passes() {
        let mut pie = pie(false);
        let mut fates = QueueOutcomes::new();
        let mut lost = Vec::new();
        // Ten packets arrive each millisecond, one leaves.
        for k in 0..1_000 {
            let now = at(1_000 + k);
            for _ in 0..10 {
                if !pie.enqueue(packet(now, false), true, &mut fates) {
                    lost.push(k);
                }
            }
            pie.dequeue(now);
        }
        // Ten updates, the first of which may be due at once.
        let first = lost[0];
        assert!((135..=165).contains(&first), "{first}");
        assert!(lost.len() > 500);
    }

    /// Section 4.4: on arrival of a packet the allowance is reset to MAX_BURST if the probability
    /// is 0 and both delays are below half of QDELAY_REF, 7.5 ms; each update takes T_UPDATE off,
    /// down to 0.
    #[test]
    fn rfc_8033_section_4_4_the_allowance_is_reset_when_congestion_ends() {
        let us = Duration::from_micros;
        let cases = [
            (0, us(7_499), us(7_499), ms(150)),
            (0, us(7_500), us(7_499), ms(0)),
            (0, us(7_499), us(7_500), ms(0)),
            (1, us(0), us(0), ms(0)),
        ];
        for (probability, delay, old, allowance) in cases {
            let mut pie = pie(false);
            (pie.probability, pie.burst_allowance) = (probability, Duration::ZERO);
            (pie.delay, pie.delay_old) = (delay, old);
            assert!(pie.enqueue(packet(Instant::ZERO, false), true, &mut QueueOutcomes::new()));
            assert_eq!(pie.burst_allowance, allowance, "{probability} {delay} {old}");
        }
        let mut pie = pie(false);
        for looks in 1..=12 {
            pie.update();
            assert_eq!(pie.burst_allowance, ms(150_u64.saturating_sub(15 * looks)));
        }
    }

    /// Section 5.4: with a constant probability p, there are between 0.85 / p and 8.5 / p packets
    /// from one drop to the next.
    #[test]
    fn rfc_8033_section_5_4_losses_are_neither_close_together_nor_far_apart() {
        let mut pie = pie(false);
        let mut fates = QueueOutcomes::new();
        let p = part(1, 20) + 1;
        let (mut gaps, mut gap) = (Vec::new(), 0);
        for _ in 0..100 {
            pie.queue.push(packet(Instant::ZERO, false));
        }
        for _ in 0..200_000 {
            (pie.probability, pie.delay_old, pie.burst_allowance) = (p, ms(20), Duration::ZERO);
            gap += 1;
            if pie.enqueue(packet(Instant::ZERO, false), true, &mut fates) {
                pie.queue.pop();
            } else {
                gaps.push(gap);
                gap = 0;
            }
        }
        let (least, most) = (gaps.iter().min().unwrap(), gaps.iter().max().unwrap());
        assert!(*least >= 17 && *most <= 170, "{least} to {most}");
        // At least 17 packets; the 17th and each later one is dropped with probability p: 16 + 1 /
        // p.
        let mean = gaps.iter().sum::<u64>() as f64 / gaps.len() as f64;
        assert!((mean - 36.0).abs() < 1.0, "{mean}");
    }

    #[test]
    fn rfc_8033_section_5_1_up_to_a_tenth_packets_are_marked() {
        for (p, marks) in [(part(1, 10), true), (part(1, 10) + 1, false)] {
            let mut pie = pie(true);
            let mut fates = QueueOutcomes::new();
            for _ in 0..10 {
                pie.queue.push(packet(Instant::ZERO, true));
            }
            (pie.probability, pie.delay_old, pie.burst_allowance) = (p, ms(20), Duration::ZERO);
            let mut lost = 0;
            for _ in 0..1_000 {
                lost += u64::from(!pie.enqueue(packet(Instant::ZERO, true), true, &mut fates));
            }
            assert_eq!((lost == 0, !fates.is_empty()), (marks, marks));
        }
    }

    #[test]
    fn updates_that_change_nothing_are_skipped() {
        let mut idle = pie(false);
        idle.run_updates(Instant::ZERO + Duration::from_secs(1_000_000));
        let mut stepped = pie(false);
        for s in 0..1_000 {
            stepped.run_updates(Instant::ZERO + Duration::from_secs(s * 1_000));
        }
        stepped.run_updates(Instant::ZERO + Duration::from_secs(1_000_000));
        assert_eq!(idle.next_update, stepped.next_update);
        assert_eq!(idle.next_update.as_nanos() % ms(15).as_nanos(), 0);
        assert!(idle.next_update > Instant::ZERO + Duration::from_secs(1_000_000));
    }
}
