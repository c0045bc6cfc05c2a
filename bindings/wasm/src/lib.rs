//! Ackclock in WebAssembly: the engine of the playground. Layer 13.
//!
//! The host writes a request as JSON into [`request_buffer`], calls [`answer_request`] and reads the
//! answer, JSON too, at [`answer_ptr`]. Requests are those of [`requests::Request`]. The bytes of
//! captures are pulled from the host in chunks (`ackclock.read`), so that a file of any size is
//! streamed. A panic is reported to the host (`ackclock.panicked`) and ends the instance.
//!
//! `digest_text` has the digests of `simtest::digests`: `digest.mjs` prints them.

pub mod controls;
pub mod files;
pub mod moments;
pub mod packets;
pub mod requests;
pub mod runs;

mod queues;
#[cfg(test)]
mod tests;

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use requests::Engine;

static TEXT: OnceLock<String> = OnceLock::new();
static SHARED: Mutex<Exchange> = Mutex::new(Exchange { request: Vec::new(), answer: Vec::new() });
static ENGINE: Mutex<Engine> = Mutex::new(Engine::new());

/// The bytes that host and module exchange.
struct Exchange {
    request: Vec<u8>,
    answer: Vec<u8>,
}

/// A lock of a module with one thread.
fn locked<T>(shared: &'static Mutex<T>) -> MutexGuard<'static, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

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

/// Address of `len` bytes into which the host writes the next request.
#[expect(unsafe_code, reason = "the host finds the function by its plain name")]
#[unsafe(no_mangle)]
pub extern "C" fn request_buffer(len: usize) -> *mut u8 {
    let mut shared = locked(&SHARED);
    shared.request = vec![0; len];
    shared.request.as_mut_ptr()
}

/// Answers the request in the buffer; returns the length of the answer in bytes.
#[expect(unsafe_code, reason = "the host finds the function by its plain name")]
#[unsafe(no_mangle)]
pub extern "C" fn answer_request() -> usize {
    files::report_panics();
    let request = core::mem::take(&mut locked(&SHARED).request);
    let answer = locked(&ENGINE).answer(&request, &files::open);
    let mut shared = locked(&SHARED);
    shared.answer = answer.into_bytes();
    shared.answer.len()
}

/// Address of the last answer as UTF-8 text.
#[expect(unsafe_code, reason = "the host finds the function by its plain name")]
#[unsafe(no_mangle)]
pub extern "C" fn answer_ptr() -> *const u8 {
    locked(&SHARED).answer.as_ptr()
}

/// Frees the last answer.
#[expect(unsafe_code, reason = "the host finds the function by its plain name")]
#[unsafe(no_mangle)]
pub extern "C" fn free_answer() {
    locked(&SHARED).answer = Vec::new();
}
