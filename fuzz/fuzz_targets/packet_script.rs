//! Any text is a script or refused at a place in it; any script runs to an end.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| simtest::properties::packet_script::check(text));
