//! CC836: the sender sends in bursts.
//!
//! Checks for milliseconds with more than 20 datagrams, twice what RFC 9002 section 7.7 lets a sender send at
//! once, and four times what the window sends in a millisecond, if these have a quarter of the packets with
//! data, at least four times.
//!
//! Cost: none of its own; losses in a queue that a burst fills are in their own findings.

use super::QuicRule;
use super::case::finding;
use crate::quic::QuicAnalysis;
use crate::quic::bursts::QuicBursts;
use crate::quic::clock::interval;
use crate::rules::{
    EvidenceItem, Finding, Remedy, RemedyHost, Severity, count, many, number, percent, size,
};

pub(super) const RULE: QuicRule = QuicRule {
    code: "CC836",
    name: "the sender sends in bursts",
    check,
    background: "\
A sender without a pacer, or whose pacer wakes up rarely, sends what the window allows at once: after
idle times, after an update of flow control, after an ACK that covers many packets, or once in each tick
of its timer. A queue of the path must hold the burst; a shallow one (a switch, a policer) drops its end
although the average rate is below that of the path. RFC 9002 section 7.7 requires pacing, or bursts of
at most the initial window.",
    help: &[
        Remedy::stack(RemedyHost::Sender, "quiche", "Config::enable_pacing, and send each packet at SendInfo::at (SO_TXTIME, sch_fq)"),
        Remedy::stack(RemedyHost::Sender, "msquic", "QUIC_SETTINGS PacingEnabled"),
        Remedy::stack(RemedyHost::Sender, "lsquic", "es_pace_packets, es_clock_granularity"),
        Remedy::stack(RemedyHost::Sender, "mvfst", "TransportSettings::pacingEnabled, pacingTickInterval, writeConnectionDataPacketsLimit"),
        Remedy::stack(RemedyHost::Sender, "quinn", "the pacer bursts 2 ms of the rate; large UDP_SEGMENT batches make them longer"),
        Remedy::general("fewer datagrams per sendmsg or UDP_SEGMENT batch, a pacing timer of at most 1 ms"),
    ],
};

/// Fewest bursts, and the part of the packets in them.
const LEAST: u64 = 4;
const PART: u64 = 4;

/// Whether the bursts are a habit of the sender.
pub(in crate::quic) const fn is_habit(bursts: &QuicBursts) -> bool {
    bursts.count >= LEAST && bursts.packets * PART >= bursts.all
}

/// Title of the finding, and its evidence.
pub(in crate::quic) fn facts(bursts: &QuicBursts, unit: &str) -> (String, [EvidenceItem; 3]) {
    let share = percent(bursts.packets, bursts.all);
    let title = format!(
        "{share} of the data are sent in bursts of up to {}",
        many(bursts.longest_packets, unit)
    );
    let evidence = [
        count(
            "bursts",
            bursts.count,
            "bursts",
            format!("{}, more than 20 {unit}s within 1 ms", bursts.count),
        ),
        count("longest_burst_bytes", bursts.longest, "longest", size(bursts.longest)),
        number(
            "share",
            bursts.packets as f64 / bursts.all.max(1) as f64,
            "share",
            format!("{share} of the {unit}s with data"),
        ),
    ];
    (title, evidence)
}

fn check(analysis: &QuicAnalysis) -> Option<Finding> {
    let bursts = &analysis.bursts;
    if !is_habit(bursts) || !analysis.is_sender() {
        return None;
    }
    let (title, evidence) = facts(bursts, "packet");
    let mut found = finding(analysis, &RULE, 0, title)
        .at(interval(bursts.interval), bursts.events)
        .with(evidence)
        .because("the sender does not pace, or its pacer wakes up rarely")
        .unseen("when the packets left the host, if the system or the device paces them (SO_TXTIME, sch_fq)");
    found.severity = Severity::Note;
    Some(found)
}
