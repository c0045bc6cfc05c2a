//! What is wrong with a log, where, and what is missing from it.

use core::fmt;

use packet::wire::WireError;

use super::VERSION;
use crate::blocks::BlockFault;

/// Something wrong, and its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BblogProblem {
    /// Byte offset in the file.
    pub offset: u64,
    /// What.
    pub kind: BblogProblemKind,
}

/// What can be wrong with a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BblogProblemKind {
    /// Bytes that are no block were skipped.
    Skipped {
        /// How many.
        bytes: u64,
        /// What was wrong with the first of them.
        fault: BlockFault,
    },
    /// A block comes before any section header: the byte order is a guess.
    NoSection,
    /// A section does not tell its connection: times are those since the host booted.
    NoConnection,
    /// A section is of a version other than [`VERSION`].
    Version {
        /// The one it is of.
        found: u32,
    },
    /// A block is too short for what it is.
    Short {
        /// Bytes of its body.
        bytes: usize,
    },
    /// An option runs over the end of its block.
    Option,
    /// A field of Netflix' has another length than it should.
    Length {
        /// Bytes found.
        found: usize,
        /// Bytes expected.
        expected: usize,
    },
    /// An event without its record.
    NoRecord,
    /// The headers of a packet cannot be read; its record is there.
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
        /// Number of the record behind it.
        to: u32,
        /// Missing records that the log itself declares as lost.
        declared: u64,
    },
    /// The log declares records as lost, but the numbers go on.
    Declared {
        /// How many.
        records: u64,
    },
    /// Numbers of records go back.
    Back {
        /// Number of the record before.
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
                f.write_str("the section does not tell its connection: times are since boot")
            }
            Self::Version { found } => {
                write!(f, "version {found} of the log, of which only {VERSION} is known")
            }
            Self::Short { bytes } => write!(f, "a block of {bytes} bytes is too short"),
            Self::Option => f.write_str("an option runs over the end of its block"),
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

/// What a log has and has not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Loss {
    /// Records read.
    pub records: u64,
    /// Records missing by their numbers.
    pub missing: u64,
    /// Records that the log declares as lost.
    pub declared: u64,
    /// Bytes skipped because they are no block.
    pub skipped_bytes: u64,
    /// Records with an event of a newer kernel, kept with its number.
    pub unknown_events: u64,
    /// Blocks of other programs, passed over.
    pub foreign_blocks: u64,
    /// Problems told.
    pub problems: u64,
}
