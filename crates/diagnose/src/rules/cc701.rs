//! CC701: coarse clock.
//!
//! Checks a kernel's tick counter, from its log: if a tick is longer than a quarter of the RTT, the
//! kernel's measurements in ticks (RTT, CUBIC's time since the last loss) are too coarse. FreeBSD's
//! CUBIC counted in ticks until D46546 and fell to a sixth of NewReno's throughput on a LAN with
//! kern.hz=100.
//!
//! Cost: unknown from a log; a simulation of the same path with a finer clock shows it.

use units::Duration;

use super::case::{DiagnosisCase, number, seconds, time};
use super::help::{Remedy, RemedyHost};
use super::{Confidence, DiagnosisRule, Finding, Severity};

pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    code: "CC701",
    name: "coarse clock",
    check,
    background: "\
FreeBSD counts time in ticks of 1/kern.hz seconds: 1 ms on hardware, 10 ms on many virtual machines
(kern.hz=100). Round trips below a tick are measured as one, and CUBIC's formula for its TCP-friendly
window gets the time wrong by as much (review D46546: 168 Mbit/s for CUBIC where NewReno had 915, at
1 % loss and kern.hz=100). Since FreeBSD 15 CUBIC counts ACKs instead. Timers are rounded up to ticks
too: retransmission, delayed ACK, persist.",
    help: &[
        Remedy::freebsd(RemedyHost::Sender, "kern.hz=1000 in /boot/loader.conf; a version with D46546; net.inet.tcp.cc.algorithm=newreno on a LAN"),
        Remedy::linux(RemedyHost::Sender, "CONFIG_HZ matters little: round trips and CUBIC use microseconds since 4.13"),
        Remedy::general("a finer clock for round trips than the shortest round trip"),
    ],
};

fn check(case: &DiagnosisCase<'_>) -> Option<Finding> {
    let hz = case.analysis.states.hz()?;
    let base = case.course.path.base_rtt?;
    let tick = Duration::from_nanos((1e9 / hz) as u64);
    if tick * 4 <= base {
        return None;
    }
    let title = format!(
        "the kernel's clock ticks every {} (hz {hz:.0}), a round trip is {}",
        time(tick),
        time(base)
    );
    let mut finding = case
        .finding(&RULE, Duration::ZERO, title)
        .with([
            number("hz", hz, "hz", format!("{hz:.0} ticks a second")),
            number("tick_s", seconds(tick), "", String::new()),
            number("base_rtt_s", seconds(base), "round trip", time(base)),
        ])
        .because("kern.hz is low for so short a path")
        .unseen("what it costs: simulate the path with a finer clock");
    finding.confidence = Confidence::High;
    finding.severity = Severity::Warning;
    Some(finding)
}
