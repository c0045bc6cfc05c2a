//! Where packets lie while they travel.

use machine::PacketId;

/// Room for one more in a row that may be very long: a quarter of it at a time, not as much again.
pub fn make_room<T>(row: &mut Vec<T>) {
    if row.len() == row.capacity() {
        row.reserve_exact(row.len() / 4 + 32);
    }
}

/// Packets by number; freed numbers are used again, the last freed first.
#[derive(Debug, Clone, Default)]
pub struct Pool<P> {
    slots: Vec<P>,
    free: Vec<u32>,
}

impl<P: Copy + Default> Pool<P> {
    /// An empty pool.
    pub const fn new() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }

    /// The number that the next packet gets, if one is free; it stays free until it is taken.
    #[inline]
    pub fn next_free(&self) -> Option<PacketId> {
        self.free.last().map(|&slot| PacketId(slot))
    }

    /// Takes the number that is the next one; what it holds is whatever was there.
    #[inline]
    pub fn take_next(&mut self) {
        self.free.pop();
    }

    /// Adds a number, which is free and the next one.
    pub fn add(&mut self) -> PacketId {
        let slot = self.slots.len() as u32;
        make_room(&mut self.slots);
        self.slots.push(P::default());
        // As many places for freed numbers as there are numbers: freeing never allocates.
        if self.free.capacity() < self.slots.len() {
            self.free.reserve_exact(self.slots.capacity() - self.free.len());
        }
        self.free.push(slot);
        PacketId(slot)
    }

    /// Stores a packet.
    #[inline]
    pub fn put(&mut self, packet: P) -> PacketId {
        let id = self.next_free().unwrap_or_else(|| self.add());
        self.take_next();
        self.slots[id.0 as usize] = packet;
        id
    }

    /// Looks at a packet.
    #[inline]
    pub fn get(&self, id: PacketId) -> &P {
        &self.slots[id.0 as usize]
    }

    /// Looks at a packet to change it.
    #[inline]
    pub fn get_mut(&mut self, id: PacketId) -> &mut P {
        &mut self.slots[id.0 as usize]
    }

    /// Gives a packet's number back, to be used again.
    #[inline]
    pub fn release(&mut self, id: PacketId) {
        self.free.push(id.0);
    }

    /// Packets stored now.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Is nothing stored?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_used_again() {
        let mut pool = Pool::new();
        let (a, b) = (pool.put('a'), pool.put('b'));
        pool.release(a);
        let c = pool.put('c');
        assert_eq!(c, a);
        assert_eq!((*pool.get(b), *pool.get(c), pool.len()), ('b', 'c', 2));
    }
}
