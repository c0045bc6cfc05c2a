//! CC401: the receive window is the limit.
//!
//! Checks for time in which the sender had filled the receive window, at its largest size: the
//! receiver's buffer is too small for the path.
//!
//! Cost: that time less the time its bytes take at the rate of the path.

use super::case::{
    DiagnosisCase, bytes_in, count, number, rate, seconds, size, throughput, time, time_percent,
};
use super::{DiagnosisRule, Finding};
use crate::lost_time::LostTimeCause;
use crate::time_budget::Limiter;

pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    code: "CC401",
    name: "the receive window is the limit",
    check,
    background: "\
A receiver takes no more than its buffer holds (RFC 9293 section 3.8.6), so a transfer moves at most
one window per round trip: 64 KB at 60 ms is 8.7 Mbit/s on any line. Both systems grow the buffer as
needed, unless the application fixed it with SO_RCVBUF, or the limit is too low for the path: window
needed = rate x round trip.",
    help: &[
        (
            "FreeBSD",
            "receiver: net.inet.tcp.recvbuf_max and kern.ipc.maxsockbuf higher, net.inet.tcp.recvbuf_auto=1; no SO_RCVBUF in the application",
        ),
        (
            "Linux",
            "receiver: third figure of net.ipv4.tcp_rmem and net.core.rmem_max higher, tcp_moderate_rcvbuf=1; no SO_RCVBUF in the application",
        ),
        ("other", "receiver: a buffer of at least rate x round trip; window scaling on (RFC 7323)"),
    ],
};

fn check(case: &DiagnosisCase<'_>) -> Option<Finding> {
    let cost = case.course.lost(LostTimeCause::Window);
    if !case.is_significant(cost) {
        return None;
    }
    let (_, most, _) = case.flow.window?;
    let base = case.course.path.base_rtt?;
    let held = case.course.budget.of(Limiter::Rwnd);
    let limit = throughput(most, base);
    let title = format!(
        "the receive window of {} is full {} of the time",
        size(most),
        time_percent(held, case.active())
    );
    let needs = case.course.path.rate.map(|path| {
        let bytes = bytes_in(path, base) as u64;
        count(
            "needed_bytes",
            bytes,
            "needed",
            format!("{} for {} at {}", size(bytes), rate(path), time(base)),
        )
    });
    Some(
        case.finding(&RULE, cost, title)
            .with([
                count(
                    "window_bytes",
                    most,
                    "window",
                    format!(
                        "{} ({} MSS): at most {} at {}",
                        size(most),
                        most / case.flow.mss.max(1),
                        rate(limit),
                        time(base)
                    ),
                ),
                number("blocked_s", seconds(held), "blocked", time(held)),
            ])
            .with(needs)
            .because("the receiver's buffer is smaller than what the path holds")
            .unseen(case.bound()),
    )
}
