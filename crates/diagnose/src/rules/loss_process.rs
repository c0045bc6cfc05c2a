//! The process of losses that a reproduction of the transfer shows: a policer, a full queue, bursts, or single losses.
//!
//! Rules see losses one at a time, with the round trip at each; so the losses of one process may be several findings
//! that contradict each other. Which packets a process drops of all that were sent distinguishes them; then the
//! losses are one finding.

use units::Duration;

use super::case::{DiagnosisCase, RATE_AFTER, count, many, number, rate, seconds, size, time};
use super::kinds::RATE_DROP;
use super::{EvidenceItem, EvidenceValue, Finding, cc201, cc202, cc204, cc205};

/// What lost packets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LossProcess {
    /// A token bucket without a queue.
    Policer {
        /// Its rate in bit/s of IP packets.
        rate_bps: u64,
        /// Its depth in bytes.
        burst: u64,
        /// Packets lost.
        lost: u64,
    },
    /// A full queue.
    FullQueue {
        /// Bytes that it holds.
        buffer: u64,
        /// Packets lost.
        lost: u64,
    },
    /// Outages: times in which no packet passed.
    Outages {
        /// The longest, in ns.
        longest: u64,
        /// Their number.
        count: u64,
    },
    /// Losses of several packets in a row.
    Bursts {
        /// Packets lost.
        lost: u64,
        /// Of this number.
        sent: u64,
        /// Their mean length in packets.
        mean: f64,
    },
    /// Losses of single packets.
    Single {
        /// Packets lost.
        lost: u64,
        /// Of this number.
        sent: u64,
    },
}

/// Rate of packets relative to that of their payload, if they are the same: headers are 3 to 4 %, and rates are measured to
/// some percent.
const OF_LINK: core::ops::RangeInclusive<f64> = 0.98..=1.09;
/// Fewest losses whose rate is known: see [`super::cc201`].
const REPEATED: u64 = 10;
/// Fewest losses of a full queue or of bursts that are their own process.
const FEWEST: u64 = 2;

