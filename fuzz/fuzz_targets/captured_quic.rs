//! Any datagrams are assigned to connections or counted; headers stay within their datagrams.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| simtest::properties::captured_quic::check(input));
