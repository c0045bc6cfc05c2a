//! Problems of a log, their positions, and what is missing from it.

use core::fmt;

use packet::wire::WireError;

use super::VERSION;
use crate::blocks::BlockFault;

/// A problem and its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BblogProblem {
    /// Byte offset in the file.
    pub offset: u64,
    /// Kind of the problem.
    pub kind: BblogProblemKind,
}

/// Kinds of problems of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BblogProblemKind {
    /// Bytes that are not a block were skipped.
    Skipped {
        /// Number of bytes.
        bytes: u64,
        /// Fault of the first of them.
        fault: BlockFault,
    },
    /// A block before any section header: little-endian is assumed.
    NoSection,
    /// A section without a connection: times are since boot.
    NoConnection,
    /// A section is of a version other than [`VERSION`].
    Version {
        /// The version found.
        found: u32,
    },
    /// A block is too short for its type.
    Short {
        /// Bytes of its body.
        bytes: usize,
    },
    /// An option exceeds its block.
    Option,
    /// A Netflix field has the wrong length.
    Length {
        /// Bytes found.
        found: usize,
        /// Bytes expected.
        expected: usize,
    },
    /// An event block without a record.
    NoRecord,
    /// The headers of a packet cannot be parsed; its record is kept.
    Packet(WireError),
    /// The connection of a section has an address family that is neither IPv4 nor IPv6.
    Family,
    /// The first record of a connection has this number: those before it are missing.
    Late {
        /// Number of the first record.
        serial: u32,
    },
    /// Records are missing.
    Gap {
        /// Number of the record before the gap.
        from: u32,
        /// Number of the record after it.
        to: u32,
        /// Missing records that the log itself declares as lost.
        declared: u64,
    },
    /// The log declares records as lost, but the numbers are contiguous.
    Declared {
        /// Number of records.
        records: u64,
    },
    /// Record numbers go backwards.
    Back {
        /// Number of the previous record.
        from: u32,
        /// Number of this one.
        to: u32,
    },
}

impl fmt::Display for BblogProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}: {}", self.offset, self.kind)
    }
}

impl core::error::Error for BblogProblem {}

impl fmt::Display for BblogProblemKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Skipped { bytes, fault } => write!(f, "{bytes} bytes skipped: {fault}"),
            Self::NoSection => f.write_str("no section header before this block"),
            Self::NoConnection => {
                f.write_str("the section names no connection: times are since boot")
            }
            Self::Version { found } => {
                write!(f, "version {found} of the log, of which only {VERSION} is known")
            }
            Self::Short { bytes } => write!(f, "a block of {bytes} bytes is too short"),
            Self::Option => f.write_str("an option exceeds its block"),
            Self::Length { found, expected } => {
                write!(f, "a field of {found} bytes where {expected} are expected")
            }
            Self::NoRecord => f.write_str("an event without its record"),
            Self::Packet(error) => write!(f, "headers of the packet: {error}"),
            Self::Family => f.write_str("the connection is neither IPv4 nor IPv6"),
            Self::Late { serial } => {
                write!(f, "the first record is number {serial}: {serial} before it are missing")
            }
            Self::Gap { from, to, declared } => {
                let missing = to.wrapping_sub(*from).wrapping_sub(1);
                write!(f, "record {to} follows record {from}: {missing} are missing")?;
                match declared {
                    0 => Ok(()),
                    all if *all == u64::from(missing) => f.write_str(", declared as lost"),
                    some => write!(f, ", {some} declared as lost"),
                }
            }
            Self::Declared { records } => {
                write!(f, "{records} records declared as lost, but none is missing")
            }
            Self::Back { from, to } => write!(f, "record {to} follows record {from}"),
        }
    }
}

/// Counts of records, losses and problems of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BblogStats {
    /// Records read.
    pub records: u64,
    /// Records missing by their numbers.
    pub missing: u64,
    /// Records that the log declares as lost.
    pub declared: u64,
    /// Bytes skipped because they are not a block.
    pub skipped_bytes: u64,
    /// Records with an event of a newer kernel, kept with its number.
    pub unknown_events: u64,
    /// Blocks of other programs, skipped.
    pub foreign_blocks: u64,
    /// Problems reported.
    pub problems: u64,
}
