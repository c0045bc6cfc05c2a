//! Any text is read; every error is in the text; an import is a valid scenario.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| simtest::properties::tc_script::check(text));
