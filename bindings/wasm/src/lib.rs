//! Ackclock in WebAssembly. Layer 8.
//!
//! It exports the digests of `simtest::digests`, so that a run in a browser or under Node can be
//! compared with a native one (`digest.mjs`).

use std::sync::OnceLock;

static TEXT: OnceLock<String> = OnceLock::new();

fn text() -> &'static str {
    TEXT.get_or_init(|| match simtest::digests::lines() {
        Ok(lines) => lines.iter().map(|line| format!("{line}\n")).collect(),
        Err(error) => error,
    })
}

/// Address of the digests as UTF-8 text in the module's memory.
#[expect(unsafe_code, reason = "the host finds the function by its plain name")]
#[unsafe(no_mangle)]
pub extern "C" fn digest_text() -> *const u8 {
    text().as_ptr()
}

/// Length of the text in bytes.
#[expect(unsafe_code, reason = "the host finds the function by its plain name")]
#[unsafe(no_mangle)]
pub extern "C" fn digest_len() -> usize {
    text().len()
}
