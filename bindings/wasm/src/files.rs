//! Files of the host, read in chunks.

use std::io::{self, Read};
use std::sync::Once;

/// Functions of the host. Without one, as in native tests, there are no files.
#[cfg(target_arch = "wasm32")]
mod host {
    #[link(wasm_import_module = "ackclock")]
    #[expect(unsafe_code, reason = "functions of the host")]
    unsafe extern "C" {
        /// Reads at most `len` next bytes of file number `file` to `to`; the number read, 0 at the end,
        /// -1 if the host cannot read it.
        fn read(file: u32, to: *mut u8, len: usize) -> isize;
        /// Receives the message of a panic.
        fn panicked(text: *const u8, len: usize);
    }

    pub(super) fn read_file(file: u32, to: &mut [u8]) -> isize {
        #[expect(unsafe_code, reason = "the host writes within `to`")]
        unsafe {
            read(file, to.as_mut_ptr(), to.len())
        }
    }

    pub(super) fn report(text: &str) {
        #[expect(unsafe_code, reason = "the host reads within `text`")]
        unsafe {
            panicked(text.as_ptr(), text.len());
        }
    }
}

#[cfg(not(target_arch = "wasm32"))]
mod host {
    pub(super) fn read_file(_: u32, _: &mut [u8]) -> isize {
        -1
    }

    pub(super) fn report(_: &str) {}
}

/// Bytes that are read at a time.
const CHUNK: usize = 1 << 18;

/// File number `number` of the request, from its beginning.
pub fn open(number: u32) -> Box<dyn Read> {
    Box::new(io::BufReader::with_capacity(CHUNK, HostFile(number)))
}

struct HostFile(u32);

impl Read for HostFile {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        usize::try_from(host::read_file(self.0, to))
            .map_err(|_| io::Error::other("the browser cannot read the file"))
    }
}

/// Reports panics to the host, which sees nothing of them otherwise.
pub(crate) fn report_panics() {
    static ONCE: Once = Once::new();
    if cfg!(target_arch = "wasm32") {
        ONCE.call_once(|| std::panic::set_hook(Box::new(|info| host::report(&info.to_string()))));
    }
}
