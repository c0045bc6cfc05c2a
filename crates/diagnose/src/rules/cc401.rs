//! CC401: the receive window is the limit.
//!
//! Checks for time in which the sender had filled the receive window, at its largest size: the
//! receiver's buffer is too small for the path, or a SYN does not permit window scaling.
//!
//! Cost: that time less the time its bytes take at the rate of the path.

use packet::Dir;

use super::case::{
    DiagnosisCase, bytes_in, count, number, rate, seconds, size, throughput, time, time_percent,
};
use super::help::{MAX_UNSCALED_WINDOW, Remedy, RemedyHost, Setting};
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
        Remedy::freebsd(
            RemedyHost::Receiver,
            "receiver: net.inet.tcp.recvbuf_max and kern.ipc.maxsockbuf higher",
        )
        .if_window_can_grow(),
        Remedy::freebsd(RemedyHost::Receiver, "net.inet.tcp.recvbuf_auto=1 (default)")
            .unless(Setting::Default)
            .if_window_can_grow(),
        Remedy::freebsd(RemedyHost::Receiver, "no SO_RCVBUF in the application")
            .if_window_can_grow(),
        Remedy::freebsd(RemedyHost::Lacking, "window scaling: net.inet.tcp.rfc1323=1")
            .unless(Setting::WindowScaling),
        Remedy::linux(
            RemedyHost::Receiver,
            "receiver: third figure of net.ipv4.tcp_rmem and net.core.rmem_max higher",
        )
        .if_window_can_grow(),
        Remedy::linux(RemedyHost::Receiver, "tcp_moderate_rcvbuf=1 (default)")
            .unless(Setting::Default)
            .if_window_can_grow(),
        Remedy::linux(RemedyHost::Receiver, "no SO_RCVBUF in the application").if_window_can_grow(),
        Remedy::linux(RemedyHost::Lacking, "window scaling: net.ipv4.tcp_window_scaling=1")
            .unless(Setting::WindowScaling),
        Remedy::other(RemedyHost::Receiver, "receiver: a buffer of at least rate x round trip")
            .if_window_can_grow(),
        Remedy::other(
            RemedyHost::Lacking,
            "window scaling on (RFC 7323), and no firewall that removes the option from SYNs",
        )
        .unless(Setting::WindowScaling),
    ],
};

/// The first host whose SYN lacks the scale without which the window cannot be larger than `most`; `None`
/// if it can.
fn lacks_scaling(case: &DiagnosisCase<'_>, most: u64) -> Option<Dir> {
    let lacks = |host: &Dir| {
        let syn = case.analysis.observed_syns[*host as usize];
        syn.is_some_and(|syn| syn.is_complete && syn.options.window_scale.is_none())
    };
    // Less than a segment more lets the sender send nothing more.
    let is_largest = most + case.flow.mss > MAX_UNSCALED_WINDOW;
    [Dir::Forward, Dir::Reverse].into_iter().find(lacks).filter(|_| is_largest)
}

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
    let cause = match lacks_scaling(case, most) {
        None => "the receiver's buffer is smaller than what the path holds",
        Some(Dir::Forward) => {
            "the client's SYN does not permit window scaling, so the window is at most 65,535 bytes, \
             whatever the buffer"
        }
        Some(Dir::Reverse) => {
            "the server's SYN-ACK does not permit window scaling, so the window is at most 65,535 \
             bytes, whatever the buffer"
        }
    };
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
            .of_kind(if lacks_scaling(case, most).is_some() { "no-scaling" } else { "" })
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
            .because(cause)
            .unseen(case.bound()),
    )
}
