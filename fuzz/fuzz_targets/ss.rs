//! Any bytes are read; every problem lies in a line that is there.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| simtest::properties::ss::check(input));
