//! Packets of QUIC are decrypted with a key log or counted, whatever the order of the secrets.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| simtest::properties::keyed_capture::check(input));
