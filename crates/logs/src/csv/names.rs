//! Names and details of events.

use record::{Event, LossTrigger, SendLimit, SentKind};

use super::micros;
use crate::decimal::Text;

/// Name of an event in the column `event`.
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
        Event::SendLimited(_) => "waiting",
        Event::AppWrote { .. } => "wrote",
        Event::AppRead { .. } => "read",
        Event::SendBuffer { .. } => "send_buffer",
        Event::ReceiveBuffer { .. } => "receive_buffer",
        Event::Aggregated { .. } => "merged",
        Event::Dropped { .. } => "dropped",
        Event::RttSample { .. } => "rtt_sample",
        Event::StreamAcked { .. } => "covered",
        Event::QuicPacketsAcked { .. } => "packets_acked",
        Event::QuicPacketLost { .. } => "packet_lost",
        Event::TcpInfo { .. } => "tcp_info",
    }
}

/// Text in the column `detail`: `key=value` pairs separated by blanks, with units in the keys.
pub fn detail(event: &Event) -> String {
    let mut text = Text::new(64);
    write_detail(&mut text, event);
    String::from_utf8_lossy(text.bytes()).into_owned()
}

/// Writes the text of [`detail`].
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
            if let SentKind::Retransmission(cause) = kind {
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
        Event::SendLimited(waiting) => {
            rows.word("for=");
            rows.word(waiting_name(waiting));
        }
        Event::AppWrote { bytes } => pair("len_bytes=", bytes.into()),
        Event::AppRead { bytes, total: upto } => {
            pair("len_bytes=", bytes.into());
            pair(" upto_bytes=", upto.0);
        }
        Event::SendBuffer { size } | Event::ReceiveBuffer { size } => {
            pair("size_bytes=", size.into());
        }
        Event::Aggregated { packets, bytes } => {
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
        Event::StreamAcked { at, len } => {
            pair("at_bytes=", at.0);
            pair(" len_bytes=", len.into());
        }
        Event::QuicPacketsAcked { packets, bytes } => {
            pair("packets=", packets.into());
            pair(" packet_bytes=", bytes.into());
        }
        Event::QuicPacketLost { number, space, trigger: by } => {
            pair("packet=", number);
            pair(" space=", space.into());
            rows.word(match by {
                LossTrigger::PacketThreshold => " by=packet_threshold",
                LossTrigger::TimeThreshold => " by=time_threshold",
            });
        }
        Event::TcpInfo { sacked, lost, retrans, total_retrans, delivered } => {
            pair("sacked=", sacked.into());
            pair(" lost=", lost.into());
            pair(" retrans=", retrans.into());
            pair(" total_retrans=", total_retrans.into());
            pair(" delivered=", delivered.into());
        }
    }
}

const fn waiting_name(waiting: SendLimit) -> &'static str {
    match waiting {
        SendLimit::CongestionWindow => "congestion_window",
        SendLimit::PeerWindow => "peer_window",
        SendLimit::Application => "application",
        SendLimit::SmallSegment => "small_segment",
        SendLimit::Handshake => "handshake",
        SendLimit::Done => "done",
        SendLimit::Pacing => "pacing",
    }
}
