//! The memory of a guest, and the rings of its network card in it (VIRTIO 1.2, 2.7: split
//! virtqueues).
//!
//! The memory is a file that the guest shares, mapped here. The length of the file is checked when it is mapped,
//! and every address against that: a wrong one is an error. A guest that cuts its file short later would end this
//! program (SIGBUS): it is foreign code in this respect too. The guest is stopped at a socket whenever this code
//! runs.

use std::fs::File;

use vm_memory::{Bytes as _, FileOffset, MmapRegion, VolatileMemory as _};

use crate::guest::GuestError;

/// Descriptor flags: the chain continues; the buffer holds a table of descriptors.
const NEXT: u16 = 1;
const INDIRECT: u16 = 4;
/// Bytes of a descriptor.
const DESCRIPTOR: usize = 16;
/// Maximum descriptors of a chain: more than MAX_SKB_FRAGS and headers.
const LONGEST_CHAIN: usize = 1_024;

/// The memory of a guest.
#[derive(Debug, Default)]
pub(super) struct GuestMemory {
    regions: Vec<Region>,
}

#[derive(Debug)]
struct Region {
    start: u64,
    mapping: SharedFile,
}

/// A part of a file that the guest has mapped too.
#[derive(Debug)]
pub(super) struct SharedFile(MmapRegion);

impl SharedFile {
    /// Maps `len` bytes of `file` from `offset` on.
    pub(super) fn map(file: File, offset: u64, len: u64) -> Result<Self, GuestError> {
        let wrong = |error: &dyn core::fmt::Display| {
            GuestError::protocol(format!("its memory of {len} bytes cannot be mapped: {error}"))
        };
        let has = file.metadata().map_err(|error| wrong(&error))?.len();
        if offset.checked_add(len).is_none_or(|end| end > has) {
            return Err(wrong(&format_args!("its file has {has}")));
        }
        let len = usize::try_from(len).map_err(|error| wrong(&error))?;
        let mapped = MmapRegion::from_file(FileOffset::new(file, offset), len);
        mapped.map(Self).map_err(|error| wrong(&error))
    }

    fn len(&self) -> u64 {
        self.0.size() as u64
    }

    /// Reads from byte `at` on.
    pub(super) fn read(&self, at: u64, into: &mut [u8]) -> Result<(), GuestError> {
        let read = self.0.as_volatile_slice().read_slice(into, at as usize);
        read.map_err(|_| outside(at, into.len()))
    }

    /// Writes from byte `at` on.
    pub(super) fn write(&self, at: u64, bytes: &[u8]) -> Result<(), GuestError> {
        let written = self.0.as_volatile_slice().write_slice(bytes, at as usize);
        written.map_err(|_| outside(at, bytes.len()))
    }
}

fn outside(address: u64, len: usize) -> GuestError {
    GuestError::protocol(format!("a ring refers to {len} bytes at {address:#x}"))
}

impl GuestMemory {
    /// Adds `len` bytes at guest address `start`, which `file` holds from `offset` on.
    pub(super) fn add(
        &mut self,
        start: u64,
        len: u64,
        file: File,
        offset: u64,
    ) -> Result<(), GuestError> {
        let mapping = SharedFile::map(file, offset, len)?;
        self.regions.push(Region { start, mapping });
        Ok(())
    }

    fn locate(&self, address: u64, len: usize) -> Result<(&SharedFile, u64), GuestError> {
        let fits = |region: &&Region| {
            let end = address.checked_add(len as u64);
            address >= region.start
                && end.is_some_and(|end| end - region.start <= region.mapping.len())
        };
        let region = self.regions.iter().find(fits).ok_or_else(|| outside(address, len))?;
        Ok((&region.mapping, address - region.start))
    }

    pub(super) fn read(&self, address: u64, into: &mut [u8]) -> Result<(), GuestError> {
        let (mapping, at) = self.locate(address, into.len())?;
        mapping.read(at, into)
    }

    pub(super) fn write(&self, address: u64, bytes: &[u8]) -> Result<(), GuestError> {
        let (mapping, at) = self.locate(address, bytes.len())?;
        mapping.write(at, bytes)
    }

    fn read_u16(&self, address: u64) -> Result<u16, GuestError> {
        let mut bytes = [0; 2];
        self.read(address, &mut bytes)?;
        Ok(u16::from_le_bytes(bytes))
    }
}

