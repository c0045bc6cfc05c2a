//! CC203: tail loss.
//!
//! Checks for losses at the end of a flight: no later packet makes the receiver report them, so
//! only a timer detects them, a tail loss probe after two RTTs (RFC 8985 section 7) or the
//! retransmission timer after at least 200 ms.
//!
//! Cost: the silence before the timer and the recovery. Without the loss the last packet would have
//! been acknowledged one RTT after it was sent, which the estimate subtracts.

use super::case::{DiagnosisCase, count, number, seconds, time};
use super::help::{Remedy, RemedyHost, SACK_ON_FREEBSD, SACK_ON_LINUX, Setting};
use super::{Confidence, DiagnosisRule, Finding};
use crate::episodes::RecoveryTrigger;
use crate::lost_time::LostTimeCause;

pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    code: "CC203",
    name: "tail loss",
    check,
    background: "\
When the last packets of an answer are lost, nothing comes after them, so no duplicate ACK or SACK
reports the loss. The sender waits for a timer: a tail loss probe after two round trips (RFC 8985
section 7; Linux: net.ipv4.tcp_early_retrans, FreeBSD: the RACK stack), or the retransmission timer,
at least 200 ms on Linux and 230 ms on FreeBSD (rexmit_min 30 ms + rexmit_slop 200 ms), 1 s by RFC
6298. For short answers that is most of their time.",
    help: &[
        Remedy::freebsd(
            RemedyHost::Sender,
            "net.inet.tcp.functions_default=rack has tail loss probes, the default stack has none",
        )
        .unless(Setting::RackStack),
        SACK_ON_FREEBSD,
        Remedy::linux(
            RemedyHost::Sender,
            "net.ipv4.tcp_early_retrans=3, tcp_recovery=1 (defaults)",
        )
        .unless(Setting::Default),
        Remedy::linux(RemedyHost::Sender, "ip route change ROUTE rto_min 40ms on short paths"),
        SACK_ON_LINUX,
        Remedy::other(RemedyHost::Sender, "RACK-TLP (RFC 8985)").if_possible(Setting::Sack),
        Remedy::general("larger answers in fewer writes, so that the tail is seldom alone"),
    ],
};

fn check(case: &DiagnosisCase<'_>) -> Option<Finding> {
    let tails = case.episodes(LostTimeCause::TailLoss);
    if tails.count == 0 {
        return None;
    }
    let base = case.course.path.base_rtt?;
    let cost = case.course.lost(LostTimeCause::TailLoss).saturating_sub(base * tails.count);
    let inferred =
        case.flow.episodes.iter().zip(&case.course.episode_causes).any(|(episode, blame)| {
            *blame == LostTimeCause::TailLoss && episode.trigger == RecoveryTrigger::Inferred
        });
    let title = format!(
        "the end of a flight was lost {}, {} of waiting for a timer",
        super::case::many(tails.count, "time"),
        time(cost)
    );
    let mut finding = case
        .finding(&RULE, cost, title)
        .at(tails.interval, tails.frames)
        .with([
            count("tail_losses", tails.count, "losses", format!("{} at the end of a flight, {} timeouts of the retransmission timer", tails.count, tails.timeouts)),
            count("retransmitted_packets", tails.retransmitted, "retransmitted", super::case::many(tails.retransmitted, "packet")),
            number("waited_s", seconds(tails.stalled), "waited", format!("{}, {} each on average; a round trip is {}", time(tails.stalled), time(tails.stalled / tails.count), time(base))),
        ])
        .because("nothing was sent behind the lost packets that would have made the receiver report them");
    if inferred {
        finding.confidence = Confidence::Medium;
        finding = finding.unseen("the lost copies, which never came this far: the sender's counter of packets (IPv4 identification) runs on in a silence after data without PSH");
    }
    Some(finding)
}
