//! Storage of the packets in transit.

use machine::PacketId;

/// Makes room for one more element in a vector that may become very long: doubles it while it is
/// short, then grows it by an eighth.
pub fn reserve_one<T>(row: &mut Vec<T>) {
    if row.len() == row.capacity() {
        let len = row.len();
        row.reserve_exact(len.clamp(32, 512).max(len / 8));
    }
}

/// Packets by number; freed numbers are reused, the last freed first.
#[derive(Debug, Clone, Default)]
pub struct Pool<P> {
    slots: Vec<P>,
    free: Vec<u32>,
}

impl<P> Pool<P> {
    /// Creates an empty pool.
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
        reserve_one(&mut self.slots);
        self.slots.push(packet);
        // The free list has capacity for every number, so freeing never allocates.
        if self.free.capacity() < self.slots.len() {
            self.free.reserve_exact(self.slots.capacity());
        }
        PacketId(self.slots.len() as u32 - 1)
    }

    /// Returns a packet.
    #[inline]
    pub fn get(&self, id: PacketId) -> &P {
        &self.slots[id.0 as usize]
    }

    /// Returns a packet for modification.
    #[inline]
    pub fn get_mut(&mut self, id: PacketId) -> &mut P {
        &mut self.slots[id.0 as usize]
    }

    /// Frees a packet's number for reuse; the packet stays readable until then.
    #[inline]
    pub fn release(&mut self, id: PacketId) {
        self.free.push(id.0);
    }

    /// Number of packets stored.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Returns whether the pool is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_reused() {
        let mut pool = Pool::new();
        let (a, b) = (pool.put('a'), pool.put('b'));
        pool.release(a);
        let c = pool.put('c');
        assert_eq!(c, a);
        assert_eq!((*pool.get(b), *pool.get(c), pool.len()), ('b', 'c', 2));
    }
}
