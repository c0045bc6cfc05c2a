//! When data were delivered, and when nothing was.

use diagnose::Analysis;
use packet::{Dir, Flags};

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
