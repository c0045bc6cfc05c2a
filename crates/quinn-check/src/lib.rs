//! Nothing but a test: our QUIC sender beside that of `quinn-proto`, over the same path, in the
//! same virtual time. Layer 12, so that the engine knows nothing of it.
//!
//! See `tests/quinn/main.rs`.
