//! CC815: CE marks.
//!
//! Checks for ECN-CE counts in the ACKs received (RFC 9000 section 13.4): each increase is a
//! congestion event (RFC 9002 section 7.1).
//!
//! Cost: none of its own; the window's is that of the path.

use super::QuicRule;
use super::case::finding;
use crate::quic::QuicAnalysis;
use crate::rules::{Finding, Remedy, count, many};

pub(super) const RULE: QuicRule = QuicRule {
    code: "CC815",
    name: "CE marks",
    check,
    background: "\
An AQM marks packets instead of dropping them if both sides use ECN. The sender reduces its window
as for a loss, without a retransmission. A few marks are the sign of a well managed queue; very many
mean that several flows share a short queue, or that the marking threshold is below what the
sender's bursts need.",
    help: &[Remedy::general(
        "a longer marking threshold or pacing, if the path is not busy; otherwise nothing",
    )],
};

fn check(analysis: &QuicAnalysis) -> Option<Finding> {
    if analysis.ce == 0 {
        return None;
    }
    let title = format!("the path marked {}", many(analysis.ce, "packet"));
    Some(
        finding(analysis, &RULE, 0, title)
            .with([count("ce_marks", analysis.ce, "marks", many(analysis.ce, "packet"))])
            .because("an AQM on the path signals congestion with CE"),
    )
}
