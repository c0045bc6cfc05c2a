//! A ring buffer.

use units::prefetch;

/// First in, first out: the queue of links and delays, cheaper than a double-ended queue since its
/// positions are computed with a mask.
#[derive(Debug, Clone)]
pub(crate) struct RingBuffer<T> {
    places: Vec<T>,
    /// Position of the first element, and number of elements.
    head: u32,
    len: u32,
}

/// Slots of a buffer that has an element.
const FEW: usize = 4;

impl<T: Copy> RingBuffer<T> {
    pub(crate) const fn new() -> Self {
        Self { places: Vec::new(), head: 0, len: 0 }
    }

    /// Number of elements.
    #[inline(always)]
    pub(crate) const fn len(&self) -> usize {
        self.len as usize
    }

    /// Appends an element.
    #[inline(always)]
    pub(crate) fn push(&mut self, element: T) {
        let (len, places) = (self.len, self.places.len());
        if len as usize == places {
            return self.push_grown(element);
        }
        let place = (self.head + len) as usize & (places - 1);
        if let Some(free) = self.places.get_mut(place) {
            *free = element;
        }
        self.len = len + 1;
    }

    #[cold]
    fn push_grown(&mut self, element: T) {
        // Moves the elements to the start, then doubles the slots.
        self.places.rotate_left(self.head as usize);
        self.head = 0;
        let places = (2 * self.places.len()).max(FEW);
        self.places.resize(places, element);
        self.len += 1;
    }

    /// Takes the first element.
    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Option<T> {
        self.len = self.len.checked_sub(1)?;
        let first = *self.places.get(self.head as usize)?;
        self.head = (self.head + 1) & (self.places.len() as u32).wrapping_sub(1);
        if let Some(second) = self.places.get(self.head as usize) {
            prefetch(second);
        }
        Some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    #[test]
    fn it_is_a_queue() {
        let mut stream = units::RandomStream::named(1, "row", "test");
        let (mut row, mut queue) = (RingBuffer::new(), VecDeque::new());
        for most in [3, 40, 5, 300] {
            for n in 0..10_000 {
                // Filled to some length, then emptied, at random.
                let filling = queue.len() < most && stream.below(3) > 0;
                if filling {
                    row.push(n);
                    queue.push_back(n);
                } else {
                    assert_eq!(row.pop(), queue.pop_front());
                }
                assert_eq!(row.len(), queue.len());
            }
        }
    }
}
