//! Knobs of FreeBSD's RACK stack, as rack_init_sysctls of tcp_stacks/rack.c names them.

use units::Duration;

use super::{Knob, Slot, freebsd};
use crate::profile::{LossRule, Profile, RackRule, RtoRule};

/// What they are found in.
pub(super) const fn rule(profile: &mut Profile) -> Option<&mut RackRule> {
    match &mut profile.loss {
        LossRule::Rack(rule) => Some(rule),
        _ => None,
    }
}

const fn count(at: fn(&mut Profile) -> Option<&mut u32>, least: u64, most: u64) -> Slot {
    Slot::Count { at, least, most }
}

const fn time(at: fn(&mut Profile) -> Option<&mut Duration>) -> Slot {
    Slot::Time { at, least: Duration::from_micros(1), most: Duration::from_secs(60) }
}

const fn switch(at: fn(&mut Profile) -> Option<&mut bool>) -> Slot {
    Slot::Switch { at }
}

/// Longest span a counter of microseconds in 31 bits holds, in whole seconds.
const FADE_MOST: Duration = Duration::from_secs(2_147);

/// In the order they are listed to users.
pub(super) const KNOBS: &[Knob] = &[
    freebsd(
        "net.inet.tcp.rack.misc.rack_dsack_ctl",
        Slot::RackDsack,
        "RACK's threshold: bit 0 adds a quarter of the round trip always, bit 1 one more for each round with D-SACKs",
    ),
    freebsd(
        "net.inet.tcp.rack.tlp.pktdelay",
        time(|p| Some(&mut rule(p)?.thresh.pkt_delay)),
        "added to the round trip where bit 0 of rack_dsack_ctl is off",
    ),
    freebsd(
        "net.inet.tcp.rack.tlp.reorder_thresh",
        count(|p| Some(&mut rule(p)?.thresh.reorder_shift), 0, 31),
        "and once reordering was seen the round trip shifted right by this, too; 0 counts as 2",
    ),
    freebsd(
        "net.inet.tcp.rack.tlp.reorder_fade",
        Slot::Time {
            at: |p| Some(&mut rule(p)?.thresh.reorder_fade),
            least: Duration::ZERO,
            most: FADE_MOST,
        },
        "for how long reordering is remembered; 0 for ever",
    ),
    freebsd(
        "net.inet.tcp.rack.timers.rtt_divisor",
        count(|p| Some(&mut rule(p)?.rtt_divisor), 0, 1_000),
        "D53832: a retransmission acknowledged within this share of the round trip was needless; 0 is off",
    ),
    freebsd(
        "rack.revert_unsent",
        switch(|p| Some(&mut rule(p)?.revert_unsent)),
        "revert a recovery in which nothing new was sent when what was passed is acknowledged; the kernel has no switch for it",
    ),
    freebsd(
        "rack.revert_duplicates",
        switch(|p| Some(&mut rule(p)?.revert_duplicates)),
        "revert a recovery all of whose retransmissions are reported as duplicates; the kernel has no switch for it",
    ),
    freebsd(
        "net.inet.tcp.rack.tlp.rtt_tlp_thresh",
        count(|p| Some(&mut rule(p)?.pto.divisor), 0, 1_000),
        "tail loss probe: this share of the round trip is added to it; 0 counts as 1",
    ),
    freebsd(
        "net.inet.tcp.rack.tlp.use_greater",
        switch(|p| Some(&mut rule(p)?.pto.use_greater)),
        "tail loss probe: RACK's round trip counts where it is longer than the smoothed one",
    ),
    freebsd(
        "net.inet.tcp.rack.tlp.tlpminto",
        time(|p| Some(&mut rule(p)?.pto.least)),
        "tail loss probe: shortest time",
    ),
    freebsd(
        "net.inet.tcp.rack.tlp.limit",
        count(|p| Some(&mut rule(p)?.probes), 1, 200),
        "tail loss probes in a row without new data",
    ),
    freebsd(
        "net.inet.tcp.rack.timers.delayed_ack",
        time(|p| Some(&mut rule(p)?.pto.delayed_ack)),
        "tail loss probe of a single packet: allowance for a delayed ACK",
    ),
    freebsd(
        "net.inet.tcp.rack.timers.minto",
        time(|p| Some(&mut rule(p)?.thresh.least_wait)),
        "shortest time of RACK's reordering timer",
    ),
    freebsd(
        "net.inet.tcp.rack.timers.minrto",
        time(|p| match &mut p.rto {
            RtoRule::Rack(bounds) => Some(&mut bounds.least),
            _ => None,
        }),
        "shortest retransmission timeout, before the slop of 200 ms",
    ),
    freebsd(
        "net.inet.tcp.rack.timers.maxrto",
        Slot::RackMaxRto,
        "longest retransmission timeout, and longest of RACK's thresholds",
    ),
    freebsd(
        "net.inet.tcp.rack.pacing.burst_reduces",
        count(|p| Some(&mut rule(p)?.burst.reduction), 0, 1_000),
        "a call that has sent is followed by a wait, shortened by this share of it; 0 is none, 1 all",
    ),
    freebsd(
        "net.inet.tcp.rack.pacing.pace_max_seg",
        count(|p| Some(&mut rule(p)?.burst.segments), 1, 1_000),
        "segments one call sends at most",
    ),
    freebsd(
        "net.inet.tcp.rack.misc.prr_addback_max",
        count(|p| Some(&mut rule(p)?.addback), 0, 1_000),
        "segments of PRR's unused credit added to the window after a recovery",
    ),
];
