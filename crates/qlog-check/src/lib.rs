//! Nothing but a test: the qlog we write against schemas, with a public validator. Layer 12, so that
//! the engine knows nothing of it.
//!
//! See `tests/qlog/main.rs`.
