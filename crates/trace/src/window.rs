//! A buffered input with lookahead.

use std::io::{self, Read};

const SMALLEST_READ: usize = 4 * 1_024;
const LARGEST_READ: usize = 256 * 1_024;

/// The unread beginning of an input. The buffer is limited to the lookahead that a caller requests
/// and one read.
#[derive(Debug)]
pub(crate) struct Window<R> {
    input: R,
    buffer: Vec<u8>,
    /// Begin and end of the unread bytes in `buffer`.
    start: usize,
    end: usize,
    /// Offset of `start` in the input.
    offset: u64,
    ended: bool,
    /// The error that ended the input.
    error: Option<io::Error>,
}

impl<R: Read> Window<R> {
    pub(crate) const fn new(input: R) -> Self {
        Self { input, buffer: Vec::new(), start: 0, end: 0, offset: 0, ended: false, error: None }
    }

    /// Offset of the first unread byte in the input.
    pub(crate) const fn offset(&self) -> u64 {
        self.offset
    }

    /// The unread bytes in the buffer.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Consumes `bytes`, at most all in the buffer.
    #[inline]
    pub(crate) fn consume(&mut self, bytes: usize) {
        let bytes = bytes.min(self.end - self.start);
        self.start += bytes;
        self.offset += bytes as u64;
    }

    /// Takes the error that ended the input, once.
    pub(crate) const fn take_error(&mut self) -> Option<io::Error> {
        self.error.take()
    }

    /// Reads until `wanted` bytes are in the buffer, or the input ends; returns the number
    /// available, up to `wanted`. The buffer grows with the input, not with the request.
    #[inline]
    pub(crate) fn fill(&mut self, wanted: usize) -> usize {
        if self.end - self.start < wanted {
            self.read(wanted);
        }
        (self.end - self.start).min(wanted)
    }

    fn read(&mut self, wanted: usize) {
        while self.end - self.start < wanted && !self.ended {
            // Consumed bytes are removed once that moves fewer bytes than it frees.
            if self.start >= self.end - self.start {
                self.buffer.copy_within(self.start..self.end, 0);
                self.end -= self.start;
                self.start = 0;
            }
            if self.buffer.len() - self.end < SMALLEST_READ {
                let more = self.buffer.len().clamp(SMALLEST_READ, LARGEST_READ);
                self.buffer.resize(self.end + more, 0);
            }
            let read = loop {
                match self.input.read(&mut self.buffer[self.end..]) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    other => break other,
                }
            };
            match read {
                Ok(bytes) => {
                    self.end += bytes;
                    self.ended = bytes == 0;
                }
                Err(error) => {
                    self.ended = true;
                    self.error = Some(error);
                }
            }
        }
    }

    #[cfg(test)]
    pub(crate) const fn held(&self) -> usize {
        self.buffer.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns one byte at a time, then fails.
    struct Drops(u8);

    impl Read for Drops {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(1).ok_or_else(|| io::Error::other("no more"))?;
            to[0] = self.0;
            Ok(1)
        }
    }

    #[test]
    fn bytes_before_an_error_are_read_and_the_error_is_reported_once() {
        let mut window = Window::new(Drops(5));
        assert_eq!(window.fill(2), 2);
        assert_eq!(window.bytes()[..2], [4, 3]);
        window.consume(2);
        assert_eq!(window.fill(9), 3);
        assert_eq!((window.bytes(), window.offset()), (&[2, 1, 0][..], 2));
        window.consume(9);
        assert_eq!((window.fill(1), window.offset()), (0, 5));
        assert_eq!(window.take_error().unwrap().to_string(), "no more");
        assert!(window.take_error().is_none());
    }

    #[test]
    fn memory_is_bounded_however_long_the_input() {
        let mut window = Window::new(io::repeat(7).take(10_000_000));
        while window.fill(1_000) > 0 {
            window.consume(1_000);
            assert!(window.held() <= 2 * (1_000 + LARGEST_READ));
        }
        assert_eq!(window.offset(), 10_000_000);
    }
}
