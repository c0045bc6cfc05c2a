//! Any text is read or rejected, and an error points into the text.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| simtest::properties::tcpdump_text::check(text));
