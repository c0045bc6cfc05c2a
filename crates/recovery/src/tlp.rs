//! Tail loss probes: one packet when acknowledgments stay away.
//!
//! Source: RFC 8985 section 7; tcp_output.c of Linux 6.18 (tcp_schedule_loss_probe,
//! tcp_send_loss_probe); tcp_stacks/rack.c of FreeBSD (rack_calc_thresh_tlp, rack_timer_start).

use units::{Duration, Offset};

use crate::dsack::Block;

/// Before the first sample of a round trip.
const NO_SRTT: Duration = Duration::from_secs(1);
/// Linux: `TCP_RTO_MIN`, for a single packet.
const LINUX_ALONE: Duration = Duration::from_millis(200);
/// Linux: jiffies that are added (`TCP_TIMEOUT_MIN`).
const LINUX_JIFFIES: u64 = 2;
/// The knobs of FreeBSD's RACK.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct RackPto {
    /// This share of a round trip is added; 0 counts as 1 (`rack_tlp_thresh`).
    pub divisor: u32,
    /// RACK's round trip counts where it is longer than the smoothed one (`rack_tlp_use_greater`).
    pub use_greater: bool,
    /// Allowance for a delayed acknowledgment (`rack_delayed_ack_time`).
    pub delayed_ack: Duration,
    /// Shortest time (`rack_tlp_min`).
    pub least: Duration,
}

impl RackPto {
    /// The defaults of 14.3 and main.
    pub const DEFAULT: Self = Self {
        divisor: 1,
        use_greater: true,
        delayed_ack: Duration::from_millis(40),
        least: Duration::from_millis(10),
    };

    // What it is asked with is handed over piece by piece: others keep theirs in registers.
    #[inline(never)]
    fn pto(&self, srtt: Duration, rack_rtt: Duration, alone: bool, rto: Duration) -> Duration {
        let srtt = if self.use_greater { srtt.max(rack_rtt) } else { srtt };
        let share = |divisor: u32| Duration::from_micros(srtt.as_micros() / u64::from(divisor));
        let alone = if alone { srtt + share(2) + self.delayed_ack } else { Duration::ZERO };
        let thresh = srtt + share(self.divisor.max(1));
        thresh.max(alone).min(rto).max(self.least)
    }
}

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
    /// FreeBSD's RACK: for a single packet at least one and a half round trips and 40 ms.
    FreeBsd(RackPto),
}

/// What the time depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PtoInput {
    /// Smoothed round trip, if there was a sample. FreeBSD takes RACK's round trip if that is longer.
    pub srtt: Option<Duration>,
    /// Round trip of the packet judged newest ([`crate::rack::Rack::rtt`]).
    pub rack_rtt: Duration,
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
            Self::FreeBsd(knobs) => return knobs.pto(srtt, input.rack_rtt, input.alone, input.rto),
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
    /// Probes in a row without new data acknowledged between: 1 for RFC 8985 and Linux, 2 for FreeBSD's
    /// RACK (`rack_tlp_limit`).
    limit: u8,
    probes: u8,
    probe: Option<Probe>,
    /// A round trip has been sampled since the last probe.
    sampled: bool,
}

impl Tlp {
    /// At most `limit` probes in a row.
    pub const fn new(limit: u8) -> Self {
        Self { limit, probes: 0, probe: None, sampled: true }
    }

    /// May a probe be planned (section 7.2)? Only outside of recovery, with SACK: the caller's part.
    pub const fn allowed(&self) -> bool {
        self.probes < self.limit && (self.sampled || self.probes > 0)
    }

    /// Is a probe under way, for all that is known?
    #[inline]
    pub const fn probing(&self) -> bool {
        self.probe.is_some()
    }

    /// A probe left; `repeats` if it was the highest packet again for want of new data.
    pub const fn on_probe(&mut self, snd_nxt: Offset, repeats: bool) {
        self.probe = Some(Probe { end: snd_nxt, repeats });
        self.probes = self.probes.saturating_add(1);
        self.sampled = false;
    }

    /// A round trip was sampled.
    pub const fn on_rtt_sample(&mut self) {
        self.sampled = true;
    }

    /// New data was acknowledged. While a single probe is allowed it counts until its verdict.
    pub const fn on_progress(&mut self) {
        if self.limit > 1 || self.probe.is_none() {
            self.probes = 0;
        }
    }

    /// The retransmission timer fired, or a recovery began: a probe has no verdict any more.
    pub const fn forget(&mut self) {
        self.probe = None;
        self.probes = 0;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn us(us: u64) -> Duration {
        Duration::from_micros(us)
    }

    fn input(srtt: u64, alone: bool) -> PtoInput {
        PtoInput { srtt: Some(us(srtt)), rack_rtt: us(0), alone, rto: Duration::from_secs(9) }
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
        let freebsd = PtoRule::FreeBsd(RackPto::DEFAULT);
        assert_eq!(freebsd.pto(&input(40_000, false)), us(80_000));
        assert_eq!(freebsd.pto(&input(40_000, true)), us(100_000));
        assert_eq!(
            freebsd.pto(&PtoInput { rack_rtt: us(50_000), ..input(40_000, false) }),
            us(100_000)
        );
        assert_eq!(freebsd.pto(&input(1_000, false)), us(10_000));
    }

    #[test]
    fn never_later_than_the_timeout_and_a_second_without_a_sample() {
        for rule in [PtoRule::Linux { hz: 250 }, PtoRule::FreeBsd(RackPto::DEFAULT)] {
            assert_eq!(rule.pto(&PtoInput { rto: us(70_000), ..input(40_000, false) }), us(70_000));
            assert_eq!(rule.pto(&PtoInput { srtt: None, ..input(0, false) }), us(1_000_000));
        }
    }

    fn ack(th_ack: u64) -> ProbeAck {
        ProbeAck { th_ack: Offset(th_ack), duplicate: None, bare_duplicate: false }
    }

    #[test]
    fn the_acknowledgment_of_a_probe_tells_whether_it_repaired_a_loss() {
        let verdict = |repeats, ack: ProbeAck| {
            let mut tlp = Tlp::new(1);
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
        let mut tlp = Tlp::new(1);
        assert!(tlp.allowed());
        tlp.on_probe(Offset(100), true);
        assert!(!tlp.allowed());
        tlp.on_progress();
        assert_eq!(tlp.on_ack(&ack(101)), Verdict::RepairedLoss);
        assert!(!tlp.allowed());
        tlp.on_rtt_sample();
        assert!(tlp.allowed());
        // FreeBSD's RACK sends two in a row.
        let mut tlp = Tlp::new(2);
        tlp.on_probe(Offset(100), true);
        assert!(tlp.allowed());
        tlp.on_probe(Offset(100), true);
        assert!(!tlp.allowed());
        tlp.on_progress();
        tlp.on_rtt_sample();
        assert!(tlp.allowed());
    }
}
