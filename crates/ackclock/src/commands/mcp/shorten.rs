//! Answers of bounded length: long lists of a JSON text are cut.

use serde_json::{Value as Json, json};

/// Entries that lists keep, tried in this order.
const KEPT: [usize; 5] = [200, 50, 20, 8, 3];

/// `text` in at most `limit` bytes: compact, and with cut lists if that is not enough; `None` if even
/// that is too long, or if it is no JSON.
pub(super) fn shorten(text: &str, limit: usize) -> Option<String> {
    if text.len() <= limit {
        return Some(text.to_owned());
    }
    let whole: Json = serde_json::from_str(text).ok()?;
    let compact = whole.to_string();
    if compact.len() <= limit {
        return Some(compact);
    }
    KEPT.into_iter().find_map(|kept| {
        let mut value = whole.clone();
        cut(&mut value, kept);
        let note = format!(
            "lists have their first {kept} entries; ask for one connection (flow), or a lower limit"
        );
        let text = match value {
            Json::Object(mut fields) => {
                fields.insert("shortened".to_owned(), json!(note));
                Json::Object(fields).to_string()
            }
            other => json!({ "shortened": note, "result": other }).to_string(),
        };
        (text.len() <= limit).then_some(text)
    })
}

fn cut(value: &mut Json, kept: usize) {
    match value {
        Json::Array(entries) => {
            let more = entries.len().saturating_sub(kept);
            entries.truncate(kept);
            entries.iter_mut().for_each(|entry| cut(entry, kept));
            if more > 0 {
                entries.push(json!(format!("... {more} more")));
            }
        }
        Json::Object(fields) => fields.values_mut().for_each(|field| cut(field, kept)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_are_cut() {
        let text = json!({ "a": vec![1234; 300], "b": { "c": "x" } }).to_string();
        assert_eq!(shorten(&text, 10_000).unwrap(), text);
        let short: Json = serde_json::from_str(&shorten(&text, 500).unwrap()).unwrap();
        assert_eq!(short["a"].as_array().unwrap().len(), 51);
        assert_eq!(short["a"][50], "... 250 more");
        assert_eq!(short["b"]["c"], "x");
        assert!(short["shortened"].as_str().unwrap().contains("first 50"));
        assert_eq!(shorten(&text, 20), None);
        assert_eq!(shorten("no JSON", 3), None);
    }
}
