//! Any bytes are read; every frame and problem is in the file; no byte is read twice or skipped
//! without a report.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| simtest::properties::capture::check(input));
