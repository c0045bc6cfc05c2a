//! Reads the blocks of a pcapng file and resynchronizes after a fault.
//!
//! A block is type, length, body and a second length (draft-ietf-opsawg-pcapng section 3.1). If the
//! two lengths disagree or are invalid, bytes are skipped until a block of a known type begins
//! whose lengths agree.

use core::fmt;
use std::io::Read;

use crate::window::Window;

mod options;

pub(crate) use options::{BlockOptions, RawOption};

pub(crate) const SECTION_HEADER: u32 = 0x0a0d_0d0a;
pub(crate) const INTERFACE_DESCRIPTION: u32 = 1;
pub(crate) const ENHANCED_PACKET: u32 = 6;
pub(crate) const CUSTOM: u32 = 0x0bad;
const CUSTOM_NOT_COPIED: u32 = 0x4000_0bad;
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;

/// Private enterprise number of Netflix, in the custom blocks of a BBLog.
pub(crate) const NETFLIX: u32 = 10_949;
/// Type and both lengths.
const FRAME: usize = 12;

/// Copies `N` bytes from `at`.
pub(crate) fn part<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut taken = [0; N];
    taken.copy_from_slice(&bytes[at..at + N]);
    taken
}

/// Byte order of a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Endianness {
    Little,
    Big,
}

impl Endianness {
    pub(crate) fn u16(self, bytes: &[u8], at: usize) -> u16 {
        match self {
            Self::Little => u16::from_le_bytes(part(bytes, at)),
            Self::Big => u16::from_be_bytes(part(bytes, at)),
        }
    }

    pub(crate) fn u32(self, bytes: &[u8], at: usize) -> u32 {
        match self {
            Self::Little => u32::from_le_bytes(part(bytes, at)),
            Self::Big => u32::from_be_bytes(part(bytes, at)),
        }
    }
}

/// A block, or bytes that are not one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FoundBlock {
    /// A complete block; [`Blocks::body`] is its body.
    Block { offset: u64, kind: u32 },
    /// Bytes that are not a block.
    Skipped { offset: u64, bytes: u64, fault: BlockFault },
}

/// Fault of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockFault {
    /// A section header without a valid byte-order magic.
    ByteOrder {
        /// The magic as found, read little-endian.
        magic: u32,
    },
    /// A length that is not a multiple of four, or too short for a block.
    Length {
        /// The length found.
        claimed: u32,
    },
    /// A block longer than the limit.
    TooLong {
        /// The length found.
        claimed: u32,
        /// The limit.
        most: usize,
    },
    /// The length after the block differs from the one before it.
    Lengths {
        /// The length before.
        head: u32,
        /// The length after.
        tail: u32,
    },
    /// The lengths agree, but no block follows, and the contents are not those of a known block.
    NotFollowed {
        /// The length found.
        claimed: u32,
    },
    /// The file ends within the block.
    End {
        /// Length of the block.
        claimed: u32,
    },
}

impl fmt::Display for BlockFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ByteOrder { magic } => {
                write!(f, "a section header with the byte order {magic:#010x}")
            }
            Self::Length { claimed } => write!(f, "a block cannot have {claimed} bytes"),
            Self::TooLong { claimed, most } => {
                write!(f, "a block of {claimed} bytes exceeds the limit of {most}")
            }
            Self::Lengths { head, tail } => {
                write!(f, "a block of {head} bytes that ends as one of {tail}")
            }
            Self::NotFollowed { claimed } => {
                write!(f, "a block of {claimed} bytes that no block follows")
            }
            Self::End { claimed: 0 } => f.write_str("the file ends within a block"),
            Self::End { claimed } => write!(f, "the file ends within a block of {claimed} bytes"),
        }
    }
}

/// Iterates over the blocks of a file. The buffer is limited to the longest block and a few reads.
#[derive(Debug)]
pub(crate) struct Blocks<R> {
    window: Window<R>,
    order: Endianness,
    /// Longest block read, in bytes.
    longest: usize,
    /// Length of the current block.
    current: usize,
}

impl<R: Read> Blocks<R> {
    /// Reads `input`; a block of more than `longest` bytes is a fault.
    pub(crate) const fn new(input: R, longest: usize) -> Self {
        Self::of(Window::new(input), longest)
    }

    /// Reads the unread input of `window`.
    pub(crate) const fn of(window: Window<R>, longest: usize) -> Self {
        // Default before a section header: the byte order of most hosts.
        Self { window, order: Endianness::Little, longest, current: 0 }
    }

    /// The input, with the error that ended it.
    pub(crate) const fn window(&mut self) -> &mut Window<R> {
        &mut self.window
    }

