//! Where packets lie while they travel.

use machine::PacketId;

/// Room for one more in a row that may be very long: as much again while it is short, then an eighth
/// at a time.
pub fn make_room<T>(row: &mut Vec<T>) {
    if row.len() == row.capacity() {
        let len = row.len();
        row.reserve_exact(len.clamp(32, 512).max(len / 8));
    }
}

/// Packets by number; freed numbers are used again, the last freed first.
#[derive(Debug, Clone, Default)]
pub struct Pool<P> {
    slots: Vec<P>,
    free: Vec<u32>,
}

impl<P> Pool<P> {
    /// An empty pool.
    pub const fn new() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }

    /// Stores a packet.
    #[inline]
    pub fn put(&mut self, packet: P) -> PacketId {
        if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = packet;
            return PacketId(slot);
        }
        make_room(&mut self.slots);
        self.slots.push(packet);
        // As many places for freed numbers as there are numbers: freeing never allocates.
        if self.free.capacity() < self.slots.len() {
            self.free.reserve_exact(self.slots.capacity());
        }
        PacketId(self.slots.len() as u32 - 1)
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

    /// Gives a packet's number back, to be used again; until it is, the packet may be looked at.
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
