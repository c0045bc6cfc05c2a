//! The share of BBR version 1 beside loss-based flows in a drop-tail queue.
//!
//! Ware, Mukerjee, Seshan, Sherry, "Modeling BBR's Interactions with Loss-Based Congestion Control", IMC 2019, equations 7 to
//! 11, checked against a public transcription of them and the first author's account ("Modeling BBRv1's Interactions with
//! Loss-Based Congestion Control", CMU CSD blog, 2024). Beside flows that fill the queue BBR is limited by its window (the
//! in-flight cap), two of its bandwidth-delay products, in which the RTT is that of ProbeRTT, when the loss-based flows' part
//! `p` of the queue is left: `RTT = l + (p q + 4 N) / c`. BBR's part of the queue and the pipe is what it holds in flight,
//! `(1 - p)(q + l c) = 2 (1 - p) c RTT`, so `p = 1/2 - 1/(2 X) - 4 N / q` for a queue of `X = q / (l c)` bandwidth-delay
//! products; where that is negative BBR has the whole link. Neither the number of loss-based flows nor their kind is in it.
//! ProbeRTT costs `(q / c + 0.2 s + l)` in each 10 s.

use units::{Duration, Rate};

use crate::TheoryError;
use crate::validity::{Doubt, Validity};

/// The queue and the flows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BbrShare {
    /// Bit/s.
    rate: f64,
    /// Seconds.
    rtt: f64,
    /// Packets.
    queue: f64,
    /// Bits of a packet.
    packet: f64,
    flows: f64,
}

/// What the model says.
#[derive(Debug, Clone, PartialEq)]
pub struct BbrShareEstimate {
    /// The queue in bandwidth-delay products.
    pub queue_bdp: f64,
    /// The loss-based flows' part of the queue (`p`); 0 where the formula gives less.
    pub loss_based_part: f64,
    /// The part of the time that ProbeRTT takes.
    pub probe_rtt_time: f64,
    /// BBR's share of the link, of all its flows together.
    pub share: f64,
    /// Assumptions and doubts.
    pub validity: Validity,
}

/// Least queue of the model in bandwidth-delay products: below it the window does not limit BBR.
const LEAST_QUEUE: f64 = 1.0;
/// Largest queue that the authors compared, and their most flows of BBR.
const MOST_QUEUE: f64 = 64.0;
const MOST_FLOWS: f64 = 32.0;

const ASSUMES: &[&str] = &[
    "BBR version 1, which ignores losses, beside Reno or CUBIC, all with the same round trip",
    "one drop-tail queue, which the loss-based flows keep full, except during ProbeRTT",
    "all flows run long enough for several ProbeRTT, 10 s apart, and those of BBR are synchronised",
    "the window limits BBR (two bandwidth-delay products), not its rate: its bandwidth probes find no other limit",
    "authors' comparison: 10 and 50 Mbit/s, 30 and 40 ms; median error 5 % beside CUBIC, 8 % beside Reno",
];

impl BbrShare {
    /// `flows` flows of BBR at a link of this rate, round trip and queue in packets of `packet` bytes.
    ///
    /// # Errors
    /// The queue or the number of flows is 0.
    pub fn new(
        rate: Rate,
        rtt: Duration,
        queue: f64,
        packet: u32,
        flows: u32,
    ) -> Result<Self, TheoryError> {
        if queue.is_nan() || queue <= 0.0 || flows == 0 || rtt.is_zero() {
            return Err(TheoryError::NoQueue);
        }
        Ok(Self {
            rate: rate.bits_per_second() as f64,
            rtt: rtt.as_secs_f64(),
            queue,
            packet: f64::from(packet) * 8.0,
            flows: f64::from(flows),
        })
    }

    /// The model's result.
    pub fn estimate(&self) -> BbrShareEstimate {
        let bdp = self.rate * self.rtt / self.packet;
        let queue_bdp = self.queue / bdp;
        let part = 0.5 - 0.5 / queue_bdp - 4.0 * self.flows / self.queue;
        let loss_based_part = part.clamp(0.0, 1.0);
        let full = self.queue * self.packet / self.rate;
        let probe_rtt_time = ((full + 0.2 + self.rtt) / 10.0).min(1.0);
        let mut doubts = Vec::new();
        if queue_bdp < LEAST_QUEUE || part <= 0.0 {
            doubts.push(Doubt::ShallowQueue { bdp: queue_bdp });
        }
        if queue_bdp > MOST_QUEUE {
            doubts.push(Doubt::DeepQueue { bdp: queue_bdp });
        }
        if self.flows > MOST_FLOWS {
            doubts.push(Doubt::ManyFlows { flows: self.flows });
        }
        if probe_rtt_time > 0.5 {
            doubts.push(Doubt::LongProbe { share: probe_rtt_time });
        }
        BbrShareEstimate {
            queue_bdp,
            loss_based_part,
            probe_rtt_time,
            share: (1.0 - loss_based_part) * (1.0 - probe_rtt_time),
            validity: Validity::new(ASSUMES, doubts),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(queue_bdp: f64, flows: u32) -> BbrShareEstimate {
        // 40 Mbit/s and 30 ms hold 100 packets of 1500 bytes.
        let rate = Rate::from_bits_per_second(40_000_000).unwrap();
        let rtt = Duration::from_millis(30);
        BbrShare::new(rate, rtt, 100.0 * queue_bdp, 1_500, flows).unwrap().estimate()
    }

    /// 1/2 - 1/8 - 4/400 = 0.365; ProbeRTT: 0.12 + 0.2 + 0.03 s in 10 s.
    #[test]
    fn the_formula_for_four_bandwidth_delay_products() {
        let estimate = share(4.0, 1);
        assert!((estimate.loss_based_part - 0.365).abs() < 1e-12, "{estimate:?}");
        assert!((estimate.probe_rtt_time - 0.035).abs() < 1e-12, "{estimate:?}");
        assert!((estimate.share - 0.635 * 0.965).abs() < 1e-12, "{estimate:?}");
        assert_eq!(estimate.validity.doubts, []);
    }

    /// Half of the queue at most, however deep it is; a flow more takes four packets.
    #[test]
    fn the_limits_of_the_formula() {
        assert!(share(60.0, 1).loss_based_part < 0.5);
        let [one, ten] = [1, 10].map(|flows| share(10.0, flows).loss_based_part);
        assert!((one - ten - 36.0 / 1_000.0).abs() < 1e-12, "{one} {ten}");
        let shallow = share(0.5, 1);
        assert!(shallow.loss_based_part.abs() < 1e-12);
        assert_eq!(shallow.validity.doubts, [Doubt::ShallowQueue { bdp: 0.5 }]);
        assert_eq!(share(80.0, 1).validity.doubts, [Doubt::DeepQueue { bdp: 80.0 }]);
        assert_eq!(share(60.0, 33).validity.doubts, [Doubt::ManyFlows { flows: 33.0 }]);
        let rate = Rate::from_bits_per_second(1_000_000).unwrap();
        let none = BbrShare::new(rate, Duration::from_millis(1), 0.0, 1_500, 1);
        assert_eq!(none, Err(TheoryError::NoQueue));
    }
}
