//! Loss detection: RFC 9002 section 6.1, and persistent congestion, section 7.6.

use units::{Duration, Instant};

use crate::rtt::Rtt;
use crate::sent::{SentPackets, SentQuicPacket};

/// The thresholds of loss detection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuicLossRule {
    /// `kPacketThreshold`: a packet is lost once one this number later is acknowledged.
    pub packets: u64,
    /// `kTimeThreshold` in eighths of a round trip; `None` disables the time threshold.
    pub time_eighths: Option<u64>,
    /// `kGranularity`.
    pub granularity: Duration,
    /// `kPersistentCongestionThreshold`.
    pub persistent: u64,
    /// How spurious losses of application data change the thresholds.
    pub adaptation: LossAdaptation,
}

/// How the acknowledgment of a packet declared lost changes the thresholds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossAdaptation {
    /// Not at all.
    None,
    /// It disables the packet threshold and raises the time threshold (quic-go 0.65).
    Disables,
    /// It raises both (quiche).
    Raises,
}

impl QuicLossRule {
    /// The recommended values (RFC 9002 sections 6.1.1, 6.1.2 and 7.6.1).
    pub const RFC9002: Self = Self {
        packets: 3,
        time_eighths: Some(9),
        granularity: Duration::from_millis(1),
        persistent: 3,
        adaptation: LossAdaptation::None,
    };

    /// The time threshold: the age at which an unacknowledged packet before the largest
    /// acknowledged one is lost.
    pub(crate) fn delay(&self, rtt: &Rtt) -> Option<Duration> {
        let eighths = self.time_eighths?;
        let span = Duration::from_nanos(
            rtt.largest().as_nanos() / 8 * eighths + rtt.largest().as_nanos() % 8 * eighths / 8,
        );
        Some(span.max(self.granularity))
    }
}

/// Appends the lost packets to `lost` in the order of their numbers and returns `loss_time`, when
/// the next packet reaches the time threshold (`DetectAndRemoveLostPackets`).
pub(crate) fn detect(
    rule: &QuicLossRule,
    rtt: &Rtt,
    now: Instant,
    largest_acked: u64,
    packets: &mut SentPackets,
    lost: &mut Vec<SentQuicPacket>,
) -> Option<Instant> {
    let delay = rule.delay(rtt);
    let mut next = None;
    packets.settle_lost(largest_acked, |packet| {
        let due = delay.map(|delay| packet.at + delay);
        if largest_acked >= packet.number.saturating_add(rule.packets)
            || due.is_some_and(|due| due <= now)
        {
            lost.push(*packet);
            return true;
        }
        next = due.filter(|&due| next.is_none_or(|next| due < next)).or(next);
        false
    });
    packets.drop_settled();
    next
}

