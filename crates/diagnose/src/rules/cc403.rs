//! CC403: the receiver reads slowly.
//!
//! Checks for time in which the sender had filled the receive window, well below its largest size:
//! unread data filled the receiver's buffer.
//!
//! Cost: that time less the time its bytes take at the rate of the path.

use units::Duration;

use super::case::{
    DiagnosisCase, count, number, rate, seconds, size, throughput, time, time_percent,
};
use super::help::{Remedy, RemedyHost};
use super::{DiagnosisRule, Finding};
use crate::lost_time::LostTimeCause;

pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    code: "CC403",
    name: "the receiver reads slowly",
    check,
    background: "\
The window a receiver offers is its buffer less what waits there to be read (RFC 9293 section 3.8.6).
When it shrinks while data are acknowledged, the application does not read as fast as the network
delivers: it computes, writes to a slow disk, or waits for someone else. At zero the sender probes
until the window opens (RFC 9293 section 3.8.6.1). A larger buffer only delays it.",
    help: &[
        Remedy::freebsd(RemedyHost::Receiver, "receiver: netstat -x, procstat -kk PID: what the application waits for"),
        Remedy::linux(RemedyHost::Receiver, "receiver: ss -tmi (Recv-Q), perf trace or strace -T -p PID: what the application waits for"),
        Remedy::general("make the receiving application read: threads, larger reads, faster storage"),
    ],
};

fn check(case: &DiagnosisCase<'_>) -> Option<Finding> {
    let cost = case.course.lost(LostTimeCause::Reader);
    let flow = case.flow;
    if flow.zero_windows == 0 && !case.is_significant(cost) {
        return None;
    }
    // Without the handshake only its closing is known.
    let (least, most, _) = flow.window.unwrap_or((0, 0, 0));
    let span = flow.last_delivery.since(flow.first_data.0).max(Duration::from_nanos(1));
    let drain = throughput(flow.bytes, span);
    let title = if most > 0 {
        let (least, most) = (size(least), size(most));
        format!("the receiver reads at {}: its window is down to {least} of {most}", rate(drain))
    } else {
        let times = super::case::many(flow.zero_windows, "time");
        format!("the receiver reads at {}: its window is closed {times}", rate(drain))
    };
    Some(
        case.finding(&RULE, cost, title)
            .with([
                number("blocked_s", seconds(cost), "blocked", format!("{} ({} of the time at work)", time(cost), time_percent(cost, case.active()))),
                count("zero_windows", flow.zero_windows, "closed", super::case::many(flow.zero_windows, "time")),
                count("window_probes", flow.counts.window_probes, "probes", flow.counts.window_probes.to_string()),
                count("largest_window_bytes", most, "", String::new()),
            ])
            .because("data wait in the receiver's buffer: the application there reads slower than the network delivers")
            .unseen("what the receiving application waits for")
            .unseen(case.bound()),
    )
}
