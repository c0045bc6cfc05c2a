//! Reads our qlog with an independent reader: the public crate `qlog`, whose types are those of the
//! drafts (0.18.2, a JSON text sequence) and of version 0.3 (0.15.2, one document).
//!
//!     cargo run --manifest-path tools/qlog-reader/Cargo.toml -- FILE...
//!
//! The crate silently omits what it does not know. So the events that it read are written again,
//! and every field of ours must be in the result. The program prints what the crate rejects or
//! loses, each kind once with its count.

use std::collections::BTreeMap;

use serde_json::{Error, Value, from_value, to_value};

/// What of `ours` is not in `theirs`, or is otherwise there.
fn lost(ours: &Value, theirs: &Value, place: &str, out: &mut Vec<String>) {
    match (ours, theirs) {
        (Value::Object(ours), Value::Object(theirs)) => {
            for (key, value) in ours {
                match theirs.get(key) {
                    Some(other) => lost(value, other, &format!("{place}/{key}"), out),
                    None => out.push(format!("{place}/{key} is lost")),
                }
            }
        }
        (Value::Array(ours), Value::Array(theirs)) if ours.len() == theirs.len() => {
            for (one, other) in ours.iter().zip(theirs) {
                lost(one, other, &format!("{place}/*"), out);
            }
        }
        (Value::Number(one), Value::Number(other)) => {
            // The older types have times of 32 bits.
            let (one, other) = (one.as_f64().unwrap_or(0.0), other.as_f64().unwrap_or(0.0));
            if (one - other).abs() > one.abs() * 1e-6 {
                out.push(format!("{place} is another number"));
            }
        }
        (one, other) if one != other => out.push(format!("{place}: {one} became {other}")),
        _ => {}
    }
}

/// Counts what becomes of a record.
fn note(name: &str, ours: &Value, theirs: Result<Value, Error>, kinds: &mut BTreeMap<String, u64>) {
    let mut found = Vec::new();
    match theirs {
        Ok(theirs) => lost(ours, &theirs, "", &mut found),
        Err(error) => found.push(format!("refused: {error}")),
    }
    for what in found {
        *kinds.entry(format!("{name} {what}")).or_default() += 1;
    }
}

fn read(file: &str) -> Result<(), Box<dyn std::error::Error>> {
    let text = std::fs::read_to_string(file)?;
    let mut kinds = BTreeMap::new();
    let mut count = 0;
    if text.starts_with('\x1e') {
        for (number, record) in text.split('\x1e').skip(1).enumerate() {
            let record: Value = serde_json::from_str(record)?;
            let theirs = match number {
                0 => from_value::<qlog_drafts::QlogSeq>(record.clone()).and_then(to_value),
                _ => from_value::<qlog_drafts::events::Event>(record.clone()).and_then(to_value),
            };
            note(record["name"].as_str().unwrap_or("header"), &record, theirs, &mut kinds);
            count += 1;
        }
    } else {
        let mut document: Value = serde_json::from_str(&text)?;
        let events = document["traces"][0]["events"].as_array_mut().map(std::mem::take);
        let theirs = from_value::<qlog_0_3::Qlog>(document.clone()).and_then(to_value);
        note("document", &document, theirs, &mut kinds);
        for event in events.unwrap_or_default() {
            let theirs = from_value::<qlog_0_3::events::Event>(event.clone()).and_then(to_value);
            note(event["name"].as_str().unwrap_or("event"), &event, theirs, &mut kinds);
            count += 1;
        }
    }
    println!("{file}: {count} records");
    for (what, times) in kinds {
        let what: String = what.chars().take(160).collect();
        println!("{times:8}  {what}");
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    std::env::args().skip(1).try_for_each(|file| read(&file))
}
