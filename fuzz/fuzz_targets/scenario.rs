//! Any text is a scenario or refused at places in it, and what its mistakes are said to be can be
//! shown.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| simtest::properties::scenario::check(text));
