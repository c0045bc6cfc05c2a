//! CC402: the receiver aggregates ACKs.
//!
//! Checks whether ACKs of more than two segments cover most bytes, in order and outside recovery.
//! RFC 5681 section 4.2 requires an ACK at least every second segment.
//!
//! Cost: none by itself. The cost for a sender that limits growth per ACK is CC101's.

use units::Duration;

use super::case::{DiagnosisCase, count, number};
use super::help::{Remedy, RemedyHost};
use super::{DiagnosisRule, Finding};

pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    code: "CC402",
    name: "the receiver aggregates ACKs",
    check,
    background: "\
LRO and GRO hand a receiver up to 64 KB as one segment, and it acknowledges that once; cable modems
and radio drop ACKs that a later one makes superfluous. A sender that counts bytes without limit
(Linux) only becomes burstier. One that limits the growth per ACK grows slowly (CC101), one that
counts ACKs in congestion avoidance too, and bursts meet short queues.",
    help: &[
        Remedy::freebsd(RemedyHost::Receiver, "receiver: ifconfig IF -lro"),
        Remedy::freebsd(
            RemedyHost::Sender,
            "sender: net.inet.tcp.abc_l_var as many segments as an ACK covers",
        ),
        Remedy::linux(
            RemedyHost::Receiver,
            "receiver: ethtool -K IF gro off lro off, ethtool -C IF rx-usecs 0, gro_flush_timeout=0, to see the effect",
        ),
        Remedy::general(
            "nothing, unless slow start suffers (CC101) or bursts are lost (CC202): then pace",
        ),
    ],
};

fn check(case: &DiagnosisCase<'_>) -> Option<Finding> {
    let coverage = &case.flow.coverage;
    let acks: u64 = coverage.acks.iter().sum();
    let stretched = coverage.stretched();
    // After a gap is filled, an ACK covers the data above it too: only ACKs in order count, and
    // they must be most of the transfer.
    let in_order: u64 = coverage.bytes.iter().sum();
    if acks < 10 || stretched < 0.5 || in_order * 2 < case.flow.bytes {
        return None;
    }
    let mss = case.flow.mss.max(1) as f64;
    let mean = coverage.mean()? / mss;
    let title =
        format!("ACKs cover {mean:.1} MSS on average, up to {}", case.segments(coverage.most));
    Some(
        case.finding(&RULE, Duration::ZERO, title)
            .with([
                number("mean_coverage_mss", mean, "coverage", format!("{mean:.1} MSS, {:.0} % of the bytes more than two at a time", stretched * 100.0)),
                number("stretched_share", stretched, "", String::new()),
                count("acks", acks, "ACKs", format!("{acks} in order")),
            ])
            .because("the receiver merges segments (LRO, GRO) or delays ACKs, or the way back thins them")
            .unseen("which of them"),
    )
}
