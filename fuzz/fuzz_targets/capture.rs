//! Any bytes are read; every frame and problem lies in the file; nothing is read twice or lost
//! without a report.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| simtest::properties::capture::check(input));
