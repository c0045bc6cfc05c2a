//! Any two files are read together or refused; every packet is in a connection, and what became of
//! it between two capture points adds up.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&[u8], &[u8])| simtest::properties::inputs::check(input));
