//! Any bytes can be read; every problem is at a position in the file; a copy written in either
//! format reads the same.

use logs::qlog::{QlogEvent, QlogFormat, QlogItem, QlogReader, QlogWriter, Trace};

/// Events and problems.
fn read(log: &[u8]) -> (Vec<QlogEvent>, u64) {
    let mut reader = QlogReader::new(log);
    let (mut events, mut problems) = (Vec::new(), 0);
    for item in reader.by_ref() {
        match item.expect("bytes in memory are read") {
            QlogItem::Header(_) => {}
            QlogItem::Event(event) => events.push(event),
            QlogItem::Problem(problem) => {
                assert!(problem.offset <= log.len() as u64, "{problem}");
                problems += 1;
            }
        }
    }
    assert_eq!((reader.loss().events, reader.loss().problems), (events.len() as u64, problems));
    assert!(reader.loss().skipped_bytes <= log.len() as u64);
    (events, problems)
}

/// Milliseconds as a 64-bit float distinguish nanoseconds below this.
const EXACT: u64 = 1 << 50;

/// Returns whether its times can be written exactly.
fn keeps_times(event: &QlogEvent) -> bool {
    // Times in its data depend on how the data would be written.
    fn small(value: &serde_json::Value) -> bool {
        match value {
            serde_json::Value::Number(number) => {
                number.as_f64().is_none_or(|number| number.abs() * 1e6 < EXACT as f64)
                    || number.is_u64()
            }
            serde_json::Value::Array(list) => list.iter().all(small),
            serde_json::Value::Object(map) => map.values().all(small),
            _ => true,
        }
    }
    event.at.as_nanos() < EXACT && small(&event.fields().into())
}

/// The lean reader has the events of the complete one, if that reports no problem.
fn check_lean(log: &[u8], events: &[QlogEvent], problems: u64) {
    let mut lean = QlogReader::lean(log);
    let times = lean.by_ref().filter_map(|item| match item.expect("bytes in memory are read") {
        QlogItem::Event(event) => Some((event.at, event.name().to_owned())),
        _ => None,
    });
    let times: Vec<_> = times.collect();
    let expected: Vec<_> = events.iter().map(|event| (event.at, event.name().to_owned())).collect();
    // What the lean reader skips may be what the complete one rejects.
    if problems == 0 {
        assert_eq!(times, expected);
        assert_eq!(lean.loss().problems, 0);
    }
}

/// Checks `input`.
///
/// # Panics
/// If a property does not hold.
pub fn check(input: &[u8]) {
    let (events, problems) = read(input);
    check_lean(input, &events, problems);
    let events: Vec<QlogEvent> = events.into_iter().filter(keeps_times).collect();
    for form in [QlogFormat::Current, QlogFormat::Qvis] {
        let mut writer = QlogWriter::new(Vec::new(), &Trace::default(), form).expect("memory");
        for event in &events {
            writer.event(event).expect("memory");
        }
        let log = writer.finish().expect("memory");
        let (repeated, problems) = read(&log);
        assert_eq!(repeated, events, "{form:?}");
        // Only frames unknown to the model may still be invalid.
        let _ = problems;
    }
}