    /// Byte order of the current section.
    pub(crate) const fn order(&self) -> Endianness {
        self.order
    }

    /// Body of the current block, without type and lengths.
    pub(crate) fn body(&self) -> &[u8] {
        match self.current {
            0 => &[],
            len => &self.window.bytes()[8..len - 4],
        }
    }

    /// Finds the next block or fault; `None` at the end of the file.
    pub(crate) fn find(&mut self) -> Option<FoundBlock> {
        self.window.consume(self.current);
        self.current = 0;
        if self.window.fill(FRAME) == 0 {
            return None;
        }
        let offset = self.window.offset();
        let fault = match self.look() {
            Ok(len) => {
                self.current = len;
                return Some(FoundBlock::Block { offset, kind: self.at(0) });
            }
            Err(fault) => fault,
        };
        let order = self.order;
        loop {
            self.window.consume(1);
            let rest = self.window.fill(FRAME);
            if rest < FRAME {
                self.window.consume(rest);
                break;
            }
            self.order = order;
            if self.is_known_type() && self.look().is_ok() {
                break;
            }
        }
        Some(FoundBlock::Skipped { offset, bytes: self.window.offset() - offset, fault })
    }

    /// Checks the block that begins here and returns its length; a section header sets the byte
    /// order.
    fn look(&mut self) -> Result<usize, BlockFault> {
        let ready = self.window.fill(FRAME);
        if ready < FRAME {
            let claimed = if ready >= 8 { self.at(4) } else { 0 };
            return Err(BlockFault::End { claimed });
        }
        if self.at(0) == SECTION_HEADER {
            self.order = match Endianness::Little.u32(self.window.bytes(), 8) {
                BYTE_ORDER_MAGIC => Endianness::Little,
                magic if magic.swap_bytes() == BYTE_ORDER_MAGIC => Endianness::Big,
                magic => return Err(BlockFault::ByteOrder { magic }),
            };
        }
        let claimed = self.at(4);
        let len = claimed as usize;
        if len < FRAME || !len.is_multiple_of(4) {
            return Err(BlockFault::Length { claimed });
        }
        if len > self.longest {
            return Err(BlockFault::TooLong { claimed, most: self.longest });
        }
        if self.window.fill(len) < len {
            return Err(BlockFault::End { claimed });
        }
        let tail = self.at(len - 4);
        if tail != claimed {
            return Err(BlockFault::Lengths { head: claimed, tail });
        }
        if !self.is_followed(len) && !self.is_plausible(len) {
            return Err(BlockFault::NotFollowed { claimed });
        }
        Ok(len)
    }

    /// Whether a block follows, or the end of the file. Two lengths of a damaged block may agree by
    /// chance; then none follows.
    fn is_followed(&mut self, len: usize) -> bool {
        let more = self.window.fill(len + 8) - len;
        if more < 8 {
            return more == 0;
        }
        let claimed = self.at(len + 4) as usize;
        let fits = (FRAME..=self.longest).contains(&claimed) && claimed.is_multiple_of(4);
        // The next section may be in the other order.
        fits || self.at(len) == SECTION_HEADER
    }

    /// Whether the contents are plausible for a block.
    fn is_plausible(&self, len: usize) -> bool {
        // Options end with zeros.
        let ended = self.at(len - 8) == 0;
        match self.at(0) {
            SECTION_HEADER => true,
            INTERFACE_DESCRIPTION => len >= 20,
            // The captured bytes are within the block.
            ENHANCED_PACKET => ended && len >= 32 && self.at(20) as usize <= len - 32,
            CUSTOM => ended && len >= 20 && self.at(8) == NETFLIX,
            _ => false,
        }
    }

    /// Whether the bytes here are a block type of pcapng.
    fn is_known_type(&self) -> bool {
        matches!(self.at(0), 1..=0xa | SECTION_HEADER | CUSTOM | CUSTOM_NOT_COPIED)
    }

