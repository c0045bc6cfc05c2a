//! Tests of the analysis of a qlog.

use diagnose::quic::QuicLimiter;
use diagnose::quic::record::QuicLossTrigger;

use super::*;

/// A log in the format of the drafts, one record per line after its separator.
fn log(events: &[&str]) -> Vec<u8> {
    let header = r#"{"file_schema":"urn:ietf:params:qlog:file:sequential",
        "serialization_format":"application/qlog+json-seq","trace":{"title":"a transfer",
        "common_fields":{"group_id":"c0ffee"},"vantage_point":{"type":"client"}}}"#;
    let mut text = Vec::new();
    for record in core::iter::once(&header).chain(events) {
        text.extend([0x1e]);
        text.extend(record.replace('\n', " ").bytes());
        text.push(b'\n');
    }
    text
}

fn sent(at: u64, number: u64, offset: u64) -> String {
    format!(
        r#"{{"time":{at},"name":"quic:packet_sent","data":{{"header":{{"packet_type":"1RTT",
        "packet_number":{number}}},"raw":{{"length":1200}},
        "frames":[{{"frame_type":"stream","stream_id":0,"offset":{offset},"length":1000}}]}}}}"#
    )
}

fn metrics(at: u64, window: u64, in_flight: u64) -> String {
    format!(
        r#"{{"time":{at},"name":"quic:recovery_metrics_updated","data":{{"min_rtt":20,
        "smoothed_rtt":22,"latest_rtt":{},"congestion_window":{window},
        "bytes_in_flight":{in_flight}}}}}"#,
        20 + at / 10
    )
}

#[test]
fn rtts_windows_losses_and_times_are_taken_from_the_log() {
    let ack = r#"{"time":130,"name":"quic:packet_received","data":{"header":{"packet_type":"1RTT",
        "packet_number":9},"frames":[{"frame_type":"ack","acked_ranges":[[2,3]]}]}}"#;
    let lost = |number: u64| {
        format!(
            r#"{{"time":100,"name":"quic:packet_lost","data":{{"header":{{"packet_type":"1RTT",
            "packet_number":{number}}},"trigger":"reordering_threshold"}}}}"#
        )
    };
    let state = |at: u64, new: &str| {
        format!(
            r#"{{"time":{at},"name":"quic:congestion_state_updated","data":{{"new":"{new}"}}}}"#
        )
    };
    let events = [
        metrics(0, 12_000, 0),
        sent(10, 1, 0),
        metrics(10, 12_000, 12_000),
        // Full for 50 ms.
        metrics(60, 24_000, 3_000),
        sent(60, 2, 1_000),
        // The window is open for 40 ms; then two losses, one of them spurious.
        lost(1),
        lost(2),
        state(100, "recovery"),
        metrics(100, 12_000, 12_000),
        ack.to_owned(),
        state(160, "congestion_avoidance"),
        // The window is full, and the bytes of the first packet are retransmitted.
        sent(160, 4, 0),
        metrics(190, 13_000, 0),
    ];
    let events: Vec<&str> = events.iter().map(String::as_str).collect();
    let file = log(&events);
    let reading = read_bytes(&file);
    assert_eq!(
        (reading.files[0].kind, &reading.files[0].problems),
        (InputKind::Qlog, &Problems::default())
    );
    let [quic] = &reading.quic[..] else { panic!("{:?}", reading.quic) };
    assert_eq!((&*quic.title, &*quic.group), ("a transfer", "c0ffee"));
    let quic = &quic.analysis;
    assert_eq!((quic.sent, quic.sent_bytes, quic.stream_bytes), (3, 3_600, 2_000));
    assert_eq!((quic.received, quic.acks), (1, 1));
    assert_eq!(quic.lost.get(&QuicLossTrigger::Packets), Some(&2));
    assert_eq!(quic.spurious, 1);
    let millis = |ms: u64| ms * 1_000_000;
    // The sample of 22 ms at 60 ms is the third; the last is 39 ms.
    let trips = quic.round_trips.unwrap();
    assert_eq!([trips[0], trips[1]], [millis(20), millis(22)]);
    assert_eq!(quic.windows, Some([12_000, 24_000, 13_000]));
    assert_eq!(quic.max_in_flight, Some(12_000));
    let whole = millis(190);
    assert_eq!(quic.budget.whole(), whole);
    assert_eq!(quic.budget.of(QuicLimiter::Handshake).ns, millis(10));
    assert_eq!(quic.missing, ["the peer's flow control"]);
}

