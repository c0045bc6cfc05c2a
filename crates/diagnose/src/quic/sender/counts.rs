//! Counts of packets: late arrivals, delayed acknowledgments, losses by size.

use units::Duration;

use super::MAX_ACK_DELAY;
use super::round_trips::GRANULARITY;
use crate::quic::analysis::QuicAnalysis;
use crate::quic::clock::LogEvent;
use crate::quic::packets::LostPacket;

/// Counts a packet that had been declared lost and is acknowledged; `before` is the largest number
/// acknowledged before.
pub(super) fn arrived(
    out: &mut QuicAnalysis,
    now: LogEvent,
    lost: &LostPacket,
    before: Option<u64>,
) {
    if out.spurious == 0 {
        out.reordering.interval.0 = lost.lost_at.as_nanos();
        out.reordering.events.0 = now.index;
    }
    out.spurious += 1;
    let reordering = &mut out.reordering;
    (reordering.interval.1, reordering.events.1) = (now.ns(), now.index);
    let overtaken = before.unwrap_or(0).saturating_sub(lost.number);
    reordering.packets = reordering.packets.max(overtaken);
    reordering.late = reordering.late.max(now.at.since(lost.lost_at).as_nanos());
    if let Some(sent_at) = lost.sent_at {
        reordering.delay = reordering.delay.max(now.at.since(sent_at).as_nanos());
    }
    if let Some(episode) = out.episodes.get_mut(lost.episode) {
        episode.spurious += 1;
    }
}

/// Counts an acknowledgment of `packets` that the peer delayed.
pub(super) fn ack_delay(out: &mut QuicAnalysis, delay: Duration, packets: u64, event: u64) {
    let limit = out.max_ack_delay.map_or(MAX_ACK_DELAY, Duration::from_nanos);
    let delays = &mut out.ack_delays;
    let ns = delay.as_nanos();
    delays.count += 1;
    delays.packets += packets;
    delays.sum = delays.sum.saturating_add(ns);
    delays.above += u64::from(delay > limit + GRANULARITY);
    if ns > delays.max {
        (delays.max, delays.event) = (ns, event);
    }
}

/// Counts a lost packet with data of this size.
pub(super) fn lost_size(out: &mut QuicAnalysis, now: LogEvent, bytes: u64) {
    let sizes = &mut out.sizes;
    sizes.lost_data += 1;
    if bytes > sizes.largest_acked && sizes.largest_acked > 0 {
        if sizes.lost_larger == 0 {
            (sizes.events.0, sizes.interval.0) = (now.index, now.ns());
        }
        sizes.lost_larger += 1;
        (sizes.events.1, sizes.interval.1) = (now.index, now.ns());
    }
}
