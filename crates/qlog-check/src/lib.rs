//! Tests that validate our qlog against schemas with a public validator. Layer 12, so that the
//! engine does not depend on the validator.
//!
//! See `tests/qlog/main.rs`.
