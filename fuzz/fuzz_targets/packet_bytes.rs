//! Any bytes are parsed or rejected; parsing and writing preserves the packet.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u8, &[u8])| simtest::properties::packet_bytes::check(input));
