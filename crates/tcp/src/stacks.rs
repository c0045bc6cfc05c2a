//! The stacks that send, each in a folder of its own beside the functions of its kernel that it
//! follows.

pub(crate) mod freebsd;
pub(crate) mod freebsd_rack;
