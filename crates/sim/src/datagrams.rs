//! QUIC packets on the network, of models and of real implementations.

/// Number of a stored QUIC packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DatagramId(pub(crate) u32);

/// Packets by number; freed numbers are reused, together with their allocated lists.
#[derive(Debug, Default)]
pub(crate) struct Datagrams<P> {
    slots: Vec<P>,
    free: Vec<DatagramId>,
}

impl<P: Clone + Default> Datagrams<P> {
    /// Reserves a number for a packet that is yet to be written.
    pub(crate) fn reserve(&mut self) -> DatagramId {
        self.free.pop().unwrap_or_else(|| {
            self.slots.push(P::default());
            self.free.reserve(self.slots.len());
            DatagramId(self.slots.len() as u32 - 1)
        })
    }

    pub(crate) fn get(&self, id: DatagramId) -> &P {
        &self.slots[id.0 as usize]
    }

    pub(crate) fn get_mut(&mut self, id: DatagramId) -> &mut P {
        &mut self.slots[id.0 as usize]
    }

    /// Stores a copy of this packet.
    pub(crate) fn copy(&mut self, id: DatagramId) -> DatagramId {
        let copy = self.reserve();
        let packet = self.get(id).clone();
        *self.get_mut(copy) = packet;
        copy
    }

    pub(crate) fn release(&mut self, id: DatagramId) {
        self.free.push(id);
    }
}
