//! Case `slow-start-lro`: a FreeBSD sender whose receiver merges segments and acknowledges once
//! per aggregate. Slow start then adds at most two segments per ACK, however much it covers.
//!
//! `trace` reproduces the trace of the freebsd-net post line by line; `ramp` measures the time of
//! slow start to 100 Mbit/s for each way of merging, `linux` that of Linux on the same path,
//! `both_freebsd` the effect of FreeBSD's own receiver.

pub(crate) mod both_freebsd;
mod linux;
mod ramp;
mod trace;

use super::{CaseError, CaseInput, Measured, Workers, by, groups};

/// The transfer of the freebsd-net post.
pub(crate) const TRACE: &str = samples::text("slow-start-lro");
/// The bulk transfer of the ramps.
pub(crate) const RAMP: &str = samples::text("slow-start-ramp");

/// FreeBSD at both ends.
pub(crate) const FREEBSD: &str = samples::text("slow-start-freebsd");

/// Runs the trace, all ramps, and FreeBSD at both ends.
pub(super) fn measure(workers: &Workers<'_>) -> Result<Measured, CaseError> {
    let (mut rows, side_by_side) = trace::rows(workers)?;
    rows.extend(groups(
        &[ramp::rows, |workers| Ok(by("freebsd-main", both_freebsd::rows(workers)?))],
        workers,
    )?);
    let rows = by("freebsd-13.2", rows);
    let exhibit = format!("{side_by_side}\n{EXPLANATION}");
    Ok(Measured { knobs: knobs(), rows, exhibit })
}

/// The explanation of the 20 seconds.
const EXPLANATION: &str = "\
Where the 20 seconds go
  FreeBSD adds min(bytes acknowledged, 2 x 1460) to cwnd for each ACK that reaches its congestion
  control (newreno_ack_received with abc_l_var = 2). The receiver sends one ACK per aggregate of up
  to 45 segments. While a flight fits one aggregate, cwnd grows by 2 MSS per round trip, with 853
  MSS to go. Receiver merging alone soon has several aggregates per flight, so it explains only
  7.7 s. FreeBSD's own LRO merges the returning pure ACKs too, since 13.1 without counting them
  (lro_nsegs stays 1): from about five merged ACKs on the ramp takes more than 20 s, up to 42 s
  if all ACKs of a round trip become one. That this happened in the author's run is an
  inference; the trace is too short to show it. Raising net.inet.tcp.abc_l_var fixes the growth
  per ACK; it is not the only fix: turning off the sender's LRO already brings 42 s down to 8 s.

FreeBSD at both ends
  With FreeBSD's own receiver 14.3 and main are slower still. The reader's window update follows the
  ACK of an aggregate at once; the sender counts it as a duplicate ACK and does not update its
  window (tcp_do_segment jumps to drop). snd_wnd stays at the smaller window of the ACK before, 34 kB
  in the end, and limits every flight: 3 MB take 9.42 s instead of 5.39 s in 13.0. LRO off at the
  receiver fixes it, as does LRO on at the sender (docs/freebsd-window-updates.md).
";

fn knobs() -> Vec<CaseInput> {
    vec![
        CaseInput::new("host.sender.profile", "freebsd-13.2", "the post"),
        CaseInput::new("host.sender.cc", "newreno", "the post"),
        CaseInput::new("path delay", "50 ms each way", "the post: \"a link of 100ms delay\""),
        CaseInput::new(
            "path rate",
            "100 Gbit/s",
            "not stated; an emulated link, which is not the limit",
        ),
        CaseInput::new(
            "host.*.delay",
            "200 us",
            "inferred: 167 to 214 us give the extra millisecond at 0.101 and 0.402 s",
        ),
        CaseInput::new("host.sender.clock_phase", "700 us", "inferred: TSval of the first ACK"),
        CaseInput::new("host.*.isn, host.*.timestamp", "as in the post", "the post"),
        CaseInput::new("kern.ipc.maxsockbuf", "32 MiB", "inferred: the SYN offers wscale 10"),
        CaseInput::new(
            "net.ipv4.tcp_rmem",
            "4 KiB, 128 KiB, 6 MiB",
            "inferred: the sink offers wscale 7",
        ),
        CaseInput::new("host.sink.gro", "on", "the post: one ACK per aggregate, at most 45 MSS"),
        CaseInput::new("host.sender.lro", "on; varied in the ramps", "FreeBSD's default"),
        CaseInput::new(
            "ramps: net.inet.tcp.sendspace",
            "8 MiB",
            "declared: no send buffer splits a flight; the default is measured separately",
        ),
        CaseInput::new(
            "ramps: ip-route.quickack",
            "on",
            "declared: an aggregate of one segment is acknowledged at once, as the rows require",
        ),
        CaseInput::new(
            "ramps: host.sender.rx_budget",
            "none, 2 to 10",
            "declared: packets of one LRO pass, so ACKs merged into one",
        ),
        CaseInput::new(
            "ramps: net.inet.tcp.abc_l_var",
            "2, 4, 8, 16, 45",
            "the question of the post",
        ),
    ]
}
