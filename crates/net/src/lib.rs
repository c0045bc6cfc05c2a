//! Paths in virtual time. Floor 3.
//!
//! Reading order: [`calendar`] (what happens next), [`pool`] (where packets lie while they
//! travel), [`link`] (a queue and a line), [`delay`] (a fixed delay), [`offload`] (TSO, LRO, GRO:
//! what a host's network card does to bursts).
//!
//! What it does not do: it knows no connection and no congestion; it moves packets.

pub mod calendar;
pub mod delay;
pub mod link;
pub mod offload;
pub mod pool;
