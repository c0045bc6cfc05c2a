//! Many connections: the summary by server and cause, filters, orders and CSV.

use ackclock_ingest::diagnosis::{
    ConnectionFilter, ConnectionOrder, DiagnosisReport, FilterExpression, TextStyle,
};
use ackclock_ingest::inputs::InputFile;
use scenario::ReportStyle;

#[path = "../examples/many_connections.rs"]
mod many_connections;

fn report() -> DiagnosisReport {
    let mut capture = Vec::new();
    many_connections::write_capture(many_connections::CaptureKind::Mixed, 1_000, &mut capture)
        .unwrap();
    let source = InputFile { name: "many.pcap".to_owned(), bytes: Box::new(&capture[..]) };
    DiagnosisReport::read(vec![source], false).unwrap()
}

fn numbers(report: &DiagnosisReport) -> Vec<u32> {
    report.files[0].connections.iter().map(|one| one.number()).collect()
}

/// A SYN is answered after 3.02 s, the ACK of that arrives after 3.04 s, and a round trip of 20 ms
/// would have passed anyway.
#[test]
fn causes_are_grouped_by_server() {
    let report = report();
    let text = report.text(TextStyle { limit: 0, look: ReportStyle::Plain });
    for line in [
        "summary: 30 failed, 40 limited by a finding, 930 without one above a note\n",
        "  10 connections to 192.168.0.2:8080: CC001 connection refused, 20.0 ms each, 200 ms in all\n",
        "  10 connections to 192.168.0.3:443: CC002 handshake never completed, 3.00 s each, 30.0 s in all\n",
        "  10 connections to 192.168.0.4:443: CC003 connection reset\n",
        "  30 connections to 192.168.0.1:389: CC204 retransmission timeout or blackout, 3.02 s each, 90.6 s in all\n",
    ] {
        assert!(text.contains(line), "{line}{}", &text[..text.len().min(2_000)]);
    }
}

/// The numbers are those of Wireshark, whatever is shown.
#[test]
fn filters_and_orders_keep_the_numbers() {
    let mut refused = report();
    let filter = ConnectionFilter { codes: vec!["CC001"], ..ConnectionFilter::default() };
    assert_eq!(refused.retain(&filter), 10);
    refused.sort(ConnectionOrder::Flow);
    assert_eq!(numbers(&refused), (0..10).map(|n| 100 * n + 20).collect::<Vec<_>>());
    for (text, count) in [
        ("server = 192.168.0.1:389", 30),
        ("host = 192.168.0.5 and bytes > 100kB", 10),
        ("lost >= 2s", 40),
        ("port = 389 or code = CC003", 40),
        ("not port = 443", 40),
        ("client = 10.1.0.0", 64),
    ] {
        let expression = Some(FilterExpression::parse(text).unwrap());
        let filter = ConnectionFilter { expression, ..ConnectionFilter::default() };
        assert_eq!(report().retain(&filter), count, "{text}");
    }
    let mut largest = report();
    largest.sort(ConnectionOrder::Bytes);
    let first: Vec<_> = numbers(&largest)[..10].iter().map(|number| number % 100).collect();
    assert_eq!(first, [60; 10]);
}

#[test]
fn names_in_csv_are_no_formulas_on_request() {
    let mut report = report();
    report.files[0].file.name = "=cmd|x".to_owned();
    let rows = |is_safe| {
        let mut out = Vec::new();
        report.write_csv(&mut out, is_safe).unwrap();
        String::from_utf8(out).unwrap()
    };
    assert!(rows(false).lines().nth(1).unwrap().starts_with("=cmd|x,"));
    assert!(rows(true).lines().nth(1).unwrap().starts_with("'=cmd|x,"));
}

#[test]
fn csv_has_a_row_for_each_connection() {
    let mut out = Vec::new();
    report().write_csv(&mut out, false).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert_eq!(text.lines().count(), 1_001);
    assert!(text.starts_with("file,id,client,server,sender,bytes,"), "{}", &text[..200]);
    let row = text.lines().find(|line| line.starts_with("many.pcap,20,")).unwrap();
    assert!(
        row.contains(",192.168.0.2:8080,") && row.ends_with(",0.02,CC001,CC001,,,,,,"),
        "{row}"
    );
    // A request and its response in 20 ms, after a handshake of 20 ms.
    let row = text.lines().find(|line| line.starts_with("many.pcap,1,")).unwrap();
    assert!(row.contains(",1,0.0200"), "{row}");
}
