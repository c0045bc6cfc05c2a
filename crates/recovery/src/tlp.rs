//! Tail loss probes.
//!
//! Source: RFC 8985 section 7; tcp_output.c of Linux 6.18 (tcp_schedule_loss_probe,
//! tcp_send_loss_probe). FreeBSD's RACK stack has its own rule ([`crate::probe_rack`]).

use units::{Duration, Offset};

use crate::dsack::SackRange;

/// Probe timeout before the first RTT sample.
const NO_SRTT: Duration = Duration::from_secs(1);
/// Linux: `TCP_RTO_MIN`, for a single packet.
const LINUX_ALONE: Duration = Duration::from_millis(200);
/// Linux: allowance for several packets (`TCP_TIMEOUT_MIN_US`).
const LINUX_SEVERAL: Duration = Duration::from_millis(2);

/// The rule for the probe timeout (PTO).
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub enum PtoRule {
    /// RFC 8985 section 7.2: two RTTs, plus an allowance for a single packet.
    Rfc {
        /// The peer's maximum ACK delay (`TLP.max_ack_delay`).
        max_ack_delay: Duration,
    },
    /// Linux: two RTTs plus 2 ms, or plus 200 ms for a single packet.
    Linux,
}

/// The input of the probe timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PtoInput {
    /// Smoothed RTT, if there was a sample.
    pub srtt: Option<Duration>,
    /// A single packet is in flight.
    pub single_packet: bool,
    /// Time until the retransmission timer fires.
    pub rto: Duration,
}

impl PtoRule {
    /// The probe timeout, never longer than the time to the retransmission timer.
    #[inline(always)]
    pub fn pto(self, input: &PtoInput) -> Duration {
        let Some(srtt) = input.srtt else { return NO_SRTT.min(input.rto) };
        let pto = match self {
            Self::Rfc { max_ack_delay } => {
                srtt + srtt + if input.single_packet { max_ack_delay } else { Duration::ZERO }
            }
            Self::Linux => {
                srtt + srtt + if input.single_packet { LINUX_ALONE } else { LINUX_SEVERAL }
            }
        };
        pto.min(input.rto)
    }
}

/// A probe in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
struct Probe {
    /// `snd_nxt` after the probe (`TLP.end_seq`).
    end: Offset,
    /// The probe was a retransmission (`TLP.is_retrans`).
    repeats: bool,
}

/// The outcome of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlpOutcome {
    /// There is no probe, or its outcome is unknown.
    Open,
    /// The probe was new data that arrived, or the packet it repeated had not been lost.
    NoLoss,
    /// The probe repaired a loss that nothing else shows: the controller must be informed (section
    /// 7.4.2).
    RepairedLoss,
}

/// The fields of an acknowledgment that matter for a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProbeAck {
    /// Acknowledgment number.
    pub th_ack: Offset,
    /// Its D-SACK.
    pub duplicate: Option<SackRange>,
    /// It is a duplicate ACK without SACK blocks.
    pub dup_ack_without_sack: bool,
}

/// The tail loss probes of one connection.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct Tlp {
    probe: Option<Probe>,
    /// An RTT was sampled since the last probe.
    sampled: bool,
}

impl Tlp {
    /// The state before any probe.
    pub const fn new() -> Self {
        Self { probe: None, sampled: true }
    }

    /// True if a probe may be scheduled (section 7.2): one at a time, with an RTT sample between
    /// two.
    pub const fn allowed(&self) -> bool {
        self.probe.is_none() && self.sampled
    }

    /// True if a probe is in flight.
    #[inline]
    pub const fn probing(&self) -> bool {
        self.probe.is_some()
    }

    /// True if a probe is in flight that retransmitted a packet (`tlp_retrans`).
    #[inline]
    pub fn repeated(&self) -> bool {
        self.probe.is_some_and(|probe| probe.repeats)
    }

    /// `snd_nxt` after the probe in flight (`tlp_high_seq`).
    pub fn probe_end(&self) -> Option<Offset> {
        self.probe.map(|probe| probe.end)
    }

