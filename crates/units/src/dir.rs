//! The directions of a connection.

use core::hash::{Hash, Hasher};

/// Direction of a packet on its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
#[repr(u8)]
pub enum Dir {
    /// From the host that opened the connection.
    #[default]
    Forward,
    /// To the host that opened the connection.
    Reverse,
}

impl Dir {
    /// The opposite direction.
    pub const fn reversed(self) -> Self {
        match self {
            Self::Forward => Self::Reverse,
            Self::Reverse => Self::Forward,
        }
    }
}

impl Hash for Dir {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (*self as u8).hash(state);
    }
}
