//! Where packets lie while they travel.

use machine::PacketId;

/// Packets by number; freed numbers are used again, the last freed first.
#[derive(Debug, Clone, Default)]
pub struct Pool<P> {
    slots: Vec<P>,
    free: Vec<u32>,
}

impl<P: Copy> Pool<P> {
    /// An empty pool.
    pub const fn new() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }

    /// Stores a packet.
    #[inline]
    pub fn put(&mut self, packet: P) -> PacketId {
        match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = packet;
                PacketId(slot)
            }
            None => {
                self.slots.push(packet);
                PacketId((self.slots.len() - 1) as u32)
            }
        }
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

    /// Takes a packet out; its number is free again.
    #[inline]
    pub fn take(&mut self, id: PacketId) -> P {
        self.free.push(id.0);
        self.slots[id.0 as usize]
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
        assert_eq!(pool.take(a), 'a');
        let c = pool.put('c');
        assert_eq!(c, a);
        assert_eq!((*pool.get(b), *pool.get(c), pool.len()), ('b', 'c', 2));
    }
}
