//! Nothing but a test: see `tests/types.rs`.
