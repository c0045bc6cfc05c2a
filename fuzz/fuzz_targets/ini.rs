//! Any text is read; every error is in the file; an import is a valid scenario.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| simtest::properties::ini::check(text));
