//! Any two files are read together or rejected; every packet is in a connection, and the outcomes
//! of packets between two capture points add up.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&[u8], &[u8])| simtest::properties::inputs::check(input));
