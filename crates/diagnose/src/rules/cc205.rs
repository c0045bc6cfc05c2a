//! CC205: isolated loss.
//!
//! Checks for a few losses (fewer than ten: [`super::cc201`]) without a full queue, and the cost of
//! the window reductions.
//!
//! Cost: their recoveries and the growth after them, less the time their bytes take at the rate of
//! the path.

use super::case::{DiagnosisCase, count};
use super::help::{Remedy, RemedyHost, SACK_ON_FREEBSD, SACK_ON_LINUX, Setting};
use super::{DiagnosisRule, Finding};
use crate::lost_time::LostTimeCause;

pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    code: "CC205",
    name: "isolated loss",
    check,
    background: "\
A single packet is lost, for a bit error or a short burst of others' traffic, and the window is halved
for it (CUBIC: to 70 %). On a long path the way back takes a round trip per segment: 1,000 segments
down, 50 s at 50 ms for NewReno. CUBIC's growth hangs on time, not on round trips, and is made for
that. A queue of a bandwidth-delay product hides the reduction.",
    help: &[
        Remedy::freebsd(RemedyHost::Sender, "net.inet.tcp.cc.algorithm=cubic (default since 14.0)").unless(Setting::Controller("cubic")),
        SACK_ON_FREEBSD,
        Remedy::linux(RemedyHost::Sender, "net.ipv4.tcp_congestion_control=cubic (default)").unless(Setting::Controller("cubic")),
        SACK_ON_LINUX,
        Remedy::other(RemedyHost::Sender, "CUBIC (RFC 9438) on long paths").unless(Setting::Controller("cubic")),
        Remedy::general("look for errors on the links if it happens again"),
    ],
};

fn check(case: &DiagnosisCase<'_>) -> Option<Finding> {
    let losses = case.episodes(LostTimeCause::Random);
    if losses.count == 0 || case.loses_often(&losses) {
        return None;
    }
    let cost = case.course.lost(LostTimeCause::Random);
    let title = format!(
        "{} lost in {} without a full queue",
        super::case::many(losses.lost, "packet"),
        super::case::many(losses.count, "place")
    );
    Some(
        case.finding(&RULE, cost, title)
            .of_kind(case.kind_of_losses(&losses))
            .at(losses.interval, losses.frames)
            .with([
                DiagnosisCase::lost_packets(&losses),
                case.queue_at_loss(&losses),
                count(
                    "window_bytes",
                    losses.window,
                    "window",
                    format!("{} MSS before it was reduced", case.segments(losses.window)),
                ),
            ])
            .with(case.path_rate())
            .because("each loss reduces the window, and it takes long to grow back")
            .unseen("why they were lost")
            .unseen(case.bound()),
    )
}
