//! What is wrong with a capture, where, and what is lost by it.

use core::fmt;
use std::io;

use crate::blocks::BlockFault;

/// Why a file cannot be read as a capture at all.
#[derive(Debug)]
pub enum OpenError {
    /// It has no byte.
    Empty,
    /// It begins otherwise than a capture.
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

/// Something wrong, and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaptureProblem {
    /// Byte of the (unpacked) file.
    pub offset: u64,
    /// What.
    pub kind: CaptureProblemKind,
}

/// What can be wrong with a capture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CaptureProblemKind {
    /// Bytes of a pcapng file that are no block were skipped.
    Skipped {
        /// How many.
        bytes: u64,
        /// What was wrong with the first of them.
        fault: BlockFault,
    },
    /// A record of a pcap file cannot be: what follows was skipped up to the next that can.
    Record {
        /// Bytes of the frame, as its header has it.
        captured: u32,
        /// Bytes that a frame can have here.
        most: u32,
        /// Bytes skipped.
        skipped: u64,
        /// Did a frame follow?
        resumed: bool,
    },
    /// The file ends within a frame, which is lost.
    End {
        /// Bytes the frame has in the file.
        there: u64,
        /// Bytes it should have there.
        expected: u64,
    },
    /// A block comes before any section header: the byte order is a guess.
    NoSection,
    /// Another major version than is known; it is read as if it were the known one.
    Version {
        /// Major version found.
        major: u16,
        /// Minor version found.
        minor: u16,
    },
    /// A block is too short for what it is; it is passed over.
    Short {
        /// Bytes of its body.
        bytes: usize,
        /// Bytes it needs.
        expected: usize,
    },
    /// A block claims more captured bytes than it has; those there are taken.
    Captured {
        /// As claimed.
        claimed: u32,
        /// There.
        there: usize,
    },
    /// An option runs over the end of its block.
    Option,
    /// A frame of an interface that was not declared: it is lost.
    Interface {
        /// Number of the interface in its section.
        number: u32,
        /// Interfaces declared there.
        declared: usize,
    },
    /// The file cannot be unpacked from here on.
    Packed {
        /// What the unpacker says.
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
                write!(f, "the file ends within a frame: {there} of its {expected} bytes are there")
            }
            Self::NoSection => f.write_str("no section header before this block"),
            Self::Version { major, minor } => {
                write!(f, "version {major}.{minor} of the format is not known")
            }
            Self::Short { bytes, expected } => {
                write!(f, "a block with {bytes} bytes of content, expected at least {expected}")
            }
            Self::Captured { claimed, there } => {
                write!(f, "{claimed} captured bytes claimed, but the block has {there}")
            }
            Self::Option => f.write_str("an option runs over the end of its block"),
            Self::Interface { number, declared } => {
                write!(f, "a frame of interface {number}, but {declared} are declared: it is lost")
            }
            Self::Packed { message } => {
                write!(f, "the packed file is damaged, all behind it is lost: {message}")
            }
        }
    }
}
