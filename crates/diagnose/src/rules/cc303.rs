//! CC303: spurious timeout.
//!
//! Checks for an expiry of the retransmission timer without a loss: the path delayed packets or
//! ACKs for longer than the timer (a delay spike), and they arrived after all.
//!
//! Cost: the silence and the growth of the window after it, less the time the bytes of that time
//! take at the rate of the path. Undoing the reduction saves only the second part.

use units::Duration;

use super::case::{DiagnosisCase, count, number, seconds, time};
use super::help::{Remedy, RemedyHost, Setting};
use super::{DiagnosisRule, Finding};
use crate::lost_time::LostTimeCause;

pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    code: "CC303",
    name: "spurious timeout",
    check,
    background: "\
A path that stops for a moment (radio, handover, a virtual machine that is not run) and then delivers
all it held lets the retransmission timer run out for nothing. The window falls to one segment, and a
sender that believes its timer sends everything again (go-back-N). F-RTO (RFC 5682), Eifel (RFC 3522)
and D-SACK reveal it with the next ACKs; Linux and FreeBSD restore the window then.",
    help: &[
        Remedy::freebsd(RemedyHost::Sender, "net.inet.tcp.rexmit_slop higher on such paths"),
        Remedy::freebsd(RemedyHost::Lacking, "timestamps on (net.inet.tcp.rfc1323=1) for the undo").unless(Setting::Timestamps),
        Remedy::linux(RemedyHost::Sender, "net.ipv4.tcp_frto=2 (default)").unless(Setting::Default),
        Remedy::linux(RemedyHost::Lacking, "net.ipv4.tcp_timestamps=1 (default) for the undo").unless(Setting::Timestamps),
        Remedy::linux(RemedyHost::Sender, "ip route change ROUTE rto_min 1s on such paths"),
        Remedy::other(RemedyHost::Sender, "F-RTO (RFC 5682)"),
        Remedy::general("find what holds packets: radio, handover, a paused virtual machine"),
    ],
};

fn check(case: &DiagnosisCase<'_>) -> Option<Finding> {
    let alarms = case.episodes(LostTimeCause::SpuriousRto);
    if alarms.count == 0 {
        return None;
    }
    let cost = case.course.lost(LostTimeCause::SpuriousRto);
    let longest = case.flow.rtt.map_or(Duration::ZERO, |(_, _, longest)| longest);
    let timeouts = super::case::many(alarms.timeouts.max(1), "timeout");
    // The longest round trip shows the delay, if one was measured across it.
    let base = case.course.path.base_rtt.unwrap_or(longest);
    let is_shown = longest > base * 2;
    let mut title = format!("{timeouts} of the timer without a loss");
    if is_shown {
        title += &format!(": the path held everything for {}", time(longest));
    }
    let cause = match is_shown {
        true => "the path delivered nothing for longer than the timer, and then all of it",
        false => "the data had arrived, and their ACKs reached the sender too late or not at all",
    };
    Some(
        case.finding(&RULE, cost, title)
            .at(alarms.interval, alarms.frames)
            .with([
                count(
                    "timeouts",
                    alarms.timeouts,
                    "timeouts",
                    format!(
                        "{}, {} retransmitted had arrived",
                        alarms.timeouts,
                        super::case::many(alarms.retransmitted, "packet")
                    ),
                ),
                number(
                    "longest_rtt_s",
                    seconds(longest),
                    "delay",
                    format!(
                        "longest round trip {}, shortest {}",
                        time(longest),
                        time(case.course.path.base_rtt.unwrap_or_default())
                    ),
                ),
            ])
            .with(case.path_rate())
            .because(cause)
            .unseen("what held the packets")
            .unseen(case.bound()),
    )
}
