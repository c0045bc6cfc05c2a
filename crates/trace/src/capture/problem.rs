//! Problems of a capture, their positions, and what is lost.

use core::fmt;
use std::io;

use crate::blocks::BlockFault;

/// Why a file cannot be read as a capture.
#[derive(Debug)]
pub enum OpenError {
    /// The file is empty.
    Empty,
    /// The file does not begin like a capture.
    Foreign {
        /// Its first bytes, at most four.
        begins: Vec<u8>,
    },
    /// Reading failed.
    Read(io::Error),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("the file is empty, expected a capture"),
            Self::Foreign { begins } => {
                f.write_str("byte 0: expected the magic number of pcap or pcapng, found")?;
                begins.iter().try_for_each(|byte| write!(f, " {byte:02x}"))
            }
            Self::Read(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for OpenError {}

/// A problem and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaptureProblem {
    /// Offset in the (decompressed) file.
    pub offset: u64,
    /// Kind of the problem.
    pub kind: CaptureProblemKind,
}

/// Kinds of problems of a capture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CaptureProblemKind {
    /// Bytes of a pcapng file that are not a block were skipped.
    Skipped {
        /// Number of bytes.
        bytes: u64,
        /// Fault of the first of them.
        fault: BlockFault,
    },
    /// A record of a pcap file is invalid: bytes were skipped up to the next valid one.
    Record {
        /// Bytes of the frame by its header.
        captured: u32,
        /// Most bytes of a frame.
        most: u32,
        /// Bytes skipped.
        skipped: u64,
        /// Whether a frame follows.
        resumed: bool,
    },
    /// The file ends within a frame, which is lost.
    End {
        /// Bytes of the frame in the file.
        there: u64,
        /// Bytes that it should have.
        expected: u64,
    },
    /// A block before any section header: little-endian is assumed.
    NoSection,
    /// An unknown major version; the file is read as the known one.
    Version {
        /// Major version found.
        major: u16,
        /// Minor version found.
        minor: u16,
    },
    /// A block is too short for its type; it is skipped.
    Short {
        /// Bytes of its body.
        bytes: usize,
        /// Least bytes of its type.
        expected: usize,
    },
    /// A block claims more captured bytes than it has; the available ones are used.
    Captured {
        /// Bytes claimed.
        claimed: u32,
        /// Bytes available.
        there: usize,
    },
    /// An option exceeds its block.
    Option,
    /// A frame of an undeclared interface is lost.
    Interface {
        /// Number of the interface in its section.
        number: u32,
        /// Interfaces declared in it.
        declared: usize,
    },
    /// The file cannot be decompressed from here on.
    Packed {
        /// Message of the decompressor.
        message: String,
    },
}

impl fmt::Display for CaptureProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}: {}", self.offset, self.kind)
    }
}

impl core::error::Error for CaptureProblem {}

impl fmt::Display for CaptureProblemKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Skipped { bytes, fault } => write!(f, "{bytes} bytes skipped: {fault}"),
            Self::Record { captured, most, skipped, resumed } => {
                write!(f, "expected a frame of at most {most} bytes, found {captured}: ")?;
                if *resumed {
                    write!(f, "{skipped} bytes skipped up to the next frame")
                } else {
                    write!(f, "no frame follows, the last {skipped} bytes are lost")
                }
            }
            Self::End { there, expected } => {
                write!(f, "the file ends within a frame: it has {there} of {expected} bytes")
            }
            Self::NoSection => f.write_str("no section header before this block"),
            Self::Version { major, minor } => {
                write!(f, "unknown version {major}.{minor} of the format")
            }
            Self::Short { bytes, expected } => {
                write!(f, "a block with {bytes} bytes of content, expected at least {expected}")
            }
            Self::Captured { claimed, there } => {
                write!(f, "{claimed} captured bytes claimed, but the block has {there}")
            }
            Self::Option => f.write_str("an option exceeds its block"),
            Self::Interface { number, declared } => {
                write!(f, "a frame of interface {number}, but {declared} are declared: it is lost")
            }
            Self::Packed { message } => {
                write!(f, "the compressed file is damaged from here on: {message}")
            }
        }
    }
}
