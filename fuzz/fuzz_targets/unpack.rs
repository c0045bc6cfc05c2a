//! Any bytes are unpacked or refused as damaged; what is not packed comes as it is.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| simtest::properties::unpack::check(input));
