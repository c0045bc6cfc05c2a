//! CC302: spurious fast recovery.
//!
//! Checks for recoveries without a loss: every retransmitted packet had arrived (D-SACK,
//! timestamps). The window reduction was spurious.
//!
//! Cost: the recoveries and the growth after them, less the time their bytes take at the rate of
//! the path. Linear growth beyond the old window is CC105's.

use packet::wire::IcmpProblem;

use super::case::{DiagnosisCase, count, time};
use super::help::{Remedy, RemedyHost, Setting};
use super::{DiagnosisRule, Finding};
use crate::connection_events::IcmpNotice;
use crate::lost_time::LostTimeCause;

pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    code: "CC302",
    name: "spurious fast recovery",
    check,
    background: "\
Three duplicate ACKs, or a SACK older than RACK's window, and the sender takes the packet for lost,
sends it again and halves its window. If the packet was only late, all that was for nothing. D-SACK
(RFC 2883) and timestamps (Eifel, RFC 3522) inform the sender afterwards. Linux restores the window then
(tcp_try_undo_recovery); RFC 9438 section 4.9.2 asks CUBIC to; FreeBSD's default stack does not, its
RACK does since D53832.",
    help: &[
        Remedy::freebsd(RemedyHost::Sender, "net.inet.tcp.functions_default=rack (with D53832 it restores the window)").unless(Setting::RackStack),
        Remedy::freebsd(RemedyHost::Elsewhere, "cure the reordering (CC301)"),
        Remedy::linux(RemedyHost::Lacking, "net.ipv4.tcp_timestamps=1 (default), so that it is undone").unless(Setting::Timestamps),
        Remedy::linux(RemedyHost::Lacking, "net.ipv4.tcp_sack=1, tcp_dsack=1 (defaults), so that it is undone").unless(Setting::Sack),
        Remedy::linux(RemedyHost::Sender, "net.ipv4.tcp_reordering higher"),
        Remedy::other(RemedyHost::Sender, "RACK (RFC 8985), undo by Eifel or D-SACK").if_possible(Setting::Sack),
        Remedy::general("cure the reordering (CC301)"),
    ],
};

fn check(case: &DiagnosisCase<'_>) -> Option<Finding> {
    let alarms = case.episodes(LostTimeCause::SpuriousFastRecovery);
    // A router discarded packets that were too big, and what replaces them is smaller.
    let too_big = |one: &IcmpNotice| matches!(one.problem, IcmpProblem::TooBig { .. });
    if alarms.count == 0 || case.analysis.events.icmp.iter().any(too_big) {
        return None;
    }
    let cost = case.course.lost(LostTimeCause::SpuriousFastRecovery);
    let title = format!(
        "{} without a loss: {} retransmitted had arrived",
        super::case::many(alarms.count, "recovery"),
        if alarms.retransmitted == 1 {
            "the packet".into()
        } else {
            format!("all {} packets", alarms.retransmitted)
        }
    );
    Some(
        case.finding(&RULE, cost, title)
            .at(alarms.interval, alarms.frames)
            .with([
                count("spurious_recoveries", alarms.count, "recoveries", format!("{} in {}", alarms.count, time(alarms.length()))),
                count("spurious_retransmissions", alarms.retransmitted, "retransmitted", super::case::many(alarms.retransmitted, "packet")),
                count("reordered_packets", case.flow.reordering.packets, "reordering", format!("{} packets came late, up to {} places", case.flow.reordering.packets, case.course.path.extent)),
                count("window_bytes", alarms.window, "window", format!("{} MSS before", case.segments(alarms.window))),
            ])
            .with(case.path_rate())
            .because("late packets were taken for lost ones")
            .unseen("whether the sender restored its window: what follows shows it, a log of the sender would say it")
            .unseen(case.bound()),
    )
}
