//! Any text is read; every section is in the text; a scenario made of it is valid.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| simtest::properties::pasted::check(text));
