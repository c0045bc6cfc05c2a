//! Any bytes are read or refused; what was read and can be written reads the same again.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u8, &[u8])| simtest::properties::packet_bytes::check(input));
