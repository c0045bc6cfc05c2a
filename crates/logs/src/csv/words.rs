//! The words for events and what they say.

use record::{Event, Evidence, SentKind, Waiting};

use super::micros;
use crate::decimal::Text;

/// The word in the column `event`.
pub fn name(event: &Event) -> &'static str {
    match event {
        Event::Connected => "connected",
        Event::Closed => "closed",
        Event::Aborted => "aborted",
        Event::Sent { .. } => "sent",
        Event::Acked { .. } => "acked",
        Event::DupAck { .. } => "dup_ack",
        Event::Lost { .. } => "lost",
        Event::Window { .. } => "window",
        Event::Timer(_) => "timer",
        Event::Waiting(_) => "waiting",
        Event::Wrote { .. } => "wrote",
        Event::Read { .. } => "read",
        Event::SendBuffer { .. } => "send_buffer",
        Event::ReceiveBuffer { .. } => "receive_buffer",
        Event::Merged { .. } => "merged",
        Event::Dropped { .. } => "dropped",
        Event::RttSample { .. } => "rtt_sample",
        Event::Covered { .. } => "covered",
        Event::PacketsAcked { .. } => "packets_acked",
        Event::PacketLost { .. } => "packet_lost",
    }
}

/// The text in the column `detail`: `key=value` with a blank between, units in the keys.
pub fn detail(event: &Event) -> String {
    let mut text = Text::new(64);
    write_detail(&mut text, event);
    String::from_utf8_lossy(text.bytes()).into_owned()
}

/// Writes the same.
pub(super) fn write_detail(rows: &mut Text, event: &Event) {
    let mut pair = |key: &str, value: u64| {
        rows.word(key);
        rows.whole(value);
    };
    match *event {
        Event::Connected | Event::Closed | Event::Aborted => {}
        Event::Sent { at, len, kind } => {
            pair("at_bytes=", at.0);
            pair(" len_bytes=", len.into());
            rows.word(" kind=");
            rows.word(kind.name());
            if let SentKind::Again(cause) = kind {
                rows.word(" cause=");
                rows.word(cause.name());
            }
        }
        Event::Acked { una, bytes, nsegs } => {
            pair("una_bytes=", una.0);
            pair(" acked_bytes=", bytes.into());
            pair(" nsegs=", nsegs.into());
        }
        Event::DupAck { count } => pair("count=", count.into()),
        Event::Lost { packets } => pair("packets=", packets.into()),
        Event::Window { cwnd, ssthresh, cause } => {
            pair("cwnd_bytes=", cwnd.into());
            if ssthresh != u32::MAX {
                pair(" ssthresh_bytes=", ssthresh.into());
            }
            rows.word(" cause=");
            rows.word(cause.name());
        }
        Event::Timer(purpose) => {
            rows.word("purpose=");
            rows.word(purpose.name());
        }
        Event::Waiting(waiting) => {
            rows.word("for=");
            rows.word(waiting_name(waiting));
        }
        Event::Wrote { bytes } => pair("len_bytes=", bytes.into()),
        Event::Read { bytes, upto } => {
            pair("len_bytes=", bytes.into());
            pair(" upto_bytes=", upto.0);
        }
        Event::SendBuffer { size } | Event::ReceiveBuffer { size } => {
            pair("size_bytes=", size.into());
        }
        Event::Merged { packets, bytes } => {
            pair("packets=", packets.into());
            pair(" len_bytes=", bytes.into());
        }
        Event::Dropped { element, bytes } => {
            pair("element=", element.into());
            pair(" len_bytes=", bytes.into());
        }
        Event::RttSample { rtt } => {
            rows.word("rtt_us=");
            micros(rows, rtt);
        }
        Event::Covered { at, len } => {
            pair("at_bytes=", at.0);
            pair(" len_bytes=", len.into());
        }
        Event::PacketsAcked { packets, bytes } => {
            pair("packets=", packets.into());
            pair(" packet_bytes=", bytes.into());
        }
        Event::PacketLost { number, space, by } => {
            pair("packet=", number);
            pair(" space=", space.into());
            rows.word(match by {
                Evidence::Order => " by=packet_threshold",
                Evidence::Time => " by=time_threshold",
            });
        }
    }
}

const fn waiting_name(waiting: Waiting) -> &'static str {
    match waiting {
        Waiting::CongestionWindow => "congestion_window",
        Waiting::PeerWindow => "peer_window",
        Waiting::Application => "application",
        Waiting::SmallSegment => "small_segment",
        Waiting::Handshake => "handshake",
        Waiting::Done => "done",
        Waiting::Pacing => "pacing",
    }
}
