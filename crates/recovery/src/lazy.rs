//! Lazily allocated state that most connections never need.

use core::ops::{Deref, DerefMut};

/// A value that is allocated at the first mutable access.
#[derive(Debug, Clone, serde::Deserialize, serde::Serialize)]
pub struct LazyBox<T>(Option<Box<T>>);

/// A type with a static initial value.
pub trait InitialValue: Clone + 'static {
    /// The value before the first mutable access.
    fn initial() -> &'static Self;
}

impl<T> LazyBox<T> {
    /// True once the value was accessed mutably.
    #[inline(always)]
    pub const fn is_allocated(&self) -> bool {
        self.0.is_some()
    }
}

impl<T> Default for LazyBox<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: InitialValue> Deref for LazyBox<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        match &self.0 {
            Some(value) => value,
            None => T::initial(),
        }
    }
}

impl<T: InitialValue> DerefMut for LazyBox<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        self.0.get_or_insert_with(allocate)
    }
}

/// Out of line: it runs once per connection and has many callers.
#[cold]
fn allocate<T: InitialValue>() -> Box<T> {
    Box::new(T::initial().clone())
}
