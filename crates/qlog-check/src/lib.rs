//! Nothing but a test: the qlog we write, against schemas and other people's readers. Floor 8, so
//! that the engine knows nothing of them.
//!
//! See `tests/qlog/main.rs`.
