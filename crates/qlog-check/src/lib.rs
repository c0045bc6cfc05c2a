//! Nothing but a test: the qlog we write against schemas, with a public validator. Floor 8, so that
//! the engine knows nothing of it.
//!
//! See `tests/qlog/main.rs`.
