//! Streaming decompression of gzip, xz and zstd.
//!
//! [`Unpacked`] detects the compression of its input by the first bytes. Files may consist of
//! several concatenated streams. The decoders are in Rust and also work in a browser.
//!
//! ```
//! use std::io::Read;
//! use trace::unpack::Unpacked;
//! # use ackclock_trace as trace;
//!
//! let mut text = String::new();
//! Unpacked::new(&b"as it is"[..])?.read_to_string(&mut text)?;
//! assert_eq!(text, "as it is");
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! Formats: RFC 1952 (gzip), RFC 8878 (zstd), the .xz file format 1.2.0.
//!
//! Archives of several files are not supported.

use core::fmt;
use std::io::{self, BufReader, Chain, Cursor, Read};

use flate2::read::MultiGzDecoder;
use lzma_rust2::XzReader;
use ruzstd::decoding::FrameDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};

/// A compression format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    /// gzip.
    Gzip,
    /// xz.
    Xz,
    /// Zstandard.
    Zstd,
}

/// First bytes of each format.
const MAGICS: [(&[u8], Packing); 3] = [
    (&[0x1f, 0x8b], Packing::Gzip),
    (&[0xfd, b'7', b'z', b'X', b'Z', 0], Packing::Xz),
    (&[0x28, 0xb5, 0x2f, 0xfd], Packing::Zstd),
];
const LONGEST_MAGIC: u64 = 6;

/// Most memory for the dictionary of a compressed file, in KiB: `xz -9` needs 64 MiB, `zstd -19` 8
/// MiB.
const MEMORY_LIMIT_KIB: u32 = 128 * 1_024;
const INPUT_BUFFER: usize = 64 * 1_024;

/// The input with its first bytes prepended.
type Input<R> = Chain<Cursor<Vec<u8>>, R>;

/// Reads the decompressed input, or the input itself if it is not compressed.
///
/// A damaged input gives its readable part, then an error of kind
/// [`InvalidData`](io::ErrorKind::InvalidData).
pub struct Unpacked<R: Read> {
    form: Decompressor<R>,
}

enum Decompressor<R: Read> {
    Plain(Input<R>),
    Gzip(Box<MultiGzDecoder<BufReader<Input<R>>>>),
    Xz(Box<XzReader<BufReader<Input<R>>>>),
    Zstd(Box<Zstd<BufReader<Input<R>>>>),
}

impl<R: Read> Unpacked<R> {
    /// Detects the format by the first bytes of `input`.
    ///
    /// # Errors
    ///
    /// Those of the input.
    pub fn new(mut input: R) -> io::Result<Self> {
        let mut begin = Vec::new();
        (&mut input).take(LONGEST_MAGIC).read_to_end(&mut begin)?;
        let packing =
            MAGICS.iter().find(|(magic, _)| begin.starts_with(magic)).map(|(_, packing)| *packing);
        let input = Cursor::new(begin).chain(input);
        let buffered = |input| BufReader::with_capacity(INPUT_BUFFER, input);
        let form = match packing {
            None => Decompressor::Plain(input),
            Some(Packing::Gzip) => {
                Decompressor::Gzip(Box::new(MultiGzDecoder::new(buffered(input))))
            }
            Some(Packing::Xz) => {
                let reader = XzReader::new_mem_limit(buffered(input), true, MEMORY_LIMIT_KIB);
                Decompressor::Xz(Box::new(reader))
            }
            Some(Packing::Zstd) => Decompressor::Zstd(Box::new(Zstd::new(buffered(input)))),
        };
        Ok(Self { form })
    }

    /// Compression of the input.
    pub const fn packing(&self) -> Option<Packing> {
        match self.form {
            Decompressor::Plain(_) => None,
            Decompressor::Gzip(_) => Some(Packing::Gzip),
            Decompressor::Xz(_) => Some(Packing::Xz),
            Decompressor::Zstd(_) => Some(Packing::Zstd),
        }
    }
}

impl<R: Read> Read for Unpacked<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let (read, name) = match &mut self.form {
            Decompressor::Plain(input) => return input.read(to),
            Decompressor::Gzip(reader) => (reader.read(to), Packing::Gzip),
            Decompressor::Xz(reader) => (reader.read(to), Packing::Xz),
            Decompressor::Zstd(reader) => (reader.read(to), Packing::Zstd),
        };
        // The decoders report damage by several kinds of error; I/O errors have others.
        read.map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => {
                let reported = format!("{name}: the file ends within the compressed data");
                io::Error::new(io::ErrorKind::InvalidData, reported)
            }
            io::ErrorKind::InvalidData
            | io::ErrorKind::InvalidInput
            | io::ErrorKind::Unsupported
            | io::ErrorKind::OutOfMemory
            | io::ErrorKind::Other => {
                io::Error::new(io::ErrorKind::InvalidData, format!("{name}: {error}"))
            }
            _ => error,
        })
    }
}

impl<R: Read> fmt::Debug for Unpacked<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.form {
            Decompressor::Plain(_) => "Plain",
            Decompressor::Gzip(_) => "Gzip",
            Decompressor::Xz(_) => "Xz",
            Decompressor::Zstd(_) => "Zstd",
        };
        f.debug_tuple("Unpacked").field(&name).finish()
    }
}

impl fmt::Display for Packing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gzip => "gzip",
            Self::Xz => "xz",
            Self::Zstd => "zstd",
        })
    }
}

/// Decodes consecutive frames of a zstd file; the library decodes a single one.
struct Zstd<R> {
    input: R,
    decoder: FrameDecoder,
    in_frame: bool,
}

impl<R: Read> Zstd<R> {
    fn new(input: R) -> Self {
        Self { input, decoder: FrameDecoder::new(), in_frame: false }
    }

    /// Begins the next frame; false at the end of the input.
    fn begin(&mut self) -> io::Result<bool> {
        loop {
            let mut first = [0];
            if self.input.read(&mut first)? == 0 {
                return Ok(false);
            }
            match self.decoder.init((&first[..]).chain(&mut self.input)) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let length = u64::from(length);
                    let skipped = io::copy(&mut (&mut self.input).take(length), &mut io::sink())?;
                    if skipped < length {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(error) => return Err(io::Error::other(error.to_string())),
            }
        }
    }
}

impl<R: Read> Read for Zstd<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        use ruzstd::decoding::BlockDecodingStrategy::UptoBlocks;
        loop {
            if !self.in_frame {
                self.in_frame = self.begin()?;
                if !self.in_frame {
                    return Ok(0);
                }
            }
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                self.decoder
                    .decode_blocks(&mut self.input, UptoBlocks(1))
                    .map_err(|error| io::Error::other(error.to_string()))?;
            }
            let read = self.decoder.read(to)?;
            if read > 0 || to.is_empty() {
                return Ok(read);
            }
            if let (Some(reported), Some(sum)) =
                (self.decoder.get_checksum_from_data(), self.decoder.get_calculated_checksum())
                && reported != sum
            {
                return Err(io::Error::other("the checksum of a frame is wrong"));
            }
            self.in_frame = false;
        }
    }
}

#[cfg(test)]
mod tests;
