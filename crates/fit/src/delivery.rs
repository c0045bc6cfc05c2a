//! When data were delivered, and when nothing was.

use diagnose::{Analysis, CapturedPacket};
use packet::{Dir, Flags};
use units::Instant;

use crate::losses::SequenceUnwrapper;

/// Returns the longest time without packets from the receiver while data was in flight, if it
/// lasted more than three round trips.
pub(crate) fn held(analysis: &Analysis, dir: Dir, rtt: u64) -> Option<(u64, u64)> {
    let mut longest: Option<(u64, u64)> = None;
    let mut last_back: Option<u64> = None;
    let mut first_sent_since: Option<u64> = None;
    for packet in &analysis.packets {
        let at = packet.at.as_nanos();
        if packet.segment.dir == dir {
            first_sent_since = first_sent_since.or(Some(at));
            continue;
        }
        if let (Some(_), Some(sent)) = (last_back, first_sent_since)
            && at.saturating_sub(sent) > 3 * rtt
            && longest.is_none_or(|(from, until)| at - sent > until - from)
        {
            longest = Some((sent, at));
        }
        (last_back, first_sent_since) = (Some(at), None);
    }
    let start = analysis.first.as_nanos();
    longest.map(|(sent, back)| (sent - start, back - start - rtt))
}

/// When the last new data of this direction were captured; `None` without data.
pub(crate) fn last_data(packets: &[CapturedPacket], dir: Dir) -> Option<Instant> {
    let mut stream = SequenceUnwrapper::default();
    let mut last: Option<(u64, Instant)> = None;
    for packet in packets {
        let segment = &packet.segment;
        if segment.dir != dir || segment.payload == 0 {
            continue;
        }
        let end = stream.place(segment.seq.0) + u64::from(segment.payload);
        if last.is_none_or(|last| end > last.0) {
            last = Some((end, packet.at));
        }
    }
    last.map(|last| last.1)
}

/// Returns the bytes of the stream acknowledged over time. The stream begins after the SYN, or with
/// the first byte that was captured.
pub(crate) fn delivered(analysis: &Analysis, dir: Dir, start: u64) -> Vec<(u64, u64)> {
    let mut stream = SequenceUnwrapper::default();
    let mut places = Vec::new();
    let (mut after_syn, mut first_data) = (None, None::<u64>);
    for packet in &analysis.packets {
        let segment = &packet.segment;
        if segment.dir != dir {
            let Some(ack) = segment.acknowledgment() else { continue };
            places.push((packet.at.as_nanos().saturating_sub(start), stream.place(ack.0)));
        } else if segment.flags.has(Flags::SYN) {
            after_syn = Some(stream.place(segment.seq.0.wrapping_add(1)));
        } else if segment.payload > 0 {
            let place = stream.place(segment.seq.0);
            first_data = Some(first_data.map_or(place, |first| first.min(place)));
        }
    }
    let Some(base) = after_syn.or(first_data) else { return Vec::new() };
    let mut curve: Vec<(u64, u64)> = Vec::new();
    for (at, place) in places {
        let bytes = place.saturating_sub(base);
        if curve.last().is_none_or(|last| last.1 < bytes) {
            curve.push((at, bytes));
        }
    }
    curve
}
