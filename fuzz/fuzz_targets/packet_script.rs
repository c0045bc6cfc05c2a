//! Any text is a script or rejected at a position in it; any script terminates.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| simtest::properties::packet_script::check(text));