/// Section 7.6.2: do these packets, declared lost together and in the order of their numbers,
/// establish persistent congestion of `duration`?
///
/// It takes two ack-eliciting packets with none acknowledged between them, both sent after the
/// first sample: here, packets with all numbers between them in the list too.
pub(crate) fn persistent(
    lost: &[SentQuicPacket],
    first_sample: Option<Instant>,
    duration: Duration,
) -> bool {
    let Some(since) = first_sample else { return false };
    // Send time of the first ack-eliciting packet of the current run, and the preceding number.
    let mut run: Option<Instant> = None;
    let mut before: Option<u64> = None;
    for packet in lost {
        if before.is_none_or(|before| before + 1 != packet.number) {
            run = None;
        }
        before = Some(packet.number);
        if !packet.ack_eliciting || packet.at <= since {
            continue;
        }
        match run {
            Some(start) if packet.at.since(start) > duration => return true,
            Some(_) => {}
            None => run = Some(packet.at),
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtt::RttArithmetic;
    use crate::sent::SentFrames;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn sent(number: u64, ms: u64) -> SentQuicPacket {
        let packet_frames = SentFrames::default();
        SentQuicPacket {
            number,
            order: number,
            at: at(ms),
            size: 1_200,
            ack_eliciting: true,
            is_ect: false,
            frames: packet_frames,
            delivery: crate::rate_based::DeliveryStamp::NONE,
            settled: false,
        }
    }

    /// The numbers lost and `loss_time` when packets 0, 1, 2 ... were sent at `times`; the round
    /// trip is 80 ms.
    fn lost_after(times: &[u64], acked: u64, now: u64) -> (Vec<u64>, Option<Instant>) {
        let mut rtt = Rtt::new(Duration::from_millis(333), RttArithmetic::Nanoseconds);
        rtt.on_sample(at(0), Duration::from_millis(80), Duration::ZERO);
        let mut packets = SentPackets::default();
        for (number, &ms) in (0..).zip(times) {
            packets.push(sent(number, ms));
        }
        packets.settle(acked, acked, |_| {});
        let mut lost = Vec::new();
        let rule = QuicLossRule::RFC9002;
        let next = detect(&rule, &rtt, at(now), acked, &mut packets, &mut lost);
        (lost.iter().map(|packet| packet.number).collect(), next)
    }

    #[test]
    fn three_later_packets_are_the_packet_threshold_section_6_1_1() {
        assert_eq!(lost_after(&[0, 0, 0, 0], 3, 80), (vec![0], Some(at(90))));
        assert_eq!(lost_after(&[0, 0, 0], 2, 80), (vec![], Some(at(90))));
    }

    #[test]
    fn nine_eighths_of_a_round_trip_is_the_time_threshold_section_6_1_2() {
        assert_eq!(lost_after(&[0, 5, 10], 2, 90), (vec![0], Some(at(95))));
        assert_eq!(lost_after(&[0, 5, 10], 2, 95), (vec![0, 1], None));
        // Without a later packet acknowledged no packet is lost, however old.
        assert_eq!(lost_after(&[0, 0, 0], 0, 5_000), (vec![], None));
    }

    #[test]
    fn the_threshold_of_time_is_at_least_the_granularity() {
        let mut rtt = Rtt::new(Duration::from_millis(333), RttArithmetic::Nanoseconds);
        rtt.on_sample(at(0), Duration::from_micros(50), Duration::ZERO);
        assert_eq!(QuicLossRule::RFC9002.delay(&rtt), Some(Duration::from_millis(1)));
        rtt.on_sample(at(0), Duration::from_nanos(8_000_009), Duration::ZERO);
        assert_eq!(QuicLossRule::RFC9002.delay(&rtt), Some(Duration::from_nanos(9_000_010)));
    }

    #[test]
    fn persistent_congestion_is_a_long_run_of_losses_section_7_6() {
        let row = |times: &[(u64, u64)]| -> Vec<SentQuicPacket> {
            times.iter().map(|&(number, ms)| sent(number, ms)).collect()
        };
        let long = Duration::from_millis(300);
        let proves = |times: &[(u64, u64)]| persistent(&row(times), Some(at(0)), long);
        assert!(proves(&[(5, 100), (6, 200), (7, 401)]));
        assert!(!proves(&[(5, 100), (6, 200), (7, 400)]));
        // Packet 6 was acknowledged.
        assert!(!proves(&[(5, 100), (7, 401)]));
        assert!(proves(&[(5, 100), (7, 401), (8, 702)]));
        // Those sent before the first sample do not count.
        assert!(!persistent(&row(&[(5, 100), (6, 401)]), Some(at(100)), long));
        assert!(!persistent(&row(&[(5, 100), (6, 401)]), None, long));
    }

    #[test]
    fn ack_only_packets_continue_a_run_but_do_not_make_one() {
        let mut row = vec![sent(1, 100), sent(2, 300), sent(3, 500)];
        row[1].ack_eliciting = false;
        let long = Duration::from_millis(300);
        assert!(persistent(&row, Some(at(0)), long));
        row[2].ack_eliciting = false;
        assert!(!persistent(&row, Some(at(0)), long));
    }
}
