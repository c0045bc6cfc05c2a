//! CC403: the receiver reads slowly.
//!
//! Checks for time in which the sender had filled the receive window, well below its largest size:
//! unread data filled the receiver's buffer.
//!
//! Cost: that time less the time its bytes take at the rate of the path, and what reading took when all was delivered.

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
    let blocked = case.course.lost(LostTimeCause::Reader);
    let cost = if case.is_significant(blocked) { blocked + late_reading(case) } else { blocked };
    let flow = case.flow;
    if flow.zero_windows == 0 && !case.is_significant(cost) {
        return None;
    }
    // Without the handshake only its closing is known.
    let (least, most, _) = flow.window.unwrap_or((0, 0, 0));
    let delivered = flow.last_delivery.since(flow.first_data.0);
    // A window that stays closed until the end of the capture lets nothing be delivered.
    let span =
        if blocked > delivered { case.analysis.last.since(flow.first_data.0) } else { delivered };
    let drain = throughput(flow.bytes, span.max(Duration::from_nanos(1)));
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
                number("blocked_s", seconds(blocked), "blocked", format!("{} ({} of the time at work)", time(blocked), time_percent(blocked, case.active()))),
                count("zero_windows", flow.zero_windows, "closed", super::case::many(flow.zero_windows, "time")),
                count("window_probes", flow.counts.window_probes, "probes", flow.counts.window_probes.to_string()),
                count("largest_window_bytes", most, "", String::new()),
            ])
            .because("data wait in the receiver's buffer: the application there reads slower than the network delivers")
            .unseen("what the receiving application waits for")
            .unseen(case.bound()),
    )
}

/// How long the receiver read on when all data were there. An answer that waits for that shows it, at most for twice
/// the time that what its buffer may hold takes; otherwise it reads what it held at its rate, until the connection ends.
pub(super) fn late_reading(case: &DiagnosisCase<'_>) -> Duration {
    let flow = case.flow;
    let Some((_, most, _)) = flow.window else { return Duration::ZERO };
    let span = flow.last_delivery.since(flow.first_data.0).as_nanos() as f64;
    let takes =
        |bytes: u64| Duration::from_nanos((span * bytes as f64 / flow.bytes.max(1) as f64) as u64);
    // One that stops reads all at once when it goes on; at what rate it reads is seen of one that never stops.
    let (said, unread) = match flow.unread {
        (said, unread) if flow.zero_windows == 0 => (said, unread),
        (said, _) => (said, 0),
    };
    late_answer(case).map_or_else(
        || {
            let reads = said.since(flow.last_delivery) + takes(unread);
            reads.min(case.analysis.last.since(flow.last_delivery))
        },
        |wait| wait.min(takes(most) * 2),
    )
}

/// How long the receiver's answer to all data waited.
fn late_answer(case: &DiagnosisCase<'_>) -> Option<Duration> {
    let flow = case.flow;
    let wait = case.analysis.exchange.as_deref()?.thinking[flow.dir.reversed() as usize].longest;
    let base = case.course.path.base_rtt.unwrap_or_default();
    let is_last = wait.until > flow.last_delivery
        && wait.until.saturating_sub(wait.length) + base * 2 >= flow.last_delivery;
    is_last.then_some(wait.length)
}
