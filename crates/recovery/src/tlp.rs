//! Tail loss probes: one packet when acknowledgments stay away.
//!
//! Source: RFC 8985 section 7; tcp_output.c of Linux 6.18 (tcp_schedule_loss_probe,
//! tcp_send_loss_probe). FreeBSD's RACK stack has a rule of its own ([`crate::probe_rack`]).

use units::{Duration, Offset};

use crate::dsack::Block;

/// Before the first sample of a round trip.
const NO_SRTT: Duration = Duration::from_secs(1);
/// Linux: `TCP_RTO_MIN`, for a single packet.
const LINUX_ALONE: Duration = Duration::from_millis(200);
/// Linux: jiffies that are added (`TCP_TIMEOUT_MIN`).
const LINUX_JIFFIES: u64 = 2;

/// How long to wait for an acknowledgment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub enum PtoRule {
    /// RFC 8985 section 7.2: two round trips, and this for a single packet.
    Rfc {
        /// What the peer may delay an acknowledgment by (`TLP.max_ack_delay`).
        max_ack_delay: Duration,
    },
    /// Linux: two jiffies more, 200 ms for a single packet.
    Linux {
        /// Jiffies per second.
        hz: u32,
    },
}

/// What the time depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PtoInput {
    /// Smoothed round trip, if there was a sample.
    pub srtt: Option<Duration>,
    /// A single packet is under way.
    pub alone: bool,
    /// Time until the retransmission timer would fire.
    pub rto: Duration,
}

impl PtoRule {
    /// The time after which to probe, never longer than until the retransmission timer.
    #[inline(always)]
    pub fn pto(self, input: &PtoInput) -> Duration {
        let Some(srtt) = input.srtt else { return NO_SRTT.min(input.rto) };
        let pto = match self {
            Self::Rfc { max_ack_delay } => {
                srtt + srtt + if input.alone { max_ack_delay } else { Duration::ZERO }
            }
            Self::Linux { hz } => {
                let more = match (input.alone, hz) {
                    (true, _) => LINUX_ALONE,
                    // The usual ones without a division: this runs for every packet.
                    (false, 250) => Duration::from_nanos(LINUX_JIFFIES * 4_000_000),
                    (false, 1_000) => Duration::from_nanos(LINUX_JIFFIES * 1_000_000),
                    (false, hz) => {
                        Duration::from_nanos(LINUX_JIFFIES * 1_000_000_000 / u64::from(hz.max(1)))
                    }
                };
                srtt + srtt + more
            }
        };
        pto.min(input.rto)
    }
}

/// A probe under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
struct Probe {
    /// `snd_nxt` when it left (`TLP.end_seq`).
    end: Offset,
    /// It repeated a packet (`TLP.is_retrans`).
    repeats: bool,
}

/// What became of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// There is none, or nothing is known of it yet.
    Open,
    /// It was new data that arrived, or what it repeated had not been lost.
    NoLoss,
    /// It repaired a loss that nothing else shows: the controller must hear of it (section 7.4.2).
    RepairedLoss,
}

/// What an acknowledgment says of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProbeAck {
    /// What it acknowledges.
    pub th_ack: Offset,
    /// The duplicate it reports.
    pub duplicate: Option<Block>,
    /// It is a duplicate acknowledgment without any block.
    pub bare_duplicate: bool,
}

/// Probes of one connection.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct Tlp {
    probe: Option<Probe>,
    /// A round trip has been sampled since the last probe.
    sampled: bool,
}

impl Tlp {
    /// No probe was sent.
    pub const fn new() -> Self {
        Self { probe: None, sampled: true }
    }

    /// May a probe be planned (section 7.2)? One at a time, and a round trip sampled between two.
    pub const fn allowed(&self) -> bool {
        self.probe.is_none() && self.sampled
    }

    /// Is a probe under way, for all that is known?
    #[inline]
    pub const fn probing(&self) -> bool {
        self.probe.is_some()
    }

