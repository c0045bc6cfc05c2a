//! Captures and logs of stacks read into connections, and what is wrong with them.
//!
//! Reading order: [`inputs`] (files into connections), [`diagnosis`] (findings as text and JSON), [`log_view`]
//! (logs of a stack for reading).

pub mod diagnosis;
pub mod inputs;
pub mod log_view;
