//! CC105: a low slow-start threshold and a linear climb.
//!
//! Checks for linear growth until the window was twice what it was before the reduction that set
//! the threshold. The path held twice as much all along: slow start up to there would have taken
//! one RTT per doubling, linear growth takes one per segment. R. Stewart, "Improving TCP's
//! Responses to Reordering" (FreeBSD Journal), reports five segments growing to 3,850 by one per 45
//! ms.
//!
//! Cost: the lost time of linear growth, less one RTT per doubling. A note after a loss: the finding about the loss
//! has that time.

use units::Duration;

use super::case::{DiagnosisCase, count, doublings, many, number, seconds, time};
use super::help::{Remedy, RemedyHost, Setting};
use super::{DiagnosisRule, Finding, cc101};
use crate::lost_time::{LostTimeCause, fraction};
use crate::timeline::LinearGrowth;

pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    code: "CC105",
    name: "low threshold, linear climb",
    check,
    background: "\
A loss, or a false alarm, sets the slow-start threshold to half the window (RFC 5681 section 3.1,
equation 4). If it comes when slow start has hardly begun, the threshold is a few segments, and from
there the window grows by one segment a round trip: 3,850 round trips to fill 1 Gbit/s at 45 ms,
nearly three minutes. Undoing a false reduction restores the threshold (Linux; FreeBSD's RACK with
D53832); CUBIC climbs faster than NewReno once the window is large.",
    help: &[
        Remedy::freebsd(RemedyHost::Sender, "net.inet.tcp.functions_default=rack")
            .unless(Setting::RackStack),
        Remedy::freebsd(RemedyHost::Sender, "net.inet.tcp.cc.algorithm=cubic")
            .unless(Setting::Controller("cubic")),
        Remedy::linux(
            RemedyHost::Lacking,
            "net.ipv4.tcp_timestamps=1 (default), so that false reductions are undone",
        )
        .unless(Setting::Timestamps),
        Remedy::linux(
            RemedyHost::Lacking,
            "net.ipv4.tcp_sack=1, tcp_dsack=1 (defaults), so that false reductions are undone",
        )
        .unless(Setting::Sack),
        Remedy::general(
            "find what caused the first reduction; open a new connection where that is cheap",
        ),
    ],
};

fn check(case: &DiagnosisCase<'_>) -> Option<Finding> {
    // A slow start that a few segments per ACK slow down is CC101's.
    let is_own = |growth: &&LinearGrowth| cc101::starved_growth(case, growth).is_none();
    let growths: Vec<_> = case.course.linear_growths.iter().filter(is_own).collect();
    let (first, last) = (*growths.first()?, *growths.last()?);
    let base = case.course.path.base_rtt.unwrap_or_default();
    let cost = growths
        .iter()
        .map(|linear_growth| {
            let (from, to) = linear_growth.windows;
            linear_growth.lost.saturating_sub(fraction(base, doublings(from, to)))
        })
        .sum::<Duration>();
    if !case.is_significant(cost) {
        return None;
    }
    // A window of less than two segments does not climb: the application has no more to send.
    let longest = growths.into_iter().max_by_key(|linear_growth| linear_growth.lost)?;
    if longest.windows.0 < 2 * case.flow.mss {
        return None;
    }
    let after = match longest.blame {
        LostTimeCause::SpuriousFastRecovery => "a recovery that nothing lost had called for",
        LostTimeCause::SpuriousRto => "a timeout that nothing lost had called for",
        LostTimeCause::EarlyExit => "a slow start that ended early",
        LostTimeCause::Timeout | LostTimeCause::TailLoss => "a timeout",
        _ => "a loss",
    };
    let (from, to) = (case.segments(longest.windows.0), case.segments(longest.windows.1));
    let title = format!(
        "the window climbs from {from} to {to} MSS a segment or so at a time, after {after}"
    );
    let finding = case
        .finding(&RULE, cost, title)
        .at((first.from, last.to), (first.frame, case.flow.last_frame))
        .with([
            count(
                "climb_rounds",
                longest.rounds,
                "climb",
                format!(
                    "{}, {}",
                    many(longest.rounds, "round trip"),
                    time(longest.to.since(longest.from))
                ),
            ),
            number(
                "climb_lost_s",
                seconds(longest.lost),
                "lost",
                format!(
                    "{}; doubling to there takes {:.1} round trips",
                    time(longest.lost),
                    doublings(longest.windows.0, longest.windows.1)
                ),
            ),
        ])
        .with(case.path_rate())
        .because(format!("{after} left a slow-start threshold far below what the path holds"))
        .unseen(case.bound());
    // What was lost is the cause, and has its own finding with this time.
    Some(if longest.is_of_loss() { finding.note() } else { finding })
}
