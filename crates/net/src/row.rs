//! A row that is filled at one end and emptied at the other.

/// First in, first out: what a link and a delay do with every packet, with less work than a queue of
/// both ends, since its places are counted by a mask.
#[derive(Debug, Clone)]
pub(crate) struct Row<T> {
    /// As many as a power of two, or none.
    places: Vec<T>,
    /// Place of the first element, and how many there are.
    head: u32,
    len: u32,
}

/// Places of a row that has an element.
const FEW: usize = 4;

impl<T: Copy> Row<T> {
    pub(crate) const fn new() -> Self {
        Self { places: Vec::new(), head: 0, len: 0 }
    }

    /// Elements.
    #[inline(always)]
    pub(crate) const fn len(&self) -> usize {
        self.len as usize
    }

    /// Adds an element behind all others.
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
    #[inline(never)]
    fn push_grown(&mut self, element: T) {
        // In order from the beginning, then as many places again.
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
        Some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    #[test]
    fn it_is_a_queue() {
        let mut stream = units::Stream::named(1, "row", "test");
        let (mut row, mut queue) = (Row::new(), VecDeque::new());
        for most in [3, 40, 5, 300] {
            for n in 0..10_000 {
                // Filled up to some length, then emptied, at random.
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
