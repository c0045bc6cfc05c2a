//! Which packets are lost: RFC 9002 section 6.1, and persistent congestion, section 7.6.

use units::{Duration, Instant};

use crate::rtt::Rtt;
use crate::sent::{Sent, SentPackets};

/// The thresholds of loss detection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LossRule {
    /// `kPacketThreshold`: so many packets later one was acknowledged.
    pub packets: u64,
    /// `kTimeThreshold` in eighths of a round trip; `None` turns the rule of time off.
    pub time_eighths: Option<u64>,
    /// `kGranularity`.
    pub granularity: Duration,
    /// `kPersistentCongestionThreshold`.
    pub persistent: u64,
}

impl LossRule {
    /// The recommended values (RFC 9002 sections 6.1.1, 6.1.2 and 7.6.1).
    pub const RFC9002: Self = Self {
        packets: 3,
        time_eighths: Some(9),
        granularity: Duration::from_millis(1),
        persistent: 3,
    };

    /// How long after it left a packet that was passed is lost.
    fn delay(&self, rtt: &Rtt) -> Option<Duration> {
        let eighths = self.time_eighths?;
        let span = Duration::from_nanos(
            rtt.largest().as_nanos() / 8 * eighths + rtt.largest().as_nanos() % 8 * eighths / 8,
        );
        Some(span.max(self.granularity))
    }
}

/// `DetectAndRemoveLostPackets`: puts what is lost into `lost`, in the order of numbers, and says
/// when the next packet that was passed will be (`loss_time`).
pub(crate) fn detect(
    rule: &LossRule,
    rtt: &Rtt,
    now: Instant,
    largest_acked: u64,
    packets: &mut SentPackets,
    lost: &mut Vec<Sent>,
) -> Option<Instant> {
    let delay = rule.delay(rtt);
    let mut next = None;
    packets.settle_lost(largest_acked, |packet| {
        let due = delay.map(|delay| packet.at + delay);
        if largest_acked >= packet.number + rule.packets || due.is_some_and(|due| due <= now) {
            lost.push(*packet);
            return true;
        }
        next = due.filter(|&due| next.is_none_or(|next| due < next)).or(next);
        false
    });
    packets.tidy();
    next
}

/// Section 7.6.2: do these packets, lost at once and in the order of their numbers, prove that
/// nothing went through for longer than `duration`?
///
/// Two ack-eliciting ones with none acknowledged between them, both sent after the first sample:
/// here, those with all numbers between them in the list too.
pub(crate) fn persistent(lost: &[Sent], first_sample: Option<Instant>, duration: Duration) -> bool {
    let Some(since) = first_sample else { return false };
    // The first eliciting packet of the run in progress, and the number before the present one.
    let mut run: Option<Instant> = None;
    let mut before: Option<u64> = None;
    for packet in lost {
        if before.is_none_or(|before| before + 1 != packet.number) {
            run = None;
        }
        before = Some(packet.number);
        if !packet.eliciting || packet.at <= since {
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
    use crate::sent::Cargo;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn sent(number: u64, ms: u64) -> Sent {
        let cargo = Cargo::default();
        Sent { number, at: at(ms), size: 1_200, eliciting: true, cargo, settled: false }
    }

    /// Packets number 0, 1, 2 ... left at these times; the round trip is 80 ms.
    fn judge(times: &[u64], acked: u64, now: u64) -> (Vec<u64>, Option<Instant>) {
        let mut rtt = Rtt::new(Duration::from_millis(333));
        rtt.on_sample(at(0), Duration::from_millis(80), Duration::ZERO);
        let mut packets = SentPackets::default();
        for (number, &ms) in (0..).zip(times) {
            packets.push(sent(number, ms));
        }
        packets.settle(acked, acked, |_| {});
        let mut lost = Vec::new();
        let rule = LossRule::RFC9002;
        let next = detect(&rule, &rtt, at(now), acked, &mut packets, &mut lost);
        (lost.iter().map(|packet| packet.number).collect(), next)
    }

    #[test]
    fn three_packets_later_it_is_lost_section_6_1_1() {
        assert_eq!(judge(&[0, 0, 0, 0], 3, 80), (vec![0], Some(at(90))));
        assert_eq!(judge(&[0, 0, 0], 2, 80), (vec![], Some(at(90))));
    }

    #[test]
    fn passed_and_nine_eighths_of_a_round_trip_old_it_is_lost_section_6_1_2() {
        assert_eq!(judge(&[0, 5, 10], 2, 90), (vec![0], Some(at(95))));
        assert_eq!(judge(&[0, 5, 10], 2, 95), (vec![0, 1], None));
        // What no later packet has passed is not lost, however old.
        assert_eq!(judge(&[0, 0, 0], 0, 5_000), (vec![], None));
    }

    #[test]
    fn the_threshold_of_time_is_at_least_the_granularity() {
        let mut rtt = Rtt::new(Duration::from_millis(333));
        rtt.on_sample(at(0), Duration::from_micros(50), Duration::ZERO);
        assert_eq!(LossRule::RFC9002.delay(&rtt), Some(Duration::from_millis(1)));
        rtt.on_sample(at(0), Duration::from_nanos(8_000_009), Duration::ZERO);
        assert_eq!(LossRule::RFC9002.delay(&rtt), Some(Duration::from_nanos(9_000_010)));
    }

    #[test]
    fn persistent_congestion_is_a_long_row_of_losses_section_7_6() {
        let row = |times: &[(u64, u64)]| -> Vec<Sent> {
            times.iter().map(|&(number, ms)| sent(number, ms)).collect()
        };
        let long = Duration::from_millis(300);
        let proves = |times: &[(u64, u64)]| persistent(&row(times), Some(at(0)), long);
        assert!(proves(&[(5, 100), (6, 200), (7, 401)]));
        assert!(!proves(&[(5, 100), (6, 200), (7, 400)]));
        // Packet 6 went through.
        assert!(!proves(&[(5, 100), (7, 401)]));
        assert!(proves(&[(5, 100), (7, 401), (8, 702)]));
        // Those sent before the first sample do not count.
        assert!(!persistent(&row(&[(5, 100), (6, 401)]), Some(at(100)), long));
        assert!(!persistent(&row(&[(5, 100), (6, 401)]), None, long));
    }

    #[test]
    fn silent_packets_keep_a_row_together_but_make_none() {
        let mut row = vec![sent(1, 100), sent(2, 300), sent(3, 500)];
        row[1].eliciting = false;
        let long = Duration::from_millis(300);
        assert!(persistent(&row, Some(at(0)), long));
        row[2].eliciting = false;
        assert!(!persistent(&row, Some(at(0)), long));
    }
}
