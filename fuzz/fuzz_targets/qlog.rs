//! Any bytes are read; every problem is in the file; reading and writing in either form preserves
//! the data.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| simtest::properties::qlog::check(input));