#[test]
fn missing_information_is_reported() {
    let file = log(&[&sent(10, 1, 0), &sent(30, 2, 1_000)]);
    let reading = read_bytes(&file);
    let quic = &reading.quic[0].analysis;
    assert!(quic.windows.is_none());
    for lack in ["round trips", "the congestion window"] {
        assert!(quic.missing.contains(&lack), "{:?}", quic.missing);
    }
    assert!(refused(b"{}").starts_with("a: no packet or record found, taken for qlog"));
}

#[test]
fn a_sample_of_our_own_is_read() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/samples/upload.sqlog");
    let bytes = std::fs::read(path).unwrap();
    let reading = read_bytes(&bytes);
    let quic = &reading.quic[0].analysis;
    assert!(quic.sent > 0 && quic.windows.is_some(), "{quic:?}");
    assert_eq!(quic.budget.whole(), quic.last - quic.first);
}

/// A session of a NetLog: a packet with data, its loss, its retransmission and an ACK of both.
#[test]
fn sessions_of_a_netlog_are_connections() {
    let constants = r#"{"constants":{"clientInfo":{},"logEventTypes":{"QUIC_SESSION":1,
        "QUIC_SESSION_PACKET_SENT":2,"QUIC_SESSION_STREAM_FRAME_SENT":3,
        "QUIC_SESSION_PACKET_RECEIVED":4,"QUIC_SESSION_UNAUTHENTICATED_PACKET_HEADER_RECEIVED":5,
        "QUIC_SESSION_ACK_FRAME_RECEIVED":6,"QUIC_SESSION_PACKET_LOST":7,"URL_REQUEST":8,
        "QUIC_SESSION_WINDOW_UPDATE_FRAME_RECEIVED":9,"QUIC_SESSION_CLOSED":10}},"events": ["#;
    let event = |time: u64, kind: u64, params: &str| {
        format!(
            r#"{{"params":{params},"phase":0,"source":{{"id":7,"type":10}},"time":"{time}","type":{kind}}}"#
        )
    };
    let sent = |time: u64, number: u64| {
        let stream = event(time, 3, r#"{"fin":false,"length":1000,"offset":0,"stream_id":0}"#);
        let packet = format!(
            r#"{{"encryption_level":"ENCRYPTION_FORWARD_SECURE","packet_number":{number},"size":1030}}"#
        );
        format!("{stream},{}", event(time, 2, &packet))
    };
    let events = [
        event(100, 1, r#"{"host":"example.org","connection_id":"c0ffee"}"#),
        event(100, 8, r#"{"url":"https://example.org/"}"#),
        sent(100, 1),
        sent(100, 2),
        event(150, 4, r#"{"size":40}"#),
        event(150, 5, r#"{"packet_number":1,"long_header_type":"INVALID_PACKET_TYPE"}"#),
        event(
            150,
            6,
            r#"{"largest_observed":2,"smallest_observed":1,"missing_packets":[1],"delta_time_largest_observed_us":500}"#,
        ),
        event(150, 9, r#"{"stream_id":-1,"byte_offset":5000}"#),
        event(151, 7, r#"{"packet_number":1,"transmission_type":"LOSS_RETRANSMISSION"}"#),
        event(160, 4, r#"{"size":40}"#),
        event(160, 6, r#"{"largest_observed":2,"smallest_observed":1,"missing_packets":[]}"#),
        event(170, 10, r#"{"quic_error":67,"from_peer":true,"details":"too bad"}"#),
    ];
    let whole = format!("{constants}{}]}}", events.join(",\n"));
    let reading = read_bytes(whole.as_bytes());
    assert_eq!(reading.files[0].kind, InputKind::NetLog);
    let [session] = &reading.quic[..] else { panic!("{:?}", reading.quic) };
    assert_eq!((&*session.title, &*session.group), ("example.org", "c0ffee"));
    let quic = &session.analysis;
    assert_eq!((quic.sent, quic.received, quic.stream_bytes), (2, 2, 1_000));
    assert_eq!((quic.all_lost(), quic.spurious), (1, 1));
    assert_eq!(quic.round_trips.unwrap()[0], 50_000_000);
    assert_eq!(quic.ack_delays.max, 500_000);
    assert_eq!(quic.close.as_ref().unwrap().reason, "too bad");
    // A browser that did not exit leaves the file without its end.
    let cut = format!("{constants}{}", events[..9].join(",\n"));
    let reading = read_bytes(cut.as_bytes());
    assert_eq!(reading.quic[0].analysis.sent, 2);
    let problem = &reading.files[0].problems.first[0];
    assert!(problem.starts_with("event 12: EOF") && problem.contains("line "), "{problem}");
    let none = format!("{constants}]}}");
    assert!(refused(none.as_bytes()).contains("it has no QUIC session"));
}

/// Names of the event types of a NetLog, and one event of source 7.
const NETLOG_TYPES: &str = r#"{"QUIC_SESSION_PACKET_SENT":2,"QUIC_SESSION_STREAM_FRAME_SENT":3,
    "QUIC_SESSION_PACKET_RECEIVED":4,"QUIC_SESSION_UNAUTHENTICATED_PACKET_HEADER_RECEIVED":5,
    "QUIC_SESSION_ACK_FRAME_RECEIVED":6,"QUIC_SESSION_PACKET_LOST":7,
    "QUIC_SESSION_CRYPTO_HANDSHAKE_MESSAGE_SENT":8,"QUIC_SESSION_STREAM_FRAME_RECEIVED":9,
    "QUIC_SESSION_CRYPTO_HANDSHAKE_MESSAGE_RECEIVED":11}"#;

fn netlog_event(time: u64, kind: u64, params: &str) -> String {
    format!(
        r#"{{"params":{params},"phase":0,"source":{{"id":7,"type":10}},"time":"{time}","type":{kind}}}"#
    )
}

fn netlog_sent(time: u64, number: u64, level: &str, stream: u64) -> String {
    let frame = format!(r#"{{"fin":false,"length":1000,"offset":0,"stream_id":{stream}}}"#);
    let packet = format!(
        r#"{{"encryption_level":"ENCRYPTION_{level}","packet_number":{number},"size":1030}}"#
    );
    format!("{},{}", netlog_event(time, 3, &frame), netlog_event(time, 2, &packet))
}

fn netlog_received(time: u64, number: u64) -> String {
    let header = format!(r#"{{"packet_number":{number},"header_format":"GOOGLE_QUIC_PACKET"}}"#);
    format!(r#"{},{}"#, netlog_event(time, 4, r#"{"size":40}"#), netlog_event(time, 5, &header))
}

/// Tools that rewrite a NetLog put the names of the event types last.
#[test]
fn a_netlog_may_have_its_constants_last() {
    let events =
        [netlog_sent(100, 1, "FORWARD_SECURE", 0), netlog_sent(101, 2, "FORWARD_SECURE", 0)];
    let events = events.join(",");
    let last = format!(
        r#"{{"timeTickOffset":5,"events":[{events}],"constants":{{"logEventTypes":{NETLOG_TYPES}}}}}"#
    );
    let reading = read_bytes(last.as_bytes());
    assert_eq!(reading.files[0].kind, InputKind::NetLog);
    assert_eq!(reading.quic[0].analysis.sent, 2);
    // As with the names first, down to the events' numbers.
    let first =
        format!(r#"{{"constants":{{"logEventTypes":{NETLOG_TYPES}}},"events":[{events}]}}"#);
    assert_eq!(read_bytes(first.as_bytes()).quic[0].analysis, reading.quic[0].analysis);
    let none = format!(r#"{{"timeTickOffset":5,"events":[{events}]}}"#);
    assert!(refused(none.as_bytes()).contains("it has no QUIC session"));
}

/// Older logs list the missing packets of an ACK from its smallest one, which they do not have: a lost
/// packet that is no longer listed has not arrived.
#[test]
fn a_lost_packet_that_an_ack_no_longer_lists_has_not_arrived() {
    let lost = |time, number: u64| {
        netlog_event(time, 7, &format!(r#"{{"packet_number":{number},"transmission_type":"X"}}"#))
    };
    let ack = |time, largest: u64, missing: &str| {
        let frame = format!(r#"{{"largest_observed":{largest},"missing_packets":[{missing}]}}"#);
        format!("{},{}", netlog_event(time, 4, r#"{"size":40}"#), netlog_event(time, 6, &frame))
    };
    let mut events: Vec<String> =
        (1..=8).map(|number| netlog_sent(100, number, "FORWARD_SECURE", 0)).collect();
    events.extend([
        ack(150, 5, "2,3"),
        lost(151, 2),
        lost(151, 3),
        // Packet 3 is above the smallest, so it arrived; packet 2 may have been left out.
        ack(160, 8, ""),
        netlog_sent(161, 9, "FORWARD_SECURE", 0),
        ack(170, 9, ""),
    ]);
    let log = format!(
        r#"{{"constants":{{"logEventTypes":{NETLOG_TYPES}}},"events":[{}]}}"#,
        events.join(",")
    );
    let analysis = &read_bytes(log.as_bytes()).quic[0].analysis;
    assert_eq!((analysis.all_lost(), analysis.spurious), (2, 0));
    // With one of them still missing, the other one has arrived.
    let log = log.replace(
        r#""largest_observed":8,"missing_packets":[]"#,
        r#""largest_observed":8,"missing_packets":[2]"#,
    );
    let analysis = &read_bytes(log.as_bytes()).quic[0].analysis;
    assert_eq!((analysis.all_lost(), analysis.spurious), (2, 1));
}

/// A server of Google's QUIC sends its REJ three times, and its first packet is one received.
#[test]
fn the_handshake_of_googles_quic_is_on_stream_1() {
    let message = |time, kind, text: &str| {
        netlog_event(time, kind, &format!(r#"{{"quic_crypto_handshake_message":"{text}<\n >"}}"#))
    };
    let events = [
        netlog_received(100, 1),
        netlog_event(100, 9, r#"{"fin":false,"length":1000,"offset":0,"stream_id":1}"#),
        message(100, 11, "CHLO"),
        message(100, 8, "REJ "),
        netlog_sent(100, 1, "INITIAL", 1),
        netlog_sent(300, 2, "INITIAL", 1),
        netlog_sent(700, 3, "INITIAL", 1),
        netlog_received(900, 2),
        message(900, 11, "CHLO"),
        message(900, 8, "SHLO"),
        netlog_received(1_000, 3),
        netlog_sent(1_000, 4, "FORWARD_SECURE", 5),
    ];
    let log = format!(
        r#"{{"constants":{{"logEventTypes":{NETLOG_TYPES}}},"events":[{}]}}"#,
        events.join(",")
    );
    let reading = read_bytes(log.as_bytes());
    assert_eq!(reading.quic[0].vantage, ::logs::qlog::Vantage::Server);
    let analysis = &reading.quic[0].analysis;
    assert_eq!(analysis.client, Some(false));
    assert_eq!((analysis.stream_bytes, analysis.arrivals.stream_bytes), (1_000, 0));
    assert_eq!(analysis.handshake.duration(), Some(900_000_000));
    assert_eq!(analysis.handshake.repeated, 2_000);
    // It may send more than three times what it received.
    assert_eq!(analysis.handshake.amplification.ns, 0);
}
