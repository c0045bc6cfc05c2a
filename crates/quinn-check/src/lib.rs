//! Tests that compare our QUIC sender with that of `quinn-proto` over the same path in the same
//! virtual time. Layer 12, so that the engine does not depend on quinn.
//!
//! See `tests/quinn/main.rs`.
