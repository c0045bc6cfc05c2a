//! CC838: a timer sets the rate.
//!
//! Checks for groups of packets with data that begin at equal intervals of at least 5 ms, four fifths of ten or
//! more, without a packet received in the millisecond before them.
//!
//! Cost: the silences between the groups, an upper bound, if the log does not show what limited the sender;
//! otherwise none of its own: the time is that of the limiter.

use super::QuicRule;
use super::case::finding;
use crate::quic::clock::{interval, seconds, time};
use crate::quic::{QuicAnalysis, QuicLimiter};
use crate::rules::{Confidence, Finding, Remedy, RemedyHost, Severity, count, number};

pub(super) const RULE: QuicRule = QuicRule {
    code: "CC838",
    name: "a timer sets the rate",
    check,
    background: "\
Data that leave in groups at equal intervals wait for a timer: a controller that sends a burst per tick, a
pacer with a coarse clock (15.6 ms on Windows, 10 ms at 100 Hz), or an application that writes or polls
periodically. The rate is the group divided by the interval, whatever the path carries, and a group is a burst
for the queues of the path. A sender that waits for ACKs has intervals of a round trip, and they begin when a
packet arrives.",
    help: &[
        Remedy::stack(RemedyHost::Sender, "lsquic", "es_clock_granularity"),
        Remedy::stack(RemedyHost::Sender, "mvfst", "TransportSettings::pacingTickInterval"),
        Remedy::general("a finer timer, or a larger group per tick; on Windows timers of 1 ms (timeBeginPeriod)"),
    ],
};

fn check(analysis: &QuicAnalysis) -> Option<Finding> {
    let rhythm = &analysis.rhythm;
    if rhythm.period == 0 || !analysis.is_sender() {
        return None;
    }
    let unknown = analysis.time(QuicLimiter::Unknown);
    // A packet that is not full was the end of what the application had written.
    let is_message = rhythm.short * 2 > rhythm.all;
    let is_limit = unknown >= analysis.budget.active() / 2 && !is_message;
    let cost = if is_limit { rhythm.waited.min(unknown) } else { 0 };
    let group = rhythm.packets as f64 / (rhythm.all + 1) as f64;
    let title = format!(
        "data leave every {}, {group:.0} packets at a time on average",
        time(rhythm.period)
    );
    let mut found = finding(analysis, &RULE, cost, title)
        .at(interval(rhythm.interval), rhythm.events)
        .with([
            number(
                "period_s",
                seconds(rhythm.period),
                "interval",
                format!("{}, in {} of {} cases", time(rhythm.period), rhythm.equal, rhythm.all),
            ),
            count("groups", rhythm.all + 1, "groups", format!("{}", rhythm.all + 1)),
            number(
                "silence_s",
                seconds(rhythm.waited),
                "silence",
                format!("{} between them", time(rhythm.waited)),
            ),
        ])
        .because(match is_message {
            true => "the application writes a message each time: the last packets of the groups are not full",
            false => "a timer starts each group: of the pacer, of a rate-based controller, or of the application",
        });
    if is_limit {
        found.confidence = Confidence::Medium;
        found.severity = found.severity.min(Severity::Warning);
        found = found.unseen(
            "whose timer it is, and whether a window would have allowed more: the cost is an upper bound",
        );
    } else {
        found.severity = Severity::Note;
    }
    Some(found)
}