/// A buffer of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Buffer {
    pub(super) address: u64,
    pub(super) len: u32,
}

/// A descriptor chain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Chain {
    /// Index in the ring.
    pub(super) head: u16,
    pub(super) buffers: Vec<Buffer>,
}

/// A split virtqueue.
#[derive(Debug, Default)]
pub(super) struct Ring {
    pub(super) size: u16,
    pub(super) descriptors: u64,
    pub(super) available: u64,
    pub(super) used: u64,
    pub(super) enabled: bool,
    /// Next entry of the available ring to take.
    next: u16,
    /// The index of the available ring when last read.
    known: u16,
    used_index: u16,
}

impl Ring {
    /// Creates a ring that begins at entry `index`.
    pub(super) const fn set_base(&mut self, index: u16) {
        self.next = index;
        self.known = index;
        self.used_index = index;
    }

    fn is_ready(&self) -> bool {
        self.enabled && self.size != 0
    }

    /// Takes the next chain that the guest has made available; `chain` is overwritten.
    pub(super) fn take(
        &mut self,
        memory: &GuestMemory,
        chain: &mut Chain,
    ) -> Result<bool, GuestError> {
        if !self.is_ready() {
            return Ok(false);
        }
        if self.known == self.next {
            self.known = memory.read_u16(self.available + 2)?;
            if self.known == self.next {
                return Ok(false);
            }
        }
        let entry = self.available + 4 + 2 * u64::from(self.next % self.size);
        chain.head = memory.read_u16(entry)?;
        chain.buffers.clear();
        self.follow(memory, chain)?;
        self.next = self.next.wrapping_add(1);
        Ok(true)
    }

    /// Puts back the chains taken last, as if they had not been taken.
    pub(super) const fn put_back(&mut self, chains: u16) {
        self.next = self.next.wrapping_sub(chains);
    }

    fn follow(&self, memory: &GuestMemory, chain: &mut Chain) -> Result<(), GuestError> {
        let mut table = [0; DESCRIPTOR];
        let mut indirect = Vec::new();
        let mut index = usize::from(chain.head);
        while chain.buffers.len() < LONGEST_CHAIN {
            let bytes: &[u8] = if indirect.is_empty() {
                memory.read(self.descriptors + (DESCRIPTOR * index) as u64, &mut table)?;
                &table
            } else {
                let at = DESCRIPTOR * index;
                indirect.get(at..at + DESCRIPTOR).ok_or_else(|| {
                    GuestError::protocol("a chain leaves its table of descriptors")
                })?
            };
            let descriptor = Descriptor::of(bytes);
            if descriptor.flags & INDIRECT != 0 && indirect.is_empty() {
                indirect = vec![0; (descriptor.len as usize).min(DESCRIPTOR * LONGEST_CHAIN)];
                memory.read(descriptor.address, &mut indirect)?;
                index = 0;
                continue;
            }
            chain.buffers.push(Buffer { address: descriptor.address, len: descriptor.len });
            if descriptor.flags & NEXT == 0 {
                return Ok(());
            }
            index = usize::from(descriptor.next);
        }
        Err(GuestError::protocol("a chain of descriptors without end"))
    }

    /// Returns chains to the guest, each with the number of bytes written into it.
    pub(super) fn give_back(
        &mut self,
        memory: &GuestMemory,
        chains: impl IntoIterator<Item = (u16, u32)>,
    ) -> Result<(), GuestError> {
        for (head, len) in chains {
            let slot = self.used + 4 + 8 * u64::from(self.used_index % self.size.max(1));
            let mut element = [0; 8];
            element[..4].copy_from_slice(&u32::from(head).to_le_bytes());
            element[4..].copy_from_slice(&len.to_le_bytes());
            memory.write(slot, &element)?;
            self.used_index = self.used_index.wrapping_add(1);
        }
        memory.write(self.used + 2, &self.used_index.to_le_bytes())
    }

    /// Returns whether the guest wants an interrupt for the returned chains
    /// (`VIRTQ_AVAIL_F_NO_INTERRUPT`).
    pub(super) fn wants_interrupt(&self, memory: &GuestMemory) -> Result<bool, GuestError> {
        Ok(memory.read_u16(self.available)? & 1 == 0)
    }
}

struct Descriptor {
    address: u64,
    len: u32,
    flags: u16,
    next: u16,
}