    /// A probe left; `repeats` if it was the highest packet again for want of new data.
    pub const fn on_probe(&mut self, snd_nxt: Offset, repeats: bool) {
        self.probe = Some(Probe { end: snd_nxt, repeats });
        self.sampled = false;
    }

    /// A round trip was sampled.
    pub const fn on_rtt_sample(&mut self) {
        self.sampled = true;
    }

    /// The retransmission timer fired, or a recovery began: a probe has no verdict any more.
    pub const fn forget(&mut self) {
        self.probe = None;
    }

    /// What an acknowledgment says of the probe (TLP_process_ack).
    pub fn on_ack(&mut self, ack: &ProbeAck) -> Verdict {
        let Some(probe) = self.probe.filter(|probe| ack.th_ack >= probe.end) else {
            return Verdict::Open;
        };
        let matches = ack.duplicate.is_some_and(|(_, end)| end == probe.end);
        let verdict = if !probe.repeats || matches {
            Verdict::NoLoss
        } else if ack.th_ack > probe.end {
            Verdict::RepairedLoss
        } else if ack.bare_duplicate {
            Verdict::NoLoss
        } else {
            return Verdict::Open;
        };
        self.forget();
        verdict
    }
}

impl Default for Tlp {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(us: u64) -> Duration {
        Duration::from_micros(us)
    }

    fn input(srtt: u64, alone: bool) -> PtoInput {
        PtoInput { srtt: Some(us(srtt)), alone, rto: Duration::from_secs(9) }
    }

    #[test]
    fn two_round_trips_and_what_each_adds() {
        let rfc = PtoRule::Rfc { max_ack_delay: us(25_000) };
        assert_eq!(rfc.pto(&input(40_000, false)), us(80_000));
        assert_eq!(rfc.pto(&input(40_000, true)), us(105_000));
        // Measured: a smoothed round trip of 48.25 ms and two jiffies of 4 ms; 106.6 ms passed, of
        // which the rounding up to the next jiffy is the clock's.
        let linux = PtoRule::Linux { hz: 250 };
        assert_eq!(linux.pto(&input(48_250, false)), us(104_500));
        assert_eq!(linux.pto(&input(48_250, true)), us(296_500));
    }

    #[test]
    fn never_later_than_the_timeout_and_a_second_without_a_sample() {
        let rule = PtoRule::Linux { hz: 250 };
        assert_eq!(rule.pto(&PtoInput { rto: us(70_000), ..input(40_000, false) }), us(70_000));
        assert_eq!(rule.pto(&PtoInput { srtt: None, ..input(0, false) }), us(1_000_000));
    }

    fn ack(th_ack: u64) -> ProbeAck {
        ProbeAck { th_ack: Offset(th_ack), duplicate: None, bare_duplicate: false }
    }

    #[test]
    fn the_acknowledgment_of_a_probe_tells_whether_it_repaired_a_loss() {
        let verdict = |repeats, ack: ProbeAck| {
            let mut tlp = Tlp::new();
            tlp.on_probe(Offset(100), repeats);
            tlp.on_ack(&ack)
        };
        assert_eq!(verdict(false, ack(100)), Verdict::NoLoss);
        assert_eq!(verdict(true, ack(99)), Verdict::Open);
        assert_eq!(verdict(true, ack(100)), Verdict::Open);
        assert_eq!(verdict(true, ack(101)), Verdict::RepairedLoss);
        let duplicate = Some((Offset(90), Offset(100)));
        assert_eq!(verdict(true, ProbeAck { duplicate, ..ack(100) }), Verdict::NoLoss);
        assert_eq!(verdict(true, ProbeAck { bare_duplicate: true, ..ack(100) }), Verdict::NoLoss);
    }

    #[test]
    fn one_probe_at_a_time_and_a_sample_between_two() {
        let mut tlp = Tlp::new();
        assert!(tlp.allowed());
        tlp.on_probe(Offset(100), true);
        assert!(!tlp.allowed());
        assert_eq!(tlp.on_ack(&ack(101)), Verdict::RepairedLoss);
        assert!(!tlp.allowed());
        tlp.on_rtt_sample();
        assert!(tlp.allowed());
    }
}
