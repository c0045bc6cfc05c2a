//! Any text is read; every mistake lies in the file; what is imported is a scenario.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| simtest::properties::ini::check(text));