    fn at(&self, at: usize) -> u32 {
        self.order.u32(self.window.bytes(), at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONGEST: usize = 256 * 1_024;

    fn walk(file: &[u8]) -> Vec<FoundBlock> {
        let mut blocks = Blocks::new(file, LONGEST);
        let mut found = Vec::new();
        while let Some(next) = blocks.find() {
            found.push(next);
        }
        found
    }

    fn block(kind: u32, body: &[u8]) -> Vec<u8> {
        let len = (body.len() as u32 + 12).to_le_bytes();
        [&kind.to_le_bytes()[..], &len, body, &len].concat()
    }

    fn header() -> Vec<u8> {
        let body = [&BYTE_ORDER_MAGIC.to_le_bytes()[..], &[1, 0, 0, 0], &[0xff; 8]].concat();
        block(SECTION_HEADER, &body)
    }

    #[test]
    fn intact_blocks_are_found_in_order() {
        let file = [header(), block(99, &[1, 2, 3, 4]), block(CUSTOM, &[])].concat();
        let mut blocks = Blocks::new(&file[..], LONGEST);
        assert!(blocks.body().is_empty());
        let kinds: Vec<_> = walk(&file);
        assert_eq!(
            kinds,
            [
                FoundBlock::Block { offset: 0, kind: SECTION_HEADER },
                FoundBlock::Block { offset: 28, kind: 99 },
                FoundBlock::Block { offset: 44, kind: CUSTOM },
            ]
        );
        blocks.find();
        blocks.find();
        assert_eq!(blocks.body(), [1, 2, 3, 4]);
    }

    #[test]
    fn a_broken_block_is_skipped_up_to_the_next() {
        // 16 bytes; its second length is 20.
        let mut broken = block(CUSTOM, &[0; 4]);
        broken[12] = 20;
        let file = [header(), broken, block(CUSTOM, &[7; 4])].concat();
        let fault = BlockFault::Lengths { head: 16, tail: 20 };
        assert_eq!(
            walk(&file)[1..],
            [
                FoundBlock::Skipped { offset: 28, bytes: 16, fault },
                FoundBlock::Block { offset: 44, kind: CUSTOM },
            ]
        );
    }

    #[test]
    fn blocks_after_missing_bytes_are_found() {
        let whole = [header(), block(CUSTOM, &[3; 40]), block(CUSTOM, &[7; 4])].concat();
        // Seven bytes of the second block are missing: later blocks are not aligned to four bytes.
        let file = [&whole[..40], &whole[47..]].concat();
        let found = walk(&file);
        assert_eq!(found.len(), 3);
        // 28 and 52 - 7 bytes of the broken block.
        assert_eq!(found[2], FoundBlock::Block { offset: 28 + 45, kind: CUSTOM });
    }

    #[test]
    fn a_section_in_the_other_order_is_read_in_it() {
        let big = |kind: u32, body: &[u8]| {
            let len = (body.len() as u32 + 12).to_be_bytes();
            [&kind.to_be_bytes()[..], &len, body, &len].concat()
        };
        let body = [&BYTE_ORDER_MAGIC.to_be_bytes()[..], &[0, 1, 0, 0], &[0xff; 8]].concat();
        let file = [header(), big(SECTION_HEADER, &body), big(CUSTOM, &[]), header()].concat();
        let kinds = walk(&file);
        assert_eq!(kinds.len(), 4);
        assert_eq!(kinds[2], FoundBlock::Block { offset: 56, kind: CUSTOM });
    }

    #[test]
    fn a_claimed_length_costs_no_memory() {
        let mut file = header();
        for claimed in [LONGEST as u32 + 4, u32::MAX - 3] {
            file.extend_from_slice(&CUSTOM.to_le_bytes());
            file.extend_from_slice(&claimed.to_le_bytes());
            file.extend_from_slice(&[0; 100]);
        }
        let mut blocks = Blocks::new(&file[..], LONGEST);
        while blocks.find().is_some() {}
        assert!(blocks.window.held() <= 2 * 4_096, "{}", blocks.window.held());
        let fault = BlockFault::TooLong { claimed: LONGEST as u32 + 4, most: LONGEST };
        assert_eq!(walk(&file)[1], FoundBlock::Skipped { offset: 28, bytes: 216, fault });
    }

    #[test]
    fn the_buffer_is_bounded_however_long_the_file() {
        // Every candidate claims the maximum length, so the buffer is filled up to its limit.
        let mut file = header();
        for _ in 0..200_000 {
            file.extend_from_slice(&CUSTOM.to_le_bytes());
            file.extend_from_slice(&(LONGEST as u32).to_le_bytes());
        }
        let mut blocks = Blocks::new(&file[..], LONGEST);
        while blocks.find().is_some() {
            assert!(blocks.window.held() <= 4 * LONGEST);
        }
    }

    #[test]
    fn the_end_within_a_block_is_reported() {
        let mut file = [header(), block(CUSTOM, &[0; 40])].concat();
        file.truncate(50);
        let fault = BlockFault::End { claimed: 52 };
        assert_eq!(walk(&file)[1..], [FoundBlock::Skipped { offset: 28, bytes: 22, fault }]);
    }
}
