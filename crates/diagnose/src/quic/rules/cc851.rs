//! CC851: ECN validation failed.
//!
//! Checks for the state `failed` of the log's ECN validation (RFC 9000 section 13.4.2).
//!
//! Cost: none that a log shows: without ECN an AQM drops what it would have marked.

use super::QuicRule;
use super::case::finding;
use crate::quic::QuicAnalysis;
use crate::quic::clock::{interval, seconds, time};
use crate::rules::{Finding, Remedy, RemedyHost, number};

pub(super) const RULE: QuicRule = QuicRule {
    code: "CC851",
    name: "ECN validation failed",
    check,
    background: "\
A sender marks its first packets ECT(0) and checks that the peer's ACK frames count them (RFC 9000
section 13.4.2). If the counts are missing or too low, or all marked packets are lost, it stops using
ECN. Causes are a router that clears or drops the ECN field, a peer whose socket does not report it,
or a host whose socket API cannot set it.",
    help: &[
        Remedy::stack(RemedyHost::Elsewhere, "quic-go", "QUIC_GO_DISABLE_ECN=true in the environment turns it off"),
        Remedy::stack(RemedyHost::Elsewhere, "lsquic", "es_ecn"),
        Remedy::stack(RemedyHost::Elsewhere, "msquic", "QUIC_SETTINGS EcnEnabled"),
        Remedy::general("capture at both ends and compare the ECN field (tcpdump -v shows it in tos)"),
    ],
};

fn check(analysis: &QuicAnalysis) -> Option<Finding> {
    let (at, event) = analysis.ecn_failed?;
    Some(
        finding(analysis, &RULE, 0, "the path or the peer does not support ECN".into())
            .at(interval((at, at)), (event, event))
            .with([number("failed_at_s", seconds(at), "failed at", time(at))])
            .because(
                "the peer's ACKs did not count the marked packets, or marked packets were lost",
            )
            .unseen("which of them: the path, the peer's socket, or this host's"),
    )
}
