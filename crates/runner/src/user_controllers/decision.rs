//! What a hook returned: nothing, a window in bytes, or a dictionary.

use cc::external::CcDecision;
use serde_json::Value;
use units::{Bytes, Rate};

/// The largest TCP window (RFC 7323).
const MAX_WINDOW: f64 = (1_u32 << 30) as f64;

/// Reads the value; segments carry `mss` bytes.
///
/// # Errors
/// It is none of a decision; the text says what was expected.
pub(super) fn read(value: &Value, mss: u32) -> Result<CcDecision, String> {
    let mut decision = CcDecision::default();
    match value {
        Value::Null => {}
        Value::Object(table) => {
            for (key, value) in table.iter().filter(|(_, value)| !value.is_null()) {
                match key.as_str() {
                    "cwnd_bytes" => decision.window = Some(window(key, value, mss)?),
                    "ssthresh_bytes" => decision.ssthresh = Some(window(key, value, mss)?),
                    "pacing_bps" => decision.pacing = Some(rate(key, value)?),
                    _ => {
                        let expected = "\"cwnd_bytes\", \"ssthresh_bytes\" or \"pacing_bps\"";
                        return Err(format!("returned {key:?}, expected {expected}"));
                    }
                }
            }
        }
        _ => decision.window = Some(window("returned", value, mss)?),
    }
    Ok(decision)
}

fn window(key: &str, value: &Value, mss: u32) -> Result<Bytes, String> {
    match value.as_f64() {
        Some(bytes) if (f64::from(mss)..=MAX_WINDOW).contains(&bytes) => Ok(Bytes(bytes as u64)),
        _ => Err(format!("{key}: expected {mss} (a segment) to {MAX_WINDOW} bytes, found {value}")),
    }
}

fn rate(key: &str, value: &Value) -> Result<Rate, String> {
    let bits = value.as_f64().filter(|rate| (1.0..1e14).contains(rate));
    let rate = bits.and_then(|bits| Rate::from_bits_per_second(bits as u64));
    rate.ok_or_else(|| format!("{key}: expected a rate in bit/s, found {value}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_decision_is_nothing_a_window_or_a_table() {
        assert_eq!(read(&Value::Null, 1_448), Ok(CcDecision::default()));
        assert_eq!(read(&json!(14_480.5), 1_448).unwrap().window, Some(Bytes(14_480)));
        let table = json!({ "cwnd_bytes": 14_480, "pacing_bps": 1e6, "ssthresh_bytes": null });
        let decision = read(&table, 1_448).unwrap();
        assert_eq!((decision.window, decision.ssthresh), (Some(Bytes(14_480)), None));
        assert!(decision.pacing.is_some());
    }

    #[test]
    fn other_values_are_refused_with_what_is_expected() {
        let error = |value| read(&value, 1_448).unwrap_err();
        assert!(error(json!(10)).contains("1448 (a segment)"));
        assert!(error(json!("much")).contains("found \"much\""));
        assert!(error(json!({ "cwnd": 14_480 })).contains("expected \"cwnd_bytes\""));
        assert!(error(json!({ "pacing_bps": 0 })).contains("bit/s"));
    }
}