impl Descriptor {
    fn of(bytes: &[u8]) -> Self {
        let mut word = [0; DESCRIPTOR];
        word.copy_from_slice(bytes);
        let word = u128::from_le_bytes(word);
        Self {
            address: word as u64,
            len: (word >> 64) as u32,
            flags: (word >> 96) as u16,
            next: (word >> 112) as u16,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::memfd::{MFdFlags, memfd_create};

    const BASE: u64 = 0x1000;

    /// Memory of 64 KiB from 0x1000 on, with a ring of 8: descriptors at 0x1000, available at
    /// 0x2000, used at 0x3000.
    fn ring() -> (GuestMemory, Ring) {
        let file = File::from(memfd_create(c"test", MFdFlags::empty()).unwrap());
        file.set_len(1 << 16).unwrap();
        let mut memory = GuestMemory::default();
        memory.add(BASE, 1 << 16, file, 0).unwrap();
        let ring = Ring {
            size: 8,
            descriptors: 0x1000,
            available: 0x2000,
            used: 0x3000,
            enabled: true,
            ..Ring::default()
        };
        (memory, ring)
    }

    fn describe(memory: &GuestMemory, at: u64, address: u64, len: u32, flags: u16, next: u16) {
        let word = u128::from(address)
            | u128::from(len) << 64
            | u128::from(flags) << 96
            | u128::from(next) << 112;
        memory.write(at, &word.to_le_bytes()).unwrap();
    }

    fn offer(memory: &GuestMemory, heads: &[u16]) {
        for (index, head) in heads.iter().enumerate() {
            memory.write(0x2004 + 2 * index as u64, &head.to_le_bytes()).unwrap();
        }
        memory.write(0x2002, &(heads.len() as u16).to_le_bytes()).unwrap();
    }

    #[test]
    fn chains_come_in_the_order_of_the_available_ring() {
        let (memory, mut ring) = ring();
        describe(&memory, 0x1000 + 16 * 3, 0x5000, 12, NEXT, 1);
        describe(&memory, 0x1000 + 16, 0x6000, 1_500, 0, 0);
        // Chain 2 is a table of two descriptors at 0x7000.
        describe(&memory, 0x1000 + 16 * 2, 0x7000, 32, INDIRECT, 0);
        describe(&memory, 0x7000, 0x8000, 66, NEXT, 1);
        describe(&memory, 0x7010, 0x9000, 7, 0, 0);
        offer(&memory, &[3, 2]);
        let mut chain = Chain::default();
        let buffer = |address, len| Buffer { address, len };
        assert!(ring.take(&memory, &mut chain).unwrap());
        let first = Chain { head: 3, buffers: vec![buffer(0x5000, 12), buffer(0x6000, 1_500)] };
        assert_eq!(chain, first);
        assert!(ring.take(&memory, &mut chain).unwrap());
        let second = Chain { head: 2, buffers: vec![buffer(0x8000, 66), buffer(0x9000, 7)] };
        assert_eq!(chain, second);
        assert!(!ring.take(&memory, &mut chain).unwrap());
        ring.put_back(2);
        assert!(ring.take(&memory, &mut chain).unwrap());
        assert_eq!(chain, first);
        ring.give_back(&memory, [(3, 0), (2, 1_512)]).unwrap();
        let mut used = [0; 20];
        memory.read(0x3000, &mut used).unwrap();
        assert_eq!(used[2..4], 2_u16.to_le_bytes());
        assert_eq!(used[4..], [3, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0xe8, 5, 0, 0]);
    }

    #[test]
    fn what_a_guest_says_wrongly_is_an_error() {
        let (memory, mut ring) = ring();
        let mut chain = Chain::default();
        // Descriptors that form a cycle.
        describe(&memory, 0x1000, 0x5000, 12, NEXT, 0);
        offer(&memory, &[0]);
        assert!(matches!(ring.take(&memory, &mut chain), Err(GuestError::Protocol { .. })));
        // Memory that does not exist.
        for address in [0, BASE - 1, BASE + (1 << 16) - 1, u64::MAX] {
            assert!(memory.read(address, &mut [0; 2]).is_err(), "{address:#x}");
        }
        // More memory than the file has.
        let file = File::from(memfd_create(c"test", MFdFlags::empty()).unwrap());
        file.set_len(1 << 12).unwrap();
        let mut memory = GuestMemory::default();
        assert!(matches!(memory.add(0, 1 << 13, file, 0), Err(GuestError::Protocol { .. })));
    }
}
