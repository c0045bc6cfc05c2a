//! Logs in the forms of real stacks: quiche, quic-go, aioquic, ngtcp2. See `golden/quic/README.md`.

use std::fs::File;
use std::path::Path;

use ackclock_ingest as ingest;
use diagnose::rules::Severity;
use ingest::diagnosis::{DiagnosisReport, QuicReport};
use ingest::inputs::InputFile;

fn diagnosed(name: &str, bytes: Box<dyn std::io::Read + Send>) -> QuicReport {
    let source = InputFile { name: name.to_owned(), bytes };
    let mut report = DiagnosisReport::read(vec![source], false).unwrap();
    assert_eq!(report.files[0].file.problems.count, 0, "{:?}", report.files[0].file.problems);
    report.files[0].quic.swap_remove(0)
}

fn golden(name: &str) -> QuicReport {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/quic").join(name);
    diagnosed(name, Box::new(File::open(path).unwrap()))
}

/// The first finding: its code, severity and cost in seconds.
fn first(report: &QuicReport) -> (&'static str, Severity, f64) {
    let found = &report.diagnosis.findings[0];
    (found.code, found.severity, found.cost.as_secs_f64())
}

fn has(report: &QuicReport, code: &str) -> bool {
    report.diagnosis.findings.iter().any(|found| found.code == code)
}

/// 1 % of loss over 10 Mbit/s and 60 ms: 2.8 Mbit/s.
#[test]
fn losses_of_aioquic_cost_seconds() {
    let report = golden("aioquic-loss.server.qlog.xz");
    let (code, _, cost) = first(&report);
    assert_eq!((code, report.diagnosis.primary), ("CC811", Some("CC811")));
    assert!((0.5..3.2).contains(&cost), "{cost}");
    assert!(!has(&report, "CC804"));
}

/// 1.5 % of loss over 15 Mbit/s and 30 ms; the log has no events of losses.
#[test]
fn losses_of_quiche_are_first() {
    let report = golden("quiche-loss.server.sqlog.xz");
    let analysis = &report.connection.analysis;
    assert!(analysis.stream_bytes >= 1_200_000, "{}", analysis.stream_bytes);
    assert!((20..=23).contains(&analysis.passed_over), "{}", analysis.passed_over);
    assert_eq!(analysis.episodes.len(), 19);
    let (code, _, cost) = first(&report);
    assert_eq!((code, report.diagnosis.primary), ("CC811", Some("CC811")));
    // Nothing shows the rate of the path, so it is an upper bound.
    assert!((1.0..3.5).contains(&cost), "{cost}");
    assert!(report.connection.analysis.bottleneck.is_none());
    assert!(!has(&report, "CC804") && !has(&report, "CC834"));
}

/// 25 kB every 100 ms over 20 Mbit/s.
#[test]
fn an_application_on_quiche_that_writes_slowly_is_an_error() {
    let report = golden("quiche-application.server.sqlog.xz");
    let bytes = report.connection.analysis.stream_bytes;
    assert!((600_000..640_000).contains(&bytes), "{bytes}");
    let (code, severity, _) = first(&report);
    assert_eq!((code, severity), ("CC831", Severity::Error));
    assert!(!has(&report, "CC804"));
}

/// A connection that sends data and is closed.
fn closed(event: &str, frame: &str) -> QuicReport {
    let header = r#"{"file_schema":"urn:ietf:params:qlog:file:sequential","serialization_format":"application/qlog+json-seq","trace":{"vantage_point":{"type":"server"}}}"#;
    let packet = |at: u64, name: &str, number: u64, frame: &str| {
        format!(
            r#"{{"time":{at},"name":"quic:{name}","data":{{"header":{{"packet_type":"1RTT","packet_number":{number}}},"raw":{{"length":1200}},"frames":[{frame}]}}}}"#
        )
    };
    let mut events = vec![header.to_owned()];
    events.push(
        r#"{"time":0,"name":"quic:connection_state_updated","data":{"new":"handshake_complete"}}"#
            .to_owned(),
    );
    let data = r#"{"frame_type":"stream","stream_id":0,"offset":0,"length":1000,"fin":true}"#;
    events.push(packet(1, "packet_sent", 1, data));
    events.push(packet(20, "packet_received", 1, r#"{"frame_type":"ack","acked_ranges":[[1,1]]}"#));
    if !frame.is_empty() {
        events.push(packet(30, "packet_received", 2, frame));
    }
    if !event.is_empty() {
        events
            .push(format!(r#"{{"time":31,"name":"transport:connection_closed","data":{event}}}"#));
    }
    let text: String = events.iter().map(|event| format!("\x1e{event}\n")).collect();
    diagnosed("closed.sqlog", Box::new(std::io::Cursor::new(text.into_bytes())))
}

/// Ends as quic-go, quiche, aioquic, ngtcp2 and the drafts write them.
#[test]
fn a_clean_close_is_no_finding_and_a_code_is_found_where_it_is() {
    for (event, frame) in [
        (
            r#"{"initiator":"remote","application_error":"unknown","error_code":0,"reason":""}"#,
            r#"{"frame_type":"connection_close","error_space":"application","error":"unknown","error_code":0,"reason":""}"#,
        ),
        (
            "",
            r#"{"frame_type":"connection_close","error_space":"application","error_code":0,"raw_error_code":0,"reason":""}"#,
        ),
        (
            "",
            r#"{"frame_type":"connection_close","error_space":"transport","error_code":"no_error"}"#,
        ),
        (
            r#"{"initiator":"local","application_error":"unknown","error_code":256}"#,
            r#"{"frame_type":"connection_close","error_space":"application","error_code":256}"#,
        ),
        (r#"{"owner":"remote","connection_code":0}"#, ""),
        (r#"{"owner":"remote","application_code":"h3_no_error"}"#, ""),
        (r#"{"trigger":"clean"}"#, ""),
    ] {
        let report = closed(event, frame);
        assert!(!has(&report, "CC804"), "{event} {frame}");
    }
    for (event, frame, text) in [
        (
            r#"{"initiator":"remote","application_error":"unknown","error_code":66}"#,
            "",
            "0x42 of the application",
        ),
        (
            r#"{"initiator":"remote","connection_error":"unknown","error_code":376}"#,
            "",
            "0x178 (TLS alert no_application_protocol)",
        ),
        (
            "",
            r#"{"frame_type":"connection_close","error_space":"transport","error_code":"protocol_violation"}"#,
            "PROTOCOL_VIOLATION",
        ),
        ("", r#"{"frame_type":"application_close","error_code":7}"#, "0x7 of the application"),
    ] {
        let report = closed(event, frame);
        let found = report.diagnosis.findings.iter().find(|found| found.code == "CC804");
        let title = &found.unwrap_or_else(|| panic!("{event} {frame}")).title;
        assert_eq!(title, &format!("the peer closed the connection with the error {text}"));
    }
}
