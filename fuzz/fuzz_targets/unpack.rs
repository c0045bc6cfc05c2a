//! Any bytes are decompressed or rejected as corrupt; other data passes unchanged.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| simtest::properties::unpack::check(input));
