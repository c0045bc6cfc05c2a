//! Any text is parsed or rejected, and an error points into the text.

use trace::tcpdump::read;

/// Checks `text`.
///
/// # Panics
/// If a property does not hold.
pub fn check(text: &str) {
    match read(text) {
        Ok(packets) => {
            assert!(!packets.is_empty());
            assert!(packets.is_sorted_by_key(|packet| packet.line));
        }
        Err(error) => {
            let line = text.split('\n').nth(error.line - 1).expect("the line is there");
            assert!(error.column <= line.chars().count() + 1, "{error}");
        }
    }
}
