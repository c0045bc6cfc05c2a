//! Any bytes are read; every problem is on an existing line.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| simtest::properties::tcp_probe::check(input));
