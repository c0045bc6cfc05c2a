//! Any bytes are read; every problem lies in the file; what was read and is written in either form
//! reads the same again.

use logs::qlog::{Event, Form, Item, Reader, Trace, Writer};

/// Events and problems.
fn read(log: &[u8]) -> (Vec<Event>, u64) {
    let mut reader = Reader::new(log);
    let (mut events, mut problems) = (Vec::new(), 0);
    for item in reader.by_ref() {
        match item.expect("bytes in memory are read") {
            Item::Header(_) => {}
            Item::Event(event) => events.push(event),
            Item::Problem(problem) => {
                assert!(problem.offset <= log.len() as u64, "{problem}");
                problems += 1;
            }
        }
    }
    assert_eq!((reader.loss().events, reader.loss().problems), (events.len() as u64, problems));
    assert!(reader.loss().skipped_bytes <= log.len() as u64);
    (events, problems)
}

/// Milliseconds as a number of 64 bits tell nanoseconds apart below this.
const EXACT: u64 = 1 << 50;

/// Are its times such that they can be written as they are?
fn keeps_times(event: &Event) -> bool {
    // Times of its data are found in what would be written of it.
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

/// Reads `input`.
///
/// # Panics
/// If a claim does not hold.
pub fn check(input: &[u8]) {
    let (events, _) = read(input);
    let events: Vec<Event> = events.into_iter().filter(keeps_times).collect();
    for form in [Form::Current, Form::Qvis] {
        let mut writer = Writer::new(Vec::new(), &Trace::default(), form).expect("memory");
        for event in &events {
            writer.event(event).expect("memory");
        }
        let log = writer.finish().expect("memory");
        let (again, problems) = read(&log);
        assert_eq!(again, events, "{form:?}");
        // Only frames that are none of the model's may still be wrong.
        let _ = problems;
    }
}
