//! Any text is a scenario or rejected at positions in it, and its errors can be formatted.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| simtest::properties::scenario::check(text));