impl LossProcess {
    /// The code under which losses of the finding `code` belong to this process; `None` if they are others'.
    pub fn code_of(&self, code: &str) -> Option<&'static str> {
        let is_loss = matches!(code, "CC201" | "CC202" | "CC205");
        let own = match *self {
            // What exceeds a rate may be the end of a flight, all of one, or what slow start overran.
            Self::Policer { .. } => {
                (is_loss || ["CC103", "CC203", "CC204"].contains(&code), cc201::RULE.code)
            }
            Self::Outages { .. } => (is_loss || code == "CC203", cc204::RULE.code),
            Self::FullQueue { lost, .. } => (is_loss && lost >= FEWEST, cc202::RULE.code),
            Self::Bursts { lost, .. } => (is_loss && lost >= FEWEST, cc201::RULE.code),
            Self::Single { lost, .. } if lost >= REPEATED => (is_loss, cc201::RULE.code),
            Self::Single { .. } => (is_loss, cc205::RULE.code),
        };
        own.0.then_some(own.1)
    }

    /// Whether it is no policer, but a link that became slower: a queue drains at the rate of the bucket, which has none.
    pub(crate) fn is_of_link(&self, findings: &[Finding]) -> bool {
        let Self::Policer { rate_bps, .. } = *self else { return false };
        let drop = findings.iter().find(|found| found.kind == RATE_DROP);
        let is_rate = |item: &&EvidenceItem| item.key == RATE_AFTER;
        let after = drop.and_then(|found| found.evidence.iter().find(is_rate));
        after.is_some_and(|after| match after.value {
            EvidenceValue::Number(payload) => OF_LINK.contains(&(rate_bps as f64 / payload)),
            _ => false,
        })
    }

    /// Makes one finding of those that this process explains.
    pub(super) fn merge(&self, findings: &mut Vec<Finding>, case: &DiagnosisCase<'_>) {
        // A bucket that is full at first passes more until it is empty.
        let is_emptied =
            |found: &Finding| matches!(self, Self::Policer { .. }) && found.kind == RATE_DROP;
        let is_own = |found: &Finding| {
            !found.is_failure && (self.code_of(found.code).is_some() || is_emptied(found))
        };
        let (own, others): (Vec<_>, Vec<_>) = findings.drain(..).partition(is_own);
        *findings = others;
        // An outage with a finding of its own keeps it.
        let has_outage = findings.iter().any(|found| found.code == cc204::RULE.code);
        if matches!(self, Self::Outages { .. }) && has_outage {
            return;
        }
        let Some(costliest) = own.into_iter().max_by_key(|found| found.cost) else { return };
        let rule = match self.code_of(costliest.code) {
            Some("CC202") => &cc202::RULE,
            Some("CC204") => &cc204::RULE,
            Some("CC205") => &cc205::RULE,
            // What an emptied bucket no longer passes, too.
            _ => &cc201::RULE,
        };
        if rule.code == costliest.code && matches!(self, Self::Single { .. }) {
            return findings.push(costliest);
        }
        let has_no_sack = case.has_no_sack();
        let kind = match self {
            Self::Policer { .. } => "policer",
            _ if has_no_sack => "no-sack",
            Self::Bursts { .. } => "burst",
            Self::FullQueue { .. } if costliest.kind == "burst" => "burst",
            _ => "",
        };
        let merged = case
            .finding(rule, costliest.cost, self.title())
            .of_kind(kind)
            .at(costliest.interval, costliest.frames)
            .with([self.evidence()])
            .with(costliest.evidence.into_iter().filter(|item| !self.contradicts(item.key)))
            .because(self.cause());
        let merged = Finding { confidence: costliest.confidence, ..merged };
        findings.push(merged.unseen(costliest.unseen));
    }

    /// Whether an item of evidence with this key is that of another process, or of a part of the losses.
    fn contradicts(&self, key: &str) -> bool {
        let is_of_queue = !matches!(self, Self::FullQueue { .. }) && key == "queue_s";
        is_of_queue || ["lost_packets", "loss_rate", "mathis_bps", "tail_losses"].contains(&key)
    }

    fn title(&self) -> String {
        match *self {
            Self::Policer { rate_bps, burst, lost } => format!(
                "a policer drops what exceeds {} (a bucket of {}): {lost} packets, without a queue",
                rate(rate_bps as f64 / 8.0),
                size(burst)
            ),
            Self::FullQueue { buffer, lost } => {
                format!("a queue of {} is full at the losses: {lost} packets", size(buffer))
            }
            Self::Outages { longest, count } => format!(
                "no packet passes for up to {}, in {}",
                time(Duration::from_nanos(longest)),
                many(count, "outage")
            ),
            Self::Bursts { lost, sent, mean } => format!(
                "packets are lost {mean:.1} in a row: {lost} of {sent}, without a full queue"
            ),
            Self::Single { lost, sent } => format!(
                "random loss holds the window down: {lost} of {sent} packets lost ({:.2} %), without a full queue",
                lost as f64 * 100.0 / sent.max(1) as f64
            ),
        }
    }

    fn evidence(&self) -> EvidenceItem {
        match *self {
            Self::Policer { rate_bps, burst, .. } => number(
                "policer_bps",
                rate_bps as f64,
                "policer",
                format!(
                    "a token bucket of {} and {} drops these packets of those that were sent",
                    rate(rate_bps as f64 / 8.0),
                    size(burst)
                ),
            ),
            Self::FullQueue { buffer, .. } => count(
                "queue_bytes",
                buffer,
                "queue",
                format!("one of {} loses as many, if the transfer is simulated", size(buffer)),
            ),
            Self::Outages { longest, .. } => {
                let longest = Duration::from_nanos(longest);
                number("outage_s", seconds(longest), "outage", time(longest))
            }
            Self::Bursts { mean, .. } => number(
                "burst_packets",
                mean,
                "bursts",
                format!("{mean:.1} packets in a row on average"),
            ),
            Self::Single { lost, .. } => {
                count("lost_packets", lost, "losses", format!("{lost} packets, most of them alone"))
            }
        }
    }

    const fn cause(&self) -> &'static str {
        match self {
            Self::Policer { .. } => {
                "a token bucket on the path drops packets above its rate; the sender takes that for congestion"
            }
            Self::FullQueue { .. } => {
                "the queue of the bottleneck overflows before the window has grown"
            }
            Self::Outages { .. } => {
                "the path carries nothing for a time; then the sender waits for its timer, which has doubled"
            }
            Self::Bursts { .. } => "several packets in a row are lost where no queue overflows",
            Self::Single { .. } => {
                "packets are lost where no queue overflows: errors on a link, radio"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_policer_drops_is_one_finding() {
        let policer = LossProcess::Policer { rate_bps: 5_000_000, burst: 15_000, lost: 30 };
        for code in ["CC103", "CC201", "CC202", "CC203", "CC204", "CC205"] {
            assert_eq!(policer.code_of(code), Some("CC201"), "{code}");
        }
        assert_eq!(policer.code_of("CC501"), None);
        // Another process does not reach as far.
        let single = LossProcess::Single { lost: 30, sent: 3_000 };
        assert_eq!((single.code_of("CC203"), single.code_of("CC103")), (None, None));
    }

    #[test]
    fn figures_of_a_part_of_the_losses_or_of_a_queue_go() {
        let policer = LossProcess::Policer { rate_bps: 5_000_000, burst: 15_000, lost: 30 };
        let queue = LossProcess::FullQueue { buffer: 15_000, lost: 30 };
        assert!(policer.contradicts("lost_packets") && policer.contradicts("queue_s"));
        assert!(queue.contradicts("lost_packets") && !queue.contradicts("queue_s"));
        assert!(!policer.contradicts("rtt_at_loss_s"));
    }
}
