//! Standard input of a live capture, which a signal ends.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use crate::interrupt;

/// Bytes that are read at a time.
const CHUNK: usize = 64 * 1_024;
/// Time between two looks at the signal.
const POLL: Duration = Duration::from_millis(100);
/// Chunks, or polls without one, that are read after a signal. Ctrl-C ends tcpdump, too, which first
/// writes what it has captured.
const LAST_READS: u32 = 20;

/// Reads standard input in a thread of its own, as a signal interrupts no read.
pub(super) struct LiveInput {
    chunks: Receiver<io::Result<Vec<u8>>>,
    chunk: io::Cursor<Vec<u8>>,
    /// Standard output is closed.
    closed: Arc<AtomicBool>,
    reads_left: u32,
}

impl LiveInput {
    /// Standard input until its end, a signal, or until `closed` is set.
    ///
    /// # Errors
    /// There is no thread to be had.
    pub(super) fn new(closed: Arc<AtomicBool>) -> io::Result<Self> {
        let (sender, chunks) = sync_channel(4);
        thread::Builder::new().name("standard input".into()).spawn(move || {
            let mut input = io::stdin().lock();
            loop {
                let mut chunk = vec![0; CHUNK];
                let read = match input.read(&mut chunk) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    read => read,
                };
                let is_end = !matches!(read, Ok(1..));
                let chunk = read.map(|bytes| {
                    chunk.truncate(bytes);
                    chunk
                });
                if sender.send(chunk).is_err() || is_end {
                    return;
                }
            }
        })?;
        Ok(Self { chunks, chunk: io::Cursor::default(), closed, reads_left: LAST_READS })
    }

    /// The next chunk, empty at the end.
    fn next(&mut self) -> io::Result<Vec<u8>> {
        loop {
            if self.closed.load(Ordering::Relaxed) || self.reads_left == 0 {
                return Ok(Vec::new());
            }
            if interrupt::is_raised() {
                self.reads_left -= 1;
            }
            match self.chunks.recv_timeout(POLL) {
                Ok(chunk) => return chunk,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(Vec::new()),
            }
        }
    }
}

impl Read for LiveInput {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if self.chunk.position() >= self.chunk.get_ref().len() as u64 {
            self.chunk = io::Cursor::new(self.next()?);
        }
        self.chunk.read(to)
    }
}
