//! CC201: random loss is the limit.
//!
//! Checks for repeated losses with a short queue: the RTT at the loss is that of an empty path, so
//! no queue overflowed. The rule needs ten loss events: fewer give no rate (the relative error of a
//! count n is 1/sqrt(n)).
//!
//! Cost: recoveries after such losses, and the growth after them, less the time their bytes take at
//! the rate of the path. The evidence includes the rate by the formula of Mathis for the rate of
//! loss events.

use theory::mathis::{Constant, estimate};
use units::{Bytes, Duration, Ratio};

use super::case::{DiagnosisCase, count, number, rate, throughput};
use super::help::{Remedy, RemedyHost, SACK_ON_FREEBSD, SACK_ON_LINUX, Setting};
use super::{DiagnosisRule, Finding};
use crate::lost_time::LostTimeCause;

pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    code: "CC201",
    name: "random loss is the limit",
    check,
    background: "\
A sender that takes each loss for congestion halves its window (CUBIC: takes 30 % off) and climbs a
segment a round trip. With losses at a rate p the window settles near 1.22/sqrt(p) segments, whatever
the path could carry (Mathis et al., CCR 27(3), 1997; QUIC and SACK lose two more round trips per
loss, docs/theory.md). At 1 % that is 12 segments: 1.2 Mbit/s at 100 ms. Bad cables and optics,
radio, duplex mismatches and policers do that. Repair the path first. CUBIC gains little at such
small windows. BBR does not take single losses for congestion, but `bbr` of a stock Linux kernel is
version 1, which reduces its rate for no loss rate at all. Several such flows at a queue below about
1.5 bandwidth-delay products keep it overflowing (RFC 9743 section 5.1.3); later versions, which a
stock kernel does not have, limit the loss they cause. In the model, at 50 Mbit/s and 40 ms, two of
them lose 6 % of their packets at a queue of half a product, 3 % at one, 0.1 % at 1.5 (two CUBIC flows:
0.05 %), and a CUBIC flow beside one gets 7 to 11 % of the rate. So version 1 is for a path that is not
shared, or for a bottleneck with a queue for each flow (fq_codel, cake).",
    help: &[
        Remedy::freebsd(RemedyHost::Sender, "netstat -I IF -d, sysctl dev.IF for errors on the way"),
        Remedy::freebsd(RemedyHost::Sender, "where loss cannot be cured and the path is not shared: net.inet.tcp.functions_default=bbr (its effect on others: ackclock explain CC201)").unless(Setting::Controller("bbr")),
        SACK_ON_FREEBSD,
        Remedy::linux(RemedyHost::Sender, "ethtool -S IF, ip -s link for errors on the way"),
        Remedy::linux(RemedyHost::Sender, "where loss cannot be cured and the path is not shared: net.ipv4.tcp_congestion_control=bbr, in a stock kernel version 1, which with a queue below about 1.5 BDP keeps losses high for all (RFC 9743 section 5.1.3)").unless(Setting::Controller("bbr")),
        SACK_ON_LINUX,
        Remedy::general("look for errors hop by hop (mtr), for a policer at a fixed rate, for a duplex mismatch"),
    ],
};

fn check(case: &DiagnosisCase<'_>) -> Option<Finding> {
    let losses = case.episodes(LostTimeCause::Random);
    if !case.loses_often(&losses) {
        return None;
    }
    let cost = case.course.lost(LostTimeCause::Random);
    let flow = case.flow;
    let packets = flow.counts.new + flow.counts.retransmitted;
    let base = case.course.path.base_rtt?;
    let p = losses.lost as f64 / packets.max(1) as f64;
    let title = format!(
        "random loss holds the window down: {} of {packets} packets lost ({:.2} %) with an empty queue",
        losses.lost,
        p * 100.0
    );
    let events = Ratio::new(losses.count, packets)?;
    let mathis = theory::Path::new(Bytes(flow.mss), base, events)
        .ok()
        .map(|path| estimate(&path, Constant::Random).rate_bps);
    let span = flow.last_delivery.since(flow.first_data.0).max(Duration::from_nanos(1));
    let goodput = throughput(flow.bytes, span);
    Some(
        case.finding(&RULE, cost, title)
            .of_kind(case.kind_of_losses(&losses))
            .at(losses.interval, losses.frames)
            .with([
                count(
                    "lost_packets",
                    losses.lost,
                    "losses",
                    format!(
                        "{} in {}, {}",
                        losses.lost,
                        super::case::many(losses.count, "recovery"),
                        super::case::many(losses.timeouts, "timeout")
                    ),
                ),
                number("loss_rate", p, "", String::new()),
                case.queue_at_loss(&losses),
                number("goodput_bps", goodput * 8.0, "goodput", rate(goodput)),
            ])
            .with(mathis.map(|bps| {
                number(
                    "mathis_bps",
                    bps,
                    "Mathis",
                    format!(
                        "{} at this rate of loss events, 1.31 MSS/(RTT sqrt(p))",
                        rate(bps / 8.0)
                    ),
                )
            }))
            .with(case.path_rate())
            .because(
                "packets are lost where no queue overflows: errors on a link, radio, a policer",
            )
            .unseen("where on the path they are lost")
            .unseen(case.bound()),
    )
}
