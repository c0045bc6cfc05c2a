//! Which fields of the events of a log are read.
//!
//! The name of a field is that of the analysis, whatever a stack calls it: after a release that renames one it is absent.

use std::collections::BTreeSet;
use std::io::{BufReader, Read};

use diagnose::quic::record::{
    QuicFrame, QuicLimits, QuicLossTrigger, QuicMetrics, QuicPacketKind, QuicPacketRecord,
    QuicRecord,
};
use logs::qlog::{QlogData, QlogItem, QlogReader};
use trace::unpack::Unpacked;

use super::records::RecordBuffer;

/// The names of the fields that at least one event of a log has, in alphabetical order: `sent.length`,
/// `metrics.congestion_window`. `input` is the log, which may be compressed.
///
/// # Errors
/// Errors of reading, and the first damaged event.
pub fn quic_log_fields(input: impl Read) -> Result<BTreeSet<String>, String> {
    let mut fields = BTreeSet::new();
    let mut buffer = RecordBuffer::default();
    let input = Unpacked::new(input).map_err(|error| error.to_string())?;
    for item in QlogReader::lean(BufReader::new(input)) {
        match item.map_err(|error| error.to_string())? {
            QlogItem::Header(info) => {
                if info.trace.epoch.is_some() {
                    fields.insert("trace.epoch".to_owned());
                }
                if !info.trace.group_id.is_empty() {
                    fields.insert("trace.group".to_owned());
                }
            }
            QlogItem::Problem(problem) => return Err(problem.to_string()),
            QlogItem::Event(event) => {
                if let QlogData::MetricsUpdated(metrics) = &event.data
                    && metrics.packets_in_flight.is_some()
                {
                    fields.insert("metrics.packets_in_flight".to_owned());
                }
                each(&buffer.record(&event), |name| {
                    if !fields.contains(name) {
                        fields.insert(name.to_owned());
                    }
                });
            }
        }
    }
    Ok(fields)
}

/// Reports the fields of a record.
fn each(record: &QuicRecord<'_>, mut report: impl FnMut(&str)) {
    let mut present = |of: &str, fields: &[(&str, bool)]| {
        for (name, _) in fields.iter().filter(|(_, is_present)| *is_present) {
            report(&format!("{of}.{name}"));
        }
    };
    match record {
        QuicRecord::Sent(packet) => present("sent", &packet_fields(packet)),
        QuicRecord::Received(packet) => present("received", &packet_fields(packet)),
        QuicRecord::Lost { number, trigger, .. } => {
            let has_trigger = *trigger != QuicLossTrigger::Unknown;
            present("lost", &[("number", number.is_some()), ("trigger", has_trigger)]);
        }
        QuicRecord::Metrics(metrics) => present("metrics", &metric_fields(metrics)),
        QuicRecord::Parameters { remote, limits } => {
            let of = if *remote { "parameters.remote" } else { "parameters.local" };
            present(of, &limit_fields(limits));
        }
        QuicRecord::State { trigger, .. } => {
            present("state", &[("new", true), ("trigger", trigger.is_some())]);
        }
        QuicRecord::Constants { max_datagram_size, reordering_threshold } => present(
            "constants",
            &[
                ("max_datagram_size", max_datagram_size.is_some()),
                ("reordering_threshold", reordering_threshold.is_some()),
            ],
        ),
        QuicRecord::Closed { by_peer, .. } => present("closed", &[("by_peer", by_peer.is_some())]),
        QuicRecord::TimeoutExpired => report("timeout_expired"),
        QuicRecord::Ecn { .. } => report("ecn_state"),
        QuicRecord::Mtu(_) => report("mtu"),
        QuicRecord::HandshakeComplete => report("handshake_complete"),
        QuicRecord::SpuriousLoss => report("spurious_loss"),
        QuicRecord::Other => {}
    }
}

fn packet_fields(packet: &QuicPacketRecord<'_>) -> [(&'static str, bool); 14] {
    let has = |is: fn(&QuicFrame) -> bool| packet.frames.iter().any(is);
    [
        ("initial", packet.kind == QuicPacketKind::Initial),
        ("handshake", packet.kind == QuicPacketKind::Handshake),
        ("number", packet.number.is_some()),
        ("length", packet.bytes.is_some_and(|bytes| bytes > 0)),
        ("acked_ranges", !packet.acked.is_empty()),
        ("ack_delay", packet.ack_delay.is_some()),
        ("ce", packet.ce.is_some()),
        ("close", packet.close.is_some()),
        ("stream", has(|frame| matches!(frame, QuicFrame::Stream { length: 1.., .. }))),
        ("stream.offset", has(|frame| matches!(frame, QuicFrame::Stream { offset: 1.., .. }))),
        ("crypto", has(|frame| matches!(frame, QuicFrame::Crypto { length: 1.., .. }))),
        ("max_data", has(|frame| matches!(frame, QuicFrame::MaxData(1..)))),
        (
            "max_stream_data",
            has(|frame| matches!(frame, QuicFrame::MaxStreamData { limit: 1.., .. })),
        ),
        ("handshake_done", has(|frame| matches!(frame, QuicFrame::HandshakeDone))),
    ]
}

const fn metric_fields(metrics: &QuicMetrics) -> [(&'static str, bool); 9] {
    [
        ("min_rtt", metrics.min_rtt.is_some()),
        ("smoothed_rtt", metrics.smoothed_rtt.is_some()),
        ("latest_rtt", metrics.latest_rtt.is_some()),
        ("rtt_variance", metrics.rtt_variance.is_some()),
        ("pto_count", metrics.pto_count.is_some()),
        ("congestion_window", metrics.congestion_window.is_some()),
        ("bytes_in_flight", metrics.bytes_in_flight.is_some()),
        ("ssthresh", metrics.ssthresh.is_some()),
        ("pacing_rate", metrics.pacing_rate.is_some()),
    ]
}

const fn limit_fields(limits: &QuicLimits) -> [(&'static str, bool); 5] {
    [
        ("max_data", limits.max_data.is_some()),
        ("bidi_local", limits.bidi_local.is_some()),
        ("bidi_remote", limits.bidi_remote.is_some()),
        ("uni", limits.uni.is_some()),
        ("max_ack_delay", limits.max_ack_delay.is_some()),
    ]
}
