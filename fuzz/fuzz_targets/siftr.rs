//! Any bytes are read; every problem lies in the file; what was read and can be written reads the
//! same again.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| simtest::properties::siftr::check(input));
