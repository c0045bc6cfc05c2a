//! Reads captures and logs of TCP stacks into connections and diagnoses them.
//!
//! Reading order: [`inputs`] (files into connections), [`diagnosis`] (findings as text and JSON),
//! [`log_view`] (display of logs), [`pasted`] (what other tools print for people).

pub mod diagnosis;
pub mod inputs;
pub mod log_view;
pub mod pasted;
