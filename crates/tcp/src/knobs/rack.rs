//! Knobs of FreeBSD's RACK stack, as rack_init_sysctls of tcp_stacks/rack.c names them.

use units::Duration;

use super::{Knob, KnobSlot, freebsd};
use crate::profile::{LossDetectionRule, RackRule, RtoRule, TcpProfile};

/// The rule that the knobs set.
pub(super) const fn rule(profile: &mut TcpProfile) -> Option<&mut RackRule> {
    match &mut profile.loss {
        LossDetectionRule::FreeBsdRack(rule) => Some(rule),
        _ => None,
    }
}

const fn count(at: fn(&mut TcpProfile) -> Option<&mut u32>, least: u64, most: u64) -> KnobSlot {
    KnobSlot::Count { at, least, most }
}

const fn time(at: fn(&mut TcpProfile) -> Option<&mut Duration>) -> KnobSlot {
    KnobSlot::Time { at, least: Duration::from_micros(1), most: Duration::from_secs(60) }
}

const fn switch(at: fn(&mut TcpProfile) -> Option<&mut bool>) -> KnobSlot {
    KnobSlot::Switch { at }
}

/// Longest duration that a 31-bit counter of microseconds holds, in whole seconds.
const FADE_MOST: Duration = Duration::from_secs(2_147);

/// In the order they are listed to users.
pub(super) const KNOBS: &[Knob] = &[
    freebsd(
        "net.inet.tcp.rack.misc.rack_dsack_ctl",
        KnobSlot::RackDsack,
        "RACK's reordering window: bit 0 always adds a quarter of the round trip, bit 1 another for each round with D-SACKs",
    ),
    freebsd(
        "net.inet.tcp.rack.tlp.pktdelay",
        time(|p| Some(&mut rule(p)?.thresh.pkt_delay)),
        "RACK's reordering window: added to the round trip if bit 0 of rack_dsack_ctl is off",
    ),
    freebsd(
        "net.inet.tcp.rack.tlp.reorder_thresh",
        count(|p| Some(&mut rule(p)?.thresh.reorder_shift), 0, 31),
        "RACK's reordering window: shift of the round trip that is added once reordering was seen; 0 counts as 2",
    ),
    freebsd(
        "net.inet.tcp.rack.tlp.reorder_fade",
        KnobSlot::Time {
            at: |p| Some(&mut rule(p)?.thresh.reorder_fade),
            least: Duration::ZERO,
            most: FADE_MOST,
        },
        "how long reordering is remembered; 0 for ever",
    ),
    freebsd(
        "net.inet.tcp.rack.timers.rtt_divisor",
        count(|p| Some(&mut rule(p)?.rtt_divisor), 0, 1_000),
        "D53832: a retransmission acknowledged within this fraction of the round trip was spurious; 0 is off",
    ),
    freebsd(
        "rack.revert_unsent",
        switch(|p| Some(&mut rule(p)?.revert_unsent)),
        "undo a recovery in which no new data was sent once the packets taken for lost are acknowledged; the kernel has no switch for it",
    ),
    freebsd(
        "rack.revert_duplicates",
        switch(|p| Some(&mut rule(p)?.revert_duplicates)),
        "undo a recovery if D-SACKs cover all its retransmissions; the kernel has no switch for it",
    ),
    freebsd(
        "net.inet.tcp.rack.tlp.rtt_tlp_thresh",
        count(|p| Some(&mut rule(p)?.pto.divisor), 0, 1_000),
        "tail loss probe: fraction of the round trip that is added to it, as a divisor; 0 counts as 1",
    ),
    freebsd(
        "net.inet.tcp.rack.tlp.use_greater",
        switch(|p| Some(&mut rule(p)?.pto.use_greater)),
        "tail loss probe: use RACK's round trip if it is longer than the smoothed one",
    ),
    freebsd(
        "net.inet.tcp.rack.tlp.tlpminto",
        time(|p| Some(&mut rule(p)?.pto.least)),
        "tail loss probe: minimum timeout",
    ),
    freebsd(
        "net.inet.tcp.rack.tlp.limit",
        count(|p| Some(&mut rule(p)?.probes), 1, 200),
        "maximum of consecutive tail loss probes without new data",
    ),
    freebsd(
        "net.inet.tcp.rack.timers.delayed_ack",
        time(|p| Some(&mut rule(p)?.pto.delayed_ack)),
        "tail loss probe of a single packet: allowance for a delayed ACK",
    ),
    freebsd(
        "net.inet.tcp.rack.timers.minto",
        time(|p| Some(&mut rule(p)?.thresh.min_timer)),
        "minimum of RACK's reordering timer",
    ),
    freebsd(
        "net.inet.tcp.rack.timers.minrto",
        time(|p| match &mut p.rto {
            RtoRule::Rack(bounds) => Some(&mut bounds.least),
            _ => None,
        }),
        "minimum retransmission timeout, before the slop of 200 ms",
    ),
    freebsd(
        "net.inet.tcp.rack.timers.maxrto",
        KnobSlot::RackMaxRto,
        "maximum retransmission timeout, and maximum of RACK's reordering window",
    ),
    freebsd(
        "net.inet.tcp.rack.pacing.burst_reduces",
        count(|p| Some(&mut rule(p)?.burst.reduction), 0, 1_000),
        "pause after a burst, shortened by this fraction of it, as a divisor; 0 does not shorten it, 1 removes it",
    ),
    freebsd(
        "net.inet.tcp.rack.pacing.pace_max_seg",
        count(|p| Some(&mut rule(p)?.burst.segments), 1, 1_000),
        "maximum segments that one call of rack_output sends",
    ),
    freebsd(
        "net.inet.tcp.rack.features.hystartplusplus",
        KnobSlot::RackHyStart,
        "HyStart++: 0 off, 1 on, 2 may lower the window to the flight, 3 takes the mean of both flights as the threshold",
    ),
    freebsd(
        "net.inet.tcp.rack.misc.prr_addback_max",
        count(|p| Some(&mut rule(p)?.addback), 0, 1_000),
        "maximum segments of unused PRR credit added to the window after a recovery",
    ),
];
