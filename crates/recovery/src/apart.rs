//! Values that stand apart from what has them, for what most connections never need.

use core::ops::{Deref, DerefMut};

/// A value that takes room only once it is to be changed.
#[derive(Debug, Clone, serde::Deserialize, serde::Serialize)]
pub struct Apart<T>(Option<Box<T>>);

/// What such a value is before it was ever changed.
pub trait Beginning: Clone + 'static {
    /// It.
    fn beginning() -> &'static Self;
}

impl<T> Apart<T> {
    /// Was it ever to be changed?
    #[inline(always)]
    pub const fn stands(&self) -> bool {
        self.0.is_some()
    }
}

impl<T> Default for Apart<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: Beginning> Deref for Apart<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        match &self.0 {
            Some(value) => value,
            None => T::beginning(),
        }
    }
}

impl<T: Beginning> DerefMut for Apart<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        self.0.get_or_insert_with(begin)
    }
}

/// Out of the way: it happens once to a connection, and is asked for in many places.
#[cold]
#[inline(never)]
fn begin<T: Beginning>() -> Box<T> {
    Box::new(T::beginning().clone())
}