    /// A probe was sent; `repeats` if it retransmitted the highest packet for want of new data.
    pub const fn on_probe(&mut self, snd_nxt: Offset, repeats: bool) {
        self.probe = Some(Probe { end: snd_nxt, repeats });
        self.sampled = false;
    }

    /// An RTT was sampled.
    pub const fn on_rtt_sample(&mut self) {
        self.sampled = true;
    }

    /// The retransmission timer fired, or a recovery began: the probe has no outcome.
    pub const fn forget(&mut self) {
        self.probe = None;
    }

    /// Processes an acknowledgment (TLP_process_ack) and returns the outcome of the probe.
    pub fn on_ack(&mut self, ack: &ProbeAck) -> TlpOutcome {
        let Some(probe) = self.probe.filter(|probe| ack.th_ack >= probe.end) else {
            return TlpOutcome::Open;
        };
        let matches = ack.duplicate.is_some_and(|(_, end)| end == probe.end);
        let verdict = if !probe.repeats || matches {
            TlpOutcome::NoLoss
        } else if ack.th_ack > probe.end {
            TlpOutcome::RepairedLoss
        } else if ack.dup_ack_without_sack {
            TlpOutcome::NoLoss
        } else {
            return TlpOutcome::Open;
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

    fn input(srtt: u64, single_packet: bool) -> PtoInput {
        PtoInput { srtt: Some(us(srtt)), single_packet, rto: Duration::from_secs(9) }
    }

    #[test]
    fn two_rtts_and_the_allowances() {
        let rfc = PtoRule::Rfc { max_ack_delay: us(25_000) };
        assert_eq!(rfc.pto(&input(40_000, false)), us(80_000));
        assert_eq!(rfc.pto(&input(40_000, true)), us(105_000));
        // tcp_schedule_loss_probe of 6.12; a kernel with a smoothed RTT of 6.955 ms probes 24 ms
        // after a transmission at 7.655 ms, jiffy 1 of 4 ms: its timer is set for jiffy 5.
        let linux = PtoRule::Linux;
        assert_eq!(linux.pto(&input(6_955, false)), us(15_910));
        assert_eq!(linux.pto(&input(48_250, false)), us(98_500));
        assert_eq!(linux.pto(&input(48_250, true)), us(296_500));
    }

    #[test]
    fn never_later_than_the_timeout_and_a_second_without_a_sample() {
        let rule = PtoRule::Linux;
        assert_eq!(rule.pto(&PtoInput { rto: us(70_000), ..input(40_000, false) }), us(70_000));
        assert_eq!(rule.pto(&PtoInput { srtt: None, ..input(0, false) }), us(1_000_000));
    }

    fn ack(th_ack: u64) -> ProbeAck {
        ProbeAck { th_ack: Offset(th_ack), duplicate: None, dup_ack_without_sack: false }
    }

    #[test]
    fn the_acknowledgment_shows_whether_the_probe_repaired_a_loss() {
        let verdict = |repeats, ack: ProbeAck| {
            let mut tlp = Tlp::new();
            tlp.on_probe(Offset(100), repeats);
            tlp.on_ack(&ack)
        };
        assert_eq!(verdict(false, ack(100)), TlpOutcome::NoLoss);
        assert_eq!(verdict(true, ack(99)), TlpOutcome::Open);
        assert_eq!(verdict(true, ack(100)), TlpOutcome::Open);
        assert_eq!(verdict(true, ack(101)), TlpOutcome::RepairedLoss);
        let duplicate = Some((Offset(90), Offset(100)));
        assert_eq!(verdict(true, ProbeAck { duplicate, ..ack(100) }), TlpOutcome::NoLoss);
        assert_eq!(
            verdict(true, ProbeAck { dup_ack_without_sack: true, ..ack(100) }),
            TlpOutcome::NoLoss
        );
    }

    #[test]
    fn one_probe_at_a_time_and_a_sample_between_two() {
        let mut tlp = Tlp::new();
        assert!(tlp.allowed());
        tlp.on_probe(Offset(100), true);
        assert!(!tlp.allowed());
        assert_eq!(tlp.on_ack(&ack(101)), TlpOutcome::RepairedLoss);
        assert!(!tlp.allowed());
        tlp.on_rtt_sample();
        assert!(tlp.allowed());
    }
}
